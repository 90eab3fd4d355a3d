"""Fuzzes forks in which recorded inputs continue: drawn worlds, drawn moments, laws as the judge.

A world is a cluster in virtual time: a small fleet with kubelets and workloads, one with mixed
hardware, or clients that write while controllers act. It is forked at a drawn revision, often amid
what happened at one instant. What the laws say of the fork:

- `unchanged`: the decisions are those of the parent, and every input fits.
- `stranger`: an object that nobody reads changes no decision.
- `undone`: a change that is taken back at the same moment moves and evicts no pod; the scheduler
  tries waiting pods because of both writes, which may be earlier than in the parent.
- `uncreated`: an object that is deleted where it was created is not there: no write about it is
  repeated, and each write from outside about it is listed as one that does not fit.

In each fork every request of a user after the moment is in its log, or listed as not fitting.
"""

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

import anyio

from app.adapters.clock import SystemClock
from app.adapters.memory import MemoryLog, MemoryStore, MemoryWakeUp
from app.adapters.uids import DerivedUids
from app.analysis.diff.report import DiffReport
from app.analysis.edits import Apply, DeleteEdit, Edit, PatchEdit
from app.bootstrap.control_planes import ForkPlanes
from app.bootstrap.rules import rules_of
from app.domain.controllers.quirks import ControllerQuirks
from app.domain.controllers.registry import NAMES
from app.domain.log import Actor, Event, EventType, HistoryInfo, Revision
from app.domain.log.event import GENESIS
from app.domain.values.timestamps import Instant
from app.ports import RuntimePorts
from app.service import diffing
from app.service.diffing import Comparison, ComparisonAspect, Ending
from app.service.forking import Forker, ForkRequest, MadeFork
from app.service.runtime import RuntimeBounds
from app.settings import Settings
from tests.cluster import USER, Cluster
from tests.simulation import fleet_acts, scripted
from tests.simulation.expected_differences import draw
from tests.simulation.fleet_world import FleetWorld
from tests.simulation.test_live_histories import Clients
from tests.simulation.world import OFF, World

ME = Actor(user="me")
ACTS = 14
SPREAD = 1_000
"""Microseconds by which a request of a busy instant may come later in a fork."""


@dataclass(frozen=True)
class Drawn:
    """A recorded world: its events, and the settings of its history."""

    name: str
    cluster: Cluster
    settings: dict[str, object]

    @property
    def events(self) -> Sequence[Event]:
        return self.cluster.line.events


@dataclass(frozen=True)
class Fork:
    """A fork, its parent's inputs in it, and its comparison with the parent."""

    made: MadeFork
    events: Sequence[Event]
    report: DiffReport


def _pause(chance: random.Random, cluster: Cluster) -> None:
    """Lets a time pass that is no whole number of anything: nothing is due when a user acts."""
    cluster.wait(chance.randrange(3_000, 400_000) / 1_000_000)


def _script(chance: random.Random) -> Drawn:
    script = draw(chance, parts=2, acts=ACTS)
    cluster = scripted.run(script)
    return _drawn("script", cluster, off=OFF, quirks=asdict(ControllerQuirks(c2=script.c2)))


def _world(chance: random.Random) -> Drawn:
    world = World(chance.randrange(1_000_000))
    for _ in range(ACTS * 2):
        world.step()
        _pause(chance, world.cluster)
    return _drawn("world", world.cluster.wait(30), off=OFF)


def _fleet(chance: random.Random) -> Drawn:
    world = FleetWorld(chance.randrange(1_000_000))
    for _ in range(ACTS):
        world.step(fleet_acts.ACTS)
        _pause(chance, world.cluster)
    cluster = world.cluster.wait(30)
    extra = {"bindDelayMillis": int(world.delay * 1_000)} if world.delay else {}
    return _drawn("fleet", cluster, off=frozenset({"node-ttl"}), **extra)


def _clients(chance: random.Random) -> Drawn:
    clients = Clients(chance.randrange(1_000_000))
    for _ in range(ACTS):
        clients.act()
    return _drawn("clients", clients.cluster.wait(30), off=frozenset({"node-ttl"}))


def _drawn(
    name: str,
    cluster: Cluster,
    *,
    off: frozenset[str],
    quirks: dict[str, bool] | None = None,
    **controllers: object,
) -> Drawn:
    settings = {
        **cluster.profile.settings(),
        "controllers": {"off": sorted(off & {*NAMES}), **controllers},
    }
    if quirks is not None:
        settings["quirks"] = quirks
    return Drawn(name, cluster, settings)


WORLDS = (_script, _world, _fleet, _clients)


async def forked(drawn: Drawn, at: int, edits: Sequence[Edit]) -> Fork:
    """The fork of a world at a revision, in which all later inputs continue."""
    log = MemoryLog(MemoryStore())
    info = await log.create_history(
        "base", seed=1, settings=drawn.settings, created=Instant(0), hash=GENESIS
    )
    await log.append(info.id, expected=await log.head(info.id), events=drawn.events)
    ports = RuntimePorts(log=log, wake_up=MemoryWakeUp(), clock=SystemClock(), uids=DerivedUids(7))
    forker = Forker(ports, rules_of, RuntimeBounds(poll_seconds=60.0), ForkPlanes(Settings()))
    until = (await log.head(info.id)).revision
    request = ForkRequest(edits=edits, until=until)
    made = await forker.fork(info, "fork", str(at), request, ME)
    events = await log.read(made.info.id, after=Revision(0), limit=1_000_000)
    fork = Fork(made, events, await _compared(log, info, made))
    _check_counted(drawn.events[at:], fork)
    return fork


def _check_counted(later: Sequence[Event], fork: Fork) -> None:
    """Each request of a user after the moment is in the log of the fork, or listed.

    Requests of one instant may come some microseconds later in a fork. One request can be two
    events: it is listed by one of them.
    """
    assert fork.made.continued is not None
    listed = {each.revision for each in fork.made.continued.unapplied}
    requests: dict[tuple[object, Instant], set[Revision]] = defaultdict(set)
    for event in later:
        if event.is_about_object and event.stamp.actor.user == USER.user:
            requests[event.key, event.stamp.time].add(event.revision)
    there: dict[object, list[Instant]] = defaultdict(list)
    for event in fork.events[fork.made.info.parent_revision :]:
        if event.is_about_object and event.stamp.actor.user == USER.user:
            there[event.key].append(event.stamp.time)
    lost = [
        (str(key), min(revisions))
        for (key, time), revisions in requests.items()
        if not revisions & listed and not any(time <= each <= time + SPREAD for each in there[key])
    ]
    assert lost == [], f"neither applied nor listed: {lost}"
    assert fork.made.continued.inputs >= len(requests)


async def _compared(log: MemoryLog, info: HistoryInfo, made: MadeFork) -> DiffReport:
    comparison = Comparison(by=ComparisonAspect.DECISIONS, schemas=rules_of(info).schemas)
    report = await diffing.compare_histories(
        log, Ending(history=info), Ending(history=made.info), comparison
    )
    assert isinstance(report, DiffReport)
    return report


def _check_same(fork: Fork) -> None:
    """No decision differs, and each input fits."""
    assert fork.report.is_same, fork.report.to_json()["differences"]
    assert fork.made.continued is not None
    unfit = [f"{each.revision} {each}" for each in fork.made.continued.unapplied]
    assert (unfit, fork.made.continued.unlike) == ([], ())


async def unchanged(drawn: Drawn, at: int, chance: random.Random) -> str:
    _check_same(await forked(drawn, at, ()))
    return "same"


STRANGERS: Sequence[dict[str, object]] = (
    {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "other"}},
    {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": "nobody"},
        "spec": {"selectors": [{"cel": {"expression": "false"}}]},
    },
    {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "nobody"},
        "value": 5,
    },
    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "nobody"}},
)


async def stranger(drawn: Drawn, at: int, chance: random.Random) -> str:
    tree = dict(chance.choice(STRANGERS))
    tree["metadata"] = {**tree["metadata"]}
    if tree["kind"] == "ConfigMap":
        tree["metadata"]["namespace"] = "default"
    _check_same(await forked(drawn, at, (Apply(tree=tree),)))
    return str(tree["kind"])


async def undone(drawn: Drawn, at: int, chance: random.Random) -> str:
    there = _objects(drawn.events[:at])
    nodes = [key for key in there if key[1] == "nodes"]
    classes = [key for key in there if key[1] == "deviceclasses"]
    if not nodes or (classes and chance.random() < 0.5):
        if not classes:
            return "nothing to change"
        key = chance.choice(classes)
        before = there[key].object["spec"].get("selectors")
        other = [{"cel": {"expression": "false"}}]
        bodies = [{"spec": {"selectors": each}} for each in (other, before)]
        name = f"deviceclass/{key.name}"
    else:
        key = chance.choice(nodes)
        before = there[key].object.get("spec", {}).get("unschedulable")
        bodies = [{"spec": {"unschedulable": each}} for each in (not before, before)]
        name = f"node/{key.name}"
    edits = [PatchEdit(name=name, body=body) for body in bodies]
    fork = await forked(drawn, at, edits)
    # Both writes have the scheduler try waiting pods, which may be earlier than in the recording.
    text = f"{key.resource}.{key.group}/{key.name}" if key.group else f"{key.resource}/{key.name}"
    others = [each for each in fork.report.differences if each.root.name != text]
    assert not others, [(each.pair.name, each.root.name) for each in others]
    moved = {each.value for one in fork.report.differences for each in one.classes}
    assert moved <= {"said otherwise", "earlier", "later"}, moved
    return key.resource


UNCREATED = {"pods": "pod", "devicetaintrules": "devicetaintrule"}


async def uncreated(drawn: Drawn, at: int, chance: random.Random) -> str:
    made = [
        event
        for event in drawn.events
        if event.type is EventType.OBJECT_CREATED
        and event.key.resource in UNCREATED
        and event.stamp.actor.user == USER.user
        and event.revision < len(drawn.events)
    ]
    if not made:
        return "nothing was made"
    event = chance.choice(made)
    kind, space = UNCREATED[event.key.resource], event.key.namespace
    name = "/".join(filter(None, (kind, space, event.key.name)))
    fork = await forked(drawn, event.revision, (DeleteEdit(name=name),))
    assert fork.made.continued is not None
    later = [each for each in fork.events[event.revision :] if each.uid == event.uid]
    gone = [each for each in later if each.type is EventType.OBJECT_DELETED]
    assert len(gone) == 1, "it is deleted once"
    assert [each.revision for each in later if each.revision > gone[0].revision] == []
    listed = {each.revision for each in fork.made.continued.unapplied}
    # A request to delete may change the object and then delete it, in two writes.
    requests: dict[tuple[Instant, str], set[Revision]] = defaultdict(set)
    for each in drawn.events[event.revision :]:
        if each.uid == event.uid and each.is_about_object and each.stamp.actor.user == USER.user:
            requests[each.stamp.time, each.stamp.verb].add(each.revision)
    missed = [min(revisions) for revisions in requests.values() if not revisions & listed]
    assert missed == [], f"not listed: {missed}"
    return event.key.resource


def _last_start(events: Sequence[Event]) -> int:
    """The revision at which the last write begins, which may be several events."""
    last = events[-1].stamp
    whole = (last.time, last.actor.user, last.observed)
    for event in reversed(events):
        if (event.stamp.time, event.stamp.actor.user, event.stamp.observed) != whole:
            return event.revision
    return 1


def _objects(events: Sequence[Event]) -> dict[object, Event]:
    there = {}
    for event in events:
        if event.type is EventType.OBJECT_DELETED:
            there.pop(event.key, None)
        elif event.is_about_object:
            there[event.key] = event
    return there


Law = Callable[[Drawn, int, random.Random], object]
LAWS = (unchanged, unchanged, stranger, undone, uncreated)


def judge(seed: int, number: int) -> str:
    """Draws a world, a moment and a law, and judges; names what was judged."""
    chance = random.Random(f"forks {seed} {number}")
    drawn = WORLDS[number % len(WORLDS)](chance)
    law = LAWS[number // len(WORLDS) % len(LAWS)]
    at = chance.randrange(1, _last_start(drawn.events))
    words = f"{seed} {number} {drawn.name} at {at} of {len(drawn.events)}: {law.__name__}"
    try:
        said = anyio.run(law, drawn, at, chance)
    except AssertionError as problem:
        raise AssertionError(f"{words}: {problem}") from problem
    return f"{words}, {said}"


def run(*, cases: int, seed: int) -> Counter[str]:
    """Judges so many drawn forks; prints a line for each, and raises at the end what is wrong."""
    outcomes = Counter[str]()
    wrong = []
    for number in range(cases):
        try:
            said = judge(seed, number)
        except AssertionError as problem:
            wrong.append(str(problem))
            said = f"WRONG {problem}"
        outcomes[said.rpartition(": ")[2]] += 1
        print(said[:600], flush=True)
    assert not wrong, f"{len(wrong)} of {cases} are wrong"
    return outcomes
