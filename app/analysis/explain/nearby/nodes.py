"""Nodes that take no further pod, and nodes for which no driver has published anything."""

from collections.abc import Iterator, Sequence

from app.analysis.explain.reasons import NAMES_MAX, Reason, listed
from app.analysis.views import LiveViews
from app.domain.log import ObjectKey
from app.domain.values import api_resources, counts
from app.domain.values.fields import core

TOO_MANY = "Too many pods"
"""The scheduler's words for a node that takes no further pod."""


def full(views: LiveViews, names: Sequence[str]) -> Iterator[Reason]:
    """How many pods each of these full nodes takes, and has."""
    if not names:
        return
    used: dict[str, int] = {}
    for key in views.objects.keys(*api_resources.PODS):
        tree = views.objects.get(key) or {}
        if not core.is_finished(tree):
            used[core.node_name(tree)] = used.get(core.node_name(tree), 0) + 1
    for name in names[:NAMES_MAX]:
        key = ObjectKey(*api_resources.NODES, "", name)
        most = str(core.allocatable(views.objects.get(key) or {}).get("pods") or "0")
        text = f"node {name} takes {most} pods at a time"
        has = counts.of(used.get(name, 0), "pod")
        yield Reason(text=f"{text} and has {has}", about=key, is_kept=True)


def without_driver(views: LiveViews, names: Sequence[str]) -> Iterator[Reason]:
    """The nodes among those without devices for which there is no slice, if others have slices.

    Where most nodes have none, as in clusters with few nodes for devices, nothing is said.
    """
    served = {one.node.name for one in views.inventory.slices() if one.node.name}
    known = {key.name for key in views.objects.keys(*api_resources.NODES)}
    lacking = [name for name in names if name not in served]
    others = len(served & known)
    if lacking and others and len(lacking) <= others:
        text = f"{counts.plural(len(lacking), 'node')} {listed(lacking, len(lacking))} "
        text += f"{counts.plural(len(lacking), 'has')} no slice of any driver, unlike "
        yield Reason(text=f"{text}{counts.of(others, 'other node')}", is_kept=True)
