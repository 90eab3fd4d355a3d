"""The current state of a device: its effective values with their origin, and its taints."""

from collections.abc import Callable, Iterator

from app.analysis.explain import sources, tainted
from app.analysis.explain.hardware.biography import shown
from app.analysis.explain.nearby import nodes
from app.analysis.explain.reasons import Reason
from app.analysis.views import LiveViews
from app.domain.devices import pools
from app.domain.devices.model import AppliedPatch
from app.domain.log import ObjectKey
from app.domain.values import api_resources
from app.domain.values.fields import dra
from app.domain.values.identifiers import DeviceId


def patched(
    views: LiveViews, place: DeviceId, wanted: Callable[[AppliedPatch], bool] = lambda _: True
) -> Iterator[Reason]:
    """Each value that a ResourceSlicePatch changed, with the value that the driver published.

    Only values that are `wanted`.
    """
    slice_and_device = tainted.device_of(views, place)
    if slice_and_device is None:
        return
    device = slice_and_device[1]
    for applied in filter(wanted, device.patches):
        _, _, short = applied.name.rpartition("/")
        effective, published = device.capacity_tree, dra.capacity(device.tree)
        if applied.field == "attributes":
            effective, published = device.attributes, dra.attributes(device.tree)
        now = effective.get(applied.name, effective.get(short))
        was = published.get(applied.name, published.get(short))
        value = "removed" if applied.removed else f"is {shown(now)}"
        key = ObjectKey(*api_resources.RESOURCE_SLICE_PATCHES, "", applied.patch)
        patch = views.inventory.patches().get(applied.patch)
        priority = f", priority {patch.priority}" if patch is not None else ""
        noun = "attribute" if applied.field == "attributes" else "capacity"
        yield Reason(
            text=f"{noun} {applied.name} {value} by patch {applied.patch}{priority}; the driver "
            f"published {shown(was)}",
            revision=sources.revision_of(views.objects, key),
            about=key,
            is_kept=True,
        )


def for_nodes(views: LiveViews, place: DeviceId) -> Iterator[Reason]:
    """The nodes that may use a device, where that is not the one node of its slice."""
    for one in pools.newest(views.inventory.slices_of(place[:2])):
        device = next((each for each in one.devices if each.id == place), None)
        if device is not None and (one.per_device or not one.node.name):
            choice = device.node if one.per_device else one.node
            text = f"for {nodes.nodes_text(choice, nodes.all_nodes(views))}"
            is_denial = text.endswith(nodes.DENIALS)
            yield Reason(text=text, denies=("nodes",) if is_denial else ())
