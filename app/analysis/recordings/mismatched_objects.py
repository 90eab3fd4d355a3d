"""Recorded objects that do not fit each other: something is missing, nobody knows what.

An eviction for a taint that no object shows is one sign: a rule that nobody recorded may taint any
device.
"""

from collections.abc import Iterator, Sequence

from app.analysis.explain.reasons import Reason
from app.analysis.recordings import uncertainty
from app.analysis.verify.invariants.violations import Violation, ViolationKind
from app.analysis.verify.invariants.watch import InvariantWatch
from app.domain.log import Event
from app.domain.log.pages import Page

PAGE_MAX = 1_000
"""Events that are judged at once."""


class FitWatch:
    """Judges whether the objects of a recording fit each other. Feed it every event, in order."""

    def __init__(self, watch: InvariantWatch) -> None:
        self._watch = watch
        self._unread: list[Event] = []

    def fold(self, event: Event) -> None:
        """Takes the next event."""
        self._unread.append(event)
        if len(self._unread) >= PAGE_MAX:
            self._read()

    def reasons(self) -> Iterator[Reason]:
        """The first sign that something is missing, with the doubt about it; none if all fits."""
        self._read()
        for doubt in uncertainty.with_unfitting((), messages(self._watch.violations())):
            yield Reason(text=doubt.text, count=doubt.count, unexplained=doubt)

    def _read(self) -> None:
        self._watch.follow_page(Page(self._unread))
        self._unread = []


def messages(violations: Sequence[Violation]) -> list[str]:
    """The signs of something missing among violations."""
    return [each.message for each in violations if each.kind is ViolationKind.UNSURE]
