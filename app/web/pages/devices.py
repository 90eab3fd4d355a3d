"""The page of the device map: nodes, their pools, devices with holders, counters."""

from collections.abc import Collection, Sequence
from itertools import groupby

from app.analysis.device_map import DeviceMapRequest
from app.analysis.map_answers import DeviceMap, MappedPool
from app.analysis.recordings import uncertainty
from app.domain.log import ObjectKey
from app.domain.values import api_resources
from app.web.frame import Frame, render
from app.web.pictures import devices as picture

EVERYWHERE = "pools that belong to no single node"


def page(
    frame: Frame, answer: DeviceMap, wanted: DeviceMapRequest, registered: Collection[str]
) -> bytes:
    """The page. `registered` are the names of the nodes that exist."""
    nodes = [
        _node(frame, node, list(pools), registered)
        for node, pools in groupby(answer.pools, key=lambda pool: pool.node)
    ]
    return render(
        "map.html",
        frame=frame,
        answer=answer,
        wanted=wanted,
        nodes=nodes,
        notes=uncertainty.lines(answer.doubts),
    )


def claim_key(holder: str) -> ObjectKey:
    """The claim that a device's holder names."""
    namespace, _, name = holder.partition("/")
    return ObjectKey(*api_resources.RESOURCE_CLAIMS, namespace, name)


def _node(
    frame: Frame, node: str, pools: Sequence[MappedPool], registered: Collection[str]
) -> dict[str, object]:
    is_compact = bool(node) and all(picture.is_compact(pool) for pool in pools)
    return {
        "name": node or EVERYWHERE,
        "key": ObjectKey(*api_resources.NODES, "", node) if node in registered else None,
        "is_missing": bool(node) and node not in registered,
        "is_compact": is_compact,
        "pools": [_pool(frame, pool, is_compact) for pool in pools],
    }


def _pool(frame: Frame, pool: MappedPool, is_compact: bool) -> dict[str, object]:
    return {
        "pool": pool,
        "states": picture.states(pool),
        "picture": picture.draw(
            pool, lambda holder: frame.links.to_object(claim_key(holder)), is_compact
        ),
        "counters": [{"counter": one, "bar": picture.gauge(one.share)} for one in pool.counters],
        "devices": [
            {"device": one, "claims": [claim_key(holder) for holder in one.holders]}
            for one in pool.devices
        ],
    }
