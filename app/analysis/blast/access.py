"""The devices that new pods can no longer get, or can get again, though the devices do not change.

Their nodes are cordoned, deleted or uncordoned, or no class selects the devices any longer.
"""

from collections.abc import Iterable, Mapping

from app.analysis.blast import devices
from app.analysis.blast.world import Consequences
from app.domain.allocation import AllocatedState
from app.domain.devices.model import Device
from app.domain.values.identifiers import DeviceId


def totals(
    before: Consequences, after: Consequences, classes: Iterable[str], allocated: AllocatedState
) -> dict[str, int]:
    """Counts of devices that become unavailable or available through nodes, and through classes.

    `devices_kept_out_free` counts the devices kept out by nodes that were free before.
    """
    old, new = _allocatable(before), _allocatable(after)
    both = {name: old[name] for name in old.keys() & new.keys()}
    kept_out, let_in = _moved(before.reach, after.reach, both)
    lost, won, other = _selected(before, after, frozenset(classes), both)
    return {
        "devices_kept_out": len(kept_out),
        "devices_kept_out_free": sum(
            devices.is_free(old[name], allocated) for name in kept_out - before.short
        ),
        "devices_let_in": len(let_in),
        "devices_unselected": lost,
        "devices_selected": won,
        "devices_other_class": other,
    }


def _allocatable(state: Consequences) -> dict[DeviceId, Device]:
    usable = devices.usable(state.inventory)
    return {device.id: device for device in usable if devices.is_allocatable(device)}


def _moved(
    before: frozenset[DeviceId] | None,
    after: frozenset[DeviceId] | None,
    both: Mapping[DeviceId, Device],
) -> tuple[set[DeviceId], set[DeviceId]]:
    if before is None or after is None:
        return set(), set()
    return both.keys() & (before - after), both.keys() & (after - before)


def _selected(
    before: Consequences,
    after: Consequences,
    touched: frozenset[str],
    both: Mapping[DeviceId, Device],
) -> tuple[int, int, int]:
    """The numbers of devices lost by all classes, won by a class, and moved between classes.

    Moved are devices that a changed class lost while another class selects them.
    """
    if not touched:
        return 0, 0, 0
    names = before.classes.keys() | after.classes.keys()
    old = {name: _of_class(before, name, both) for name in names}
    new = {name: _of_class(after, name, both) for name in names}
    any_old, any_new = set().union(*old.values()), set().union(*new.values())
    dropped = set().union(*(old[name] - new[name] for name in touched & names))
    return len(any_old - any_new), len(any_new - any_old), len(dropped & any_new)


def _of_class(state: Consequences, name: str, among: Mapping[DeviceId, Device]) -> set[DeviceId]:
    chosen = state.classes.get(name)
    if chosen is None:
        return set()
    return {device.id for device in devices.selected(chosen, list(among.values()))[0]}
