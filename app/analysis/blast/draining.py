"""The effect of draining a node on its pods: evicted, or protected by a disruption budget.

Each pod is tried once, one after the other, by the rule of the eviction subresource, like the first
round of `kubectl drain --ignore-daemonsets --force --delete-emptydir-data`; kubectl retries the
refused ones. Pods of DaemonSets and mirror pods stay.
"""

from collections.abc import Iterator, Sequence

from app.analysis.blast.radius import Fate
from app.analysis.blast.world import World
from app.domain.errors import Rejected
from app.domain.log import ObjectKey
from app.domain.objects.write import eviction
from app.domain.values import api_resources, well_known
from app.domain.values.fields import core, meta
from app.domain.values.json_tree import JsonView

NAMES_MAX = 3
"""The number of pods that one warning names."""


def drain(world: World, node: str) -> tuple[str, ...]:
    """Evicts the pods of a node on the hypothetical cluster; returns warnings about kubectl."""
    drained: list[tuple[str, JsonView]] = []
    daemons: list[str] = []
    for key in sorted(world.objects.keys(*api_resources.PODS)):
        tree = world.objects.get(key)
        if tree is None or core.node_name(tree) != node or meta.is_deleting(tree):
            continue
        owner = meta.controller(tree)
        is_over = core.is_finished(tree)
        if owner is not None and owner.kind == "DaemonSet" and not is_over:
            daemons.append(f"{key.namespace}/{key.name}")
        elif not meta.annotation(tree, well_known.MIRROR_POD):
            _evict(world, key)
            if not is_over:
                drained.append((f"{key.namespace}/{key.name}", tree))
    return tuple(_warnings(drained, daemons))


def _evict(world: World, key: ObjectKey) -> None:
    """Charges the pod's disruption to its budget; the pod stays until the others are judged."""
    place = (key.namespace, key.name)
    try:
        permission = eviction.judge(world.objects, key, world.now)
    except Rejected as refusal:
        causes = [cause.message for cause in refusal.causes]
        world.touched.kept[place] = "; ".join(causes) or refusal.message
        return
    if permission.write is not None:
        world.apply(permission.write, "update")
    world.touched.pods[place] = Fate.DRAINED.value


def _warnings(drained: Sequence[tuple[str, JsonView]], daemons: Sequence[str]) -> Iterator[str]:
    alone = [name for name, tree in drained if meta.controller(tree) is None]
    scratch = [name for name, tree in drained if _has_empty_dir(tree)]
    owned = len(drained) - len(alone)
    if alone:
        yield f"kubectl drain needs --force: no controller makes {_names(alone)} again"
    if scratch:
        yield f"kubectl drain needs --delete-emptydir-data, which is lost: {_names(scratch)}"
    if daemons:
        yield f"kubectl drain needs --ignore-daemonsets, and leaves {_names(daemons)}"
    if owned:
        what = "1 pod has" if owned == 1 else f"{owned} pods have"
        yield f"{what} a controller that creates another one, which is not considered"


def _has_empty_dir(pod: JsonView) -> bool:
    return any("emptyDir" in volume for volume in core.volumes(pod))


def _names(names: Sequence[str]) -> str:
    shown = ", ".join(names[:NAMES_MAX])
    return f"{shown} and {len(names) - NAMES_MAX} more" if len(names) > NAMES_MAX else shown
