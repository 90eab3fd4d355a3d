"""A message of a fork at its moment, where the recording has another one of the same instant."""

from app.analysis.diff import compare
from app.analysis.diff.sides import Side
from app.domain.controllers.registry import ControllerOptions
from app.domain.controllers.scheduling.reconciler import SchedulingReconciler
from app.domain.objects.profile import Profile
from app.service import diffing
from tests.cluster import Cluster


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
        last = {each.key: each for each in cluster.line.events if each.is_about_object}
        if name == "fork":
            cluster.delete("nodes", "n2")
            for each in cluster.controllers:
                if isinstance(each, SchedulingReconciler):
                    each.queue.try_now(("default", "p"), cluster.line.now)
            cluster.settle()
        cluster.wait(60)
        sides.append(
            Side(
                name=name,
                profile=Profile(),
                options=ControllerOptions(),
                start=list(last.values()),
                common=common,
                events=cluster.line.events[common:],
                revision=cluster.line.head.revision,
                until=cluster.line.now,
            )
        )
    report = await diffing.drive(compare.compare(sides[0], sides[1]))
    (only,) = report.differences
    assert (only.pair.name, only.root.name) == ("default/p", "nodes/n2")
    assert report.unexplained == 0
