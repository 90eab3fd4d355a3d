"""The answers of the writer agree with the stored log, whatever fails.

The judge is a dictionary: it folds the stored events itself, and implements create, update, patch
and delete of a ConfigMap. An answer must equal the judge's answer at one stored revision between
the request and the answer: the object and its revision, no change, or the same refusal.
"""

import copy
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field

import anyio
import anyio.lowlevel
import msgspec
from anyio.abc import TaskGroup
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.adapters.memory import MemoryLeases, MemoryStore, MemoryWakeUp
from app.adapters.uids import DerivedUids
from app.domain.controllers.plan import Decision, Plan
from app.domain.errors import LogUnavailable, RedraError, StaleLease
from app.domain.log import Actor, Event, HistoryId, ObjectKey, Revision
from app.domain.log.chain import check_chain
from app.domain.objects.write.commands import (
    Command,
    CreateObject,
    DeleteObject,
    PatchObject,
    PatchType,
    UpdateObject,
    WriteOptions,
)
from app.ports import RuntimePorts
from app.service.runtime import HistoryRuntime, RuntimeBounds
from app.service.writing import WriteOutcome, WriterBounds
from tests import draws
from tests.properties.faulty_log import Fault, FaultyLog, Turn
from tests.unit.service.builders import ALICE, START, namespace, rules
from tests.virtual_clock import VirtualClock

NAMES = ("a", "b", "c")
QUOTA = 2
"""ConfigMaps that the namespace may hold; fewer than there are names."""


@dataclass(frozen=True, slots=True)
class Act:
    """One write. `revision` selects its resourceVersion: none, the one seen, or an old one."""

    verb: str
    name: str
    value: str
    revision: str
    is_dry: bool


@dataclass(frozen=True, slots=True)
class Call:
    """One request of a caller: one act, or several acts in one plan.

    The caller cancels after `patience` turns of the loop; 0 means never. A plan has a decision and
    a lease, as the plans of controllers do.
    """

    acts: tuple[Act, ...]
    pause: int
    patience: int
    is_plan: bool


@dataclass(slots=True, kw_only=True)
class Told:
    """The request and answer of a caller, and the stored revision at both moments.

    `number` is the cause of its events.
    """

    number: int
    acts: list[tuple[Act, str]]
    is_plan: bool
    since: int
    until: int = -1
    outcomes: list[WriteOutcome] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    problem: Exception | None = None


@dataclass(slots=True)
class Seen:
    """The objects in the views at a revision, and the stored revision at that moment."""

    revision: int
    stored: int
    objects: dict[str, tuple[int, str]]


@dataclass(slots=True)
class Story:
    """All observations of callers, readers and watches."""

    told: list[Told] = field(default_factory=list)
    seen: list[Seen] = field(default_factory=list)
    watched: list[list[int]] = field(default_factory=list)
    watched_stored: list[tuple[int, int]] = field(default_factory=list)


acts = st.builds(
    Act,
    verb=st.sampled_from(("create", "create", "update", "update", "patch", "delete")),
    name=st.sampled_from(NAMES),
    value=st.sampled_from(("1", "2")),
    revision=st.sampled_from(("", "", "seen", "old")),
    is_dry=st.sampled_from((False, False, False, True)),
)
calls = st.builds(
    Call,
    acts=st.lists(acts, min_size=1, max_size=3).map(tuple),
    pause=st.integers(0, 4),
    patience=st.sampled_from((0, 0, 0, 1, 3, 6)),
    is_plan=st.sampled_from((False, False, False, True)),
)
callers = st.lists(st.lists(calls, min_size=1, max_size=4), min_size=1, max_size=6)
faults = st.sampled_from((Fault.NONE, Fault.NONE, Fault.REFUSED, Fault.LOST, Fault.LATE))
turns = st.lists(st.builds(Turn, st.integers(0, 4), st.integers(0, 3), faults), max_size=12)
lost_turns = st.lists(
    st.builds(
        Turn,
        st.integers(0, 3),
        st.integers(0, 2),
        st.sampled_from((Fault.NONE, Fault.NONE, Fault.NONE, Fault.REFUSED)),
    ),
    max_size=12,
)
bounds = st.builds(
    WriterBounds,
    batch_max=st.sampled_from((1, 2, 256)),
    halved_min=st.sampled_from((2, 4, 64)),
    retries_max=st.sampled_from((2, 20)),
)


def config_map(act: Act, revision: str) -> dict:
    metadata = {"name": act.name, "namespace": "d"}
    if revision:
        metadata["resourceVersion"] = revision
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata,
        "data": {"k": act.value},
    }


def command_of(act: Act, revision: str) -> Command:
    key = ObjectKey("", "configmaps", "d", act.name)
    options = WriteOptions(dry_run=act.is_dry)
    match act.verb:
        case "create":
            return CreateObject(key=key, version="v1", tree=config_map(act, ""), options=options)
        case "update":
            tree = config_map(act, revision)
            return UpdateObject(key=key, version="v1", tree=tree, options=options)
        case "patch":
            body = {"data": {"k": act.value}}
            return PatchObject(
                key=key, version="v1", type=PatchType.MERGE, body=body, options=options
            )
        case _:
            return DeleteObject(key=key, resource_version=revision, options=options)


def key_name(event: Event) -> str:
    return event.key.name if event.key.resource == "configmaps" else ""


# --- the judge: knows dictionaries only

Answer = tuple[str, int, str]
"""What became of one act (written, deleted, same, dry), its revision and the value."""


def states_of(events: Sequence[Event]) -> list[dict[str, tuple[int, str]]]:
    """The ConfigMaps at each stored revision: name to resourceVersion and value."""
    states: list[dict[str, tuple[int, str]]] = [{}]
    for event in events:
        state = dict(states[-1])
        if event.key.resource == "configmaps":
            if event.type == "ObjectDeleted":
                del state[event.key.name]
            else:
                tree = msgspec.json.decode(event.body)
                assert tree["metadata"]["resourceVersion"] == str(event.revision)
                state[event.key.name] = (event.revision, tree["data"]["k"])
        states.append(state)
    return states


def play(
    state: dict[str, tuple[int, str]], revision: int, acts: Sequence[tuple[Act, str]], first: int
) -> list[Answer] | str:
    """The result of the acts on a state: the change, revision and value of each, or a refusal.

    `first` events (a decision) precede those of the acts.
    """
    state = dict(state)
    last = revision + first
    answers: list[Answer] = []
    for act, named in acts:
        held = state.get(act.name)
        if act.verb == "create":
            # Admission looks at quotas before the store looks at names.
            if len(state) >= QUOTA:
                return "Forbidden"
            if held is not None:
                return "AlreadyExists"
            held = (last + 1, act.value)
        elif held is None:
            return "NotFound"
        elif named and act.verb != "patch" and named != str(held[0]):
            return "Conflict"
        elif act.verb == "delete":
            held = None
        elif held[1] == act.value:
            answers.append(("same", *held))
            continue
        else:
            held = (last + 1, act.value)
        if act.is_dry:
            answers.append(("dry", 0, "" if held is None else held[1]))
            continue
        last += 1
        if held is None:
            del state[act.name]
            answers.append(("deleted", last, ""))
        else:
            state[act.name] = held
            answers.append(("written", *held))
    return answers


def heard(told: Told) -> list[Answer]:
    """The answer to the caller in the form of the judge."""
    answers: list[Answer] = []
    for (act, _), outcome in zip(told.acts, told.outcomes, strict=True):
        event, tree = outcome.event, outcome.tree
        value = "" if act.verb == "delete" or tree is None else tree["data"]["k"]
        if event is not None:
            assert key_name(event) == act.name
            if act.verb == "delete":
                answers.append(("deleted", event.revision, ""))
            else:
                assert tree is not None
                assert tree["metadata"]["resourceVersion"] == str(event.revision)
                answers.append(("written", event.revision, value))
        elif act.is_dry:
            answers.append(("dry", 0, value))
        else:
            assert tree is not None
            answers.append(("same", int(tree["metadata"]["resourceVersion"]), value))
    return answers


def fits(told: Told, states: list[dict[str, tuple[int, str]]]) -> bool:
    """True when the answer is right at a revision stored between the request and the answer."""
    for revision in range(told.since, told.until + 1):
        played = play(states[revision], revision, told.acts, int(told.is_plan))
        if isinstance(played, str) or told.problem is not None:
            if told.problem is not None and played == type(told.problem).__name__:
                return True
        elif told.is_plan:
            if [event.revision for event in told.events] == written_by(played, revision, told):
                return True
        elif alike(played, heard(told), told):
            return True
    return False


def written_by(played: list[Answer], revision: int, told: Told) -> list[int]:
    """The revisions of the events, including the decision."""
    first = [revision + 1] if told.is_plan else []
    return first + [number for what, number, _ in played if what in ("written", "deleted")]


def alike(played: list[Answer], answer: list[Answer], told: Told) -> bool:
    """True when the answers are equal; only the value of a dry run is compared."""
    return all(
        (act.is_dry and expected[2] == got[2]) or expected == got
        for (act, _), expected, got in zip(told.acts, played, answer, strict=True)
    )


def judge(story: Story, events: Sequence[Event]) -> None:
    """Checks every rule of the module's law."""
    check_chain(list(events))
    times = [event.stamp.time for event in events]
    assert times == sorted(times), "time never falls"
    states = states_of(events)
    by_cause: dict[int, list[Event]] = {}
    for event in events:
        by_cause.setdefault(event.stamp.cause, []).append(event)
    for told in story.told:
        stored = by_cause.get(told.number, [])
        # A caller that left, or that got LogUnavailable, does not know the result.
        if told.until >= 0 and not isinstance(told.problem, LogUnavailable):
            assert isinstance(told.problem, StaleLease) or fits(told, states), (told, events)
            answered = [event.hash for event in told.events]
            assert [event.hash for event in stored] == answered, (told, stored)
        if stored:
            # The whole request is stored once, at one revision, with its meaning there.
            first = stored[0].revision - 1
            played = play(states[first], first, told.acts, int(told.is_plan))
            assert not isinstance(played, str), (told, stored)
            assert [event.revision for event in stored] == written_by(played, first, told)
    for seen in story.seen:
        assert seen.revision <= seen.stored, "shown before it was stored"
        assert seen.objects == states[seen.revision]
    for revisions in story.watched:
        assert revisions == list(range(1, len(revisions) + 1)), "each event once, in order"
    for revision, stored_then in story.watched_stored:
        assert revision <= stored_then, "sent before it was stored"


# --- the world


class World:
    """Writers over one store, their callers, and the observations."""

    def __init__(self, store: MemoryStore, leases: MemoryLeases) -> None:
        self.store = store
        self.leases = leases
        self.history = HistoryId(1)
        self.wake_up = MemoryWakeUp()
        self.story = Story()

    @property
    def stored(self) -> int:
        return self.store.history(self.history).head.revision

    async def call(
        self, runtime: HistoryRuntime, number: int, call: Call, tasks: TaskGroup
    ) -> None:
        for _ in range(call.pause):
            await anyio.lowlevel.checkpoint()
        named = [(act, self.named(runtime, act)) for act in call.acts]
        told = Told(number=number, acts=named, is_plan=call.is_plan, since=self.stored)
        self.story.told.append(told)
        commands = [command_of(*pair) for pair in named]
        before = copy.deepcopy(commands)
        with anyio.CancelScope() as scope:
            if call.patience:
                tasks.start_soon(leave, scope, call.patience)
            try:
                await self.submit(runtime, told, commands)
            except RedraError as problem:
                told.problem = problem
            told.until = self.stored
        assert commands == before, "a command is decided more than once: nobody may change it"
        self.look(runtime)

    async def submit(self, runtime: HistoryRuntime, told: Told, commands: list[Command]) -> None:
        if told.is_plan:
            # It ends at once, so the next plan takes it over and makes this one stale.
            holder = str(told.number)
            lease = await self.leases.acquire(self.history, "claims", holder, seconds=0)
            assert lease is not None
            plan = plan_of(told.number, commands)
            told.events = await runtime.submit_plan(plan, actor=ALICE, lease=lease)
            return
        if len(commands) == 1:
            outcome = await runtime.submit(commands[0], actor=ALICE, cause=told.number)
            told.outcomes = [outcome]
        else:
            told.outcomes = await runtime.submit_all(commands, actor=ALICE, cause=told.number)
        told.events = [found.event for found in told.outcomes if found.event is not None]

    def named(self, runtime: HistoryRuntime, act: Act) -> str:
        """The resourceVersion that the caller sends."""
        event = runtime.views.objects.event(ObjectKey("", "configmaps", "d", act.name))
        if not act.revision or event is None:
            return ""
        return str(event.revision if act.revision == "seen" else event.revision - 1)

    def look(self, runtime: HistoryRuntime) -> None:
        objects = runtime.views.objects
        held = {
            event.key.name: (event.revision, event.object["data"]["k"])
            for event in objects.events("", "configmaps")
        }
        self.story.seen.append(Seen(objects.revision, self.stored, held))

    async def watch(self, runtime: HistoryRuntime) -> None:
        revisions: list[int] = []
        self.story.watched.append(revisions)
        while True:
            after = Revision(revisions[-1] if revisions else 0)
            with runtime.subscribe(after=after) as followed, suppress(LogUnavailable):
                async for events in followed:
                    for event in events:
                        revisions.append(event.revision)
                        self.story.watched_stored.append((event.revision, self.stored))


async def leave(scope: anyio.CancelScope, patience: int) -> None:
    for _ in range(patience):
        await anyio.lowlevel.checkpoint()
    scope.cancel()


def plan_of(number: int, commands: Sequence[Command]) -> Plan:
    decision = Decision(
        controller="claims",
        resource="configmaps",
        namespace="d",
        name="x",
        outcome="Done",
        inputs={},
        summary={},
    )
    return Plan(
        controller="claims",
        key="x",
        commands=tuple(commands),
        decision=decision,
        cause=number,
    )


@asynccontextmanager
async def running(world: World, log: FaultyLog, seed: int, writer: WriterBounds) -> AsyncIterator:
    ports = RuntimePorts(
        log=log, wake_up=world.wake_up, clock=VirtualClock(START), uids=DerivedUids(seed)
    )
    info = await log.find_history("h")
    assert info is not None
    limits = RuntimeBounds(writer=writer, poll_seconds=3600.0)
    runtime = HistoryRuntime(info=info, ports=ports, rules=rules(), bounds=limits)
    async with runtime.running(), anyio.create_task_group() as tasks:
        tasks.start_soon(world.watch, runtime)
        yield runtime
        tasks.cancel_scope.cancel()


async def tell(
    told: Sequence[Sequence[Call]], logs: Sequence[tuple[list, list, list]], writer: WriterBounds
) -> tuple[Story, list[Event]]:
    """Runs the callers, each on one of the writers in turn; returns the observations."""
    store = MemoryStore()
    world = World(store, MemoryLeases(store, VirtualClock(START)))
    plain = FaultyLog(store, world.wake_up.grown)
    await plain.create_history("h", seed=7, settings={}, created=START)
    async with running(world, plain, 3, WriterBounds()) as runtime:
        await runtime.submit_all([namespace("d"), quota()], actor=Actor(user="admin"))
    world.story = Story()
    async with AsyncExitStack() as stack:
        faulty = [FaultyLog(store, world.wake_up.grown) for _ in logs]
        runtimes: list[HistoryRuntime] = []
        for number, log in enumerate(faulty):
            runtimes.append(await stack.enter_async_context(running(world, log, number, writer)))
        for log, turns_of in zip(faulty, logs, strict=True):
            log.plan(*turns_of)
        async with anyio.create_task_group() as tasks:

            async def be(number: int, mine: Sequence[Call]) -> None:
                runtime = runtimes[number % len(runtimes)]
                for turn, call in enumerate(mine):
                    await world.call(runtime, 1_000 * (number + 1) + turn, call, tasks)

            for number, mine in enumerate(told):
                tasks.start_soon(be, number, mine)
        for log in faulty:
            await log.finish()
    return world.story, list(store.history(world.history).events)


def quota() -> CreateObject:
    tree = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "q", "namespace": "d"},
        "spec": {"hard": {"count/configmaps": str(QUOTA)}},
    }
    return CreateObject(key=ObjectKey("", "resourcequotas", "d", "q"), version="v1", tree=tree)


@settings(
    max_examples=draws.examples(200), deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
@given(
    told=callers,
    logs=st.lists(st.tuples(turns, lost_turns, lost_turns), min_size=1, max_size=2),
    writer=bounds,
)
def test_what_callers_hear_is_a_story_of_the_stored_log(told, logs, writer) -> None:
    story, events = anyio.run(tell, told, logs, writer)
    judge(story, events)
