"""Folds the log again into every view, at once and with a pause in the middle."""

from collections.abc import Sequence

from app.analysis.views import LiveViews, features_of
from app.domain.devices.cel_selectors import CelCompiler
from app.domain.devices.model import Slice
from app.domain.log import Event
from app.domain.log.chain import check_chain
from app.domain.log.projection import Projection
from projections import all_projections
from tests.cluster import Cluster
from tests.simulation.soundness import Unsound


def check_folds(cluster: Cluster) -> None:
    """Checks that a fold of the log, interrupted or not, gives the live views."""
    events = cluster.line.events
    check_chain(events)
    live = cluster.line.views
    again = LiveViews(cluster.profile)
    for event in events:
        again.fold(event)
    if live.objects.state_hash() != again.objects.state_hash():
        raise Unsound("the live objects are not what the log says")
    if _stock(live) != _stock(again):
        raise Unsound("the live inventory is not what the log says")
    middle = len(events) // 2
    whole = _folded(_views(cluster), events)
    first = _folded(_views(cluster), events[:middle])
    second = _views(cluster)
    for before, after in zip(first, second, strict=True):
        after.load(before.dump())
    _folded(second, events[middle:])
    for one, other in zip(whole, second, strict=True):
        if one.state_hash() != other.state_hash():
            raise Unsound(f"the view {one.name} differs when it is loaded in the middle")


def _views(cluster: Cluster) -> tuple[Projection, ...]:
    features = features_of(cluster.profile)
    return all_projections(
        compiler=CelCompiler(detailed_errors=True),
        with_rules=features.taint_rules,
        with_patches=features.patches,
    )


def _folded(views: Sequence[Projection], events: Sequence[Event]) -> Sequence[Projection]:
    for view in views:
        for event in events:
            view.fold(event)
    return views


def _stock(views: LiveViews) -> list[object]:
    """Every pool with its slices and devices, taints and patches merged."""
    stock = views.inventory
    return [
        (pool, found.key, found.generation, found.counter_sets, found.tree, _devices(found))
        for pool in stock.pool_ids()
        for found in stock.slices_of(pool)
    ]


def _devices(found: Slice) -> list[object]:
    return [
        (device.id, device.attributes, device.capacity_tree, device.consumes, device.taints)
        for device in found.devices
    ]
