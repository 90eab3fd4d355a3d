"""Decisions at the pace of a recording: they cannot all be made again, where one goes on."""

import msgspec
import pytest

from app.analysis.replay.variants import CacheOfClaims, Variant
from app.analysis.verify.compare import ComparisonCounts
from app.analysis.verify.redecide import PACED, DecisionChecker
from app.analysis.views import LiveViews
from app.domain.allocation import Features
from app.domain.controllers import reconcilers, registry
from app.domain.controllers.pacing import AttemptOutcome
from app.domain.controllers.registry import ControllerOptions
from app.domain.devices.cel_selectors import CelCompiler
from app.domain.log import Event, Revision
from app.domain.log.chain import canonical_json
from app.domain.objects.profile import Profile
from app.domain.values.timestamps import SECOND, Instant
from tests.cluster import Cluster


def cluster() -> Cluster:
    made = Cluster()
    made.node("n0")
    made.slice("n0")
    made.device_class("gpu")
    made.template("gpu")
    made.pod("first", template="gpu")
    return made.settle()


def marked(event: Event, **changed: str) -> Event:
    """The decision with the mark."""
    tree = msgspec.json.decode(event.body)
    tree["inputs"] = {**tree["inputs"], "paced": True}
    body = canonical_json({**tree, **changed})
    return msgspec.structs.replace(event, body=body, tree=None)


def altered(event: Event) -> Event:
    """The decision with another outcome, and with the mark."""
    return marked(event, outcome="Error")


def place_of(events: list[Event], controller: str) -> int:
    """Where the last decision of a controller stands."""
    return max(
        n
        for n, each in enumerate(events)
        if each.type == "DecisionRecorded" and each.object["controller"] == controller
    )


def checked(world: Cluster, events: list[Event], until: Revision) -> ComparisonCounts:
    """The decisions, made again where recorded inputs went on up to a revision."""
    views = LiveViews(world.profile)
    checker = DecisionChecker(world.fresh_controllers(), views, world.line.rules, paced_until=until)
    observers: dict[int, list[Event]] = {}
    for event in events:
        if event.type == "DecisionRecorded":
            observers.setdefault(event.stamp.observed, []).append(event)
    for event in events:
        checker.decide_again(observers.pop(views.revision, ()))
        checker.before(event)
        views.fold(event)
        checker.after(event)
    decisions, _ = checker.result(is_whole=True)
    return decisions


@pytest.mark.parametrize("is_within", [True, False])
def test_decision_is_paced_where_recorded_inputs_went_on_alone(is_within: bool) -> None:
    world = cluster()
    events = list(world.line.events)
    place = place_of(events, "scheduling")
    events[place] = altered(events[place])
    until = Revision(events[place].revision if is_within else events[place].revision - 1)
    decisions = checked(world, events, until)
    assert len(decisions.differences) == (0 if is_within else 1)
    assert (PACED in decisions.reasons) is is_within
    for each in decisions.differences:
        recorded = events[place].object
        pod = f"pods/{recorded['namespace']}/{recorded['name']}"
        assert (each.revision, each.subject) == (events[place].revision, f"scheduling {pod}")
        assert (each.path, each.recorded, each.objects) == ("inputs.paced", True, (pod,))
        assert each.recorded_tree == recorded
        assert each.again_tree["outcome"] != "Error"


@pytest.mark.parametrize("is_within", [True, False])
def test_decision_of_pod_gc_is_paced_where_recorded_inputs_went_on(is_within: bool) -> None:
    world = cluster()
    world.delete("nodes", "n0")
    world.wait(60)
    events = list(world.line.events)
    place = place_of(events, "pod-gc")
    events[place] = altered(events[place])
    until = Revision(events[place].revision if is_within else events[place].revision - 1)
    decisions = checked(world, events, until)
    assert len(decisions.differences) == (0 if is_within else 1)
    assert (PACED in decisions.reasons) is is_within


@pytest.mark.parametrize("is_wrong", [True, False])
def test_controller_without_a_pace_is_not_believed_to_have_had_one(is_wrong: bool) -> None:
    """One of before, whose mark says nothing, is right all the same when it comes out again."""
    world = cluster()
    expression = 'device.attributes["gpu.example.com"].missing == 1'
    world.create(
        "resource.k8s.io/v1alpha3",
        "ResourceSlicePatch",
        "worn",
        spec={
            "devices": {
                "filter": {"selectors": [{"cel": {"expression": expression}}]},
                "attributes": {"gpu.example.com/worn": {"bool": True}},
            }
        },
    )
    world.settle()
    events = list(world.line.events)
    place = place_of(events, "slice-patches")
    events[place] = altered(events[place]) if is_wrong else marked(events[place])
    decisions = checked(world, events, events[-1].revision)
    assert len(decisions.differences) == is_wrong
    assert PACED not in decisions.reasons


class _Pace:
    """As soon as it is asked."""

    claims_cache = CacheOfClaims(Variant())

    def not_before(self, queue: str, key: tuple[str, ...], now: Instant) -> Instant:
        return now

    def version_seen(self, pod: str, newest: str, now: Instant) -> str:
        return newest

    def put_off(self, pod: str, tried: AttemptOutcome, now: Instant) -> Instant | None:
        return None


def test_controllers_with_a_pace_are_those_that_take_one() -> None:
    pace, profile = _Pace(), Profile()
    options = ControllerOptions(pace=pace, event_ttl=SECOND)
    holders = {
        name
        for name in registry.NAMES
        if holds(
            reconcilers.controller(
                name, profile, Features(), CelCompiler(detailed_errors=True), options
            ),
            pace,
        )
    }
    assert holders == registry.PACED


def holds(root: object, wanted: object) -> bool:
    """Whether an object has another one among what it is made of."""
    seen: set[int] = set()
    left = [root]
    while left:
        each = left.pop()
        if each is wanted:
            return True
        if id(each) in seen or isinstance(each, str | int | type | None):
            continue
        seen.add(id(each))
        if isinstance(each, dict):
            left += each.values()
        elif isinstance(each, list | tuple | set | frozenset):
            left += each
        elif type(each).__module__.startswith("app."):
            slots = [name for kind in type(each).__mro__ for name in getattr(kind, "__slots__", ())]
            names = {*slots, *getattr(each, "__dict__", {})}
            left += [getattr(each, name) for name in names if hasattr(each, name)]
    return False
