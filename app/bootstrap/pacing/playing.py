"""A paced replay inside a server: made or resumed, and played by one process at a time.

Conflicts with client writes and the end of the replay are reported with `note`.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial

import anyio
from anyio.abc import TaskGroup

from app.bootstrap.pacing.keyboard import Keyboard, state_line
from app.bootstrap.pacing.replay_request import ReplayWanted
from app.bootstrap.stores import Store, find_history
from app.domain.errors import (
    InputError,
    LogUnavailable,
    RedraError,
    RevisionTooLarge,
    StaleLease,
)
from app.domain.log import Event, HistoryInfo, LeaseToken, Revision, replays
from app.service import moments
from app.service.histories import Histories
from app.service.pacing import stage
from app.service.pacing.player import Player, PlayerBounds, PlayerState
from app.service.pacing.script import PlayedSpan
from app.service.pacing.stage import StageTarget
from app.settings import Settings

_LEASE = "replay"
_REPORT_SECONDS = 0.25
_RELEASE_SECONDS = 2.0


SENTENCES_MAX = 1_000
"""Sentences about conflicts that are remembered; with more, what was counted is said."""


class ScreenConflicts:
    """The lines about conflicts: the first of equal ones at once, the others together.

    An object that clients deleted is in conflict with each of its recorded changes.
    """

    def __init__(self) -> None:
        self._more: dict[str, int] = {}

    def lines(self, conflicts: Sequence[Event]) -> list[str]:
        """The lines to show now, after these new conflicts."""
        lines: list[str] = []
        for event in conflicts:
            sentence = replays.conflict_of(event).message
            if sentence in self._more:
                self._more[sentence] += 1
                continue
            if len(self._more) >= SENTENCES_MAX:
                lines.extend(self.rest())
            self._more[sentence] = 0
            lines.append(f"conflict: {sentence}")
        return lines

    def rest(self) -> list[str]:
        """The lines about those that were only counted, which are forgotten then."""
        held, self._more = self._more, {}
        return [f"conflict, {more} more like it: {each}" for each, more in held.items() if more]


class PacedReplay:
    """The replay of one history: `begin`, then `run` until the server ends."""

    def __init__(
        self, store: Store, settings: Settings, wanted: ReplayWanted, note: Callable[[str], None]
    ) -> None:
        self._store = store
        self._settings = settings
        self._wanted = wanted
        self._note = note
        self._player: Player | None = None
        self._token: LeaseToken | None = None
        self._screen = ScreenConflicts()

    async def begin(self, histories: Histories) -> Player:
        """Make or resume the replay; returns its player, at the first moment. Raises InputError."""
        store, wanted = self._store, self._wanted
        parent = await find_history(store, wanted.history)
        if parent.is_paced:
            raise InputError(
                f"{parent.name} is itself a replay", cure="name the history that it shows"
            )
        span = await self._span(parent)
        info = await store.log.find_history(stage.name_of(parent.name))
        if info is not None and info.parent != parent.id:
            raise InputError(
                f"{info.name} is not a replay of this {parent.name}: it shows another "
                "history, which had this name before",
                cure=f"delete or rename {info.name}",
            )
        is_new = info is None
        if info is None:
            info = await stage.make(store.log, parent, span.begin, store.ports.clock.now())
        self._token = await self._acquire(info)
        player = self._player = Player(
            log=store.log,
            clock=store.ports.clock,
            parent=parent,
            info=info,
            open_runtime=partial(histories.open, info.name),
            span=span,
            speed=wanted.speed,
            shifts=wanted.shifts,
            bounds=PlayerBounds(
                objects_max=self._settings.past_objects_max,
                changes_max=self._settings.replay_changes_max,
                turns_max=self._settings.replay_turns_max,
            ),
        )
        player.lease = self._token
        async with self._leading(player):
            await player.begin(is_new=is_new)
        return player

    async def run(self, end: Callable[[], None]) -> None:
        """Play until cancelled; `end` ends the server.

        An error that ends only the replay, such as the deletion of its history, is reported. The
        server continues, unless it is to end with the replay. A replay that is stopped before its
        end says how to go on from there.
        """
        player = self._player
        assert player is not None, "a replay is run after it was begun"
        try:
            async with self._leading(player) as tasks:
                tasks.start_soon(self._report, player, end)
                if self._wanted.has_keys:
                    tasks.start_soon(Keyboard(player, self._note, end).run)
                await player.run()
        except anyio.get_cancelled_exc_class():
            if player.state is not PlayerState.ENDED:
                for line in self._screen.rest():
                    self._note(line)
                self._note(_way_on(player))
            raise
        except RedraError as problem:
            await self.release()
            self._note(f"{player.info.name} is no longer played: {problem}")
            if self._wanted.ends:
                self._wanted.on_end(None)
                end()

    async def release(self) -> None:
        """Give the lease back, so that the next player need not wait until it expires."""
        player, token, self._token = self._player, self._token, None
        if player is None or token is None:
            return
        with anyio.move_on_after(_RELEASE_SECONDS, shield=True), suppress(LogUnavailable):
            await self._store.leases.release(player.info.id, token)

    @asynccontextmanager
    async def _leading(self, player: Player) -> AsyncIterator[TaskGroup]:
        """Renew the lease in the block; an error of one task ends all and is raised as itself."""
        problem: RedraError | None = None
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._renew, player)
                yield tasks
                tasks.cancel_scope.cancel()
        except* RedraError as group:
            problem = _first(group)
        if problem is not None:
            raise problem

    async def _span(self, parent: HistoryInfo) -> PlayedSpan:
        """The span to play. Raises InputError for moments that are not in the history."""
        wanted, log = self._wanted, self._store.log
        head = await log.head(parent.id)
        first = await stage.first_state(log, parent)
        begin = await self._target(parent, wanted.begin, "--from") if wanted.begin else first
        end = StageTarget(revision=head.revision, time=head.time)
        if wanted.end:
            end = await self._target(parent, wanted.end, "--to")
        if end.revision < begin.revision or end.time < begin.time:
            if not wanted.end:
                raise InputError("the history ends before it", place="--from")
            raise InputError("the end is before the beginning", place="--to")
        return PlayedSpan(begin=begin, end=end)

    async def _target(self, parent: HistoryInfo, moment: str, option: str) -> StageTarget:
        log = self._store.log
        try:
            now = self._store.ports.clock.now()
            revision = await moments.find_revision(log, parent, moment, now)
        except RevisionTooLarge as problem:
            raise InputError(str(problem), place=option) from problem
        except InputError as problem:
            raise InputError(problem.problem, place=option, cure=problem.cure) from problem
        if revision < 1:
            first = await stage.first_state(log, parent)
            raise InputError(
                f"history {parent.name} has no event at {moment}",
                place=option,
                cure=f"its first state is at revision {first.revision}",
            )
        time = await moments.find_time(log, parent, moment, revision, now)
        return StageTarget(revision=Revision(revision), time=time)

    async def _acquire(self, info: HistoryInfo) -> LeaseToken:
        """Acquire the lease of the replay; waits for the lease of a dead process to expire."""
        store, seconds = self._store, self._settings.lease_seconds
        with anyio.move_on_after(seconds + 1.0):
            while True:
                token = await store.leases.acquire(
                    info.id, _LEASE, store.ports.uids.uid(), seconds=seconds
                )
                if token is not None:
                    return token
                await anyio.sleep(min(0.5, seconds / 4))
        raise InputError(
            f"another process plays {self._wanted.history}",
            cure="stop it, or change its pace at its /redra/v1",
        )

    async def _renew(self, player: Player) -> None:
        token = self._token
        assert token is not None, "the lease was acquired before"
        seconds = self._settings.lease_seconds
        while True:
            await anyio.sleep(seconds / 3)
            try:
                is_ours = await self._store.leases.renew(player.info.id, token, seconds=seconds)
            except LogUnavailable:
                continue  # no events are appended either while the store is away
            if not is_ours:
                raise StaleLease(token.name, token.epoch)

    async def _report(self, player: Player, end: Callable[[], None]) -> None:
        """Report conflicts and the end, as they occur."""
        last, was = 0, PlayerState.PAUSED
        while True:
            await anyio.sleep(_REPORT_SECONDS)
            new = [event for event in player.conflicts if event.revision > last]
            is_end = player.state is PlayerState.ENDED and was is not PlayerState.ENDED
            for line in (*self._screen.lines(new), *(self._screen.rest() if is_end else ())):
                self._note(line)
            last = max((last, *(event.revision for event in new)))
            if is_end:
                self._note(f"the replay has ended: {state_line(player)}")
                if self._wanted.ends:
                    self._wanted.on_end(player.counts[1])
                    end()
            was = player.state


def _way_on(player: Player) -> str:
    """The sentence for a replay that was stopped: where it stood, and the command to continue."""
    return (
        f"stopped at revision {player.revision} of {player.span.end.revision}: `redra serve-replay "
        f"{player.parent.name} --from {player.revision}` goes on from there, without what clients "
        "wrote"
    )


def _first(group: BaseExceptionGroup[RedraError]) -> RedraError:
    """One error of a group; errors that follow from it have ended with it."""
    problem = group.exceptions[0]
    return _first(problem) if isinstance(problem, BaseExceptionGroup) else problem
