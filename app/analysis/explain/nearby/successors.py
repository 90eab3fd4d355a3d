"""Devices that a driver publishes in place of withdrawn ones, under other names.

A new version of a driver may name its pools or its devices otherwise. Then the same hardware is
free under its new name, while claims that hold the old name keep it. Whether it is the same
hardware is not recorded. Two things tell: a device of the same driver, name and node in another
pool, and a device of the same driver with a text as an attribute, such as a serial number, that no
other device of the driver has or had.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from app.analysis.explain import tainted
from app.analysis.explain.reasons import NAMES_MAX, Reason, listed
from app.analysis.views import LiveViews
from app.domain.devices import pools
from app.domain.devices.model import Device, Slice
from app.domain.devices.nodes import Node, NodeSelectionError, node_of
from app.domain.log import ObjectKey
from app.domain.values import api_resources, counts, selectors, timestamps
from app.domain.values.fields import dra, meta
from app.domain.values.identifiers import DeviceId
from app.domain.values.json_tree import JsonView
from app.domain.values.selectors import SelectorError


class Successor(NamedTuple):
    """A device of a claim that is published no more, and the one of its name in another pool."""

    held: DeviceId
    published: DeviceId
    slice: ObjectKey


def of_claim(views: LiveViews, tree: JsonView) -> Iterator[Successor]:
    """The devices of a claim that have a successor, in slices made since they were allocated."""
    allocation = dra.allocation(tree)
    lost = [each.id for each in dra.results(tree) if not tainted.device_of(views, each.id)]
    since = None if allocation is None else timestamps.instant_of(dra.allocation_time(allocation))
    if allocation is None or since is None or not lost:
        return
    places = list(_places(views, allocation))
    names = {(driver, name) for driver, _, name in lost}
    successors: dict[tuple[str, str], tuple[DeviceId, ObjectKey]] = {}
    for pool in views.inventory.pool_ids():
        for one in pools.newest(views.inventory.slices_of(pool)):
            wanted = [each.id for each in one.devices if each.id[::2] in names]
            key = ObjectKey(*api_resources.RESOURCE_SLICES, "", one.key)
            if wanted and _is_since(views, key, since) and _is_for_any(one, places):
                successors |= {device[::2]: (device, key) for device in wanted}
    for held in lost:
        if (successor := successors.get(held[::2])) is not None:
            yield Successor(held, *successor)


def reasons(views: LiveViews, tree: JsonView) -> Iterator[Reason]:
    """The successors of a claim's devices, each with its holder."""
    successors = [*of_claim(views, tree)]
    for each in successors[:NAMES_MAX]:
        yield _reason(views, each)
    known = {each.held for each in successors}
    lost = [each.id for each in dra.results(tree) if not tainted.device_of(views, each.id)]
    allocation = dra.allocation(tree)
    if allocation is not None and (lost := [held for held in lost if held not in known]):
        yield from of_other_drivers(views, lost, [*_places(views, allocation)])


def of_other_drivers(
    views: LiveViews, held: Sequence[DeviceId], places: Sequence[Node]
) -> Iterator[Reason]:
    """The drivers that publish devices of the same names on the same nodes.

    A driver whose new version has another name does not prepare what claims have by the old one.
    """
    drivers = {driver for driver, _, _ in held}
    wanted = {name for _, _, name in held}
    names: dict[str, dict[str, ObjectKey]] = {}
    for pool in views.inventory.pool_ids():
        if pool[0] in drivers:
            continue
        for one in pools.newest(views.inventory.slices_of(pool)):
            same = [each.id[2] for each in one.devices if each.id[2] in wanted]
            if same and _is_for_any(one, places):
                key = ObjectKey(*api_resources.RESOURCE_SLICES, "", one.key)
                names.setdefault(pool[0], {}).update(dict.fromkeys(same, key))
    for driver, slices in sorted(names.items()):
        devices = "a device of the same name" if len(slices) == 1 else "devices of the same names"
        yield Reason(
            text=f"driver {driver} publishes {devices} for the same node, "
            f"{listed(sorted(slices), len(slices))}: the driver may have been renamed",
            about=next(iter(slices.values())),
            is_kept=True,
        )


def renamed(views: LiveViews, then: LiveViews, withdrawn: Device) -> Iterator[Reason]:
    """The device that alone has texts which only a withdrawn device had at an earlier moment."""
    driver = withdrawn.id[0]
    before = {each.id: _texts(each) for _, each in _devices(then, driver)}
    own = before.pop(withdrawn.id, frozenset()).difference(*before.values())
    now = [(one, each) for one, each in _devices(views, driver) if own & _texts(each)]
    if len(now) != 1 or now[0][1].id in before:
        return
    ((one, device),) = now
    shared = [f"{name} {value}" for name, value in sorted(own & _texts(device))]
    text = f"device {'/'.join(device.id)} is published with the same {listed(shared, len(shared))}"
    key = ObjectKey(*api_resources.RESOURCE_SLICES, "", one.key)
    yield _having(views, Successor(withdrawn.id, device.id, key), text)


def _devices(views: LiveViews, driver: str) -> Iterator[tuple[Slice, Device]]:
    """The devices that a driver publishes in the newest generations of its pools."""
    for pool in views.inventory.pool_ids():
        if pool[0] == driver:
            for one in pools.newest(views.inventory.slices_of(pool)):
                yield from ((one, each) for each in one.devices)


def _texts(device: Device) -> frozenset[tuple[str, str]]:
    """The attributes of a device that are texts, with their values."""
    values = ((name, _string(tree)) for name, tree in device.attributes.items())
    return frozenset((name, value) for name, value in values if value)


def _string(tree: object) -> str:
    value = tree.get("string") if isinstance(tree, dict) else None
    return value if isinstance(value, str) else ""


def of_device(views: LiveViews, device: DeviceId) -> Iterator[Reason]:
    """The successors of a device that claims hold."""
    for holder in views.allocated.holders(device):
        namespace, _, name = holder.rpartition("/")
        key = ObjectKey(*api_resources.RESOURCE_CLAIMS, namespace, name)
        for each in of_claim(views, views.objects.get(key) or {}):
            if each.held == device:
                yield _reason(views, each)
                return


def summary(successors: Iterable[Successor]) -> str:
    """The pools in which devices of the same names are published, as a sentence; empty for none."""
    moved: dict[str, None] = {}
    count = 0
    for each in successors:
        moved[f"{'/'.join(each.held[:2])} → {'/'.join(each.published[:2])}"] = None
        count += 1
    if not moved:
        return ""
    are = counts.verb(count, "is")
    text = f"{counts.of(count, 'device')} of the same {counts.plural(count, 'name')} {are} "
    text += "published for the same node in another pool since, and other claims can get "
    return f"{text}{'it' if count == 1 else 'them'}: {listed([*moved], len(moved))}"


def _reason(views: LiveViews, one: Successor) -> Reason:
    text = f"pool {'/'.join(one.published[:2])} publishes a device of the same name "
    return _having(views, one, f"{text}{one.published[2]} for the same node")


def _having(views: LiveViews, one: Successor, text: str) -> Reason:
    """The reason that a successor is published, and its holder."""
    holders = views.allocated.holders(one.published)
    text += ", which "
    if holders:
        text += f"{counts.plural(len(holders), 'claim')} {listed(sorted(holders), len(holders))} "
        text += counts.verb(len(holders), "has")
    else:
        text += "another claim may get"
    return Reason(
        text=text,
        about=one.slice,
        holds=partial(_has, one.published),
        since="; so written",
        is_kept=True,
    )


def _has(device: DeviceId, tree: JsonView) -> bool:
    is_pool = dra.pool_id(tree) == device[:2]
    return is_pool and any(each.get("name") == device[2] for each in dra.devices(tree))


def _is_since(views: LiveViews, key: ObjectKey, since: int) -> bool:
    """Whether a slice was made after an instant, as far as its second tells."""
    made = timestamps.instant_of(meta.creation_timestamp(views.objects.get(key) or {}))
    return made is not None and made >= since


def _places(views: LiveViews, allocation: JsonView) -> Iterator[Node]:
    """The nodes on which an allocated claim can be used."""
    tree = allocation.get("nodeSelector")
    try:
        chosen = selectors.node_selector_of(tree) if isinstance(tree, dict) else None
    except SelectorError:
        return
    for key in views.objects.keys(*api_resources.NODES):
        node = node_of(views.objects.get(key) or {})
        if chosen is None or chosen.matches(node.name, node.labels):
            yield node


def _is_for_any(one: Slice, places: Iterable[Node]) -> bool:
    try:
        return any(one.node.matches(node) for node in places)
    except NodeSelectionError:
        return False
