"""The fates of pods: the eviction controller's own result before and after the change."""

from collections.abc import Iterator

from app.analysis.blast.radius import Fate, PodFate
from app.analysis.blast.world import Consequences, World
from app.domain.controllers.eviction.taints import Eviction, EvictionReason
from app.domain.controllers.pods import PodFacts
from app.domain.controllers.resources import pod_key
from app.domain.values import json_tree, timestamps
from app.domain.values.fields import meta
from app.domain.values.identifiers import NamespacedName
from app.domain.values.json_tree import JsonView
from app.domain.values.timestamps import SECOND

OWNERS_MAX = 8
"""The number of owners followed; Kubernetes' own chains have at most three links."""


def pod_fates(world: World, before: Consequences, after: Consequences) -> list[PodFate]:
    """The pods that the change concerns, by namespace and name."""
    tainted = {
        place
        for place, reasons in after.taints.items()
        if reasons and reasons != before.taints.get(place)
    }
    fates = []
    for place in sorted(world.taints.pods):
        pod = world.taints.pods[place]
        old, new = before.pods.get(place), after.pods.get(place)
        uses = tuple(f"{claim.namespace}/{claim.name}" for claim in world.taints.claims_of(pod))
        if old == new and not (
            new is None and pod.node and any(tuple(use.split("/")) in tainted for use in uses)
        ):
            continue
        fates.append(_pod_fate(world, place, pod, old, new, uses))
    return fates


def _pod_fate(
    world: World,
    place: NamespacedName,
    pod: PodFacts,
    old: Eviction | None,
    new: Eviction | None,
    uses: tuple[str, ...],
) -> PodFate:
    return PodFate(
        namespace=place[0],
        name=place[1],
        node=pod.node,
        owner=owner_of(world, place),
        fate=_fate(world, pod, old, new),
        due="" if new is None else timestamps.micro_text(new.time),
        after_seconds=0.0 if new is None else max(0, new.time - world.now) / SECOND,
        was_due="" if old is None else timestamps.micro_text(old.time),
        reasons=() if new is None else (*reasons_of(new), *_ignored(world, pod, new)),
        claims=uses,
    )


def _fate(world: World, pod: PodFacts, old: Eviction | None, new: Eviction | None) -> Fate:
    if pod.is_deleting:
        return Fate.TERMINATING
    if new is None:
        return Fate.TOLERATED if old is None else Fate.SPARED
    if old is not None and old.time == new.time:
        return Fate.ALREADY
    return Fate.NOW if new.time <= world.now else Fate.LATER


def reasons_of(eviction: Eviction) -> tuple[str, ...]:
    """The taints that require an eviction."""
    return tuple(_reason_text(reason) for reason in eviction.reasons)


def _ignored(world: World, pod: PodFacts, eviction: Eviction) -> Iterator[str]:
    """The toleration that would put an eviction off if it counted. Parity: controllers.md C2."""
    claims = [*world.taints.claims_of(pod)]
    if any(world.taints.ignores_toleration(claim.results, eviction) for claim in claims):
        yield "a toleration without an effect does not count for evictions (C2)"


def _reason_text(reason: EvictionReason) -> str:
    if not reason.is_slice:
        return f"rule {reason.rule}"
    return f"taint {reason.index} of {reason.driver}/{reason.pool}/{reason.device}"


def owner_of(world: World, place: NamespacedName) -> str:
    """The outermost controller that still exists, as `Kind/name`; empty for none."""
    tree: JsonView = world.objects.get(pod_key(*place)) or json_tree.EMPTY
    owner_name = ""
    for _ in range(OWNERS_MAX):
        owner = meta.controller(tree)
        if owner is None:
            break
        owner_name = f"{owner.kind}/{owner.name}"
        key = world.objects.by_uid(owner.uid)
        tree = json_tree.EMPTY if key is None else world.objects.get(key) or json_tree.EMPTY
    return owner_name
