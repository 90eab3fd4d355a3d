"""The contract of ViewStore, for every store."""

from hashlib import sha256
from typing import Any

from app.domain.log import Head, HistoryId, Revision
from app.service.folding import snapshots
from tests.contracts.building import START, claims
from tests.contracts.stores import OpenStores, Stores


def device(pool: str, number: int, **changes: object) -> dict[str, object]:
    row: dict[str, object] = {
        "pool": pool,
        "device": number,
        "ready": True,
        "seen": START + 7,
        "free": "1.5",
        "taints": [{"key": "é", "effect": None}],
    }
    return row | changes


async def write(stores: Stores, history: HistoryId, **changes: Any) -> bool:
    given = {
        "after": Revision(0),
        "revision": Revision(1),
        "state_hash": "sha256:1",
        "upserts": {},
        "deletes": {},
        "version": 1,
    } | changes
    version = given.pop("version")
    return await stores.views.write(history, "devices", version, **given)


async def test_rows_come_back_as_written_sorted_by_key(open_stores: OpenStores):
    async with open_stores() as stores:
        history = await stores.history()
        rows = [
            device("b", 1),
            device("a", 10, ready=False, free="-0.25", taints="text"),
            device("a", 2, ready=None, seen=None, free=None, taints=None),
            device("B", 3, free="340282366920938463463374607431768211456", taints={"a": [1.5]}),
        ]
        assert await write(stores, history, upserts={"test_devices": rows})
        found = await stores.views.rows(history, "test_devices")
        assert found == [rows[3], rows[2], rows[1], rows[0]]


async def test_texts_with_marks_of_columns_come_back_as_written(open_stores: OpenStores):
    pools = ["", "\x1f", "\x1e", "a", "a\x1fb", "a\x1eb", "é\x7f"]
    absent: dict[str, object] = dict.fromkeys(("ready", "seen", "free"))
    async with open_stores() as stores:
        history = await stores.history()
        for count in range(1, len(pools) + 1):
            rows = [device(pool, 1, **absent, taints=pool) for pool in pools[:count]]
            after, revision = Revision(count - 1), Revision(count)
            await write(
                stores, history, after=after, revision=revision, upserts={"test_devices": rows}
            )
            stored = await stores.views.rows(history, "test_devices")
            assert stored == sorted(rows, key=lambda row: str(row["pool"]))
        last = {"after": Revision(count), "revision": Revision(count + 1)}
        await write(
            stores, history, **last, deletes={"test_devices": [(pool, 1) for pool in pools[:-1]]}
        )
        assert await stores.views.rows(history, "test_devices") == rows[-1:]


async def test_later_rows_replace_and_deletes_remove(open_stores: OpenStores):
    async with open_stores() as stores:
        history = await stores.history()
        before = [device("a", 1), device("a", 2), device("b", 1)]
        await write(stores, history, upserts={"test_devices": before})
        assert await write(
            stores,
            history,
            after=Revision(1),
            revision=Revision(5),
            upserts={"test_devices": [device("a", 1, ready=False)], "test_pools": [{"pool": "a"}]},
            deletes={"test_devices": [("b", 1), ("c", 9)]},
        )
        found = await stores.views.rows(history, "test_devices")
        assert found == [device("a", 1, ready=False), device("a", 2)]
        assert await stores.views.rows(history, "test_pools") == [{"pool": "a"}]


async def test_write_from_elsewhere_than_the_checkpoint_writes_nothing(open_stores: OpenStores):
    async with open_stores() as stores:
        history = await stores.history()
        await write(stores, history, revision=Revision(4))
        upserts = {"test_devices": [device("a", 1)]}
        for after in (0, 3, 5):
            assert not await write(
                stores, history, after=Revision(after), revision=Revision(9), upserts=upserts
            )
        assert await stores.views.rows(history, "test_devices") == []
        checkpoint = await stores.views.checkpoint(history, "devices", 1)
        assert checkpoint is not None
        assert checkpoint.revision == 4


async def test_checkpoint_tells_revision_and_hash(open_stores: OpenStores):
    async with open_stores() as stores:
        history, other = await stores.history("one"), await stores.history("other")
        assert await stores.views.checkpoint(history, "devices", 1) is None
        await write(stores, history, revision=Revision(4), state_hash="sha256:a")
        await stores.views.write(
            history,
            "claims",
            3,
            after=Revision(0),
            revision=Revision(2),
            state_hash="sha256:b",
            upserts={},
            deletes={},
        )
        found = [
            (one.projection, one.version, one.revision, one.state_hash)
            for one in await stores.views.checkpoints(history)
        ]
        assert found == [("claims", 3, 2, "sha256:b"), ("devices", 1, 4, "sha256:a")]
        assert await stores.views.checkpoints(other) == []


async def test_first_write_of_a_new_version_replaces_the_old_one(open_stores: OpenStores):
    async with open_stores() as stores:
        history = await stores.history()
        await write(stores, history, upserts={"test_devices": [device("old", 1)]})
        new = [device("new", 1)]
        assert await write(
            stores, history, version=2, revision=Revision(8), upserts={"test_devices": new}
        )
        assert await stores.views.rows(history, "test_devices") == new
        assert [one.version for one in await stores.views.checkpoints(history)] == [2]


async def test_clear_removes_rows_checkpoint_and_snapshots_of_one_history(open_stores: OpenStores):
    async with open_stores() as stores:
        one, other = await stores.history("one"), await stores.history("other")
        for history in (one, other):
            await write(stores, history, upserts={"test_devices": [device("a", 1)]})
            await stores.views.save_snapshot(history, "devices", 1, Revision(1), b"state")
        await stores.views.clear(one, "devices", 1)
        assert await stores.views.rows(one, "test_devices") == []
        assert await stores.views.checkpoint(one, "devices", 1) is None
        assert await stores.views.load_snapshot(one, "devices", 1, until=Revision(9)) is None
        assert await stores.views.rows(other, "test_devices") == [device("a", 1)]
        assert await write(stores, one, upserts={"test_devices": [device("a", 2)]})


async def test_newest_snapshot_not_after_the_revision_is_loaded(open_stores: OpenStores):
    async with open_stores() as stores:
        history = await stores.history()
        for revision in (10, 30, 20):
            state = f"at {revision}\0".encode()
            await stores.views.save_snapshot(history, "devices", 1, Revision(revision), state)
        await stores.views.save_snapshot(history, "devices", 1, Revision(30), b"again")

        async def load(until: int) -> tuple[int, bytes] | None:
            return await stores.views.load_snapshot(history, "devices", 1, until=Revision(until))

        assert await load(9) is None
        assert await load(10) == (10, b"at 10\0")
        assert await load(29) == (20, b"at 20\0")
        assert await load(99) == (30, b"again")
        assert await stores.views.load_snapshot(history, "devices", 2, until=Revision(99)) is None


async def test_versions_of_which_states_are_kept_are_listed(open_stores: OpenStores) -> None:
    async with open_stores() as stores:
        history, other = await stores.history(), await stores.history("other")
        for place in ((history, "a", 7), (history, "a", 2), (history, "b", 5), (other, "a", 9)):
            for revision in (3, 4):
                await stores.views.save_snapshot(*place, Revision(revision), b"state")
        assert await stores.views.kept_versions(history, "a") == [2, 7]
        await stores.views.clear(history, "a", 7)
        assert await stores.views.kept_versions(history, "a") == [2]
        assert await stores.views.kept_versions(history, "c") == []


async def test_state_of_another_view_is_not_used(open_stores: OpenStores) -> None:
    async with open_stores() as stores:
        history = await stores.history()
        events = claims(Head(), 3)
        await stores.log.append(history, expected=Head(), events=events)
        last, kept = events[-1].hash, Revision(3)
        await snapshots.keep(stores.views, history, ("one", 1), kept, last, [b"state"])
        found = await snapshots.load(stores.views, stores.log, history, ("one", 1), until=kept)
        assert found == (3, last, b"state")
        stored = await stores.views.load_snapshot(history, "one", 1, until=kept)
        assert stored is not None
        for other in (("two", 1), ("one", 2)):
            await stores.views.save_snapshot(history, *other, kept, stored[1])
            assert (
                await snapshots.load(stores.views, stores.log, history, other, until=kept) is None
            )


def altered(kept: bytes) -> dict[str, bytes]:
    """Values that are no kept state, made from one: each part changed, cut, longer."""
    mark, end = len(b"\xc1redra4"), len(b"\xc1redra4") + 64
    own = sha256(b"one 1 " + kept[mark : mark + 32] + kept[:mark] + b"no data").digest()
    return {
        "the mark of plain states": b"\xc1redra3" + kept[mark:],
        "hash": kept[:mark] + bytes(32) + kept[mark + 32 :],
        "digest": kept[: mark + 32] + bytes(32) + kept[end:],
        "data": kept[:-9] + bytes(9),
        "cut": kept[:-1],
        "longer": kept + b"\0",
        "data that are not compressed, with their digest": kept[: mark + 32] + own + b"no data",
    }


async def test_large_state_is_kept_in_a_fraction_of_its_bytes(open_stores: OpenStores) -> None:
    parts = [b"object %d of a large cluster, which is like the others;" % n for n in range(40_000)]
    async with open_stores() as stores:
        history = await stores.history()
        events = claims(Head(), 3)
        await stores.log.append(history, expected=Head(), events=events)
        last, end, view = events[-1].hash, Revision(3), ("one", 1)

        async def load() -> tuple[int, bytes, bytes] | None:
            return await snapshots.load(stores.views, stores.log, history, view, until=end)

        await snapshots.keep(stores.views, history, view, end, last, parts)
        assert await load() == (3, last, b"".join(parts))
        stored = await stores.views.load_snapshot(history, *view, until=end)
        assert stored is not None
        assert len(stored[1]) < len(b"".join(parts)) / 5
        for what, kept in altered(stored[1]).items():
            await stores.views.save_snapshot(history, *view, end, kept)
            assert await load() is None, what
