"""Compiled slices as API objects, as upstream's tracker shows them."""

from app.domain.devices.model import Slice, Taint
from app.domain.values.fields import dra
from app.domain.values.json_tree import JsonObject


def merged_tree(resource_slice: Slice) -> JsonObject:
    """The slice as an API object, with the taints of rules and the values of patches merged in."""
    originals = dra.devices(resource_slice.tree)
    changed: dict[int, JsonObject] = {}
    for index, device in enumerate(resource_slice.devices):
        added = [taint for taint in device.taints if taint.rule]
        if not added and not device.patches:
            continue
        tree = dict(originals[index])
        if device.patches:
            tree["attributes"] = dict(device.attributes)
            tree["capacity"] = dict(device.capacity_tree)
        if added:
            tree["taints"] = [
                *dra.device_taints(tree),
                *(_taint_object(taint) for taint in added),
            ]
        changed[index] = tree
    if not changed:
        return resource_slice.tree
    spec = dict(resource_slice.tree["spec"])
    spec["devices"] = [changed.get(index, tree) for index, tree in enumerate(originals)]
    return {**resource_slice.tree, "spec": spec}


def _taint_object(taint: Taint) -> JsonObject:
    written = {
        "key": taint.key,
        "value": taint.value,
        "effect": taint.effect,
        "timeAdded": taint.time_added,
    }
    return {name: value for name, value in written.items() if value}
