"""The work of each kind of job, in the process of the job. Everything is read from its folder."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import anyio
import msgspec

from app.analysis.minimise import predicates
from app.analysis.sweep import plans
from app.bootstrap import garbage_collection, process_settings, replays
from app.bootstrap.executors import InlineExecutor
from app.bootstrap.gallery import incident_files, playing
from app.bootstrap.minimising import searching, sources
from app.bootstrap.minimising.searching import State
from app.bootstrap.minimising.sources import Source
from app.bootstrap.stores import memory_store
from app.bootstrap.sweeping import histories, running, tables
from app.domain.values.json_tree import JsonObject

Tell = Callable[[JsonObject], None]

_RESULT = "result"
"""The folder for the files of a result in that of the job."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkDone:
    """The result of the work as JSON, and the paths of its files by name."""

    result: object
    files: Mapping[str, Path] = field(default_factory=dict)


def minimise(folder: Path, wish: JsonObject, names: Sequence[str], tell: Tell) -> WorkDone:
    """The smallest history that satisfies a predicate, as a bundle. Raises InputError."""
    predicate = predicates.parse(wish["keep"])
    settings = process_settings.settings(
        profile=wish["profile"] or None, gates=wish["gates"], quirks=wish["quirks"]
    )
    garbage_collection.expect_large_heap()

    async def read() -> Source:
        store = memory_store()
        history = await replays.load_files(store, settings, (folder / "0.zip",))
        return await sources.read(store, settings, history, "", wish["profile"] or None, names[0])

    source = anyio.run(read)
    tell({"events": source.events})

    def tell_state(state: State) -> None:
        tell({"events": source.events, **asdict(state)})

    path = folder / _RESULT / f"{wish['name']}.zip"
    path.parent.mkdir()
    done = searching.minimise(
        source,
        settings,
        predicate,
        path,
        name=wish["name"],
        seconds=wish["seconds"],
        tell=tell_state,
    )
    return WorkDone(result=done.to_json(), files={path.name: path})


def sweep(folder: Path, wish: JsonObject, names: Sequence[str], tell: Tell) -> WorkDone:
    """The table of a sweep. Raises InputError."""
    plan = plans.parse(wish["plan"], wish["place"])
    garbage_collection.expect_large_heap()
    bundles = {name: (folder / f"{n}.zip").read_bytes() for n, name in enumerate(names)}
    bundles |= anyio.run(_fleets, folder, plan, wish["manifests"])
    cells = folder / _RESULT
    swept = running.sweep(
        plan,
        bundles,
        InlineExecutor(),
        cells,
        lambda done, total: tell({"done": done, "total": total}),
    )
    files = tables.write(swept.rows, cells, wish["title"])
    result = {"rows": swept.rows, "ran": swept.ran, "failed": swept.failed}
    return WorkDone(result=result, files={name: cells / name for name in files})


async def _fleets(
    folder: Path, plan: plans.SweepPlan, manifests: Mapping[str, list[JsonObject]]
) -> dict[str, bytes]:
    """The bundles of a plan's fleets; the manifests that it names are in the order of the job."""
    files = {name: folder / f"manifests-{number}.json" for number, name in enumerate(manifests)}
    for name, path in files.items():
        objects = {"apiVersion": "v1", "kind": "List", "items": manifests[name]}
        path.write_bytes(msgspec.json.encode(objects))
    fleets = [
        msgspec.structs.replace(fleet, apply=[files[name].name for name in fleet.apply])
        for fleet in plan.fleets
    ]
    wanted = msgspec.structs.replace(plan, histories=[], fleets=fleets)
    return await histories.bundles(wanted, process_settings.settings(), folder)


def run_incidents(folder: Path, wish: JsonObject, names: Sequence[str], tell: Tell) -> WorkDone:
    """The facts of incidents, with the defect or trap and repaired."""
    rows: list[JsonObject] = []
    shown: list[str] = wish["names"] or incident_files.names()
    for number, name in enumerate(shown):
        tell({"done": number, "total": len(shown)})
        rows += playing.rows(incident_files.read(name))
    tell({"done": len(shown), "total": len(shown)})
    return WorkDone(result=rows)


DONE_BY: Mapping[str, Callable[[Path, JsonObject, Sequence[str], Tell], WorkDone]] = {
    "minimise": minimise,
    "sweep": sweep,
    "incidents": run_incidents,
}
