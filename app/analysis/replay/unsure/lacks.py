"""What a recording lacks, and which differences that leaves without a judgement.

A decision that rests on what was not recorded may come out otherwise here, and nobody can tell
why. Such a difference is not comparable: neither explained nor unexplained. It concerns all
decisions when a kind that they need was never seen; those at a time when some object was not known
as it was; and whatever is about such an object at any time.
"""

from collections.abc import Collection, Sequence

from app.domain.log import CLOCKS, Event, EventType, ObjectKey, doubts
from app.domain.log.doubts import NEVER_SEEN, Doubt
from app.domain.log.records import BASELINE_VERB, Loss
from app.domain.values import api_resources
from app.domain.values.timestamps import Instant

_ALONE = frozenset(("events", "namespaces"))
"""Kinds on which no decision about others rests."""

_NEEDED = (
    api_resources.PODS,
    api_resources.NODES,
    api_resources.DEVICE_CLASSES,
    api_resources.DEVICE_TAINT_RULES,
    api_resources.RESOURCE_CLAIMS,
    api_resources.RESOURCE_CLAIM_TEMPLATES,
    api_resources.RESOURCE_SLICES,
)
"""Kinds that every recorder follows and on which decisions rest."""

_FOREVER = Instant(2**62)


class Lacks:
    """Follows a recording event by event; `recorded` are the doubts of its fidelity report."""

    def __init__(self, recorded: Sequence[Doubt]) -> None:
        self._kinds = ", ".join(each.kind for each in recorded if each.code == NEVER_SEEN)
        self._times = any(each.code == Loss.TIMES_CONTRADICT for each in recorded)
        self._written: dict[ObjectKey, Instant] = {}
        self._unseen: dict[ObjectKey, Instant] = {}
        self._stretches: list[tuple[Instant, Instant]] = []
        self._why: dict[str | ObjectKey, str] = {}

    def note(self, event: Event, known: Instant) -> None:
        """Take an event in that others could see from instant `known` on."""
        key = event.key
        is_gap = event.type is EventType.GAP_OBSERVED
        if key.resource in _ALONE or key == CLOCKS:
            return
        for gap in doubts.gaps_closed(event, self._unseen):
            self._note_whole(gap, known)
        if is_gap and not key.resource:
            # Any kind may have changed unseen; each is known again when a report names it.
            for kind in _NEEDED:
                self._unseen.setdefault(ObjectKey(*kind, "", ""), known)
        elif is_gap:
            since = self._written.get(key, known) if _is_undated(event) else known
            self._unseen.setdefault(key, since)
            self._why.setdefault(key, _text(doubts.of_event(event)))
        elif event.is_about_object:
            self._note_object(event, known)

    def _note_whole(self, key: ObjectKey, known: Instant) -> None:
        """Something is known as it is again."""
        if key in self._unseen:
            self._stretches.append((self._unseen.pop(key), known))

    @property
    def is_any(self) -> bool:
        """Whether there is anything for which a difference may not be judged."""
        return bool(self._kinds or self._times or self._stretches or self._unseen or self._why)

    @property
    def times(self) -> str:
        """Why no instant of the recording can be relied on; empty when each can."""
        return doubts.text_of(Loss.TIMES_CONTRADICT) if self._times else ""

    @property
    def kinds(self) -> str:
        """Kinds that decisions need and of which nothing was recorded; empty when none lacks."""
        return self._kinds

    def about(
        self, uids: Collection[str], keys: Collection[ObjectKey], first: Instant, last: Instant
    ) -> str:
        """Why what differs about these objects between two instants cannot be judged, or empty."""
        if self._kinds:
            return f"the recording has no {self._kinds}"
        if lack := self.of(uids, keys):
            return lack
        open_ones = [(since, _FOREVER) for since in self._unseen.values()]
        if any(since <= last and first <= until for since, until in self._stretches + open_ones):
            return "an object that it may depend on is not recorded whole"
        return ""

    def of(self, uids: Collection[str], keys: Collection[ObjectKey]) -> str:
        """What was not recorded of these objects themselves, or empty."""
        about = next((each for each in (*sorted(uids), *sorted(keys)) if each in self._why), None)
        return "" if about is None else f"of it or of what it is about: {self._why[about]}"

    def _note_object(self, event: Event, known: Instant) -> None:
        codes = doubts.of_event(event)
        self._written[event.key] = known
        if event.stamp.verb == BASELINE_VERB and codes:
            # It was there before, in states that nobody knows.
            self._stretches.append((Instant(0), known))
            self._why.setdefault(event.uid, _text(codes))
        elif codes:
            self._unseen.setdefault(event.key, known)
            self._why.setdefault(event.uid, _text(codes))
        else:
            self._note_whole(event.key, known)


def _is_undated(event: Event) -> bool:
    """Whether a write is missing of which only a later one tells: it came any time before that."""
    origin = event.stamp.origin
    return bool(event.key.name) and origin is not None and origin.losses == (Loss.GAP.value,)


def _text(codes: Sequence[str]) -> str:
    """The most telling of the codes in words; a gap is the least that is known."""
    return doubts.text_of(codes[-1] if codes else Loss.GAP)
