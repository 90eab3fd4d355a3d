"""Controllers that start together read the past once, and leave the memory as it was."""

from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial

import anyio
import pytest

from app.analysis.views import LiveViews
from app.domain.log import Event, Revision
from app.domain.objects.profile import Profile
from app.workers import priming as priming_module
from app.workers.priming import Priming
from bench import folding
from tests.patience import PATIENCE_SECONDS

PODS = ("", "pods")
CLAIMS = ("resource.k8s.io", "resourceclaims")
COUNT = 6
LAST = COUNT * 8


@dataclass(eq=False)
class Reader:
    """A controller that notes what it folds, with the names in the objects."""

    reads: frozenset | None
    name: str = "reader"
    folded: list = field(default_factory=list)


class Watches:
    """The last events, as a log gives them; it counts how often it is asked."""

    def __init__(self, events: list[Event]) -> None:
        self.events = events
        self.published = Revision(LAST)
        self.questions = 0

    async def past(self, after: Revision, until: Revision) -> list[Event]:
        self.questions += 1
        await anyio.lowlevel.checkpoint()
        return [event for event in self.events if after < event.revision <= until][:5]


class Runtime:
    """The parts of a history that a start reads: pods that got a claim and run."""

    def __init__(self) -> None:
        made = folding.Maker()
        events = [e for number in range(COUNT) for e in folding.arrive(made, number, nodes=2)]
        self.views = LiveViews(Profile())
        for event in events:
            self.views.fold(event)
        self.held = [e for place in self.views.objects.resources()
                     for e in self.views.objects.events(*place)]  # fmt: skip
        for event in self.held:
            event.forget_tree()
        self.watches = Watches([event.undecoded() for event in events])
        self.info = type("Info", (), {"is_fork": False})


def take_in(reader: Reader, event: Event) -> None:
    reader.folded.append((event.revision, event.key, event.object["metadata"]["name"]
                          if event.is_about_object else ""))  # fmt: skip


def wanted(runtime: Runtime, replayed: int, reads: frozenset | None) -> list:
    """What a controller is to see: objects that are older in their order, then each event."""
    until = LAST - replayed
    old = sorted((e for e in runtime.held if e.revision <= until), key=lambda e: e.revision)
    events = [*old, *(e for e in runtime.watches.events if e.revision > until)]
    return [(e.revision, e.key) for e in events if reads is None or e.key[:2] in reads]


@asynccontextmanager
async def patient():
    with anyio.fail_after(PATIENCE_SECONDS):
        async with anyio.create_task_group() as tasks:
            yield tasks


@pytest.mark.parametrize("replayed", [0, 3, 17, LAST])
async def test_each_that_starts_sees_what_it_reads_in_order_and_the_log_is_read_once(replayed):
    runtime, primed = Runtime(), {}
    priming = Priming(runtime, replayed)

    async def start(name: str, reads: frozenset | None) -> None:
        primed[name] = await priming.prime(lambda: Reader(reads), take_in)

    kinds = {"pods": frozenset({PODS}), "claims": frozenset({CLAIMS}), "all": None}
    async with patient() as tasks:
        for name, reads in kinds.items():
            tasks.start_soon(start, name, reads)
    for name, reads in kinds.items():
        reader, revision = primed[name]
        assert revision == LAST
        assert [each[:2] for each in reader.folded] == wanted(runtime, replayed, reads)
    alone = Runtime()
    await Priming(alone, replayed).prime(lambda: Reader(None), take_in)
    assert runtime.watches.questions == alone.watches.questions


async def test_objects_that_were_not_decoded_before_a_start_are_not_decoded_after_it():
    runtime = Runtime()
    kept = next(event for event in runtime.held if event.key[:2] == PODS)
    tree = kept.object
    reader, _ = await Priming(runtime, 0).prime(lambda: Reader(None), take_in)
    assert len(reader.folded) == len(runtime.held)
    assert kept.tree is tree
    assert [event.key for event in runtime.held if event.tree is not None] == [kept.key]


async def test_mistake_of_one_ends_its_start_alone():
    runtime, readers = Runtime(), {}
    priming = Priming(runtime, 10)

    def stumble(reader: Reader, event: Event) -> None:
        if event.revision == LAST - 3:
            raise ValueError("odd")
        take_in(reader, event)

    async def start(name: str, fold) -> None:
        try:
            readers[name] = (await priming.prime(lambda: Reader(None), fold))[0]
        except ValueError as mistake:
            readers[name] = str(mistake)

    async with patient() as tasks:
        for name, fold in (("one", take_in), ("odd", stumble), ("two", take_in)):
            tasks.start_soon(start, name, fold)
    assert readers["odd"] == "odd"
    for name in ("one", "two"):
        assert [each[:2] for each in readers[name].folded] == wanted(runtime, 10, None)


async def test_start_is_made_anew_when_the_one_that_reads_for_all_is_stopped():
    runtime, made = Runtime(), []
    priming = Priming(runtime, LAST)
    scopes = [anyio.CancelScope() for _ in range(4)]
    primed = {}

    def make() -> Reader:
        made.append(Reader(None))
        return made[-1]

    def stop_first(reader: Reader, event: Event) -> None:
        take_in(reader, event)
        if event.revision == 7:
            scopes[0].cancel()
            scopes[1].cancel()

    async def start(number: int) -> None:
        with scopes[number]:
            primed[number] = await priming.prime(make, stop_first)

    async with patient() as tasks:
        for number in range(4):
            tasks.start_soon(start, number)
    assert sorted(primed) == [2, 3]
    assert len(made) > 4, "readers of the pass that did not end are not used again"
    for reader, revision in primed.values():
        assert revision == LAST
        assert [each[:2] for each in reader.folded] == wanted(runtime, LAST, None)


async def test_awaited_controllers_of_a_long_history_start_before_the_others(monkeypatch):
    monkeypatch.setattr(priming_module, "GATHERED_FROM", 0)
    runtime, order, seen = Runtime(), [], {}
    priming = Priming(runtime, 10)
    leads = anyio.Event()

    async def start(name: str, *, is_awaited: bool) -> None:
        reader, _ = await priming.prime(lambda: Reader(None, name), note, is_awaited=is_awaited)
        order.append(name)
        seen[name] = [each[:2] for each in reader.folded]
        if is_awaited:
            leads.set()

    def note(reader: Reader, event: Event) -> None:
        take_in(reader, event)
        if reader.name == "other" and event.revision == LAST:
            order.append("other has folded all" if leads.is_set() else "too early")

    async with patient() as tasks:
        tasks.start_soon(partial(start, "other", is_awaited=False))
        tasks.start_soon(partial(start, "awaited", is_awaited=True))
    assert order == ["awaited", "other has folded all", "other"]
    assert seen["awaited"] == seen["other"] == wanted(runtime, 10, None)


async def test_pass_of_a_long_history_waits_for_all_that_acquire_their_leases(monkeypatch):
    monkeypatch.setattr(priming_module, "GATHERED_FROM", 0)
    runtime, begun = Runtime(), []
    priming = Priming(runtime, LAST)
    leases = [anyio.Event() for _ in range(6)]

    def note(reader: Reader, event: Event) -> None:
        begun.append(all(lease.is_set() for lease in leases))
        take_in(reader, event)

    async def start(number: int) -> None:
        # The first and the last ones are awaited; a pass of each group is enough.
        is_awaited = number in (0, 5)
        with priming.coming(is_awaited=is_awaited):
            await leases[number].wait()
        await priming.prime(lambda: Reader(None), note, is_awaited=is_awaited)

    async with patient() as tasks:
        for number in range(6):
            tasks.start_soon(start, number)
        for lease in leases:
            await anyio.wait_all_tasks_blocked()
            lease.set()
    assert set(begun) == {True}, "no pass begins before the last lease"
    alone = Runtime()
    await Priming(alone, LAST).prime(lambda: Reader(None), take_in)
    assert runtime.watches.questions == 2 * alone.watches.questions


async def test_pass_does_not_wait_for_ever_for_a_lease(monkeypatch):
    monkeypatch.setattr(priming_module, "GATHERED_FROM", 0)
    monkeypatch.setattr(priming_module, "GATHER_SECONDS_MAX", 0.05)
    runtime = Runtime()
    priming = Priming(runtime, LAST)
    with priming.coming():
        async with patient():
            reader, _ = await priming.prime(lambda: Reader(None), take_in)
    assert [each[:2] for each in reader.folded] == wanted(runtime, LAST, None)
