"""Why a pod waits that has its devices already (controllers.md 3.8)."""

import pytest

from app.analysis.explain import waits
from app.domain.controllers.registry import ControllerOptions
from app.domain.controllers.resources import pod_key
from app.domain.controllers.scheduling.binding_cycle.delayed_binding import (
    FixedBindDelay,
)
from app.domain.values import timestamps
from tests.cluster import DRIVER, Cluster
from tests.unit.service.test_explaining import asking, views_up_to

PLACE = f"{DRIVER}/n1/d"


def waiting_cluster():
    cluster = Cluster()
    cluster.device_class()
    cluster.node()
    conditions = {"bindingConditions": ["ready"], "bindingFailureConditions": ["failed"]}
    cluster.slice(devices=[{"name": "d", **conditions}])
    cluster.claim()
    cluster.pod(claim="claim")
    return cluster.settle()


def say(cluster, kind, status, **more):
    condition = {"type": kind, "status": status, "reason": "", "message": "", **more}
    condition["lastTransitionTime"] = "2026-01-02T03:00:00Z"
    device = {"driver": DRIVER, "pool": "n1", "device": "d", "conditions": [condition]}
    cluster.patch(
        "resourceclaims", "claim", {"status": {"devices": [device]}}, subresource="status"
    )


def lines(reason):
    return [reason.text, *(line for child in reason.children for line in lines(child))]


async def why(cluster):
    async with asking(cluster) as ask:
        answer = await ask("pod", "pod")
    return answer.text, lines(answer.reason)


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ((), f"{PLACE}: the driver has not reported condition ready yet"),
        (("ready", "False"), f"{PLACE}: ready is False (Busy: soon)"),
        (("failed", "True"), f"{PLACE}: failed is True (Busy: soon), a failure"),
    ],
)
async def test_pod_whose_devices_are_made_ready_tells_what_they_lack(said, told):
    cluster = waiting_cluster()
    if said:
        say(cluster, *said, reason="Busy", message="soon")
    text, found = await why(cluster)
    assert text == "its devices are being made ready for n1"
    assert told in found
    assert "claim default/claim, looked at every 5 s until 2026-01-02T03:10:00Z" in found


async def test_pods_that_wait_for_the_same_condition_have_one_cause():
    """Names of devices, claims and nodes are left out: they differ from pod to pod."""
    cluster = waiting_cluster()
    views = views_up_to(cluster.line.events, len(cluster.line.events))
    pod = views.objects.get(pod_key("default", "pod"))
    now = timestamps.parse("2026-01-02T03:04:05Z")
    said = waits.shared_cause(views, pod, now, 600 * timestamps.SECOND)
    assert said == f"not true yet: binding condition ready of a device of driver {DRIVER}"


async def test_pod_whose_device_failed_tells_so_until_the_claim_is_given_back():
    cluster = waiting_cluster()
    say(cluster, "failed", "True", reason="Broken", message="no link")
    cluster.wait(5)
    text, found = await why(cluster)
    assert text == "it does not fit on node n1"
    assert any('reason=Broken, message="no link"' in line for line in found)


async def test_pod_whose_claims_are_written_is_only_to_be_bound():
    cluster = Cluster(options=ControllerOptions(bind_delay=FixedBindDelay(40_000)))
    cluster.device_class()
    cluster.node()
    cluster.slice()
    cluster.claim()
    cluster.pod(claim="claim")
    cluster.wait(0.02)
    text, _ = await why(cluster)
    assert text == "its claims are written, its binding to n1 is under way"


async def test_pod_whose_claim_is_deleted_in_its_back_off_is_not_said_to_be_tried_again():
    cluster = waiting_cluster()
    cluster.wait(1)
    cluster.delete("resourceclaims", "claim")
    say(cluster, "failed", "True", reason="Broken", message="no link")
    cluster.wait(5)
    assert cluster.decisions("scheduling")[-1] == ("pod", "Error")
    _, found = await why(cluster)
    assert "not tried again until its claims can be used, whatever else happens" in found
    assert not any(line.startswith("tried again") for line in found)
