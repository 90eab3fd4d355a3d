"""Pods that two recordings of one cluster tried in another order, which alone tells them apart."""

import pytest

from app.analysis.diff import compare
from app.analysis.diff.report import DiffReport
from app.analysis.diff.sides import Side
from app.domain.controllers.registry import ControllerOptions
from app.domain.log import EventType
from app.domain.objects.profile import Profile
from app.service import diffing
from tests.cluster import Cluster


def recording(first: str, second: str, *, is_decided_elsewhere: bool = True) -> Side:
    """Two pods for two devices; the one that is made first gets the first device."""
    cluster = Cluster()
    cluster.device_class()
    cluster.template()
    cluster.node()
    cluster.slice()
    cluster.settle()
    for name in (first, second):
        cluster.pod(name, template="gpu")
        cluster.settle()
    cluster.wait(10)
    events = cluster.line.events
    kept = [each for each in events if each.type is not EventType.DECISION_RECORDED]
    return Side(
        name=first,
        profile=Profile(),
        options=ControllerOptions(),
        events=kept if is_decided_elsewhere else events,
        revision=events[-1].revision,
        until=cluster.line.now,
        was_decided_elsewhere=is_decided_elsewhere,
    )


@pytest.mark.parametrize(
    ("sides", "roots"),
    [
        pytest.param(
            (recording("p", "q"), recording("q", "p")),
            {
                "the order of attempts: pod default/p was tried before pod default/q in A, "
                "and after it in B"
            },
            id="p first in A",
        ),
        pytest.param(
            (recording("q", "p"), recording("p", "q")),
            {
                "the order of attempts: pod default/q was tried before pod default/p in A, "
                "and after it in B"
            },
            id="q first in A",
        ),
        pytest.param((recording("p", "q"), recording("p", "q")), set(), id="one order"),
    ],
)
async def test_order_of_attempts_is_the_cause_where_it_differs(
    sides: tuple[Side, Side], roots: set[str]
) -> None:
    report = await diffing.drive(compare.compare(*sides))
    assert isinstance(report, DiffReport)
    assert {f"{each.root.name}: {each.root.text}" for each in report.differences} == roots
    assert report.unexplained == 0
