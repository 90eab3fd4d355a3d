"""Jobs: work for one answer that takes minutes, in a process of its own.

A client starts a job, looks at its progress, fetches its result, and may cancel it. The work is an
errand of a history and ends with it. A bounded number of jobs run at a time; the others wait. The
result of a job that has ended is kept in memory for a bounded time.
"""

import logging
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from typing import Protocol

import anyio

from app.domain.errors import InputError, LogError, NotFound, TooManyRequests
from app.domain.log import HistoryId, HistoryInfo, Revision
from app.domain.values.json_tree import JsonObject
from app.ports import EventLog
from app.service.answering.errands import Errands

_ID_BYTES = 8

_log = logging.getLogger("redra")


class JobKind(StrEnum):
    """The work of a job."""

    MINIMISE = "minimise"
    SWEEP = "sweep"
    INCIDENTS = "incidents"
    REHEARSE = "rehearse"
    EXPORT = "export"
    DIFF = "diff"
    AGAIN = "again"


class JobState(StrEnum):
    """The state of a job: waiting for its turn, running, or ended in one of three ways."""

    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


ENDED = (JobState.DONE, JobState.FAILED, JobState.CANCELLED)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSource:
    """A history that a job reads up to a revision, under the name its user gave.

    `end` is the hash of the event at that revision: a restored log may have another one there, or
    give the number of the history to another one. `file` is the name of its bundle if users get
    that bundle, which is signed then. `as_of` is the field of the result that says which instant a
    relative moment names.
    """

    name: str
    info: HistoryInfo
    until: Revision
    end: bytes = b""
    file: str = ""
    as_of: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobWish:
    """The work that a user wants, with plain parameters. It names no files and no programs."""

    kind: JobKind
    parameters: JsonObject
    sources: Sequence[JobSource] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class JobOutcome:
    """The result of a job as JSON, and its files by name."""

    result: object
    files: Mapping[str, bytes] = field(default_factory=dict)


ReportProgress = Callable[[JsonObject], None]
"""A function that is called with the progress of a job, as JSON."""


def report_nothing(progress: JsonObject) -> None:
    """Report no progress."""


class JobWorker(Protocol):
    """Does the work of a job in another process, which ends with the call, also when cancelled.

    `report_progress` is called with the progress. Raises InputError, LogError.
    """

    async def __call__(
        self, log: EventLog, wish: JobWish, report_progress: ReportProgress
    ) -> JobOutcome: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class JobBounds:
    """The bounds of jobs in one process.

    `at_once_max` jobs run at a time, `unfinished_max` run or wait. At most `kept_max` that have
    ended are kept, each for `kept_seconds`. One request waits at most `wait_seconds_max` for a job.
    A job ends after `seconds_max`. Jobs read histories of at most `events_max` events in all, and
    sweeps have at most `cells_max` runs.
    """

    at_once_max: int = 1
    unfinished_max: int = 8
    kept_max: int = 16
    kept_seconds: float = 3_600.0
    wait_seconds_max: float = 30.0
    seconds_max: float = 3_600.0
    events_max: int = 500_000
    cells_max: int = 10_000


@dataclass(slots=True, kw_only=True, eq=False)
class Job:
    """A job of the user `owner`, which belongs to a history (`place`) or to none (None).

    `problem` is the reason why it failed, as message, place and cure, `error` the error behind it.
    """

    id: str
    owner: str
    place: HistoryId | None
    wish: JobWish
    begun_at: float
    state: JobState = JobState.WAITING
    progress: JsonObject = field(default_factory=dict)
    problem: JsonObject = field(default_factory=dict)
    error: Exception | None = None
    outcome: JobOutcome | None = None
    ended_at: float = 0.0
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    _ended: anyio.Event = field(default_factory=anyio.Event)

    @property
    def seconds(self) -> float:
        """The time since the job was started, or from then to its end."""
        until = self.ended_at if self._ended.is_set() else anyio.current_time()
        return until - self.begun_at

    async def wait_ended(self, seconds: float) -> None:
        """Wait until the job has ended, for at most this time."""
        with anyio.move_on_after(seconds):
            await self._ended.wait()

    def end(self, state: JobState, problem: Exception | str = "") -> None:
        """Note the end of the job, with its state; later calls change nothing."""
        if self._ended.is_set():
            return
        self.state, self.ended_at = state, anyio.current_time()
        if problem:
            place, cure, text = "", "", str(problem)
            if isinstance(problem, InputError):
                place, cure, text = problem.place, problem.cure, problem.problem
            self.problem = {"message": text, "place": place, "cure": cure}
            self.error = problem if isinstance(problem, Exception) else None
        self._ended.set()


class Jobs:
    """The jobs of one process."""

    def __init__(self, worker: JobWorker | None, bounds: JobBounds) -> None:
        self.bounds = bounds
        self._worker = worker
        self._turns = anyio.CapacityLimiter(bounds.at_once_max)
        self._jobs: dict[str, Job] = {}

    def begin(
        self,
        log: EventLog,
        errands: Errands,
        wish: JobWish,
        *,
        owner: str,
        place: HistoryId | None,
    ) -> Job:
        """A new job among the errands of a history. Raises TooManyRequests, NotFound."""
        if self._worker is None:
            raise NotFound("this server runs no jobs")
        self._drop_old()
        job = Job(
            id=secrets.token_hex(_ID_BYTES),
            owner=owner,
            place=place,
            wish=wish,
            begun_at=anyio.current_time(),
        )
        unfinished = sum(each.state not in ENDED for each in self._jobs.values())
        errand = None
        if unfinished < self.bounds.unfinished_max:
            work = partial(self._run, self._worker, log, job)
            errand = errands.begin(("job", job.id), work)
        if errand is None:
            raise TooManyRequests(
                f"{unfinished} jobs run or wait already: wait for one, or cancel it",
                retry_after_seconds=10,
            )
        self._jobs[job.id] = job
        return job

    def of(self, place: HistoryId | None) -> list[Job]:
        """The jobs that belong to a history, or to none, oldest first."""
        self._drop_old()
        return [job for job in self._jobs.values() if job.place == place]

    async def remove(self, job: Job) -> None:
        """Cancel a job unless it has ended, wait for its end, and forget it with its result."""
        job.scope.cancel()
        await job.wait_ended(float("inf"))
        self._jobs.pop(job.id, None)

    async def forget(self, history: HistoryId) -> None:
        """Remove the jobs that read a history, because it is deleted."""
        for job in list(self._jobs.values()):
            if history in (job.place, *(source.info.id for source in job.wish.sources)):
                await self.remove(job)

    async def _run(self, worker: JobWorker, log: EventLog, job: Job) -> None:
        try:
            with job.scope:
                async with self._turns:
                    job.state = JobState.RUNNING
                    job.outcome = await worker(log, job.wish, partial(setattr, job, "progress"))
                    job.end(JobState.DONE)
            job.end(JobState.CANCELLED)
        except (InputError, LogError) as problem:
            job.end(JobState.FAILED, problem)
        except Exception:
            # The client gets an error without the trace, the log has the trace.
            _log.exception("a job failed unexpectedly")
            job.end(JobState.FAILED, "an unexpected error, see the log of the server")
        finally:
            job.end(JobState.FAILED, "the history was closed before the job was complete")

    def _drop_old(self) -> None:
        """Forget jobs that ended long ago, and the oldest ones beyond the bound."""
        ended = [job for job in self._jobs.values() if job.state in ENDED]
        ended.sort(key=lambda job: job.ended_at)
        until = anyio.current_time() - self.bounds.kept_seconds
        excess = max(len(ended) - self.bounds.kept_max, 0)
        for number, job in enumerate(ended):
            if number < excess or job.ended_at <= until:
                del self._jobs[job.id]
