"""Claims that a change deletes: what keeps them, which pods they block, and their replacements.

A reserved claim stays terminating with its devices, because delete-protection is a finalizer.
Otherwise the claim controller removes the devices and the finalizer, and creates another claim for
a pod that uses a template. Pods that are not placed cannot use a claim that is terminating or gone.
Parity: controllers.md 2.1 and 2.3.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import msgspec

from app.analysis.blast.cutting import ListCut
from app.analysis.blast.radius import BlastRadius, ClaimDeletion
from app.analysis.blast.world import World
from app.domain.controllers import pods
from app.domain.controllers.claims import claim_sync, pod_sync
from app.domain.controllers.pods import PodFacts
from app.domain.controllers.quirks import ControllerQuirks
from app.domain.errors import Rejected
from app.domain.log import ObjectKey
from app.domain.values import api_resources
from app.domain.values.fields import dra, meta
from app.domain.values.identifiers import Uid
from app.domain.values.json_tree import JsonView


def settle(world: World, listed_max: int) -> list[ClaimDeletion]:
    """Runs the claim controller on the deleted claims, and returns the result."""
    deleted = world.touched.claims
    for key in sorted(deleted):
        _release(world, key, deleted[key])
    users = _users(world)
    remade = {
        pod.uid
        for key in sorted(deleted)
        for pod in users.get(key, ())
        if world.objects.get(key) is None and make_claims(world, pod).is_complete
    }
    return [
        _deletion(world, key, deleted[key], users.get(key, []), remade, listed_max)
        for key in sorted(deleted)
    ]


def with_deletions(
    answer: BlastRadius, deletions: Sequence[ClaimDeletion], listed_max: int
) -> BlastRadius:
    """The answer with the fates of deleted claims."""
    if not deletions:
        return answer
    cut = ListCut(listed_max)
    listed = cut("claim_deletions", deletions)
    left_out = answer.left_out | cut.left_out
    return msgspec.structs.replace(answer, claim_deletions=listed, left_out=left_out)


def _release(world: World, key: ObjectKey, old: JsonView) -> None:
    """Does the claim controller's work for a terminating claim."""
    result = claim_sync.needed_writes(world.objects, key.namespace, key.name)
    for command in () if result is None else result.commands:
        world.apply(command, "update")
    tree = world.objects.get(key)
    if pods.is_allocated(old) and (tree is None or not pods.is_allocated(tree)):
        world.free(old)


def _users(world: World) -> dict[ObjectKey, list[PodFacts]]:
    """The running or waiting pods that name deleted claims."""
    users: dict[ObjectKey, list[PodFacts]] = {}
    namespaces = {key.namespace for key in world.touched.claims}
    for pod_key in list(world.objects.keys(*api_resources.PODS)) if namespaces else ():
        tree = world.objects.get(pod_key) if pod_key.namespace in namespaces else None
        if tree is None:
            continue
        pod = pods.facts(tree)
        if pod.is_done or pod.is_deleting:
            continue
        for named in pods.named_claims(pod):
            key = ObjectKey(*api_resources.RESOURCE_CLAIMS, pod.namespace, named.name or "")
            if key in world.touched.claims:
                users.setdefault(key, []).append(pod)
    return users


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeClaims:
    """The result of creating a pod's claims: whether it can be placed now, and the refusal."""

    is_complete: bool
    refusal: str = ""


def make_claims(world: World, pod: PodFacts) -> MadeClaims:
    """Creates the claims of a pod from its templates like the claim controller."""
    scheduling = world.scheduling
    quirks = ControllerQuirks() if scheduling is None else scheduling.quirks
    is_made = False
    while True:
        step = pod_sync.next_step(world.objects, pod, world.profile, quirks)
        if not isinstance(step, pod_sync.PodWrite):
            return MadeClaims(is_complete=is_made and step is None and not pod.node)
        try:
            world.apply(step.command, "create")
        except Rejected as problem:
            return MadeClaims(is_complete=False, refusal=problem.message)
        is_made = True
        tree = world.objects.get(ObjectKey(*api_resources.PODS, pod.namespace, pod.name))
        assert tree is not None, "nobody deletes it"
        pod = pods.facts(tree)


def _deletion(
    world: World,
    key: ObjectKey,
    old: JsonView,
    users: list[PodFacts],
    remade: set[Uid],
    listed_max: int,
) -> ClaimDeletion:
    tree = world.objects.get(key)
    reserved = () if tree is None else dra.consumers(tree)
    uids = {consumer.uid for consumer in reserved}
    blocked = sorted(pod.name for pod in users if pod.uid not in uids | remade)
    return ClaimDeletion(
        namespace=key.namespace,
        name=key.name,
        is_held=tree is not None,
        finalizers=() if tree is None else tuple(meta.finalizers(tree)),
        reserved_for=tuple(consumer.name for consumer in reserved),
        devices=tuple(_devices(old)),
        blocked=tuple(blocked[:listed_max]),
        blocked_count=len(blocked),
        remade=tuple(sorted(pod.name for pod in users if pod.uid in remade)),
    )


def _devices(claim: JsonView) -> Iterator[str]:
    """The devices of an allocated claim, without duplicates."""
    results = dra.results(claim)
    yield from dict.fromkeys("/".join((one.driver, one.pool, one.device)) for one in results)
