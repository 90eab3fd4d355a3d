"""Followers that begin in the past: recent events come from memory, older ones from the log."""

import pytest

from app.adapters.memory import MemoryLog, MemoryStore
from app.domain.log import Event, HistoryId, Revision
from tests.unit.service.builders import ALICE, config_map, namespace, running_history

RECENT = 4
STORED = 10


class Counted(MemoryLog):
    """A log that knows after which revisions it was read."""

    def __init__(self) -> None:
        super().__init__(MemoryStore())
        self.reads: list[int] = []

    async def read(
        self,
        history: HistoryId,
        *,
        after: Revision,
        limit: int,
        until: Revision | None = None,
    ) -> list[Event]:
        self.reads.append(after)
        return await super().read(history, after=after, limit=limit, until=until)


@pytest.mark.parametrize("since", range(STORED + 1))
async def test_follower_sees_every_event_once_wherever_the_recent_ones_begin(since: int) -> None:
    log = Counted()
    async with running_history(log=log, recent_max=RECENT) as history:
        await history.submit(namespace("default"), actor=ALICE)
        for number in range(2, STORED + 1):
            await history.submit(config_map(f"m{number}"), actor=ALICE)
        log.reads.clear()
        with history.follow(after=Revision(since), reads=None) as followed:
            # What is stored from now on is live: it must not come from the past as well.
            await history.submit(config_map("live"), actor=ALICE)
            seen: list[int] = []
            while batch := await followed.catch_up():
                seen += [event.revision for event in batch]
            assert seen == list(range(since + 1, STORED + 1))
            seen += [event.revision for event in await followed.next_batch(5.0)]
        assert seen == list(range(since + 1, STORED + 2))
        # Of eleven events the last four are in memory when the follower reads: 8 to 11.
        is_old = since + 1 < STORED + 2 - RECENT
        assert log.reads == ([since] if is_old else [])
