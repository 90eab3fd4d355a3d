"""Verification of decisions whose writes were refused again and again."""

from tests.cluster import Cluster
from tests.unit.review.clusters import binding, policy, rule
from tests.unit.service.test_replaying import verify_events


async def test_attempts_that_policies_refuse_come_out_again() -> None:
    cluster = Cluster()
    cluster.node()
    cluster.slice(devices=1)
    cluster.device_class("gpu")
    cluster.template(class_name="gpu")
    for tree in (policy("false", rules=[rule("pods/binding")]), binding()):
        cluster.create(
            tree["apiVersion"], tree["kind"], tree["metadata"]["name"], spec=tree["spec"]
        )
    cluster.pod("p", template="gpu")
    cluster.wait(600)
    assert any("denied request" in text for _, text in cluster.line.refusals)
    found = await verify_events(cluster.line.events)
    assert found.decisions.differences == ()
    assert any("Unchanged" in str(event.object.get("outcome")) for event in cluster.line.events)
