"""The kernel of controllers with one queue, by a controller that labels ConfigMaps."""

from collections.abc import Iterator

import pytest

from app.analysis.views import LiveViews
from app.domain.controllers.keyed import KeyedController, Work
from app.domain.controllers.plan import DECISIONS, Decision, Plan, Reads, Views
from app.domain.controllers.work_queue import RETRY_FIRST_MICROS
from app.domain.log import DECISION, Actor, Draft, Event, EventType, ObjectKey, Revision, Stamp
from app.domain.log.chain import seal
from app.domain.objects.profile import Profile
from app.domain.objects.write.commands import DeleteObject
from app.domain.values.timestamps import Instant
from tests.cluster import T0

MAPS = ("", "configmaps")
NOW = T0
LATER = Instant(T0 + 1_000)


class Labeller(KeyedController[tuple[str], Views]):
    """Has work for every ConfigMap that is not called `quiet`; `slow` has it later."""

    name = "labeller"
    reads: Reads = frozenset({MAPS, DECISIONS})

    def __init__(self, batch_max: int = 1) -> None:
        super().__init__(batch_max=batch_max)
        self.looks: list[str] = []

    def keys_of(self, event: Event, views: Views) -> Iterator[tuple[str]]:
        yield (event.key.name,)

    def reconcile(self, views: Views, key: tuple[str], now: Instant) -> Work | None:
        (name,) = key
        self.looks.append(name)
        if name == "quiet":
            return None
        if name == "slow" and now < LATER:
            return Work(due=LATER)
        command = DeleteObject(key=ObjectKey(*MAPS, "default", name))
        decision = Decision(
            controller=self.name,
            resource="configmaps",
            namespace="default",
            name=name,
            outcome="Labelled",
            inputs={"now": now},
            summary={},
        )
        return Work((command,), decision)

    def decided_key(self, decision: Event) -> tuple[str]:
        return (decision.key.name,)

    def has_more(self, plan: Plan) -> bool:
        return plan.key == "large"


class Looker(Labeller):
    """Ends a look without work like one with work."""

    counts_looks = True


class World:
    """Events one after the other, folded by views and the controller."""

    def __init__(self, controller: Labeller) -> None:
        self.views = LiveViews(Profile())
        self.controller = controller
        self.revision = 0

    def fold(self, type: EventType, key: ObjectKey, tree: dict, observed: int = 0) -> Event:
        self.revision += 1
        stamp = Stamp(
            time=T0, actor=Actor(user="a"), verb="create", observed=Revision(observed), cause=3
        )
        draft = Draft(type=type, key=key, uid=f"uid-{key.name}", tree=tree, stamp=stamp)
        event = seal(draft, Revision(self.revision), bytes(32))
        self.views.fold(event)
        self.controller.fold(event, self.views)
        return event

    def create(self, *names: str) -> None:
        for name in names:
            metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}"}
            tree = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
            self.fold(EventType.OBJECT_CREATED, ObjectKey(*MAPS, "default", name), tree)

    def decide(self, name: str, *, by: str = "labeller", observed: int, **body: object) -> Event:
        key = DECISION._replace(namespace="default", name=name)
        tree = {"controller": by, "name": name, "inputs": {"now": NOW}, **body}
        return self.fold(EventType.DECISION_RECORDED, key, tree, observed)

    def step(self, now: Instant = NOW) -> Plan | None:
        return self.controller.step(self.views, now)

    def must_step(self, now: Instant = NOW) -> Plan:
        plan = self.step(now)
        assert plan is not None
        return plan


def keys(plan: Plan) -> list[str]:
    return [part.key for part in plan.parts or (plan,)]


def test_each_key_gets_a_plan_that_says_what_provoked_it_and_what_was_seen():
    world = World(Labeller())
    world.create("a", "quiet", "b")
    first, second = world.must_step(), world.must_step()
    assert (first.key, first.cause, first.observed) == ("a", 1, 3)
    assert (second.key, second.cause, second.observed) == ("b", 3, 3)
    assert world.step() is None
    assert world.controller.looks == ["a", "quiet", "b"]


def test_several_keys_go_together_up_to_the_bound():
    world = World(Labeller(batch_max=2))
    world.create("a", "b", "c")
    assert keys(world.must_step()) == ["a", "b"]
    assert keys(world.must_step()) == ["c"]


def test_keys_of_a_refused_batch_are_tried_one_by_one_at_once():
    world = World(Labeller(batch_max=2))
    world.create("a", "b")
    plan = world.must_step()
    world.controller.settled(plan, "refused", NOW)
    for name in ("a", "b"):
        single = world.must_step()
        assert keys(single) == [name]
        assert single.cause == {"a": 1, "b": 2}[name]
        world.controller.settled(single, None, NOW)
    assert world.step() is None
    assert world.controller.due() is None


def test_refused_key_comes_back_after_a_growing_delay_until_it_is_carried_out():
    world = World(Labeller())
    world.create("a")
    now = NOW
    for factor in (1, 2, 4):
        world.controller.settled(world.must_step(now), "refused", now)
        due = world.controller.due()
        assert due == now + factor * RETRY_FIRST_MICROS
        assert world.step(Instant(due - 1)) is None
        now = due
    world.controller.settled(world.must_step(now), None, now)
    world.create("a")
    world.controller.settled(world.must_step(now), "refused", now)
    assert world.controller.due() == now + RETRY_FIRST_MICROS


def test_key_with_more_work_is_looked_at_again_and_names_what_was_seen_as_its_cause():
    world = World(Labeller())
    world.create("other", "large")
    for _ in range(2):
        plan = world.must_step()
        world.controller.settled(plan, None, NOW)
    again = world.must_step()
    assert (again.key, again.cause) == ("large", 2)


def test_work_that_is_due_later_keeps_its_cause():
    world = World(Labeller())
    world.create("a", "slow")
    assert keys(world.must_step()) == ["a"]
    assert world.step() is None
    assert world.controller.due() == LATER
    plan = world.must_step(LATER)
    assert (plan.key, plan.cause) == ("slow", 2)


@pytest.mark.parametrize(
    ("by", "observed", "left"),
    [("labeller", 2, []), ("labeller", 1, ["b"]), ("another", 2, ["b"])],
)
def test_own_decision_drops_what_it_has_dealt_with(by: str, observed: int, left: list[str]) -> None:
    world = World(Labeller())
    world.create("a", "b")
    world.must_step()
    world.decide("b", by=by, observed=observed)
    plan = world.step()
    assert ([] if plan is None else keys(plan)) == left


def test_recorded_decision_is_made_again_without_touching_the_queue():
    world = World(Labeller())
    world.create("a", "quiet")
    decision = world.decide("b", observed=1, cause=2, inputs={"now": 17})
    plan = world.controller.redecide(world.views, decision)
    assert plan is not None
    assert plan.decision is not None
    assert (plan.key, plan.cause, plan.decision.inputs) == ("b", 2, {"now": 17})
    nothing = world.decide("quiet", observed=1, cause=2)
    assert world.controller.redecide(world.views, nothing) is None
    assert keys(world.must_step()) == ["a"]


def test_look_without_work_is_a_step_of_controllers_that_count_looks():
    world = World(Looker())
    world.create("quiet", "a")
    plan = world.must_step()
    assert plan.key == "a"
    world.create("quiet")
    empty = world.must_step()
    assert empty.is_empty
    assert world.step() is None


def test_queue_of_a_controller_is_measured():
    world = World(Labeller())
    world.create("a", "b")
    [queue] = world.controller.queues
    assert (queue.adds, queue.depth) == (2, 2)
