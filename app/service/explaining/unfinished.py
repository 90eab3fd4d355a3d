"""Incomplete pools: since when, who published what is there, and what the pool was before."""

from collections.abc import Sequence

from app.analysis.explain.hardware import generations
from app.analysis.explain.node_reasons import NodeReason
from app.analysis.explain.reasons import NAMES_MAX, Reason
from app.analysis.recordings import incomplete_pools
from app.domain.devices import pools
from app.domain.log import ObjectKey
from app.domain.values import api_resources, identifiers
from app.domain.values.identifiers import PoolId
from app.service.explaining import former_circumstances
from app.service.explaining.evidence import ExplainedMoment


async def reasons(evidence: ExplainedMoment, nodes: Sequence[NodeReason]) -> list[Reason]:
    """The incomplete pools among those that nodes cannot use."""
    places = {place: None for one in nodes if one.explained for place, _ in one.explained.pools}
    reasons: list[Reason] = []
    for place in [*places][:NAMES_MAX]:
        reasons += await of_pool(evidence, identifiers.parse_pool(place))
    return reasons


async def of_pool(evidence: ExplainedMoment, place: PoolId) -> list[Reason]:
    """The beginning of a pool's incompleteness, and the doubt about it; empty when it is complete.

    The beginning is left out for a pool of more slices than are examined, and for one of which the
    reader may not see every slice.
    """
    doubt = (
        list(incomplete_pools.of_pool(evidence.views, place)) if evidence.info.is_recorded else []
    )
    return [*await _beginning(evidence, place), *doubt]


async def _beginning(evidence: ExplainedMoment, place: PoolId) -> list[Reason]:
    inventory = evidence.views.inventory
    pool = inventory.pool(place)
    if pool is None or pool.state is not pools.PoolState.INCOMPLETE:
        return []
    names = [one.key for one in inventory.slices_of(place)]
    keys = [ObjectKey(*api_resources.RESOURCE_SLICES, "", name) for name in names]
    if len(keys) > evidence.bounds.cause_pool_slices_max:
        return []
    keys += await former_circumstances.gone_of_kind(evidence, api_resources.RESOURCE_SLICES, ())
    histories = [await evidence.changes(key) for key in keys]
    if not all(evidence.sight.sees(event) for events in histories for event in events[:1]):
        return []
    reason = generations.unfinished(place, generations.course(place, histories))
    return [] if reason is None else [reason]
