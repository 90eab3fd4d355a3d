"""Users of devices that a pod waits for, where the name of the claim does not say enough."""

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress

from app.analysis.explain.reasons import NAMES_MAX, Reason, listed
from app.analysis.views import LiveViews
from app.domain.allocation import capacity
from app.domain.controllers.resources import claim_key
from app.domain.devices.pools import newest
from app.domain.log import ObjectKey
from app.domain.values import api_resources, counts, quantity
from app.domain.values.fields import core, dra, meta
from app.domain.values.identifiers import DeviceId, PoolId
from app.domain.values.json_tree import JsonObject
from app.domain.values.quantity import QuantityError


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


def shares(views: LiveViews, device: DeviceId, about: str) -> Iterator[Reason]:
    """The shares of several claims in a capacity of a shared device, the largest first."""
    name = about.removeprefix("capacity ")
    amounts: dict[str, int] = {}
    for holder in dict.fromkeys(views.allocated.holders(device)):
        namespace, _, claim = holder.rpartition("/")
        for result in dra.results(views.objects.get(claim_key(namespace, claim)) or {}):
            if result.id == device and name in result.consumed_capacity:
                with suppress(QuantityError):
                    consumed = quantity.from_json(result.consumed_capacity[name]).nanos
                    amounts[holder] = amounts.get(holder, 0) + consumed
    if len(amounts) > 1:
        largest = sorted(amounts, key=lambda holder: -amounts[holder])
        parts = [f"{holder} has {capacity.shown(amounts[holder])}" for holder in largest]
        text = f"of {about} of {'/'.join(device)}, {listed(parts, len(parts))}"
        yield Reason(text=text, count=len(parts), is_kept=True)


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
    node, owner = core.node_name(tree), meta.controller(tree)
    of_owner = f" of {owner.kind.lower()} {owner.name}" if owner is not None else ""
    return of_owner + (f" on node {node}" if node else "")
