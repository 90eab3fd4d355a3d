"""The checklist of the API contract, row by row, with the real kubectl (api.md 15)."""

import json
import re
import select

import pytest

from tests import draws
from tests.acceptance.kubectl_cluster import cluster

pytestmark = [pytest.mark.database, pytest.mark.slow, draws.in_turn("rows of the checklist")]

CLAIM = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: c1, labels: {app: a}}
spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: none.example.com}}]}}
"""
MAP = """
apiVersion: v1
kind: ConfigMap
metadata: {name: m1}
data: {a: b}
"""
RULE = """
apiVersion: resource.k8s.io/v1
kind: DeviceTaintRule
metadata: {name: NAME, labels: {a: b}}
spec: {deviceSelector: {driver: nobody.example.com}, taint: {key: k, value: v, effect: NoExecute}}
"""
NODE = """
apiVersion: v1
kind: Node
metadata: {name: NAME}
"""
POD = """
apiVersion: v1
kind: Pod
metadata: {name: p1, labels: {app: a}}
spec: {containers: [{name: c, image: i}]}
"""
SLICE = """
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: NAME}
spec:
  driver: d.example.com
  nodeName: NAME
  pool: {name: NAME, generation: 1, resourceSliceCount: 1}
  devices: [{name: d0, attributes: {model: {string: x}}}]
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with cluster(tmp_path_factory.mktemp("kubectl")) as found:
        yield found


@pytest.fixture
def space(server, request):
    """The server with a namespace of the test's own."""
    name = re.sub(r"[^a-z0-9]+", "-", request.node.name.lower())[:50].strip("-")
    server.make_namespace(name)
    return server.within(name)


# ---- 1, 2: what there is


def test_version_and_lists_of_what_is_served(server):
    assert "Server Version: v1.37.0" in server.kubectl("version").out
    assert "resource.k8s.io/v1\n" in server.kubectl("api-versions").out
    listed = server.kubectl("api-resources").out
    assert re.search(r"^pods +po +v1 +true +Pod$", listed, re.MULTILINE)
    assert "resourceclaims" in server.kubectl("api-resources", "--api-group=resource.k8s.io").out
    in_all = server.kubectl("api-resources", "--categories=all", "-o", "name").out.split()
    assert "pods" in in_all
    assert "nodes" not in in_all
    verbs = server.kubectl("api-resources", "--verbs=deletecollection", "-o", "name").out.split()
    assert "namespaces" not in verbs


def test_explain_shows_fields_in_any_version(server):
    said = server.kubectl("explain", "resourceclaim.spec.devices.requests").out
    assert "FIELD: requests <[]DeviceRequest>" in said
    assert "exactly\t<ExactDeviceRequest>" in said
    deep = server.kubectl(
        "explain", "resourceclaim", "--recursive", "--api-version=resource.k8s.io/v1beta1"
    ).out
    assert "deviceClassName\t<string>" in deep
    assert "devicetaintrule" in server.kubectl("explain", "devicetaintrules").out.lower()


# ---- 3, 4: reading


def test_get_in_every_output_form(space):
    space.create(CLAIM)
    assert re.search(
        r"^NAME +STATE +AGE\nc1 +pending +\d+s$", space.kubectl("get", "resourceclaims").out.strip()
    )
    assert "app=a" in space.kubectl("get", "resourceclaims", "--show-labels").out
    assert space.kubectl("get", "resourceclaims", "-o", "name").out == (
        "resourceclaim.resource.k8s.io/c1\n"
    )
    assert (
        space.kubectl("get", "resourceclaim", "c1", "-o", "jsonpath={.kind}").out == "ResourceClaim"
    )
    assert "kind: ResourceClaim" in space.kubectl("get", "resourceclaim/c1", "-o", "yaml").out
    columns = space.kubectl("get", "resourceclaims", "-o", "custom-columns=N:.metadata.name").out
    assert columns == "N\nc1\n"
    assert space.namespace in space.kubectl("get", "resourceclaims", "-A", namespace="").out
    assert "c1" in space.kubectl("get", "resourceclaims", "--sort-by=.metadata.name").out
    assert "c1" in space.kubectl("get", "resourceclaims", "-o", "wide").out


def test_get_with_selectors_and_pages(space):
    for number in range(5):
        space.create(MAP.replace("m1", f"m{number}"))
    space.kubectl("label", "configmap", "m2", "x=y")
    assert space.kubectl("get", "cm", "-l", "x=y", "-o", "name").out == "configmap/m2\n"
    assert space.kubectl("get", "cm", "-l", "x in (y),!z", "-o", "name").out == "configmap/m2\n"
    found = space.kubectl("get", "cm", "--field-selector", "metadata.name=m3", "-o", "name").out
    assert found == "configmap/m3\n"
    paged = space.kubectl("get", "cm", "--chunk-size=2", "-o", "name").out.split()
    assert len([name for name in paged if name != "configmap/kube-root-ca.crt"]) == 5


def test_get_of_an_older_version_warns(space):
    space.create(CLAIM)
    result = space.kubectl("get", "resourceclaims.v1beta1.resource.k8s.io", "c1", "-o", "yaml")
    assert "apiVersion: resource.k8s.io/v1beta1" in result.out
    assert "Warning: resource.k8s.io/v1beta1 ResourceClaim is deprecated" in result.err


def test_get_all_and_several_kinds(space):
    space.create(POD)
    space.create(MAP)
    assert "pod/p1" in space.kubectl("get", "all").out
    both = space.kubectl("get", "pods,configmaps").out
    assert "pod/p1" in both
    assert "configmap/m1" in both


def test_get_follows_changes(space):
    space.create(MAP)
    with space.running("get", "cm", "m1", "-w", "-o", "jsonpath={.data.a}{'\\n'}") as following:
        assert following.stdout.readline() == "b\n"
        space.kubectl("patch", "cm", "m1", "-p", '{"data":{"a":"c"}}')
        assert "c\n" in iter(following.stdout.readline, "")


def test_watch_only_leaves_out_what_exists(space):
    space.create(MAP)
    with space.running("get", "cm", "--watch-only", "-o", "name") as following:
        # The watch begins some time after its process: new objects come until one is seen.
        for number in range(100):
            space.create(MAP.replace("m1", f"later{number}"))
            if select.select([following.stdout], [], [], 0)[0]:
                break
        assert following.stdout.readline().startswith("configmap/later")


def test_watch_of_a_table_names_the_events(space):
    with space.running("get", "cm", "-w", "--output-watch-events") as following:
        space.create(MAP)
        for line in following.stdout:
            if "m1" in line:
                assert line.startswith("ADDED")
                break


def test_describe_of_every_kind(space):
    name = space.namespace
    space.create(CLAIM)
    space.create(POD)
    space.create(NODE.replace("NAME", name))
    space.create(SLICE.replace("NAME", name))
    space.create(RULE.replace("NAME", name))
    assert (
        "Device Class Name:  none.example.com"
        in space.kubectl("describe", "resourceclaim", "c1").out
    )
    assert "QoS Class:" in space.kubectl("describe", "pod", "p1").out
    node = space.kubectl("describe", "node", name).out
    assert re.search(rf"d\.example\.com +{name} +1 +1", node)
    assert re.search(
        r"Driver: +d\.example\.com", space.kubectl("describe", "resourceslice", name).out
    )
    assert "NoExecute" in space.kubectl("describe", "devicetaintrule", name).out
    assert "Status:  " in space.kubectl("describe", "namespace", name).out
    space.kubectl("delete", "node,resourceslice,devicetaintrule", name)


# ---- 6, 7, 8: creating and applying


def test_create_from_files_lists_and_generated_names(space):
    said = space.create(CLAIM + "---" + MAP).out
    assert said.split("\n")[:2] == [
        "resourceclaim.resource.k8s.io/c1 created",
        "configmap/m1 created",
    ]
    items = ", ".join(
        f"{{apiVersion: v1, kind: ConfigMap, metadata: {{name: l{number}}}}}" for number in (1, 2)
    )
    listed = space.create(f"apiVersion: v1\nkind: List\nitems: [{items}]").out
    assert listed == "configmap/l1 created\nconfigmap/l2 created\n"
    generated = space.create(MAP.replace("name: m1", "generateName: g-")).out
    assert re.fullmatch(r"configmap/g-[a-z0-9]{5} created\n", generated)
    again = space.create(MAP, code=1)
    assert 'configmaps "m1" already exists' in again.err


PROTOBUF = [
    ("configmap", "x", "--from-literal=a=b"),
    ("secret", "generic", "x", "--from-literal=a=b"),
    ("serviceaccount", "x"),
    ("deployment", "x", "--image=i"),
    ("job", "x", "--image=i"),
    ("cronjob", "x", "--image=i", "--schedule=* * * * *"),
    ("role", "x", "--verb=get", "--resource=pods"),
    ("rolebinding", "x", "--role=x", "--user=u"),
    ("poddisruptionbudget", "x", "--selector=app=a", "--min-available=1"),
    ("service", "clusterip", "x", "--tcp=80"),
    ("quota", "x", "--hard=pods=1"),
]


def test_create_commands_send_protobuf(space):
    for words in PROTOBUF:
        assert " created" in space.kubectl("create", *words).out
    assert space.json("get", "secret", "x")["data"] == {"a": "Yg=="}
    assert space.json("get", "pdb", "x")["spec"]["minAvailable"] == 1
    assert space.json("get", "quota", "x")["spec"]["hard"] == {"pods": "1"}
    job = space.json("get", "job", "x")
    assert job["spec"]["template"]["spec"]["containers"][0]["image"] == "i"


def test_apply_creates_configures_and_leaves_alone(space):
    assert space.apply(MAP).out == "configmap/m1 created\n"
    assert space.apply(MAP).out == "configmap/m1 unchanged\n"
    assert space.apply(MAP.replace("a: b", "c: d")).out == "configmap/m1 configured\n"
    assert space.json("get", "cm", "m1")["data"] == {"c": "d"}


def test_apply_again_after_defaulting_changes_nothing(space):
    space.apply(CLAIM)
    before = space.json("get", "resourceclaim", "c1")["metadata"]["resourceVersion"]
    space.apply(CLAIM)
    assert space.json("get", "resourceclaim", "c1")["metadata"]["resourceVersion"] == before


def test_server_side_apply_knows_the_owners(space):
    side = ("--server-side",)
    assert "serverside-applied" in space.apply(MAP, *side).out
    space.apply(MAP, *side, "--field-manager=other")
    refused = space.apply(MAP.replace("a: b", "a: c"), *side, "--field-manager=third", code=1)
    assert 'conflicts with "kubectl":\n- .data.a' in refused.err
    space.apply(MAP.replace("a: b", "a: c"), *side, "--field-manager=third", "--force-conflicts")
    space.apply(MAP.replace("a: b", "x: z"), *side, "--field-manager=third")
    assert space.json("get", "cm", "m1")["data"] == {"x": "z"}


def test_server_side_apply_takes_over_from_client_side(space):
    space.apply(MAP)
    space.apply(MAP, "--server-side")
    managers = {
        (entry["manager"], entry["operation"])
        for entry in space.json("get", "cm", "m1", "--show-managed-fields")["metadata"][
            "managedFields"
        ]
    }
    assert ("kubectl", "Apply") in managers


def test_client_side_and_server_side_apply_may_follow_each_other(space):
    space.apply(MAP)
    changed = MAP.replace("a: b", "a: c")
    refused = space.apply(changed, "--server-side", "--field-manager=another", code=1)
    assert "conflict" in refused.err
    space.apply(MAP.replace("a: b", "a: c, only: there"), "--server-side")
    assert space.json("get", "cm", "m1")["data"] == {"a": "c", "only": "there"}
    space.apply(changed)
    assert space.json("get", "cm", "m1")["data"] == {"a": "c"}


# ---- 9, 10, 11, 12: changing


def test_dry_run_changes_nothing(space):
    assert "created (server dry run)" in space.create(MAP, "--dry-run=server").out
    space.kubectl("get", "cm", "m1", code=1)
    space.apply(MAP)
    space.apply(MAP.replace("a: b", "a: c"), "--dry-run=server")
    space.kubectl("label", "cm", "m1", "x=y", "--dry-run=server")
    space.kubectl("delete", "cm", "m1", "--dry-run=server")
    assert space.json("get", "cm", "m1")["data"] == {"a": "b"}


def test_diff_tells_by_its_exit_code(space):
    space.apply(MAP)
    space.kubectl("diff", "-f", "-", stdin=MAP)
    told = space.kubectl("diff", "-f", "-", stdin=MAP.replace("a: b", "a: c"), code=1)
    assert "+  a: c" in told.out


def test_edit_changes_the_object(space):
    space.apply(MAP)
    editor = space.folder / "editor"
    editor.write_text('#!/bin/sh\nsed -i "s/^  a: b/  a: edited/" "$1"\n')
    editor.chmod(0o755)
    assert "edited" in space.kubectl("edit", "cm", "m1", editor=str(editor)).out
    assert space.json("get", "cm", "m1")["data"] == {"a": "edited"}


def test_replace_refuses_a_stale_version(space):
    space.create(MAP)
    stale = json.dumps(space.json("get", "cm", "m1"))
    assert "replaced" in space.kubectl("replace", "-f", "-", stdin=MAP.replace("a: b", "a: c")).out
    refused = space.kubectl("replace", "-f", "-", stdin=stale, code=1)
    assert "the object has been modified" in refused.err


PATCHES = [
    ("merge", '{"data":{"a":null,"x":"y"}}'),
    ("strategic", '{"data":{"a":null,"x":"y"}}'),
    ("json", '[{"op":"remove","path":"/data/a"},{"op":"add","path":"/data/x","value":"y"}]'),
]


@pytest.mark.parametrize(("kind", "patch"), PATCHES, ids=[row[0] for row in PATCHES])
def test_patch_of_each_type(space, kind, patch):
    space.create(MAP)
    space.kubectl("patch", "cm", "m1", f"--type={kind}", "-p", patch)
    assert space.json("get", "cm", "m1")["data"] == {"x": "y"}


def test_patch_of_the_status_leaves_the_spec(space):
    space.create(CLAIM)
    change = {"status": {"devices": []}, "spec": {"devices": {}}}
    space.kubectl(
        "patch", "resourceclaim", "c1", "--subresource=status", "--type=merge", "-p",
        json.dumps(change),
    )  # fmt: skip
    assert space.json("get", "resourceclaim", "c1", "--subresource=status")["spec"]["devices"][
        "requests"
    ]


def test_label_annotate_taint_and_cordon(space):
    name = space.namespace
    space.create(NODE.replace("NAME", name))
    space.kubectl("label", "node", name, "x=y")
    space.kubectl("annotate", "node", name, "n=m")
    space.kubectl("taint", "nodes", name, "k=v:NoSchedule")
    space.kubectl("cordon", name)
    node = space.json("get", "node", name)
    assert node["metadata"]["labels"]["x"] == "y"
    assert node["metadata"]["annotations"]["n"] == "m"
    assert {"key": "k", "value": "v", "effect": "NoSchedule"} in node["spec"]["taints"]
    assert node["spec"]["unschedulable"] is True
    assert "SchedulingDisabled" in space.kubectl("get", "node", name).out
    space.kubectl("uncordon", name)
    space.kubectl("taint", "nodes", name, "k-")
    assert "unschedulable" not in space.json("get", "node", name)["spec"]
    space.kubectl("delete", "node", name)


def test_drain_evicts_and_honours_budgets(space):
    name = space.namespace
    space.create(NODE.replace("NAME", name))
    tree = POD.replace("spec: {", f"spec: {{nodeName: {name}, terminationGracePeriodSeconds: 0, ")
    space.create(tree)
    ready = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}
    space.kubectl("patch", "pod", "p1", "--subresource=status", "-p", json.dumps(ready))
    space.kubectl("create", "pdb", "b", "--selector=app=a", "--min-available=1")
    refused = space.kubectl("drain", name, "--force", "--timeout=3s", code=1)
    assert "would violate the pod's disruption budget" in refused.said
    space.kubectl("delete", "pdb", "b")
    drained = space.kubectl("drain", name, "--force")
    assert f"node/{name} drained" in drained.out
    space.kubectl("get", "pod", "p1", code=1)
    space.kubectl("delete", "node", name)


# ---- 13: deleting


def test_delete_by_name_label_and_all(space):
    for name in ("a", "b", "c"):
        space.create(MAP.replace("m1", name))
    space.kubectl("label", "cm", "b", "x=y")
    assert 'configmap "a" deleted' in space.kubectl("delete", "cm", "a").out
    assert 'configmap "b" deleted' in space.kubectl("delete", "cm", "-l", "x=y").out
    assert 'configmap "c" deleted' in space.kubectl("delete", "cm", "--all").out
    assert 'configmaps "a" not found' in space.kubectl("delete", "cm", "a", code=1).err


def test_delete_waits_for_finalizers(space):
    space.create(MAP.replace("metadata: {", "metadata: {finalizers: [example.com/f], "))
    waiting = space.kubectl("delete", "cm", "m1", "--timeout=1s", code=1)
    assert "timed out waiting for the condition" in waiting.err
    with space.running("delete", "cm", "m1") as going:
        assert "deleted" in going.stdout.readline()
        space.kubectl("patch", "cm", "m1", "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
        assert going.wait(timeout=30) == 0


@pytest.mark.parametrize("cascade", ["background", "foreground", "orphan"])
def test_delete_with_each_cascade(space, cascade):
    space.create(MAP)
    owner = space.json("get", "cm", "m1")["metadata"]
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "m1", "uid": owner["uid"]}
    child = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "child", "ownerReferences": [reference]},
    }
    space.create(json.dumps(child))
    space.kubectl("delete", "cm", "m1", f"--cascade={cascade}")
    if cascade == "orphan":
        assert "ownerReferences" not in space.json("get", "cm", "child")["metadata"]
    else:
        space.kubectl("wait", "--for=delete", "cm/child", "--timeout=20s")


def test_pod_is_forced_away(space):
    space.create(POD.replace("spec: {", "spec: {nodeName: nowhere, "))
    waiting = space.kubectl("delete", "pod", "p1", "--wait=false").out
    assert "deleted" in waiting
    assert space.json("get", "pod", "p1")["metadata"]["deletionGracePeriodSeconds"] == 30
    space.kubectl("delete", "pod", "p1", "--force", "--grace-period=0")
    space.kubectl("get", "pod", "p1", code=1)


def test_namespace_goes_with_its_content(space):
    space.create(MAP)
    space.create(CLAIM)
    space.kubectl("delete", "namespace", space.namespace)
    space.kubectl("get", "namespace", space.namespace, code=1)


def test_delete_of_a_collection_by_raw_request(space):
    space.create(MAP)
    path = f"/api/v1/namespaces/{space.namespace}/configmaps"
    space.kubectl("delete", "--raw", path)
    assert "m1" not in space.kubectl("get", "cm", "-o", "name").out


# ---- 14, 15: waiting and events


def test_wait_for_a_condition_of_a_rule(space):
    name = space.namespace
    space.create(RULE.replace("NAME", name))
    space.kubectl(
        "wait", "--for=condition=EvictionInProgress=false", f"devicetaintrule/{name}",
        "--timeout=20s",
    )  # fmt: skip
    space.kubectl("delete", "devicetaintrule", name)


def test_wait_for_values_creation_and_deletion(space):
    space.create(MAP)
    space.kubectl("wait", "--for=jsonpath={.data.a}=b", "cm/m1", "--timeout=10s")
    with space.running("wait", "--for=create", "cm/later", "--timeout=20s") as waiting:
        space.create(MAP.replace("m1", "later"))
        assert waiting.wait(timeout=30) == 0
    with space.running("wait", "--for=delete", "cm/later", "--timeout=20s") as waiting:
        space.kubectl("delete", "cm", "later")
        assert waiting.wait(timeout=30) == 0
    late = space.kubectl("wait", "--for=jsonpath={.data.a}=z", "cm/m1", "--timeout=1s", code=1)
    assert "timed out waiting for the condition" in late.err


def test_events_of_one_object(space):
    space.create(POD)
    tree = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "e"},
        "involvedObject": {
            "apiVersion": "v1", "kind": "Pod", "name": "p1", "namespace": space.namespace,
            "uid": space.json("get", "pod", "p1")["metadata"]["uid"],
        },
        "reason": "Testing",
        "message": "a test looks",
        "type": "Normal",
    }  # fmt: skip
    space.create(json.dumps(tree))
    assert "a test looks" in space.kubectl("events").out
    assert "a test looks" in space.kubectl("events", "--for", "pod/p1").out
    assert "Testing" in space.kubectl("get", "events").out
    assert "a test looks" in space.kubectl("describe", "pod", "p1").out


def test_workload_is_scaled(space):
    space.kubectl("create", "deployment", "d", "--image=i")
    assert "scaled" in space.kubectl("scale", "deployment/d", "--replicas=3").out
    assert space.json("get", "deployment", "d")["spec"]["replicas"] == 3


# ---- 16, 17: access, raw requests


def test_access_and_identity(space):
    assert space.kubectl("auth", "can-i", "create", "pods").out == "yes\n"
    assert "*.*" in space.kubectl("auth", "can-i", "--list").out
    assert "Username" in space.kubectl("auth", "whoami").out


def test_raw_requests_cluster_info_and_logs(space):
    assert space.kubectl("get", "--raw", "/readyz").out == "ok"
    assert "is running at" in space.kubectl("cluster-info").out
    space.create(POD.replace("spec: {", "spec: {schedulerName: nobody, "))
    assert space.kubectl("logs", "p1").out == ""
    refused = space.kubectl("exec", "p1", "--", "ls", code=1)
    assert "error" in refused.err.lower()


# ---- 19: refusals


def test_unknown_fields_in_each_mode(space):
    wrong = CLAIM.replace("deviceClassName", "cuont: 1, deviceClassName")
    field = 'unknown field "spec.devices.requests[0].exactly.cuont"'
    assert f"strict decoding error: {field}" in space.create(wrong, code=1).err
    assert f"Warning: {field}" in space.create(wrong, "--validate=warn").err
    space.kubectl("delete", "resourceclaim", "c1")
    assert "Warning" not in space.create(wrong, "--validate=ignore").err


def test_invalid_object_names_every_cause(space):
    request = "{name: gpu, exactly: {deviceClassName: x}}"
    wrong = CLAIM.replace("requests: [", f"requests: [{request}, ")
    refused = space.create(wrong, code=1)
    assert 'The ResourceClaim "c1" is invalid' in refused.err
    assert 'spec.devices.requests[1]: Duplicate value: "gpu"' in refused.err


def test_immutable_spec_is_refused(space):
    space.apply(CLAIM)
    refused = space.apply(CLAIM.replace("name: gpu", "name: other"), code=1)
    assert "field is immutable" in refused.err


# ---- 22: versions, histories


OLD_RULE = RULE.replace("resource.k8s.io/v1\n", "resource.k8s.io/v1alpha3\n")
OLD_CLAIM = """
apiVersion: resource.k8s.io/v1beta1
kind: ResourceClaim
metadata: {name: c1}
spec: {devices: {requests: [{name: gpu, deviceClassName: none.example.com}]}}
"""


def test_older_versions_are_written_and_read_back(space):
    name = space.namespace
    space.apply(OLD_CLAIM)
    space.apply(OLD_CLAIM)
    found = space.json("get", "resourceclaim", "c1")
    assert found["spec"]["devices"]["requests"][0]["exactly"]["count"] == 1
    space.apply(OLD_RULE.replace("NAME", name))
    assert space.json("get", "devicetaintrule", name)["apiVersion"] == "resource.k8s.io/v1"
    space.kubectl("delete", "devicetaintrule", name)


def test_past_is_shown_for_ever_and_cannot_be_changed(space):
    space.create(MAP)
    version = space.json("get", "cm", "m1")["metadata"]["resourceVersion"]
    space.kubectl("delete", "cm", "m1")
    past = f"{space.url}/h/default@{version}"
    assert "m1" in space.kubectl("--server", past, "get", "cm").out
    refused = space.kubectl("--server", past, "delete", "cm", "m1", code=1)
    assert "cannot be changed" in refused.err
