"""The finalizers that protect volumes and volume claims in use.

Parity: objects.md 15.2; the admission plug-in StorageObjectInUseProtection.
"""

from collections.abc import Mapping

from app.domain.objects.registry import Kind
from app.domain.values import api_resources
from app.domain.values.json_tree import JsonObject

FINALIZERS: Mapping[tuple[str, str], str] = {
    api_resources.PERSISTENT_VOLUME_CLAIMS: "kubernetes.io/pvc-protection",
    api_resources.PERSISTENT_VOLUMES: "kubernetes.io/pv-protection",
}


def protect(kind: Kind, tree: JsonObject) -> None:
    """Adds the finalizer to a new object in place; no field manager owns it."""
    finalizer = FINALIZERS.get((kind.group, kind.plural))
    if finalizer is None:
        return
    present = tree["metadata"].get("finalizers") or []
    if finalizer not in present:
        tree["metadata"]["finalizers"] = [*present, finalizer]
