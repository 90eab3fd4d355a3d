"""The state that a request reads: a history at its head, or at a past moment.

Both have objects at one revision. Only the present of a history that is not a recording can be
written to. The past never changes, so a watch on it sends the objects and then waits.
"""

import msgspec

from app.analysis.views import LiveViews
from app.api.kubernetes.paths import RequestedTimeline
from app.domain.errors import (
    BadRequest,
    InputError,
    MethodNotAllowed,
    NotFound,
    RevisionTooLarge,
    StatusCause,
)
from app.domain.log import Revision
from app.domain.values.bounded import Bounded
from app.domain.values.timestamps import Instant
from app.service import moments
from app.service.histories import Histories
from app.service.runtime import HistoryRuntime


class Timeline(msgspec.Struct, frozen=True, kw_only=True):
    """One history at the moment of a request. `past` is None for the present."""

    histories: Histories
    runtime: HistoryRuntime
    past: LiveViews | None = None
    past_now: Instant = Instant(0)

    @property
    def views(self) -> LiveViews:
        """The views at the shown revision."""
        return self.past if self.past is not None else self.runtime.views

    @property
    def revision(self) -> Revision:
        """The shown revision."""
        return self.views.revision

    @property
    def now(self) -> Instant:
        """The instant from which ages are counted: the clock, or the last shown moment."""
        if self.past is None:
            return self.runtime.clock.now()
        return self.past_now

    def oldest(self, retained_revisions: int) -> Revision:
        """The oldest revision from which clients can continue after compaction or a rewound replay.

        Where compaction is imitated, `retained_revisions` are kept; 0 turns it off. The past can be
        read forever.
        """
        if self.past is not None:
            return Revision(0)
        floor = self.runtime.watches.floor
        if not retained_revisions:
            return floor
        return Revision(max(floor, self.revision - retained_revisions))

    def check_writable(self) -> None:
        """Raise MethodNotAllowed for the past and for recordings."""
        if self.past is not None:
            raise MethodNotAllowed(
                f"the history {self.runtime.info.name!r} is shown as of revision {self.revision} "
                "and cannot be changed there"
            )
        if self.runtime.info.is_recorded:
            raise MethodNotAllowed(
                f"the history {self.runtime.info.name!r} is a recording and cannot be changed"
            )

    async def at(self, revision: int) -> LiveViews:
        """The views at an earlier revision of the same history."""
        if revision == self.revision:
            return self.views
        return await self.histories.at(self.runtime.info.name, Revision(revision))

    async def wait_for(self, revision: int, seconds: float) -> None:
        """Return when `revision` is shown. Raises RevisionTooLarge after `seconds`."""
        if revision <= self.revision:
            return
        if self.past is None and await self.runtime.wait_for(Revision(revision), seconds):
            return
        raise RevisionTooLarge(
            f"Timeout: Too large resource version: {revision}, current: {self.revision}",
            causes=(
                StatusCause(reason="ResourceVersionTooLarge", message="Too large resource version"),
            ),
            retry_after_seconds=1,
        )


async def open_timeline(histories: Histories, place: RequestedTimeline) -> Timeline:
    """The state at a path. Raises NotFound or BadRequest."""
    runtime = await histories.open(place.history)
    if not place.moment:
        return Timeline(histories=histories, runtime=runtime)
    try:
        # A relative moment is resolved once, for the objects and for their ages.
        moment = runtime.absolute(place.moment)
        past = await views_at(histories, runtime, moment)
    except InputError as problem:
        raise BadRequest(str(problem)) from problem
    now = await _moment_of(runtime, moment, past.revision)
    return Timeline(histories=histories, runtime=runtime, past=past, past_now=now)


async def views_at(histories: Histories, runtime: HistoryRuntime, moment: str) -> LiveViews:
    """The views at a moment; live views if empty. Raises InputError, NotFound past the end."""
    if not moment:
        return runtime.views
    try:
        return await histories.at(runtime.info.name, moment)
    except RevisionTooLarge as problem:
        raise NotFound(problem.message, resource="revisions") from problem


async def _moment_of(runtime: HistoryRuntime, moment: str, revision: Revision) -> Instant:
    """The instant in a path, or the time of the event at the revision in the path."""
    if not moments.is_revision(moment):
        return moments.parse_instant(moment)
    place = (runtime.life, revision)
    if place not in _times:
        _times[place] = await moments.time_of(runtime.log, runtime.info, revision)
    return _times[place]


_TIMES_MAX = 1_024
_times: Bounded[tuple[int, Revision], Instant] = Bounded(_TIMES_MAX)
