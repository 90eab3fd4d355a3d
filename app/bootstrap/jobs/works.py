"""The work of each kind of job, in the process of the job. Everything is read from its folder."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path

import anyio
import msgspec

from app.adapters import packed_folders
from app.analysis.diff import answers
from app.analysis.diff.answers import DiffForm
from app.analysis.diff.report import DiffReport
from app.analysis.minimise import predicates
from app.analysis.rehearse.report import Rehearsal
from app.analysis.sweep import plans
from app.bootstrap import garbage_collection, process_settings, recordings, replays
from app.bootstrap.answers import differences, rehearsals
from app.bootstrap.executors import InlineExecutor
from app.bootstrap.gallery import incident_files, playing
from app.bootstrap.handover import exporting
from app.bootstrap.handover.exporting import Expectation, ExportForm, ExportRequest
from app.bootstrap.minimising import searching, sources
from app.bootstrap.minimising.searching import State
from app.bootstrap.minimising.sources import Source
from app.bootstrap.recordings import RecordingFiles, ToolForm
from app.bootstrap.stores import Store, find_history, memory_store
from app.bootstrap.sweeping import histories, running, tables
from app.domain.log.doubts import Doubt
from app.domain.values.json_tree import JsonObject
from app.service import diffing
from app.service.diffing import ComparisonAspect, ComparisonPlan
from app.settings import Settings

ReportProgress = Callable[[JsonObject], None]

_RESULT = "result"
"""The folder for the files of a result in that of the job."""

_BUNDLE = "bundle"
_TOOLS = frozenset(ToolForm)
_HANDED_OVER = frozenset(ExportForm)
"""The forms of an export."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkDone:
    """The result of the work as JSON, and the paths of its files by name."""

    result: object
    files: Mapping[str, Path] = field(default_factory=dict)


def minimise(
    folder: Path, wish: JsonObject, names: Sequence[str], report_progress: ReportProgress
) -> WorkDone:
    """The smallest history that satisfies a predicate, as a bundle. Raises InputError."""
    predicate = predicates.parse(wish["keep"], "keep")
    settings = process_settings.settings(
        profile=wish["profile"] or None, gates=wish["gates"], quirks=wish["quirks"]
    )
    garbage_collection.expect_large_heap()

    async def read() -> Source:
        store = memory_store()
        history = await replays.load_files(store, settings, (folder / "0.zip",))
        return await sources.read(store, settings, history, "", wish["profile"] or None, names[0])

    source = anyio.run(read)
    report_progress({"events": source.events})

    def report_state(state: State) -> None:
        report_progress({"events": source.events, **asdict(state)})

    path = folder / _RESULT / f"{wish['name']}.zip"
    path.parent.mkdir()
    done = searching.minimise(
        source,
        settings,
        predicate,
        path,
        name=wish["name"],
        seconds=wish["seconds"],
        report_progress=report_state,
    )
    return WorkDone(result={**wish["asOf"], **done.to_json()}, files={path.name: path})


def sweep(
    folder: Path, wish: JsonObject, names: Sequence[str], report_progress: ReportProgress
) -> WorkDone:
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
        lambda done, total: report_progress({"done": done, "total": total}),
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


def run_incidents(
    folder: Path, wish: JsonObject, names: Sequence[str], report_progress: ReportProgress
) -> WorkDone:
    """The facts of incidents, with the defect or trap and repaired."""
    rows: list[JsonObject] = []
    shown: list[str] = wish["names"] or incident_files.names()
    for number, name in enumerate(shown):
        report_progress({"done": number, "total": len(shown)})
        rows += playing.rows(incident_files.read(name))
    report_progress({"done": len(shown), "total": len(shown)})
    return WorkDone(result=rows)


def rehearse(
    folder: Path, wish: JsonObject, names: Sequence[str], report_progress: ReportProgress
) -> WorkDone:
    """The changes of a history under another release. Raises InputError."""
    settings = process_settings.settings(gates=wish["gates"], quirks=wish["quirks"])
    garbage_collection.expect_large_heap()

    async def work() -> Rehearsal:
        store = await _store(settings, folder, names[0])
        step = partial(_report_step, report_progress)
        report = await rehearsals.rehearse(
            store, settings, names[0], wish["to"], wish["at"], progress=step
        )
        return replace(report, doubts=msgspec.convert(wish["doubts"], list[Doubt]))

    return WorkDone(result=rehearsals.shown(anyio.run(work), wish["asOf"]))


def _report_step(report_progress: ReportProgress, doing: str, revision: int, until: int) -> None:
    report_progress({"doing": doing, "revision": revision, "until": until})


def diff(
    folder: Path, wish: JsonObject, names: Sequence[str], report_progress: ReportProgress
) -> WorkDone:
    """The differences of two histories, by the plan of the server. Raises InputError."""
    settings = process_settings.settings()
    garbage_collection.expect_large_heap()
    planned = msgspec.convert(wish["plan"], ComparisonPlan)
    report_progress({"events": planned.events})

    async def work() -> JsonObject:
        store = memory_store()
        sides = []
        for number, side in enumerate((planned.a, planned.b)):
            # The same history may be on both sides, so they have names of their own.
            files, name = RecordingFiles(paths=(folder / f"{number}.zip",)), f"side-{number}"
            await recordings.import_history(store, settings, files, name, lambda *_: None)
            here = await find_history(store, name)
            info = msgspec.structs.replace(side.history, id=here.id)
            sides.append(replace(side, history=info))
        comparison = differences.comparison_of(
            settings, sides[0].history, ComparisonAspect(wish["by"]), wish["withinSeconds"]
        )
        plan = replace(planned, a=sides[0], b=sides[1])
        report = await diffing.carry_out(store.log, plan, comparison)
        return answers.of(report, DiffForm(wish["form"]))

    return WorkDone(result=anyio.run(work))


def again(
    folder: Path, wish: JsonObject, names: Sequence[str], report_progress: ReportProgress
) -> WorkDone:
    """The differences of a history from itself decided again. Raises InputError."""
    settings = process_settings.settings(gates=wish["gates"], quirks=wish["quirks"])
    garbage_collection.expect_large_heap()

    async def work() -> JsonObject:
        store = await _store(settings, folder, names[0])
        report = await differences.diff_again(
            store,
            settings,
            names[0],
            wish["at"],
            ComparisonAspect(wish["by"]),
            wish["withinSeconds"],
            wish["profile"] or None,
            progress=partial(_report_step, report_progress),
        )
        if isinstance(report, DiffReport):
            report = replace(report, doubts=msgspec.convert(wish["doubts"], list[Doubt]))
        return answers.of(report, DiffForm(wish["form"]))

    return WorkDone(result=anyio.run(work))


def export(
    folder: Path, wish: JsonObject, names: Sequence[str], report_progress: ReportProgress
) -> WorkDone:
    """A history as one file; that of a folder is a zip archive of it. Raises InputError."""
    form, is_redacted = wish["form"], wish["redact"]
    settings = process_settings.settings()
    garbage_collection.expect_large_heap()
    path = folder / _RESULT / wish["name"]
    path.parent.mkdir()

    async def work() -> JsonObject:
        store = await _store(settings, folder, names[0])
        if form in _TOOLS and not is_redacted:
            count = partial(_report_count, report_progress)
            tool = ToolForm(form)
            written = await recordings.export_for_tools(store, names[0], "", tool, path, count)
            return {"written": written}
        source = await sources.read(store, settings, names[0], "", None)
        if form in _HANDED_OVER:
            wanted = ExportRequest(
                form=ExportForm(form),
                redact=is_redacted,
                never=tuple(wish["never"]),
                pod=wish["pod"],
                expect=Expectation(wish["expect"]),
            )
            name = exporting.WITHOUT_NAME if is_redacted else names[0]
            return {"handedOver": exporting.export(source, wanted, path, name).to_json()}
        tools = ToolForm(form) if form in _TOOLS else None
        done, written = await exporting.export_redacted(source, path, tools)
        return {"handedOver": done.to_json(), "written": written, "name": exporting.WITHOUT_NAME}

    if form == _BUNDLE and not is_redacted:
        # The server has written it already, with a signed head.
        (folder / "0.zip").rename(path)
        result: JsonObject = {"written": {"events": wish["events"]}}
    else:
        result = anyio.run(work)
    if path.is_dir():
        path = packed_folders.pack(path)
    return WorkDone(result={**wish["asOf"], **result}, files={path.name: path})


async def _store(settings: Settings, folder: Path, name: str) -> Store:
    """A store in memory with the history of a job, under its own name."""
    store = memory_store()
    wanted = RecordingFiles(paths=(folder / "0.zip",))
    await recordings.import_history(store, settings, wanted, name, lambda *_: None)
    return store


def _report_count(report_progress: ReportProgress, done: int, total: int) -> None:
    report_progress({"done": done, "total": total})


DONE_BY: Mapping[str, Callable[[Path, JsonObject, Sequence[str], ReportProgress], WorkDone]] = {
    "minimise": minimise,
    "sweep": sweep,
    "incidents": run_incidents,
    "rehearse": rehearse,
    "export": export,
    "diff": diff,
    "again": again,
}
