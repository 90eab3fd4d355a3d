"""One candidate judged: it is run, and looked at for what must stay."""

import subprocess
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio
import msgspec

from app.adapters.history.formats.bundle import BundleWriter
from app.analysis.minimise import witnesses
from app.analysis.minimise.material import Candidate, Material
from app.analysis.minimise.predicates import Command, Predicate, Sighting, Unlike
from app.analysis.replay.report import DecideDifference, DecideReport
from app.bootstrap import replays
from app.bootstrap.engines import Engines
from app.bootstrap.recordings import PROGRAM
from app.bootstrap.stores import Store, memory_store
from app.domain.errors import InputError, LogError
from app.domain.log import HistoryInfo, ObjectKey, chain
from app.service import exporting
from app.service.replays.trials import Ran, Runner
from app.settings import Settings

COMMAND_SECONDS = 600.0
"""How long a command may look at one bundle."""

CANDIDATE = "candidate"
"""The name of a history that is tried."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """Whether a candidate shows what must stay, and where; `events` counts those of its history."""

    shows: bool
    events: int
    sighting: Sighting | None = None


class Judge:
    """Judges candidates of one material. Judging is a function of the candidate alone."""

    def __init__(
        self, material: Material, info: HistoryInfo, settings: Settings, predicate: Predicate
    ) -> None:
        self.material = material
        self.info = info
        self.settings = settings
        self.predicate = predicate
        self._runner = Runner(material, _as(info, is_recorded=material.is_recorded), Engines())

    def judge(self, candidate: Candidate) -> Judged:
        """Run the candidate and look at it."""
        if not candidate.kept or not self._runner.is_valid(candidate):
            return Judged(shows=False, events=0)
        ran = self._runner.run(candidate)
        sighting = self._sighting(ran)
        return Judged(shows=sighting is not None, events=len(ran.events), sighting=sighting)

    def begin(self, candidate: Candidate) -> Judged:
        """Judge the whole, and keep to what it shows of the predicate from then on.

        The objects of the sighting come with those that they had to do with.
        """
        ran = self._runner.run(candidate)
        sighting = self._sighting(ran)
        if sighting is None:
            return Judged(shows=False, events=len(ran.events))
        match self.predicate:
            case Unlike(kind=""):
                first = self._differences(ran)[0]
                self.predicate = Unlike(kind=first.reason, aspect=first.aspect.value)
            case Unlike() | Command():
                pass
            case predicate:
                self.predicate = predicate.settled(ran)
                sighting = self.predicate.sighting(ran) or sighting
        objects = witnesses.around(sighting, ran.events, self._runner.material)
        sighting = replace(sighting, objects=objects)
        return Judged(shows=True, events=len(ran.events), sighting=sighting)

    def write(self, candidate: Candidate, path: Path, name: str) -> int:
        """Write the history of a candidate as a bundle; returns the number of its events."""
        ran = self._runner.run(candidate)
        _write(ran, path, name)
        return len(ran.events)

    def _sighting(self, ran: Ran) -> Sighting | None:
        match self.predicate:
            case Command(words=words):
                return _commanded(ran, words)
            case Unlike():
                for each in self._differences(ran):
                    key = _key_of(each.subject, ran)
                    return Sighting(
                        objects=() if key is None else (key,),
                        text=f"{each.aspect.value}, {each.subject}: {each.reason}",
                    )
                return None
            case predicate:
                return predicate.sighting(ran)

    def _differences(self, ran: Ran) -> list[DecideDifference]:
        """The differences of a decide replay that are meant, gravest first."""
        assert isinstance(self.predicate, Unlike), "it is about a decide replay"
        report = anyio.run(partial(_decide, ran, self.settings))
        return self.predicate.meant(report.differences)


async def _decide(ran: Ran, settings: Settings) -> DecideReport:
    store = await _stored(ran, CANDIDATE)
    return await replays.decide(store, settings, CANDIDATE, "", lambda *_: None)


def _key_of(subject: str, ran: Ran) -> ObjectKey | None:
    """The object that a report names."""
    keys = (event.key for event in ran.events if str(event.key) == subject)
    return next(keys, None)


def _as(info: HistoryInfo, *, is_recorded: bool) -> HistoryInfo:
    """The settings of what is tried: only a history that is taken as it is remains a recording."""
    settings = {name: value for name, value in info.settings.items() if name != "recorded"}
    if is_recorded:
        settings["recorded"] = True
    return msgspec.structs.replace(info, settings=settings)


def _commanded(ran: Ran, words: tuple[str, ...]) -> Sighting | None:
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
                timeout=COMMAND_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return None
        except OSError as problem:
            raise InputError(
                f"the command cannot be run: {problem.strerror}", place=words[0]
            ) from problem
    return Sighting(text=" ".join(words)) if done.returncode == 0 else None


def _write(ran: Ran, path: Path, name: str) -> None:
    anyio.run(_export, ran, path, name)


async def _export(ran: Ran, path: Path, name: str) -> None:
    store = await _stored(ran, name)
    info = await store.log.find_history(name)
    assert info is not None, "it was stored just now"
    await exporting.export_history(
        store.log, info, BundleWriter(path), program=PROGRAM, file=path.name
    )


async def _stored(ran: Ran, name: str) -> Store:
    """The history of a candidate in a store of its own."""
    store = memory_store()
    beginning = chain.genesis_of(ran.info)
    info = await store.log.create_history(
        name,
        seed=ran.info.seed,
        settings=ran.info.settings,
        created=ran.info.created,
        hash=beginning,
    )
    head = await store.log.head(info.id)
    try:
        await store.log.append(info.id, expected=head, events=ran.events)
    except LogError as problem:
        raise AssertionError(f"a run makes no history: {problem}") from problem
    return store
