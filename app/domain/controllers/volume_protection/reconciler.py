"""The reconciler that lifts the protection of deleted volumes and volume claims without a user.

A claim is in use by pods that are on a node and not finished, a volume while it is bound. Parity:
controllers.md 5.5; upstream's controllers pvc-protection and pv-protection.
"""

from collections.abc import Iterable

from app.domain.controllers import pods
from app.domain.controllers.event_objects import MANAGER
from app.domain.controllers.keyed import KeyedController, Work
from app.domain.controllers.plan import Reads, Views
from app.domain.controllers.resources import is_of
from app.domain.log import Event, EventType, ObjectKey
from app.domain.objects.kinds.volume_protection import FINALIZERS
from app.domain.objects.reader import ObjectsReader
from app.domain.objects.write import metadata
from app.domain.objects.write.commands import PatchObject, PatchType
from app.domain.values import api_resources
from app.domain.values.fields import core, entries, meta
from app.domain.values.json_tree import JsonView
from app.domain.values.timestamps import Instant

NAME = "volume-protection"


class VolumeProtectionReconciler(KeyedController[ObjectKey, Views]):
    """Follows deleted objects that are still protected."""

    name = NAME
    reads: Reads = frozenset(
        {
            api_resources.PODS,
            api_resources.PERSISTENT_VOLUME_CLAIMS,
            api_resources.PERSISTENT_VOLUMES,
        }
    )

    def __init__(self) -> None:
        super().__init__()
        self._ending: set[ObjectKey] = set()

    def keys_of(self, event: Event, views: Views) -> Iterable[ObjectKey]:
        """A deleted and protected object; after the event of a pod, all those in its namespace."""
        key = event.key
        if is_of(key, api_resources.PODS):
            if not self._ending:
                return ()
            return sorted(end for end in self._ending if end.namespace == key.namespace)
        if event.type is not EventType.OBJECT_DELETED and is_protected(key, event.object):
            self._ending.add(key)
            return (key,)
        self._ending.discard(key)
        return ()

    def reconcile(self, views: Views, key: ObjectKey, now: Instant) -> Work | None:
        """Removes the protection from one object that is not in use."""
        objects = views.objects
        tree = objects.get(key)
        if tree is None or not is_protected(key, tree) or _is_used(objects, key, tree):
            return None
        kept = [name for name in metadata.finalizers(tree) if name != FINALIZERS[_place(key)]]
        revision = metadata.of(tree).get("resourceVersion")
        patch = PatchObject(
            key=key,
            version="v1",
            type=PatchType.MERGE,
            body={"metadata": {"finalizers": kept or None, "resourceVersion": revision}},
            options=MANAGER,
        )
        return Work((patch,))


def is_protected(key: ObjectKey, tree: JsonView) -> bool:
    """True for an object that is deleted and waits for this controller."""
    finalizer = FINALIZERS.get(_place(key), "")
    return metadata.is_terminating(tree) and finalizer in metadata.finalizers(tree)


def _place(key: ObjectKey) -> tuple[str, str]:
    return (key.group, key.resource)


def _is_used(objects: ObjectsReader, key: ObjectKey, tree: JsonView) -> bool:
    if is_of(key, api_resources.PERSISTENT_VOLUMES):
        return meta.phase(tree) == "Bound"
    return any(
        _uses(pod, key.name)
        for place in objects.keys(*api_resources.PODS, key.namespace)
        if (pod := objects.get(place)) is not None and core.node_name(pod) and not pods.is_done(pod)
    )


def _uses(pod: JsonView, claim: str) -> bool:
    """Whether a volume of the pod uses the claim: by name, or as its generated claim."""
    name = meta.name(pod)
    for volume in core.volumes(pod):
        if core.volume_claim_name(volume) == claim:
            return True
        if "ephemeral" in volume and f"{name}-{entries.name(volume)}" == claim:
            return True
    return False
