"""Kinds that installs bring: APIServices, ranges of addresses, attributes of volumes, bindings.

Answers are those of a real server 1.36.2.
"""

import pytest

from app.domain.objects.profile import Profile
from tests.api.serving import serving

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
RANGES = "/apis/networking.k8s.io/v1/servicecidrs"
ADDRESSES = "/apis/networking.k8s.io/v1/ipaddresses"
CLASSES = "/apis/storage.k8s.io/v1/volumeattributesclasses"
SCALERS = "/apis/autoscaling/{}/namespaces/default/horizontalpodautoscalers"
PODS = "/api/v1/namespaces/default/pods"
BINDINGS = "/api/v1/namespaces/default/bindings"
SERVICE = {
    "metadata": {"name": "v1.x.io"},
    "spec": {"group": "x.io", "version": "v1", "groupPriorityMinimum": 10, "versionPriority": 10},
}
ADDRESS = {
    "metadata": {"name": "10.96.0.99"},
    "spec": {"parentRef": {"resource": "services", "name": "x"}},
}
RANGE = {"metadata": {"name": "r"}, "spec": {"cidrs": ["10.99.0.0/24"]}}
CLASS = {"metadata": {"name": "vac"}, "driverName": "x", "parameters": {"a": "b"}}
POD = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "a", "image": "b"}]}}


def at_36():
    return serving(profile=Profile(version="1.36"))


async def rows(server, path):
    table = await server.get(path, accept=TABLE)
    columns = [(column["name"], column["type"]) for column in table["columnDefinitions"]]
    return columns, [row["cells"] for row in table["rows"]]


async def test_local_api_service_is_available_at_once():
    async with at_36() as server:
        made = await server.post(SERVICES, SERVICE)
        (held,) = made["status"]["conditions"]
        del held["lastTransitionTime"]
        assert held == {
            "message": "Local APIServices are always available",
            "reason": "Local",
            "status": "True",
            "type": "Available",
        }
        columns, found = await rows(server, SERVICES)
        assert [name for name, _ in columns] == ["Name", "Service", "Available", "Age"]
        assert [row[:3] for row in found] == [["v1.x.io", "Local", "True"]]


async def test_api_service_of_a_service_is_stored_with_its_port():
    spec = SERVICE["spec"] | {"service": {"namespace": "n", "name": "s"}}
    async with at_36() as server:
        made = await server.post(SERVICES, {**SERVICE, "spec": spec})
        assert made["status"] == {}
        assert made["spec"]["service"]["port"] == 443
        _, found = await rows(server, SERVICES)
        assert found[0][1] == "n/s"


async def test_status_of_an_api_service_is_written_by_its_subresource_only():
    async with at_36() as server:
        made = await server.post(SERVICES, SERVICE)
        held = {"type": "Available", "status": "False", "reason": "R"}
        changed = {**made, "status": {"conditions": [held]}}
        assert (await server.put(f"{SERVICES}/v1.x.io", changed))["status"] == made["status"]
        patched = await server.patch(f"{SERVICES}/v1.x.io/status", {"status": changed["status"]})
        assert patched["status"]["conditions"][0]["reason"] == "R"
        _, found = await rows(server, SERVICES)
        assert found[0][2] == "False (R)"


async def test_ranges_and_addresses_have_the_tables_of_a_real_server():
    async with at_36() as server:
        assert (await server.post(RANGES, RANGE))["status"] == {}
        assert (await server.post(ADDRESSES, ADDRESS))["spec"] == ADDRESS["spec"]
        columns, found = await rows(server, RANGES)
        assert [name for name, _ in columns] == ["Name", "CIDRs", "Age"]
        assert found[0][:2] == ["r", "10.99.0.0/24"]
        columns, found = await rows(server, ADDRESSES)
        assert [name for name, _ in columns] == ["Name", "ParentRef"]
        assert found[0][:2] == ["10.96.0.99", "services/x"]
        selected = await server.get(f"{ADDRESSES}?fieldSelector=spec.parentRef.name%3Dy")
        assert selected["items"] == []


async def test_class_of_attributes_needs_parameters():
    async with at_36() as server:
        problem = await server.post(CLASSES, {"metadata": {"name": "v"}, "driverName": "x"}, 422)
        assert problem["message"] == (
            'VolumeAttributesClass.storage.k8s.io "v" is invalid: parameters: Required value: must '
            "contain at least one key/value pair"
        )
        made = await server.post(CLASSES, CLASS)
        assert "generation" not in made["metadata"]
        columns, found = await rows(server, CLASSES)
        assert [name for name, _ in columns] == ["Name", "DriverName", "Age"]
        assert found[0][:2] == ["vac", "x"]


@pytest.mark.parametrize(
    ("path", "tree", "owned"),
    [
        (
            SERVICES,
            SERVICE,
            {
                "f:group": {},
                "f:groupPriorityMinimum": {},
                "f:version": {},
                "f:versionPriority": {},
            },
        ),
        (RANGES, RANGE, {"f:cidrs": {}}),
        (ADDRESSES, ADDRESS, {"f:parentRef": {".": {}, "f:name": {}, "f:resource": {}}}),
    ],
)
async def test_writer_owns_the_fields_that_a_real_server_says(path, tree, owned):
    async with at_36() as server:
        made = await server.post(path, tree)
        (entry,) = made["metadata"]["managedFields"]
        assert entry["fieldsV1"] == {"f:spec": owned}


@pytest.mark.parametrize(
    ("path", "tree"),
    [(SERVICES, SERVICE), (RANGES, RANGE), (ADDRESSES, ADDRESS), (CLASSES, CLASS)],
)
async def test_kind_is_applied_checked_strictly_and_explained(path, tree):
    group, version, plural = path.split("/")[2:]
    async with at_36() as server:
        resources = (await server.get(f"/apis/{group}/{version}"))["resources"]
        kind = next(each["kind"] for each in resources if each["name"] == plural)
        whole = {"apiVersion": f"{group}/{version}", "kind": kind, **tree}
        place = f"{path}/{tree['metadata']['name']}"
        url = f"{place}?fieldManager=m"
        made = await server.call(
            "PATCH", url, whole, 201, content_type="application/apply-patch+yaml"
        )
        again = await server.call(
            "PATCH", url, whole, 200, content_type="application/apply-patch+yaml"
        )
        assert again == made
        assert made["metadata"]["managedFields"][0]["operation"] == "Apply"
        odd = {**tree, "metadata": {"name": "other"}, "bogus": 1}
        problem = await server.post(f"{path}?fieldValidation=Strict", odd, 400)
        assert 'unknown field "bogus"' in problem["message"]
        document = await server.get(f"/openapi/v3/apis/{group}/{version}")
        known = [
            found
            for schema in document["components"]["schemas"].values()
            for found in schema.get("x-kubernetes-group-version-kind", ())
        ]
        assert {"group": group, "version": version, "kind": kind} in known
        assert path in document["paths"]
        assert (await server.delete(place))["status"] == "Success"


async def test_old_autoscalers_are_the_new_ones_in_other_words():
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}
    spec = {"maxReplicas": 3, "scaleTargetRef": target, "targetCPUUtilizationPercentage": 50}
    old, new = SCALERS.format("v1"), SCALERS.format("v2")
    async with at_36() as server:
        made = await server.post(old, {"metadata": {"name": "h"}, "spec": spec})
        assert made["spec"] == {**spec, "minReplicas": 1}
        found = await server.get(f"{new}/h")
        cpu = {"name": "cpu", "target": {"averageUtilization": 50, "type": "Utilization"}}
        assert found["spec"]["metrics"] == [{"resource": cpu, "type": "Resource"}]
        memory = {"name": "memory", "target": {"averageValue": "1Gi", "type": "AverageValue"}}
        metrics = [*found["spec"]["metrics"], {"resource": memory, "type": "Resource"}]
        await server.patch(f"{new}/h", {"spec": {"metrics": metrics}})
        shown = await server.get(f"{old}/h")
        assert shown["spec"]["targetCPUUtilizationPercentage"] == 50
        assert shown["metadata"]["annotations"] == {
            "autoscaling.alpha.kubernetes.io/metrics": (
                '[{"type":"Resource","resource":{"name":"memory","targetAverageValue":"1Gi"}}]'
            )
        }
        again = await server.put(f"{old}/h", shown)
        assert again == shown
        assert (await server.get(f"{new}/h"))["spec"]["metrics"] == metrics
        group = await server.get("/apis/autoscaling")
        assert [row["version"] for row in group["versions"]] == ["v2", "v1"]


async def test_binding_names_its_pod_itself():
    binding = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n1"}}
    async with at_36() as server:
        await server.post(PODS, POD)
        assert (await server.post(BINDINGS, binding))["status"] == "Success"
        assert (await server.get(f"{PODS}/p"))["spec"]["nodeName"] == "n1"
        problem = await server.post(BINDINGS, binding, 409)
        assert problem["details"] == {"name": "p", "kind": "pods/binding"}
        assert problem["message"].endswith('pod p is already assigned to node "n1"')
        await server.post(BINDINGS, {**binding, "metadata": {"name": "gone"}}, 404)
        await server.post(BINDINGS, {**binding, "metadata": {}}, 400)
        await server.get(BINDINGS, 405)


async def test_bindings_are_discovered_as_something_to_create():
    async with at_36() as server:
        resources = (await server.get("/api/v1"))["resources"]
        assert resources[0] == {
            "name": "bindings",
            "singularName": "binding",
            "namespaced": True,
            "kind": "Binding",
            "verbs": ["create"],
        }
        names = [resource["name"] for resource in resources]
        assert names == sorted(names)
        aggregated = (await server.raw("GET", "/api", accept=AGGREGATED)).json()
        first = aggregated["items"][0]["versions"][0]["resources"][0]
        assert (first["resource"], first["verbs"]) == ("bindings", ["create"])


GROUPS = "/apis/scheduling.k8s.io/{}/namespaces/default/{}"
POLICY = {"gang": {"minCount": 2}}


@pytest.mark.parametrize(
    ("release", "kinds"),
    [
        ("1.34", {}),
        ("1.35", {"v1alpha1": {"workloads"}}),
        ("1.36", {"v1alpha2": {"podgroups", "workloads"}}),
        ("1.37", {key: {"podgroups", "workloads"} for key in ("v1beta1", "v1alpha3")}),
    ],
)
async def test_groups_of_pods_are_served_with_their_gate_in_the_versions_of_the_release(
    release, kinds
):
    for is_on in (False, True):
        profile = Profile(version=release, gates={"GenericWorkload": is_on})
        async with serving(profile=profile) as server:
            found = {}
            group = await server.get("/apis/scheduling.k8s.io")
            for version in (row["version"] for row in group["versions"]):
                listed = await server.get(f"/apis/scheduling.k8s.io/{version}")
                names = {row["name"].partition("/")[0] for row in listed["resources"]}
                found[version] = names - {"priorityclasses"}
            assert {version: names for version, names in found.items() if names} == (
                kinds if is_on else {}
            )


async def test_group_of_pods_is_stored_and_its_pods_name_it():
    profile = Profile(version="1.36", gates={"GenericWorkload": True})
    path = GROUPS.format("v1alpha2", "podgroups")
    async with serving(profile=profile) as server:
        tree = {"metadata": {"name": "g"}, "spec": {"schedulingPolicy": POLICY}}
        made = await server.post(path, tree)
        assert (made["apiVersion"], made["spec"]) == ("scheduling.k8s.io/v1alpha2", tree["spec"])
        held = {"type": "Scheduled", "status": "True", "reason": "R", "message": ""}
        held["lastTransitionTime"] = "2026-01-01T00:00:00Z"
        changed = await server.patch(f"{path}/g/status", {"status": {"conditions": [held]}})
        assert changed["status"]["conditions"] == [held]
        assert changed["metadata"]["generation"] == 1
        odd = {**tree, "metadata": {"name": "h"}, "bogus": 1}
        await server.post(f"{path}?fieldValidation=Strict", odd, 400)
        pod = {**POD, "spec": {**POD["spec"], "schedulingGroup": {"podGroupName": "g"}}}
        assert (await server.post(PODS, pod))["spec"]["schedulingGroup"] == {"podGroupName": "g"}
        template = {"name": "t", "schedulingPolicy": POLICY}
        work = {"metadata": {"name": "w"}, "spec": {"podGroupTemplates": [template]}}
        path = GROUPS.format("v1alpha2", "workloads")
        assert (await server.post(path, work))["spec"] == work["spec"]
