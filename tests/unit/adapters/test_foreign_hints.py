"""Notices that other programs send on a history's channel."""

import anyio
import pytest

from app.adapters.postgres.names import channel
from app.adapters.postgres.wakeup import PostgresWakeUp, WakeUpBounds
from app.domain.log import HistoryId
from tests.patience import PATIENCE_SECONDS


@pytest.mark.parametrize(("payload", "named"), [("7", 7), ("", 0), ("seven", 0), ("²", 0)])
async def test_notice_is_a_hint_whatever_it_says(payload: str, named: int) -> None:
    wake_up = PostgresWakeUp("postgresql://nowhere", WakeUpBounds())
    history = HistoryId(1)
    async with wake_up.listen(history) as listener:
        wake_up._note_hint(None, 0, channel(history), payload)
        with anyio.fail_after(PATIENCE_SECONDS):
            assert await listener.wait(0.01)
        assert listener.named == named
