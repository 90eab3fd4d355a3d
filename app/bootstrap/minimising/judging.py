"""The judgement of one candidate: it is run and checked for the predicate that must stay."""

import subprocess
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeAlias

import anyio
import msgspec

from app.adapters.history.formats.bundle import BundleWriter
from app.analysis.minimise import beginnings, soundness, witnesses
from app.analysis.minimise.beginnings import LaterBeginning
from app.analysis.minimise.difference_predicate import DifferencePredicate
from app.analysis.minimise.material import Candidate, Device, Material
from app.analysis.minimise.predicates import CommandPredicate, Predicate, Sighting
from app.analysis.minimise.soundness import Faults
from app.analysis.replay.classes import Sought
from app.analysis.replay.differences import Aspect
from app.analysis.replay.report import DecideDifference, DecideReport
from app.bootstrap import replays
from app.bootstrap.engines import Engines
from app.bootstrap.minimising import run_stores
from app.bootstrap.recordings import PROGRAM
from app.domain.errors import InputError, TooManyEvents
from app.domain.log import Event, HistoryInfo, ObjectKey
from app.domain.values.fields import dra
from app.domain.values.timestamps import SECOND, Instant
from app.service import exporting
from app.service.replays.trials import Ran, Runner
from app.settings import Settings

SIGHTINGS_MAX = 12
"""The most sightings in the whole history that are examined."""

Tried: TypeAlias = Candidate | LaterBeginning
"""A history that is tried: parts of a material, or these with a later beginning."""

CANDIDATE = "candidate"
"""The name of a candidate history."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """Whether a candidate shows the predicate, and where.

    For the whole history, `sightings` has all sightings from which the search may start, not only
    the first. `near` is a predicate that is quicker to judge and stricter: a candidate that shows
    `near` shows the predicate too.
    """

    shows: bool
    sighting: Sighting | None = None
    sightings: Sequence[Sighting] = ()
    near: Predicate | None = None


class Judge:
    """Judges candidates of one material. A judgement depends on the candidate alone.

    A candidate with other faults than those of the whole history shows nothing.
    """

    def __init__(
        self,
        material: Material,
        info: HistoryInfo,
        settings: Settings,
        predicate: Predicate,
        faults: Faults = Faults(),
    ) -> None:
        self.material = material
        self.info = info
        self.settings = settings
        self.predicate = predicate
        self.faults = faults
        self._runner = Runner(material, _as(info, is_recorded=material.is_recorded), Engines())

    def of(self, material: Material) -> "Judge":
        """A judge for another material of the same history."""
        return Judge(material, self.info, self.settings, self.predicate, self.faults)

    def for_predicate(self, predicate: Predicate) -> "Judge":
        """A judge of the same material for another predicate."""
        return Judge(self.material, self.info, self.settings, predicate, self.faults)

    def digest(self, candidate: Tried) -> str:
        """The digest of a candidate's judgement: equal candidates have the same."""
        is_near = (
            isinstance(self.predicate, DifferencePredicate)
            and self.predicate.sought.placed is not None
        )
        near = "-near" if is_near else ""
        if isinstance(candidate, LaterBeginning):
            return f"{self.material.digest(candidate.candidate)}-{candidate.number}{near}"
        return f"{self.material.digest(candidate)}{near}"

    def judge(self, candidate: Tried) -> Judged:
        """Run the candidate and check whether it shows the predicate.

        A candidate with more events than a run may have shows nothing.
        """
        if isinstance(candidate, LaterBeginning):
            material, whole = beginnings.begun(self.material, candidate)
            return self.of(material).judge(whole)
        if self.is_out(candidate):
            return Judged(shows=False)
        ran = self._runner.run(candidate)
        try:
            sighting = next(iter(self._sightings(ran)), None)
        except TooManyEvents:
            return Judged(shows=False)
        return Judged(shows=sighting is not None, sighting=sighting)

    def is_out(self, candidate: Tried) -> bool:
        """Whether the candidate is empty or the API would refuse its writes; needs no run."""
        parts = candidate.candidate if isinstance(candidate, LaterBeginning) else candidate
        return not parts.kept or not self._runner.is_valid(parts)

    def run(self, candidate: Candidate) -> Ran:
        """The history of a candidate."""
        return self._runner.run(candidate)

    def begin(self, candidate: Candidate) -> Judged:
        """Judge the whole history, and narrow the predicate to what the history shows.

        Each sighting also gets the related objects: owners, consumers, nodes and pools.
        """
        ran = self._runner.run(candidate)
        sightings: Sequence[Sighting]
        histories: Sequence[Sequence[Event]] = ()
        near: Predicate | None = None
        reports: list[DecideReport] = []
        match self.predicate:
            case DifferencePredicate() as predicate:
                report = anyio.run(partial(_decide, ran, self.settings))
                reports.append(report)
                if predicate.matching(report):
                    self.predicate = predicate.settled(report, ran.events)
                    near = self.predicate.near(report)
                sightings = _of_differences(predicate.matching(report), report, ran)
                histories = (ran.events,)
            case CommandPredicate(words=words):
                sightings = _commanded(ran, words, self.settings.minimise_command_seconds)
            case predicate:
                sightings = predicate.sightings(ran)
                if sightings:
                    histories = predicate.seen_in(ran)
                    self.predicate = predicate.settled(ran)
                    sightings = self.predicate.sightings(ran) or sightings
        if not sightings:
            return Judged(shows=False)
        self.faults = soundness.faults_of(ran, reports)
        placed = [
            replace(each, objects=witnesses.related_objects(each, histories, self.material))
            for each in sightings[:SIGHTINGS_MAX]
        ]
        return Judged(shows=True, sighting=placed[0], sightings=placed, near=near)

    def write(self, candidate: Candidate, path: Path, name: str) -> int:
        """Write the history of a candidate as a bundle; returns the number of events."""
        ran = self._runner.run(candidate)
        _write(ran, path, name)
        return len(ran.events)

    def _sightings(self, ran: Ran) -> Sequence[Sighting]:
        """The sightings in a candidate; none in one that is not sound."""
        reports: list[DecideReport] = []
        sightings: Sequence[Sighting]
        match self.predicate:
            case CommandPredicate(words=words):
                sightings = _commanded(ran, words, self.settings.minimise_command_seconds)
            case DifferencePredicate() as predicate:
                report = anyio.run(partial(_decide, ran, self.settings, predicate.sought))
                reports.append(report)
                sightings = _of_differences(predicate.matching(report), report, ran)
            case predicate:
                sightings = predicate.sightings(ran)
        if not sightings or not soundness.faults_of(ran, reports).are_within(self.faults):
            return ()
        return sightings


async def _decide(ran: Ran, settings: Settings, sought: Sought | None = None) -> DecideReport:
    store = await run_stores.stored(ran, CANDIDATE)
    return await replays.decide(store, settings, CANDIDATE, "", lambda *_: None, sought=sought)


def _of_differences(
    matching: Sequence[DecideDifference], report: DecideReport, ran: Ran
) -> list[Sighting]:
    """The sightings of these differences, until shortly after each subject's last event."""
    keys: dict[str, ObjectKey] = {}
    ends: dict[str, Instant] = {}
    for event in ran.events:
        keys[event.uid] = event.key
        ends[event.uid] = Instant(event.stamp.time + SECOND)
    devices_of: dict[str, set[Device]] = defaultdict(set)
    for each in report.differences:
        if each.aspect is Aspect.DEVICES:
            for allocation in (*each.recorded, *each.again):
                results = dra.results({"status": {"allocation": allocation}})
                devices_of[each.owner] |= {(one.driver, one.pool, one.device) for one in results}
    return [
        Sighting(
            objects=(keys[each.uid],) if each.uid in keys else (),
            at=ends.get(each.uid),
            since=each.since,
            devices=tuple(sorted(devices_of[each.owner])),
            text=f"{each.aspect.value}, {each.subject}: {each.reason}",
        )
        for each in matching
    ]


def _as(info: HistoryInfo, *, is_recorded: bool) -> HistoryInfo:
    """The settings of a candidate, marked as a recording only if it is taken as recorded."""
    settings = {name: value for name, value in info.settings.items() if name != "recorded"}
    if is_recorded:
        settings["recorded"] = True
    return msgspec.structs.replace(info, settings=settings)


def _commanded(ran: Ran, words: tuple[str, ...], seconds: float) -> list[Sighting]:
    """A sighting if the command ends with exit code 0 within the time; otherwise none."""
    with TemporaryDirectory(prefix="redra-minimise-") as folder:
        path = Path(folder) / f"{CANDIDATE}.zip"
        _write(ran, path, CANDIDATE)
        command = [word.replace("{}", str(path)) for word in words]
        try:
            done = subprocess.run(  # noqa: S603 - the command that the user gave
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=seconds,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return []
        except OSError as problem:
            raise InputError(
                f"the command cannot be run: {problem.strerror}", place=words[0]
            ) from problem
    return [Sighting(text=" ".join(words))] if done.returncode == 0 else []


def _write(ran: Ran, path: Path, name: str) -> None:
    anyio.run(_export, ran, path, name)


async def _export(ran: Ran, path: Path, name: str) -> None:
    store = await run_stores.stored(ran, name)
    info = await store.log.find_history(name)
    assert info is not None, "it was stored just now"
    await exporting.export_history(
        store.log, info, BundleWriter(path), program=PROGRAM, file=path.name
    )
