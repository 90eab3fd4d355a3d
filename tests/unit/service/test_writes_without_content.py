"""Writes of which an audit log has no body: who wrote an object is known, and what is not."""

import json

import pytest

from app.analysis.chronicle import Chronicle
from app.analysis.findings import taints
from app.analysis.views import LiveViews
from app.domain.errors import NotFound
from app.domain.log import Revision
from app.domain.objects.profile import Profile
from tests.unit.analysis.explain.test_verdicts import recorded, why

EVICTOR = "system:serviceaccount:kube-system:device-taint-eviction-controller"
KUBELET = "system:node:n1"
GONE = (
    ("jane", "create", "devicetaintrules", "all"),
    (EVICTOR, "patch", "devicetaintrules", "all"),
    (EVICTOR, "patch", "pods", "p"),
    (EVICTOR, "delete", "pods", "p"),
    (KUBELET, "delete", "pods", "p"),
)


def lines(*writes):
    """An audit log at level Metadata; the writes are a second apart."""
    made = []
    for number, (user, verb, resource, name) in enumerate(writes):
        where = {"resource": resource, "name": name, "apiVersion": "v1"}
        if resource == "pods":
            where["namespace"] = "default"
        else:
            where |= {"apiGroup": "resource.k8s.io", "apiVersion": "v1beta2"}
        time = f"2026-01-02T03:04:{number:02}.000000Z"
        made.append({
            "apiVersion": "audit.k8s.io/v1", "kind": "Event", "level": "Metadata",
            "auditID": f"id-{number}", "stage": "ResponseComplete", "verb": verb,
            "requestURI": f"/apis/{resource}/{name}", "user": {"username": user},
            "objectRef": where, "responseStatus": {"code": 200},
            "requestReceivedTimestamp": time, "stageTimestamp": time,
        })  # fmt: skip
    return "".join(json.dumps(one) + "\n" for one in made)


async def test_object_that_only_requests_are_about_names_who_sent_them(tmp_path):
    with pytest.raises(NotFound) as refusal:
        await why(tmp_path, audit_log=lines(*GONE[:4]))
    said = refusal.value.message
    assert f"; delete by {EVICTOR} at 2026-01-02T03:04:03Z, without its content" in said
    assert f"; patch by {EVICTOR} at 2026-01-02T03:04:02Z, without its content" in said
    with pytest.raises(NotFound) as refusal:
        await why(tmp_path, about="devicetaintrule/all", audit_log=lines(*GONE[:1]))
    assert "; create by jane at 2026-01-02T03:04:00Z, without its content" in refusal.value.message


async def test_pod_that_is_gone_names_who_asked_for_its_deletion(tmp_path):
    gone = await why(tmp_path, audit_log=lines(*GONE))
    said = [reason.text for reason in gone.reason.children]
    assert f"delete by {EVICTOR} at 2026-01-02T03:04:03Z, without its content" in said


async def test_equal_requests_are_told_once_and_the_others_counted(tmp_path):
    writes = [(f"user-{number // 3}", "patch", "pods", "p") for number in range(24)]
    with pytest.raises(NotFound) as refusal:
        await why(tmp_path, audit_log=lines(*writes))
    said = refusal.value.message
    assert said.count("without its content, the last of 3 in a row") == 6
    assert "; and before that, others: 2" in said


async def findings(tmp_path, *writes, namespace=""):
    chronicle, views = Chronicle(), LiveViews(Profile())
    events = (await recorded(tmp_path, audit_log=lines(*writes)))[2]
    chronicle.fold(events)
    for event in events:
        views.fold(event)
    until = Revision(len(events))
    return [*taints.unseen_evictions(chronicle, views, until, namespace)]


async def test_pods_that_the_eviction_controller_wrote_are_evicted_by_what_was_written_before(
    tmp_path,
):
    (one,) = await findings(tmp_path, *GONE, (EVICTOR, "patch", "pods", "q"))
    assert one.text.startswith("2 pods were evicted by device-taint-eviction-controller for")
    assert one.count == 2
    assert [each.name for each in one.objects] == ["q", "p"]
    (cause,) = one.causes
    assert cause == (
        "before that, DeviceTaintRule all was written (create), by jane at 2026-01-02T03:04:00Z"
    )


@pytest.mark.parametrize(
    "writes",
    [
        [("jane", "delete", "pods", "p")],
        [("system:serviceaccount:kube-system:taint-eviction-controller", "delete", "pods", "p")],
        [(EVICTOR, "patch", "devicetaintrules", "all")],
    ],
)
async def test_other_writes_are_no_evictions_for_devices(tmp_path, writes):
    assert await findings(tmp_path, *writes) == []


async def test_evictions_of_other_namespaces_are_left_out(tmp_path):
    assert await findings(tmp_path, *GONE, namespace="other") == []
