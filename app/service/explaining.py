"""Why something is as it is: the recorded decision, and its reasons made again in full.

The summary in the log says what was decided; the reasons down to the device are computed at the
revision that the decision observed (or at the moment asked for), which is exact because everything
is deterministic. The answer is one tree of texts, ready for a terminal or as JSON.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from app.domain.controllers import registry
from app.domain.controllers.scheduling import reasons
from app.domain.controllers.scheduling.attempt import Rules as SchedulingRules
from app.domain.controllers.scheduling.reasons import NodeAnswer
from app.domain.devices.device_selectors import SelectorCompiler
from app.domain.errors import InputError, NotFound
from app.domain.log import DECISION, Event, EventType, HistoryInfo, ObjectKey, Revision
from app.domain.objects import registry as kinds
from app.domain.objects.profile import Profile
from app.domain.values import json_tree, timestamps
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import Instant
from app.ports import EventLog
from app.service.reason_trees import Reason, merge_nodes, node_reason
from app.service.views import LiveViews, features_of

HELP_NODES_MAX = 20
"""Nodes on which helpful changes are looked for."""

DECISIONS_MAX = 50
"""Decisions about one subject that are looked through, newest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Who is asked about: kind and name, the node if just one is of interest.

    With `help` the smallest changes that would let a waiting pod run are looked for too.
    """

    kind: str
    namespace: str
    name: str
    node: str = ""
    help: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The subject, what was decided last and when, and the reasons.

    `decision` is the recorded body, None when no controller has decided about the subject.
    """

    subject: str
    outcome: str
    revision: Revision
    text: str
    reason: Reason
    decision: JsonObject | None = None
    details: JsonObject = field(default_factory=dict)

    def to_json(self) -> JsonObject:
        """The whole answer."""
        return {
            "subject": self.subject,
            "outcome": self.outcome,
            "revision": self.revision,
            "text": self.text,
            "reasons": self.reason.to_json(),
            "decision": self.decision,
            **self.details,
        }


class Explainer:
    """Answers questions about one history. `views_at` gives the views of any revision."""

    def __init__(
        self,
        log: EventLog,
        info: HistoryInfo,
        views: LiveViews,
        compiler: SelectorCompiler,
        profile: Profile,
    ) -> None:
        self._log = log
        self._info = info
        self._views = views
        options = registry.options_from(info.settings)
        self._rules = SchedulingRules(
            gates=profile,
            features=features_of(profile),
            compiler=compiler,
            quirks=options.quirks,
            allocator_quirks=options.allocator_quirks,
        )

    async def why(self, question: Question) -> Answer:
        """The answer as of the views. Raises NotFound, InputError for a kind without reasons."""
        kind = _find_kind(question.kind)
        namespace = question.namespace if kind.namespaced else ""
        key = ObjectKey(kind.group, kind.plural, namespace, question.name)
        match kind.plural:
            case "pods":
                return await self._pod(key, question)
            case "resourceclaims":
                return await self._claim(key, question)
            case "devicetaintrules":
                return await self._rule(key)
            case _:
                return await self._other(key)

    async def _pod(self, key: ObjectKey, question: Question) -> Answer:
        tree = self._views.objects.get(key)
        decision = await self._last_decision(key)
        if tree is None:
            return await self._gone(key, decision)
        subject = f"pod {key.namespace}/{key.name}"
        node = json_tree.text(tree, "spec", "nodeName")
        said = [] if decision is None else [_decision_reason(decision)]
        if node and not question.node:
            holdings = self._claims_of(tree)
            return Answer(
                subject=subject,
                outcome="Scheduled",
                revision=self._views.revision,
                text=f"runs on node {node}",
                reason=Reason(text=subject, children=(*said, *holdings)),
                decision=_body(decision),
            )
        early = reasons.before_nodes(self._views, tree, self._rules)
        if early:
            children: tuple[Reason, ...] = (Reason(text=early),)
            text = early
        else:
            now = Instant(decision.stamp.time if decision is not None else 0)
            answers = list(
                reasons.ask_nodes(self._rules, self._views, tree, now=now, node=question.node)
            )
            if question.node and not answers:
                raise NotFound(f'node "{question.node}" not found', resource="nodes")
            children = merge_nodes([node_reason(answer) for answer in answers])
            if question.help:
                children = (_help_reason(answers), *children)
            fits = [answer.node for answer in answers if not answer.text]
            text = _fit_text(len(fits), len(answers))
        body = _body(decision)
        outcome = json_tree.text(body or {}, "outcome") or "Pending"
        return Answer(
            subject=subject,
            outcome=outcome,
            revision=self._views.revision,
            text=text,
            reason=Reason(text=subject, children=(*said, *children)),
            decision=body,
        )

    async def _claim(self, key: ObjectKey, question: Question) -> Answer:
        tree = self._views.objects.get(key)
        decision = await self._last_decision(key)
        if tree is None:
            return await self._gone(key, decision)
        subject = f"resourceclaim {key.namespace}/{key.name}"
        said = [] if decision is None else [_decision_reason(decision)]
        results = json_tree.objects(tree, "status", "allocation", "devices", "results")
        children = [*said, *(_result_reason(result) for result in results)]
        consumers = json_tree.objects(tree, "status", "reservedFor")
        pods = [json_tree.text(item, "name") for item in consumers]
        if pods:
            children.append(Reason(text=f"reserved for {', '.join(pods)}"))
        owner = json_tree.objects(tree, "metadata", "ownerReferences")
        users = pods or [json_tree.text(item, "name") for item in owner[:1]]
        if not results and users:
            asked = Question(kind="pod", namespace=key.namespace, name=users[0], node=question.node)
            try:
                found = await self.why(asked)
            except NotFound:
                found = None
            if found is not None:
                children.append(found.reason)
        outcome = "Allocated" if results else "Pending"
        return Answer(
            subject=subject,
            outcome=outcome,
            revision=self._views.revision,
            text=f"{len(results)} devices" if results else "no device is allocated",
            reason=Reason(text=subject, children=tuple(children)),
            decision=_body(decision),
        )

    async def _rule(self, key: ObjectKey) -> Answer:
        tree = self._views.objects.get(key)
        decision = await self._last_decision(key)
        if tree is None:
            return await self._gone(key, decision)
        selector = json_tree.get(tree, "spec", "deviceSelector")
        effect = json_tree.text(tree, "spec", "taint", "effect")
        matched: list[str] = []
        for item in self._views.inventory.slices():
            for device in item.devices:
                place = device.id
                if _selects(selector, place):
                    matched.append("/".join(place))
        claims = self._claims_hit(selector)
        condition = json_tree.objects(tree, "status", "conditions")
        said = [
            Reason(
                text=f"{json_tree.text(item, 'reason')}: {json_tree.text(item, 'message')}".rstrip(
                    ": "
                )
            )
            for item in condition
        ]
        children = (
            *said,
            Reason(text=f"effect {effect}, {len(matched)} published devices", count=len(matched)),
            *(Reason(text=text) for text in claims),
        )
        return Answer(
            subject=f"devicetaintrule {key.name}",
            outcome=json_tree.text(condition[0], "reason") if condition else "NotProcessed",
            revision=self._views.revision,
            text=f"selects {len(matched)} devices, {len(claims)} allocated claims",
            reason=Reason(text=f"devicetaintrule {key.name}", children=children),
            decision=_body(decision),
            details={"devices": matched, "claims": claims},
        )

    async def _other(self, key: ObjectKey) -> Answer:
        tree = self._views.objects.get(key)
        decision = await self._last_decision(key)
        subject = str(key)
        if tree is None:
            return await self._gone(key, decision)
        if decision is None:
            raise InputError(
                f"no controller has decided about {subject}",
                cure="ask about a pod, resourceclaim or devicetaintrule",
            )
        return Answer(
            subject=subject,
            outcome=json_tree.text(decision.object, "outcome"),
            revision=self._views.revision,
            text="",
            reason=Reason(text=subject, children=(_decision_reason(decision),)),
            decision=_body(decision),
        )

    async def _gone(self, key: ObjectKey, decision: Event | None) -> Answer:
        events = await self._log.read_object(
            self._info.id, key, until=self._views.revision, limit=1
        )
        if not events:
            raise NotFound(f'{key.resource} "{key.name}" not found', resource=key.resource)
        last = events[0]
        when = timestamps.micro_text(last.stamp.time)
        actor = last.stamp.actor.user
        children = [Reason(text=f"deleted at {when} (revision {last.revision}) by {actor}")]
        if decision is not None:
            children.insert(0, _decision_reason(decision))
        for condition in json_tree.objects(last.object, "status", "conditions"):
            if condition.get("type") == "DisruptionTarget":
                message = json_tree.text(condition, "message")
                children.append(Reason(text=f"{json_tree.text(condition, 'reason')}: {message}"))
        outcome = json_tree.text(decision.object, "outcome") if decision is not None else "Deleted"
        return Answer(
            subject=str(key),
            outcome=outcome,
            revision=self._views.revision,
            text="is gone",
            reason=Reason(text=str(key), children=tuple(children)),
            decision=_body(decision),
        )

    async def _last_decision(self, key: ObjectKey) -> Event | None:
        place = DECISION._replace(namespace=key.namespace, name=key.name)
        events = await self._log.read_object(
            self._info.id, place, until=self._views.revision, limit=DECISIONS_MAX
        )
        for event in events:
            if (
                event.type is EventType.DECISION_RECORDED
                and event.object.get("resource") == key.resource
            ):
                return event
        return None

    def _claims_of(self, pod: JsonObject) -> list[Reason]:
        uid = json_tree.text(pod, "metadata", "uid")
        namespace = json_tree.text(pod, "metadata", "namespace")
        found: list[Reason] = []
        for key in self._views.objects.keys("resource.k8s.io", "resourceclaims", namespace):
            tree = self._views.objects.get(key) or {}
            consumers = json_tree.objects(tree, "status", "reservedFor")
            if not any(consumer.get("uid") == uid for consumer in consumers):
                continue
            results = json_tree.objects(tree, "status", "allocation", "devices", "results")
            found.append(
                Reason(
                    text=f"claim {key.name}",
                    children=tuple(_result_reason(result) for result in results),
                )
            )
        return found

    def _claims_hit(self, selector: object) -> list[str]:
        found: list[str] = []
        for key in self._views.objects.keys("resource.k8s.io", "resourceclaims"):
            tree = self._views.objects.get(key) or {}
            results = json_tree.objects(tree, "status", "allocation", "devices", "results")
            hit = [result for result in results if _selects(selector, _place(result))]
            if not hit:
                continue
            pods = ", ".join(
                json_tree.text(consumer, "name")
                for consumer in json_tree.objects(tree, "status", "reservedFor")
            )
            devices = ", ".join("/".join(_place(result)) for result in hit)
            found.append(f"claim {key.namespace}/{key.name} of {pods or 'no pod'}: {devices}")
        return found


def _find_kind(text: str) -> kinds.Kind:
    wanted = text.lower()
    for kind in kinds.kinds():
        names = (kind.kind.lower(), kind.plural, kind.singular, *kind.short_names)
        if wanted in names or wanted == kind.qualified_plural:
            return kind
    raise InputError(
        f"there is no kind {text!r}", cure="write it as pod/NAME, resourceclaim/NAME, …"
    )


def _selects(selector: object, place: tuple[str, str, str]) -> bool:
    """As eviction reads a selector: an absent one selects nothing (controllers.md C1)."""
    if not isinstance(selector, dict):
        return False
    wanted = zip(("driver", "pool", "device"), place, strict=True)
    return all(selector.get(name) in (None, part) for name, part in wanted)


def _place(result: JsonObject) -> tuple[str, str, str]:
    return (
        json_tree.text(result, "driver"),
        json_tree.text(result, "pool"),
        json_tree.text(result, "device"),
    )


def _result_reason(result: JsonObject) -> Reason:
    text = f"request {json_tree.text(result, 'request')} has {'/'.join(_place(result))}"
    consumed = json_tree.mapping(result, "consumedCapacity")
    if consumed:
        text += " with " + ", ".join(f"{name} {value}" for name, value in sorted(consumed.items()))
    return Reason(text=text)


def _decision_reason(event: Event) -> Reason:
    body = event.object
    when = timestamps.micro_text(event.stamp.time)
    summary = json_tree.mapping(body, "summary")
    lines: Sequence[str] = [
        f"{name}: {_short(value)}"
        for name, value in summary.items()
        if value not in (None, "", [], {}) and not name.endswith("Count")
    ]
    return Reason(
        text=(
            f"{json_tree.text(body, 'controller')} decided {json_tree.text(body, 'outcome')} at "
            f"{when} (revision {event.revision}, having seen {event.stamp.observed})"
        ),
        children=tuple(Reason(text=line) for line in lines),
    )


def _short(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_short(item)}" for name, item in value.items())
    if isinstance(value, list):
        return ", ".join(_short(item) for item in value)
    return str(value)


def _help_reason(answers: Sequence[NodeAnswer]) -> Reason:
    """The smallest proven changes over the nodes that were asked, cheapest first."""
    refused = [answer for answer in answers if answer.text and answer.answer is not None]
    helps = [found for answer in refused[:HELP_NODES_MAX] for found in answer.helps()]
    fewest = min((len(found.changes) for found in helps), default=0)
    texts: dict[str, list[str]] = {}
    for found in helps:
        if len(found.changes) == fewest:
            texts.setdefault(found.text, []).append(found.node)
    children = tuple(
        Reason(text=f"{text} (node {', '.join(nodes[:3])})", count=len(nodes))
        for text, nodes in texts.items()
    )
    if not children:
        asked = min(len(refused), HELP_NODES_MAX)
        return Reason(text=f"nothing that was tried on {asked} nodes would help")
    return Reason(text="what would help, each proved by allocating again:", children=children)


def _fit_text(fits: int, asked: int) -> str:
    if asked == 1:
        return "it would fit there" if fits else "it does not fit there"
    return f"{fits} of {asked} nodes would take it"


def _body(event: Event | None) -> JsonObject | None:
    return None if event is None else event.object
