"""A timeline asks its controllers again after a write, and when time has passed; not else."""

from app.adapters.uids import DerivedUids
from app.analysis.replay.beginning import Beginning
from app.domain.controllers.plan import MergingViews, Plan
from app.domain.log import Event, Head, ObjectKey
from app.domain.objects.write.commands import CreateObject, PatchObject, PatchType
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import Instant
from app.service.replays.reconciling import ReplayTimeline
from tests.unit.service.builders import ALICE, namespace, rules


class Asked:
    """A controller without work. `at` has the instants at which it was asked for some."""

    name = "asked"
    reads = None
    queues = ()

    def __init__(self, *dues: int) -> None:
        self.at: list[int] = []
        self._dues = dues

    def step(self, views: MergingViews, now: Instant) -> Plan | None:
        self.at.append(now)
        return None

    def due(self) -> Instant | None:
        return next((Instant(due) for due in self._dues if not self.at or due > self.at[-1]), None)

    def fold(self, event: Event, views: MergingViews) -> None:
        pass

    def settled(self, plan: Plan, problem: str | None, now: Instant) -> None:
        raise AssertionError("it has no work")

    def redecide(self, views: MergingViews, decision: Event) -> Plan | None:
        return None


def node(name: str) -> JsonObject:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}


def timeline(controller: Asked) -> ReplayTimeline:
    return ReplayTimeline(rules=rules(), uids=DerivedUids(1), controllers=(controller,))


def test_controllers_are_asked_once_at_each_instant() -> None:
    controller = Asked(5, 7)
    line = timeline(controller)
    for until in (0, 5, 5, 6, 9, 9):
        line.advance(Instant(until))
    assert controller.at == [0, 5, 6, 7, 9]


def test_controllers_are_asked_again_after_a_write_and_when_they_are_replaced() -> None:
    controller = Asked()
    line = timeline(controller)
    line.advance(Instant(3))
    line.submit(namespace("a"), actor=ALICE)
    line.advance(Instant(3))
    assert controller.at == [0, 3, 3]
    other = Asked()
    line.controllers = (other,)
    line.advance(Instant(3))
    assert other.at == [3]


def test_controllers_are_asked_whenever_the_caller_wants() -> None:
    """A caller may have put something into their queues."""
    controller = Asked()
    line = timeline(controller)
    line.settle()
    line.settle()
    assert controller.at == [0, 0]


class Maker(Asked):
    """A controller with one write to do."""

    def step(self, views: MergingViews, now: Instant) -> Plan | None:
        self.at.append(now)
        if len(self.at) > 1:
            return None
        return Plan(controller="asked", key="", commands=(namespace("a"),))

    def settled(self, plan: Plan, problem: str | None, now: Instant) -> None:
        assert problem is None


def test_a_write_has_only_its_readers_asked_again() -> None:
    reader, other, maker = Asked(), Asked(), Maker()
    other.reads, maker.reads = frozenset({("", "pods")}), frozenset({("", "pods")})
    line = ReplayTimeline(
        rules=rules(), uids=DerivedUids(1), controllers=(reader, other, maker, last := Asked())
    )
    line.settle()
    assert (reader.at, other.at, maker.at, last.at) == ([0, 0], [0], [0, 0], [0])


class Shown(Asked):
    """A controller that keeps the names of the nodes that it was shown."""

    def __init__(self) -> None:
        super().__init__()
        self.nodes: list[str] = []

    def fold(self, event: Event, views: MergingViews) -> None:
        self.nodes += [event.key.name] if event.key.resource == "nodes" else []


def test_nodes_of_a_beginning_come_in_the_order_in_which_they_were_made() -> None:
    """The scheduler of the recording went on: a later change of a node moves it nowhere."""
    line = timeline(Asked())
    keys = [ObjectKey("", "nodes", "", name) for name in ("b", "c", "a")]
    for key in keys:
        line.submit(CreateObject(key=key, version="v1", tree=node(key.name)), actor=ALICE)
    labels = {"metadata": {"labels": {"k": "v"}}}
    merge = PatchType.MERGE
    line.submit(PatchObject(key=keys[0], version="v1", type=merge, body=labels), actor=ALICE)
    objects = line.views.objects
    head = Head(revision=line.head.revision, time=line.now)
    events = objects.left_over(head.revision)
    assert [each.key.name for each in events] == ["c", "a", "b"]
    shown = Shown()
    other = timeline(shown)
    other.begin(Beginning(head=head, after=head.revision, state=objects.dump(), objects=events))
    assert shown.nodes == ["b", "c", "a"]
