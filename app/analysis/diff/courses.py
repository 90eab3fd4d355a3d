"""The course of each pod in one history: attempts, placement, eviction, end."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from app.analysis.diff.sides import Side
from app.analysis.replay.writers import CONTROLLER_PREFIX
from app.domain.controllers.scheduling.binding_cycle import placements
from app.domain.log import Event, EventType, ObjectKey, Revision
from app.domain.objects.kinds import extended_resources
from app.domain.values import api_resources, condition_types, counts, well_known
from app.domain.values.fields import core, decision_body, dra, meta
from app.domain.values.fields.meta import Owner
from app.domain.values.json_tree import JsonView
from app.domain.values.timestamps import Instant

_SUCCESSES = frozenset((placements.ASSUMED, placements.RESERVED, "Scheduled", "WaitingForBinding"))
"""Outcomes of the scheduler's decisions that give a pod its node."""

_SKIPPED = "Skipped"

BY_PREEMPTION = "PreemptionByScheduler"
"""The reason of an eviction for a pod of a higher priority."""


class Moment(NamedTuple):
    """An event: its revision, and its instant in the time of the comparison."""

    revision: Revision
    time: Instant


class PodDevice(NamedTuple):
    """A device of a pod, by the pod's entry or the name of a shared claim, and by request."""

    claim: str
    request: str
    device: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A failed attempt: its time, the revision as of which it was made, and its message."""

    at: Moment
    decided: Revision
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """A binding: its time, the revision as of which it was decided, the node, and the devices.

    `start` is the position among the nodes at which the scheduler began; None if unknown.
    """

    at: Moment
    decided: Revision
    node: str
    devices: tuple[PodDevice, ...] = ()
    start: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Nomination:
    """The nominated node of a pod, and the write that may be the first one of its placement.

    A scheduler nominates the node before it writes the claims. The revision is zero where the pod
    is decided again after the write: it was refused then or later, or the node was exchanged.
    """

    node: str
    at: Revision = Revision(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Disruption:
    """An eviction: its time, and the reason and message of its condition."""

    at: Moment
    reason: str
    message: str


@dataclass(slots=True, kw_only=True)
class Course:
    """The course of one pod. `ordinal` counts the earlier pods of the same name.

    `deleted_by` is the user who asked for its deletion first, or was seen to delete it. `reserved`
    are the moments at which its claims were reserved before it came to a node.
    """

    key: ObjectKey
    uid: str
    ordinal: int
    owner: Owner | None
    base: str
    created: Moment
    refusals: list[Refusal] = field(default_factory=list)
    reserved: list[Moment] = field(default_factory=list)
    placed: Placement | None = None
    evicted: Disruption | None = None
    ended: Moment | None = None
    deleted_by: str = ""
    phase: str = ""

    @property
    def name(self) -> str:
        """`namespace/name`, with the ordinal where the name was used before."""
        place = f"{self.key.namespace}/{self.key.name}"
        if not self.ordinal:
            return place
        return f"{place} (the {counts.ordinal(self.ordinal + 1)} of that name)"

    @property
    def is_ended_by_owner(self) -> bool:
        """Whether its controller deleted it, such as a ReplicaSet with more pods than it wants."""
        writer = self.deleted_by.removeprefix(CONTROLLER_PREFIX).replace("-", "")
        return self.owner is not None and writer == f"{self.owner.kind.lower()}controller"

    @property
    def outcome(self) -> str:
        """The state of the pod at the end."""
        if self.evicted is not None:
            return "evicted"
        if self.ended is not None:
            return "gone" if self.placed is None else "ended"
        return "waits" if self.placed is None else "runs"


class Courses:
    """The pods of one side by uid, with the claims that they hold."""

    def __init__(self, side: Side) -> None:
        self._side = side
        self.by_uid: dict[str, Course] = {}
        self._ordinals: dict[ObjectKey, int] = defaultdict(int)
        self._decided: set[str] = set()
        self._successes: dict[str, Event] = {}
        self._claims: dict[str, dict[ObjectKey, JsonView]] = defaultdict(dict)
        self._users: dict[ObjectKey, frozenset[str]] = {}
        self._reserved: dict[tuple[ObjectKey, str], Revision] = {}
        self._made: dict[str, Revision] = {}
        self._refused: dict[str, str] = {}
        self._written: dict[str, int] = {}
        self._nominated: dict[str, Nomination] = {}
        self._preempted: dict[str, list[Course]] = defaultdict(list)
        self.preemptors: dict[tuple[str, str], tuple[str, str]] = {}
        starts = sorted(side.start, key=lambda event: event.key.resource == "pods")
        for event in starts:
            self.fold(event)
        for event in side.events:
            self.fold(event)

    def all(self) -> Sequence[Course]:
        """All pods, in the order in which they appeared."""
        return list(self.by_uid.values())

    @property
    def shows_decisions(self) -> bool:
        """Whether the side has decisions about pods in its log."""
        return bool(self._decided)

    def fold(self, event: Event) -> None:
        """Applies the next event."""
        if event.type is EventType.DECISION_RECORDED:
            self._take_decision(event)
        elif not event.is_about_object:
            return
        elif event.key.resource == "resourceclaims":
            self._take_claim(event)
        elif (event.key.group, event.key.resource) == api_resources.PODS:
            self._take_pod(event)

    def _moment(self, event: Event) -> Moment:
        return Moment(event.revision, self._side.instant(event.stamp.time))

    def _take_decision(self, event: Event) -> None:
        decision = decision_body.read(event.object)
        if decision.resource != "pods" or decision.controller != "scheduling":
            return
        self._decided.add(decision.inputs.uid)
        summary = decision_body.summary_of(event.object)
        for victim in summary.preemption.victims:
            namespace, _, name = victim.rpartition("/")
            self.preemptors[namespace, name] = decision.place
        uid = decision.inputs.uid
        if decision.outcome in _SUCCESSES:
            # A binding that takes time has several decisions; the first one chose.
            self._successes.setdefault(uid, event)
            return
        self._successes.pop(uid, None)
        course = self.by_uid.get(uid)
        # A pod that is found terminating is not refused: it is no longer scheduled.
        if course is not None and course.placed is None and decision.outcome != _SKIPPED:
            course.refusals.append(
                Refusal(
                    at=self._moment(event),
                    decided=Revision(event.revision - 1),
                    message=summary.message,
                )
            )

    def _take_claim(self, event: Event) -> None:
        key, tree = event.key, event.object
        is_gone = event.type is EventType.OBJECT_DELETED
        if event.type is EventType.OBJECT_CREATED and meta.annotation(
            tree, extended_resources.ANNOTATION
        ):
            # The scheduler makes the claim of a pod's extended resources after its choice.
            self._made |= {owner.uid: event.revision for owner in meta.owners(tree)}
        users = frozenset() if is_gone else frozenset(each.uid for each in dra.consumers(tree))
        for uid in self._users.get(key, frozenset()) - users:
            self._claims[uid].pop(key, None)
        for uid in users:
            self._claims[uid][key] = tree
        for uid in users - self._users.get(key, frozenset()):
            # Another pod may have had the claim allocated long before.
            self._reserved[key, uid] = event.revision
            course = self.by_uid.get(uid)
            if course is not None and course.placed is None:
                course.reserved.append(self._moment(event))
        self._users[key] = users

    def _take_pod(self, event: Event) -> None:
        tree, uid = event.object, event.uid
        course = self.by_uid.get(uid)
        is_new = course is None
        if course is None:
            course = self.by_uid[uid] = Course(
                key=event.key,
                uid=uid,
                ordinal=self._ordinals[event.key],
                owner=meta.controller(tree),
                base=_base(event.key.name, tree),
                created=self._moment(event),
            )
            self._ordinals[event.key] += 1
        if core.node_name(tree) and course.placed is None:
            course.placed = self._placement(event)
        if course.placed is None:
            refusals = len(course.refusals)
            self._take_refusal(course, event)
            is_first = not is_new and len(course.refusals) == refusals
            self._take_nomination(event, may_be_first=is_first)
        disruption = meta.condition(tree, condition_types.DISRUPTION_TARGET)
        if disruption is not None and disruption.status == "True" and course.evicted is None:
            course.evicted = Disruption(
                at=self._moment(event), reason=disruption.reason, message=disruption.message
            )
            if disruption.reason == BY_PREEMPTION:
                self._preempted[core.node_name(tree)].append(course)
        is_gone = event.type is EventType.OBJECT_DELETED
        if is_gone and course.placed is None:
            self._forget_unwritten(course, tree)
        if (is_gone or meta.is_deleting(tree)) and not course.deleted_by:
            course.deleted_by = event.stamp.actor.user
        if (is_gone or core.is_finished(tree)) and course.ended is None:
            course.ended = self._moment(event)
            course.phase = "removed" if not core.is_finished(tree) else meta.phase(tree)

    def _take_refusal(self, course: Course, event: Event) -> None:
        """Adds a refusal that is only in a condition, as in recordings from elsewhere."""
        condition = meta.condition(event.object, condition_types.POD_SCHEDULED)
        if condition is None or condition.status != "False":
            return
        refusal = f"{condition.message} {condition.last_transition_time}"
        if self._refused.get(course.uid) == refusal:
            return
        self._refused[course.uid] = refusal
        if course.uid in self._decided:
            self._written[course.uid] = len(course.refusals)
            return
        course.refusals.append(
            Refusal(
                at=self._moment(event),
                decided=Revision(event.revision - 1),
                message=condition.message,
            )
        )

    def _forget_unwritten(self, course: Course, tree: JsonView) -> None:
        """Leaves out the messages of the last attempts that a deleted pod never got.

        Recordings show messages by the writes of the pod, decisions show them before these.
        """
        condition = meta.condition(tree, condition_types.POD_SCHEDULED)
        message = None if condition is None else condition.message
        kept = self._written.get(course.uid, 0)
        last = course.refusals[kept:] if course.uid in self._decided else []
        course.refusals[len(course.refusals) - len(last) :] = [
            each for each in last if each.message == message
        ]

    def _take_nomination(self, event: Event, *, may_be_first: bool) -> None:
        node = core.nominated_node_name(event.object)
        was = self._nominated.get(event.uid, Nomination(node=""))
        if node != was.node:
            is_first = may_be_first and not was.node
            at = event.revision if is_first else Revision(0)
            self._nominated[event.uid] = Nomination(node=node, at=at)
        elif not may_be_first:
            self._nominated[event.uid] = replace(was, at=Revision(0))

    def _nomination(self, uid: str, node: str) -> Revision:
        """The nomination with which the placement of a pod on a node began; zero if none is known.

        Pre-emption nominates a node, too: the pod is placed when the evicted pods are gone.
        """
        known = self._nominated.get(uid)
        if known is None or known.node != node or known.at <= self._side.common:
            return Revision(0)
        for evicted in self._preempted.get(node, ()):
            if evicted.ended is None or evicted.ended.revision > known.at:
                return Revision(0)
        return known.at

    def _placement(self, event: Event) -> Placement:
        claims = self._claims.get(event.uid, {})
        decision = self._successes.get(event.uid)
        first = min(
            (
                self._reserved[key, event.uid]
                for key in claims
                if self._reserved[key, event.uid] > self._side.common
            ),
            default=event.revision,
        )
        made = self._made.get(event.uid, Revision(0))
        if made > self._side.common:
            first = min(first, made)
        start: int | None = None
        if decision is not None:
            first = min(first, decision.revision)
            start = decision_body.read(decision.object).inputs.start
        elif nominated := self._nomination(event.uid, core.node_name(event.object)):
            first = min(first, nominated)
        return Placement(
            at=self._moment(event),
            decided=Revision(first - 1),
            node=core.node_name(event.object),
            devices=tuple(sorted(_devices_of(claims, event.uid))),
            start=start,
        )


def _devices_of(claims: dict[ObjectKey, JsonView], pod: str) -> Iterator[PodDevice]:
    for key, tree in claims.items():
        owned = any(owner.uid == pod for owner in meta.owners(tree))
        name = meta.annotation(tree, well_known.POD_CLAIM_NAME) if owned else ""
        for result in dra.results(tree):
            yield PodDevice(name or (key.name if not owned else ""), result.request, result.text)


def _base(name: str, tree: JsonView) -> str:
    """The common beginning of generated names; the name itself if it was not generated."""
    drawn = meta.metadata(tree).get("generateName")
    return drawn if isinstance(drawn, str) and drawn else name
