"""One cell of a sweep: a function of a bundle and of plain data."""

import hashlib
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import anyio
import msgspec

from app.analysis.minimise.material import Candidate
from app.analysis.replay.variants import Switches
from app.analysis.sweep import measures, variation
from app.analysis.sweep.plans import Change
from app.bootstrap.engines import Engines
from app.bootstrap.minimising import sources
from app.bootstrap.minimising.sources import Source
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import Instant
from app.service.replays.trials import Runner
from app.settings import Settings

_SOURCES_MAX = 4


class _Bundle:
    """A bundle by its content, for the memory of a worker."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.digest = hashlib.sha256(content).hexdigest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Bundle) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)


def run(bundle: bytes, data: Any) -> JsonObject:
    """The row of a cell. Raises InputError for switches that are not known."""
    source = _source(_Bundle(bundle))
    change = None if data["change"] is None else msgspec.convert(data["change"], Change)
    material = variation.varied(source.decided, change, data["seed"], data["jitter"])
    settings = {name: value for name, value in source.info.settings.items() if name != "recorded"}
    info = msgspec.structs.replace(source.info, settings=settings)
    until = Instant(max(source.last, variation.latest(material.steps)))
    candidate = Candidate(kept=frozenset(range(len(material.steps))), until=until)
    switches = Switches(profile=data["profile"], gates=data["gates"], quirks=data["quirks"])
    ran = Runner(material, info, Engines()).run(candidate, switches)
    return {**measures.measured(ran.side), "notDone": sum(ran.not_done.values())}


@lru_cache(maxsize=_SOURCES_MAX)
def _source(bundle: _Bundle) -> Source:
    with TemporaryDirectory(prefix="redra-sweep-") as folder:
        path = Path(folder) / "history.zip"
        path.write_bytes(bundle.content)
        return anyio.run(sources.read_files, Settings(), (path,), None)
