"""Writes of recorded kubelets about pods that are on another node in a replay.

The kubelet of a node writes only about the pods of that node (controllers.md 5.2), and the API
refuses others. The recorded course of a pod (when it runs, ends, fails) is the best estimate for a
pod that moved. So these writes are kept, with the kubelet of the pod's node here as the author.
"""

from msgspec.structs import replace

from app.analysis.replay.inputs import KUBELET_PREFIX
from app.domain.controllers.kubelet.pod_status import host_of
from app.domain.log import Actor, Event, ObjectKey
from app.domain.objects.reader import ObjectsReader
from app.domain.objects.write.commands import Command, ImportObject
from app.domain.values import api_resources, json_tree
from app.domain.values.fields import core
from app.domain.values.json_tree import JsonObject, JsonView


def kubelet_here(event: Event, ours: JsonView | None) -> Actor:
    """The author of a write here: the kubelet of the pod's node here if a kubelet wrote it."""
    actor: Actor = event.stamp.actor
    node = _node_here(event, ours)
    if not node or actor.user != KUBELET_PREFIX + core.node_name(event.object):
        return actor
    return Actor(user=KUBELET_PREFIX + node, groups=actor.groups, agent=actor.agent)


def with_host_here(event: Event, command: Command, objects: ObjectsReader) -> Command:
    """The command with the host address of the pod's node here."""
    node = _node_here(event, objects.get(event.key))
    if not node or not isinstance(command, ImportObject):
        return command
    status = json_tree.get(command.tree, "status")
    if not isinstance(status, dict) or not status.get("hostIP"):
        return command
    host = host_of(objects.get(ObjectKey(*api_resources.NODES, "", node)) or {})
    moved: JsonObject = {**status, "hostIP": host}
    if "hostIPs" in status:
        moved["hostIPs"] = [{"ip": host}]
    return replace(command, tree={**command.tree, "status": moved})


def _node_here(event: Event, ours: JsonView | None) -> str:
    """The node of a pod here, if it differs from the recorded one; otherwise empty."""
    if ours is None or event.key[:2] != api_resources.PODS:
        return ""
    there, here = core.node_name(event.object), core.node_name(ours)
    return here if there and here != there else ""
