"""Users of devices that a pod waits for, where the name of the claim does not say enough."""

import re
from collections.abc import Iterable, Iterator

from app.analysis.explain.reasons import NAMES_MAX, Reason, listed
from app.analysis.views import LiveViews
from app.domain.controllers.resources import claim_key
from app.domain.devices.pools import newest
from app.domain.log import ObjectKey
from app.domain.values import api_resources, counts
from app.domain.values.fields import core, dra, meta
from app.domain.values.identifiers import PoolId
from app.domain.values.json_tree import JsonObject


def users(views: LiveViews, pod: JsonObject, holders: Iterable[str]) -> Iterator[Reason]:
    """The pods that use holders (`NAMESPACE/CLAIM`) of another namespace, or that were made for."""
    count = 0
    for holder in holders:
        namespace, _, name = holder.rpartition("/")
        key = claim_key(namespace, name)
        claim = views.objects.get(key) or {}
        if namespace == meta.namespace(pod) and meta.controller(claim) is None:
            continue
        consumers = [f"{namespace}/{each.name}" for each in dra.consumers(claim)]
        if not consumers or meta.is_deleting(claim):
            continue
        text = f"claim {holder} is used by {counts.plural(len(consumers), 'pod')} "
        text += listed(consumers, len(consumers))
        if len(consumers) == 1:
            text += _whereabouts(views, consumers[0])
        event = views.objects.event(key)
        revision = 0 if event is None else event.revision
        yield Reason(text=text, revision=revision, about=key, is_kept=True)
        count += 1
        if count == NAMES_MAX:
            return


_COUNTER = re.compile(r"\bcounter (\S+) of set ([^\s:]+)")
"""A counter in the text of a cause."""


def of_counters(views: LiveViews, place: PoolId, cause: str) -> Iterator[str]:
    """The holders of devices that use the counters of a pool which the text of a cause names."""
    lacking = {(counter, counter_set) for counter, counter_set in _COUNTER.findall(cause)}
    for one in newest(views.inventory.slices_of(place)):
        for device in one.devices:
            used = {(counter, name) for name, each in device.consumes for counter, _ in each}
            if used & lacking:
                yield from views.allocated.holders(device.id)


def _whereabouts(views: LiveViews, pod: str) -> str:
    namespace, _, name = pod.partition("/")
    tree = views.objects.get(ObjectKey(*api_resources.PODS, namespace, name)) or {}
    node = core.node_name(tree)
    return f" on node {node}" if node else ""
