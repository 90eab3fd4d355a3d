"""One cell of a sweep: a function of a bundle and of plain data.

A recording whose pods arrive as recorded is decided at the recorded pace, as in a rehearsal, by the
control plane that its recording indicates. Every other cell is decided as fast as possible.
"""

import hashlib
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import anyio
import msgspec

from app.adapters.private_folders import PrivateFolder
from app.analysis.minimise.material import Candidate, Material
from app.analysis.replay.variants import Switches
from app.analysis.sweep import measures, variation
from app.analysis.sweep.plans import InputChange
from app.bootstrap import garbage_collection, replays
from app.bootstrap.control_planes import ForkPlanes
from app.bootstrap.engines import Engines
from app.bootstrap.minimising import sources
from app.bootstrap.minimising.sources import Source
from app.bootstrap.stores import find_history, memory_store
from app.domain.log import HistoryInfo
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import Instant
from app.service.rehearsing import worlds
from app.service.rehearsing.runs import Worlds
from app.service.replays.deciding import continuing
from app.service.replays.deciding.continuing import Control
from app.service.replays.trials import Runner
from app.settings import Settings

_SOURCES_MAX = 4


class _Bundle:
    """A bundle, compared by its content, as a key in a worker's cache."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.digest = hashlib.sha256(content).hexdigest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Bundle) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)


@dataclass(frozen=True, slots=True, kw_only=True)
class _History:
    """A bundle that was read: its parts, and for a recording the control plane that agrees."""

    source: Source
    info: HistoryInfo
    control: Control | None


def run(bundle: bytes, data: Any) -> JsonObject:
    """The row of a cell. Raises InputError for unknown switches."""
    # The objects that a run drops form no cycles; looking for cycles would be a sixth of the work.
    with garbage_collection.one_pass():
        return _run(_history(_Bundle(bundle)), data)


def _run(history: _History, data: Any) -> JsonObject:
    change = None if data["change"] is None else msgspec.convert(data["change"], InputChange)
    switches = Switches(profile=data["profile"], gates=data["gates"], quirks=data["quirks"])
    if history.control is not None and not data["seed"]:
        return _as_it_came(history, history.control, change, switches)
    return _at_once(history, change, switches, data["seed"], data["jitter"])


def _as_it_came(
    history: _History, control: Control, change: InputChange | None, switches: Switches
) -> JsonObject:
    """The row of the recorded inputs, decided at their instants, at the recorded pace."""
    recording = copy(control.runs.recording)
    material = Material(steps=recording.inputs, made=recording.made)
    recording.inputs = list(variation.varied(material, change, 0, 0.0).steps)
    control = replace(control, runs=replace(control.runs, recording=recording))
    info = worlds.under(history.info, "", control.switches)
    info = worlds.under(info, switches.profile, switches)
    planes = ForkPlanes(Settings())
    made = Worlds(control=control, planes=planes, seed=info.seed)
    world = anyio.run(made.world, info)
    return _row(measures.measured(world.side), world.run.not_done)


def _at_once(
    history: _History, change: InputChange | None, switches: Switches, seed: int, jitter: float
) -> JsonObject:
    """The row of the inputs, decided as soon as they arrive."""
    source = history.source
    material = variation.varied(source.decided, change, seed, jitter)
    settings = {name: value for name, value in source.info.settings.items() if name != "recorded"}
    info = msgspec.structs.replace(source.info, settings=settings)
    until = Instant(max(source.last, variation.latest(material.steps)))
    candidate = Candidate(kept=frozenset(range(len(material.steps))), until=until)
    ran = Runner(material, info, Engines()).run(candidate, switches)
    return _row(measures.measured(ran.side, ran.views), ran.not_done)


def _row(measured: JsonObject, not_done: Mapping[str, int]) -> JsonObject:
    return {**measured, "notDone": sum(not_done.values())}


@lru_cache(maxsize=_SOURCES_MAX)
def _history(bundle: _Bundle) -> _History:
    with PrivateFolder() as folder:
        path = Path(folder) / "history.zip"
        path.write_bytes(bundle.content)
        return anyio.run(_read, path)


async def _read(path: Path) -> _History:
    settings, store = Settings(), memory_store()
    name = await replays.load_files(store, settings, (path,))
    source = await sources.read(store, settings, name, "", None)
    stored = await find_history(store, name)
    info = await replays.with_settings(store, settings, stored, None)
    control = None
    if info.settings.get("recorded"):
        control = await continuing.find_control(
            store.log,
            info,
            None,
            until=(await store.log.head(info.id)).revision,
            planes=ForkPlanes(settings),
        )
    return _History(source=source, info=info, control=control)
