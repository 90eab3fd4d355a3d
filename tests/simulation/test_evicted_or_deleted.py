"""Pods that one run evicts and the other one deletes: which of two changes is the root."""

import pytest

from app.analysis.diff.compare import compare
from app.analysis.diff.sides import Side
from app.domain.controllers.registry import ControllerOptions
from app.service import diffing
from tests.cluster import Cluster

RULE = "devicetaintrules.resource.k8s.io/rule"
POD = "pods/default/web"


def side(name: str, *, is_deleted: bool, is_tainted: bool) -> Side:
    """A pod that holds a device; somebody deletes it, then a rule taints the device."""
    cluster = Cluster()
    cluster.node()
    cluster.device_class()
    cluster.slice()
    cluster.template()
    cluster.pod("web", template="gpu")
    cluster.settle()
    cluster.wait(10)
    if is_deleted:
        cluster.delete("pods", "web", grace_seconds=30)
    cluster.settle()
    if is_tainted:
        cluster.rule()
    cluster.settle()
    cluster.wait(100)
    events = cluster.line.events
    return Side(
        name=name,
        profile=cluster.profile,
        options=ControllerOptions(),
        events=events,
        revision=events[-1].revision,
        until=events[-1].stamp.time,
    )


@pytest.mark.parametrize(
    ("deleted", "tainted", "root"),
    [("a", "ab", POD), ("a", "b", RULE), ("", "b", RULE), ("ab", "b", "")],
)
async def test_root_of_an_eviction(deleted: str, tainted: str, root: str) -> None:
    sides = [side(name, is_deleted=name in deleted, is_tainted=name in tainted) for name in "ab"]
    report = await diffing.drive(compare(*sides))
    roots = {each.pair.name: each.root.name for each in report.differences}
    assert roots == ({"default/web": root} if root else {})
