"""Python clients that know nothing of redra (api.md 13)."""

import subprocess
import sys
import textwrap

import pytest

from tests import draws
from tests.acceptance.kubectl_cluster import cluster

pytestmark = [pytest.mark.database, pytest.mark.slow, draws.modules_in_turn("clients")]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with cluster(tmp_path_factory.mktemp("clients")) as found:
        yield found


def run(server, code):
    """Run a script in a process of its own, so that no client leaves anything in this one."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env={"KUBECONFIG": str(server.kubeconfig), "HOME": str(server.folder), "PATH": "/usr/bin"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_typed_client_creates_patches_watches_and_deletes(server):
    run(
        server,
        """
        from kubernetes import client, config, watch

        config.load_kube_config()
        api = client.ResourceV1Api()
        body = {
            "metadata": {"name": "typed"},
            "spec": {"devices": {"requests": [
                {"name": "gpu", "exactly": {"deviceClassName": "none.x"}}]}},
        }
        made = api.create_namespaced_resource_claim("default", body)
        assert made.metadata.uid
        listed = api.list_namespaced_resource_claim("default")
        assert "typed" in [item.metadata.name for item in listed.items]
        labels = {"metadata": {"labels": {"a": "b"}}}
        api.patch_namespaced_resource_claim("typed", "default", labels)
        read = api.read_namespaced_resource_claim("typed", "default")
        assert read.metadata.labels == {"a": "b"}
        read.metadata.labels = {"a": "c"}
        replaced = api.replace_namespaced_resource_claim("typed", "default", read)
        assert replaced.metadata.labels == {"a": "c"}
        seen = []
        stream = watch.Watch(return_type="ResourceV1ResourceClaim").stream(
            api.list_namespaced_resource_claim, "default", timeout_seconds=10,
            field_selector="metadata.name=typed", _request_timeout=20,
        )
        for event in stream:
            seen.append(event["type"])
            if event["type"] == "ADDED":
                api.delete_namespaced_resource_claim("typed", "default")
            if event["type"] == "DELETED":
                break
        assert seen == ["ADDED", "DELETED"], seen
        core = client.CoreV1Api()
        core.create_namespace({"metadata": {"name": "from-python"}})
        assert core.read_namespace("from-python").status.phase == "Active"
        try:
            core.read_namespaced_pod("none", "default")
        except client.ApiException as problem:
            assert problem.status == 404
        """,
    )


def test_dynamic_client_discovers_and_applies(server):
    run(
        server,
        """
        from kubernetes import client, config, dynamic

        api = dynamic.DynamicClient(config.new_client_from_config())
        maps = api.resources.get(api_version="v1", kind="ConfigMap")
        body = {
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "dyn"},
            "data": {"a": "b"},
        }
        made = maps.server_side_apply(body, namespace="default", name="dyn", field_manager="py")
        assert made.data.a == "b"
        rules = api.resources.get(api_version="resource.k8s.io/v1beta2", kind="DeviceTaintRule")
        assert rules.get().items == []
        maps.delete(name="dyn", namespace="default")
        """,
    )


def test_asyncio_client_lists_and_watches(server):
    run(
        server,
        """
        import asyncio
        from kubernetes_asyncio import client, config, watch

        async def main():
            await config.load_kube_config()
            async with client.ApiClient() as connection:
                core = client.CoreV1Api(connection)
                await core.create_namespaced_config_map("default", {"metadata": {"name": "aio"}})
                async with watch.Watch().stream(
                    core.list_namespaced_config_map, "default",
                    field_selector="metadata.name=aio", timeout_seconds=10,
                ) as stream:
                    async for event in stream:
                        assert event["object"].metadata.name == "aio"
                        break
                await core.delete_namespaced_config_map("aio", "default")

        asyncio.run(main())
        """,
    )


def test_lightkube_applies_lists_and_deletes(server):
    run(
        server,
        """
        from lightkube import ApiError, Client
        from lightkube.models.meta_v1 import ObjectMeta
        from lightkube.resources.core_v1 import ConfigMap

        client = Client(field_manager="lk")
        named = ObjectMeta(name="lk", namespace="default")
        client.apply(ConfigMap(metadata=named, data={"a": "b"}))
        client.patch(ConfigMap, "lk", {"metadata": {"labels": {"x": "y"}}}, namespace="default")
        names = [m.metadata.name for m in client.list(
            ConfigMap, namespace="default", labels={"x": ["y", "z"]})]
        assert names == ["lk"], names
        for kind, found in client.watch(
            ConfigMap, namespace="default", fields={"metadata.name": "lk"}, server_timeout=5
        ):
            assert (kind, found.metadata.name) == ("ADDED", "lk")
            break
        client.delete(ConfigMap, "lk", namespace="default")
        try:
            client.get(ConfigMap, "lk", namespace="default")
        except ApiError as problem:
            assert problem.status.code == 404
            assert problem.status.details.kind == "configmaps"
        else:
            raise SystemExit("it is still there")
        """,
    )


def test_kr8s_finds_kinds_by_legacy_discovery(server):
    run(
        server,
        """
        import kr8s
        from kr8s.objects import ConfigMap

        api = kr8s.api()
        assert api.version()["major"] == "1"
        made = ConfigMap({"metadata": {"name": "kr", "namespace": "default"}, "data": {"a": "b"}})
        made.create()
        made.patch({"data": {"a": "c"}})
        (found,) = kr8s.get("configmaps", "kr", namespace="default")
        assert found.raw["data"]["a"] == "c"
        assert list(kr8s.get("deviceclasses.resource.k8s.io")) == []
        api.whoami()
        made.delete()
        """,
    )


def test_kopf_operator_handles_what_appears(server):
    script = server.folder / "operator.py"
    script.write_text(
        textwrap.dedent(
            """
            import kopf

            @kopf.on.create("", "v1", "configmaps", labels={"kopf": "yes"})
            def made(name, patch, **_):
                patch.metadata.annotations["handled"] = "yes"

            @kopf.on.delete("", "v1", "configmaps", labels={"kopf": "yes"})
            def gone(**_):
                pass
            """
        )
    )
    log = (server.folder / "kopf.log").open("w")
    operator = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "kopf",
            "run",
            str(script),
            "--namespace",
            "default",
            "--standalone",
        ],
        env={"KUBECONFIG": str(server.kubeconfig), "HOME": str(server.folder), "PATH": "/usr/bin"},
        stdout=subprocess.DEVNULL,
        stderr=log,
    )
    try:
        tree = """
        {apiVersion: v1, kind: ConfigMap, metadata: {name: kopfed, labels: {kopf: "yes"}}}
        """
        server.create(tree)
        server.kubectl(
            "wait", "--for=jsonpath={.metadata.annotations.handled}=yes", "cm/kopfed",
            "--timeout=30s",
        )  # fmt: skip
        assert server.json("get", "cm", "kopfed")["metadata"]["finalizers"]
        server.kubectl("delete", "cm", "kopfed", "--timeout=30s")
    finally:
        operator.terminate()
        operator.wait(timeout=20)
        log.close()
