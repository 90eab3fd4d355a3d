"""The effect of a change on waiting pods: those that would newly fit, or no longer fit.

All of them are tried on the state before, on the state after, and on the state after without the
pods that the change evicts, as if the scheduler tried them now, one after the other. The last state
includes what these pods give back: room, ports, and the devices of claims that no other pod has
reserved. No pod is evicted for a waiting pod, and replacements of evicted pods are not included.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from app.analysis.blast import prospects
from app.analysis.blast.pods import owner_of, reasons_of
from app.analysis.blast.prospects import PlacedPod
from app.analysis.blast.radius import Prospect, WaitingFate
from app.analysis.blast.world import World
from app.domain.controllers.pods import PodFacts
from app.domain.values.identifiers import NamespacedName
from app.domain.values.timestamps import SECOND, Instant


@dataclass(frozen=True, slots=True, kw_only=True)
class ProspectivePlace:
    """The node that a waiting pod would get; `seconds` until it is evicted, None if it is not.

    They count from the moment that the question is about. `lasts` is false when the pod would be
    evicted as soon as it is placed.
    """

    node: str
    seconds: float | None = None
    reasons: tuple[str, ...] = ()
    lasts: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """The places that waiting pods would get on one state; `left_out` counts those not tried."""

    nodes: Mapping[NamespacedName, ProspectivePlace]
    pods: tuple[PodFacts, ...]
    left_out: int = 0


NOBODY = Waiting(nodes={}, pods=())


def waiting(
    world: World, waiting_max: int, instant: Instant | None = None, *, keeps_brief: bool = True
) -> Waiting:
    """Tries the waiting pods on the current state, at an instant that may be later.

    Without `keeps_brief`, pods that would be evicted at once hold nothing against later ones.
    """
    if world.scheduling is None:
        return NOBODY
    pods = prospects.waiting_pods(world.objects, world.scheduling.profiles)
    tried = pods[:waiting_max]
    at = world.now if instant is None else instant

    def stays(made: PlacedPod) -> bool:
        return keeps_brief or _prospective(world, made, at).lasts

    placed = (
        prospects.placed(
            world.scheduling, world, tried, world.now, world.check_goes_on, stays=stays
        )
        if tried
        else {}
    )
    return Waiting(
        nodes={place: _prospective(world, made, at) for place, made in placed.items()},
        pods=tuple(pod.facts for pod in tried),
        left_out=len(pods) - len(tried),
    )


def _prospective(world: World, placed: PlacedPod, instant: Instant) -> ProspectivePlace:
    eviction = world.eviction_from(placed.allocations, placed.extended)
    if eviction is None:
        return ProspectivePlace(node=placed.node)
    return ProspectivePlace(
        node=placed.node,
        seconds=max(0, eviction.time - world.now, instant - world.now) / SECOND,
        reasons=reasons_of(eviction),
        lasts=eviction.time > instant,
    )


def places(*sides: Waiting) -> set[NamespacedName]:
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
        old, new = before.nodes.get(place), after.nodes.get(place)
        later = ended.nodes.get(place)
        prospect, there = _fate(old, new, later)
        if prospect is None or there is None:
            continue
        fates.append(
            WaitingFate(
                namespace=place[0],
                name=place[1],
                owner=owner_of(world, place),
                prospect=prospect,
                node=there.node,
                evicted_after=there.seconds,
                reasons=there.reasons,
            )
        )
    return fates


def _fate(
    old: ProspectivePlace | None, new: ProspectivePlace | None, later: ProspectivePlace | None
) -> tuple[Prospect | None, ProspectivePlace | None]:
    """The effect on one pod and the place that it is about; nothing if it is as before."""
    if new is not None and new.lasts:
        return (None, None) if old is not None and old.lasts else (Prospect.FITS, new)
    if new is None and later is not None and later.lasts:
        return Prospect.FREED, later
    if (brief := new or later) is not None:
        is_new = old is None or old.lasts
        return (Prospect.EVICTED, brief) if is_new else (None, None)
    return (Prospect.KEPT, old) if old is not None and old.lasts else (None, None)
