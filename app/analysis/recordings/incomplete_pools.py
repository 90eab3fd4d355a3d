"""Recorded pools with fewer slices than these announce: the others may not have been recorded.

A driver publishes all slices of a pool at once, unless it fails, so the line of one may be lost.
"""

from collections.abc import Iterator, Sequence

import msgspec

from app.analysis.explain.reasons import Reason, listed
from app.analysis.recordings import uncertainty
from app.analysis.views import LiveViews
from app.domain.devices.pools import PoolState
from app.domain.log.doubts import Doubt
from app.domain.values import api_groups
from app.domain.values.identifiers import PoolId


def of_all(views: LiveViews) -> tuple[Doubt, ...]:
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
