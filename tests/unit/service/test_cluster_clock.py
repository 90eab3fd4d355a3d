"""Time of a history goes on at its pace, also when the last event was stamped by a fast clock."""

from collections.abc import AsyncIterator, Sequence

import anyio
import pytest

from app.adapters.memory import MemoryLeases, MemoryLog, MemoryStore, MemoryWakeUp
from app.adapters.uids import DerivedUids
from app.bootstrap.rules import rules_for
from app.domain.controllers.event_expiry import EventExpiryReconciler
from app.domain.controllers.eviction import EvictionReconciler
from app.domain.controllers.plan import DeviceViews, Plan
from app.domain.log import Event, EventType, ObjectKey, Revision
from app.domain.objects.profile import Profile
from app.domain.objects.write.commands import CreateObject, ImportObject
from app.domain.values import timestamps
from app.domain.values.timestamps import SECOND, Instant
from app.ports import RuntimePorts
from app.service.cluster_clock import ClusterClock
from app.service.runtime import HistoryRuntime, RuntimeBounds
from app.workers.loop import ControllerLoop, LoopBounds
from tests.patience import PATIENCE_SECONDS
from tests.unit.service.builders import ALICE, START, config_map, namespace
from tests.virtual_clock import VirtualClock

HOUR = 3_600 * SECOND


class Hands:
    """A clock whose wall time is set by hand, beside the time that passes."""

    def __init__(self, wall: int = START) -> None:
        self.hand = Instant(wall)
        self.passed = 7 * SECOND

    def now(self) -> Instant:
        return self.hand

    def wall(self) -> Instant:
        return self.hand

    def steady(self) -> int:
        return self.passed

    def advance(self, micros: int) -> None:
        self.hand = Instant(self.hand + micros)
        self.passed += micros

    async def wait_until(self, instant: Instant) -> None:
        raise NotImplementedError


def test_time_goes_on_from_an_event_that_is_ahead() -> None:
    hands = Hands()
    clock = ClusterClock(hands)
    assert (clock.now(), clock.ahead) == (START, 0)
    clock.observe(Instant(START + HOUR))
    assert (clock.now(), clock.ahead) == (START + HOUR, HOUR)
    hands.advance(30 * SECOND)
    assert (clock.now(), clock.ahead) == (START + HOUR + 30 * SECOND, HOUR)
    clock.observe(Instant(START + HOUR))
    assert clock.now() == START + HOUR + 30 * SECOND, "an older event changes nothing"


def test_time_does_not_fall_behind_what_was_observed_when_the_clock_is_put_right() -> None:
    hands = Hands(START - HOUR)
    clock = ClusterClock(hands)
    clock.observe(START)
    hands.advance(SECOND)
    assert clock.now() == START + SECOND
    hands.hand = Instant(START + 10 * SECOND)
    assert (clock.now(), clock.ahead) == (START + 10 * SECOND, 0)
    hands.hand = Instant(START - HOUR)
    hands.passed += SECOND
    assert clock.now() == START + 2 * SECOND


def runtime_of(store: MemoryStore, wake_up: MemoryWakeUp, clock: Hands, seed: int):
    ports = RuntimePorts(
        log=MemoryLog(store, wake_up.grown), wake_up=wake_up, clock=clock, uids=DerivedUids(seed)
    )
    return HistoryRuntime(
        info=store.by_name["h"].info,
        ports=ports,
        rules=rules_for(Profile()),
        bounds=RuntimeBounds(poll_seconds=60.0),
    )


async def test_events_of_two_processes_and_of_a_restart_go_on_from_the_fast_clock() -> None:
    store, wake_up = MemoryStore(), MemoryWakeUp()
    await MemoryLog(store).create_history("h", seed=7, settings={}, created=START)
    right, fast = Hands(), Hands(START + HOUR)
    times: list[int] = []

    async def write(runtime: HistoryRuntime, name: str) -> None:
        outcome = await runtime.submit(config_map(name), actor=ALICE)
        assert outcome.event is not None
        times.append((outcome.event.stamp.time - START) // SECOND)

    async with runtime_of(store, wake_up, right, 1).running() as one:
        await one.submit(namespace("default"), actor=ALICE)
        async with runtime_of(store, wake_up, fast, 2).running() as two:
            await write(two, "a")
            assert await one.wait_for(two.head.revision, 20.0)
            right.advance(10 * SECOND)
            fast.advance(10 * SECOND)
            await write(one, "b")
        right.advance(10 * SECOND)
        await write(one, "c")
        assert one.clock.ahead == HOUR
    # An hour's lead shrinks by the time in which nobody wrote.
    right.advance(600 * SECOND)
    async with runtime_of(store, wake_up, right, 3).running() as one:
        assert one.clock.ahead == HOUR - 600 * SECOND
        right.advance(5 * SECOND)
        await write(one, "d")
        right.advance(HOUR)
        await write(one, "e")
        assert one.clock.ahead == HOUR - 600 * SECOND
    assert times == [3600, 3610, 3620, 3625, 7225]
    stored = [event.stamp.time for event in store.history(one.info.id).events]
    assert stored == sorted(stored)


async def test_what_is_due_happens_although_the_last_event_is_ahead() -> None:
    store, wake_up = MemoryStore(), MemoryWakeUp()
    await MemoryLog(store).create_history("h", seed=7, settings={}, created=START)
    right, fast = Hands(), Hands(START + HOUR)
    runtime = runtime_of(store, wake_up, right, 1)
    key = ObjectKey("", "events", "default", "e")
    loop = ControllerLoop(
        "event-expiry",
        runtime,
        lambda: EventExpiryReconciler(ttl=60 * SECOND),
        leases=MemoryLeases(store, VirtualClock(START)),
        holder="one",
        bounds=LoopBounds(poll_seconds=0.01),
    )
    async with runtime.running(), anyio.create_task_group() as tasks:
        async with runtime_of(store, wake_up, fast, 2).running() as other:
            await other.submit(namespace("default"), actor=ALICE)
            await other.submit(event_object(key), actor=ALICE)
        tasks.start_soon(loop.run)
        with anyio.fail_after(PATIENCE_SECONDS), runtime.subscribe(after=Revision(0)) as followed:
            async for events in followed:
                if events[-1].type is EventType.OBJECT_DELETED:
                    break
                # The Event is there: a minute later, and the rest of one, it is to end.
                right.advance(121 * SECOND)
        assert runtime.views.objects.get(key) is None
        assert HOUR < runtime.head.time - START < HOUR + 1_000 * SECOND
        tasks.cancel_scope.cancel()


def event_object(key: ObjectKey) -> CreateObject:
    tree = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": key.name, "namespace": key.namespace},
        "involvedObject": {"kind": "Pod", "name": "p", "namespace": key.namespace},
        "reason": "Test",
        "message": "it happened",
        "type": "Normal",
    }
    return CreateObject(key=key, version="v1", tree=tree)


async def test_toleration_lasts_as_long_as_it_says_although_the_taint_is_stamped_ahead() -> None:
    store, wake_up = MemoryStore(), MemoryWakeUp()
    await MemoryLog(store).create_history("h", seed=7, settings={}, created=START)
    right, fast = Hands(), Hands(START + HOUR)
    runtime = runtime_of(store, wake_up, right, 1)
    loop = ControllerLoop(
        "eviction",
        runtime,
        EvictionReconciler,
        leases=MemoryLeases(store, VirtualClock(START)),
        holder="one",
        bounds=LoopBounds(poll_seconds=0.01),
    )
    pod = ObjectKey("", "pods", "default", "p")
    async with runtime.running(), anyio.create_task_group() as tasks:
        async with runtime_of(store, wake_up, fast, 2).running() as other:
            await other.submit(namespace("default"), actor=ALICE)
            for command in device_in_use(tainted=START + HOUR, seconds=30):
                await other.submit(command, actor=ALICE)
        tasks.start_soon(loop.run)
        tasks.start_soon(tick, right)
        with anyio.fail_after(PATIENCE_SECONDS), runtime.subscribe(after=Revision(0)) as followed:
            ended = await deletion(followed, pod)
        # The taint is of an instant that the own clock sees an hour later.
        assert ended.stamp.time >= START + HOUR + 30 * SECOND
        assert ended.stamp.time < START + 2 * HOUR
        tasks.cancel_scope.cancel()


@pytest.mark.parametrize("fallen", [0, 39])
async def test_decision_is_stamped_no_earlier_than_it_was_made(fallen: int) -> None:
    """The clock is put back between a step and its append: no event has noted the later time."""
    store = MemoryStore()
    await MemoryLog(store).create_history("h", seed=7, settings={}, created=START)
    hands = Hands()
    runtime = runtime_of(store, MemoryWakeUp(), hands, 1)

    class Decided(EvictionReconciler):
        def step(self, views: DeviceViews, now: Instant) -> Plan | None:
            plan = super().step(views, now)
            if plan is not None and not plan.is_empty:
                hands.hand = Instant(START + fallen * SECOND)
            return plan

    loop = ControllerLoop(
        "eviction",
        runtime,
        Decided,
        leases=MemoryLeases(store, VirtualClock(START)),
        holder="one",
        bounds=LoopBounds(poll_seconds=0.01),
    )
    pod = ObjectKey("", "pods", "default", "p")
    async with runtime.running(), anyio.create_task_group() as tasks:
        await runtime.submit(namespace("default"), actor=ALICE)
        for command in device_in_use(tainted=START, seconds=30):
            await runtime.submit(command, actor=ALICE)
        hands.hand = Instant(START + 40 * SECOND)
        tasks.start_soon(loop.run)
        with anyio.fail_after(PATIENCE_SECONDS), runtime.subscribe(after=Revision(0)) as followed:
            ended = await deletion(followed, pod)
        assert ended.stamp.time >= START + 40 * SECOND
        tasks.cancel_scope.cancel()


async def tick(clock: Hands) -> None:
    """Let a second pass, again and again."""
    while True:
        clock.advance(SECOND)
        await anyio.sleep(0.01)  # waits: for the controller, which polls


async def deletion(followed: AsyncIterator[Sequence[Event]], key: ObjectKey) -> Event:
    """The event that deleted an object."""
    async for events in followed:
        for event in events:
            if event.type is EventType.OBJECT_DELETED and event.key == key:
                return event
    raise AssertionError("the history has ended")


def device_in_use(*, tainted: int, seconds: int) -> list[ImportObject]:
    """A pod with a tainted device that it tolerates for some seconds."""
    at = timestamps.seconds_text(Instant(tainted))
    taint = {"key": "sick", "effect": "NoExecute", "timeAdded": at}
    toleration = {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds}
    device = {"driver": "d.example.com", "pool": "n", "device": "gpu-0"}
    result = {**device, "request": "gpu", "tolerations": [toleration]}
    return [
        imported(
            "resourceslices",
            "ResourceSlice",
            spec={
                "driver": "d.example.com",
                "nodeName": "n",
                "pool": {"name": "n", "generation": 1, "resourceSliceCount": 1},
                "devices": [{"name": "gpu-0", "taints": [taint]}],
            },
        ),
        imported(
            "resourceclaims",
            "ResourceClaim",
            spec={"devices": {"requests": [{"name": "gpu"}]}},
            status={
                "allocation": {"devices": {"results": [result]}},
                "reservedFor": [{"resource": "pods", "name": "p", "uid": "uid-pods"}],
            },
        ),
        imported(
            "pods",
            "Pod",
            spec={"nodeName": "n", "resourceClaims": [{"name": "gpu", "resourceClaimName": "p"}]},
            status={"phase": "Running"},
        ),
    ]


def imported(resource: str, kind: str, **parts: object) -> ImportObject:
    """An object `p` as it was recorded."""
    group = "" if resource == "pods" else "resource.k8s.io"
    of_namespace = "" if resource == "resourceslices" else "default"
    metadata = {"name": "p", "uid": f"uid-{resource}"}
    if of_namespace:
        metadata["namespace"] = of_namespace
    version = "v1" if not group else f"{group}/v1"
    return ImportObject(
        operation="ADDED",
        key=ObjectKey(group, resource, of_namespace, "p"),
        uid=metadata["uid"],
        tree={"apiVersion": version, "kind": kind, "metadata": metadata, **parts},
    )
