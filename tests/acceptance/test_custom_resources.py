"""Custom kinds with the real kubectl and an operator of kopf."""

import os
import subprocess
import sys
import textwrap
from contextlib import contextmanager
from pathlib import Path

import httpx
import lightkube
import pytest
from kubernetes import client
from kubernetes import config as k8s_config
from kubernetes.dynamic import DynamicClient
from lightkube.config.kubeconfig import KubeConfig
from lightkube.generic_resource import get_generic_resource, load_in_cluster_generic_resources
from lightkube.types import PatchType

from tests import draws
from tests.acceptance.kubectl_cluster import cluster
from tests.acceptance.server_process import following
from tests.patience import PATIENCE_SECONDS

pytestmark = [pytest.mark.database, pytest.mark.slow, draws.modules_in_turn("kubectl")]

DEFINITION = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: crontabs.stable.example.com}
spec:
  group: stable.example.com
  scope: Namespaced
  names: {plural: crontabs, singular: crontab, kind: CronTab, shortNames: [ct], categories: [all]}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        description: CronTab runs things.
        properties:
          spec:
            type: object
            required: [cronSpec]
            properties:
              cronSpec: {type: string, description: When it runs.}
              image: {type: string}
              replicas: {type: integer, default: 1, minimum: 0}
          status: {type: object, x-kubernetes-preserve-unknown-fields: true}
    subresources:
      status: {}
      scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas}
    additionalPrinterColumns:
    - {name: Spec, type: string, jsonPath: .spec.cronSpec}
    - {name: Replicas, type: integer, jsonPath: .spec.replicas}
    - {name: Age, type: date, jsonPath: .metadata.creationTimestamp}
"""
ROOT = Path(__file__).resolve().parent.parent.parent
PAGE = ROOT / "docs" / "how-to" / "custom-resources.md"
OBJECT = """
apiVersion: stable.example.com/v1
kind: CronTab
metadata: {name: NAME}
spec: {cronSpec: "*/5 * * * *", image: img}
"""
OPERATOR = """
    import kopf

    GROUP = "stable.example.com"

    @kopf.on.create(GROUP, "v1", "crontabs")
    def made(spec, patch, **_):
        patch.status["seen"] = spec["cronSpec"]

    @kopf.on.update(GROUP, "v1", "crontabs", field="spec.image")
    def changed(new, patch, **_):
        patch.status["image"] = new

    @kopf.on.delete(GROUP, "v1", "crontabs")
    def gone(**_):
        pass
"""
PATH = "/apis/stable.example.com/v1/namespaces/default/crontabs"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with cluster(tmp_path_factory.mktemp("custom")) as found:
        found.apply(DEFINITION)
        name = "crd/crontabs.stable.example.com"
        found.kubectl("wait", "--for=condition=Established", name, "--timeout=10s")
        yield found


def test_objects_are_applied_shown_explained_and_deleted(server):
    manifest = OBJECT.replace("NAME", "shown")
    assert "created" in server.apply(manifest).out
    assert "unchanged" in server.apply(manifest).out
    header, row = server.kubectl("get", "ct", "shown").out.splitlines()
    assert header.split() == ["NAME", "SPEC", "REPLICAS", "AGE"]
    assert row.split()[:1] == ["shown"]
    assert "crontab.stable.example.com/shown" in server.kubectl("get", "all").out
    said = server.kubectl("explain", "crontab.spec").out
    assert "cronSpec\t<string> -required-" in said
    assert "When it runs." in said
    assert "Cron Spec:" in server.kubectl("describe", "crontab", "shown").out
    server.kubectl("delete", "crontab", "shown")
    assert "NotFound" in server.kubectl("get", "crontab", "shown", code=1).err


def test_page_about_custom_resources_is_right(tmp_path):
    text = PAGE.read_text().partition("```\n")[2].partition("```")[0]
    with cluster(tmp_path) as fresh:
        for line in text.splitlines():
            program, *words = line.split()
            assert program == "kubectl"
            places = [str(ROOT / word) if word.startswith("examples/") else word for word in words]
            done = fresh.kubectl(*places)
    header, row = done.out.splitlines()
    assert header.split() == ["NAME", "SPEC", "REPLICAS"]
    assert row.split()[0] == "nightly"


def test_objects_are_patched_scaled_and_applied_on_the_server(server):
    manifest = OBJECT.replace("NAME", "changed")
    server.apply(manifest, "--server-side")
    server.kubectl("scale", "crontab", "changed", "--replicas=3")
    server.kubectl("patch", "crontab", "changed", "--type=merge", "-p", '{"spec":{"image":"x"}}')
    assert server.json("get", "crontab", "changed")["spec"] == {
        "cronSpec": "*/5 * * * *",
        "image": "x",
        "replicas": 3,
    }
    refused = server.apply(manifest, "--server-side", code=1)
    assert 'conflict with "kubectl-patch" using stable.example.com/v1: .spec.image' in refused.err
    server.apply(manifest, "--server-side", "--force-conflicts")
    assert (
        "+  image: other"
        in server.kubectl("diff", "-f", "-", stdin=manifest.replace("img", "other"), code=1).out
    )
    strategic = server.kubectl("patch", "crontab", "changed", "-p", '{"spec":{}}', code=1)
    assert "application/strategic-merge-patch+json is not supported" in strategic.err


def test_wrong_objects_are_refused_with_the_field(server):
    unknown = OBJECT.replace("NAME", "bad").replace("image", "imag")
    assert 'unknown field "spec.imag"' in server.create(unknown, code=1).err
    wrong = OBJECT.replace("NAME", "bad").replace('"*/5 * * * *"', "5")
    assert "spec.cronSpec in body must be of type string" in server.create(wrong, code=1).err


def test_definition_takes_its_objects_along(server):
    other = DEFINITION.replace("crontab", "gonetab").replace("CronTab", "GoneTab")
    server.apply(other.replace("[ct]", "[gt]"))
    server.apply(OBJECT.replace("NAME", "last").replace("CronTab", "GoneTab"))
    server.kubectl("delete", "crd", "gonetabs.stable.example.com", "--timeout=20s")
    assert "gonetab" not in server.kubectl("api-resources", "--cached=false").out


def test_python_client_writes_the_kind(server):
    place = ("stable.example.com", "v1", "default", "crontabs")
    body = {
        "apiVersion": "stable.example.com/v1",
        "kind": "CronTab",
        "metadata": {"name": "typed"},
        "spec": {"cronSpec": "*"},
    }
    with k8s_config.new_client_from_config(str(server.kubeconfig)) as api:
        objects = client.CustomObjectsApi(api)
        assert objects.create_namespaced_custom_object(*place, body)["spec"]["replicas"] == 1
        patch = {"spec": {"image": "x"}}
        changed = objects.patch_namespaced_custom_object(*place, "typed", patch)
        assert changed["spec"]["image"] == "x"
        found = DynamicClient(api).resources.get(
            api_version="stable.example.com/v1", kind="CronTab"
        )
        body["metadata"] = {"name": "applied"}
        found.server_side_apply(body=body, namespace="default", field_manager="py")
        assert found.get(name="applied", namespace="default").spec.replicas == 1


def test_lightkube_loads_the_kind_from_the_cluster(server):
    server.apply(OBJECT.replace("NAME", "light"))
    with lightkube.Client(config=KubeConfig.from_file(str(server.kubeconfig))) as light:
        load_in_cluster_generic_resources(light)
        kind = get_generic_resource("stable.example.com/v1", "CronTab")
        light.patch(kind, "light", {"spec": {"replicas": 2}}, patch_type=PatchType.MERGE)
        assert light.get(kind, "light").spec["replicas"] == 2
        light.delete(kind, "light")
        assert "light" not in [item.metadata.name for item in light.list(kind)]


@contextmanager
def operator(server):
    """A running operator of all namespaces."""
    script = server.folder / "operator.py"
    script.write_text(textwrap.dedent(OPERATOR))
    with (server.folder / "kopf.log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "kopf", "run", str(script), "-n", "default", "--standalone"],
            env=os.environ | {"KUBECONFIG": str(server.kubeconfig), "HOME": str(server.folder)},
            stdout=log, stderr=log,
        )  # fmt: skip
        try:
            yield
        finally:
            process.terminate()
            process.wait(timeout=20)


def test_kopf_operator_serves_a_custom_kind(server):
    def wait_until(http, told, **query):
        with following(http, PATH, timeoutSeconds="40", **query) as lines:
            for line in lines:
                if line["object"]["metadata"].get("name") == "kopf" and told(line):
                    return line["object"]
        raise AssertionError("the change did not come")

    with httpx.Client(base_url=server.url, timeout=PATIENCE_SECONDS) as http, operator(server):
        server.apply(OBJECT.replace("NAME", "kopf"))
        found = wait_until(http, lambda line: line["object"].get("status", {}).get("seen"))
        assert found["status"]["seen"] == "*/5 * * * *"
        server.kubectl("patch", "crontab", "kopf", "--type=merge", "-p", '{"spec":{"image":"n"}}')
        wait_until(http, lambda line: line["object"].get("status", {}).get("image") == "n")
        deleted = http.delete(f"{PATH}/kopf").json()["metadata"]
        since = {"resourceVersion": deleted["resourceVersion"]}
        wait_until(http, lambda line: line["type"] == "DELETED", **since)
    assert "Traceback" not in (server.folder / "kopf.log").read_text()
