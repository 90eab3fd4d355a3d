"""The places of waiting pods once the pods that a change ends are gone.

Some end now: those that are evicted at once, drained, deleted, or removed with their node. The
others are evicted later, and what they give back comes later, too: a pod that is placed then is
evicted as on a device whose taint is as old as it is then.
"""

from collections.abc import Iterator, Mapping, Sequence

from app.analysis.blast import waiting as blasting_waiting
from app.analysis.blast.waiting import ProspectivePlace, Waiting
from app.analysis.blast.world import Consequences, World
from app.domain.log import ObjectKey
from app.domain.values.identifiers import NamespacedName
from app.domain.values.timestamps import Instant


def are_needed(world: World, before: Consequences, after: Consequences, tried: Waiting) -> bool:
    """Whether a waiting pod without a place may get one when others have ended."""
    if all((pod.namespace, pod.name) in tried.nodes for pod in tried.pods):
        return False
    makes_room = not all(place.lasts for place in tried.nodes.values())
    return makes_room or bool(world.touched.pods or _evicted(world, before, after))


def waiting(
    world: World,
    previewed: Sequence[ObjectKey],
    before: Consequences,
    after: Consequences,
    waiting_max: int,
) -> Waiting:
    """Tries the waiting pods without those that the change ends; consumes the world.

    A previewed rule evicts as NoExecute, and as such it keeps its devices from the waiting pods.
    Waiting pods that would be evicted at once make room again.
    """
    nodes: dict[NamespacedName, ProspectivePlace] = {}
    made = blasting_waiting.NOBODY
    for ending, instant in _stages(world, before, after):
        world.end(ending)
        for key in previewed:
            world.pretend_taint(key)
        made = blasting_waiting.waiting(world, waiting_max, instant, keeps_brief=False)
        nodes = {**made.nodes, **nodes}
    return Waiting(nodes=nodes, pods=made.pods, left_out=made.left_out)


def _stages(
    world: World, before: Consequences, after: Consequences
) -> Iterator[tuple[Sequence[NamespacedName], Instant]]:
    """The pods that end now, and those that end later with the last instant of their evictions."""
    evicted = _evicted(world, before, after)
    now = {place for place, due in evicted.items() if due <= world.now} | world.touched.pods.keys()
    yield sorted(now), world.now
    later = evicted.keys() - now
    if later:
        yield sorted(later), max(evicted[place] for place in later)


def _evicted(
    world: World, before: Consequences, after: Consequences
) -> Mapping[NamespacedName, Instant]:
    """The pods that only the change evicts, with the instants; not those that end already."""
    return {
        place: after.pods[place].time
        for place in after.pods.keys() - before.pods.keys()
        if not world.taints.pods[place].is_deleting
    }
