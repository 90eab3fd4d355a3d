"""Verbs of kubectl that the checklist does not ask for, and ordinary ones used in unusual ways."""

import re

import pytest

from tests import draws
from tests.acceptance.kubectl_cluster import cluster

pytestmark = [pytest.mark.database, pytest.mark.slow, draws.modules_in_turn("kubectl")]

MAP = """
apiVersion: v1
kind: ConfigMap
metadata: {name: NAME, labels: {app: p}}
data: {a: b}
"""
DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: d}
spec:
  replicas: 1
  selector: {matchLabels: {a: b}}
  template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: "i:1"}]}}
"""
NODE = "{apiVersion: v1, kind: Node, metadata: {name: n1}}"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with cluster(tmp_path_factory.mktemp("verbs")) as found:
        found.create(NODE)
        yield found


def image(server):
    template = server.json("get", "deployment", "d")["spec"]["template"]
    return template["spec"]["containers"][0]["image"]


def rolled_out(server):
    said = server.kubectl("rollout", "status", "deployment/d", "--timeout=30s").out
    assert "successfully rolled out" in said


def test_rollout_is_followed_undone_paused_and_restarted(server):
    server.create(DEPLOYMENT)
    rolled_out(server)
    server.kubectl("set", "image", "deployment/d", "c=i:2")
    rolled_out(server)
    history = server.kubectl("rollout", "history", "deployment/d").out
    assert re.findall(r"^(\d+) ", history, re.MULTILINE) == ["1", "2"]
    server.kubectl("rollout", "undo", "deployment/d")
    rolled_out(server)
    assert image(server) == "i:1"
    server.kubectl("rollout", "pause", "deployment/d")
    refused = server.kubectl("rollout", "restart", "deployment/d", code=1)
    assert "can't restart paused deployment" in refused.err
    server.kubectl("rollout", "resume", "deployment/d")
    server.kubectl("rollout", "restart", "deployment/d")
    server.kubectl("set", "resources", "deployment/d", "--limits=cpu=200m")
    server.kubectl("set", "env", "deployment/d", "A=B")
    assert "A=B" in server.kubectl("set", "env", "deployment/d", "--list").out
    rolled_out(server)


def test_scale_expects_what_is_there_and_expose_makes_a_service(server):
    server.create(DEPLOYMENT.replace("name: d", "name: e").replace("a: b", "x: z"))
    wrong = ("scale", "deployment/e", "--current-replicas=5", "--replicas=3")
    assert "Expected replicas to be 5, was 1" in server.kubectl(*wrong, code=1).err
    server.kubectl("scale", "deployment/e", "--current-replicas=1", "--replicas=2")
    ready = "--for=jsonpath={.status.readyReplicas}=2"
    server.kubectl("wait", ready, "deployment/e", "--timeout=30s")
    server.kubectl("wait", "--for=condition=Available", "deployment/e", "--timeout=30s")
    server.kubectl("expose", "deployment/e", "--port=80", "--target-port=8080")
    assert server.json("get", "service", "e")["spec"]["selector"] == {"x": "z"}


def test_prune_removes_what_is_applied_no_more(server):
    server.apply(MAP.replace("NAME", "one"))
    only = ("--prune", "-l", "app=p", "--prune-allowlist=core/v1/ConfigMap")
    said = server.apply(MAP.replace("NAME", "two"), *only).out
    assert "configmap/one pruned" in said
    assert server.kubectl("get", "cm", "-l", "app=p", "-o", "name").out == "configmap/two\n"


def test_last_applied_is_shown_and_set(server):
    tree = MAP.replace("NAME", "three")
    server.create(tree)
    server.apply(tree.replace("a: b", "a: c"), "--dry-run=client")
    words = ("apply", "set-last-applied", "--create-annotation", "-f", "-")
    server.kubectl(*words, stdin=tree)
    assert "a: b" in server.kubectl("apply", "view-last-applied", "cm/three").out


def test_capacity_of_a_node_is_patched_through_its_status(server):
    change = '{"status":{"capacity":{"example.com/x":"5"}}}'
    words = ("patch", "node", "n1", "--subresource=status", "--type=merge", "-p")
    server.kubectl(*words, change)
    capacity = server.kubectl("get", "node", "n1", "-o", "jsonpath={.status.capacity}").out
    assert '"example.com/x":"5"' in capacity


def test_taint_is_overwritten_only_when_asked_to(server):
    server.kubectl("taint", "node", "n1", "k=v:PreferNoSchedule")
    refused = server.kubectl("taint", "node", "n1", "k=v:PreferNoSchedule", code=1)
    assert "--overwrite is false" in refused.err
    server.kubectl("taint", "node", "n1", "k=w:PreferNoSchedule", "--overwrite")
    server.kubectl("taint", "node", "n1", "k:PreferNoSchedule-")
    assert "k" not in [t["key"] for t in server.json("get", "node", "n1")["spec"].get("taints", [])]


REFUSALS = [
    (("get", "--raw", "/nonsense"), "could not find the requested resource"),
    (("set", "selector", "service/none", "a=b"), 'services "none" not found'),
    (("top", "pods"), "Metrics API not available"),
]


def test_what_is_not_served_is_said_so(server):
    for words, reason in REFUSALS:
        assert reason in server.kubectl(*words, code=1).err


UPGRADES = [
    ("cp", "shell:/etc/hosts", "/dev/null"),
    ("exec", "shell", "--", "ls"),
    ("attach", "shell"),
    ("port-forward", "shell", "8080:80"),
]


def test_nothing_can_be_done_inside_a_container(server):
    server.kubectl("run", "shell", "--image=i")
    for words in UPGRADES:
        said = server.kubectl(*words, code=1).err
        assert "unable to upgrade connection: an emulated node runs no containers" in said


def test_containers_and_pods_for_debugging_are_added(server):
    server.kubectl("run", "sick", "--image=i")
    server.kubectl("debug", "sick", "--image=busybox", "-c", "look")
    found = server.json("get", "pod", "sick")["spec"]["ephemeralContainers"]
    assert [container["name"] for container in found] == ["look"]
    server.kubectl("debug", "sick", "--image=busybox", "--copy-to=twin")
    assert len(server.json("get", "pod", "twin")["spec"]["containers"]) == 2
    said = server.kubectl("debug", "node/n1", "--image=busybox").out
    assert "Creating debugging pod node-debugger-n1-" in said


def test_editor_changes_a_deployment_and_its_account(server):
    server.create(DEPLOYMENT.replace("name: d", "name: f").replace("a: b", "f: f"))
    server.kubectl("edit", "deployment", "f", editor="sed -i s/i:1/i:9/")
    server.kubectl("set", "serviceaccount", "deployment", "f", "driver")
    spec = server.json("get", "deployment", "f")["spec"]["template"]["spec"]
    assert (spec["containers"][0]["image"], spec["serviceAccountName"]) == ("i:9", "driver")


CLAIM = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: NAME, labels: {half: "HALF"}}
spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.example.com}}]}}
---
"""


def test_lists_by_pages_and_selectors_leave_later_lists_whole(server):
    server.kubectl("create", "namespace", "pages")
    every = [f"resourceclaim.resource.k8s.io/c{number}" for number in range(7)]
    text = "".join(
        CLAIM.replace("NAME", f"c{number}").replace("HALF", str(number % 2)) for number in range(7)
    )
    server.create(text, namespace="pages")

    def listed(*words):
        return server.kubectl(
            "get", "resourceclaims", "-o", "name", *words, namespace="pages"
        ).out.split()

    for _ in range(2):
        for size in ("2", "3", "0"):
            assert listed(f"--chunk-size={size}") == every
            assert listed(f"--chunk-size={size}", "-l", "half=0") == every[::2]
    deleted = server.kubectl("delete", "resourceclaims", "--all", namespace="pages").out
    assert deleted.count("deleted") == 7
    assert listed() == []
