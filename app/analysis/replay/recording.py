"""The parts of a recording: inputs from outside, acts to decide again, and when each was seen."""

from collections import Counter
from collections.abc import Mapping, Set
from dataclasses import dataclass, replace

from app.analysis.recordings.recorded_gates import ShownGates
from app.analysis.recordings.releases import ShownReleases
from app.analysis.replay.acts import (
    Act,
    DecidedAttempt,
    Observations,
    RefusedRequest,
    decided_attempts,
)
from app.analysis.replay.authors import (
    CLAIMS,
    COLLECTOR,
    EVICTION,
    SCHEDULER,
    UNNAMED,
    Acting,
    Authors,
)
from app.analysis.replay.beginning import Beginning, under_way
from app.analysis.replay.facts import consumers, subject_of
from app.analysis.replay.inputs import Input, is_terminating, note_reached
from app.analysis.replay.instants import Undated
from app.analysis.replay.pace import RecordedPace
from app.analysis.replay.readiness import bounded_starts
from app.analysis.replay.traces import Trace, is_event_object
from app.analysis.replay.unsure.condition_times import ConditionTimes
from app.analysis.replay.unsure.contradictory import Contradictory
from app.analysis.replay.unsure.lacks import Lacks
from app.analysis.replay.unsure.overuse import OveruseAudit
from app.analysis.replay.writers import (
    Writer,
    Writers,
    is_by_anyone_alike,
    is_first_of_removal,
    short_name,
)
from app.analysis.verify.taint_audit import ForbiddenPlacement, TaintAudit
from app.analysis.views import LiveViews
from app.domain.controllers.nodes import readiness
from app.domain.log import Event, EventType, ObjectKey, doubts
from app.domain.log.records import BASELINE_VERB, Loss
from app.domain.objects import first_objects
from app.domain.objects import registry as kinds
from app.domain.objects.profile import Profile
from app.domain.objects.schema.structural import Schemas
from app.domain.values import api_resources, json_tree
from app.domain.values.fields import core, meta
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import Instant

WITHOUT_EFFECT = "refused or without effect"
"""The name under which requests without a write are counted: there is nothing to compare."""

SYSTEM_PREFIX = "system:"
"""The prefix of the names of a cluster's own users."""

_OBSERVED_SINCE = 35
"""The minor release from which on conditions of pods always have an observed generation."""

_KIND_NAMES = {"namespaces": "namespace", "resourceclaimtemplates": "template of claims"}
"""The objects that others imply, as they are called in counts."""

_UNREAD = frozenset(("leases", "secrets", "configmaps", "serviceaccounts"))
"""Kinds on which no decision here depends; logs often lack their bodies."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportTime:
    """The time at which the scheduler wrote an Event object.

    `is_after_marking` is whether an Event had reported the mark for deletion of its pod by then.
    """

    at: Instant
    is_after_marking: bool


class Recording:
    """A sorted recording: inputs, names, trace, and what cannot be compared.

    `untraced` are the uids of a recording that is put together without traces.
    """

    def __init__(
        self,
        writers: Writers,
        views: LiveViews,
        acting: Mapping[str, Acting],
        lacks: Lacks,
        schemas: Schemas,
    ) -> None:
        self._writers = writers
        self.lacks = lacks
        self._authors = Authors(acting)
        self._views = views
        self._audit = TaintAudit(views)
        self.overuse = OveruseAudit(views, lacks)
        self._contradictory = Contradictory()
        self._condition_times = ConditionTimes()
        self.shown = ShownGates()
        self._releases = ShownReleases()
        self._objects: dict[ObjectKey, JsonObject] = {}
        self._written: dict[str, Instant] = {}
        self.inputs: list[Input] = []
        self.decided: list[Input] = []
        self.made: list[Event] = []
        self.untraced: frozenset[str] = frozenset()
        self.acts: list[Act] = []
        self.removed: dict[str, Instant] = {}
        self.undated = Undated()
        self.trace, self.later = Trace(schemas), Trace(schemas)
        self.trace.removed_within, self.trace.nodes_within = self.undated.within, self.undated.nodes
        self.later.owner_of = self.trace.owner_of
        self.counts: Counter[str] = Counter()
        self.not_comparable: Counter[str] = Counter()
        self.reached: dict[tuple[str, str], Instant] = {}
        self._changed: dict[str, Instant] = {}
        self._forbidden: dict[str, Instant | None] = {}
        self.starts: dict[str, Instant] = {}
        self._at_work: set[str] = set()
        self._ending: set[str] = set()
        self.last = Instant(0)
        self.reported: dict[tuple[str, str], list[ReportTime]] = {}
        self._marked: set[str] = set()
        self.repeated: dict[tuple[str, int], list[Instant]] = {}
        self._reports: dict[str, tuple[str, int]] = {}
        self._reports_of: Counter[str] = Counter()
        self.evicted: dict[str, Instant] = {}
        self.returned: dict[ObjectKey, Instant] = {}
        self.users: dict[str, set[str]] = {}
        self.refusals: list[RefusedRequest] = []
        self.attempted: dict[str, list[DecidedAttempt]] = {}
        self.ranks: dict[str, tuple[str, int]] = {}
        self.written_by: dict[str, Counter[str]] = {}
        self.observations = Observations()
        self._number, self.skew = 0, 0
        self._has_begun = self.is_over = False
        self.node_reasons: dict[str, list[Instant]] = {}
        self._beginning: Beginning | None = None
        self._reports_made: list[Input] = []
        self.busy_until: dict[str, Instant] = {}
        self.stays_decoded = False

    def release(self, event: Event) -> None:
        """Drops the decoded tree of a recorded event, unless runs share the trees."""
        if not self.stays_decoded:
            event.forget_tree()

    def begin(self, beginning: Beginning) -> None:
        """Starts from the objects of a moment; must be called before the first event is taken."""
        self._beginning = beginning
        self._views.load_objects(beginning.state)
        self.last = beginning.head.time
        for event in beginning.objects:
            self._objects[event.key] = event.object
            if is_first_of_removal(event):
                self._ending.add(event.uid)
            author = self._authors.of(event, None)
            for name in self._writers.controllers_of(author):
                self._at_work.add(name)
            self.trace.begin(event)
            note_reached(self.reached, event, self.last)

    def take(self, event: Event, known: Instant) -> None:
        """Sorts and audits one event that others could see from instant `known` on.

        Once `is_over` is set, the event is used only for the pace, the names and the `later` trace.
        """
        self.observations.add(event, known)
        if not self.is_over:
            self.lacks.note(event, known)
            if is_event_object(event.key) and Loss.CONTRADICTED in doubts.of_event(event):
                self.not_comparable["an Event that sources show differently"] += 1
            self.shown.note(event, self._objects.get(event.key))
            before = len(self._audit.found)
            self._audit.before(event)
            if len(self._audit.found) > before:
                self._forbidden[event.uid] = self._rule_of(self._audit.found[-1][1])
            self._views.fold(event)
        old, acts = self._objects.get(event.key), len(self.acts)
        self._sort(event, known)
        if event.is_about_object and not self.is_over:
            author = self.acts[-1].user if len(self.acts) > acts else ""
            self.overuse.after(event, old, known, is_of_scheduler=author == SCHEDULER)

    def take_implied(self, event: Event, known: Instant) -> None:
        """Takes a write of an object that no line shows, like a write from outside.

        The namespaces that each server makes itself are certain. The labels and the end of other
        namespaces are not.
        """
        is_end = is_terminating(event.object)
        self.lacks.note_implied(event.key, *((known,) if is_end else ()))
        is_first = event.type is EventType.OBJECT_CREATED
        if is_first and event.key.name not in first_objects.NAMESPACES:
            self.not_comparable[f"a {_KIND_NAMES[event.key.resource]} that no line shows"] += 1
        self._sort(event, known)

    @property
    def imposed(self) -> frozenset[tuple[str, str]]:
        """The writes of the collector that are taken as recorded: author and uid of the object.

        They are about objects with an owner of an unrecorded kind: whether it exists is unknown.
        """
        return frozenset((COLLECTOR, uid) for uid in self.lacks.omissions.ownerless)

    def note_unseen_writers(self, writers: Set[str], absent: Set[str] = frozenset()) -> None:
        """Counts what is not compared because its writer or the kind of its owner has no line.

        Those that were `absent` were not at work.
        """
        for writer in sorted(absent):
            self.not_comparable[f"all that {writer} does, which was not at work"] += 1
        for writer in sorted(writers & self.lacks.omissions.controllers):
            self.not_comparable[f"all that {writer} does, of which no line is recorded"] += 1
        if ownerless := len(self.lacks.omissions.ownerless):
            reason = "whether the owner of an object exists, which no line shows with its uid"
            self.not_comparable[reason] += ownerless

    def finish(self) -> None:
        """Completes the recording; call it after the last event."""
        self.starts = bounded_starts(self.starts, self.acts)
        self.lacks.conclude()
        self.skew = self.trace.skew = self.lacks.odd_times.skew
        self.not_comparable.update(self._condition_times.odd())
        self.not_comparable.update(self.overuse.unsure)
        if self._beginning is not None:
            self._take_under_way(self._beginning)

    def _take_under_way(self, beginning: Beginning) -> None:
        """Takes what was under way at the beginning as recorded, like writes from outside.

        No pod is tried again before the condition of its last attempt is written: `busy_until`.
        """
        late = under_way(self.acts, beginning, self.skew, self.ranks)
        self.acts = [act for act in self.acts if act.event.revision not in late]
        self.made = [event for event in self.made if event.revision not in late]
        taken_over = [
            replace(each, is_under_way=True)
            for each in (*self.decided, *self._reports_made)
            if each.event.revision in late
        ]
        self.decided = [each for each in self.decided if each.event.revision not in late]
        self.inputs = sorted((*self.inputs, *taken_over), key=lambda each: each.number)
        for each in taken_over:
            if not is_event_object(each.event.key):
                self.busy_until[each.event.uid] = Instant(each.time + 1)

    @property
    def overused(self) -> Mapping[str, str]:
        """The uids of claims whose allocation no order of events allows, and why."""
        return self.overuse.overused()

    @property
    def contradictory(self) -> Mapping[ObjectKey, str]:
        """The objects that writes are about whose own content is impossible, and why."""
        return self._contradictory.problems()

    @property
    def minors_shown(self) -> Set[int]:
        """The minor releases that the recorded controllers name, all of them."""
        return self._releases.minors

    def knows(self, uid: str) -> bool:
        """Whether the recording has an object with this uid."""
        return uid in self.trace.keys or uid in self.later.keys or uid in self.untraced

    def observes_pods(self, profile: Profile) -> bool:
        """Whether conditions of pods in the recorded cluster have an observed generation.

        The gate PodObservedGenerationTracking is on by default in 1.34, and always after it.
        """
        return profile.minor >= _OBSERVED_SINCE or self.trace.shows_generations()

    def violations(self, pace: RecordedPace | None) -> dict[str, bool]:
        """The uids of claims allocated despite a taint, each with whether an existing rule set it.

        The rule must have existed at the attempt. Its writes may have come much later.
        """
        violating: dict[str, bool] = {}
        for event, _ in self._audit.found:
            since = self._forbidden[event.uid]
            pods = consumers(event.object)
            began = [pace.began_before(pod) for pod in pods] if pace is not None else []
            tried = min((each for each in began if each is not None), default=event.stamp.time)
            violating[event.uid] = since is not None and since < tried
        return violating

    def _rule_of(self, violation: ForbiddenPlacement) -> Instant | None:
        """The instant since which the violated rule existed; None if the taint is not of a rule."""
        rules = [key.name for key in violation.objects if key.resource == "devicetaintrules"]
        return max((self._changed.get(name, Instant(0)) for name in rules), default=None)

    def _sort(self, event: Event, known: Instant) -> None:
        if not self.is_over:
            self.last = Instant(max(self.last, known))
        if not event.is_about_object:
            self._contradictory.note_gap(event)
            self._take_fact(event)
            return
        before = self._objects.get(event.key)
        if before is not None and meta.uid(before) != event.uid:
            before = None
        sort, author = self._writer_of(event, before)
        if not self.is_over:
            self.counts[sort.value] += 1
        if sort is Writer.ECHO:
            return
        self.undated.note(event, known)
        if event.type is EventType.OBJECT_DELETED:
            self._objects.pop(event.key, None)
            self.removed[event.uid] = known
        else:
            self._objects[event.key] = event.object
        note_reached(self.reached, event, known)
        if event.key[:2] == api_resources.NODES:
            self._note_node(event, before, known)
        if event.key.resource == "pods":
            of_queue = core.scheduler_name(event.object), core.priority(event.object) or 0
            self.ranks[event.uid] = of_queue
        if sort is not Writer.DECIDED and not self.is_over:
            self._note_placed(event, before, author)
        if event.key.resource == "devicetaintrules" and sort is Writer.OUTSIDE:
            self._changed[event.key.name] = known
        is_decided = sort is Writer.DECIDED
        self._note_user(event, author if is_decided else "")
        trace = self.later if self.is_over else self.trace
        is_sure = self._authors.is_sure(event)
        for judge in () if self.is_over else (self._contradictory, self._condition_times):
            judge.note(event, author if is_decided and is_sure else "")
        is_by_anyone = sort is Writer.OUTSIDE and is_by_anyone_alike(event, before, self._objects)
        writer = short_name(author) if is_sure and is_decided else ""
        trace.add(event, before, writer if is_decided or is_by_anyone else None, known)
        source = Input(
            event=event,
            before=before,
            time=known,
            author=author,
            number=self._number,
            subjects=frozenset((event.uid, *self.trace.pods_of(event, before))),
            traced_as="" if is_by_anyone else None,
        )
        self._number += 1
        if is_decided:
            self._note_act(source, is_guessed=not is_sure)
        elif not is_event_object(event.key) and not self.is_over:
            self.inputs.append(source)
        self._written[event.uid] = known

    def _note_node(self, event: Event, before: JsonObject | None, known: Instant) -> None:
        """Notes when a node began, ended, or got other reasons for its taints and labels."""
        is_end = event.type is EventType.OBJECT_DELETED
        reasons = (readiness.reasons_of(tree) for tree in (before or {}, event.object))
        if before is None or is_end or len(set(reasons)) > 1:
            self.node_reasons.setdefault(event.key.name, []).append(known)

    def _note_act(self, source: Input, *, is_guessed: bool) -> None:
        """Notes a write of a controller that decides again."""
        self._releases.note(source.event)
        event, before, known, author = source.event, source.before, source.time, source.author
        for name in self._writers.controllers_of(author):
            if name not in self._at_work:
                self.starts.setdefault(name, known)
        self.made.append(event)
        if author == SCHEDULER and event.key.resource == "pods":
            self._note_shown(source)
        self.acts.append(
            Act(
                event=event,
                before=before,
                known=known,
                user=author,
                is_guessed=is_guessed,
                seen=self.observations.last_seen(),
                since=self._written.get(event.uid, Instant(0)),
            )
        )
        if is_event_object(event.key):
            if author == SCHEDULER:
                self._note_report(event, known)
                if self._beginning is not None and not self.is_over:
                    self._reports_made.append(source)
            elif author == EVICTION and _is_marking(event.object):
                self._marked.add(subject_of(event.object))
        elif not self.is_over:
            self.decided.append(source)
            if author == EVICTION and event.key.resource == "pods":
                self.evicted.setdefault(event.uid, known)
            if author == SCHEDULER and consumers(before).keys() - consumers(event.object):
                self.returned[event.key] = known

    def _note_shown(self, attempt: Input) -> None:
        """Notes the act that named the claims of a pod, if an attempt shows that its line is lost.

        The scheduler names none, and cannot try the pod before. They are named as soon as they are
        made. Parity: controllers.md 2.2, 3.2.
        """
        event, before = attempt.event, attempt.before or {}
        if core.resource_claim_statuses(event.object) == core.resource_claim_statuses(before):
            return
        made = (
            Instant(act.known + 1)
            for act in reversed(self.acts)
            if act.user == CLAIMS and meta.controller_uid(act.event.object) == event.uid
        )
        if (known := next(made, None)) is None:
            return  # No line is about the claims of the pod: the controller may be left out.
        known = min(known, attempt.time)
        self.acts.append(
            Act(event=event, before=attempt.before, known=known, user=CLAIMS, is_guessed=True)
        )

    def _writer_of(self, event: Event, before: JsonObject | None) -> tuple[Writer, str]:
        """The treatment of a write, and its author."""
        author = self._authors.of(event, before)
        sort = self._writers.of(event, before, author)
        if self._writers.is_foreign(event, before):
            sort, author = Writer.OUTSIDE, event.stamp.actor.user
        self._has_begun |= event.stamp.verb != BASELINE_VERB
        if not self._has_begun:
            # No act is known yet: the existing objects are the common initial state.
            return Writer.OUTSIDE, UNNAMED
        if event.type is EventType.OBJECT_DELETED and event.uid in self._ending:
            # The request was made before the beginning, so nobody makes it again.
            sort = Writer.OUTSIDE
        return sort, author

    def _note_user(self, event: Event, author: str) -> None:
        """Records the user of a write, unless it is the controller `author` or has no name."""
        user = event.stamp.actor.user
        if self.is_over or user in ("", author, UNNAMED):
            return
        if not user.startswith(SYSTEM_PREFIX) and not is_event_object(event.key):
            self.users.setdefault(event.uid, set()).add(user)
        if author:
            self.written_by.setdefault(short_name(author), Counter())[user] += 1

    def _note_placed(self, event: Event, before: JsonObject | None, author: str) -> None:
        """Counts allocations and bindings by an outsider or an unknown author."""
        who = "an unknown author" if author == UNNAMED else author
        who += self._writers.apart(event, before)
        match event.key.resource:
            case "resourceclaims" if _is_given(event.object, before, "status", "allocation"):
                what = f"an allocation by {who}"
            case "pods" if _is_given(event.object, before, "spec", "nodeName"):
                what = f"a binding by {who}"
            case _:
                return
        if before is not None:
            self.not_comparable[f"{what}, taken as recorded"] += 1
        elif event.stamp.verb == BASELINE_VERB:
            self.not_comparable[f"{what} before the object was first seen"] += 1

    def _note_report(self, event: Event, known: Instant) -> None:
        if event.type is EventType.OBJECT_CREATED:
            uid = subject_of(event.object)
            place = (uid, json_tree.text(event.object, "reason"))
            report = ReportTime(at=known, is_after_marking=uid in self._marked)
            self.reported.setdefault(place, []).append(report)
            self._reports[event.uid] = (uid, self._reports_of[uid])
            self._reports_of[uid] += 1
        elif event.type is EventType.OBJECT_UPDATED and event.uid in self._reports:
            self.repeated.setdefault(self._reports[event.uid], []).append(known)

    def _take_fact(self, event: Event) -> None:
        if event.type is EventType.DECISION_RECORDED:
            at = self.observations.last_seen()
            for uid, attempt in () if at is None else decided_attempts(event, at):
                self.attempted.setdefault(uid, []).append(attempt)
        elif self.is_over:
            return
        elif event.type is EventType.GAP_OBSERVED:
            if _is_read(event.key):
                self.not_comparable["the recording has a gap"] += 1
        elif event.type is EventType.REQUEST_OBSERVED:
            self.counts[WITHOUT_EFFECT] += 1
            self.refusals.append(RefusedRequest.of(event))


def _is_given(after: JsonObject, before: JsonObject | None, *path: str) -> bool:
    """Whether a write set a value that the object did not have before."""
    return bool(json_tree.get(after, *path)) and not json_tree.get(before or {}, *path)


def _is_read(key: ObjectKey) -> bool:
    """Whether a gap matters: it covers a whole stream, or a kind that controllers read here."""
    kind = kinds.find(key.group, key.resource)
    return not key.resource or (kind is not None and key.resource not in _UNREAD)


def _is_marking(report: JsonObject) -> bool:
    """Whether an Event object of the device taint manager says that it marks a pod."""
    return not core.event_object(report).text.startswith("Cancelling")
