"""The node controller: writes Events, taints and labels of nodes, one write at a time.

It reports once that it has registered the node, and a second after its deletion that it is removed.
A node whose `Ready` condition is true loses its readiness taints, a node that is not ready gets
them; a node under pressure of memory, disk or process ids, or without a network, gets the taint of
that condition; a cordoned node gets the unschedulable taint. Then the labels of architecture and
system are copied to their old names.

Admission puts `node.kubernetes.io/not-ready:NoSchedule` on each new node; it is removed when the
node is ready. Parity: controllers.md 5.5; "Taints and Tolerations", Taint Nodes by Condition. A
node without one of these conditions keeps the taints that it has for it.

A refused Event (its namespace is missing) does not prevent the taints and labels of a node: they
are then written first, and the Event is tried again after them. In a replay at a recorded pace,
each kind of write waits for its own recorded counterpart: taints, labels and Events come from
separate loops of the real controller, in any order.
"""

from collections.abc import Iterable, Iterator, Sequence, Set

from app.domain.controllers.event_objects import MANAGER, Reporter, reference
from app.domain.controllers.keyed import KeyedController, Work, decided_at, decided_cause
from app.domain.controllers.pacing import Pace
from app.domain.controllers.plan import DECISIONS, Decision, Plan, Reads, Views
from app.domain.controllers.resources import is_of
from app.domain.controllers.work_queue import WorkQueue
from app.domain.log import Event, EventType, ObjectKey, Revision
from app.domain.objects.write.commands import Command, PatchObject, PatchType
from app.domain.values import api_resources, condition_types, json_tree, timestamps, well_known
from app.domain.values.fields import core, decision_body, entries, meta
from app.domain.values.identifiers import Uid
from app.domain.values.json_tree import JsonObject, JsonView
from app.domain.values.timestamps import SECOND, Instant

NAME = "node-lifecycle"

SAID, TAINTS, LABELS = f"{NAME}/said", f"{NAME}/taints", f"{NAME}/labels"
"""The queues of the pace, one for each kind of write."""

COMPONENT = "node-controller"
REGISTERED = "RegisteredNode"
REMOVING = "RemovingNode"

FAREWELL = SECOND
"""The time from the deletion of a node to its Event; recordings show about that."""

_COPIED_LABELS = {
    "beta.kubernetes.io/arch": well_known.ARCH,
    "beta.kubernetes.io/os": well_known.OS,
}

_TAINT_OF = {"False": well_known.NOT_READY, "Unknown": well_known.UNREACHABLE}

TROUBLES = {
    "MemoryPressure": well_known.MEMORY_PRESSURE,
    "DiskPressure": well_known.DISK_PRESSURE,
    "PIDPressure": well_known.PID_PRESSURE,
    "NetworkUnavailable": well_known.NETWORK_UNAVAILABLE,
}
"""The conditions that are bad when true, and their taints."""

CONDITION_KEYS = frozenset((*_TAINT_OF.values(), *TROUBLES.values()))
"""The keys of taints that follow from conditions."""


class NodeReconciler(KeyedController[tuple[str], Views]):
    """Registers nodes and keeps their taints and labels in line with their state."""

    name = NAME
    reads: Reads = frozenset({api_resources.NODES, api_resources.EVENTS, DECISIONS})

    def __init__(self, pace: Pace | None = None) -> None:
        super().__init__()
        self._pace = pace
        self._reporter = Reporter(COMPONENT)
        self._registered: set[str] = set()
        self._refused: set[str] = set()
        self._gone: WorkQueue[tuple[str, Uid]] = WorkQueue()

    def keys_of(self, event: Event, views: Views) -> Iterable[tuple[str]]:
        """A changed node, and a node whose registration was reported."""
        key = event.key
        if is_of(key, api_resources.EVENTS):
            return self._fold_event_object(event)
        if not is_of(key, api_resources.NODES):
            return ()
        if event.type is EventType.OBJECT_DELETED:
            self._registered.discard(event.uid)
            self._refused.discard(key.name)
            due = Instant(event.stamp.time + FAREWELL)
            self._gone.add_at((key.name, event.uid), due, event.revision)
            return ()
        return ((key.name,),)

    def step(self, views: Views, now: Instant) -> Plan | None:
        """The next write for one node."""
        if gone := self._gone.take(now):
            (name, uid), cause = gone
            return self.plan(views, (name,), self._report_gone(views, name, uid, now), cause)
        return super().step(views, now)

    def reconcile(self, views: Views, key: tuple[str], now: Instant) -> Work | None:
        """The next write for a node that the pace allows, or the instant at which it allows one."""
        kinds = self._kinds(views, key[0], now, self._refused, is_untold=None)
        if self._pace is None:
            return self._work(views, key[0], now, self._refused, kinds)
        dues: list[Instant] = []
        for kind in kinds:
            dues.append(self._pace.not_before(kind, key, now))
            if dues[-1] <= now:
                others = (each for each in kinds if each != kind)
                return self._work(views, key[0], now, self._refused, (kind, *others))
        return Work(due=min(dues)) if dues else None

    def settled(self, plan: Plan, problem: str | None, now: Instant) -> None:
        """Settles the report of a deleted node, or the node of the plan."""
        if plan.decision is not None and plan.decision.outcome == "Removed":
            uid = entries.uid(plan.decision.inputs)
            self._gone.settle((plan.key, uid), problem, now)
        else:
            super().settled(plan, problem, now)

    def settle(self, key: tuple[str], plan: Plan, problem: str | None, now: Instant) -> None:
        """Retries after a refusal; the writes after a refused Event are tried at once."""
        self.queue.settle(key, problem, now)
        is_event = plan.decision is not None and plan.decision.outcome == "Registered"
        if problem is not None and is_event and plan.key not in self._refused:
            self._refused.add(plan.key)
            self.queue.add(key, plan.observed)

    def due(self) -> Instant | None:
        """The instant of the next retry, or of the next report of a deleted node."""
        instants = [due for due in (self.queue.due(), self._gone.due()) if due is not None]
        return min(instants, default=None)

    def redecide(self, views: Views, decision: Event) -> Plan | None:
        """Makes the plan again from the observed node."""
        body = decision.object
        recorded = decision_body.read(body)
        name, outcome = recorded.name, recorded.outcome
        now = decided_at(decision)
        work: Work | None
        if outcome == "Removed":
            work = self._report_gone(views, name, recorded.inputs.uid, now)
        else:
            refused = {name} if json_tree.flag(body, "inputs", "refused") else set()
            # After a restart the registrations of nodes whose Events have expired are unknown:
            # these nodes are registered again.
            is_untold = bool(refused) or outcome == "Registered"
            kinds = self._kinds(views, name, now, refused, is_untold=is_untold)
            work = self._work(views, name, now, refused, kinds)
        return None if work is None else self.plan(views, (name,), work, decided_cause(decision))

    def fold_decision(self, decision: Event) -> None:
        """Drops the node of a decision of this controller."""
        body = decision.object
        if body.get("controller") != NAME:
            return
        name, observed = decision.key.name, Revision(decision.stamp.observed)
        if body.get("outcome") == "Removed":
            self._gone.drop((name, decision_body.read(body).inputs.uid), observed)
        else:
            self.queue.drop((name,), observed)

    def _fold_event_object(self, event: Event) -> Iterator[tuple[str]]:
        self._reporter.fold(event)
        event_object = core.event_object(event.object)
        if event_object.reason != REGISTERED:
            return
        subject = event_object.involved_object
        if subject.kind == "Node" and subject.uid not in self._registered:
            self._registered.add(subject.uid)
            yield (subject.name,)

    def _report_gone(self, views: Views, name: str, uid: Uid, now: Instant) -> Work:
        subject = {"kind": "Node", "name": name, "uid": uid, "apiVersion": "v1"}
        command = self._reporter.report(
            views.objects,
            now,
            subject,
            kind="Normal",
            reason=REMOVING,
            message=f"Node {name} event: Removing Node {name} from Controller",
        )
        decision = Decision(
            controller=NAME,
            resource="nodes",
            namespace="",
            name=name,
            outcome="Removed",
            inputs={"now": now, "uid": uid},
            summary={},
        )
        return Work((command,), decision)

    def _kinds(
        self, views: Views, name: str, now: Instant, refused: Set[str], *, is_untold: bool | None
    ) -> Sequence[str]:
        """The kinds of writes that a node needs; the Event of a node among the `refused` is last.

        With `is_untold` None the method checks whether the node has been registered.
        """
        tree = views.objects.get(ObjectKey(*api_resources.NODES, "", name))
        if tree is None:
            return ()
        if is_untold is None:
            is_untold = meta.uid(tree) not in self._registered
        taints = core.taints(tree)
        kinds = []
        if _wanted(tree, taints, now) != taints:
            kinds.append(TAINTS)
        if _missing_labels(tree):
            kinds.append(LABELS)
        if is_untold:
            kinds.insert(len(kinds) if name in refused else 0, SAID)
        return kinds

    def _work(
        self, views: Views, name: str, now: Instant, refused: Set[str], kinds: Sequence[str]
    ) -> Work | None:
        """The write of the first of all kinds that the node needs; None without any."""
        key = ObjectKey(*api_resources.NODES, "", name)
        tree = views.objects.get(key)
        if tree is None or not kinds:
            return None
        kind, comes_last = kinds[0], SAID in kinds and name in refused
        taints = core.taints(tree)
        wanted = _wanted(tree, taints, now)
        command: Command
        if kind == SAID:
            outcome = "Registered"
            command = self._reporter.report(
                views.objects,
                now,
                reference(tree, kind="Node"),
                kind="Normal",
                reason=REGISTERED,
                message=f"Node {name} event: Registered Node {name} in Controller",
            )
        elif kind == TAINTS:
            outcome = "Tainted" if len(wanted) > len(taints) else "Untainted"
            version = meta.resource_version(tree)
            command = _patch(
                key,
                {"metadata": {"resourceVersion": version}, "spec": {"taints": wanted or None}},
            )
        else:
            outcome = "Labelled"
            command = _patch(key, {"metadata": {"labels": _missing_labels(tree)}})
        decision = Decision(
            controller=NAME,
            resource="nodes",
            namespace="",
            name=name,
            outcome=outcome,
            inputs={"now": now, **({"refused": True} if comes_last else {})},
            summary={
                "ready": _ready(tree),
                "taints": [json_tree.text(taint, "key") for taint in wanted],
            },
        )
        return Work((command,), decision)


def _patch(key: ObjectKey, body: JsonObject) -> PatchObject:
    return PatchObject(key=key, version="v1", type=PatchType.STRATEGIC, body=body, options=MANAGER)


def _missing_labels(tree: JsonView) -> JsonObject:
    labels = meta.labels(tree)
    return {
        old: labels[new]
        for old, new in _COPIED_LABELS.items()
        if new in labels and labels.get(old) != labels[new]
    }


def reasons_of(tree: JsonView) -> tuple[str, ...]:
    """The values from which the taints and labels of a node follow."""
    labels = meta.labels(tree)
    sources = (labels.get(name, "") for name in _COPIED_LABELS.values())
    troubles = (_status(tree, each) for each in TROUBLES)
    return (str(core.unschedulable(tree)), _ready(tree), *troubles, *sources)


def _ready(tree: JsonView) -> str:
    return _status(tree, condition_types.READY)


def _status(tree: JsonView, condition_type: str) -> str:
    """The status of a condition; empty without the condition."""
    condition = meta.condition(tree, condition_type)
    return "" if condition is None else condition.status


def _wanted(tree: JsonView, taints: list[JsonObject], now: Instant) -> list[JsonObject]:
    """The taints that the node should have; existing taints keep their order and times."""
    kept = _with_troubles(tree, _with_readiness(tree, taints))
    cordoned = core.unschedulable(tree)
    if not cordoned:
        return [taint for taint in kept if not _is(taint, well_known.UNSCHEDULABLE)]
    if not any(_is(taint, well_known.UNSCHEDULABLE) for taint in kept):
        since = timestamps.seconds_text(now)
        kept = [
            *kept,
            {"key": well_known.UNSCHEDULABLE, "effect": "NoSchedule", "timeAdded": since},
        ]
    return kept


def _with_readiness(tree: JsonView, taints: list[JsonObject]) -> list[JsonObject]:
    ready = _ready(tree)
    if not ready:
        return taints
    needed = _TAINT_OF.get(ready)
    kept = [
        taint
        for taint in taints
        if not (_is(taint, well_known.NOT_READY) or _is(taint, well_known.UNREACHABLE))
        or taint.get("key") == needed
    ]
    if needed is not None and all(taint.get("key") != needed for taint in kept):
        kept.append({"key": needed, "effect": "NoSchedule"})
    return kept


def _with_troubles(tree: JsonView, taints: list[JsonObject]) -> list[JsonObject]:
    for condition_type, key in TROUBLES.items():
        status = _status(tree, condition_type)
        is_there = any(_is(taint, key) for taint in taints)
        if status == "True" and not is_there:
            taints = [*taints, {"key": key, "effect": "NoSchedule"}]
        elif status not in ("", "True") and is_there:
            taints = [taint for taint in taints if not _is(taint, key)]
    return taints


def _is(taint: JsonView, key: str) -> bool:
    return taint.get("key") == key and taint.get("effect") == "NoSchedule"


def state_without(node: JsonView, taint: JsonView) -> str:
    """The state in which a node would not have one of its taints, if its present one sets it.

    Such a taint comes back if it is removed. Empty for all other taints.
    """
    key = taint.get("key")
    if key in _TAINT_OF.values():
        return "ready" if _ready(node) in _TAINT_OF else ""
    for condition_type, of_condition in TROUBLES.items():
        if _is(taint, of_condition) and _status(node, condition_type) == "True":
            return f"out of {condition_type}"
    return ""
