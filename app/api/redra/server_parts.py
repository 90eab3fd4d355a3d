"""The parts of a server beside its histories, which only the process that starts it has."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from app.analysis.incidents.incident import Exhibit, Incident
from app.analysis.lint.linting import LintReport
from app.api.redra.experiment_models import JobStatus
from app.domain.log import Actor, Head, HistoryId, HistoryInfo, Revision
from app.domain.log.heads import SignedHead
from app.domain.objects.access.rules import Grants
from app.ports import EventLog
from app.service.answering.jobs import JobWorker
from app.service.pacing.player import Player
from app.service.runtime import HistoryRuntime

Sign = Callable[[str, Head], SignedHead]
"""Signs the head of the history with a name."""


Holders = Callable[[HistoryId], Awaitable[Mapping[str, str]]]
"""The processes that run the controllers of a history, by controller."""


Reader: TypeAlias = tuple[Actor, Grants]
"""A user, with their present rights in a history."""


class Gallery(Protocol):
    """The incidents that come with the program."""

    def names(self) -> list[str]:
        """The names of all incidents, sorted."""
        ...

    def read(self, name: str) -> Exhibit:
        """An incident with its story. Raises InputError for an unknown name."""
        ...


class Lint(Protocol):
    """Checks the objects of a history up to a revision.

    `profile` is the release whose API checks them (empty: that of the settings), `ignored` are the
    rules that are left out. Raises InputError for an unknown release or rule.
    """

    async def __call__(
        self,
        log: EventLog,
        info: HistoryInfo,
        until: Revision,
        *,
        profile: str,
        ignored: Sequence[str],
    ) -> LintReport: ...


async def _nobody(_: HistoryId) -> Mapping[str, str]:
    return {}


class ListedPages(Protocol):
    """The pages of a history that may take minutes, as jobs of the user who asked for them."""

    def listed(self, runtime: HistoryRuntime, reader: Reader) -> list[JobStatus]:
        """These jobs, the oldest first."""
        ...

    async def waited(
        self, runtime: HistoryRuntime, reader: Reader, name: str, seconds: float
    ) -> JobStatus | None:
        """One of them, ended or after this time; None if there is none of this id."""
        ...

    async def cancelled(
        self, runtime: HistoryRuntime, reader: Reader, name: str
    ) -> JobStatus | None:
        """One of them, cancelled or removed; None if there is none of this id."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """The parts of a server beside its histories.

    `players` play paced replays, by the names of their histories; `sign` signs heads if the server
    has a key. `incident` reads an incident of the gallery by its name; None if there is none.
    `holders` gives the processes that run the controllers of a history, by controller. `gallery`
    has the incidents with their stories, `lint` checks the objects of a history, `worker` does the
    work of jobs, and `fleets` are the names of the profiles of emulated hardware.
    """

    players: Mapping[str, Player] = field(default_factory=dict)
    sign: Sign | None = None
    incident: Callable[[str], Incident | None] = lambda _: None
    gallery: Gallery | None = None
    lint: Lint | None = None
    holders: Holders = _nobody
    worker: JobWorker | None = None
    fleets: Sequence[str] = ()
