"""Users of devices that a pod waits for."""

import re
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import suppress

from app.analysis.explain import sources, stuck
from app.analysis.explain.reasons import NAMES_MAX, Reason, listed
from app.analysis.views import LiveViews
from app.domain.controllers.resources import claim_key
from app.domain.devices.pools import newest
from app.domain.log import ObjectKey
from app.domain.values import api_resources, quantity
from app.domain.values.fields import core, dra, meta
from app.domain.values.identifiers import DeviceId, PoolId
from app.domain.values.json_tree import JsonObject
from app.domain.values.quantity import QuantityError, QuantityFormat
from app.domain.values.texts import kind_words, notation

HOLDERS_MAX = 200
"""The number of holders of devices that are examined."""

HOLDERS_NAMED_MAX = 8
"""Holders of devices up to which the pods of the first few are named one by one."""


def users(views: LiveViews, holders: Collection[str]) -> Iterator[Reason]:
    """The pods that use claims (`NAMESPACE/CLAIM`).

    Of many claims the answer names instead the workloads whose pods use the most.
    """
    if len(holders) > HOLDERS_NAMED_MAX:
        yield _workloads(views, holders)
        return
    count = 0
    for holder in holders:
        namespace, _, name = holder.rpartition("/")
        key = claim_key(namespace, name)
        claim = views.objects.get(key) or {}
        consumers = dra.consumers(claim)
        if not consumers or meta.is_deleting(claim):
            continue
        text = f"claim {holder} is used by {stuck.consumers_text(namespace, consumers)}"
        (first, *others) = consumers
        if not others and (first.api_group, first.resource) == api_resources.PODS:
            text += _whereabouts(views, f"{namespace}/{first.name}")
        revision = sources.revision_of(views.objects, key)
        yield Reason(text=text, revision=revision, about=key, is_kept=True)
        count += 1
        if count == NAMES_MAX:
            return


def _workloads(views: LiveViews, holders: Collection[str]) -> Reason:
    """The workloads of the pods that use holders, those with the most holders first."""
    owners: Counter[str] = Counter()
    sets: dict[ObjectKey, None] = {}
    for holder in holders:
        namespace, _, name = holder.rpartition("/")
        claim = views.objects.get(claim_key(namespace, name)) or {}
        owners[_owner_of(views, namespace, claim, sets)] += 1
    # More than three are cut by `listed`, so the rest is one part.
    most = owners.most_common(NAMES_MAX - 1)
    parts = [f"{count} of {owner}" for owner, count in most]
    if rest := len(holders) - sum(count for _, count in most):
        parts.append(f"{rest} of others")
    more = " or more" if len(holders) >= HOLDERS_MAX else ""
    if len(owners) == 1 and not more:
        text = f"all {len(holders)} claims that have the devices are of {most[0][0]}"
    else:
        text = f"of {len(holders)}{more} claims that have the devices, {', '.join(parts)}"
    return Reason(text=text, count=len(holders), is_kept=True, rests_on=tuple(sets))


def _owner_of(
    views: LiveViews, namespace: str, claim: JsonObject, sets: dict[ObjectKey, None]
) -> str:
    """The workload of the first pod that a claim is reserved for, as text.

    ReplicaSets that say which Deployment that is are added to `sets`.
    """
    consumer = next(iter(dra.consumers(claim)), None)
    if consumer is None:
        return f"no pod in namespace {namespace}"
    key = ObjectKey(*api_resources.PODS, namespace, consumer.name)
    owner = meta.controller(views.objects.get(key) or {})
    if owner is not None and owner.kind == "ReplicaSet":
        made = ObjectKey(*api_resources.REPLICA_SETS, namespace, owner.name)
        sets[made] = None
        owner = meta.controller(views.objects.get(made) or {}) or owner
    if owner is None:
        return f"single pods of namespace {namespace}"
    return f"{kind_words.in_sentence(owner.kind)} {namespace}/{owner.name}"


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
        texts = notation.alike([amounts[holder] for holder in largest], _form(views, device, name))
        parts = [f"{holder} has {text}" for holder, text in zip(largest, texts, strict=True)]
        text = f"of {about} of {'/'.join(device)}, {listed(parts, len(parts))}"
        yield Reason(text=text, count=len(parts), is_kept=True)


def _form(views: LiveViews, device: DeviceId, name: str) -> QuantityFormat:
    """The notation in which a device publishes a capacity."""
    for one in newest(views.inventory.slices_of(device[:2])):
        for published in one.devices:
            if published.id == device and name in published.capacity:
                return published.capacity[name].value.format
    return QuantityFormat.UNKNOWN


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
    of_owner = f" of {kind_words.in_sentence(owner.kind)} {owner.name}" if owner is not None else ""
    return of_owner + (f" on node {node}" if node else "")
