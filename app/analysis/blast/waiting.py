"""The effect of a change on waiting pods: those that would newly fit, or no longer fit.

All of them are tried on the state before, on the state after, and on the state after without the
pods that the change evicts, as if the scheduler tried them now, one after the other. The last state
includes what these pods give back: room, ports, and the devices of claims that no other pod has
reserved. No pod is evicted for a waiting pod, and replacements of evicted pods are not included.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from app.analysis.blast import prospects
from app.analysis.blast.pods import owner_of
from app.analysis.blast.radius import Prospect, WaitingFate
from app.analysis.blast.world import World
from app.domain.controllers.pods import PodFacts


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """The nodes that waiting pods would get on one state; `left_out` counts those not tried."""

    nodes: Mapping[prospects.PodPlace, str]
    pods: tuple[PodFacts, ...]
    left_out: int = 0


NOBODY = Waiting(nodes={}, pods=())


def waiting(world: World, waiting_max: int) -> Waiting:
    """Tries the waiting pods on the current state."""
    if world.scheduling is None:
        return NOBODY
    pods = prospects.waiting_pods(world.objects)
    tried = pods[:waiting_max]
    nodes = (
        prospects.placed(world.scheduling, world, tried, world.now, world.check_goes_on)
        if tried
        else {}
    )
    return Waiting(
        nodes=nodes,
        pods=tuple(pod.facts for pod in tried),
        left_out=len(pods) - len(tried),
    )


def places(*sides: Waiting) -> set[prospects.PodPlace]:
    """The pods that were tried on any of the states."""
    return {(pod.namespace, pod.name) for side in sides for pod in side.pods}


def waiting_fates(
    world: World, before: Waiting, after: Waiting, ended: Waiting
) -> list[WaitingFate]:
    """The waiting pods that the change affects, by namespace and name.

    Pods that the change itself deletes are not included. `ended` is the state in which the evicted
    pods have ended.
    """
    fates = []
    for place in sorted(places(before, after) - world.touched.pods.keys()):
        old, new = before.nodes.get(place, ""), after.nodes.get(place, "")
        later = ended.nodes.get(place, "")
        if bool(old) == bool(new) and (new or not later):
            continue
        prospect = Prospect.FITS if new else Prospect.FREED if later else Prospect.KEPT
        fates.append(
            WaitingFate(
                namespace=place[0],
                name=place[1],
                owner=owner_of(world, place),
                prospect=prospect,
                node=new or later or old,
            )
        )
    return fates
