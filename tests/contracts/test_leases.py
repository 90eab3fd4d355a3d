"""The contract of Leases, for every store. Expired means: taken for zero seconds."""

from app.domain.log import LeaseToken
from app.domain.values.timestamps import Instant
from tests.contracts.stores import OpenStores


async def test_free_lease_is_taken_by_one(open_stores: OpenStores):
    async with open_stores() as stores:
        history = await stores.history()
        token = await stores.leases.acquire(history, "eviction", "one", seconds=60)
        assert token == LeaseToken(name="eviction", epoch=1, holder="one")
        assert await stores.leases.acquire(history, "eviction", "two", seconds=60) is None


async def test_holder_that_asks_again_keeps_its_epoch(open_stores: OpenStores):
    async with open_stores() as stores:
        history = await stores.history()
        token = await stores.leases.acquire(history, "eviction", "one", seconds=60)
        assert await stores.leases.acquire(history, "eviction", "one", seconds=60) == token


async def test_expired_lease_goes_to_another_with_a_higher_epoch(open_stores: OpenStores):
    async with open_stores() as stores:
        history = await stores.history()
        old = await stores.leases.acquire(history, "eviction", "one", seconds=0)
        new = await stores.leases.acquire(history, "eviction", "two", seconds=60)
        assert old is not None
        assert new is not None
        assert new.epoch > old.epoch
        assert await stores.leases.renew(history, old, seconds=60) is False
        assert await stores.leases.renew(history, new, seconds=60) is True


async def test_renewed_lease_is_not_taken(open_stores: OpenStores):
    async with open_stores() as stores:
        history = await stores.history()
        token = await stores.leases.acquire(history, "eviction", "one", seconds=0)
        assert token is not None
        assert await stores.leases.renew(history, token, seconds=60) is True
        assert await stores.leases.acquire(history, "eviction", "two", seconds=60) is None


async def test_holders_are_those_of_leases_that_run(open_stores: OpenStores):
    async with open_stores() as stores:
        history, other = await stores.history(), await stores.history("other")
        for name, holder, seconds in (("eviction", "one", 60), ("claims", "two", 60),
                                      ("nodes", "one", 0)):  # fmt: skip
            assert await stores.leases.acquire(history, name, holder, seconds=seconds)
        gone = await stores.leases.acquire(history, "quota", "one", seconds=60)
        assert gone is not None
        await stores.leases.release(history, gone)
        assert await stores.leases.holders(history) == {"claims": "two", "eviction": "one"}
        assert await stores.leases.holders(other) == {}


async def test_released_lease_is_free_at_once_and_its_epoch_is_spent(open_stores: OpenStores):
    async with open_stores() as stores:
        history = await stores.history()
        old = await stores.leases.acquire(history, "eviction", "one", seconds=60)
        assert old is not None
        await stores.leases.release(history, old)
        assert await stores.leases.renew(history, old, seconds=60) is False
        new = await stores.leases.acquire(history, "eviction", "one", seconds=60)
        assert new is not None
        assert new.epoch > old.epoch


async def test_release_of_a_lost_lease_changes_nothing(open_stores: OpenStores):
    async with open_stores() as stores:
        history = await stores.history()
        old = await stores.leases.acquire(history, "eviction", "one", seconds=0)
        new = await stores.leases.acquire(history, "eviction", "two", seconds=60)
        assert old is not None
        assert new is not None
        await stores.leases.release(history, old)
        assert await stores.leases.renew(history, new, seconds=60) is True


async def test_epochs_of_one_history_are_never_equal(open_stores: OpenStores):
    async with open_stores() as stores:
        history, other = await stores.history("one"), await stores.history("other")
        epochs = []
        for name in ("scheduling", "eviction", "garbage"):
            token = await stores.leases.acquire(history, name, "one", seconds=60)
            assert token is not None
            epochs.append(token.epoch)
        assert epochs == [1, 2, 3]
        assert (await stores.log.head(history)).epoch == 3
        assert (await stores.log.head(other)).epoch == 0


async def test_lease_of_a_deleted_history_is_given_back_in_silence(open_stores: OpenStores):
    async with open_stores() as stores:
        history = await stores.history()
        token = await stores.leases.acquire(history, "eviction", "one", seconds=60)
        assert token is not None
        await stores.log.delete_history(history, at=Instant(1), by="a test")
        await stores.leases.release(history, token)
