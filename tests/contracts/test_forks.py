"""The contract of forks, for every store: the parent's events up to a revision, then their own."""

import itertools

import pytest

from app.domain.errors import AlreadyExists, Conflict, NotFound
from app.domain.log import Event, EventType, Head, HistoryId, HistoryInfo, ObjectKey, Revision
from app.domain.log.chain import check_chain
from app.domain.log.forks import first_draft
from app.domain.log.upcasting import from_stored
from app.domain.values.timestamps import Instant
from tests.contracts.building import START, claim, claims, draft, same, sealed
from tests.contracts.stores import OpenStores, Stores

LATER = Instant(START + 10**9)
SETTINGS = {"profile": "1.36", "quirks": {"q3": False}}


async def info_of(stores: Stores, history: HistoryId) -> HistoryInfo:
    return next(info for info in await stores.log.histories() if info.id == history)


async def filled(stores: Stores, name: str, count: int) -> HistoryInfo:
    history = await stores.history(name)
    await extended(stores, history, count)
    return await info_of(stores, history)


async def extended(stores: Stores, history: HistoryId, count: int) -> None:
    head = await stores.log.head(history)
    events = claims(head, count, prefix=f"of-{history}")
    await stores.log.append(history, expected=head, events=events)


def alike(some: list[Event], others: list[Event]) -> bool:
    return len(some) == len(others) and all(map(same, some, others))


async def end_at(stores: Stores, history: HistoryId, revision: int) -> Head:
    (row,) = await stores.log.read_stored(history, after=Revision(revision - 1), limit=1)
    return Head(revision=Revision(revision), hash=row.event.hash, time=Instant(row.clock or 0))


async def forked(
    stores: Stores, parent: HistoryInfo, revision: int, name: str = "fork", own: int = 0
) -> HistoryInfo:
    info = await stores.log.fork_history(
        name,
        parent=parent,
        end=await end_at(stores, parent.id, revision),
        seed=7,
        settings=SETTINGS,
        created=LATER,
    )
    if own:
        await extended(stores, info.id, own)
    return info


async def everything(stores: Stores, history: HistoryId, limit: int = 3) -> list[Event]:
    events: list[Event] = []
    while page := await stores.log.read(
        history, after=events[-1].revision if events else Revision(0), limit=limit
    ):
        assert len(page) <= limit
        after = Revision(page[0].revision - 1)
        changes = await stores.log.changes(history, after=after, limit=limit)
        assert changes == [(one.revision, one.type, one.key, one.uid) for one in page]
        events += page
    return events


async def test_fork_goes_on_where_its_parent_stood(open_stores: OpenStores) -> None:
    async with open_stores() as stores:
        parent = await filled(stores, "parent", 7)
        fork = await forked(stores, parent, 5, own=4)
        await extended(stores, parent.id, 6)
        mine, its = await everything(stores, fork.id), await everything(stores, parent.id)
        assert [event.revision for event in mine] == list(range(1, 10))
        assert alike(mine[:5], its[:5])
        assert not alike(mine[5:7], its[5:7])
        assert len(its) == 13
        head = await stores.log.head(fork.id)
        assert head.revision == 9
        assert check_chain(mine) == head.hash
        assert await info_of(stores, fork.id) == fork
        assert await stores.log.find_history("fork") == fork
        assert fork.is_fork
        assert not parent.is_fork
        assert (fork.parent, fork.parent_revision, fork.begun) == (parent.id, 5, parent.begun)


async def test_new_fork_ends_where_its_parent_stood(open_stores: OpenStores) -> None:
    async with open_stores() as stores:
        parent = await filled(stores, "parent", 4)
        fork = await forked(stores, parent, 4)
        assert await stores.log.head(fork.id) == await stores.log.head(parent.id)
        assert len(await everything(stores, fork.id)) == 4
        await extended(stores, parent.id, 1)
        assert len(await everything(stores, fork.id)) == 4


async def test_pages_of_a_fork(open_stores: OpenStores) -> None:
    async with open_stores() as stores:
        fork = await forked(stores, await filled(stores, "parent", 7), 5, own=4)
        for after, until, limit in itertools.product(
            range(10), (None, 0, 4, 5, 6, 9, 20), (1, 3, 50)
        ):
            last = Revision(until) if until is not None else None
            page = await stores.log.read(fork.id, after=Revision(after), limit=limit, until=last)
            wanted = list(range(after + 1, min(9, 9 if until is None else until) + 1))[:limit]
            assert [event.revision for event in page] == wanted, (after, until, limit)
            rows = await stores.log.read_stored(
                fork.id, after=Revision(after), limit=limit, until=last
            )
            assert alike([from_stored(row.event) for row in rows], page), (after, until, limit)


async def test_fork_of_a_fork_reads_all_three(open_stores: OpenStores) -> None:
    async with open_stores() as stores:
        first = await filled(stores, "first", 6)
        second = await forked(stores, first, 4, "second", own=4)
        third = await forked(stores, second, 6, "third", own=2)
        before = await forked(stores, second, 3, "before", own=2)
        its = await everything(stores, second.id)
        for fork, shared, length in ((third, 6, 8), (before, 3, 5)):
            mine = await everything(stores, fork.id)
            assert [event.revision for event in mine] == list(range(1, length + 1))
            assert alike(mine[:shared], its[:shared])
            check_chain(mine)
            assert fork.begun == first.begun


async def test_objects_of_a_fork_are_its_own_and_its_parents(open_stores: OpenStores) -> None:
    async with open_stores() as stores:
        history = await stores.history("parent")
        events = sealed(
            Head(),
            *(draft(claim(name)) for name in "abc"),
            draft(claim("b"), type=EventType.OBJECT_UPDATED),
        )
        await stores.log.append(history, expected=Head(), events=events)
        parent = await info_of(stores, history)
        fork = await forked(stores, parent, 3)
        head = await stores.log.head(fork.id)
        await stores.log.append(
            fork.id,
            expected=head,
            events=sealed(
                head,
                draft(claim("aa")),
                draft(claim("c"), type=EventType.OBJECT_DELETED),
                draft(claim("a"), type=EventType.OBJECT_UPDATED),
            ),
        )

        async def shown(
            history: HistoryId, revision: int, limit: int = 10
        ) -> list[tuple[str, int]]:
            found: list[Event] = []
            while page := await stores.log.objects_at(
                history, Revision(revision), after=found[-1].key if found else None, limit=limit
            ):
                found += page
            return [(event.key.name, event.revision) for event in found]

        for limit in (1, 2, 10):
            assert await shown(fork.id, 3, limit) == [("a", 1), ("b", 2), ("c", 3)]
            assert await shown(fork.id, 4, limit) == [("a", 1), ("aa", 4), ("b", 2), ("c", 3)]
            assert await shown(fork.id, 6, limit) == [("a", 6), ("aa", 4), ("b", 2)]
            assert await shown(history, 4, limit) == [("a", 1), ("b", 4), ("c", 3)]
        key = claim("a")
        for of, at, first in ((fork, 6, [1, 4, 2]), (fork, 3, [1, 2, 3]), (parent, 4, [1, 2, 3])):
            last = await stores.log.objects_at(of.id, Revision(at), limit=10)
            assert await stores.log.creations(of.id, last) == first, (of.name, at)
        by_group = await stores.log.objects_at(
            fork.id, Revision(6), group=key.group, resource=key.resource, limit=10
        )
        assert [event.revision for event in by_group] == [6, 4, 2]
        assert await stores.log.objects_at(fork.id, Revision(6), group="none", limit=10) == []
        newest = await stores.log.read_object(fork.id, key, until=Revision(6), limit=5)
        assert [event.revision for event in newest] == [6, 1]
        newest = await stores.log.read_object(fork.id, key, until=Revision(6), limit=1)
        assert [event.revision for event in newest] == [6]
        (only,) = await stores.log.read_object(fork.id, key, until=Revision(5), limit=5)
        assert only.revision == 1
        of_b = await stores.log.read_object(fork.id, claim("b"), until=Revision(6), limit=5)
        assert [event.revision for event in of_b] == [2]
        both = await stores.log.read_object(fork.id, key, claim("b"), until=Revision(6), limit=1)
        assert [event.revision for event in both] == [6, 2]


async def test_moments_of_a_fork(open_stores: OpenStores) -> None:
    async with open_stores() as stores:
        fork = await forked(stores, await filled(stores, "parent", 7), 5, own=4)
        rows = await stores.log.read_stored(fork.id, after=Revision(0), limit=50)
        clocks = [row.clock for row in rows]
        assert clocks == sorted(clocks)
        for instant in sorted({clock + step for clock in clocks for step in (-1, 0, 1)}):
            wanted = sum(clock <= instant for clock in clocks)
            assert await stores.log.revision_at(fork.id, Instant(instant)) == wanted


async def test_parent_stays_as_long_as_its_forks(open_stores: OpenStores) -> None:
    async with open_stores() as stores:
        parent = await filled(stores, "parent", 3)
        fork = await forked(stores, parent, 2, own=1)
        with pytest.raises(Conflict, match='"parent" cannot be deleted: the events of fork begin'):
            await stores.log.delete_history(parent.id, at=LATER, by="alice")
        assert len(await everything(stores, parent.id)) == 3
        await stores.log.delete_history(fork.id, at=LATER, by="alice")
        assert len(await everything(stores, parent.id)) == 3
        with pytest.raises(NotFound):
            await stores.log.head(fork.id)
        await stores.log.delete_history(parent.id, at=Instant(LATER + 1), by="alice")
        assert [tombstone.name for tombstone in await stores.log.tombstones()] == ["fork", "parent"]


async def test_name_of_a_fork_is_free_and_its_parent_exists(open_stores: OpenStores) -> None:
    async with open_stores() as stores:
        parent = await filled(stores, "parent", 3)
        with pytest.raises(AlreadyExists):
            await forked(stores, parent, 2, "parent")
        await stores.log.delete_history(parent.id, at=LATER, by="alice")
        with pytest.raises(NotFound):
            await stores.log.fork_history(
                "fork", parent=parent, end=Head(), seed=0, settings={}, created=LATER
            )
        assert await stores.log.histories() == []


async def test_first_event_of_a_fork_has_its_settings_and_the_time_before_it(
    open_stores: OpenStores,
) -> None:
    async with open_stores() as stores:
        parent = await filled(stores, "parent", 3)
        fork = await forked(stores, parent, 2)
        head = await stores.log.head(fork.id)
        actor = (await everything(stores, parent.id))[0].stamp.actor
        events = sealed(head, first_draft(fork, parent, head, actor))
        await stores.log.append(fork.id, expected=head, events=events)
        (kept,) = await stores.log.read(fork.id, after=Revision(2), limit=5)
        assert kept.type is EventType.HISTORY_FORKED
        assert kept.key == ObjectKey("redra", "histories", "", "")
        assert kept.stamp.time == head.time
        assert kept.object["settings"] == SETTINGS
        assert (kept.object["parent"], kept.object["revision"]) == ("parent", 2)
