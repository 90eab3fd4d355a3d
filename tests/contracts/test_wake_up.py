"""The contract of WakeUp, for every store."""

import anyio
import asyncpg
import pytest

from app.adapters.postgres.names import channel
from app.adapters.postgres.wakeup import open_wake_up
from app.domain.log import Head, HistoryId
from tests.contracts.building import claims
from tests.contracts.stores import OpenStores

SOON = 10.0
"""Bound for what happens at once."""


async def test_append_hints_every_listener(open_stores: OpenStores):
    async with open_stores() as stores:
        history = await stores.history()
        async with stores.wake_up.listen(history) as one, stores.wake_up.listen(history) as other:
            await stores.log.append(history, expected=Head(), events=claims(Head(), 1))
            assert await one.wait(SOON) is True
            assert await other.wait(SOON) is True


async def test_large_append_hints_too(open_stores: OpenStores):
    async with open_stores() as stores:
        history = await stores.history()
        async with stores.wake_up.listen(history) as listener:
            await stores.log.append(history, expected=Head(), events=claims(Head(), 1_500))
            assert await listener.wait(SOON) is True


async def test_hint_before_the_wait_is_kept_and_told_once(open_stores: OpenStores):
    async with open_stores() as stores:
        history = await stores.history()
        async with stores.wake_up.listen(history) as listener:
            head = await stores.log.append(history, expected=Head(), events=claims(Head(), 1))
            assert await listener.wait(SOON) is True
            assert await listener.wait(0) is False
            await stores.log.append(history, expected=head, events=claims(head, 1))
            assert await listener.wait(SOON) is True


async def test_waiting_listener_wakes(open_stores: OpenStores):
    async with open_stores() as stores:
        history = await stores.history()
        async with stores.wake_up.listen(history) as listener:
            answers: list[bool] = []

            async def wait() -> None:
                answers.append(await listener.wait(SOON))

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(wait)
                await anyio.lowlevel.checkpoint()
                await stores.log.append(history, expected=Head(), events=claims(Head(), 1))
            assert answers == [True]


async def test_other_histories_do_not_hint(open_stores: OpenStores):
    async with open_stores() as stores:
        history, other = await stores.history("one"), await stores.history("other")
        async with stores.wake_up.listen(history) as listener:
            async with stores.wake_up.listen(other) as reference:
                await stores.log.append(other, expected=Head(), events=claims(Head(), 1))
                assert await reference.wait(SOON) is True
            assert await listener.wait(0) is False


async def test_listening_again_after_leaving_works(open_stores: OpenStores):
    async with open_stores() as stores:
        history = await stores.history()
        async with stores.wake_up.listen(history):
            pass
        async with stores.wake_up.listen(history) as listener:
            await stores.log.append(history, expected=Head(), events=claims(Head(), 1))
            assert await listener.wait(SOON) is True


async def test_hint_names_how_far_the_history_grew(open_stores: OpenStores):
    async with open_stores() as stores:
        history = await stores.history()
        async with stores.wake_up.listen(history) as listener:
            head = await stores.log.append(history, expected=Head(), events=claims(Head(), 3))
            assert await listener.wait(SOON) is True
            assert listener.named == head.revision == 3
            assert await listener.wait(0) is False
            assert listener.named == 0


@pytest.mark.database
@pytest.mark.parametrize("payload", ["", "x", "-1", "0", "9" * 30, "9" * 7_000, "\u0665"])
async def test_notification_by_somebody_else_is_a_hint(database_url: str, payload: str):
    """Any role may notify; the driver tells of a failed callback only in its log."""
    async with open_wake_up(database_url) as wake_up, wake_up.listen(HistoryId(1)) as listener:
        connection = await asyncpg.connect(database_url)
        await connection.execute("SELECT pg_notify($1, $2)", channel(HistoryId(1)), payload)
        await connection.close()
        assert await listener.wait(SOON) is True
        assert listener.named == 0
