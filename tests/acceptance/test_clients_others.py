"""kubernetes-asyncio, lightkube, kr8s and kopf on one server. Parity: api.md 13."""

import os
import subprocess
import sys
import textwrap
from contextlib import contextmanager

import kr8s
import lightkube
import pytest
from kr8s.objects import ConfigMap as Kr8sConfigMap
from kr8s.objects import new_class
from kubernetes_asyncio import client as aio
from kubernetes_asyncio import config as aio_config
from kubernetes_asyncio import dynamic as aio_dynamic
from kubernetes_asyncio import watch as aio_watch
from lightkube import operators
from lightkube.config.kubeconfig import KubeConfig
from lightkube.generic_resource import create_global_resource, load_in_cluster_generic_resources
from lightkube.models import resource_v1 as models
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources import resource_v1, resource_v1beta1
from lightkube.resources.core_v1 import ConfigMap, Namespace
from lightkube.types import CascadeType, PatchType

from tests import draws
from tests.acceptance.server_process import following, server_process

pytestmark = [pytest.mark.database, pytest.mark.slow, draws.modules_in_turn("clients")]

CLAIM_SPEC = {
    "devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "none.example.com"}}]}
}
SPACES = ("aio", "light", "kr", "kopf")


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with server_process(tmp_path_factory.mktemp("clients"), *SPACES) as found:
        yield found


# ---- kubernetes-asyncio


@pytest.fixture
async def connection(server):
    settings = aio.Configuration()
    await aio_config.load_kube_config(str(server.kubeconfig), client_configuration=settings)
    async with aio.ApiClient(settings) as found:
        yield found


async def test_asyncio_client_writes_every_version_and_meets_a_conflict(connection):
    claims = aio.ResourceV1Api(connection)
    body = {"metadata": {"name": "c"}, "spec": CLAIM_SPEC}
    made = await claims.create_namespaced_resource_claim("aio", body)
    old = await aio.ResourceV1beta1Api(connection).read_namespaced_resource_claim("c", "aio")
    assert old.spec.devices.requests[0].device_class_name == "none.example.com"
    made.metadata.labels = {"a": "b"}
    await claims.replace_namespaced_resource_claim("c", "aio", made)
    with pytest.raises(aio.ApiException) as problem:
        await claims.replace_namespaced_resource_claim("c", "aio", made)
    assert problem.value.status == 409
    result = {"request": "gpu", "driver": "d.example.com", "pool": "p", "device": "d0"}
    status = {"status": {"allocation": {"devices": {"results": [result]}}}}
    patched = await claims.patch_namespaced_resource_claim_status("c", "aio", status)
    assert patched.status.allocation.devices.results[0].device == "d0"
    await claims.delete_collection_namespaced_resource_claim("aio", label_selector="a=b")
    assert (await claims.list_namespaced_resource_claim("aio")).items == []


async def test_asyncio_watch_goes_on_from_where_it_was(connection):
    core = aio.CoreV1Api(connection)
    at = (await core.list_namespaced_config_map("aio")).metadata.resource_version
    written = []
    for number in range(6):
        body = {"metadata": {"name": f"m{number}", "labels": {"watched": ""}}}
        made = await core.create_namespaced_config_map("aio", body)
        written.append(made.metadata.resource_version)
    seen = []
    while len(seen) < len(written):
        async with aio_watch.Watch().stream(
            core.list_namespaced_config_map, "aio",
            resource_version=at, timeout_seconds=5, label_selector="watched",
        ) as stream:  # fmt: skip
            async for event in stream:
                at = event["object"].metadata.resource_version
                seen.append(at)
                if len(seen) % 2 == 0:
                    break
    assert seen == written
    page = await core.list_namespaced_config_map("aio", limit=4, label_selector="watched")
    rest = await core.list_namespaced_config_map(
        "aio", limit=4, label_selector="watched", _continue=page.metadata._continue
    )
    assert [item.metadata.name for item in page.items + rest.items] == [f"m{n}" for n in range(6)]


async def test_asyncio_dynamic_client_applies(connection):
    found = await aio_dynamic.DynamicClient(connection)
    maps = await found.resources.get(api_version="v1", kind="ConfigMap")
    tree = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "dyn"},
        "data": {"a": "b"},
    }
    made = await maps.server_side_apply(tree, name="dyn", namespace="aio", field_manager="aio")
    assert made.metadata.managedFields[0].operation == "Apply"
    listed = await maps.get(namespace="aio", field_selector="metadata.name=dyn")
    assert listed.items[0].data.a == "b"
    await maps.delete(name="dyn", namespace="aio")


# ---- lightkube


@pytest.fixture
def light(server):
    settings = KubeConfig.from_file(server.kubeconfig)
    with lightkube.Client(settings, namespace="light", field_manager="light") as found:
        yield found
        found.deletecollection(ConfigMap)
        found.deletecollection(resource_v1.ResourceClaim)


def light_map(name, labels=None, **data):
    return ConfigMap(metadata=ObjectMeta(name=name, labels=labels), data=data)


def light_claim(name):
    exactly = models.ExactDeviceRequest(deviceClassName="none.example.com")
    request = models.DeviceRequest(name="gpu", exactly=exactly)
    spec = models.ResourceClaimSpec(devices=models.DeviceClaim(requests=[request]))
    return resource_v1.ResourceClaim(metadata=ObjectMeta(name=name), spec=spec)


def test_lightkube_creates_replaces_and_meets_a_conflict(light):
    made = light.create(light_claim("c"))
    assert made.spec.devices.requests[0].exactly.count == 1
    made.metadata.labels = {"a": "b"}
    light.replace(made)
    with pytest.raises(lightkube.ApiError) as problem:
        light.replace(made)
    status = problem.value.status
    assert (status.code, status.reason, status.details.name) == (409, "Conflict", "c")
    old = light.get(resource_v1beta1.ResourceClaim, "c")
    assert old.spec.devices.requests[0].deviceClassName == "none.example.com"


def test_lightkube_applies_conflicts_and_forces(light):
    light.apply(light_map("m", a="1"))
    with pytest.raises(lightkube.ApiError) as problem:
        light.apply(light_map("m", a="2"), field_manager="rival")
    (cause,) = problem.value.status.details.causes
    assert (cause.reason, cause.field) == ("FieldManagerConflict", ".data.a")
    assert light.apply(light_map("m", a="2"), field_manager="rival", force=True).data == {"a": "2"}


def test_lightkube_writes_a_status_and_waits_for_its_condition(light):
    light.create(light_claim("c"))
    status = {"status": {"allocation": {"devices": {"results": [
        {"request": "gpu", "driver": "d.example.com", "pool": "p", "device": "d0"}]}}}}  # fmt: skip
    patched = light.patch(resource_v1.ResourceClaimStatus, "c", status, patch_type=PatchType.MERGE)
    assert patched.status.allocation.devices.results[0].device == "d0"
    rules = create_global_resource("resource.k8s.io", "v1", "DeviceTaintRule", "devicetaintrules")
    spec = {"deviceSelector": {"driver": "x.example.com"}, "taint": {"key": "k", "effect": "None"}}
    light.create(rules(metadata=ObjectMeta(name="light"), spec=spec))
    condition = {"type": "Seen", "status": "True", "reason": "Test", "message": "",
                 "lastTransitionTime": "2026-01-01T00:00:00Z"}  # fmt: skip
    light.patch(rules.Status, "light", {"status": {"conditions": [condition]}})
    assert light.wait(rules, "light", for_conditions=["Seen"]).metadata.name == "light"
    light.delete(rules, "light", cascade=CascadeType.FOREGROUND)


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ({"tier": ["back", "front"], "old": operators.not_exists()}, ["b", "c"]),
        ({"tier": operators.not_in(["front"])}, ["c", "d"]),
        ({"old": None}, ["a"]),
        ({"tier": operators.not_equal("back")}, ["a", "b", "d"]),
        ({"tier": "front"}, ["a", "b"]),
    ],
)
def test_lightkube_selectors_find_what_they_say(light, labels, expected):
    given = {"a": {"tier": "front", "old": ""}, "b": {"tier": "front"}, "c": {"tier": "back"}}
    for name in "abcd":
        light.create(light_map(name, given.get(name)))
    listed = light.list(ConfigMap, labels=labels, chunk_size=1)
    names = [item.metadata.name for item in listed]
    assert [name for name in names if len(name) == 1] == expected


def test_lightkube_watches_and_reconnects_when_the_server_ends_it(light):
    listed = light.list(ConfigMap)
    assert "m" not in [found.metadata.name for found in listed]
    at = listed.resourceVersion
    light.create(light_map("m", a="1"))
    seen = []
    # The server ends each watch after a second; the client goes on with another one.
    for kind, found in light.watch(ConfigMap, server_timeout=1, resource_version=at):
        if found.metadata.name != "m":
            # The namespace gets a ConfigMap of its own, perhaps as late as this.
            continue
        seen.append((kind, found.data["a"]))
        if len(seen) == 1:
            light.patch(ConfigMap, "m", {"data": {"a": "2"}})
        elif len(seen) == 2:
            light.delete(ConfigMap, "m")
        else:
            break
    assert seen == [("ADDED", "1"), ("MODIFIED", "2"), ("DELETED", "2")]


def test_lightkube_deletes_a_collection(light):
    for name in "abc":
        light.create(light_map(name))
    light.deletecollection(ConfigMap)
    assert [m.metadata.name for m in light.list(ConfigMap) if len(m.metadata.name) == 1] == []


def test_lightkube_loads_custom_kinds_that_do_not_exist(light):
    load_in_cluster_generic_resources(light)
    assert light.get(Namespace, "light").status.phase == "Active"
    with pytest.raises(lightkube.ApiError) as problem:
        light.get(ConfigMap, "none", namespace="nowhere")
    assert problem.value.status.details.kind == "configmaps"


# ---- kr8s


# kr8s says which versions of Kubernetes it was tried with; 1.37 is newer.
KR8S_WARNS = "ignore:Kubernetes version v1.37.0 is not supported:UserWarning"


@pytest.fixture
def kr(server):
    return kr8s.api(kubeconfig=str(server.kubeconfig))


@pytest.mark.filterwarnings(KR8S_WARNS)
def test_kr8s_discovers_creates_labels_waits_and_deletes(kr):
    assert kr.lookup_kind("resourceclaim")[1:] == ("resourceclaims", True)
    assert "resource.k8s.io/v1beta1" in list(kr.api_versions())
    claims = new_class("ResourceClaim", version="resource.k8s.io/v1", plural="resourceclaims")
    made = claims(
        {"metadata": {"name": "c", "namespace": "kr"}, "spec": CLAIM_SPEC}, namespace="kr", api=kr
    )
    made.create()
    assert made.exists()
    made.label({"a": "b"})
    made.annotate({"c": "d"})
    (found,) = kr.get("resourceclaims.resource.k8s.io", namespace="kr", label_selector={"a": "b"})
    assert (found.name, found.annotations["c"]) == ("c", "d")
    made.remove_label("a")
    assert list(kr.get("resourceclaims.resource.k8s.io", namespace="kr", label_selector="a")) == []
    result = {"request": "gpu", "driver": "d.example.com", "pool": "p", "device": "d0"}
    status = {"status": {"allocation": {"devices": {"results": [result]}}}}
    made.patch(status, subresource="status")
    made.wait("jsonpath='{.status.allocation.devices.results[0].device}'=d0", timeout=20)
    made.delete()
    made.wait("delete", timeout=20)
    assert not made.exists()


@pytest.mark.filterwarnings(KR8S_WARNS)
def test_kr8s_watches_pages_and_patches(kr):
    for number in range(3):
        body = {"metadata": {"name": f"m{number}", "namespace": "kr"}, "data": {"a": "b"}}
        Kr8sConfigMap(body, api=kr).create()
    kinds = []
    for kind, found in kr.watch("configmaps", namespace="kr", field_selector="metadata.name=m1"):
        kinds.append(kind)
        if kind == "ADDED":
            found.patch([{"op": "replace", "path": "/data/a", "value": "c"}], type="json")
        elif kind == "MODIFIED":
            found.delete()
        else:
            break
    assert kinds == ["ADDED", "MODIFIED", "DELETED"]
    with pytest.raises(kr8s.NotFoundError):
        Kr8sConfigMap.get("m1", namespace="kr", api=kr)
    with pytest.raises(kr8s.ServerError) as problem:
        Kr8sConfigMap({"metadata": {"name": "m2", "namespace": "kr"}}, api=kr).create()
    assert 'configmaps "m2" already exists' in str(problem.value)


# ---- kopf


OPERATOR = """
    import kopf

    GROUP = "resource.k8s.io"

    @kopf.on.create(GROUP, "v1", "resourceclaims", labels={"kopf": kopf.PRESENT})
    def made(spec, patch, body, **_):
        patch.metadata.annotations["class"] = (
            spec["devices"]["requests"][0]["exactly"]["deviceClassName"])
        patch.status["allocation"] = {"devices": {"results": [
            {"request": "gpu", "driver": "d.example.com", "pool": "p", "device": "d0"}]}}
        kopf.event(body, type="Normal", reason="Seen", message="an operator saw it")

    @kopf.on.field(GROUP, "v1", "resourceclaims", field="metadata.labels.color",
                   labels={"kopf": kopf.PRESENT})
    def colored(new, patch, **_):
        patch.metadata.annotations["color"] = str(new)

    @kopf.on.delete(GROUP, "v1", "resourceclaims", labels={"kopf": kopf.PRESENT})
    def gone(**_):
        pass
"""


@contextmanager
def operator(server):
    """A running operator for the namespace `kopf`."""
    script = server.folder / "operator.py"
    script.write_text(textwrap.dedent(OPERATOR))
    command = [sys.executable, "-m", "kopf", "run", str(script), "--namespace", "kopf"]
    said = server.folder / "kopf.log"
    with said.open("w") as log:
        process = subprocess.Popen(
            [*command, "--standalone"],
            env=os.environ | {"KUBECONFIG": str(server.kubeconfig), "HOME": str(server.folder)},
            stdout=log, stderr=log,
        )  # fmt: skip
        try:
            yield said
        finally:
            process.terminate()
            process.wait(timeout=20)


def wait_until(client, path, told, **query):
    """Follow one object until a change of it satisfies."""
    folder, _, name = path.rpartition("/")
    query |= {"fieldSelector": f"metadata.name={name}", "timeoutSeconds": "30"}
    with following(client, folder, **query) as lines:
        for line in lines:
            if told(line):
                return line["object"]
    raise AssertionError("the change did not come")


def test_kopf_operator_reacts_to_claims_from_creation_to_deletion(server):
    path = "/apis/resource.k8s.io/v1/namespaces/kopf/resourceclaims"
    with server.client() as client, operator(server) as said:

        def annotated(key, value):
            return lambda line: line["object"]["metadata"].get("annotations", {}).get(key) == value

        tree = {"metadata": {"name": "c", "labels": {"kopf": ""}}, "spec": CLAIM_SPEC}
        assert client.post(path, json=tree).status_code == 201
        wait_until(client, f"{path}/c", annotated("class", "none.example.com"))
        wait_until(client, f"{path}/c", lambda line: line["object"]["metadata"].get("finalizers"))
        labels = {"metadata": {"labels": {"color": "red"}}}
        headers = {"content-type": "application/merge-patch+json"}
        client.patch(f"{path}/c", json=labels, headers=headers)
        wait_until(client, f"{path}/c", annotated("color", "red"))
        deleted = client.delete(f"{path}/c").json()["metadata"]
        assert deleted["deletionTimestamp"]
        since = {"resourceVersion": deleted["resourceVersion"]}
        last = wait_until(client, f"{path}/c", lambda line: line["type"] == "DELETED", **since)
        assert last["status"]["allocation"]["devices"]["results"][0]["device"] == "d0"
        events = client.get("/api/v1/namespaces/kopf/events").json()["items"]
        assert "an operator saw it" in [event["message"] for event in events]
        assert "Traceback" not in said.read_text()
