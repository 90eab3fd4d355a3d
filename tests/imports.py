"""Imports of recordings, each made once in a run of the tests, by the first test that needs it.

An import takes a hundred times the work of reading its events from a file. The log gets the same
events and the same history, of which each caller has its own: a test may fork it and append to it.
What an import itself does is tested with the importer.
"""

import hashlib
import pickle
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from app.adapters.history.opening import open_history
from app.adapters.history.reading import ReadOptions
from app.adapters.memory import MemoryLog, MemoryStore
from app.analysis.recordings.fidelity import FidelityReport
from app.bootstrap import process_settings, replays, stores
from app.bootstrap.rules import rules_for
from app.bootstrap.stores import Store
from app.domain.log import Event, HistoryInfo, Revision, chain
from app.domain.objects.profile import Profile
from app.domain.values.json_tree import JsonObject
from app.ports import EventLog
from app.service import importing
from app.service.importing import ImportOptions, ImportResult
from tests.run_folder import locked


class _Import(NamedTuple):
    """What an import made; `report` is None where no caller asks for it."""

    info: HistoryInfo
    events: list[Event]
    report: FidelityReport | None


async def import_once(
    log: EventLog,
    paths: Sequence[Path],
    *,
    name: str,
    profile: Profile | None = None,
    settings: JsonObject | None = None,
) -> ImportResult:
    """Makes the history `name` from files that no test changes, as `importing.import_records`.

    With a `profile` they are read by the rules of its release.
    """

    async def make() -> _Import:
        own = MemoryLog(MemoryStore())
        read = ReadOptions(rules=None if profile is None else rules_for(profile))
        options = ImportOptions(settings=settings or {})
        with open_history(list(paths), read) as source:
            result = await importing.import_records(own, source, name=name, options=options)
        return _Import(result.history, await _events(own, result.history), result.report)

    made = await _made_once(("records", [*paths], profile, settings), make)
    assert made.report is not None
    info = await _append(log, name, made)
    return ImportResult(history=info, head=await log.head(info.id), report=made.report)


async def load_once(store: Store, path: Path, profile: str = "") -> str:
    """Makes a history of a file that no test changes, as `replays.load_files`; returns its name."""

    async def make() -> _Import:
        own = stores.memory_store()
        settings = process_settings.settings(**({"profile": profile} if profile else {}))
        name = await replays.load_files(own, settings, (path,))
        info = await own.log.find_history(name)
        assert info is not None
        return _Import(info, await _events(own.log, info), None)

    made = await _made_once(("files", path, profile), make)
    return (await _append(store.log, made.info.name, made)).name


async def _made_once(key: object, make: Callable[[], Awaitable[_Import]]) -> _Import:
    digest = hashlib.sha256(repr(key).encode()).hexdigest()[:20]
    with locked(f"import-{digest}") as file:
        if not file.exists():
            begun = file.with_suffix(".begun")
            begun.write_bytes(pickle.dumps(await make(), pickle.HIGHEST_PROTOCOL))
            begun.rename(file)
        made: _Import = pickle.loads(file.read_bytes())
    return made


async def _append(log: EventLog, name: str, made: _Import) -> HistoryInfo:
    await importing.check_name_is_free(log, name)
    seed, settings, created = made.info.seed, made.info.settings, made.info.created
    genesis = chain.genesis(seed=seed, settings=settings, created=created)
    info = await log.create_history(
        name, seed=seed, settings=settings, created=created, hash=genesis
    )
    await log.append(info.id, expected=await log.head(info.id), events=made.events)
    return info


async def _events(log: EventLog, info: HistoryInfo) -> list[Event]:
    events = await log.read(info.id, after=Revision(0), limit=1_000_000)
    return [event.undecoded() for event in events]
