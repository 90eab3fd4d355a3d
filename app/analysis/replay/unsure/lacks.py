"""The lacks of a recording, and the differences that cannot be judged because of them.

A decision that depends on something unrecorded may have another result here, and the cause cannot
be found. Such a difference is not comparable: neither explained nor unexplained. This concerns all
decisions if a kind that they need was never seen, and decisions at a time when the state of some
object was unknown; for a difference about such an object the answer names the lack. A lack
does not affect differences before it, or after the object was known again.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from app.analysis.replay.unsure.dependence import Read
from app.analysis.replay.unsure.last_lines import LastLines
from app.analysis.replay.unsure.odd_times import OddTimes
from app.analysis.replay.unsure.omissions import Omissions
from app.analysis.verify.invariants.violations import IN_FLIGHT
from app.domain.log import CLOCKS, Event, EventType, ObjectKey, doubts
from app.domain.log.doubts import NEVER_SEEN, Doubt
from app.domain.log.looks import LookWatch
from app.domain.log.records import BASELINE_VERB, Loss
from app.domain.log.store_versions import Versions
from app.domain.values import api_resources
from app.domain.values.timestamps import Instant

_ALONE = frozenset(("events", "namespaces"))
"""Kinds on which no decision about other objects depends."""

_NEEDED = (
    api_resources.PODS,
    api_resources.NODES,
    api_resources.DEVICE_CLASSES,
    api_resources.DEVICE_TAINT_RULES,
    api_resources.RESOURCE_CLAIMS,
    api_resources.RESOURCE_CLAIM_TEMPLATES,
    api_resources.RESOURCE_SLICES,
)
"""Kinds that every recorder follows and on which decisions depend."""

_PLACED = (api_resources.PODS, api_resources.RESOURCE_CLAIMS)
_ACTED_UPON = "what controllers did shows another state, and a version of the store has no line"

_FOREVER = Instant(2**62)
_NEVER = Instant(-1)


@dataclass(slots=True)
class _Stretch:
    """The time in which the state of an object or a kind was unknown, and the reason.

    With `is_line`, it is because of one line, which is lost or contradicts others. With
    `is_creation`, the lost line is that of the creation. With `is_of_looks`, only its ends are
    known.
    """

    key: ObjectKey
    uid: str
    why: str
    since: Instant
    until: Instant = _FOREVER
    is_line: bool = False
    is_creation: bool = False
    is_of_looks: bool = False

    def meets(self, first: Instant, last: Instant, until: Instant = _NEVER) -> bool:
        """Whether it overlaps the time between two instants; `until` may make it longer.

        A lost line came after the last recorded one: what was done with that one, it did not cause.
        Nor did a line that contradicts others cause what was done with itself.
        """
        is_begun = self.since < last if self.is_line else self.since <= last
        return is_begun and first <= max(self.until, until)

    @property
    def settled(self) -> Instant:
        """The instant by which all is done that a lost line about its object would have led to."""
        return Instant(self.until + IN_FLIGHT) if self.is_of_lost_line else self.until

    @property
    def is_of_lost_line(self) -> bool:
        """Whether it is because of one line, of whatever write."""
        return self.is_line or self.is_creation


class Lacks:
    """Follows a recording event by event; `recorded` are the doubts of its fidelity report."""

    def __init__(self, recorded: Sequence[Doubt]) -> None:
        self.recorded = recorded
        self.changed_unseen: dict[ObjectKey, Instant] = {}
        # The objects without a recorded end that were written after their last line, some time
        # since an instant.
        self._kinds = ", ".join(each.kind for each in recorded if each.code == NEVER_SEEN)
        self._times = any(each.code == Loss.TIMES_CONTRADICT for each in recorded)
        self.odd_times = OddTimes(is_doubted=self._times)
        self._written: dict[ObjectKey, Instant] = {}
        self._unseen: dict[ObjectKey, _Stretch] = {}
        self._stretches: list[_Stretch] = []
        self._implied: dict[str, Instant] = {}
        self._templates: dict[ObjectKey, list[tuple[Instant, str]]] = defaultdict(list)
        self._renewed: dict[ObjectKey, list[Instant]] = defaultdict(list)
        self._looked: list[_Stretch] = []
        self._looks = LookWatch()
        self._changed = Instant(0)
        lacks_ends = any(each.code == Loss.NO_DELETES and not each.kind for each in recorded)
        self.omissions = Omissions(lacks_ends=lacks_ends)
        self.versions = Versions()
        self.last_lines = LastLines(self.versions)

    def note(self, event: Event, known: Instant) -> None:
        """Processes an event that others could see from instant `known` on."""
        key = event.key
        self.versions.follow(event)
        self.last_lines.note(event, known)
        self.odd_times.note(event, known)
        if self.omissions.note(event, known):
            self._note_unseen(key, event.uid, self._last_line(key, known), _text(()), is_line=True)
        is_gap = event.type is EventType.GAP_OBSERVED
        if key.resource in _ALONE or key == CLOCKS:
            return
        for gap in doubts.gaps_closed(event, self._unseen):
            self._note_whole(gap, known)
        if is_gap and not key.resource and Loss.NO_DELETES in doubts.of_event(event):
            # Any object may have ended since its last write.
            for written, since in self._written.items():
                self._note_unseen(written, "", since, _text((Loss.NO_DELETES,)))
        elif is_gap and not key.resource:
            # Any kind may have changed unseen; a kind is known again when a report names it.
            for kind in _NEEDED:
                self._note_unseen(ObjectKey(*kind, "", ""), "", known, _text(()))
        elif is_gap:
            is_line = doubts.is_undated(event)
            since = self._written.get(key, Instant(0)) if is_line else _sent(event, known)
            self._note_unseen(key, "", since, _text(doubts.of_event(event)), is_line=is_line)
        elif event.is_about_object:
            self._note_object(event, known)

    def note_implied(self, key: ObjectKey, end: Instant = _FOREVER) -> None:
        """Notes an object that no line shows; `end` is when its deletion was requested."""
        if key[:2] == api_resources.NAMESPACES:
            self._implied[key.name] = end

    def conclude(self) -> None:
        """Notes what the recording as a whole shows; call it after the last event."""
        self.odd_times.conclude()
        are_others_lost = self.omissions.lost.has_any
        for line in self.last_lines.lost_lines(are_others_lost=are_others_lost):
            self._note_unseen(line.key, line.uid, line.since, _ACTED_UPON, is_line=True)
            if not (line.keeps_devices or self.last_lines.has_ended(line.uid)):
                self.changed_unseen.setdefault(line.key, line.since)

    def last_written(self, key: ObjectKey) -> Instant:
        """The instant of the last recorded write of an object; before all others without one."""
        return self._written.get(key, _NEVER)

    def _last_line(self, key: ObjectKey, known: Instant) -> Instant:
        """The instant of the last line about an object; without one, that before `known`."""
        return self._written.get(key, Instant(known - 1))

    def _note_unseen(
        self, key: ObjectKey, uid: str, since: Instant, why: str, *, is_line: bool = False
    ) -> None:
        """Notes that the state of an object or a kind is unknown from an instant on."""
        if key not in self._unseen:
            stretch = self._unseen[key] = _Stretch(key, uid, why, since, is_line=is_line)
            self._stretches.append(stretch)

    def _note_whole(self, key: ObjectKey, known: Instant) -> None:
        """Notes that the state is known again."""
        if key in self._unseen:
            self._unseen.pop(key).until = known

    @property
    def is_any(self) -> bool:
        """Whether there is any lack because of which a difference may be undecided."""
        is_any = self._kinds or self._times or self._stretches or self._implied
        return bool(is_any or self.omissions.is_any)

    @property
    def ends_with_looks(self) -> bool:
        """Whether looks at the cluster are the last that the recording has."""
        return bool(self._looked)

    @property
    def times(self) -> str:
        """The reason why some instant of the recording is not reliable; empty when all are."""
        return doubts.text_of(Loss.TIMES_CONTRADICT) if self._times else ""

    @property
    def kinds(self) -> str:
        """The kinds that decisions need and that were never recorded; may be empty."""
        return self._kinds

    def about(
        self,
        uids: Collection[str],
        keys: Collection[ObjectKey],
        first: Instant,
        last: Instant,
        read: Read | None = None,
        unlike: Mapping[ObjectKey, Instant] = MappingProxyType({}),
        own: Instant = _FOREVER,
    ) -> str:
        """The reason why a difference about these objects between two instants is not judged.

        `read` are the other objects on which it may depend, None for any. `unlike` says how long
        objects with lost lines differed from the recorded ones afterwards. What is missing of the
        objects themselves counts until `own`.
        """
        if self._kinds:
            return f"the recording has no {self._kinds}"
        is_of_fixed = read is not None and not read.has_states
        until = min(last, own)
        if lack := self.of(uids, keys, min(first, until), until, is_of_fixed=is_of_fixed):
            return lack
        if any(
            each.meets(first, last, unlike.get(each.key, _NEVER))
            and not (own < last and (each.key in keys or each.uid in uids))
            and (read is None or self._is_read(each, read, keys, first, last))
            for each in self._stretches
        ):
            return "an object that it may depend on is not recorded whole"
        return ""

    def _is_read(
        self,
        each: _Stretch,
        read: Read,
        keys: Collection[ObjectKey],
        first: Instant,
        last: Instant,
    ) -> bool:
        """Whether a difference depends on the objects that were unseen in a stretch.

        If all pods or claims were unseen, only its own count, until they were written again.
        """
        kind, spaces = each.key[:2], {key.namespace for key in keys}
        if kind in _PLACED and read.has_states and not each.key.name:
            own = [key for key in keys if key[:2] == kind]
            return not own or not all(
                any(each.since <= at <= first for at in self._renewed.get(key, ())) for key in own
            )
        if kind != api_resources.RESOURCE_CLAIM_TEMPLATES or kind not in read.kinds:
            return kind in read.kinds
        return each.key.namespace in ("", *spaces) and not self._are_templates_known(
            each, spaces, first, last
        )

    def _are_templates_known(
        self, each: _Stretch, spaces: Collection[str], first: Instant, last: Instant
    ) -> bool:
        """Whether the templates that a stretch concerns are known although it is unrecorded.

        Each was written between the beginning of the stretch and the first instant, or it exists
        before and after, with the same uid: its spec never changes. Parity: objects.md 6.
        """
        lines = [
            lines
            for key, lines in self._templates.items()
            if key == each.key or (not each.key.name and key.namespace in spaces)
        ]
        return bool(lines) and all(
            any(each.since <= at <= first for at, _ in line)
            or bool(
                {uid for at, uid in line if at <= first} & {uid for at, uid in line if at >= last}
            )
            for line in lines
        )

    def of(
        self,
        uids: Collection[str],
        keys: Collection[ObjectKey],
        first: Instant,
        last: Instant,
        *,
        is_of_fixed: bool = False,
    ) -> str:
        """The missing record of these objects themselves between two instants, or empty.

        With `is_of_fixed`, the difference depends only on fields of them that never change: on no
        lost line.
        """
        about = (
            each.why
            for each in self._stretches
            if each.meets(first, last, each.settled)
            and (each.key in keys or each.uid in uids)
            and not (each.is_line and is_of_fixed)
        )
        why = next(about, "")
        return f"of it or of what it is about: {why}" if why else ""

    def lines(self) -> Iterator[tuple[ObjectKey, Instant, Instant]]:
        """The objects of which single lines are lost, each with the time in which the loss counts.

        That begins with the last state before the loss, or with the first one after a creation.
        """
        for each in self._stretches:
            if each.is_of_lost_line:
                yield each.key, each.until if each.is_creation else each.since, each.settled

    def unseen_claims(self) -> Iterator[_Stretch]:
        """The claims with a write whose content is not recorded: it was decided before.

        The scheduler writes of a placement in several requests.
        """
        for each in self._stretches:
            is_of_claim = each.key[:2] == api_resources.RESOURCE_CLAIMS and bool(each.key.name)
            if is_of_claim and not each.is_of_lost_line:
                yield each

    def within(self, namespace: str, last: Instant) -> str:
        """The missing record of an object in a namespace before an instant, or empty.

        The run continues without the missing record, so the objects there may differ from then on.
        """
        if namespace in self._implied:
            return "its namespace is not recorded"
        is_there = any(
            each.key.namespace == namespace and each.since <= last for each in self._stretches
        )
        return "an object in its namespace is not recorded whole" if is_there else ""

    def in_ending(self, namespace: str, first: Instant) -> str:
        """The missing end of a namespace in which something differs from an instant on, or empty.

        The order in which its objects end depends on when its deletion was requested.
        """
        is_ending = first >= self._implied.get(namespace, _FOREVER)
        return "when its namespace was to end is not recorded" if is_ending else ""

    def after(self, key: ObjectKey, instant: Instant) -> str:
        """The stretch, of an object or its kind, that begins after an instant, or empty."""
        is_there = any(each.since >= instant for each in self._of_kind(key))
        return "it may have been done later, where nothing was recorded" if is_there else ""

    def may_have_changed_unseen(self, key: ObjectKey, instant: Instant) -> bool:
        """Whether a change of a claim by an instant may be in a lost line that no later one shows.

        Call it after the last event: a recorded write of the claim at that instant or later shows
        that no change was lost before.
        """
        return self.omissions.lost.may_lack_claims and self._written.get(key, Instant(-1)) < instant

    def was_unseen(self, key: ObjectKey, instant: Instant) -> bool:
        """Whether an object may have been different at an instant from its known state.

        If its kind, or everything, was unrecorded for a while, the result is true until the object
        is written. So call this for the present instant.
        """
        return any(
            each.key == key or each.is_of_looks or self._written.get(key, Instant(-1)) < each.since
            for each in self._of_kind(key)
            if each.meets(instant, instant)
        )

    def _of_kind(self, key: ObjectKey) -> Iterator[_Stretch]:
        """The stretches of an object and of its kind, in its namespace or in all."""
        for each in self._stretches:
            group, resource, namespace, name = each.key
            is_of_kind = (group, resource) == key[:2] and namespace in ("", key.namespace)
            if is_of_kind and name in ("", key.name):
                yield each

    def _note_object(self, event: Event, known: Instant) -> None:
        codes = doubts.of_event(event)
        self._written[event.key] = known
        self._note_look(event, known)
        if event.stamp.verb == BASELINE_VERB and codes:
            # It existed before, in unknown states.
            stretch = _Stretch(event.key, event.uid, _text(codes), Instant(0), known)
            stretch.is_creation = self.omissions.lost.has_lost(event.key)
            self._stretches.append(stretch)
        elif codes:
            is_line = codes == (Loss.CONTRADICTED,)
            since = known if is_line else _sent(event, known)
            self._note_unseen(event.key, event.uid, since, _text(codes), is_line=is_line)
        elif not doubts.is_derived(event):
            self._note_whole(event.key, known)
            self._note_renewed(event.key, known)
            if event.key[:2] == api_resources.RESOURCE_CLAIM_TEMPLATES:
                self._templates[event.key].append((known, event.uid))

    def _note_look(self, event: Event, known: Instant) -> None:
        """Notes a look at a known cluster: all is unknown since the last recorded change.

        Anything may have been otherwise between two looks, and come and gone. That ends with the
        next recorded change.
        """
        if not self._looks.follow(event):
            for stretch in self._looked:
                stretch.until = known
            self._looked.clear()
            self._changed = known
        elif not self._looked and self._looks.is_again:
            why, since = doubts.text_of(Loss.COLLAPSED), self._changed
            self._looked += [
                _Stretch(ObjectKey(*kind, "", ""), "", why, since, is_of_looks=True)
                for kind in _NEEDED
            ]
            self._stretches += self._looked

    def _note_renewed(self, key: ObjectKey, known: Instant) -> None:
        """Notes the first write of a pod or claim since all of its kind were unseen."""
        unseen = self._unseen.get(ObjectKey(*key[:2], "", "")) if key[:2] in _PLACED else None
        if unseen is not None:
            renewed = self._renewed[key]
            if not renewed or renewed[-1] < unseen.since:
                renewed.append(known)


def _sent(event: Event, known: Instant) -> Instant:
    """The instant of a request, after which the write was made that all could see from `known` on.

    A controller may act on it, and have its answer, before the request has its own.
    """
    origin = event.stamp.origin
    return Instant(min(known, (origin and origin.asked) or known))


def _text(codes: Sequence[str]) -> str:
    """The most specific of the codes as text; a gap is the least specific."""
    return doubts.text_of(codes[-1] if codes else Loss.GAP)
