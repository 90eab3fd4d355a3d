"""`redra up --attach` and `redra record` as processes, with another redra as the real cluster."""

import json
import re
import signal
import subprocess

import pytest
import yaml

from tests import command_line, draws
from tests.acceptance.server_process import ServerProcess, following
from tests.command_line import database_running
from tests.prepared_data import prepare
from tests.redra_process import ROOT, RedraProcess
from tests.redra_program import shared_program

pytestmark = [pytest.mark.database, pytest.mark.slow]

PODS = "/api/v1/namespaces/default/pods"
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "waiting"},
    "spec": {
        "containers": [{"name": "c", "image": "i"}],
        "nodeSelector": {"disk": "ssd"},
    },
}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    server = ServerProcess(tmp_path_factory.mktemp("cluster"))
    server.start()
    with server.client() as client:
        client.post("/api/v1/namespaces", json={"metadata": {"name": "default"}})
        made = client.post("/api/v1/nodes", json={
            "apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"},
        })  # fmt: skip
        assert made.status_code == 201
    yield server
    server.end()


def redra(data, *arguments, code=0):
    """What a command prints, and what it says of an error, beside a database that runs."""
    ended, out, err = command_line.redra(*arguments, data=data)
    assert ended == code, out + err
    return out, err


def wait_for_history(client, path):
    """The list at a path of the recorded history, once it is there; each try is a request."""
    for _ in range(600):
        answer = client.get(path)
        if answer.status_code == 200:
            return answer.json()
    raise AssertionError(answer.text)


def wait_until_watched(client):
    """Returns when the server judges the recorded history, for which nobody has asked yet."""
    for _ in range(6000):
        if 'redra_watched_revision{history="prod"}' in client.get("/metrics").text:
            return
    raise AssertionError("the history is not watched over")


@draws.in_turn("ends")
def test_attached_cluster_is_served_as_it_goes_over_the_death_of_either(tmp_path, cluster):
    folder = tmp_path / "redra"
    folder.mkdir()
    server = ServerProcess(
        folder, "--attach", "prod", "--kubeconfig", str(cluster.kubeconfig), "--watch-over", "prod",
        REDRA_LEASE_SECONDS="2",
    )  # fmt: skip
    server.start()
    with server.client() as client, cluster.client() as real:
        wait_until_watched(client)
        listed = wait_for_history(client, f"/h/prod{PODS}")
        version = listed["metadata"]["resourceVersion"]
        with following(client, f"/h/prod{PODS}", resourceVersion=version) as events:
            assert real.post(PODS, json=POD).status_code == 201
            assert next(events)["object"]["metadata"]["name"] == "waiting"
        refused = client.delete(f"/h/prod{PODS}/waiting")
        assert refused.status_code == 405
        why, _ = redra(folder / "data", "why", "pod/waiting", "-n", "default", "--history", "prod")
        assert "waiting" in why
        assert "unsure" not in why
    cluster.restart(signal.SIGKILL)
    server.end(signal.SIGKILL)
    with cluster.client() as real:
        changed = real.patch(f"{PODS}/waiting", json={"metadata": {"labels": {"a": "b"}}}, headers={
            "content-type": "application/merge-patch+json",
        })  # fmt: skip
        assert changed.status_code == 200
    server.start()
    with server.client() as client:
        wait_until_watched(client)
        parameters = {"labelSelector": "a=b"}
        with following(client, f"/h/prod{PODS}", **parameters) as events:
            assert next(events)["object"]["metadata"]["labels"] == {"a": "b"}
    server.end()
    with database_running(folder / "data"):
        lines, _ = redra(folder / "data", "log", "prod")
        redra(folder / "data", "head", "prod")
    log = [json.loads(line) for line in lines.splitlines()]
    assert not [event for event in log if event["type"] == "GapObserved"]
    assert log[-1]["payload"]["object"]["phase"] == "stopped"
    assert "Traceback" not in server.log.read_text()


@draws.in_turn("ends")
def test_command_records_until_it_is_stopped_and_goes_on(tmp_path, cluster):
    data = tmp_path / "data"
    prepare(data)
    words = ["record", "--history", "prod", "--kubeconfig", cluster.kubeconfig, "--data", data]
    for name in ("a", "b"):
        process = RedraProcess(words)
        assert "recording http://127.0.0.1" in process.stdout.readline()
        with cluster.client() as real:
            node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}
            assert real.post("/api/v1/nodes", json=node).status_code == 201
        process.send_signal(signal.SIGTERM)
        out, errors = process.communicate(timeout=60)
        count, way_on = out.splitlines()
        assert re.fullmatch(r"history prod: \d+ events; .* continues the recording", count)
        assert way_on == "to see what is wrong in it: redra findings prod"
        connecting, what = errors.splitlines()
        assert process.returncode == 0
        assert connecting == f"connecting to the cluster ({cluster.kubeconfig})"
        assert what.startswith("the cluster is a v1.")
    with database_running(data):
        lines, _ = redra(data, "timeline", "prod", "-o", "json")
        listed, _ = redra(data, "log", "prod")
    assert json.loads(lines)
    names = [json.loads(line)["payload"]["name"] for line in listed.splitlines()]
    assert {"a", "b", "n1"} <= set(names)


@draws.in_turn("refusals")
def test_what_cannot_be_recorded_is_one_sentence_and_code_2(tmp_path, cluster):
    data = tmp_path / "data"
    missing = tmp_path / "missing"
    refused = (
        ("record", "--history", "prod", "--kubeconfig", str(missing)),
        ("record", "--history", "prod", "--kubeconfig", str(cluster.kubeconfig), "--context", "x"),
        ("record", "--history", "NOT A NAME", "--kubeconfig", str(cluster.kubeconfig)),
        ("record", "--kubeconfig", str(cluster.kubeconfig)),
        ("record", "--history", "prod", "--kubeconfig", str(cluster.kubeconfig),
         "--include", "gadgets"),
        ("up", "--listen", "127.0.0.1:0", "--attach", "prod", "--kubeconfig", str(missing)),
    )  # fmt: skip
    with database_running(data):
        for arguments in refused:
            _, err = redra(data, *arguments, code=2)
            *steps, problem = err.splitlines()
            assert problem.startswith("redra: ")
            assert not [step for step in steps if "connecting to the cluster (" not in step], err
        listed, _ = redra(data, "histories")
    assert "prod" not in listed


def test_role_that_is_printed_allows_reading_and_nothing_else():
    printed = subprocess.run(
        [shared_program(), "record", "--rbac", "--without", "events"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert "kind: ClusterRole" in printed
    assert "resourceslices" in printed
    assert "secrets" not in printed
    assert "- events" not in printed
    assert not {"create", "update", "patch", "delete", "'*'"} & set(printed.split())


def test_roles_of_one_namespace_allow_reading_there_and_kinds_without_a_namespace():
    printed, _ = redra(None, "record", "--rbac", "-n", "shop", "--include", "a.example.com")
    cluster, role = yaml.safe_load_all(printed)
    assert (cluster["kind"], role["kind"]) == ("ClusterRole", "Role")
    assert role["metadata"] == {"name": "redra-record", "namespace": "shop"}
    # Applied beside the role of a recorder of all namespaces, it takes no rights from that.
    assert cluster["metadata"] == {"name": "redra-record-shop"}
    beyond, within = (
        {(group, name) for rule in each["rules"] for group in rule["apiGroups"]
         for name in rule["resources"]}
        for each in (cluster, role)
    )  # fmt: skip
    assert not beyond & within
    assert {("", "nodes"), ("resource.k8s.io", "resourceslices"), ("example.com", "a")} <= beyond
    assert {("", "pods"), ("resource.k8s.io", "resourceclaims")} <= within
    assert ("", "pods") not in beyond
