"""Import and export of recordings, and rebuilding of views."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from app.adapters.head_keys import open_head_key
from app.adapters.history import opening
from app.adapters.history.captures import CaptureWriter
from app.adapters.history.formats.bundle import (
    MANIFEST,
    BundleReader,
    BundleWriter,
    names_the_bundle,
)
from app.adapters.history.limits import ImportLimits
from app.adapters.history.opening import RecordedHistory
from app.adapters.history.reading import ReadOptions
from app.adapters.history.writers import AuditWriter, DumpWriter, WatchWriter
from app.adapters.running import known_names
from app.adapters.secret_keys import IMPORTED_FILE
from app.analysis.recordings import recorded_gates, releases
from app.analysis.recordings.fidelity import FidelityReport
from app.bootstrap.histories import folding_bounds, views_of
from app.bootstrap.history_settings import history_settings
from app.bootstrap.rules import rules_for
from app.bootstrap.stores import Store, find_history, find_inside
from app.domain.controllers import registry
from app.domain.errors import InputError
from app.domain.log import HistoryInfo, Revision
from app.domain.log.event import KeyFilter
from app.domain.log.heads import SignedHead
from app.domain.objects import profile as profiles
from app.domain.objects.profile import RULES_GATE
from app.domain.objects.rules import Rules
from app.domain.values import api_resources
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import Instant
from app.service import exporting, importing, moments
from app.service.exporting import BundleImport, HistorySink
from app.service.folding import rebuild as rebuilding
from app.settings import Settings

PROGRAM = "redra 0.1.0"


_COMPLETED = (
    *(api_resources.PODS, api_resources.NODES, api_resources.RESOURCE_CLAIMS),
    *(api_resources.RESOURCE_SLICES, api_resources.DEVICE_CLASSES),
    *(api_resources.RESOURCE_CLAIM_TEMPLATES, api_resources.DEVICE_TAINT_RULES),
    api_resources.RESOURCE_SLICE_PATCHES,
)
_NAMES_MAX = 5_000
"""The most names of each kind that are stored for shell completion."""

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordingFiles:
    """The files to import, with options; `format` is `auto` or the name of a format."""

    paths: tuple[Path, ...]
    format: str = "auto"
    at: str = ""
    unwrap: str = ""
    with_secrets: bool = False
    keep_going: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """A finished import. `report` is None for a native bundle, which is imported unchanged."""

    name: str
    events: int
    head: str
    report: FidelityReport | None
    signed: tuple[SignedHead, ...] = ()
    notes: tuple[str, ...] = ()
    profile: str = ""

    def to_json(self) -> JsonObject:
        """The JSON form for programs."""
        return {
            "history": self.name,
            "events": self.events,
            "head": self.head,
            "signedHeads": [{"revision": each.revision, "key": each.key} for each in self.signed],
            "report": None if self.report is None else self.report.to_json(),
            "notes": list(self.notes),
            "profile": self.profile,
        }

    def table(self) -> list[tuple[str, ...]]:
        """Titles and one row per kind."""
        return [] if self.report is None else self.report.table()


async def import_history(
    store: Store, settings: Settings, wanted: RecordingFiles, name: str, progress: Progress
) -> Imported:
    """Make the history `name` from a recording. Raises InputError; nothing is appended then."""
    await importing.check_name_is_free(store.log, name)
    limits = import_limits(settings)
    if len(wanted.paths) == 1 and wanted.format in ("auto", "bundle"):
        path = wanted.paths[0]
        if opening.is_bundle(path):
            reader = BundleReader(path, limits)
            with names_the_bundle(reader):
                bundle = await exporting.import_bundle(
                    store.log,
                    reader,
                    schemas=_bundled_rules(reader).schemas,
                    name=name,
                    created=store.ports.clock.now(),
                    secrets=store.secrets,
                    progress=progress,
                )
            return Imported(
                name=name,
                events=bundle.head.revision,
                head=f"sha256:{bundle.head.hash.hex()}",
                report=None,
                signed=bundle.signed,
                notes=tuple(_bundle_notes(bundle)),
            )
    source, settings, notes = _opened(store, settings, wanted)
    chosen = history_settings(settings)
    profile = profiles.from_settings(chosen)
    with source:
        has_rules = api_resources.DEVICE_TAINT_RULES in source.resources
        if has_rules and not profile.enabled(RULES_GATE) and RULES_GATE not in profile.gates:
            chosen = recorded_gates.served_rules(chosen)
            notes.append(f"the gate {RULES_GATE} is on, because there are DeviceTaintRules")
        result = await importing.import_records(
            store.log,
            source,
            name=name,
            options=importing.ImportOptions(
                settings=chosen,
                started=store.ports.clock.now(),
                notes=tuple(notes),
                secrets=None if store.secrets is None else store.secrets.cipher,
            ),
            progress=progress,
        )
    await _keep_names(store, settings, result.history, result.head.revision)
    return Imported(
        name=name,
        events=result.head.revision,
        head=f"sha256:{result.head.hash.hex()}",
        report=result.report,
        profile=profiles.from_settings(result.history.settings).settings()["profile"],
    )


async def _keep_names(store: Store, settings: Settings, info: HistoryInfo, until: Revision) -> None:
    """Keep the names of objects in the data folder, for completion without a database."""
    if settings.database_url:
        return
    names: dict[str, list[str]] = {}
    for kind in _COMPLETED:
        keys = await store.log.keys(info.id, KeyFilter(*kind), until=until, limit=_NAMES_MAX)
        names[kind[1]] = ["/".join(filter(None, (key.namespace, key.name))) for key in keys]
    known_names.keep_objects(settings.data, info.name, names)


def _opened(
    store: Store, settings: Settings, wanted: RecordingFiles
) -> tuple[RecordedHistory, Settings, list[str]]:
    """The recording, read as its release; the settings with that release, and notes about it.

    A given profile takes precedence over the recording.
    """
    source = opening.open_history(wanted.paths, _read_options(store, settings, wanted))
    if "profile" in settings.given:
        return source, settings, releases.objections(source.releases, settings.profile)
    best = source.releases.best()
    profile = settings.profile if best is None else profiles.nearest_to(best.release)
    notes = releases.notes(source.releases, profile)
    if profile == settings.profile:
        return source, settings, notes
    # Releases differ in the fields they accept and know, so the recording is read again.
    source.close()
    settings = replace(settings, profile=profile)
    source = opening.open_history(wanted.paths, _read_options(store, settings, wanted))
    return source, settings, notes


def _read_options(store: Store, settings: Settings, wanted: RecordingFiles) -> ReadOptions:
    return ReadOptions(
        format=wanted.format,
        at=_instant(wanted.at, store.ports.clock.now()),
        now=store.ports.clock.now(),
        unwrap=wanted.unwrap,
        with_secrets=wanted.with_secrets,
        keep_going=wanted.keep_going,
        way_on="or import the rest with --keep-going",
        rules=rules_for(profiles.from_settings(history_settings(settings))),
        limits=import_limits(settings),
    )


def _bundled_rules(reader: BundleReader) -> Rules:
    """The rules of a bundle's settings. Raises InputError for unusable settings."""
    settings = reader.manifest.get("settings", {})
    place = f"{reader.name}/{MANIFEST}"
    if not isinstance(settings, dict):
        raise InputError("settings is not an object", place=place)
    try:
        registry.options_from(settings)
        return rules_for(profiles.from_settings(settings))
    except InputError as problem:
        raise InputError(
            f"settings: {problem.problem}", place=place, cure=problem.cure
        ) from problem


def _bundle_notes(bundle: BundleImport) -> Iterator[str]:
    if bundle.protected:
        yield (
            f"{bundle.protected} values of Secrets were in plain text and are now protected; "
            "from the first of them on, the events have other hashes than in the bundle"
        )
    if bundle.keys:
        yield f"the bundle's keys of Secrets are kept in {IMPORTED_FILE} of the data folder"


def _instant(text: str, now: Instant) -> Instant | None:
    """The instant when a dump was made. Raises InputError for an invalid one, or a revision."""
    if not text:
        return None
    if moments.is_revision(text):
        raise InputError(
            f"{text} is a revision, and a dump has no revisions",
            place="--at",
            cure="give an instant",
        )
    return moments.parse_instant(text, now)


async def export_history(
    store: Store,
    settings: Settings,
    name: str,
    moment: str,
    file: Path,
    progress: Progress,
    *,
    with_secrets: bool = False,
) -> int:
    """Write a history up to a moment as a native bundle; returns the number of events.

    Values of Secrets are unreadable in it unless `with_secrets` includes their keys.
    """
    info = await find_history(store, name)
    until = await find_inside(store, info, moment, option=f"{name}@{moment}") if moment else None
    key = open_head_key(settings.data)
    manifest = await exporting.export_history(
        store.log,
        info,
        BundleWriter(file),
        program=PROGRAM,
        file=file.name,
        sign=key.sign,
        until=until,
        secrets=store.secrets if with_secrets else None,
        progress=progress,
    )
    events = manifest.get("events", 0)
    return events if isinstance(events, int) else 0


class ToolForm(StrEnum):
    """The forms for other tools, which hold less than a bundle does."""

    AUDIT = "audit"
    WATCH = "watch"
    OBJECTS = "objects"
    K8SHARK = "k8shark"


TOOL_WRITERS: dict[ToolForm, Callable[[Path], HistorySink]] = {
    ToolForm.AUDIT: AuditWriter,
    ToolForm.WATCH: WatchWriter,
    ToolForm.OBJECTS: DumpWriter,
    ToolForm.K8SHARK: CaptureWriter,
}


async def export_for_tools(
    store: Store,
    name: str,
    moment: str,
    form: ToolForm,
    path: Path,
    progress: Progress,
) -> JsonObject:
    """Write a history up to a moment in the form of another tool; returns counts by kind.

    Raises InputError for a moment outside the history, and when the output cannot be written.
    """
    info = await find_history(store, name)
    until = await find_inside(store, info, moment, option=f"{name}@{moment}") if moment else None
    if until == 0:
        raise InputError(f"there are no events up to {moment}", place=name)
    return await exporting.export_history(
        store.log,
        info,
        TOOL_WRITERS[form](path),
        program=PROGRAM,
        file=path.name,
        until=until,
        progress=progress,
    )


async def rebuild(
    store: Store, settings: Settings, name: str, progress: Progress
) -> list[dict[str, object]]:
    """Drop the views of a history and fold it again; one row per view, with the hashes."""
    info = await find_history(store, name)

    def report_progress(_view: str, revision: Revision, until: Revision) -> None:
        progress(revision, until)

    rebuilt = await rebuilding.rebuild(
        log=store.log,
        views=store.views,
        history=info.id,
        make=views_of(info.settings),
        bounds=folding_bounds(settings),
        check_rows=True,
        progress=report_progress,
    )
    return [
        {
            "projection": view.projection,
            "version": view.version,
            "revision": view.revision,
            "before": view.hash_before,
            "after": view.state_hash,
            "same": view.same is not False and view.rows_same is not False,
            "compared": view.same is not None,
        }
        for view in rebuilt
    ]


def import_limits(settings: Settings) -> ImportLimits:
    """The bounds of an import."""
    return ImportLimits(
        object_bytes_max=settings.import_object_bytes_max,
        unpacked_bytes_max=settings.import_bytes_max,
        ratio_max=settings.import_ratio_max,
        sources_max=settings.import_entries_max,
        archive_entries_max=settings.import_entries_max,
        archive_depth_max=settings.import_archive_depth_max,
        depth_max=settings.yaml_depth_max,
    )
