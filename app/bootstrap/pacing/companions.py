"""The companions of a server, beside its API and controllers: recorders and a paced replay."""

from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack

from anyio.abc import TaskGroup

from app.bootstrap.pacing.playing import PacedReplay
from app.bootstrap.pacing.replay_request import ReplayWanted
from app.bootstrap.recording.attaching import Attachments
from app.bootstrap.recording.recording_request import Wanted
from app.bootstrap.stores import Store
from app.service.histories import Histories
from app.service.pacing.player import Player
from app.settings import Settings


class Companions:
    """The companions of one server.

    `open` them, `begin` with the server's histories, `start`, and finally `stop`. `players` are the
    players of paced replays, by the names of their histories.
    """

    def __init__(
        self,
        store: Store,
        settings: Settings,
        attached: Sequence[Wanted],
        replay: ReplayWanted | None,
        note: Callable[[str], None],
    ) -> None:
        self._attachments = Attachments(store, settings, attached, note)
        self._replay = None if replay is None else PacedReplay(store, settings, replay, note)
        self.players: dict[str, Player] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """The histories that must stay open."""
        return (*self._attachments.names, *self.players)

    async def open(self, stack: AsyncExitStack) -> None:
        """Connect to the clusters to record; `stack` gives the lease of the replay back at its end.

        Raises InputError.
        """
        if self._replay is not None:
            stack.push_async_callback(self._replay.release)
        await self._attachments.open(stack)

    async def begin(self, histories: Histories) -> None:
        """Prepare the replay for playing. Raises InputError."""
        if self._replay is not None:
            player = await self._replay.begin(histories)
            self.players[player.info.name] = player

    def start(
        self, tasks: TaskGroup, end: Callable[[], None], begun: Callable[[str], None]
    ) -> None:
        """Start recording and playing; `end` ends the server.

        `begun` is called with the name of each recorded history that exists then.
        """
        self._attachments.start(tasks, begun)
        if self._replay is not None:
            tasks.start_soon(self._play, self._replay, end)

    async def _play(self, replay: PacedReplay, end: Callable[[], None]) -> None:
        """Play until cancelled, or until the replay alone has ended; then it has no player."""
        await replay.run(end)
        self.players.clear()

    async def stop(self) -> None:
        """End the recorders in order, in a bounded time."""
        await self._attachments.stop()
