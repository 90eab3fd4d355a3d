"""Replays of a stored history, or of files, which are first imported into memory."""

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from app.analysis.recordings import recorded_gates
from app.analysis.replay.classes import Sought
from app.analysis.replay.report import DecideReport
from app.bootstrap import garbage_collection, history_settings
from app.bootstrap.control_planes import ControlPlanes, proofs_of, replay_bounds
from app.bootstrap.deciders import deciders_of
from app.bootstrap.histories import views_of
from app.bootstrap.recordings import RecordingFiles, import_history
from app.bootstrap.stores import Store, find_history, find_revision
from app.bootstrap.verifying import folding_ahead, part_workers
from app.bootstrap.verifying.part_workers import PartWorkers
from app.domain.controllers import registry
from app.domain.errors import InputError, LogUnavailable
from app.domain.log import HistoryInfo, Revision
from app.domain.log.heads import SignedHead
from app.domain.objects import profile as profiles
from app.domain.values import json_tree
from app.domain.values.json_tree import JsonObject
from app.ports import SecondOpinion
from app.service import moments
from app.service.replays import replaying, verifying
from app.service.replays.deciding import replay as deciding
from app.service.replays.deciding.replay import Pacing
from app.service.replays.integrity import Attestation
from app.service.replays.replaying import FoldReport
from app.service.replays.second_opinion import OpinionBounds, SecondReader
from app.service.replays.verifying import Sharing, VerifyReport
from app.settings import Settings

Progress = Callable[[str, Revision, Revision], None]


REPLAYED = "replayed"
"""The name of a file's history while it is replayed in memory."""


async def load_files(store: Store, settings: Settings, paths: tuple[Path, ...]) -> str:
    """Import files into a store in memory; returns the name of the history."""
    wanted = RecordingFiles(paths=paths)
    await import_history(store, settings, wanted, REPLAYED, lambda _done, _total: None)
    return REPLAYED


async def fold(
    store: Store, settings: Settings, name: str, moment: str, progress: Progress
) -> FoldReport:
    """Rebuild every view up to a moment (empty: all of it)."""
    info = await find_history(store, name)
    return await replaying.fold(
        store.log,
        info,
        until=await _until(store, info, moment),
        views=views_of(info.settings)(),
        bounds=replay_bounds(settings),
        progress=progress,
    )


async def verify(
    store: Store,
    settings: Settings,
    name: str,
    moment: str,
    progress: Progress,
    profile: str | None = None,
    heads: Sequence[SignedHead] = (),
    trusted: frozenset[str] = frozenset(),
    second: SecondOpinion | None = None,
) -> VerifyReport:
    """Check the chain and the invariants, and make every decision again.

    `heads` are signed heads to compare with, `trusted` the trusted keys. `second` is asked about
    every selector. `profile` is the release to decide as, None for that of the history. Raises
    InputError when no worker could verify a part.

    What cannot be read at all was altered, unless the stored log is whole: then the report is that
    of the stored log alone.
    """
    from app.adapters import head_keys  # heavy: it loads a library for keys

    stored = await find_history(store, name)
    attestation = Attestation(
        heads=heads, is_signed=head_keys.is_signed, trusted=trusted, views=store.views
    )
    try:
        return await _verify(
            store, settings, stored, moment, progress, profile, attestation, second
        )
    except LogUnavailable:
        raise
    except Exception as cause:
        problem = _settings_problem(stored)
        if isinstance(cause, InputError) and not problem:
            raise
        report = await verifying.verify_stored(
            store.log,
            stored,
            bounds=replay_bounds(settings),
            attestation=attestation,
            problem=problem,
        )
        if report.agrees:
            raise
        return report


async def _verify(
    store: Store,
    settings: Settings,
    stored: HistoryInfo,
    moment: str,
    progress: Progress,
    profile: str | None,
    attestation: Attestation,
    second: SecondOpinion | None,
) -> VerifyReport:
    """Verify a history whose settings and events can be read."""
    until = await _until(store, stored, moment)
    info = await with_settings(
        store, settings, await moments.history_at(store.log, stored, until), profile
    )
    count = part_workers.count_of(settings.verify_processes)
    opinion_bounds = OpinionBounds(
        evaluations_max=settings.second_opinion_evaluations_max,
        cost_max=settings.second_opinion_cost_max,
    )
    with (
        garbage_collection.one_pass(),
        PartWorkers(
            info,
            count=count,
            bytes_max=settings.verify_events_bytes_max,
            scheduler=settings.verify_scheduler,
            events=min(until, (await store.log.head(stored.id)).revision),
            silence_seconds=settings.worker_silence_seconds,
            step_seconds=settings.worker_step_seconds,
            bounds=folding_ahead.bounds_of(settings),
        ) as workers,
    ):
        return await verifying.verify(
            store.log,
            info,
            until=until,
            deciders=deciders_of(info),
            bounds=replay_bounds(settings),
            sharing=Sharing(workers=workers, division=workers.division),
            attestation=attestation,
            second=None if second is None else SecondReader(opinion=second, bounds=opinion_bounds),
            progress=progress,
        )


async def decide(
    store: Store,
    settings: Settings,
    name: str,
    moment: str,
    progress: Progress,
    pace: str = Pacing.RECORDED,
    profile: str | None = None,
    sought: Sought | None = None,
) -> DecideReport:
    """Keep the outside inputs, decide the rest again, and compare.

    `pace` is recorded or virtual (`deciding.Pacing`). `profile` is the release to decide as, None
    for that of the history. With `sought`, only those differences are looked for.
    """
    present = await find_history(store, name)
    until = await _until(store, present, moment)
    stored = await moments.history_at(store.log, present, until)
    info = await with_settings(store, settings, stored, profile)
    return await deciding.decide(
        store.log,
        info,
        until=until,
        plane=ControlPlanes(info),
        bounds=replay_bounds(settings),
        proofs=proofs_of(settings, info, stored),
        pace=Pacing(pace),
        progress=progress,
        sought=sought,
    )


def _settings_problem(info: HistoryInfo) -> str:
    """The reason why the settings of a history cannot be used; empty when they can."""
    try:
        profiles.from_settings(info.settings)
        registry.options_from(info.settings)
    except InputError as problem:
        return f"the settings cannot be read: {problem}"
    return ""


async def _until(store: Store, info: HistoryInfo, moment: str) -> Revision:
    """The revision for `--to`. Raises InputError when the history has no event by then."""
    until = await find_revision(store, info, moment, option="--to")
    if moment and not until:
        raise InputError(
            f"history {info.name!r} has no event up to {moment}",
            place="--to",
            cure="give a later moment",
        )
    return until


async def with_settings(
    store: Store, settings: Settings, info: HistoryInfo, profile: str | None
) -> HistoryInfo:
    """The history with the given profile, gates and quirks, and the gate of rules if needed."""
    gates = dict(json_tree.mapping(info.settings, "gates"))
    switched = history_settings.switches(settings.gates, place="--gate")
    profiles.Profile(gates=switched)  # refuses what cannot be switched
    gates |= switched
    quirks = dict(json_tree.mapping(info.settings, "quirks"))
    quirks |= history_settings.switches(settings.quirks.lower(), place="--quirk")
    changed: JsonObject = {**info.settings, "gates": gates, "quirks": quirks}
    if recorded_gates.leave_rules_open(changed) and await _has_rules(store, settings, info):
        changed = recorded_gates.served_rules(changed)
    if profile is not None:
        changed["profile"] = profile
    profiles.from_settings(changed)
    registry.options_from(changed)
    return msgspec.structs.replace(info, settings=changed)


async def _has_rules(store: Store, settings: Settings, info: HistoryInfo) -> bool:
    after = Revision(0)
    while page := await store.log.read(info.id, after=after, limit=settings.projector_batch_max):
        if recorded_gates.hold_rules(page):
            return True
        after = page[-1].revision
    return False
