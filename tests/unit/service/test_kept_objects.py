"""The objects that a running history keeps from time to time for its next start."""

import anyio

from app.adapters.memory import MemoryViewStore
from app.domain.errors import LogUnavailable
from app.domain.log import HistoryId, Revision
from tests.patience import PATIENCE_SECONDS
from tests.unit.service.builders import ALICE, config_map, namespace, running_history

EVERY = 5


class Slow(MemoryViewStore):
    """A store that does not answer in time when a state is to be kept."""

    def __init__(self) -> None:
        super().__init__({})
        self.tries: list[int] = []
        self.tried = anyio.Event()

    async def save_snapshot(
        self, history: HistoryId, projection: str, version: int, revision: Revision, state: bytes
    ) -> None:
        self.tries.append(revision)
        self.tried.set()
        raise LogUnavailable("the database did not answer in time")


async def test_state_that_cannot_be_kept_is_tried_again_only_when_another_is_due() -> None:
    store = Slow()
    async with running_history(views=store, snapshot_every=EVERY) as history:
        await history.submit(namespace("default"), actor=ALICE)
        with anyio.fail_after(PATIENCE_SECONDS):
            for number in range(4 * EVERY):
                await history.submit(config_map(f"m{number}"), actor=ALICE)
                if history.head.revision >= EVERY * (len(store.tries) + 1):
                    await store.tried.wait()
                    store.tried = anyio.Event()
        assert len(store.tries) > 1
        gaps = [after - before for before, after in zip(store.tries, store.tries[1:], strict=False)]
        assert min(gaps) >= EVERY, store.tries
