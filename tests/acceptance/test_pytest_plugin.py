"""The pytest plug-in in a project that knows redra only as an installed package."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import draws
from tests.command_line import pytest_command

pytestmark = [draws.modules_in_turn("deliveries"), pytest.mark.slow]

PROJECT = """
import json
import urllib.request

import pytest
from kubernetes import client, config, watch


def api(cluster):
    return client.CoreV1Api(config.new_client_from_config(str(cluster.kubeconfig)))


def node(api):
    ready = {"type": "Ready", "status": "True"}
    room = {"cpu": "4", "memory": "4Gi", "pods": "10"}
    status = {"allocatable": room, "capacity": room, "conditions": [ready]}
    api.create_node({"metadata": {"name": "n1"}})
    api.patch_node_status("n1", {"status": status})


def wait_for_phase(api, phase):
    stream = watch.Watch().stream(api.list_namespaced_pod, "default", timeout_seconds=20)
    assert any(e["object"].status.phase == phase for e in stream), phase


def test_pod_is_placed_and_runs_until_its_time(redra_cluster):
    cluster = api(redra_cluster)
    node(cluster)
    body = {"metadata": {"name": "a", "annotations": {"redra.dev/run-seconds": "3600"}}}
    body["spec"] = {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"}
    cluster.create_namespaced_pod("default", body)
    wait_for_phase(cluster, "Running")
    redra_cluster.advance(3700)
    wait_for_phase(cluster, "Succeeded")


def test_clusters_know_nothing_of_each_other(redra_cluster):
    assert api(redra_cluster).list_node().items == []


@pytest.mark.redra(profile="1.35", without="scheduling")
def test_release_and_controllers_are_chosen(redra_cluster):
    with urllib.request.urlopen(redra_cluster.url + "/version") as answer:
        assert json.load(answer)["minor"] == "35"
    root = redra_cluster.url.partition("/h/")[0]
    path = f"{root}/redra/v1/histories/{redra_cluster.name}/controllers"
    with urllib.request.urlopen(path) as answer:
        states = {each["name"]: each["state"] for each in json.load(answer)["items"]}
    assert [name for name, state in states.items() if state == "off"] == ["scheduling"]


@pytest.mark.redra(profile="1.2")
def test_bad_release_is_refused(redra_cluster):
    raise AssertionError("it is not reached")


@pytest.mark.redra(without=["scheduler"])
def test_unknown_controller_is_refused(redra_cluster):
    raise AssertionError("it is not reached")


@pytest.mark.redra("1.35")
def test_argument_without_a_name_is_refused(redra_cluster):
    raise AssertionError("it is not reached")


@pytest.mark.redra(profil="1.35")
def test_unknown_argument_is_refused(redra_cluster):
    raise AssertionError("it is not reached")


def test_server_is_loaded_as_it_was_compiled_at_its_installation(redra_cluster):
    import sys

    loaded = ("app.testing.clusters", "app.api.application", "projections")
    loaders = {type(sys.modules[name].__spec__.loader).__name__ for name in loaded}
    assert loaders == {"SourceFileLoader"}
    assert type(sys.modules[__name__].__spec__.loader).__name__ == "AssertionRewritingHook"


def test_time_that_cannot_come_is_refused(redra_cluster):
    for seconds in (-1, float("nan"), float("inf"), 1e300, "5"):
        with pytest.raises(Exception, match="time cannot be advanced by"):
            redra_cluster.advance(seconds)
    assert api(redra_cluster).list_node().items == []
"""


def test_fixture_serves_clusters_to_another_project(tmp_path: Path) -> None:
    (tmp_path / "test_project.py").write_text(PROJECT)
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --strict-markers\n")
    command = pytest_command("test_project.py")
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=100)
    assert "\n5 passed, 4 errors" in done.stdout, done.stdout + done.stderr
    assert "there is no controller 'scheduler'" in done.stdout
    assert "the argument '1.35' of the marker redra has no name" in done.stdout
    assert "the marker redra has no argument 'profil'; it has profile, gates" in done.stdout
    assert "InputError" not in done.stdout, "one sentence, and no traceback of redra"
    assert not (tmp_path / ".redra").exists()


def test_kubectl_finds_the_plug_in_and_the_data_of_its_kubeconfig(tmp_path: Path) -> None:
    folder = Path(sys.executable).parent
    environment = os.environ | {"PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}
    environment["KUBECONFIG"] = str(tmp_path / "data" / "kubeconfig")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "kubeconfig").write_text("{}")
    words = [str(folder / "kubectl"), "redra", "histories"]
    done = subprocess.run(
        words, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 2
    assert str(tmp_path / "data") in done.stderr, done.stderr
