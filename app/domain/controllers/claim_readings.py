"""The parts of an event's claim that controllers read, each read once for all of them."""

from collections.abc import Iterable
from sys import intern

import msgspec

from app.domain.log import Event
from app.domain.values.fields import dra, entries, meta
from app.domain.values.fields.dra import DeviceResult
from app.domain.values.identifiers import DeviceName, DriverName, PoolName, Uid
from app.domain.values.json_tree import JsonObject


class ClaimReading(msgspec.Struct):
    """The parts of a claim that were read so far."""

    tree: JsonObject
    _owner: Uid | None = None
    _results: tuple[DeviceResult, ...] | None = None
    _reserved: tuple[tuple[str, Uid], ...] | None = None

    @property
    def owner_uid(self) -> Uid:
        """The uid of the owner that controls the claim; empty without one."""
        if self._owner is None:
            self._owner = meta.controller_uid(self.tree)
        return self._owner

    @property
    def results(self) -> tuple[DeviceResult, ...]:
        """The devices of the claim, whose names exist once; empty while it is not allocated."""
        if self._results is None:
            self._results = tuple(map(_interned, dra.results(self.tree)))
        return self._results

    @property
    def reserved(self) -> tuple[tuple[str, Uid], ...]:
        """The name and uid of each pod that the claim is reserved for."""
        if self._reserved is None:
            self._reserved = reserved_pods(dra.reserved_for(self.tree))
        return self._reserved


def reserved_pods(references: Iterable[JsonObject]) -> tuple[tuple[str, Uid], ...]:
    """The name and uid of each pod among the consumers of a claim."""
    pods = [ref for ref in references if ref.get("resource") == "pods"]
    return tuple([(entries.name(ref), entries.uid(ref)) for ref in pods])


def of_event(event: Event) -> ClaimReading:
    """The reading of the claim of an event, which all controllers that fold it share."""
    tree = event.object
    reading = event.reading
    if reading is not None and reading[0] is tree:
        known = reading[1]
        if known.__class__ is ClaimReading:
            return known
    fresh = ClaimReading(tree)
    event.reading = (tree, fresh)
    return fresh


def _interned(result: DeviceResult) -> DeviceResult:
    return msgspec.structs.replace(
        result,
        request=intern(result.request),
        driver=DriverName(intern(result.driver)),
        pool=PoolName(intern(result.pool)),
        device=DeviceName(intern(result.device)),
    )
