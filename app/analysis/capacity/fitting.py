"""The number of further copies of a pod with its claims that are placed, one after another.

Each copy is created on the hypothetical cluster by the rules of every write, so that admission and
quotas refuse what they would refuse. Its claims are created like those of the claim controller.
Then it gets one attempt of the scheduler, on what earlier copies have left. Differences from a live
cluster: only the copies arrive, no pod is evicted for them, and pods that already wait get nothing.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from copy import deepcopy
from dataclasses import dataclass, replace
from itertools import count as numbers

import msgspec

from app.analysis import edits
from app.analysis.blast import prospects
from app.analysis.blast.world import Frozen, World
from app.analysis.capacity import ceilings
from app.analysis.capacity.answers import (
    DeviceCause,
    Fit,
    FitTogether,
    Limit,
    NodeCount,
    SubjectCount,
    UnusablePools,
)
from app.analysis.capacity.subjects import NAME, CapacitySubject, Words
from app.analysis.edits import Apply
from app.domain.allocation.reasons.summary import SummaryBounds
from app.domain.controllers import pods
from app.domain.controllers.claims import pod_sync
from app.domain.controllers.claims.pod_sync import PodWrite, SyncFailure
from app.domain.controllers.resources import claim_key, pod_key
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
from app.domain.values.fields import core, dra, meta
from app.domain.values.json_tree import JsonObject

MANAGER = "redra-fit"
_OPTIONS = WriteOptions(field_manager=MANAGER, field_validation=FieldValidation.STRICT)


@dataclass(frozen=True, slots=True, kw_only=True)
class FitBounds:
    """The bounds of one answer.

    `copies_max` copies of a subject are tried, `subjects_max` subjects, and `attempts_max` copies
    of all subjects together. `puts_max` objects may accompany them. The causes of a refusal are
    counted within `summary`.
    """

    copies_max: int = 1_000
    subjects_max: int = 50
    attempts_max: int = 5_000
    puts_max: int = 1_000
    summary: SummaryBounds = SummaryBounds()


GoesOn = Callable[[], bool]
"""Whether the caller still waits for the answer. It is called before each copy and each put."""


def _always() -> bool:
    return True


def fit_all(
    frozen: Frozen,
    wanted: Sequence[CapacitySubject],
    bounds: FitBounds = FitBounds(),
    goes_on: GoesOn = _always,
) -> tuple[Fit, ...]:
    """Finds how many copies of each subject fit; leaves subjects out when a bound is reached.

    A refused subject does not keep the others from being tried. Raises InputError when an
    accompanying object is refused, where no scheduler runs, and when the caller no longer waits.
    """
    question = _Question(frozen, bounds, goes_on)
    fits: list[Fit] = []
    for subject in wanted[: bounds.subjects_max]:
        if question.is_spent:
            break
        state = question.state_for(subject)
        try:
            fits.append(question.fit(state, subject))
        except (Rejected, InputError) as refusal:
            _check_goes_on(goes_on)
            text = refusal.message if isinstance(refusal, Rejected) else _sentence(refusal)
            limit = Limit(kind="refused", text=text)
            fits.append(Fit(subject=subject.text, count=0, nodes=(), limit=limit))
    return tuple(fits)


def fit(
    frozen: Frozen,
    subject: CapacitySubject,
    bounds: FitBounds = FitBounds(),
    goes_on: GoesOn = _always,
) -> Fit:
    """Finds how many copies fit on the state, and what limits them.

    Raises InputError or Rejected for a subject that the API always refuses, and where no scheduler
    runs.
    """
    question = _Question(frozen, bounds, goes_on)
    return question.fit(question.state_for(subject), subject)


def fit_together(
    frozen: Frozen,
    wanted: Sequence[CapacitySubject],
    bounds: FitBounds = FitBounds(),
    goes_on: GoesOn = _always,
) -> FitTogether | None:
    """Finds how many copies fit at once if one of each subject is placed in turn.

    None for fewer than two subjects, and for more than the bounds allow. Raises InputError when an
    accompanying object is refused, where no scheduler runs, and when the caller no longer waits.
    """
    if not 1 < len(wanted) <= bounds.subjects_max:
        return None
    return _Question(frozen, bounds, goes_on).together(wanted)


class _Question:
    """The shared parts of one question: the accompanying objects, and the bounds."""

    def __init__(self, frozen: Frozen, bounds: FitBounds, goes_on: GoesOn) -> None:
        if frozen.scheduling is None:
            raise InputError("no scheduler runs in this history: nothing can be placed")
        if frozen.rules is None:
            raise InputError("this history has no rules: nothing can be created")
        self._rules = frozen.scheduling
        self._frozen = self._state = frozen
        self._beside: tuple[Apply, ...] = ()
        self._bounds = bounds
        self._goes_on = goes_on
        self._attempts = 0

    @property
    def is_spent(self) -> bool:
        """Whether no further copy may be tried."""
        return self._attempts >= self._bounds.attempts_max

    def state_for(self, subject: CapacitySubject) -> Frozen:
        """The state with the subject's accompanying objects, which are put there once."""
        beside, most = subject.beside, self._bounds.puts_max
        if beside is self._beside or not beside:
            return self._state if beside else self._frozen
        if len(beside) > most:
            raise InputError(
                f"{len(beside)} objects beside what is to fit are more than {most}",
                cure="leave out what it does not name, or raise REDRA_FIT_PUTS_MAX",
            )
        world = World(self._frozen)
        for put in beside:
            _check_goes_on(self._goes_on)
            _make_namespace(world, meta.namespace(put.tree))
            _put(world, put)
        self._beside, self._state = beside, world.frozen()
        return self._state

    def fit(self, state: Frozen, subject: CapacitySubject) -> Fit:
        """Finds how many copies fit on the state. Raises InputError, Rejected."""
        if subject.problem is not None:
            raise subject.problem
        world, bounds = World(state), self._bounds
        _make_namespace(world, subject.namespace)
        for put in subject.puts:
            _put(world, put, subject.words)
        at_most = ceilings.of(world, subject.pod)
        nodes: Counter[str] = Counter()
        names = _free_names(world, subject)
        with _Placing(world, self._rules) as placing:
            limit = None
            while limit is None:
                _check_goes_on(self._goes_on)
                limit = self._bound(sum(nodes.values()))
                if limit is None:
                    self._attempts += 1
                    limit = placing.place(_copy(subject.pod, next(names)), nodes, bounds)
        return Fit(
            subject=subject.text,
            count=sum(nodes.values()),
            nodes=_counted(nodes),
            limit=limit,
            at_most=at_most,
        )

    def together(self, wanted: Sequence[CapacitySubject]) -> FitTogether:
        """Finds how many copies fit at once. Raises InputError."""
        world = World(self.state_for(wanted[0]))
        counts = [0] * len(wanted)
        nodes: Counter[str] = Counter()
        is_least = False
        with _Placing(world, self._rules) as placing:
            left = [number for number, one in enumerate(wanted) if one.problem is None]
            while left:
                _check_goes_on(self._goes_on)
                number = left.pop(0)
                if self._bound(counts[number]) is not None:
                    is_least = True
                    continue
                self._attempts += 1
                if self._is_placed(placing, wanted[number], nodes):
                    counts[number] += 1
                    left.append(number)
        return FitTogether(
            count=sum(counts),
            subjects=tuple(
                SubjectCount(subject=one.text, count=count)
                for one, count in zip(wanted, counts, strict=True)
            ),
            nodes=_counted(nodes),
            is_least=is_least,
        )

    def _is_placed(
        self, placing: "_Placing", subject: CapacitySubject, nodes: Counter[str]
    ) -> bool:
        """Places a further copy; of one that is not placed, nothing stays."""
        world = placing.world
        pod = _copy(subject.pod, next(_free_names(world, subject)))
        key = pod_key(subject.namespace, pod["metadata"]["name"])
        try:
            _make_namespace(world, subject.namespace)
            for each in subject.puts:
                _put(world, each, subject.words)
            is_placed = placing.place(pod, nodes, self._bounds) is None
        except (Rejected, InputError):
            _check_goes_on(self._goes_on)
            is_placed = False
        # The generated templates of all subjects of a namespace have one name.
        template = ObjectKey(*api_resources.RESOURCE_CLAIM_TEMPLATES, subject.namespace, NAME)
        gone = [template] if subject.puts else []
        gone += [] if is_placed else _made_for(world, key)
        for stale in gone:
            if world.objects.get(stale) is not None:
                world.remove(stale)
        return is_placed

    def _bound(self, copies: int) -> Limit | None:
        """The bound reached after this number of copies of a subject, if any."""
        most, of_all = self._bounds.copies_max, self._bounds.attempts_max
        if copies >= most:
            text = f"no more than {most} copies were tried; raise REDRA_FIT_COPIES_MAX for more"
            return Limit(kind="bound", text=text)
        if self.is_spent:
            text = (
                f"no more than {of_all} copies of all that was named were tried; name less, or "
                "raise REDRA_FIT_ATTEMPTS_MAX for more"
            )
            return Limit(kind="bound", text=text)
        return None


def _counted(nodes: Counter[str]) -> tuple[NodeCount, ...]:
    return tuple(NodeCount(node=name, count=nodes[name]) for name in sorted(nodes))


def _made_for(world: World, key: ObjectKey) -> list[ObjectKey]:
    """The pod and the claims that were made for it."""
    tree = world.objects.get(key)
    if tree is None:
        return []
    facts = pods.facts(tree)
    named = [named.name for named in pods.named_claims(facts)]
    claims = [claim_key(key.namespace, name) for name in filter(None, named)]
    owned = [
        claim
        for claim in claims
        if (owner := meta.controller(world.objects.get(claim) or {})) and owner.uid == facts.uid
    ]
    return [key, *owned]


def _check_goes_on(goes_on: GoesOn) -> None:
    if not goes_on():
        raise InputError("nobody waits for the answer any more")


def _sentence(problem: InputError) -> str:
    return f"{problem.problem}; {problem.cure}" if problem.cure else problem.problem


def _free_names(world: World, subject: CapacitySubject) -> Iterator[str]:
    """Names for copies that no pod has; pods of a running StatefulSet have similar names."""
    base = subject.pod["metadata"]["name"]
    for number in numbers():
        name = f"{base}-{number}"
        if world.objects.get(pod_key(subject.namespace, name)) is None:
            yield name


def _make_namespace(world: World, name: str) -> None:
    """Creates a namespace that every cluster has, or any if the recording has no namespaces."""
    key = ObjectKey(*api_resources.NAMESPACES, "", name)
    if not name:
        return
    is_known = name not in first_objects.NAMESPACES and any(
        world.objects.keys(*api_resources.NAMESPACES)
    )
    if is_known or world.objects.get(key) is not None:
        return
    tree: JsonObject = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    world.apply(CreateObject(key=key, version="v1", tree=tree, options=_OPTIONS), "create")


def _put(world: World, put: Apply, words: Words = ()) -> None:
    """Puts an object; the error for one that was read at a place names that place.

    `words` maps words of the object that is put to those of the object that the user wrote.
    """
    try:
        (command,) = edits.commands_of((put,), world.objects, world.profile, manager=MANAGER)
        world.apply(command, "apply")
    except InputError as problem:
        text, cure = _reworded(problem.problem, words), _reworded(problem.cure, words)
        raise InputError(text, place=problem.place, cure=cure) from problem
    except Rejected as problem:
        if not put.place:
            raise
        raise InputError(_reworded(problem.message, words), place=put.place) from problem


def _reworded(text: str, words: Words) -> str:
    for ours, theirs in words:
        text = text.replace(ours, theirs)
    return text


def _copy(pod: JsonObject, name: str) -> JsonObject:
    tree = deepcopy(pod)
    tree["metadata"]["name"] = name
    return tree


class _Placing:
    """The copies placed so far, which later ones see. On exit the state is as it was."""

    def __init__(self, world: World, rules: SchedulerRules) -> None:
        self.world = world
        self._rules = replace(rules, summary=None)
        self._nodes, devices = prospects.survey(world.objects, rules.profiles)
        self._assumed = Assumptions(self._nodes, devices)
        self._verdicts = Verdicts()
        self._start = 0
        self._reserved = Counter[ObjectKey]()
        self._stack = ExitStack()

    def __enter__(self) -> "_Placing":
        # Assumptions stay in force: each attempt adds to those of earlier attempts.
        self._stack.enter_context(self._assumed.staying())
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def place(self, pod: JsonObject, nodes: Counter[str], bounds: FitBounds) -> Limit | None:
        """Creates a copy and places it; None when it gets a node, else its limit."""
        world = self.world
        try:
            tree = self._create(pod)
        except Forbidden as refusal:
            return Limit(kind="refused", text=refusal.message)
        spec = pod_spec.read(tree)
        if not pod_spec.is_ours(tree, self._rules.profiles):
            name = core.scheduler_name(tree)
            return Limit(kind="left", text=f"it is for another scheduler, {name}")
        if spec.is_gated:
            text = (
                "it is gated: no scheduler looks for its node before spec.schedulingGates is empty"
            )
            return Limit(kind="left", text=text)
        claims = [
            claim_key(spec.facts.namespace, named.name)
            for named in pods.named_claims(spec.facts)
            if named.name
        ]
        if full := next(filter(self._is_full, claims), None):
            # Parity: controllers.md C14: the filters pass such a pod, and binding fails each time.
            text = f"claim {full.namespace}/{full.name} is reserved for {pods.RESERVED_MAX} "
            text += "consumers, and a claim cannot have more: binding fails each time"
            return Limit(kind="error", text=text)
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
        self._reserved.update(claims)
        return None

    def _is_full(self, claim: ObjectKey) -> bool:
        """Whether the claim has as many consumers as it can have, with the copies so far."""
        consumers = dra.consumers(self.world.objects.get(claim) or {})
        return len(consumers) + self._reserved[claim] >= pods.RESERVED_MAX

    def _create(self, pod: JsonObject) -> JsonObject:
        """The pod as stored, with claims created from templates. Raises Rejected, InputError."""
        world = self.world
        namespace, name = pod["metadata"]["namespace"], pod["metadata"]["name"]
        key = pod_key(namespace, name)
        world.apply(CreateObject(key=key, version="v1", tree=pod, options=_OPTIONS), "create")
        for _ in self._claims(key):
            pass
        tree = world.objects.get(key)
        assert tree is not None, "it was created just now"
        return tree

    def _claims(self, key: ObjectKey) -> Iterator[None]:
        """Does the claim controller's work for a pod, write by write."""
        world, gates, quirks = self.world, self._rules.gates, self._rules.quirks
        while True:
            tree = world.objects.get(key)
            assert tree is not None, "nobody deletes it"
            match pod_sync.next_step(world.objects, pods.facts(tree), gates, quirks):
                case PodWrite(command=command):
                    world.apply(command, "create")
                case SyncFailure(text=text):
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
        causes=msgspec.convert(summary.get("causes", ()), tuple[DeviceCause, ...]),
        pools=msgspec.convert(summary.get("pools", ()), tuple[UnusablePools, ...]),
        victims=() if chosen is None else tuple("/".join(one.place) for one in chosen.victims),
    )
