"""What every cluster has from its first moment, as a real API server makes it.

That is namespaces, priority classes, and the service by which pods reach the API.
"""

from app.domain.log import Actor, ObjectKey
from app.domain.objects import priorities, services
from app.domain.objects.commands import CreateObject
from app.domain.objects.services import ServiceRanges
from app.domain.values.json_tree import JsonObject

NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")
"""What a real API server makes when it starts for the first time."""

SERVER = Actor(user="system:apiserver", groups=("system:masters",), agent="kube-apiserver/redra")


def commands(ranges: ServiceRanges) -> list[CreateObject]:
    """What makes them; the service gets its address from the `ranges`."""
    classes = (priorities.GROUP, priorities.CLASSES)
    return [
        *(_created(("", "namespaces"), _namespace(name)) for name in NAMESPACES),
        *(_created(classes, tree) for tree in priorities.system_classes()),
        _created(services.SERVICES, services.of_the_api(ranges)),
    ]


def _namespace(name: str) -> JsonObject:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def _created(place: tuple[str, str], tree: JsonObject) -> CreateObject:
    metadata = tree["metadata"]
    key = ObjectKey(*place, metadata.get("namespace", ""), metadata["name"])
    return CreateObject(key=key, version="v1", tree=tree)
