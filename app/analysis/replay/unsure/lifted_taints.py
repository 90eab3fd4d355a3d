"""The taints that devices have lost: since when, and until when, they could not be chosen.

Each taint of a slice has two versions: of the write that shows it first, and of the one that shows
its device without it. A taint of a DeviceTaintRule is not followed.
"""

from collections import defaultdict
from collections.abc import Sequence

from app.analysis.replay.acts import version_of
from app.domain.devices import taints
from app.domain.devices.model import Taint
from app.domain.log import Event, EventType, ObjectKey
from app.domain.values.fields import dra
from app.domain.values.fields.dra import DeviceResult
from app.domain.values.identifiers import DeviceId
from app.domain.values.json_tree import JsonView

_Lifted = tuple[int, int, Taint, ObjectKey]
"""A taint that a device had from one version to another, and the slice that showed it."""


class LiftedTaints:
    """The lost taints of devices, while the slices of a recording are followed."""

    def __init__(self) -> None:
        self._since: dict[tuple[DeviceId, str, str, str], int] = {}
        self._lifted: dict[DeviceId, list[_Lifted]] = defaultdict(list)

    def after(self, event: Event, before: JsonView) -> None:
        """Notes what a write of a slice changes; the end of a slice takes no taint away."""
        if event.type is EventType.OBJECT_DELETED:
            return
        version, now = version_of(event), _taints_in(event.object)
        for device, had in _taints_in(before).items():
            for taint in had if device in now else ():
                if all(_parts(taint) != _parts(each) for each in now[device]):
                    since = self._since.pop((device, *_parts(taint)), 0)
                    self._lifted[device].append((since, version, taint, event.key))
        for device, has in now.items():
            for taint in has:
                self._since.setdefault((device, *_parts(taint)), version)

    def at(self, version: int, result: DeviceResult) -> tuple[Taint, ObjectKey] | None:
        """A taint that the device had at a version, and has lost since, with its slice.

        Only one counts that the request does not tolerate.
        """
        tolerated = [taints.toleration_of(tree) for tree in result.tolerations]
        for since, until, taint, key in self._lifted.get(result.id, ()):
            if 0 < since < version < until and taints.untolerated((taint,), tolerated):
                return taint, key
        return None


def _taints_in(tree: JsonView) -> dict[DeviceId, Sequence[Taint]]:
    """The taints of the devices of a slice."""
    driver, pool = dra.driver(tree), dra.pool_name(tree)
    return {
        (driver, pool, dra.published_name(each)): [
            taints.taint_of(taint) for taint in dra.device_taints(each)
        ]
        for each in dra.devices(tree)
    }


def _parts(taint: Taint) -> tuple[str, str, str]:
    return taint.key, taint.value, taint.effect
