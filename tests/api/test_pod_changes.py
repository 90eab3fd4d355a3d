"""What of a pod may be changed through its main resource, and what its template may name."""

import pytest

from tests.api.serving import pod, serving

PODS = "/api/v1/namespaces/default/pods"
FORBIDDEN = "pod updates may not change fields other than"

REFUSED = [
    ({}, {"nodeName": "n"}),
    ({"nodeName": "n"}, {"nodeName": "m"}),
    ({"nodeName": "n"}, {"nodeName": None}),
    ({}, {"nodeSelector": {"a": "b"}}),
    ({}, {"affinity": {"nodeAffinity": {}, "podAffinity": {}}}),
    ({}, {"terminationGracePeriodSeconds": 1}),
    ({}, {"schedulerName": "other"}),
    ({"schedulingGates": [{"name": "a.b/c"}]}, {"nodeName": "n"}),
]


@pytest.mark.parametrize("kind", ["merge-patch+json", "strategic-merge-patch+json"])
@pytest.mark.parametrize(("spec", "change"), REFUSED)
async def test_change_of_a_pod_is_refused(spec, change, kind):
    async with serving() as server:
        made = await server.post(PODS, pod(**spec))
        refused = await server.patch(f"{PODS}/p", {"spec": change}, code=422, kind=kind)
        (cause,) = refused["details"]["causes"]
        assert (cause["field"], cause["reason"]) == ("spec", "FieldValueForbidden")
        assert FORBIDDEN in cause["message"]
        assert await server.get(f"{PODS}/p") == made


async def test_resources_are_changed_by_their_subresource_only():
    async with serving() as server:
        await server.post(PODS, pod())
        container = {"name": "c", "resources": {"requests": {"cpu": "2"}}}
        change = {"spec": {"containers": [container]}}
        await server.patch(f"{PODS}/p", change, code=422, kind="strategic-merge-patch+json")


TAKEN = [
    ({}, {"activeDeadlineSeconds": 5}),
    ({"schedulingGates": [{"name": "a.b/c"}]}, {"schedulingGates": None}),
    ({"schedulingGates": [{"name": "a.b/c"}]}, {"nodeSelector": {"a": "b"}}),
    ({"schedulingGates": [{"name": "a.b/c"}]}, {"affinity": {"nodeAffinity": {}}}),
]


@pytest.mark.parametrize(("spec", "change"), TAKEN)
async def test_change_of_a_pod_is_taken(spec, change):
    async with serving() as server:
        await server.post(PODS, pod(**spec))
        changed = await server.patch(f"{PODS}/p", {"spec": change})
        for name, value in change.items():
            assert changed["spec"].get(name) == value


GATED = {"schedulingGates": [{"name": "a.b/c"}], "nodeSelector": {"a": "b"}}


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (
            {"schedulingGates": [{"name": "a.b/c"}, {"name": "d.e/f"}]},
            "spec.schedulingGates[1].name",
        ),
        ({"nodeSelector": {"a": "c"}}, "spec.nodeSelector"),
    ],
)
async def test_gates_only_go_and_a_selector_only_grows(change, field):
    async with serving() as server:
        await server.post(PODS, pod(**GATED))
        refused = await server.patch(f"{PODS}/p", {"spec": change}, code=422)
        assert [cause["field"] for cause in refused["details"]["causes"]] == [field]


def stateful_set(mount, **spec):
    container = {"name": "c", "image": "i:1", "volumeMounts": [{"name": mount, "mountPath": "/d"}]}
    return {
        "metadata": {"name": "s"},
        "spec": {
            "selector": {"matchLabels": {"a": "b"}},
            "serviceName": "s",
            "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [container]}},
            **spec,
        },
    }


CLAIM_TEMPLATE = {
    "metadata": {"name": "data"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}
SETS = "/apis/apps/v1/namespaces/default/statefulsets"


async def test_mount_of_a_stateful_set_may_name_a_claim_template():
    async with serving() as server:
        await server.post(SETS, stateful_set("data", volumeClaimTemplates=[CLAIM_TEMPLATE]))
        refused = await server.post(SETS, stateful_set("none"), code=422)
        assert refused["details"]["causes"][0]["message"] == 'Not found: "none"'


SLICES = "/apis/resource.k8s.io/{}/resourceslices"


@pytest.mark.parametrize("version", ["v1", "v1beta1", "v1beta2"])
async def test_generation_of_a_pool_is_shown_when_it_is_0(version):
    async with serving() as server:
        pool = {"name": "p", "resourceSliceCount": 1}
        spec = {"driver": "gpu.example.com", "nodeName": "n", "pool": pool}
        path = SLICES.format(version)
        made = await server.post(path, {"metadata": {"name": "s"}, "spec": spec})
        assert made["spec"]["pool"] == {"generation": 0, **pool}
        (listed,) = (await server.get(path))["items"]
        assert listed["spec"]["pool"] == {"generation": 0, **pool}
