"""Pods that use the ports of nodes that a pod wants.

The message of the scheduler names neither the port nor the pod. Parity: controllers.md 4.2.
"""

from collections.abc import Iterator, Mapping

from app.analysis.explain.reasons import NAMES_MAX, Reason
from app.analysis.views import LiveViews
from app.domain.controllers.scheduling.framework import filters, pod_spec
from app.domain.log import ObjectKey
from app.domain.values import api_resources, counts
from app.domain.values.fields import core, meta
from app.domain.values.json_tree import JsonObject


def in_use(views: LiveViews, pod: JsonObject, refusals: Mapping[str, str]) -> Iterator[Reason]:
    """The pods whose host ports the pod wants, too; `refusals` has the text of each node."""
    nodes = {name for name, text in refusals.items() if text in filters.PORTS.reasons}
    if not nodes:
        return
    wanted = pod_spec.host_ports(meta.spec(pod))
    users: list[Reason] = []
    for key in views.objects.keys(*api_resources.PODS):
        tree = views.objects.get(key) or {}
        if core.node_name(tree) not in nodes or core.is_finished(tree):
            continue
        used = pod_spec.host_ports(meta.spec(tree))
        for port in wanted:
            if any(filters.is_same_port(port, other) for other in used):
                users.append(_user(key, core.node_name(tree), port))
    yield from users[:NAMES_MAX]
    if (left := len(users) - NAMES_MAX) > 0:
        text = f"{counts.of(left, 'more host port')} that the pod wants "
        yield Reason(text=f"{text}{counts.verb(left, 'is')} in use", count=left)


def _user(key: ObjectKey, node: str, port: pod_spec.HostPort) -> Reason:
    text = f"host port {pod_spec.port_text(port)} of node {node} is in use by pod "
    return Reason(
        text=f"{text}{key.namespace}/{key.name}",
        about=key,
        rests_on=(key,),
        is_kept=True,
    )
