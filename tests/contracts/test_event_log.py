"""The contract of EventLog, for every store."""

import random
from itertools import product
from typing import Any

import pytest
from msgspec.structs import replace

from app.domain.errors import AlreadyExists, ChainBroken, HeadMoved, NotFound, StaleLease
from app.domain.log import DECISION, EventType, Head, HistoryId, LeaseToken, ObjectKey, Revision
from app.domain.log.chain import check_chain
from app.domain.log.event import KeyFilter
from app.domain.log.heads import SignedHead
from app.domain.log.upcasting import from_stored
from app.domain.values.timestamps import SECOND, Instant
from tests.contracts.building import START, claim, claims, draft, same, sealed
from tests.contracts.stores import OpenStores

CREATED, UPDATED, DELETED = (
    EventType.OBJECT_CREATED,
    EventType.OBJECT_UPDATED,
    EventType.OBJECT_DELETED,
)


async def test_new_history_is_empty_and_found_by_name(open_stores: OpenStores):
    async with open_stores() as stores:
        made = await stores.log.create_history(
            "night", seed=2**70, settings={"profile": "1.36"}, created=Instant(START + 7)
        )
        assert await stores.log.find_history("night") == made
        assert await stores.log.find_history("day") is None
        assert await stores.log.head(made.id) == Head()
        assert await stores.log.read(made.id, after=Revision(0), limit=10) == []


async def test_fork_remembers_its_parent(open_stores: OpenStores):
    async with open_stores() as stores:
        parent = await stores.history()
        made = await stores.log.create_history(
            "fork", seed=0, settings={}, created=START, parent=parent, parent_revision=Revision(3)
        )
        found = await stores.log.find_history("fork")
        assert found == made
        assert (found.parent, found.parent_revision) == (parent, 3)


async def test_fork_of_nothing_is_refused(open_stores: OpenStores):
    async with open_stores() as stores:
        with pytest.raises(NotFound, match="history 77 not found"):
            await stores.log.create_history(
                "fork", seed=0, settings={}, created=START, parent=HistoryId(77)
            )


async def test_histories_are_sorted_by_name_in_code_point_order(open_stores: OpenStores):
    async with open_stores() as stores:
        for name in ("b", "a-b", "a.b", "a", "ab"):
            await stores.history(name)
        assert [info.name for info in await stores.log.histories()] == [
            "a",
            "a-b",
            "a.b",
            "ab",
            "b",
        ]


async def test_name_is_given_once(open_stores: OpenStores):
    async with open_stores() as stores:
        await stores.history("night")
        with pytest.raises(AlreadyExists, match="night"):
            await stores.history("night")


async def test_head_of_a_new_history_is_what_its_first_event_follows(open_stores: OpenStores):
    async with open_stores() as stores:
        made = await stores.log.create_history(
            "h", seed=1, settings={}, created=START, hash=b"b" * 32
        )
        head = await stores.log.head(made.id)
        assert head == Head(hash=b"b" * 32)
        await stores.log.append(made.id, expected=head, events=claims(head, 1))


@pytest.mark.parametrize("count", [3, 300])
async def test_events_as_stored_have_the_columns_of_time(open_stores: OpenStores, count: int):
    async with open_stores() as stores:
        history = await stores.history()
        events = claims(Head(), count)
        await stores.log.append(history, expected=Head(), events=events)
        rows = await stores.log.read_stored(history, after=Revision(1), limit=count)
        assert [from_stored(row.event).hash for row in rows] == [e.hash for e in events[1:]]
        assert [row.time for row in rows] == [event.stamp.time for event in events[1:]]
        assert [row.clock for row in rows] == [row.time for row in rows]
        few = await stores.log.read_stored(history, after=Revision(-5), limit=9, until=Revision(2))
        assert [row.event.revision for row in few] == [1, 2]


async def test_signed_heads_are_kept_once_and_in_order(open_stores: OpenStores):
    def head(revision: int, key: str, history: str = "h") -> SignedHead:
        return SignedHead(
            history=history,
            revision=Revision(revision),
            hash="sha256:00",
            time="",
            key=key,
            signature="é",
        )

    async with open_stores() as stores:
        one, two = await stores.history("one"), await stores.history("two")
        await stores.log.keep_heads(one, [head(10, "a"), head(9, "b"), head(9, "a")])
        await stores.log.keep_heads(one, [head(9, "a", "other")])
        await stores.log.keep_heads(two, [])
        assert await stores.log.kept_heads(one) == [head(9, "a"), head(9, "b"), head(10, "a")]
        assert await stores.log.kept_heads(two) == []


async def test_unknown_history_is_not_found(open_stores: OpenStores):
    async with open_stores() as stores:
        with pytest.raises(NotFound):
            await stores.log.head(HistoryId(99))
        with pytest.raises(NotFound):
            await stores.log.append(HistoryId(99), expected=Head(), events=claims(Head(), 1))


@pytest.mark.parametrize("count", [1, 3, 2_000])
async def test_events_read_back_are_identical_and_fit_the_chain(
    open_stores: OpenStores, count: int
):
    async with open_stores() as stores:
        history = await stores.history()
        events = claims(Head(), count)
        head = await stores.log.append(history, expected=Head(), events=events)
        assert head == await stores.log.head(history)
        assert (head.revision, head.hash, head.time) == (count, events[-1].hash, START + count)
        found = await stores.log.read(history, after=Revision(0), limit=count + 1)
        assert all(same(one, other) for one, other in zip(events, found, strict=True))
        assert check_chain(found) == head.hash


async def test_events_with_marks_of_columns_in_their_names_read_back_identical(
    open_stores: OpenStores,
):
    async with open_stores() as stores:
        for names in (["a", "b\x1fc"], ["\x1e", "a"], ["", ""]):
            history = await stores.history(f"names {names!r}")
            times = [START + 2 * SECOND, START]
            drafts = [
                draft(claim(name), time=time) for name, time in zip(names, times, strict=True)
            ]
            events = sealed(Head(), *drafts)
            await stores.log.append(history, expected=Head(), events=events)
            stored = await stores.log.read(history, after=Revision(0), limit=9)
            assert all(map(same, stored, events))
            rows = await stores.log.read_stored(history, after=Revision(0), limit=9)
            assert [(row.time, row.clock) for row in rows] == [(t, times[0]) for t in times]


async def test_pages_begin_after_and_end_at_until(open_stores: OpenStores):
    async with open_stores() as stores:
        history = await stores.history()
        await stores.log.append(history, expected=Head(), events=claims(Head(), 20))

        async def revisions(after: int, limit: int, until: int | None = None) -> list[int]:
            last = None if until is None else Revision(until)
            part: Any = {"after": Revision(after), "limit": limit, "until": last}
            page = await stores.log.read(history, **part)
            changes = await stores.log.changes(history, **part)
            assert changes == [(one.revision, one.type, one.key, one.uid) for one in page]
            return [event.revision for event in page]

        assert await revisions(0, 3) == [1, 2, 3]
        assert await revisions(17, 5) == [18, 19, 20]
        assert await revisions(5, 10, until=7) == [6, 7]
        assert await revisions(7, 10, until=7) == []
        assert await revisions(20, 10) == []


async def test_histories_do_not_see_each_other(open_stores: OpenStores):
    async with open_stores() as stores:
        one, other = await stores.history("one"), await stores.history("other")
        await stores.log.append(one, expected=Head(), events=claims(Head(), 2))
        assert (await stores.log.head(other)).revision == 0
        assert await stores.log.read(other, after=Revision(0), limit=9) == []
        assert await stores.log.objects_at(other, Revision(9), limit=9) == []


async def test_append_elsewhere_than_at_the_head_is_refused(open_stores: OpenStores):
    async with open_stores() as stores:
        history = await stores.history()
        head = await stores.log.append(history, expected=Head(), events=claims(Head(), 2))
        for size in (1, 2_000):
            with pytest.raises(HeadMoved) as caught:
                await stores.log.append(history, expected=Head(), events=claims(Head(), size))
            assert (caught.value.expected, caught.value.actual) == (0, 2)
        with pytest.raises(HeadMoved):
            await stores.log.append(history, expected=Head(), events=[])
        assert await stores.log.head(history) == head


async def test_append_after_another_event_than_the_stored_one_is_refused(open_stores: OpenStores):
    async with open_stores() as stores:
        history = await stores.history()
        head = await stores.log.append(history, expected=Head(), events=claims(Head(), 2))
        wrong = Head(revision=head.revision, hash=b"x" * 32)
        with pytest.raises(ChainBroken):
            await stores.log.append(history, expected=wrong, events=claims(wrong, 1))


async def test_append_of_nothing_answers_the_head(open_stores: OpenStores):
    async with open_stores() as stores:
        history = await stores.history()
        head = await stores.log.append(history, expected=Head(), events=claims(Head(), 2))
        assert await stores.log.append(history, expected=head, events=[]) == head


@pytest.mark.parametrize("count", [1, 2_000])
async def test_append_with_a_lost_lease_is_refused(open_stores: OpenStores, count: int):
    async with open_stores() as stores:
        history = await stores.history()
        old = await stores.leases.acquire(history, "eviction", "one", seconds=0)
        assert old is not None
        first = await stores.log.append(
            history, expected=Head(), events=claims(Head(), 1), leases=[old]
        )
        new = await stores.leases.acquire(history, "eviction", "two", seconds=60)
        assert new is not None
        with pytest.raises(StaleLease) as caught:
            await stores.log.append(
                history, expected=first, events=claims(first, count), leases=[new, old]
            )
        assert (caught.value.name, caught.value.epoch) == ("eviction", old.epoch)
        head = await stores.log.append(
            history, expected=first, events=claims(first, count), leases=[new]
        )
        assert (head.revision, head.epoch) == (1 + count, new.epoch)


async def test_append_with_a_lease_never_held_is_refused(open_stores: OpenStores):
    async with open_stores() as stores:
        history = await stores.history()
        with pytest.raises(StaleLease):
            await stores.log.append(
                history,
                expected=Head(),
                events=claims(Head(), 1),
                leases=[LeaseToken(name="x", epoch=1)],
            )


async def test_expired_lease_serves_until_it_is_taken_over(open_stores: OpenStores):
    async with open_stores() as stores:
        history = await stores.history()
        lease = await stores.leases.acquire(history, "eviction", "one", seconds=0)
        assert lease is not None
        head = await stores.log.append(
            history, expected=Head(), events=claims(Head(), 1), leases=[lease]
        )
        assert head.revision == 1


async def test_events_of_an_object_come_newest_first(open_stores: OpenStores):
    async with open_stores() as stores:
        history = await stores.history()
        key = claim("a")
        events = sealed(
            Head(),
            draft(key),
            draft(claim("ab")),
            draft(key, type=UPDATED),
            draft(claim("a", "other")),
            draft(key, type=DELETED),
        )
        await stores.log.append(history, expected=Head(), events=events)

        async def revisions(until: int, limit: int) -> list[int]:
            found = await stores.log.read_object(history, key, until=Revision(until), limit=limit)
            return [event.revision for event in found]

        assert await revisions(9, 9) == [5, 3, 1]
        assert await revisions(4, 9) == [3, 1]
        assert await revisions(9, 1) == [5]
        assert await stores.log.read_object(history, claim("b"), until=Revision(9), limit=9) == []
        keys = (claim("ab"), claim("b"), key)
        of_all = await stores.log.read_object(history, *keys, until=Revision(4), limit=2)
        assert [event.revision for event in of_all] == [2, 3, 1]
        assert await stores.log.read_object(history, until=Revision(4), limit=2) == []


async def test_keys_of_a_kind_are_all_that_events_are_about(open_stores: OpenStores):
    async with open_stores() as stores:
        history = await stores.history()
        one, other, placed = claim("a"), claim("ab"), claim("a", "other")
        events = sealed(
            Head(), draft(one), draft(placed), draft(one, type=DELETED), draft(other),
            draft(ObjectKey("", "pods", "default", "a")),
        )  # fmt: skip
        await stores.log.append(history, expected=Head(), events=events)
        kind = (one.group, one.resource)

        async def keys(
            until: int, limit: int = 9, of: tuple[str, str] = kind, **where: str
        ) -> list[ObjectKey]:
            wanted, till = KeyFilter(*of, **where), Revision(until)
            return await stores.log.keys(history, wanted, until=till, limit=limit)

        assert await keys(9) == sorted([one, other, placed])
        assert await keys(3) == sorted([one, placed])
        assert await keys(9, 1) == sorted([one, other, placed])[:1]
        assert await keys(9, name="a") == sorted([one, placed])
        assert await keys(1, name="a") == [one]
        assert await keys(9, 1, name="ab") == [other]
        assert await keys(9, name="b") == []
        assert await keys(9, of=("", "nodes")) == []
        assert await keys(9, namespace="other") == [placed]
        assert await keys(9, namespace="default", name="a") == [one]
        assert await keys(9, prefix="ab") == [other]
        assert await keys(9, prefix="a%") == [], "no pattern"


async def test_keys_with_the_latest_events_come_first(open_stores: OpenStores):
    async with open_stores() as stores:
        history = await stores.history()
        one, two, three = claim("a"), claim("b"), claim("c", "other")
        events = sealed(
            Head(), draft(one), draft(two), draft(three), draft(one, type=DELETED),
            draft(ObjectKey("", "pods", "default", "a")),
        )  # fmt: skip
        await stores.log.append(history, expected=Head(), events=events)

        async def keys(until: int, limit: int = 9, **where: str) -> list[ObjectKey]:
            wanted = KeyFilter(one.group, one.resource, **where)
            return await stores.log.keys(
                history, wanted, until=Revision(until), limit=limit, newest_first=True
            )

        assert await keys(9) == [one, three, two]
        assert await keys(3) == [three, two, one]
        assert await keys(9, 1) == [one]
        assert await keys(9, namespace="default") == [one, two]
        assert await keys(9, prefix="b") == [two]
        assert await keys(0) == []


_PARTS = ("", "a", "a-", "a.b", "aa", "b", "A", "\u00e9", "a\u00e9", "a\uffee", "a%", "a_")
"""Parts of keys that other orders than that of code points, and patterns, would mix up."""


async def test_keys_are_those_that_a_filter_takes_from_all_events(open_stores: OpenStores):
    """Drawn events and filters; the expectation goes through all events."""
    draw = random.Random(14)
    places = [
        ObjectKey(group, resource, namespace, name)
        for group, resource in (("", "pods"), ("resource.k8s.io", "resourceclaims"))
        for namespace in ("", "a", "a-", "b", "\u00e9")
        for name in _PARTS[1:]
    ]
    drafts = [draft(draw.choice(places), type=UPDATED) for _ in range(90)]
    async with open_stores() as stores:
        history = await stores.history()
        events = sealed(Head(), *drafts)
        await stores.log.append(history, expected=Head(), events=events)
        for _ in range(120):
            wanted = KeyFilter(
                *draw.choice((("", "pods"), ("resource.k8s.io", "resourceclaims"), ("", "nodes"))),
                namespace=draw.choice(("", "", "a", "a-", "b", "none")),
                name=draw.choice((*[""] * 9, *_PARTS)),
                prefix=draw.choice((*[""] * 6, *_PARTS)),
            )
            until, limit = Revision(draw.randint(0, 95)), draw.choice((1, 3, 99))
            last = {
                event.key: event.revision
                for event in events
                if event.revision <= until
                and event.key[:2] == wanted[:2]
                and wanted.namespace in ("", event.key.namespace)
                and wanted.name in ("", event.key.name)
                and event.key.name[: len(wanted.prefix)] == wanted.prefix
            }
            for newest_first in (False, True):
                order = sorted(last, key=lambda key: -last[key]) if newest_first else sorted(last)
                assert order[:limit] == await stores.log.keys(
                    history, wanted, until=until, limit=limit, newest_first=newest_first
                ), (wanted, until, limit, newest_first)


async def test_latest_keys_are_the_same_wherever_their_last_events_are(open_stores: OpenStores):
    """Few events of pods among many others, so that the last ones are near or far."""
    draw = random.Random(3)
    pods = [ObjectKey("", "pods", draw.choice("ab"), name) for name in "vwxyz"]
    others = [ObjectKey("", "configmaps", "a", name) for name in "vwxyz"]
    drafts = [
        draft(draw.choice(pods if draw.random() < 0.04 else others), type=UPDATED)
        for _ in range(400)
    ]
    async with open_stores() as stores:
        history = await stores.history()
        events = sealed(Head(), *drafts)
        await stores.log.append(history, expected=Head(), events=events)
        for until in (20, 60, 150, 270, 399, 400):
            for namespace, limit in product(("", "a", "b"), (1, 2, 3, 9)):
                last = {
                    event.key: event.revision
                    for event in events[:until]
                    if event.key in pods and namespace in ("", event.key.namespace)
                }
                wanted = KeyFilter("", "pods", namespace=namespace)
                assert sorted(last, key=lambda key: -last[key])[:limit] == await stores.log.keys(
                    history, wanted, until=Revision(until), limit=limit, newest_first=True
                ), (until, namespace, limit)


async def _fill(stores, history: HistoryId) -> None:
    """b created, a created, node, decision, b updated, a deleted, c created, a created again."""
    node = ObjectKey("", "nodes", "", "n")
    decision = DECISION._replace(namespace="default", name="b")
    events = sealed(
        Head(),
        draft(claim("b")),
        draft(claim("a")),
        draft(node),
        draft(decision, type=EventType.DECISION_RECORDED),
        draft(claim("b"), type=UPDATED),
        draft(claim("a"), type=DELETED),
        draft(claim("c", "another")),
        draft(claim("a")),
    )
    await stores.log.append(history, expected=Head(), events=events)


@pytest.mark.parametrize(
    ("revision", "expected"),
    [
        (0, []),
        (1, [("b", 1)]),
        (3, [("n", 3), ("a", 2), ("b", 1)]),
        (5, [("n", 3), ("a", 2), ("b", 5)]),
        (6, [("n", 3), ("b", 5)]),
        (8, [("n", 3), ("c", 7), ("a", 8), ("b", 5)]),
        (99, [("n", 3), ("c", 7), ("a", 8), ("b", 5)]),
    ],
)
async def test_objects_at_a_revision_are_the_last_of_each_that_exists(
    open_stores: OpenStores, revision: int, expected: list[tuple[str, int]]
):
    async with open_stores() as stores:
        history = await stores.history()
        await _fill(stores, history)
        found = await stores.log.objects_at(history, Revision(revision), limit=99)
        assert [(event.key.name, event.revision) for event in found] == expected


async def test_objects_at_can_be_asked_by_group_and_resource(open_stores: OpenStores):
    async with open_stores() as stores:
        history = await stores.history()
        await _fill(stores, history)

        async def names(group: str | None, resource: str | None) -> list[str]:
            found = await stores.log.objects_at(
                history, Revision(8), group=group, resource=resource, limit=99
            )
            return [event.key.name for event in found]

        assert await names("", None) == ["n"]
        assert await names("resource.k8s.io", "resourceclaims") == ["c", "a", "b"]
        assert await names(None, "nodes") == ["n"]
        assert await names("resource.k8s.io", "nodes") == []


async def test_creation_is_the_first_event_since_a_deletion_or_another_uid(
    open_stores: OpenStores,
):
    draw, keys = random.Random(3), [claim(name) for name in "abc"]
    types = (*[EventType.OBJECT_CREATED, UPDATED, UPDATED, DELETED], EventType.DECISION_RECORDED)
    drafts = [
        replace(draft(draw.choice(keys), type=draw.choice(types)), uid=draw.choice("xxxy"))
        for _ in range(60)
    ]
    async with open_stores() as stores:
        history = await stores.history()
        events = sealed(Head(), *drafts)
        await stores.log.append(history, expected=Head(), events=events)
        assert await stores.log.creations(history, []) == []
        lives: dict[ObjectKey, tuple[str, Revision]] = {}
        for event in events:
            if event.type is DELETED:
                lives.pop(event.key, None)
            elif event.type is not EventType.DECISION_RECORDED:
                uid, first = lives.get(event.key, ("", event.revision))
                lives[event.key] = event.uid, first if uid == event.uid else event.revision
            last = await stores.log.objects_at(history, event.revision, limit=9)
            wanted = [lives[each.key][1] for each in last]
            assert await stores.log.creations(history, last) == wanted, event.revision


@pytest.mark.parametrize("limit", [1, 2, 3, 50])
async def test_pages_of_objects_join_without_gap(open_stores: OpenStores, limit: int):
    async with open_stores() as stores:
        history = await stores.history()
        await _fill(stores, history)
        names: list[str] = []
        after = None
        while page := await stores.log.objects_at(history, Revision(8), after=after, limit=limit):
            assert len(page) <= limit
            names += [event.key.name for event in page]
            after = page[-1].key
        assert names == ["n", "c", "a", "b"]


async def test_revision_at_an_instant_is_the_last_before_anything_later(open_stores: OpenStores):
    async with open_stores() as stores:
        history = await stores.history()
        assert await stores.log.revision_at(history, Instant(START)) == 0
        times = [10, 20, 20, 50, 30, 60]  # the fifth was recorded late: its time counts as 50
        drafts = [draft(claim(f"c{place}"), time=START + time) for place, time in enumerate(times)]
        first = sealed(Head(), *drafts[:4])
        head = await stores.log.append(history, expected=Head(), events=first)
        # A writer that has not looked at every time still gets the clock right.
        vague = Head(revision=head.revision, hash=head.hash)
        head = await stores.log.append(history, expected=vague, events=sealed(head, *drafts[4:]))
        found = [
            await stores.log.revision_at(history, Instant(START + time))
            for time in (9, 10, 19, 20, 30, 49, 50, 59, 60, 10**9)
        ]
        assert found == [0, 1, 1, 3, 3, 3, 5, 5, 6, 6]
        assert head.time == START + 60
