"""The sources of the taints that keep a waiting pod from devices: the writes that set them."""

from collections.abc import Sequence
from functools import partial

from app.analysis.explain import circumstances, sources, tainted
from app.analysis.explain.node_reasons import NodeReason
from app.analysis.explain.reasons import NAMES_MAX, Reason
from app.analysis.explain.tainted import TaintSource
from app.analysis.explain.tallies import devices_text
from app.analysis.views import LiveViews
from app.domain.allocation.reasons.causes import CauseKind
from app.domain.devices import pools
from app.domain.devices.model import Device
from app.domain.log import ObjectKey
from app.domain.values import identifiers
from app.domain.values.identifiers import DeviceId, PoolId
from app.domain.values.json_tree import JsonView
from app.service.explaining.evidence import ExplainedMoment
from app.service.explaining.former_circumstances import kept


async def reasons(evidence: ExplainedMoment, nodes: Sequence[NodeReason]) -> list[Reason]:
    """The sources of taints: for each taint and object, the write that set it, and the devices."""
    taints, names = _excluded(nodes)
    devices = _EffectiveDevices(evidence.views)
    origins: dict[tuple[str, ObjectKey], dict[str, TaintSource]] = {}
    rules = evidence.views.inventory.rules().values()
    are_by_slices = not any(rule.taint.text in taints for rule in rules)
    not_shown = ""
    for name in names:
        if name.rpartition("/")[0] == not_shown:
            continue
        device_id = identifiers.parse_device(name)
        if are_by_slices and len(origins) >= NAMES_MAX and not devices.knows(device_id[:2]):
            # Slices of other pools are not shown.
            not_shown = name.rpartition("/")[0]
            continue
        slice_key, device = devices.of(device_id)
        for taint in () if device is None else device.taints:
            if taint.text in taints:
                source = tainted.origin(evidence.views, device_id, taint, slice_key)
                origins.setdefault((taint.text, source.about), {})[name] = source
    reasons: list[Reason] = []
    for (taint_text, key), of_devices in list(origins.items())[:NAMES_MAX]:
        those = [*of_devices.values()]
        since = sources.since(await evidence.changes(key), partial(_taints_all, those))
        if since is not None and evidence.sight.sees(since):
            what = (
                devices_text(len(those)) if len(those) > 1 else f"device {next(iter(of_devices))}"
            )
            text = f"{those[0].text} taints {what} {taint_text} "
            reasons.append(kept(since, f"{text}since it was written"))
    return reasons


def _taints_all(of_devices: Sequence[TaintSource], tree: JsonView) -> bool:
    return all(source.holds(tree) for source in of_devices)


def _excluded(nodes: Sequence[NodeReason]) -> tuple[set[str], dict[str, None]]:
    """The texts of the taints that exclude devices, and the names of these devices."""
    taints: set[str] = set()
    names: dict[str, None] = {}
    for group in circumstances.excluded(nodes, CauseKind.TAINT):
        if group.reason.cause is not None:
            taints.add(group.reason.cause.about)
            names.update(dict.fromkeys(group.devices))
    return taints, names


class _EffectiveDevices:
    """The effective devices with the keys of their slices; each pool is read once."""

    def __init__(self, views: LiveViews) -> None:
        self._views = views
        self._pools: dict[PoolId, dict[DeviceId, tuple[str, Device]]] = {}

    def knows(self, pool: PoolId) -> bool:
        """Whether a device of the pool was looked up before."""
        return pool in self._pools

    def of(self, device_id: DeviceId) -> tuple[str, Device | None]:
        """The key of the slice of a device and the device; None when it is not published."""
        pool = device_id[:2]
        if pool not in self._pools:
            # Of two devices of one name, the first counts.
            self._pools[pool] = {
                device.id: (one.key, device)
                for one in reversed(pools.newest(self._views.inventory.slices_of(pool)))
                for device in one.devices
            }
        return self._pools[pool].get(device_id, ("", None))
