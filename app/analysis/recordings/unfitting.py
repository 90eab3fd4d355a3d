"""Recorded objects that do not fit each other: something is missing, nobody knows what.

An eviction for a taint that no object shows is one sign: a rule that nobody recorded may taint any
device. Another one is a pool with fewer slices than these announce: a driver publishes all of them
at once, unless it fails, so that the line of a slice may be lost.
"""

from collections.abc import Iterator, Sequence

import msgspec

from app.analysis.explain.reasons import Reason, listed
from app.analysis.recordings import uncertainty
from app.analysis.verify.invariants.violations import Violation, ViolationKind
from app.analysis.verify.invariants.watch import InvariantWatch
from app.analysis.views import LiveViews
from app.domain.devices.pools import PoolState
from app.domain.log import Event
from app.domain.log.doubts import Doubt
from app.domain.log.pages import Page
from app.domain.values import api_groups
from app.domain.values.identifiers import PoolId

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


def of_pools(views: LiveViews) -> tuple[Doubt, ...]:
    """The doubt about the incomplete pools of a recording; empty if there are none."""
    places = [place for place in views.inventory.pool_ids() if _is_incomplete(views, place)]
    return (_of_pools(places),) if places else ()


def of_pool(views: LiveViews, place: PoolId) -> Iterator[Reason]:
    """The doubt about a pool of a recording, as a reason; none unless it is incomplete."""
    if _is_incomplete(views, place):
        text = "the driver did not publish the others, or the recording lacks them"
        yield Reason(text=text, unexplained=_of_pools([place]))


def _is_incomplete(views: LiveViews, place: PoolId) -> bool:
    pool = views.inventory.pool(place)
    return pool is not None and pool.state is PoolState.INCOMPLETE


def _of_pools(places: Sequence[PoolId]) -> Doubt:
    names = sorted("/".join(place) for place in places)
    text = f"pool {listed(names, len(names))} lacks slices, which may not have been recorded"
    kind = f"resourceslices.{api_groups.RESOURCE}"
    return msgspec.structs.replace(uncertainty.NO_CAUSE, kind=kind, text=text)


def messages(violations: Sequence[Violation]) -> list[str]:
    """The signs of something missing among violations."""
    return [each.message for each in violations if each.kind is ViolationKind.UNSURE]
