"""Nodes that appear and disappear, and pods that end because a change deletes them or their node.

These pods are not evicted. A deleted pod is ended by its kubelet. A pod whose node is gone is
removed by pod garbage collection, and slices that the node owned go with it.
"""

from collections.abc import Iterator, Sequence, Set

from app.analysis.blast.pods import owner_of
from app.analysis.blast.radius import ClaimRelease, Fate, PodFate
from app.analysis.blast.world import World
from app.domain.log import ObjectKey
from app.domain.objects.write.commands import PatchObject, PatchType
from app.domain.values import api_resources
from app.domain.values.fields import core, meta
from app.domain.values.identifiers import NamespacedName, Uid
from app.domain.values.json_tree import JsonObject


def make_ready(world: World, key: ObjectKey, taints: Sequence[JsonObject]) -> None:
    """Gives a new node only the taints that were proposed.

    Admission adds a not-ready taint, which lasts until the node's kubelet reports.
    """
    body = {"spec": {"taints": list(taints) or None}}
    world.apply(PatchObject(key=key, version="v1", type=PatchType.MERGE, body=body), "patch")


def note_pod(world: World, key: ObjectKey, before: JsonObject) -> None:
    """Notes that a pod was deleted on the hypothetical cluster; it was `before`.

    A pod without a node is gone at once, and what it has reserved is given back.
    """
    world.touched.pods[key.namespace, key.name] = Fate.DELETED.value
    if world.objects.get(key) is None:
        world.touched.gone[key.namespace, key.name] = before


def note_node(world: World, name: str, uid: Uid) -> None:
    """Notes that a node was deleted: objects that only it owned go, its pods lose their node."""
    for key in list(world.objects.dependents(uid)):
        tree = world.objects.get(key) or {}
        if all(owner.uid == uid for owner in meta.owners(tree)):
            world.remove(key)
    for key in list(world.objects.keys(*api_resources.PODS)):
        tree = world.objects.get(key) or {}
        if core.node_name(tree) == name and not core.is_finished(tree):
            world.touched.pods[key.namespace, key.name] = Fate.ORPHANED.value


def grace(world: World, key: ObjectKey) -> int | None:
    """The seconds that a terminating object has left; None if gone, or held by finalizers."""
    tree = world.objects.get(key)
    if tree is None or meta.finalizers(tree):
        return None
    seconds = meta.metadata(tree).get("deletionGracePeriodSeconds")
    return seconds if isinstance(seconds, int) else None


def releases(world: World) -> Iterator[ClaimRelease]:
    """The claims reserved only for ending pods, by namespace and name."""
    places = world.touched.pods
    keys = (ObjectKey(*api_resources.PODS, *place) for place in places)
    ending = {meta.uid(tree) for key in keys if (tree := world.objects.get(key)) is not None}
    ending |= {meta.uid(tree) for tree in world.touched.gone.values()}
    for place, claim in sorted(world.taints.claims.items()) if ending else ():
        if claim.pod_uids <= ending and len(claim.reserved) == claim.consumers > 0:
            yield ClaimRelease(
                namespace=place[0],
                name=place[1],
                pods=tuple(name for name, _ in claim.reserved),
                devices=tuple("/".join(result.id) for result in claim.results),
            )


def fates(world: World, evicted: Set[NamespacedName]) -> Iterator[PodFate]:
    """The pods that end this way, or are protected and not `evicted`, by namespace and name."""
    touched = world.touched
    kept = dict.fromkeys(touched.kept.keys() - touched.pods.keys() - evicted, Fate.PROTECTED.value)
    for (namespace, name), fate in sorted((touched.pods | kept).items()):
        tree = world.objects.get(ObjectKey(*api_resources.PODS, namespace, name))
        if tree is None:
            continue
        pod = world.taints.pods.get((namespace, name))
        uses = () if pod is None else world.taints.claims_of(pod)
        yield PodFate(
            namespace=namespace,
            name=name,
            node=core.node_name(tree),
            owner=owner_of(world, (namespace, name)),
            fate=Fate(fate),
            reasons=(touched.kept[namespace, name],) if fate == Fate.PROTECTED else (),
            claims=tuple(f"{claim.namespace}/{claim.name}" for claim in uses),
        )
