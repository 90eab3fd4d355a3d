"""Pods that waited at the moment of a fork, and of which the order decides who gets a device."""

from collections.abc import Callable

import pytest

from app.analysis.diff import rivals
from app.analysis.diff.sides import DiffBounds, Side
from app.domain.controllers.registry import ControllerOptions
from app.domain.log import EventType
from app.domain.objects.profile import Profile
from app.service import diffing
from tests.cluster import Cluster

Act = Callable[[Cluster], object]


def nothing(_: Cluster) -> None:
    return None


def second(claim: str = "gpu") -> Act:
    return lambda cluster: cluster.pod("second", template=claim)


def less_urgent(cluster: Cluster) -> None:
    cluster.create("scheduling.k8s.io/v1", "PriorityClass", "low", value=-1)
    cluster.pod("second", template="gpu", priorityClassName="low")


def another_device(cluster: Cluster) -> None:
    cluster.slice("n2")
    cluster.node("n2")


@pytest.mark.parametrize(
    ("make", "act", "placed"),
    [
        pytest.param(second(), nothing, {"first": ["second"]}, id="one device for two"),
        pytest.param(second(claim="two"), nothing, {}, id="one that asks for more devices"),
        pytest.param(less_urgent, nothing, {}, id="one of a lower priority"),
        pytest.param(nothing, second(), {}, id="one that comes after the moment"),
        pytest.param(second(), lambda each: each.kill("second"), {}, id="one that is gone by then"),
        pytest.param(second(), another_device, {}, id="room for both"),
    ],
)
async def test_order_of_attempts_is_doubted_where_another_one_had_placed_the_rival(
    make: Act, act: Act, placed: dict[str, list[str]]
) -> None:
    cluster = Cluster()
    cluster.device_class()
    cluster.template()
    cluster.template("two", count=2)
    cluster.node()
    cluster.slice(devices=1)
    cluster.pod("holder", template="gpu")
    cluster.settle()
    cluster.pod("first", template="gpu")
    make(cluster)
    cluster.settle()
    events = cluster.line.events
    common = events[-1].revision
    last = {event.key: event for event in events if event.is_about_object}
    act(cluster)
    cluster.finish("holder")
    cluster.wait(400)
    side = Side(
        name="fork",
        profile=Profile(),
        options=ControllerOptions(),
        start=[each for each in last.values() if each.type is not EventType.OBJECT_DELETED],
        common=common,
        events=cluster.line.events[common:],
        revision=cluster.line.head.revision,
    )
    found = await diffing.drive(rivals.contests(side, DiffBounds()))
    assert {each.pod.name: [key.name for key in each.rivals] for each in found} == placed
    assert all(each.placed.node == "n1" for each in found)
