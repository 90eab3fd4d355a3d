"""The claims of a pod's volumes, without which no node is looked at. Parity: controllers.md 4.8.

Only what is checked before the nodes is here: whether the claims exist and are bound. The nodes of
volumes are not compared, and nobody binds a claim here. A claim for an ephemeral volume counts as
made, because the controller that makes it upstream does not exist here (A18).
"""

from app.domain.controllers.scheduling.framework.filters import NodeRejection
from app.domain.controllers.scheduling.framework.pod_spec import PodSpec, PodVolumeClaim
from app.domain.log import ObjectKey
from app.domain.objects.reader import ObjectsReader
from app.domain.values import api_resources
from app.domain.values.fields import core, meta
from app.domain.values.json_tree import JsonView

RESTRICTIONS = "VolumeRestrictions"
BINDING = "VolumeBinding"
PLUGINS = frozenset((RESTRICTIONS, BINDING))

UNBOUND = "pod has unbound immediate PersistentVolumeClaims"
_LATER = "WaitForFirstConsumer"


def check_claims(objects: ObjectsReader, pod: PodSpec) -> NodeRejection | None:
    """The rejection of a pod for the claims of its volumes, or None.

    VolumeRestrictions comes first and misses only claims that the pod names.
    """
    claims = [(claim, objects.get(_key(pod, claim.name))) for claim in pod.volume_claims]
    for claim, tree in claims:
        if tree is None and not claim.is_ephemeral:
            text = f'persistentvolumeclaim "{claim.name}" not found'
            return NodeRejection(plugin=RESTRICTIONS, reasons=(text,))
    for claim, tree in claims:
        if tree is not None and (text := _problem(pod, claim, tree)):
            return NodeRejection(plugin=BINDING, reasons=(text,))
    for _, tree in claims:
        if tree is not None and not core.bound_volume(tree) and not _binds_later(objects, tree):
            return NodeRejection(plugin=BINDING, reasons=(UNBOUND,))
    return None


def _key(pod: PodSpec, name: str) -> ObjectKey:
    return ObjectKey(*api_resources.PERSISTENT_VOLUME_CLAIMS, pod.facts.namespace, name)


def _problem(pod: PodSpec, claim: PodVolumeClaim, tree: JsonView) -> str:
    """The reason why a claim that exists is of no use; empty for none."""
    if meta.phase(tree) == "Lost":
        lost = f'persistentvolume "{core.bound_volume(tree)}"'
        return f'persistentvolumeclaim "{claim.name}" bound to non-existent {lost}'
    if meta.is_deleting(tree):
        return f'persistentvolumeclaim "{claim.name}" is being deleted'
    if claim.is_ephemeral and meta.controller_uid(tree) != pod.facts.uid:
        place = f"{pod.facts.namespace}/{pod.facts.name}"
        return (
            f"PVC {pod.facts.namespace}/{claim.name} was not created for pod {place} "
            "(pod is not owner)"
        )
    return ""


def _binds_later(objects: ObjectsReader, claim: JsonView) -> bool:
    """Whether a claim is bound only when its pod has a node."""
    name = core.storage_class_name(claim)
    storage_class = objects.get(ObjectKey(*api_resources.STORAGE_CLASSES, "", name))
    return storage_class is not None and core.volume_binding_mode(storage_class) == _LATER
