"""Views of past moments that go on from a kept state, judged by all events up to the moment."""

import random

import pytest

from app.adapters.memory import MemoryLog, MemoryViewStore
from app.analysis.views import LiveViews
from app.domain.errors import InputError
from app.domain.log import (
    Actor,
    Draft,
    Event,
    EventType,
    HistoryInfo,
    ObjectKey,
    Revision,
    Stamp,
    chain,
)
from app.domain.log.event import GENESIS
from app.domain.values import api_resources
from app.domain.values.timestamps import Instant
from app.service.folding import snapshots
from app.service.past_views import PastViews
from projections.objects import ObjectsProjection
from tests import draws
from tests.cluster import Cluster
from tests.unit.service.builders import ALICE, config_map
from tests.unit.service.test_explaining import asking, texts, views_up_to
from tests.unit.service.test_forking import world
from tests.unit.service.test_past_devices import PROFILE, Drawn, shown
from tests.unit.service.test_replaying import history_of

VIEW = (ObjectsProjection.name, ObjectsProjection.version)


class NoKeys(MemoryLog):
    """A log that nobody may ask for the keys of all objects."""

    async def objects_at(self, *_: object, **__: object) -> list[Event]:
        raise AssertionError("the keys of the whole history are read")


def without_keys(log: MemoryLog) -> NoKeys:
    """The same log, for readers that need no keys."""
    strict = NoKeys.__new__(NoKeys)
    strict.__dict__.update(log.__dict__)
    return strict


async def keep(
    store: MemoryViewStore, info: HistoryInfo, events: list[Event], revision: int
) -> bytes:
    """Keep the state of the objects at a revision, as a server does."""
    state = views_up_to(events, revision, PROFILE).objects.dump()
    last = events[revision - 1].hash
    await snapshots.keep(store, info.id, VIEW, Revision(revision), last, [state])
    return state


def seen(views: LiveViews) -> tuple[object, ...]:
    """All that views tell of a moment."""
    objects = views.objects
    keys = [key for kind in objects.resources() for key in objects.keys(*kind)]
    owners = {key: list(objects.dependents(objects.event(key).uid)) for key in keys}
    allocated = views.allocated
    held = {device: sorted(allocated.holders(device)) for device in allocated.held_devices()}
    return objects.dump(), owners, shown(views), held, sorted(views.unreadable), views.revision


def past_views(log: MemoryLog, store: MemoryViewStore | None, objects_max: int = 500) -> PastViews:
    return PastViews(log, lambda _: PROFILE, views_max=1, objects_max=objects_max, kept=store)


@pytest.mark.parametrize("seed", draws.seeds(2, first=20))
async def test_moment_after_a_kept_state_is_that_of_all_events_up_to_it(seed: int) -> None:
    draw = random.Random(seed)
    events = Drawn(seed, writes=60).cluster.line.events
    log, info = await history_of(events, PROFILE.settings())
    store, strict, length = MemoryViewStore({}), without_keys(log), len(events)
    states = sorted(draw.sample(range(length // 3, length), 4))
    for state in states:
        await keep(store, info, events, state)
    moments = {*states, states[0] + 1, states[-1] + 1, *draw.sample(range(states[0], length), 12)}
    for moment in sorted(moments - {length + 1}):
        views = await past_views(strict, store).whole(info, Revision(moment))
        assert seen(views) == seen(views_up_to(events, moment, PROFILE)), (seed, moment)


OF_DEVICES = (("resource.k8s.io", None), api_resources.NODES)


@pytest.mark.parametrize("seed", draws.seeds(2, first=40))
async def test_objects_of_kinds_are_the_same_from_a_state_and_from_keys(seed: int) -> None:
    draw = random.Random(seed)
    events = Drawn(seed, writes=60).cluster.line.events
    log, info = await history_of(events, PROFILE.settings())
    store, strict, length = MemoryViewStore({}), without_keys(log), len(events)
    await keep(store, info, events, 2 * length // 3)
    for moment in draw.sample(range(2 * length // 3, length), 8):
        of_keys = past_views(log, None), length
        of_state = past_views(strict, store), 0
        found = [
            await views.objects_of(info, Revision(moment), OF_DEVICES, present)
            for views, present in (of_keys, of_state)
        ]
        (keys, created), (kept, kept_created) = found
        assert [(each.key, each.revision, each.object) for each in kept] == [
            (each.key, each.revision, each.object) for each in keys
        ], (seed, moment)
        assert kept_created.items() >= created.items()


KINDS = {
    "configmaps": ("", "ConfigMap"),
    "resourceclaims": ("resource.k8s.io", "ResourceClaim"),
    "resourceslicepatches": ("resource.k8s.io", "ResourceSlicePatch"),
}


def drawn_events(draw: random.Random, count: int) -> list[Event]:
    """Objects with few names and uids come, change and go; claims get devices and lose them.

    A recording may lack the deletion between two objects of a name, or take one up with its uid.
    """
    events: list[Event] = []
    there: dict[ObjectKey, str] = {}
    for revision in range(1, count + 1):
        resource = draw.choice(list(KINDS))
        group, kind = KINDS[resource]
        key = ObjectKey(group, resource, "", draw.choice("ab"))
        uid, type = there.get(key, ""), EventType.OBJECT_CREATED
        if uid:
            is_end = draw.random() < 0.4
            type = EventType.OBJECT_DELETED if is_end else EventType.OBJECT_UPDATED
        if not uid or (resource == "configmaps" and draw.random() < 0.2):
            uid = f"{key.name}-{draw.randint(1, 2)}"
        if type is EventType.OBJECT_DELETED:
            del there[key]
        else:
            there[key] = uid
        metadata = {"name": key.name, "uid": uid, "creationTimestamp": "2026-01-01T00:00:00Z"}
        tree = {"metadata": metadata, "kind": kind, "spec": {"devices": {}}, "at": revision}
        if resource == "resourceclaims" and draw.random() < 0.6:
            device = {"request": "r", "driver": "d", "pool": "p", "device": draw.choice("xyz")}
            tree["status"] = {"allocation": {"devices": {"results": [device]}}}
        stamp = Stamp(time=Instant(revision), actor=Actor(user="u"), verb="update")
        draft = Draft(type=type, key=key, uid=uid, tree=tree, stamp=stamp)
        events.append(chain.seal(draft, Revision(revision), events[-1].hash if events else GENESIS))
    return events


async def test_objects_that_went_between_state_and_moment_leave_nothing() -> None:
    draw = random.Random(1)
    for turn in range(150):
        events = drawn_events(draw, 40)
        log, info = await history_of(events, PROFILE.settings())
        store, state = MemoryViewStore({}), draw.randint(20, 39)
        await keep(store, info, events, state)
        moment = draw.randint(state, 40)
        views = await past_views(without_keys(log), store).whole(info, Revision(moment))
        assert seen(views) == seen(views_up_to(events, moment, PROFILE)), (turn, state, moment)


async def test_late_moment_without_a_kept_state_knows_when_its_objects_were_created() -> None:
    draw = random.Random(2)
    for turn in range(60):
        events = drawn_events(draw, 40)
        log, info = await history_of(events, PROFILE.settings())
        moment = draw.randint(25, 40)
        views = await past_views(log, None).whole(info, Revision(moment))
        assert seen(views) == seen(views_up_to(events, moment, PROFILE)), (turn, moment)


@pytest.mark.parametrize("seed", draws.seeds(2, first=40))
async def test_early_moment_is_read_from_the_first_event(seed: int) -> None:
    events = Drawn(seed, writes=40).cluster.line.events
    log, info = await history_of(events, PROFILE.settings())
    for moment in range(0, len(events) // 2, 3):
        views = await past_views(without_keys(log), None).whole(info, Revision(moment))
        assert seen(views) == seen(views_up_to(events, moment, PROFILE)), (seed, moment)


@pytest.mark.parametrize("part", [slice(8, 9), slice(45, 46), slice(-1, None)])
async def test_altered_state_is_not_gone_on_from(part: slice) -> None:
    events = Drawn(20).cluster.line.events
    log, info = await history_of(events, PROFILE.settings())
    store, half = MemoryViewStore({}), len(events) // 2
    await keep(store, info, events, half)
    kept = await store.load_snapshot(info.id, *VIEW, until=Revision(half))
    assert kept is not None
    data = bytearray(kept[1])
    data[part] = bytes(255 - each for each in data[part])
    await store.save_snapshot(info.id, *VIEW, Revision(half), bytes(data))
    with pytest.raises(AssertionError, match="the keys of the whole history are read"):
        await past_views(without_keys(log), store).whole(info, Revision(half + 5))
    views = await past_views(log, store).whole(info, Revision(half + 5))
    assert shown(views) == shown(views_up_to(events, half + 5, PROFILE))


async def test_state_far_before_the_moment_is_not_gone_on_from() -> None:
    events = Drawn(20).cluster.line.events
    log, info = await history_of(events, PROFILE.settings())
    store = MemoryViewStore({})
    await keep(store, info, events, 3)
    with pytest.raises(AssertionError, match="the keys of the whole history are read"):
        await past_views(without_keys(log), store).whole(info, Revision(len(events)))


async def test_more_objects_than_allowed_are_refused_after_a_state_too() -> None:
    events = Drawn(4).cluster.line.events
    log, info = await history_of(events, PROFILE.settings())
    store, state = MemoryViewStore({}), len(events) - 3
    await keep(store, info, events, state)
    for moment in (state, len(events)):
        total = views_up_to(events, moment, PROFILE).objects.total
        views = await past_views(log, store, total).whole(info, Revision(moment))
        assert views.objects.total == total
        with pytest.raises(InputError, match=f"more than {total - 1} objects exist at"):
            await past_views(log, store, total - 1).whole(info, Revision(moment))


async def test_moment_of_a_fork_goes_on_from_a_state_of_its_source() -> None:
    async with world() as here:
        source = await here.histories.open("cluster")
        store, head = MemoryViewStore({}), source.head
        state = [source.views.objects.dump()]
        await snapshots.keep(store, source.info.id, VIEW, head.revision, head.hash, state)
        await source.submit(config_map("later"), actor=ALICE)
        fork = await here.fork("fork")
        runtime = await here.histories.open("fork")
        await runtime.submit(config_map("own"), actor=ALICE)
        end = runtime.head.revision
        events = await here.log.read(fork.id, after=Revision(0), limit=100)
        for moment in range(head.revision, end + 1):
            views = await past_views(without_keys(here.log), store).whole(fork, Revision(moment))
            assert seen(views) == seen(views_up_to(events, moment, PROFILE)), moment


async def test_newest_pods_of_a_past_moment_are_those_that_were_created_last() -> None:
    cluster = Cluster()
    cluster.node("n1")
    cluster.patch("nodes", "n1", {"spec": {"unschedulable": True}})
    for name in ("old", "middle", "new"):
        cluster.pod(name)
    cluster.settle()
    cluster.patch("pods", "old", {"metadata": {"labels": {"touched": "last"}}})
    events = cluster.line.events
    log, info = await history_of(events)
    views = await past_views(log, None).whole(info, Revision(len(events)))
    async with asking(cluster, views=views) as ask:
        answer = await ask("node", "n1")
    names = "default/new, default/middle, default/old"
    assert names in "\n".join(texts(answer.reason)), texts(answer.reason)
