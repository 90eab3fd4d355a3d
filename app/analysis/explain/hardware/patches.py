"""ResourceSlicePatches: what a patch changes on each device, and which patches override it."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from app.analysis.explain import sources
from app.analysis.explain.hardware.biography import shown
from app.analysis.explain.reasons import NAMES_MAX, Reason, listed
from app.analysis.explain.tallies import devices_text
from app.analysis.views import LiveViews
from app.domain.devices.inventory import Inventory
from app.domain.devices.model import AppliedPatch, Device, Slice
from app.domain.devices.patches import SlicePatch
from app.domain.log import Event, ObjectKey
from app.domain.values import api_resources
from app.domain.values.fields import dra


@dataclass(slots=True, kw_only=True)
class _Effect:
    """Devices on which one change has the same effect."""

    text: str
    winner: str = ""
    devices: list[str] = field(default_factory=list)


def summary(views: LiveViews, patch: SlicePatch) -> tuple[str, list[Reason]]:
    """A summary sentence, and each change with the devices that it affects."""
    effects: dict[tuple[str, str], _Effect] = {}
    changed = named = 0
    problems: dict[str, list[str]] = {}
    for resource_slice in views.inventory.slices():
        for device in resource_slice.devices:
            if not patch.names(device.id):
                continue
            named += 1
            lines = list(_on_device(views, patch, device))
            changed += any(not effect.winner for effect in lines)
            for effect in lines:
                known = effects.setdefault((effect.text, effect.winner), effect)
                known.devices.append(device.text)
        for problem in resource_slice.patch_problems:
            if problem.patch == patch.name:
                problems.setdefault(problem.problem, []).append("/".join(problem.device))
    reasons = [_line(views, effect) for effect in effects.values()]
    for text, names in problems.items():
        heading = f"passed over on {devices_text(len(names))} ({listed(names, len(names))}): {text}"
        reasons.insert(0, Reason(text=heading, count=len(names), is_kept=True))
    if patch.problem:
        reasons.insert(0, Reason(text=f"its selectors cannot be asked: {patch.problem}"))
    return f"changes {changed} of {devices_text(named)} that its filter names", reasons


def as_published(one: Slice) -> dict[str, Device]:
    """The devices of a slice as their driver published them, by name: no patch changes them."""
    return {
        device.id[2]: device
        for published in Inventory.of_slices([one.tree]).slices()
        for device in published.devices
    }


def changes(device: Device) -> Iterator[tuple[AppliedPatch, str]]:
    """Each value of a device that a patch changed, with what it does, as text."""
    for applied in device.patches:
        noun, effective, published = "capacity", device.capacity_tree, dra.capacity(device.tree)
        if applied.field == "attributes":
            noun, effective = "attribute", device.attributes
            published = dra.attributes(device.tree)
        _, _, short = applied.name.rpartition("/")
        was = published.get(applied.name, published.get(short))
        origin = "which was not published" if was is None else f"published as {shown(was)}"
        text = f"removes {noun} {applied.name}, {origin}"
        if not applied.removed:
            now = shown(effective.get(applied.name, effective.get(short)))
            text = f"sets {noun} {applied.name}, {origin}, to {now}"
        yield applied, f"patch {applied.patch} {text}"


def events(views: LiveViews, device: Device) -> dict[str, Event]:
    """The last write of each patch that changed a device, by the name of the patch."""
    names = dict.fromkeys(applied.patch for applied in device.patches)
    writes = {
        name: views.objects.event(ObjectKey(*api_resources.RESOURCE_SLICE_PATCHES, "", name))
        for name in names
    }
    return {name: event for name, event in writes.items() if event is not None}


def _on_device(views: LiveViews, patch: SlicePatch, device: Device) -> Iterator[_Effect]:
    """The effect of each change of the patch on one device."""
    applied = {(one.field, one.name): one for one in device.patches}
    for part, changes, published in (
        ("attributes", patch.attributes, dra.attributes(device.tree)),
        ("capacity", patch.capacity, dra.capacity(device.tree)),
    ):
        for name, value in changes.items():
            one = applied.get((part, name))
            if one is None:
                continue
            short = name.rpartition("/")[2]
            was = shown(published.get(name, published.get(short)))
            if one.patch == patch.name:
                now = "removed" if one.removed else shown(value)
                yield _Effect(text=f"{name} becomes {now}, published is {was}")
                continue
            winner = views.inventory.patches()[one.patch]
            text = f"{name} loses to patch {winner.name}: "
            if winner.priority != patch.priority:
                text += f"priority {winner.priority} is higher than {patch.priority}"
            else:
                text += f"of equal priority {patch.priority} the older one wins"
            yield _Effect(text=text, winner=winner.name)


def _line(views: LiveViews, effect: _Effect) -> Reason:
    count = len(effect.devices)
    names = ", ".join(effect.devices[:NAMES_MAX])
    subject = names if count <= NAMES_MAX else f"{devices_text(count)}, such as {names}"
    key = ObjectKey(*api_resources.RESOURCE_SLICE_PATCHES, "", effect.winner)
    return Reason(
        text=f"{subject}: {effect.text}",
        count=count,
        revision=sources.revision_of(views.objects, key) if effect.winner else 0,
        about=key if effect.winner else None,
        is_kept=bool(effect.winner),
    )
