"""A message that only a fork has at an instant at which its source says or does something else."""

from app.analysis.diff import compare
from app.analysis.diff.sides import Side
from app.domain.controllers.registry import ControllerOptions
from app.domain.controllers.scheduling.reconciler import SchedulingReconciler
from app.domain.log import Revision
from app.domain.objects.profile import Profile
from app.service import diffing
from tests.cluster import Cluster


def side(name: str, cluster: Cluster, common: int) -> Side:
    """The events of a cluster after those that both sides have."""
    last = {each.key: each for each in cluster.line.events[:common] if each.is_about_object}
    return Side(
        name=name,
        profile=Profile(),
        options=ControllerOptions(),
        start=list(last.values()),
        common=Revision(common),
        events=cluster.line.events[common:],
        revision=cluster.line.head.revision,
        until=cluster.line.now,
    )


async def test_message_that_counts_a_node_less_has_its_deletion_as_the_cause() -> None:
    sides = []
    for name in ("parent", "fork"):
        cluster = Cluster()
        cluster.node("n1")
        cluster.node("n2")
        cluster.template()
        cluster.pod("p", template="gpu")
        cluster.settle()
        common = cluster.line.head.revision
        if name == "fork":
            cluster.delete("nodes", "n2")
            for each in cluster.controllers:
                if isinstance(each, SchedulingReconciler):
                    each.queue.try_now(("default", "p"), cluster.line.now)
            cluster.settle()
        cluster.wait(60)
        sides.append(side(name, cluster, common))
    report = await diffing.drive(compare.compare(sides[0], sides[1]))
    (only,) = report.differences
    assert (only.pair.name, only.root.name) == ("default/p", "nodes/n2")
    assert report.unexplained == 0


async def test_pod_whose_binding_failed_is_asked_about_its_choice() -> None:
    """It never came to a node on either side; one side had its device in promise for minutes."""
    sides = []
    device = {"bindingConditions": ["ready"], "bindingFailureConditions": ["bad"], "name": "x"}
    for name in ("parent", "fork"):
        cluster = Cluster()
        cluster.node("n1")
        cluster.slice("n1", [device], name="s1")
        cluster.device_class()
        cluster.template()
        common = cluster.settle().line.head.revision
        if name == "fork":
            cluster.delete("resourceslices", "s1")
        cluster.pod("p", template="gpu")
        cluster.settle()
        cluster.wait(700)
        sides.append(side(name, cluster, common))
    report = await diffing.drive(compare.compare(sides[0], sides[1]))
    (only,) = report.differences
    assert only.is_about_words
    assert only.root.name == "resourceslices.resource.k8s.io/s1"
    assert report.unexplained == 0
