"""The search for the smallest history; its results are kept, so that it can be resumed.

Until the bundle is written, results are kept in a file beside it, one a line, under the digest of
the candidate. The same search tries the same candidates, so a resumed search takes no time until it
reaches a candidate that was not judged yet.
"""

import hashlib
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Protocol

import anyio
import msgspec

from app.analysis.minimise import beginnings, predicates
from app.analysis.minimise import material as materials
from app.analysis.minimise.beginnings import LaterBeginning
from app.analysis.minimise.difference_predicate import DifferencePredicate
from app.analysis.minimise.material import Candidate, Material
from app.analysis.minimise.predicates import PodCondition, Predicate, Sighting
from app.analysis.minimise.reduction import FAR, NEAR, Reduction
from app.analysis.minimise.thinning import Pass, Tries
from app.bootstrap.minimising import sources
from app.bootstrap.minimising.judging import Judge, Judged, Tried
from app.bootstrap.minimising.results import Minimised
from app.bootstrap.minimising.sources import Source
from app.domain.errors import InputError
from app.domain.log.chain import canonical_json
from app.settings import Settings

SUFFIX = ".trials"
"""The suffix of the file of results; the rest of its name is the bundle's."""

VERSION = 3
"""The version of the format of the file of results."""

STORY_MAX = 30
"""A recording with more remaining writes than this may begin later.

A shorter one is kept from its beginning, to show how its state came about.
"""


PLACING = frozenset({"claims", "rule-status", "eviction", "scheduling"})
"""The controllers that place pods, let them wait, or evict them.

Other controllers may hide that a pod waits. Example: a pod waited because of a node's taint, and
the node controller here removes that taint at once.
"""

BEGUN_MAX = 3
"""The number of sightings in a recording for which beginnings before them are tried."""


class Judges(Protocol):
    """Judges several candidates at once."""

    width: int

    def judge(self, candidates: Sequence[Tried]) -> Sequence[Judged]:
        """The judgements in order; those after the first that shows it may be missing."""
        ...


class InlineJudges:
    """Judges candidates one after the other here, up to the first that shows the predicate."""

    width = 1

    def __init__(self, judge: Judge) -> None:
        self._judge = judge

    def judge(self, candidates: Sequence[Tried]) -> Sequence[Judged]:
        """The judgements in order, up to the first that shows the predicate."""
        judgements: list[Judged] = []
        for each in candidates:
            judgements.append(self._judge.judge(each))
            if judgements[-1].shows:
                break
        return judgements


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """The size of the smallest candidate, and the number of trials; for progress."""

    doing: str
    steps: int
    objects: int
    devices: int
    trials: int
    remembered: int


@dataclass(slots=True)
class _Memory:
    """The results by content, in a file from which a later search resumes."""

    path: Path
    place: str
    results: dict[str, bool] = field(default_factory=dict)
    trials: int = 0
    remembered: int = 0

    def open(self) -> None:
        """Read the results of an earlier search of the same kind. Raises InputError."""
        try:
            lines = self.path.read_bytes().splitlines() if self.path.exists() else []
            if lines and msgspec.json.decode(lines[0]) == self._head():
                for line in lines[1:]:
                    digest, shows = msgspec.json.decode(line, type=tuple[str, bool])
                    self.results[digest] = shows
                return
            self.path.write_bytes(canonical_json(self._head()) + b"\n")
        except msgspec.DecodeError:
            # The last line of a killed search may be cut; those before it are whole.
            lines = [canonical_json(each) for each in self.results.items()]
            self.path.write_bytes(b"\n".join([canonical_json(self._head()), *lines, b""]))
        except OSError as problem:
            raise self._unwritable(problem) from problem

    def keep(self, digest: str, *, shows: bool) -> None:
        """Store a result. Raises InputError; a line that is cut then is left out by `open`."""
        self.results[digest] = shows
        self.trials += 1
        try:
            with self.path.open("ab") as file:
                file.write(canonical_json([digest, shows]) + b"\n")
        except OSError as problem:
            raise self._unwritable(problem) from problem

    def _unwritable(self, problem: OSError) -> InputError:
        if self.path.is_file() and not self.path.stat().st_size:
            self.path.unlink()
        return InputError(f"it cannot be written: {problem.strerror}", place=str(self.path))

    def _head(self) -> object:
        return {"version": VERSION, "search": self.place}


def minimise(
    source: Source,
    settings: Settings,
    keep: Predicate,
    output: Path,
    *,
    name: str,
    seconds: float | None = None,
    judges_of: Callable[[Judge], Judges] = InlineJudges,
    report_progress: Callable[[State], None] = lambda _: None,
) -> Minimised:
    """Write the smallest history that still shows the predicate. Raises InputError.

    After `seconds`, the smallest one so far is written. An interrupted search writes no history;
    the next search of the same history and predicate resumes it.
    """
    began = time.monotonic()
    whole, judge, first = _shown(source, settings, keep)
    assert first.sighting is not None, "it is shown"
    memory = _Memory(output.with_name(output.name + SUFFIX), _place(source, whole, judge))
    memory.open()
    ends_at = None if seconds is None else began + seconds
    search = _Search(source, judge, judges_of, memory, ends_at, report_progress)
    is_minimal = search.run(first)
    judge, material, best = search.judge, search.judge.material, search.best
    judged = judge.judge(best)
    assert judged.sighting is not None, "the smallest candidate was judged before"
    events = judge.write(best, output, name)
    memory.path.unlink(missing_ok=True)
    return Minimised(
        predicate=judge.predicate.text,
        sighting=judged.sighting.text,
        is_recorded=material.is_recorded,
        was_recorded=whole.is_recorded,
        is_of_recording=source.is_recording,
        is_minimal=is_minimal,
        represented=search.represented,
        events_before=source.events,
        events=events,
        inputs=len(best.kept),
        objects=len(material.keys(best)),
        devices=materials.devices_of(material.inputs(best)),
        trials=memory.trials,
        remembered=memory.remembered,
        seconds=time.monotonic() - began,
    )


def _shown(source: Source, settings: Settings, keep: Predicate) -> tuple[Material, Judge, Judged]:
    """The material whose whole shows the predicate: decided here, or else as recorded.

    What a predicate about pods or rules leaves open is what the recording shows, where it shows it:
    the controllers here may let the same pod wait for another cause. A served history may hold the
    writes of a scheduler from outside, so its violations count as those of a recording.
    """
    as_recorded: tuple[Material, Judge, Judged] | None = None
    meant = keep
    is_of_others = source.is_recording and isinstance(keep, PodCondition)
    if is_of_others or isinstance(keep, predicates.ViolationPredicate):
        as_recorded = _judged_whole(source, source.recorded, settings, keep)
        if as_recorded is not None:
            meant = as_recorded[1].predicate
    if not isinstance(keep, DifferencePredicate):
        decided = _judged_whole(source, source.decided, settings, meant)
        if decided is not None:
            return decided
    if as_recorded is None and not isinstance(keep, predicates.SwitchPredicate):
        as_recorded = _judged_whole(source, source.recorded, settings, keep)
    if as_recorded is not None:
        return as_recorded
    problem = f"history {source.name!r} does not show it: {keep.text}"
    raise InputError(problem, place="--keep", cure=predicates.where_to_look(keep))


def _judged_whole(
    source: Source, material: Material, settings: Settings, keep: Predicate
) -> tuple[Material, Judge, Judged] | None:
    """The material with its judge and the judgement of its whole; None if that does not show it."""
    judge = Judge(material, source.info, settings, keep)
    judged = judge.begin(source.whole(material))
    return (material, judge, judged) if judged.shows else None


def _place(source: Source, material: Material, judge: Judge) -> str:
    """The digest of a search: searches of another history, setting or predicate have others."""
    whole = material.digest(source.whole(material))
    parts = [whole, repr(judge.predicate), source.info.settings, material.is_recorded]
    return hashlib.sha256(canonical_json(parts)).hexdigest()


class _Search:
    """Drives the reduction, keeps results, and reports progress."""

    def __init__(
        self,
        source: Source,
        judge: Judge,
        judges_of: Callable[[Judge], Judges],
        memory: _Memory,
        ends_at: float | None,
        report_progress: Callable[[State], None],
    ) -> None:
        self.judge = judge
        self.best = source.whole(judge.material)
        self._running = () if judge.material.is_recorded else source.running
        self._source = source
        self._judges_of = judges_of
        self._judges = judges_of(judge)
        self._memory = memory
        self._ends_at = ends_at
        self._report_progress = report_progress
        self._doing = ""
        self._last = self._reduction()

    @property
    def represented(self) -> int:
        """The most parts that are alike of which the last reduction tried only three."""
        return self._last.represented

    def run(self, first: Judged) -> bool:
        """Search to the end or until time is up; True when no single part can be left out.

        If there is a predicate that is quicker to judge, the search uses it first, and repeats with
        the real one. For a recording that is taken as recorded, candidates that the controllers
        here decide are tried too: first small ones around the sightings, and if none of them shows
        the predicate, the result of the search.
        """
        whole, predicate = self.best, self.judge.predicate
        if self._material.is_recorded and not isinstance(predicate, DifferencePredicate):
            is_minimal = self._search_near_decided(first)
            if is_minimal is not None:
                return is_minimal
        if first.near is not None:
            self._judge_by(self.judge.for_predicate(first.near))
            if not self._search(first, whole):
                return False
            self._judge_by(self.judge.for_predicate(predicate))
        is_minimal = self._search(first, whole)
        if (
            is_minimal
            and self._material.is_recorded
            and not isinstance(predicate, DifferencePredicate)
        ):
            return self._search_decided()
        return is_minimal

    def _search_near_decided(self, first: Judged) -> bool | None:
        """Search small candidates around the sightings of a recording, decided by controllers here.

        The controllers may decide the whole history otherwise than recorded, but a small part of it
        in the same way, because fewer pods compete for the devices. Such a part also shows how its
        state came about. If a pod waits or is evicted, candidates without other controllers are
        tried too, and candidates that begin with the state after earlier placements. None if
        no candidate shows the predicate, False if time was up before.
        """
        recorded, whole, running = self.judge, self.best, self._running
        # The controllers here may come to the sighting at another time than the recorded ones.
        sightings = [replace(each, at=None) for each in first.sightings]
        for source, off in self._beginnings_to_decide(recorded, first.sightings):
            if self._is_over:
                break
            self._decide(source, recorded)
            start = self.best = replace(self.best, off=off)
            reduction = self._reduction()
            self._drive(reduction.jump(sightings, (*NEAR, *FAR[:-1])))
            if self.best != start or self._judged([start])[0]:
                return self._drive(reduction.passes()) and reduction.is_minimal
        self._judge_by(recorded)
        self.best, self._running = whole, running
        return False if self._is_over else None

    def _beginnings_to_decide(
        self, recorded: Judge, sightings: Sequence[Sighting]
    ) -> Iterator[tuple[Source, frozenset[str]]]:
        """Histories that may show the predicate if decided here, and the controllers to turn off.

        The first is the whole recording with all controllers. More are tried only for predicates
        about pods: the violation of an invariant comes from decisions made elsewhere, and a command
        judges whole histories.
        """
        source = self._source
        yield source, frozenset()
        if not isinstance(recorded.predicate, PodCondition):
            return
        yield source, frozenset(source.running).difference(PLACING)
        for beginning in beginnings.before(recorded.material, sightings[:BEGUN_MAX]):
            material, whole = beginnings.begun(recorded.material, beginning)
            later = self._decided_again(recorded.of(material), whole)
            yield later, frozenset()
            yield later, frozenset(later.running).difference(PLACING)

    def _search_decided(self) -> bool:
        """Search the result once more, decided by the controllers here, if it shows the predicate.

        Without this, minimising the result again as a history of its own would make it smaller.
        """
        recorded, best, running = self.judge, self.best, self._running
        self._decide(self._decided_again(recorded, best), recorded)
        if not self._judged([self.best])[0]:
            self._judge_by(recorded)
            self.best, self._running = best, running
            return True
        reduction = self._reduction()
        return self._drive(reduction.steps(())) and reduction.is_minimal

    def _decided_again(self, recorded: Judge, candidate: Candidate) -> Source:
        """The parts of a candidate, treated as a separate recording."""
        ran = recorded.run(candidate)
        return anyio.run(sources.read_ran, recorded.settings, ran, self._source.name)

    def _decide(self, source: Source, recorded: Judge) -> None:
        """Continue with the whole source, decided by the controllers here."""
        self._judge_by(
            Judge(
                source.decided,
                source.info,
                recorded.settings,
                recorded.predicate,
                recorded.faults,
            )
        )
        self.best, self._running = source.whole(source.decided), source.running

    def _judge_by(self, judge: Judge) -> None:
        self.judge, self._judges = judge, self._judges_of(judge)

    def _search(self, first: Judged, whole: Candidate) -> bool:
        """Search with one predicate; True when no single part can be left out.

        A recording that cannot be reduced far enough may begin later.
        """
        reduction = self._reduction()
        if not self._material.is_recorded:
            return self._drive(reduction.steps(first.sightings)) and reduction.is_minimal
        start = reduction.best
        is_whole = start == whole
        if is_whole and not self._drive(reduction.jump(first.sightings, NEAR)):
            return False
        if is_whole and reduction.best == start and not reduction.is_all(first.sightings, NEAR):
            if self._begin(beginnings.before(self._material, first.sightings)):
                reduction = self._reduction()
            elif not self._drive(reduction.jump(first.sightings, FAR)):
                return False
            if reduction.best == start and not self._drive(reduction.shorten()):
                return False
        if not self._drive(reduction.narrow(first.sightings)):
            return False
        while self._drive(reduction.passes()):
            is_minimal = reduction.is_minimal
            if not self._may_begin_later():
                return is_minimal
            if not self._begin(beginnings.later(self._material, self.best)):
                return is_minimal
            reduction = self._reduction()
        return False

    @property
    def _material(self) -> Material:
        return self.judge.material

    @property
    def _is_over(self) -> bool:
        return self._ends_at is not None and time.monotonic() >= self._ends_at

    def _reduction(self) -> Reduction:
        self._last = Reduction(
            self._material,
            self.best,
            self._may_stop(),
            is_decided=not self._material.is_recorded
            or isinstance(self.judge.predicate, DifferencePredicate),
            width=self._judges.width,
            is_out=self._is_out,
            report_progress=self._note,
        )
        return self._last

    def _may_stop(self) -> Sequence[str]:
        """The controllers that may be left out.

        What lasts too long lasts for want of the controller that ends it, too, without any defect.
        """
        return () if predicates.is_lasting(self.judge.predicate) else self._running

    def _is_out(self, candidate: Candidate) -> bool:
        """Whether it is known without a run that a candidate does not show the predicate."""
        shows = self._memory.results.get(self.judge.digest(candidate))
        return self.judge.is_out(candidate) if shows is None else not shows

    def _drive(self, steps: Tries) -> bool:
        """Try the candidates of a reduction; False when time was up before its end."""
        try:
            batch = next(steps)
            while not self._is_over:
                batch = steps.send(self._judged(batch))
        except StopIteration:
            return True
        return False

    def _may_begin_later(self) -> bool:
        """Whether the result begins with a state already, or has too many writes (`STORY_MAX`)."""
        if len(self.best.kept) > STORY_MAX:
            return True
        return any(beginnings.is_beginning(step) for step in self._material.inputs(self.best))

    def _begin(self, tries: Iterable[LaterBeginning]) -> bool:
        """Continue with the first beginning that shows the predicate; False if none does."""
        rest = iter(tries)
        while not self._is_over and (batch := list(islice(rest, self._judges.width))):
            for beginning, shows in zip(batch, self._judged(batch), strict=True):
                if shows:
                    material, whole = beginnings.begun(self._material, beginning)
                    self._judge_by(self.judge.of(material))
                    self._doing = "beginning"
                    self._note(whole)
                    return True
        return False

    def _judged(self, batch: Sequence[Tried]) -> list[bool]:
        """Whether each candidate shows the predicate, from kept results where possible.

        Candidates after the first that shows it do not matter to the search, and are not judged.
        """
        digests = [self.judge.digest(each) for each in batch]
        results = self._memory.results
        self._memory.remembered += len(results.keys() & set(digests))
        fresh: dict[str, Tried] = {}
        for digest, each in zip(digests, batch, strict=True):
            if results.get(digest):
                break
            if digest in results:
                continue
            if self._judges.width > 1 and self.judge.is_out(each):
                self._memory.keep(digest, shows=False)
            else:
                fresh[digest] = each
        judgements = self._judges.judge(list(fresh.values())) if fresh else ()
        for digest, judged in zip(fresh, judgements, strict=False):
            self._memory.keep(digest, shows=judged.shows)
        return [results.get(digest, False) for digest in digests]

    def _note(self, news: Pass | Candidate) -> None:
        if isinstance(news, Pass):
            self._doing = news.name
        else:
            self.best = news
        self._report_progress(
            State(
                doing=self._doing,
                steps=len(self.best.kept),
                objects=len(self._material.keys(self.best)),
                devices=materials.devices_of(self._material.inputs(self.best)),
                trials=self._memory.trials,
                remembered=self._memory.remembered,
            )
        )
