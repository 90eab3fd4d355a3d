"""The first objects of a cluster, as a real API server creates them when it starts.

They are namespaces, priority classes, the `kubernetes` service with its endpoints and the range of
service addresses, and the default cluster roles and bindings. Controllers create further objects of
every cluster when they run.
"""

from app.domain.log import Actor, ObjectKey
from app.domain.objects import registry
from app.domain.objects.access import cluster_roles
from app.domain.objects.kinds import priorities, services
from app.domain.objects.kinds.services import ServiceRanges
from app.domain.objects.write.commands import CreateObject
from app.domain.values import json_tree
from app.domain.values.json_tree import JsonObject

NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")
"""The namespaces that a real API server creates when it starts for the first time."""

SERVER = Actor(user="system:apiserver", groups=("system:masters",), agent="kube-apiserver/redra")


def commands(ranges: ServiceRanges) -> list[CreateObject]:
    """The commands that create the first objects; the service gets an address of `ranges`."""
    return [
        _created(tree)
        for tree in (
            *(_namespace(name) for name in NAMESPACES),
            *priorities.system_classes(),
            services.range_of_cluster(ranges),
            services.of_the_api(ranges),
            *services.endpoints_of_the_api(ranges),
            *cluster_roles.roles(),
            *cluster_roles.bindings(),
            *cluster_roles.of_extension_servers(),
        )
    ]


def cluster_settings(settings: JsonObject) -> JsonObject:
    """The settings of a new cluster: `clusterObjects` and `volumeClaims`, unless they are set."""
    chosen = json_tree.mapping(settings, "controllers")
    return {**settings, "controllers": {"clusterObjects": True, "volumeClaims": True, **chosen}}


def _namespace(name: str) -> JsonObject:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def _created(tree: JsonObject) -> CreateObject:
    metadata = tree["metadata"]
    group, version = registry.split_api_version(tree["apiVersion"])
    kind = registry.find_kind(group, version, tree["kind"])
    assert kind is not None, "every cluster has built-in kinds only"
    key = ObjectKey(group, kind.plural, metadata.get("namespace", ""), metadata["name"])
    return CreateObject(key=key, version=version, tree=tree)
