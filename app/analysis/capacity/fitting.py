"""How many more copies of a pod with its claims are placed, one after another.

Each copy is created on the hypothetical cluster by the rules of every write, so that admission and
quotas refuse what they would refuse; its claims are made as the claim controller makes them; then
it gets one attempt of the scheduler, on what the copies before it have left. What differs from a
live cluster: copies come by themselves, no pod is evicted for them, and pods that wait already get
nothing.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from copy import deepcopy
from dataclasses import dataclass, replace

import msgspec

from app.analysis import edits
from app.analysis.blast import prospects
from app.analysis.blast.world import Frozen, World
from app.analysis.capacity import ceilings
from app.analysis.capacity.answers import DeviceCause, Fit, Limit, NodeCount
from app.analysis.capacity.subjects import Subject
from app.analysis.edits import Apply
from app.domain.allocation.reasons.summary import SummaryBounds
from app.domain.controllers import pods
from app.domain.controllers.claims import pod_sync
from app.domain.controllers.claims.pod_sync import Failure, Write
from app.domain.controllers.resources import pod_key
from app.domain.controllers.scheduling import summaries
from app.domain.controllers.scheduling.binding_cycle import writes
from app.domain.controllers.scheduling.framework import pod_spec
from app.domain.controllers.scheduling.scheduling_cycle.assuming import Assumptions
from app.domain.controllers.scheduling.scheduling_cycle.attempt import (
    Attempt,
    SchedulerRules,
    attempt,
)
from app.domain.controllers.scheduling.scheduling_cycle.verdicts import Verdicts
from app.domain.errors import Forbidden, InputError, Rejected
from app.domain.log import ObjectKey
from app.domain.objects import first_objects
from app.domain.objects.write.commands import CreateObject, FieldValidation, WriteOptions
from app.domain.values import api_resources
from app.domain.values.json_tree import JsonObject

MANAGER = "redra-fit"
_OPTIONS = WriteOptions(field_manager=MANAGER, field_validation=FieldValidation.STRICT)


@dataclass(frozen=True, slots=True, kw_only=True)
class FitBounds:
    """`copies_max` copies of a subject are tried, `subjects_max` subjects in one answer.

    The causes of a refusal are counted within `summary`.
    """

    copies_max: int = 1_000
    subjects_max: int = 50
    summary: SummaryBounds = SummaryBounds()


def fit_all(
    frozen: Frozen, wanted: Sequence[Subject], bounds: FitBounds = FitBounds()
) -> tuple[Fit, ...]:
    """How many copies fit of each of the subjects; one that is refused does not keep the others
    from being tried.
    """
    return tuple(_fit_or_refusal(frozen, one, bounds) for one in wanted[: bounds.subjects_max])


def fit(frozen: Frozen, subject: Subject, bounds: FitBounds = FitBounds()) -> Fit:
    """How many copies fit on the state, and what limits them.

    Raises InputError or Rejected for a subject that the API refuses whatever fits, and where no
    scheduler runs.
    """
    if frozen.scheduling is None:
        raise InputError("no scheduler runs in this history: nothing can be placed")
    if frozen.rules is None:
        raise InputError("this history has no rules: nothing can be created")
    world = World(frozen)
    _make_namespace(world, subject.namespace)
    for put in subject.puts:
        _put(world, put)
    at_most = ceilings.of(world, subject.pod)
    with _Placing(world, frozen.scheduling) as placing:
        nodes: Counter[str] = Counter()
        limit = Limit(kind="bound", text=f"no more than {bounds.copies_max} copies were tried")
        for number in range(bounds.copies_max):
            stop = placing.place(_copy(subject.pod, number), nodes, bounds)
            if stop is not None:
                limit = stop
                break
    count = sum(nodes.values())
    return Fit(
        subject=subject.text,
        count=count,
        nodes=tuple(NodeCount(node=name, count=nodes[name]) for name in sorted(nodes)),
        limit=limit,
        at_most=at_most,
    )


def _fit_or_refusal(frozen: Frozen, subject: Subject, bounds: FitBounds) -> Fit:
    try:
        return fit(frozen, subject, bounds)
    except Rejected as refusal:
        limit = Limit(kind="refused", text=refusal.message)
        return Fit(subject=subject.text, count=0, nodes=(), limit=limit)


def _make_namespace(world: World, name: str) -> None:
    """Show a namespace that every cluster has, or any where a recording has none."""
    key = ObjectKey(*api_resources.NAMESPACES, "", name)
    is_known = name not in first_objects.NAMESPACES and any(
        world.objects.keys(*api_resources.NAMESPACES)
    )
    if is_known or world.objects.get(key) is not None:
        return
    tree: JsonObject = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    world.apply(CreateObject(key=key, version="v1", tree=tree, options=_OPTIONS), "create")


def _put(world: World, put: Apply) -> None:
    """Show an object; what refuses one that was read at a place names that place."""
    (command,) = edits.commands_of((put,), world.objects, world.profile, manager=MANAGER)
    try:
        world.apply(command, "apply")
    except Rejected as problem:
        if not put.place:
            raise
        raise InputError(problem.message, place=put.place) from problem


def _copy(pod: JsonObject, number: int) -> JsonObject:
    tree = deepcopy(pod)
    tree["metadata"]["name"] = f"{tree['metadata']['name']}-{number}"
    return tree


class _Placing:
    """Copies placed so far, which later ones see. A context: it leaves the state as it was."""

    def __init__(self, world: World, rules: SchedulerRules) -> None:
        self._world = world
        self._rules = replace(rules, summary=None)
        self._nodes, devices = prospects.survey(world.objects)
        self._assumed = Assumptions(self._nodes, devices)
        self._verdicts = Verdicts()
        self._start = 0
        self._stack = ExitStack()

    def __enter__(self) -> "_Placing":
        # What is in force stays so: each attempt adds to what those before it have put in.
        self._stack.enter_context(self._assumed.staying())
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def place(self, pod: JsonObject, nodes: Counter[str], bounds: FitBounds) -> Limit | None:
        """Create a copy and place it; None when it has a node, else what limits it."""
        world = self._world
        try:
            tree = self._create(pod)
        except Forbidden as refusal:
            return Limit(kind="refused", text=refusal.message)
        spec = pod_spec.read(tree)
        with self._assumed.in_force(world.allocated):
            result = attempt(
                self._rules,
                world,
                self._nodes,
                self._verdicts,
                spec,
                start=self._start,
                now=world.now,
                written=self._assumed.written,
            )
            self._start = result.next_start
            if result.outcome != "Scheduled":
                return _limit(result, bounds)
            commands = list(
                writes.reserve(
                    result,
                    tree,
                    world.now,
                    number=1,
                    stamps_time=self._rules.features.binding_conditions,
                )
            )
            self._assumed.add(spec, result, world.allocated, commands)
        nodes[result.node] += 1
        return None

    def _create(self, pod: JsonObject) -> JsonObject:
        """The pod as stored, with claims made from its templates. Raises Rejected, InputError."""
        world = self._world
        namespace, name = pod["metadata"]["namespace"], pod["metadata"]["name"]
        key = pod_key(namespace, name)
        world.apply(CreateObject(key=key, version="v1", tree=pod, options=_OPTIONS), "create")
        for _ in self._claims(key):
            pass
        tree = world.objects.get(key)
        assert tree is not None, "it was created just now"
        return tree

    def _claims(self, key: ObjectKey) -> Iterator[None]:
        """Do for a pod what the claim controller does, write by write."""
        world, gates, quirks = self._world, self._rules.gates, self._rules.quirks
        while True:
            tree = world.objects.get(key)
            assert tree is not None, "nobody deletes it"
            match pod_sync.next_step(world.objects, pods.facts(tree), gates, quirks):
                case Write(command=command):
                    world.apply(command, "create")
                case Failure(text=text):
                    raise InputError(text)
                case None:
                    return
            yield


def _limit(result: Attempt, bounds: FitBounds) -> Limit:
    summary = summaries.summary_of(result, bounds.summary)
    chosen = result.preemption.chosen
    return Limit(
        kind="unschedulable" if result.outcome == "Unschedulable" else "error",
        text=result.message,
        nodes=dict(sorted(result.reasons.items(), key=lambda item: (-item[1], item[0]))),
        causes=tuple(msgspec.convert(summary.get("causes", ()), tuple[DeviceCause, ...])),
        victims=() if chosen is None else tuple("/".join(one.place) for one in chosen.victims),
    )
