"""What a run of a recording takes from it besides its inputs: starts, plans under way, and ties."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from app.analysis.replay.acts import Act
from app.analysis.replay.authors import CLAIMS, SCHEDULER
from app.analysis.replay.inputs import Input
from app.analysis.replay.readiness import Readiness
from app.analysis.verify.handovers import Handovers
from app.domain.controllers.plan import Plan
from app.domain.log import Actor, Event, EventType, ObjectKey, Revision, Stamp
from app.domain.log.chain import canonical_json
from app.domain.objects.write.commands import ImportObject
from app.domain.values.identifiers import Uid
from app.domain.values.timestamps import Instant
from app.service.replays.deciding.circumstances import (
    RecordedTies,
    Started,
    UnderWay,
    at_work,
    starts_of,
)
from app.service.replays.deciding.moved_pods import kubelet_here, with_host_here
from app.service.replays.deciding.paces import Paces

POD = ObjectKey("", "pods", "ns", "p")
CLAIM = ObjectKey("resource.k8s.io", "resourceclaims", "ns", "c")
NAMESPACE = ObjectKey("", "namespaces", "", "ns")
LEASE = ObjectKey("coordination.k8s.io", "leases", "kube-system", "leader")
Tree = dict[str, Any]
NONE: Any = None
"""The views, which the stand-ins of this module do not read."""


class Controller:
    """A controller that is due at 3, plans once at each look, and keeps what it saw."""

    reads, queues = frozenset({"pods"}), ("queue",)

    def __init__(self, *plans: Plan | None, name: str = "scheduling") -> None:
        self.name = name
        self.plans = list(plans)
        self.seen: list[str] = []

    def fold(self, event: Event, _: object) -> None:
        self.seen.append(event.key.name)

    def settled(self) -> None:
        self.seen.append("settled")

    def redecide(self) -> None:
        """Does nothing."""

    def step(self, _: object, now: Instant) -> Plan | None:
        self.seen.append(f"step at {now}")
        return self.plans.pop(0) if self.plans else None

    def due(self) -> Instant | None:
        return Instant(3)


class Pace:
    """The pace of a recording in which each plan of `names` took ten, and a step begins anew."""

    def __init__(self, *names: str, nodes: tuple[str, ...] = ()) -> None:
        self.names, self.nodes = names, list(nodes)
        self.steps = 0
        self.readiness = Readiness({})

    def begin_step(self) -> None:
        self.steps += 1

    def stored_at(self, name: str, now: Instant) -> Instant | None:
        return Instant(now + 10) if name in self.names else None

    def next_node(self, _: str) -> str:
        return self.nodes.pop(0) if self.nodes else ""


def event(key: ObjectKey, tree: Tree, *, at: int = 1, user: str = "u") -> Event:
    return Event(
        revision=Revision(at),
        type=EventType.OBJECT_UPDATED,
        key=key,
        uid=Uid(key.name),
        body=canonical_json(tree),
        stamp=Stamp(time=Instant(at), actor=Actor(user=user), verb="update"),
    )


def plan(name: str = "one") -> Plan:
    return Plan(controller="scheduling", key=name, commands=(cast(Any, "a write"),))


def test_plan_is_under_way_until_it_was_stored_and_its_controller_sees_nothing_meanwhile() -> None:
    controller, pace = Controller(plan("one"), plan("two")), Pace("scheduling")
    under_way = UnderWay(cast(Any, controller), cast(Any, pace))
    assert under_way.due() == 3
    under_way.fold(event(POD, {}), NONE)
    assert under_way.step(NONE, Instant(5)) is None
    assert (under_way.due(), controller.seen) == (15, ["p", "step at 5"])
    under_way.fold(event(CLAIM, {}), NONE)
    assert under_way.step(NONE, Instant(14)) is None
    assert controller.seen == ["p", "step at 5"]
    assert under_way.step(NONE, Instant(15)) == plan("one")
    assert (under_way.due(), controller.seen) == (3, ["p", "step at 5", "c"])
    assert under_way.step(NONE, Instant(15)) is None
    assert (under_way.due(), pace.steps) == (25, 2)
    assert under_way.step(NONE, Instant(25)) == plan("two")
    assert controller.seen == ["p", "step at 5", "c", "step at 15"]


@pytest.mark.parametrize("made", [None, Plan(controller="scheduling", key="empty"), plan()])
def test_plan_of_another_controller_or_without_writes_takes_no_time(made: Plan | None) -> None:
    names = ("claims",) if made and not made.is_empty else ("scheduling",)
    under_way = UnderWay(cast(Any, Controller(made)), cast(Any, Pace(*names)))
    assert under_way.step(NONE, Instant(5)) == made
    assert under_way.due() == 3


def test_controller_acts_from_its_recorded_start_on() -> None:
    controller = Controller(plan("one"), plan("two"))
    started = Started(cast(Any, controller), Instant(7))
    assert (started.step(NONE, Instant(6)), started.due()) == (None, 7)
    assert controller.seen == []
    assert (started.step(NONE, Instant(7)), started.due()) == (plan("one"), 3)
    assert started.step(NONE, Instant(1)) == plan("two"), "it does not end again"


def test_controller_of_a_run_has_a_pace_and_a_start_where_there_are_any() -> None:
    plain = cast(Any, Controller(plan()))
    assert at_work(plain, None, None) is plain
    late = at_work(plain, cast(Any, Pace("scheduling")), Instant(7))
    assert (late.step(NONE, Instant(6)), late.due()) == (None, 7)
    assert (late.step(NONE, Instant(8)), late.due()) == (None, 18)


STARTS = {"scheduling": Instant(4), "node-lifecycle": Instant(6)}


@pytest.mark.parametrize(
    ("begins", "is_up", "is_changed", "expected"),
    [
        (False, False, False, {"scheduling", "node-lifecycle"}),
        (False, False, True, {"scheduling", "node-lifecycle"}),
        (True, False, False, {"scheduling", "node-lifecycle"}),
        (True, True, False, {"node-lifecycle"}),
        (True, False, True, {"node-lifecycle"}),
    ],
)
def test_controllers_with_a_pace_wait_for_their_start_only_before_the_control_plane_is_up(
    begins: bool, is_up: bool, is_changed: bool, expected: set[str]
) -> None:
    recording = cast(Any, SimpleNamespace(starts=STARTS))
    beginning = cast(Any, SimpleNamespace(shows_work=is_up)) if begins else None
    starts = starts_of(recording, beginning, is_changed=is_changed)
    assert starts == {name: STARTS[name] for name in expected}


@pytest.mark.parametrize(
    ("paced", "best", "chosen"),
    [
        ((), ("n1", "n2"), "n2"),
        (("n1",), ("n1", "n2"), "n1"),
        (("n1",), ("n2",), ""),
        (("",), ("n1", "n2"), "n2"),
        ((), ("n1",), ""),
    ],
)
def test_tie_is_broken_by_the_node_of_the_recorded_attempt_or_the_last_node(
    paced: tuple[str, ...], best: tuple[str, ...], chosen: str
) -> None:
    ties = RecordedTies({"p": "n2"}, cast(Any, Pace(nodes=paced)))
    assert ties("p", best, best[0]) == chosen
    assert ties.taken == ({"p"} if chosen else set())
    assert RecordedTies({})("p", best, best[0]) == ""


@pytest.mark.parametrize(
    ("recorded", "chosen"),
    [
        pytest.param(("n1", "n1"), "", id="what the order gives"),
        pytest.param(("n1", "n2"), "n3", id="another node"),
    ],
)
def test_changed_world_chooses_among_equal_nodes_as_the_recorded_scheduler(
    recorded: tuple[str, str], chosen: str
) -> None:
    """Where that followed the order of the nodes, the change may put another one first."""
    pace = cast(Any, Pace(nodes=recorded))
    unchanged = RecordedTies({}, pace)
    for node in recorded:
        assert unchanged("p", ("n1", "n2"), "n1") == node
    changed = RecordedTies({"q": "n3"}, None, pace.readiness)
    assert changed("q", ("n0", "n3"), "n0") == chosen


def bound(node: str) -> Tree:
    return {"spec": {"nodeName": node} if node else {}}


def reserved(*uids: str) -> Tree:
    users = [{"resource": "pods", "name": uid, "uid": uid} for uid in uids]
    return {"status": {"reservedFor": users}}


@pytest.mark.parametrize(
    ("key", "before", "after", "user", "ended"),
    [
        pytest.param(POD, bound(""), bound("n"), SCHEDULER, {"p"}, id="bound"),
        pytest.param(POD, bound("n"), bound("n"), SCHEDULER, set(), id="bound before"),
        pytest.param(POD, bound(""), bound(""), SCHEDULER, set(), id="not bound"),
        pytest.param(POD, bound(""), bound("n"), "alice", set(), id="bound by another"),
        pytest.param(CLAIM, reserved("a", "b"), reserved("b"), SCHEDULER, {"a"}, id="given back"),
        pytest.param(CLAIM, reserved("b"), reserved("a", "b"), SCHEDULER, set(), id="reserved"),
        pytest.param(CLAIM, reserved("a"), reserved(), "alice", set(), id="by another"),
        pytest.param(NAMESPACE, {}, bound("n"), SCHEDULER, set(), id="no pod"),
    ],
)
def test_wait_of_a_pod_ends_when_the_scheduler_binds_it_or_gives_its_claim_back(
    key: ObjectKey, before: Tree, after: Tree, user: str, ended: set[str]
) -> None:
    act = Act(event=event(key, after), before=before, known=Instant(8), user=user, is_guessed=False)
    recording = timed(acts=[act])
    timers = Paces(recording, {SCHEDULER: ["scheduling"]}).timers
    assert timers.waits_ended == {uid: [Instant(8)] for uid in ended}
    assert timers.marked == {}


def timed(inputs: Sequence[Input] = (), acts: Sequence[Act] = (), removed: Any = None) -> Any:
    """What timers read of a recording without Leases."""
    overuse = SimpleNamespace(handovers=Handovers())
    return SimpleNamespace(
        inputs=inputs, acts=acts, refusals=[], removed=removed or {}, overuse=overuse, skew=0
    )


@pytest.mark.parametrize(
    ("writer", "holder"),
    [
        (SCHEDULER, SCHEDULER),
        (CLAIMS, "system:kube-controller-manager"),
    ],
)
def test_process_is_there_as_long_as_a_lease_of_its_user_shows(writer: str, holder: str) -> None:
    """The controllers of a manager have users of their own, and the manager renews its Lease."""
    tree = {"spec": {"holderIdentity": "host_1f0e7a52-8f4e-4c57-9d0e-3a6f1f0c9b11"}}
    act = Act(event=event(POD, {}), before=None, known=Instant(8), user=writer, is_guessed=False)
    recording = timed(acts=[act])
    for at in (10, 40):
        renewed = event(LEASE, tree, at=at, user=holder)
        recording.overuse.handovers.note_lease(renewed, Instant(at))
    process = Paces(recording, {writer: ["its controller"]}).by_user[writer]
    assert process.is_led(Instant(20), Instant(30))
    assert not process.is_led(Instant(41), Instant(50))


def test_namespace_is_marked_by_the_first_write_that_shows_it() -> None:
    trees: tuple[Tree, ...] = (
        {},
        {"metadata": {"deletionTimestamp": "t"}},
        {"metadata": {"deletionTimestamp": "t"}},
    )
    inputs = [
        Input(event=event(key, tree, at=at), before=None, time=Instant(at))
        for key in (NAMESPACE, POD)
        for at, tree in enumerate(trees, 10)
    ]
    removed = {event(NAMESPACE, {}).uid: Instant(14), event(POD, {}).uid: Instant(15)}
    recording = timed(inputs=inputs, removed=removed)
    assert Paces(recording, {}).timers.marked == {"ns": Instant(11)}
    recording.skew = 3
    # The server that dates the acts of the controller may be behind.
    timers = Paces(recording, {}).timers
    assert timers.marked == {"ns": Instant(8)}
    assert timers.ended == {"ns": Instant(14)}


KUBELET = "system:node:n1"
NODE = {"status": {"addresses": [{"type": "InternalIP", "address": "10.0.0.2"}]}}


@pytest.mark.parametrize(
    ("user", "ours", "author"),
    [
        pytest.param(KUBELET, bound("n2"), "system:node:n2", id="it moved"),
        pytest.param(KUBELET, bound("n1"), KUBELET, id="it did not"),
        pytest.param(KUBELET, bound(""), KUBELET, id="it waits here"),
        pytest.param(KUBELET, None, KUBELET, id="it is gone here"),
        pytest.param("alice", bound("n2"), "alice", id="no kubelet wrote"),
        pytest.param("system:node:n3", bound("n2"), "system:node:n3", id="another's kubelet"),
    ],
)
def test_write_of_a_kubelet_is_by_that_of_the_node_here(
    user: str, ours: Tree | None, author: str
) -> None:
    written = event(POD, bound("n1"), user=user)
    actor = Actor(user=user, groups=("system:nodes",), agent="kubelet/v1.36")
    written.stamp = msgspec.structs.replace(written.stamp, actor=actor)
    assert kubelet_here(written, ours) == msgspec.structs.replace(actor, user=author)


@pytest.mark.parametrize(
    ("node", "status", "expected"),
    [
        pytest.param(
            "n2",
            {"phase": "Running", "hostIP": "10.0.0.1", "hostIPs": [{"ip": "10.0.0.1"}]},
            {"phase": "Running", "hostIP": "10.0.0.2", "hostIPs": [{"ip": "10.0.0.2"}]},
            id="it moved",
        ),
        pytest.param("n2", {"hostIP": "10.0.0.1"}, {"hostIP": "10.0.0.2"}, id="one address"),
        pytest.param("n1", {"hostIP": "10.0.0.1"}, {"hostIP": "10.0.0.1"}, id="it did not"),
        pytest.param("n2", {"phase": "Pending"}, {"phase": "Pending"}, id="no address yet"),
    ],
)
def test_status_of_a_pod_has_the_address_of_the_node_here(
    node: str, status: Tree, expected: Tree
) -> None:
    objects = {POD: bound(node), ObjectKey("", "nodes", "", "n2"): NODE}
    tree = {**bound("n1"), "status": status}
    command = ImportObject(key=POD, tree=tree, uid=Uid("p"), operation="MODIFIED")
    moved = with_host_here(event(POD, tree), command, cast(Any, objects))
    assert isinstance(moved, ImportObject)
    assert moved.tree["status"] == expected
