"""Defaults are those of a real API server 1.36.2, in objects and in the templates inside them."""

from typing import Any

import pytest

from app.domain.objects.profile import Profile
from tests.api.serving import serving

CORE = "/api/v1/namespaces/default"
APPS = "/apis/apps/v1/namespaces/default"
BATCH = "/apis/batch/v1/namespaces/default"
LIMITED = {"name": "a", "image": "x:1", "resources": {"limits": {"cpu": "1", "x.y/z": "2"}}}
LABELS = {"a": "b"}


def template(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"labels": LABELS}, "spec": {"containers": [LIMITED], **spec}}


async def made(path: str, content: dict[str, Any]) -> Any:
    async with serving(profile=Profile(version="1.36.2")) as server:
        return await server.post(path, {"metadata": {"name": "n"}, **content})


SELECTED = {"selector": {"matchLabels": LABELS}, "template": template()}
ONCE = template(restartPolicy="Never")
TEMPLATES = [
    (f"{APPS}/deployments", {"spec": SELECTED}, ("spec", "template")),
    (f"{APPS}/replicasets", {"spec": SELECTED}, ("spec", "template")),
    (f"{APPS}/statefulsets", {"spec": SELECTED}, ("spec", "template")),
    (f"{APPS}/daemonsets", {"spec": SELECTED}, ("spec", "template")),
    (f"{BATCH}/jobs", {"spec": {"template": ONCE}}, ("spec", "template")),
    (
        f"{BATCH}/cronjobs",
        {"spec": {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": ONCE}}}},
        ("spec", "jobTemplate", "spec", "template"),
    ),
    (f"{CORE}/replicationcontrollers", {"spec": {"template": template()}}, ("spec", "template")),
    (f"{CORE}/podtemplates", {"template": template()}, ("template",)),
]


@pytest.mark.parametrize(("path", "content", "place"), TEMPLATES, ids=[row[0] for row in TEMPLATES])
async def test_templates_are_filled_and_copy_no_requests(path, content, place):
    tree = await made(path, content)
    for name in place:
        tree = tree[name]
    (container,) = tree["spec"]["containers"]
    assert container["imagePullPolicy"] == "IfNotPresent"
    assert container["terminationMessagePolicy"] == "File"
    assert container["resources"] == LIMITED["resources"]
    assert tree["spec"]["schedulerName"] == "default-scheduler"


async def test_pod_requests_what_it_is_limited_to():
    spec = (await made(f"{CORE}/pods", {"spec": {"containers": [LIMITED]}}))["spec"]
    assert spec["containers"][0]["resources"]["requests"] == {"cpu": "1", "x.y/z": "2"}


@pytest.mark.parametrize(
    ("containers", "whole", "requests"),
    [
        ([{"cpu": "200m"}, {"cpu": "300m"}], {"limits": {"cpu": "2", "memory": "1Gi"}},
         {"cpu": "500m", "memory": "1Gi"}),
        ([{}], {"limits": {"cpu": "2"}, "requests": {"cpu": "1"}}, {"cpu": "1"}),
        ([{"memory": "1Gi"}], {"limits": {"cpu": "2"}}, {"cpu": "2", "memory": "1Gi"}),
        ([{"cpu": "200m"}], {"requests": {"cpu": "1"}}, {"cpu": "1"}),
    ],
)  # fmt: skip
async def test_pod_that_is_limited_as_a_whole_requests_as_a_whole(containers, whole, requests):
    filled = [
        {"name": f"c{number}", "image": "x:1", "resources": {"requests": amounts}}
        for number, amounts in enumerate(containers)
    ]
    spec = {"containers": filled, "resources": whole}
    pod = await made(f"{CORE}/pods", {"spec": spec})
    assert pod["spec"]["resources"]["requests"] == requests


async def test_pod_refers_to_its_fields_by_version():
    field: dict[str, Any] = {"fieldRef": {"fieldPath": "metadata.labels"}}
    amount = {"resourceFieldRef": {"resource": "limits.cpu", "containerName": "a"}}
    items = [{"path": "l", **field}, {"path": "c", **amount}]
    token = {"serviceAccountToken": {"path": "t"}}
    projected = {"sources": [{"downwardAPI": {"items": items}}, token]}
    volumes = [
        {"name": "d", "downwardAPI": {"items": items}},
        {"name": "p", "projected": projected},
    ]
    env = [{"name": "F", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]
    spec = {
        "serviceAccountName": "s",
        "containers": [{"name": "a", "image": "i", "env": env}],
        "volumes": volumes,
    }
    found = (await made(f"{CORE}/pods", {"spec": spec}))["spec"]
    first, second = found["volumes"]
    assert found["containers"][0]["env"][0]["valueFrom"]["fieldRef"]["apiVersion"] == "v1"
    for written in (
        first["downwardAPI"]["items"],
        second["projected"]["sources"][0]["downwardAPI"]["items"],
    ):
        assert written[0]["fieldRef"]["apiVersion"] == "v1"
        assert written[1]["resourceFieldRef"]["divisor"] == "0"
    assert second["projected"]["sources"][1]["serviceAccountToken"]["expirationSeconds"] == 3600


async def test_addresses_of_a_pod_agree():
    async with serving() as server:
        spec = {"schedulerName": "none", "containers": [{"name": "a", "image": "i"}]}
        await server.post(f"{CORE}/pods", {"metadata": {"name": "p"}, "spec": spec})
        status = f"{CORE}/pods/p/status"
        one = await server.patch(status, {"status": {"podIP": "10.0.0.1"}})
        assert one["status"]["podIPs"] == [{"ip": "10.0.0.1"}]
        several = {"podIP": None, "podIPs": [{"ip": "10.0.0.2"}, {"ip": "fd00::2"}]}
        assert (await server.patch(status, {"status": several}))["status"]["podIP"] == "10.0.0.2"


async def test_node_shows_what_it_runs():
    node = await made("/api/v1/nodes", {"spec": {"podCIDR": "10.1.0.0/24"}})
    assert node["spec"]["podCIDRs"] == ["10.1.0.0/24"]
    assert node["status"]["nodeInfo"]["kubeletVersion"] == ""
    assert node["status"]["daemonEndpoints"] == {"kubeletEndpoint": {"Port": 0}}


async def test_job_has_the_labels_of_its_template():
    job = await made(f"{BATCH}/jobs", {"spec": {"template": ONCE}})
    assert job["metadata"]["labels"] == job["spec"]["template"]["metadata"]["labels"]
    assert job["metadata"]["labels"]["batch.kubernetes.io/job-name"] == "n"
    assert job["spec"]["manualSelector"] is False
    named = {"metadata": {"name": "n", "labels": {"x": "y"}}, "spec": {"template": ONCE}}
    assert (await made(f"{BATCH}/jobs", named))["metadata"]["labels"] == {"x": "y"}


async def test_job_with_a_policy_for_failures():
    rules = [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]
    spec = {
        "completionMode": "Indexed",
        "completions": 3,
        "backoffLimitPerIndex": 1,
        "podFailurePolicy": {"rules": rules},
        "template": ONCE,
    }
    found = (await made(f"{BATCH}/jobs", {"spec": spec}))["spec"]
    assert found["backoffLimit"] == 2**31 - 1
    assert found["podReplacementPolicy"] == "Failed"
    assert found["podFailurePolicy"]["rules"][0]["onPodConditions"][0]["status"] == "True"


async def test_replication_controller_is_named_after_its_template():
    found = await made(f"{CORE}/replicationcontrollers", {"spec": {"template": template()}})
    assert found["metadata"]["labels"] == LABELS
    assert (found["spec"]["selector"], found["spec"]["replicas"]) == (LABELS, 1)


async def test_daemon_set_counts_its_templates():
    path, place = f"{APPS}/daemonsets", ("metadata", "annotations")
    name = "deprecated.daemonset.template.generation"
    async with serving() as server:
        first = await server.post(path, {"metadata": {"name": "n"}, "spec": SELECTED})
        assert first[place[0]][place[1]] == {name: "1"}
        owned = first["metadata"]["managedFields"][0]["fieldsV1"]["f:metadata"]
        assert f"f:{name}" in owned["f:annotations"]
        same = await server.patch(f"{path}/n", {"spec": {"minReadySeconds": 3}})
        assert same["metadata"]["annotations"][name] == "1"
        change = {"spec": {"template": {"metadata": {"labels": {"c": "d"}}}}}
        other = await server.patch(f"{path}/n", change)
        assert other["metadata"]["annotations"][name] == "2"
        forged = {"metadata": {"annotations": {name: "7"}}}
        kept = await server.patch(f"{path}/n", forged)
        assert kept["metadata"]["annotations"][name] == "2"


async def test_volume_and_claims():
    spec = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"]}
    volume = await made("/api/v1/persistentvolumes", {"spec": {**spec, "hostPath": {"path": "/x"}}})
    assert volume["spec"]["persistentVolumeReclaimPolicy"] == "Retain"
    assert volume["spec"]["volumeMode"] == "Filesystem"
    assert volume["spec"]["hostPath"] == {"path": "/x", "type": ""}
    assert volume["status"]["phase"] == "Pending"
    assert volume["status"]["lastPhaseTransitionTime"]
    source = {"apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": "s"}
    wanted = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    claim = await made(f"{CORE}/persistentvolumeclaims", {"spec": {**wanted, "dataSource": source}})
    assert claim["spec"]["dataSourceRef"] == source
    templates = [{"metadata": {"name": "v"}, "spec": wanted}]
    found = await made(
        f"{APPS}/statefulsets", {"spec": {**SELECTED, "volumeClaimTemplates": templates}}
    )
    (written,) = found["spec"]["volumeClaimTemplates"]
    assert (written["apiVersion"], written["kind"]) == ("v1", "PersistentVolumeClaim")
    assert written["spec"]["volumeMode"] == "Filesystem"
    assert written["status"] == {"phase": "Pending"}


async def test_autoscaler_scales_at_a_pace():
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}
    behavior = {"scaleDown": {"stabilizationWindowSeconds": 60}}
    spec = {"scaleTargetRef": target, "maxReplicas": 3, "behavior": behavior}
    path = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"
    whole = {"periodSeconds": 15, "type": "Percent", "value": 100}
    assert (await made(path, {"spec": spec}))["spec"]["behavior"] == {
        "scaleDown": {
            "policies": [whole],
            "selectPolicy": "Max",
            "stabilizationWindowSeconds": 60,
        },
        "scaleUp": {
            "policies": [{"periodSeconds": 15, "type": "Pods", "value": 4}, whole],
            "selectPolicy": "Max",
            "stabilizationWindowSeconds": 0,
        },
    }


async def test_ports_of_endpoints_speak_tcp():
    subsets = [{"addresses": [{"ip": "10.0.0.1"}], "ports": [{"port": 80}]}]
    found = await made(f"{CORE}/endpoints", {"subsets": subsets})
    assert found["subsets"][0]["ports"] == [{"port": 80, "protocol": "TCP"}]


async def test_condition_of_a_gated_pod_has_a_time():
    spec = {"schedulingGates": [{"name": "g"}], "containers": [{"name": "a", "image": "i"}]}
    (condition,) = (await made(f"{CORE}/pods", {"spec": spec}))["status"]["conditions"]
    assert condition["lastTransitionTime"]
