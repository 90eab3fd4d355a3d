"""Pods are judged as a real API server 1.36.2 judges them: the fields, the texts, the codes."""

from typing import Any

import pytest

from app.domain.objects.profile import Profile
from tests.api.serving import serving

PODS = "/api/v1/namespaces/default/pods"
CLASSES = "/apis/node.k8s.io/v1/runtimeclasses"
STATEFUL = "/apis/apps/v1/namespaces/default/statefulsets"
LABEL = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and "
    "must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used "
    "for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
CLAIM = [{"name": "c", "resourceClaimName": "x"}]
RESOURCES = "spec.containers[0].resources"
UNLIMITED = ("limits", "Required value: Limit must be set for non overcommitable resources")
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def pod(name: str = "p", resources: Any = None, **spec: Any) -> dict[str, Any]:
    container = {"name": "a", "image": "i"} | ({"resources": resources} if resources else {})
    return {
        "metadata": {"name": name},
        "spec": {"schedulerName": "none", "containers": [container], **spec},
    }


OF_RESOURCES: list[tuple[Any, list[tuple[str, str]]]] = [
    (
        {"requests": {"bogus": "2"}},
        [
            (
                "requests[bogus]",
                'Invalid value: "bogus": must be a standard resource type or fully qualified',
            ),
            (
                "requests[bogus]",
                'Invalid value: "bogus": must be a standard resource for containers',
            ),
        ],
    ),
    (
        {"limits": {"pods": "2"}},
        [
            (
                f"{part}[pods]",
                'Invalid value: "pods": must be a standard resource for containers',
            )
            for part in ("limits", "requests")
        ],
    ),
    (
        {"requests": {"x.y/z": "1.5"}},
        [("requests[x.y/z]", 'Invalid value: "1500m": must be an integer'), UNLIMITED],
    ),
    ({"requests": {"x.y/z": "1"}}, [UNLIMITED]),
    (
        {"requests": {"x.y/z": "1"}, "limits": {"x.y/z": "2"}},
        [("requests", 'Invalid value: "1": must be equal to x.y/z limit of 2')],
    ),
    (
        {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}},
        [("requests", 'Invalid value: "2": must be less than or equal to cpu limit of 1')],
    ),
    (
        {"requests": {"cpu": "-1"}},
        [("requests[cpu]", 'Invalid value: "-1": must be greater than or equal to 0')],
    ),
    (
        {"claims": [{"name": "c", "request": "R_"}]},
        [("claims[0].request", f'Invalid value: "R_": {LABEL}')],
    ),
    (
        {"claims": [{"name": "c"}, {"name": "c", "request": "r"}]},
        [("claims[1]", 'Duplicate value: "c"')],
    ),
    (
        {"claims": [{"name": "n"}]},
        [("claims[0]", 'Not found: "n": must be one of the names in pod.spec.resourceClaims: c')],
    ),
    ({"claims": [{"name": ""}]}, [("claims[0]", "Required value")]),
]


async def causes(tree: dict[str, Any], path: str = PODS) -> list[tuple[str, str]]:
    async with serving(profile=Profile(version="1.36.2")) as server:
        refused = await server.post(path, tree, code=422)
        return [(row["field"], row["message"]) for row in refused["details"]["causes"]]


@pytest.mark.parametrize(("resources", "expected"), OF_RESOURCES)
async def test_resources_of_containers(resources, expected):
    found = await causes(pod(resources=resources, resourceClaims=CLAIM))
    assert found == [(f"{RESOURCES}.{place}", text) for place, text in expected]


async def test_resources_of_templates_are_judged_too():
    labels = {"a": "b"}
    template = {"metadata": {"labels": labels}, **pod(resources={"limits": {"bogus": "1"}})}
    template["metadata"] = {"labels": labels}
    del template["spec"]["schedulerName"]
    spec = {"selector": {"matchLabels": labels}, "serviceName": "s", "template": template}
    found = await causes({"metadata": {"name": "s"}, "spec": spec}, STATEFUL)
    assert {place for place, _ in found} == {f"spec.template.{RESOURCES}.limits[bogus]"}


OF_SPECS: list[tuple[dict[str, Any], list[tuple[str, str]]]] = [
    (
        {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": []}}}},
        [
            (
                f"spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms",
                "Required value: must have at least one node selector term",
            )
        ],
    ),
    (
        {"affinity": {"nodeAffinity": {PREFERRED: [{"weight": 0, "preference": {}}]}}},
        [
            (
                f"spec.affinity.nodeAffinity.{PREFERRED}[0].weight",
                "Invalid value: 0: must be in the range 1-100",
            )
        ],
    ),
    (
        {"affinity": {"podAntiAffinity": {REQUIRED: [{"topologyKey": ""}]}}},
        [
            (
                f"spec.affinity.podAntiAffinity.{REQUIRED}[0].topologyKey",
                "Required value: can not be empty",
            )
        ],
    ),
    (
        {
            "topologySpreadConstraints": [
                {"maxSkew": 0, "topologyKey": "", "whenUnsatisfiable": "X"}
            ]
        },
        [
            (
                "spec.topologySpreadConstraints[0].maxSkew",
                "Invalid value: 0: must be greater than zero",
            ),
            ("spec.topologySpreadConstraints[0].topologyKey", "Required value: can not be empty"),
            (
                "spec.topologySpreadConstraints[0].whenUnsatisfiable",
                'Unsupported value: "X": supported values: "DoNotSchedule", "ScheduleAnyway"',
            ),
        ],
    ),
    (
        {"schedulingGates": [{"name": "a"}, {"name": "a"}]},
        [("spec.schedulingGates[1]", 'Duplicate value: "a"')],
    ),
    (
        {"nodeName": "n", "schedulingGates": [{"name": "g"}]},
        [
            (
                "spec.nodeName",
                "Forbidden: cannot be set until all schedulingGates have been cleared",
            )
        ],
    ),
    (
        {"restartPolicy": "X", "dnsPolicy": "Y"},
        [
            (
                "spec.restartPolicy",
                'Unsupported value: "X": supported values: "Always", "OnFailure", "Never"',
            ),
            (
                "spec.dnsPolicy",
                'Unsupported value: "Y": supported values: "ClusterFirstWithHostNet", '
                '"ClusterFirst", "Default", "None"',
            ),
        ],
    ),
    (
        {"resourceClaims": [{"name": "c"}]},
        [
            (
                "spec.resourceClaims[0]",
                'Invalid value: {"Name":"c","ResourceClaimName":null,'
                '"ResourceClaimTemplateName":null}: must specify one of: `resourceClaimName`, '
                "`resourceClaimTemplateName`",
            )
        ],
    ),
    (
        {"resourceClaims": [*CLAIM, {"name": "c", "resourceClaimName": "y"}]},
        [("spec.resourceClaims[1].name", 'Duplicate value: "c"')],
    ),
    (
        {"ephemeralContainers": [{"name": "e", "image": "i"}]},
        [("spec.ephemeralContainers", "Forbidden: cannot be set on create")],
    ),
]


@pytest.mark.parametrize(("spec", "expected"), OF_SPECS)
async def test_specs_of_pods(spec, expected):
    assert await causes(pod(**spec)) == expected


async def test_pod_whose_runtime_is_not_there_is_forbidden():
    async with serving() as server:
        refused = await server.post(PODS, pod(runtimeClassName="nope"), code=403)
        text = 'pods "p" is forbidden: pod rejected: RuntimeClass "nope" not found'
        assert refused["message"] == text
        await server.post(PODS, pod(overhead={"cpu": "1"}), code=403)


async def test_runtime_gives_overhead_and_place():
    taint = {"key": "k", "operator": "Exists", "effect": "NoSchedule"}
    scheduling = {"nodeSelector": {"runtime": "fast"}, "tolerations": [taint]}
    tree = {
        "metadata": {"name": "fast"},
        "handler": "h",
        "overhead": {"podFixed": {"cpu": "100m"}},
        "scheduling": scheduling,
    }
    async with serving() as server:
        await server.post(CLASSES, tree)
        made = await server.post(PODS, pod(runtimeClassName="fast", nodeSelector={"a": "b"}))
        assert made["spec"]["overhead"] == {"cpu": "100m"}
        assert made["spec"]["nodeSelector"] == {"a": "b", "runtime": "fast"}
        assert taint in made["spec"]["tolerations"]
        other = pod("q", runtimeClassName="fast", nodeSelector={"runtime": "slow"})
        refused = await server.post(PODS, other, code=403)
        assert (
            "conflict: runtimeClass.scheduling.nodeSelector[runtime] = fast" in refused["message"]
        )


async def test_running_pod_keeps_its_ephemeral_containers():
    async with serving() as server:
        await server.post(PODS, pod())
        path = f"{PODS}/p/ephemeralcontainers"

        async def put(*containers: dict[str, Any], code: int = 200) -> Any:
            spec = {"ephemeralContainers": list(containers)}
            return await server.patch(path, {"spec": spec}, code=code)

        first = {"name": "dbg", "image": "b", "targetContainerName": "a"}
        await put(first)
        refused = await put({**first, "image": "c"}, code=422)
        (cause,) = refused["details"]["causes"]
        assert cause["field"] == "spec.ephemeralContainers"
        assert 'existing ephemeral containers "dbg" may not be changed' in cause["message"]
        refused = await put(code=422)
        assert 'existing ephemeral containers "dbg" may not be removed' in refused["message"]
        refused = await put(first, {"name": "a", "image": "c"}, code=422)
        assert "spec.ephemeralContainers[1].name: Duplicate value" in refused["message"]
        await put(first, {"name": "more", "image": "c"})


async def test_changed_pod_is_judged_by_what_it_changes():
    async with serving() as server:
        await server.post(PODS, pod())
        change = {
            "spec": {"containers": [{"name": "a", "resources": {"requests": {"x.y/z": "1"}}}]}
        }
        refused = await server.patch(
            f"{PODS}/p", change, code=422, kind="strategic-merge-patch+json"
        )
        fields = [row["field"] for row in refused["details"]["causes"]]
        assert fields == [f"{RESOURCES}.limits", "spec"]


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        ({"requests": {"cpu": "1"}}, "Burstable"),
        (
            {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "1", "memory": "1Gi"}},
            "Guaranteed",
        ),
    ],
)
async def test_resources_of_the_whole_pod_decide_its_quality(resources, expected):
    spec = {"schedulerName": "none", "containers": [{"name": "a", "image": "i"}]}
    async with serving() as server:
        tree = {"metadata": {"name": "p"}, "spec": {**spec, "resources": resources}}
        assert (await server.post(PODS, tree))["status"]["qosClass"] == expected


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        ("daemonsets", ["spec.template.metadata.labels"]),
        ("deployments", ["spec.selector", "spec.template.metadata.labels"]),
    ],
)
async def test_workload_without_a_selector_matches_nothing(kind, fields):
    spec = {"template": {"spec": pod()["spec"]}}
    path = f"/apis/apps/v1/namespaces/default/{kind}"
    found = await causes({"metadata": {"name": "n"}, "spec": spec}, path)
    assert [field for field, _ in found] == fields
    assert found[-1][1] == "Invalid value: null: `selector` does not match template `labels`"
