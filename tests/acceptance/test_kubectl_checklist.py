"""The finer points of the contract's checklist with the real kubectl (api.md 15).

The main road of each row is in `test_kubectl.py`, row 18 in `test_tls.py`.
"""

import json
import re

import pytest

from app.adapters.history.opening import open_history
from app.adapters.history.reading import ReadOptions
from app.bootstrap.rules import rules_for
from app.domain.objects.profile import Profile
from tests import draws
from tests.acceptance.kubectl_cluster import cluster

pytestmark = [pytest.mark.database, pytest.mark.slow, draws.modules_in_turn("kubectl")]

MAP = """
apiVersion: v1
kind: ConfigMap
metadata: {name: m1}
data: {a: b}
"""
CLASS = """
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: NAME}
spec: {selectors: [{cel: {expression: "device.driver == 'x.example.com'"}}]}
"""
TEMPLATE = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: t1}
spec: {spec: {devices: {requests: [{name: r, exactly: {deviceClassName: none.example.com}}]}}}
"""
RULE = """
apiVersion: resource.k8s.io/v1
kind: DeviceTaintRule
metadata: {name: NAME}
spec: {deviceSelector: {driver: nobody.example.com}, taint: {key: k, effect: None}}
"""
NODE = "{apiVersion: v1, kind: Node, metadata: {name: NAME}}"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with cluster(tmp_path_factory.mktemp("checklist")) as found:
        yield found


@pytest.fixture
def space(server, request):
    """The server with a namespace of the test's own."""
    name = re.sub(r"[^a-z0-9]+", "-", request.node.name.lower())[:50].strip("-")
    server.make_namespace(name)
    return server.within(name)


# ---- what it prints is read back


DESCRIBED = """
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: described, labels: {a: b}}
spec:
  selectors:
  - cel:
      expression: |-
        device.driver == 'x.example.com' &&
        device.attributes['x.example.com'].model in
          ['Name: a', 'b']
  - cel: {expression: "true"}
  config:
  - opaque: {driver: x.example.com, parameters: {mode: {deep: 1}, flags: [a, b], on: true}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: described}
spec:
  driver: x.example.com
  nodeName: described
  pool: {name: described, generation: 3, resourceSliceCount: 2}
  devices:
  - name: d0
    attributes:
      model: {string: "A 100: big"}
      driverVersion: {version: 1.2.3}
      other.example.com/numaNode: {int: 1}
      ECC: {bool: false}
      pciBusID: {string: r}
    capacity: {memory: {value: 40Gi}, cudaCores: {value: "64"}}
    taints: [{key: a/b, effect: NoSchedule}, {key: c, value: d, effect: NoExecute}]
    consumesCounters:
    - counterSet: one
      counters: {memory: {value: 1Gi}}
    - counterSet: two
      counters: {memory-slice-0: {value: "1"}, memory-slice-1: {value: "1"}}
  - {name: d1}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: described, namespace: default}
spec:
  devices:
    requests:
    - name: one
      exactly: {deviceClassName: described, count: 2, tolerations: [{operator: Exists}]}
    - name: two
      firstAvailable:
      - {name: a, deviceClassName: described}
      - {name: b, deviceClassName: described, allocationMode: All}
    constraints:
    - {matchAttribute: x.example.com/model, requests: [one, two]}
    - {distinctAttribute: x.example.com/model}
"""


def test_descriptions_of_kubectl_are_read_as_the_objects_that_they_show(server, tmp_path):
    server.create(DESCRIBED)
    path = tmp_path / "terminal.txt"
    kinds = "deviceclasses,resourceslices,resourceclaims"
    printed = server.kubectl("describe", kinds, "-A").out
    path.write_text(f"# kubectl describe {kinds} -A\n{printed}root@node:~# exit\n")
    with open_history([path], ReadOptions(rules=rules_for(Profile()))) as recorded:
        shown = {(r.kind, r.namespace, r.name): r.object for r in recorded.records()}
    listed = json.loads(server.kubectl("get", kinds, "-A", "-o", "json").out)["items"]
    assert len(listed) == len(shown) >= 3
    for tree in listed:
        metadata = tree["metadata"]
        assert shown[tree["kind"], metadata.get("namespace", ""), metadata["name"]] == tree
    server.kubectl("delete", "deviceclass,resourceslice", "described")
    server.kubectl("delete", "resourceclaim", "described", namespace="default")


# ---- rows 1 to 5: reading


def test_row_1_every_listed_kind_is_found_by_each_of_its_names(server):
    listed = server.kubectl("api-resources", "--verbs=list,get,watch", "-o", "name").out.split()
    assert len(listed) > 25
    server.kubectl("get", ",".join(listed), "-A", namespace="")
    server.kubectl("describe", ",".join(listed))
    server.kubectl("get", "no,ns,po,ev,cm,svc,sa,pdb,crd", "-A", namespace="")
    cluster_wide = server.kubectl("api-resources", "--namespaced=false", "--no-headers").out
    assert re.search(r"^resourceslices +resource.k8s.io/v1 +false", cluster_wide, re.MULTILINE)
    assert "resourceclaims" not in cluster_wide


def test_row_2_explain_refuses_what_is_no_field(server):
    said = server.kubectl("explain", "resourceclaim.spec.nonsense", code=1)
    assert 'field "nonsense" does not exist' in said.err
    flat = server.kubectl(
        "explain", "resourceclaim.spec.devices.requests", "--api-version=resource.k8s.io/v1beta1"
    ).out
    assert "deviceClassName" in flat
    assert "exactly\t<" not in flat


def test_row_3_get_by_file_template_and_absence(space):
    space.create(MAP)
    assert space.kubectl("get", "-f", "-", "-o", "name", stdin=MAP).out == "configmap/m1\n"
    form = "go-template={{range .items}}{{.metadata.name}} {{end}}"
    assert "m1 " in space.kubectl("get", "cm", "-o", form).out
    assert space.kubectl("get", "cm", "none", "--ignore-not-found").said == ""
    assert "NAME" not in space.kubectl("get", "cm", "--no-headers").out


def test_row_4_watch_ends_an_objects_life_with_its_deletion(space):
    space.create(MAP)
    words = ("get", "cm", "-w", "--output-watch-events", "-o", "jsonpath={.type}:{.object.data}")
    with space.running(*words) as following:
        assert following.stdout.read(5) == "ADDED"
        space.kubectl("delete", "cm", "m1")
        said = ""
        while "DELETED" not in said:
            read = following.stdout.read(1)
            assert read, said
            said += read


def test_row_5_describe_shows_events_of_cluster_wide_objects(space):
    name = space.namespace
    space.create(CLASS.replace("NAME", name))
    space.create(TEMPLATE)
    involved = space.json("get", "deviceclass", name)
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "e", "namespace": "default"},
        "involvedObject": {
            "apiVersion": involved["apiVersion"], "kind": "DeviceClass", "name": name,
            "uid": involved["metadata"]["uid"],
        },
        "reason": "Testing",
        "message": "a test looks",
        "type": "Normal",
    }  # fmt: skip
    space.create(json.dumps(event), namespace="default")
    assert "a test looks" in space.kubectl("describe", "deviceclass", name).out
    described = space.kubectl("describe", "resourceclaimtemplate", "t1").out
    assert "Device Class Name:  none.example.com" in described
    space.kubectl("delete", "deviceclass", name)


# ---- rows 6 to 10: writing


def test_row_6_run_and_create_from_a_folder(space):
    space.kubectl("run", "p1", "--image=i", "--labels=a=b", "--port=80", "--env=A=B")
    assert space.json("get", "pod", "p1")["spec"]["containers"][0]["env"] == [
        {"name": "A", "value": "B"}
    ]
    folder = space.folder / "manifests"
    folder.mkdir()
    (folder / "1.yaml").write_text(MAP)
    (folder / "2.json").write_text(
        json.dumps({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}})
    )
    said = space.kubectl("create", "-f", str(folder)).out
    assert said == "configmap/m1 created\nsecret/s created\n"


def test_row_7_apply_of_a_list_tells_each_items_fate(space):
    def listed(**values):
        items = [
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": n}, "data": {"a": v}}
            for n, v in values.items()
        ]
        return json.dumps({"apiVersion": "v1", "kind": "List", "items": items})

    space.apply(listed(x="1", y="1"))
    said = space.apply(listed(x="1", y="2", z="1")).out.splitlines()
    assert said == ["configmap/x unchanged", "configmap/y configured", "configmap/z created"]
    assert '"a":"2"' in space.json("get", "cm", "y")["metadata"]["annotations"].get(
        "kubectl.kubernetes.io/last-applied-configuration"
    )
    assert "a: '2'" in space.kubectl("apply", "view-last-applied", "cm", "y").out.replace('"', "'")


def test_row_8_what_client_side_apply_set_is_removed_by_server_side_apply(space):
    space.apply(MAP.replace("a: b", "a: b, c: d"))
    space.apply(MAP, "--server-side")
    assert space.json("get", "cm", "m1")["data"] == {"a": "b"}
    space.kubectl("patch", "cm", "m1", "-p", '{"data":{"a":"patched"}}')
    refused = space.apply(MAP, "--server-side", code=1)
    assert 'conflict with "kubectl-patch" using v1: .data.a' in refused.err


def test_row_9_dry_run_of_every_write_leaves_no_trace(space):
    name = space.namespace
    space.apply(MAP)
    space.create(NODE.replace("NAME", name))
    space.kubectl("wait", "--for=condition=Ready", f"node/{name}", "--timeout=20s")
    before = space.json("get", "cm/m1")
    node = space.json("get", "node", name)
    changed = MAP.replace("a: b", "a: c")
    for words in (
        ("create", "namespace", "never"),
        ("run", "never", "--image=i"),
        ("annotate", "cm", "m1", "a=b"),
        ("patch", "cm", "m1", "-p", '{"data":{"a":"c"}}'),
        ("taint", "node", name, "k=v:NoExecute"),
        ("cordon", name),
        ("drain", name, "--force"),
        ("delete", "cm", "--all"),
    ):
        space.kubectl(*words, "--dry-run=server")
    space.kubectl("replace", "-f", "-", "--dry-run=server", stdin=changed)
    space.apply(changed, "--server-side", "--force-conflicts", "--dry-run=server")
    space.apply(MAP.replace("m1", "never"), "--server-side", "--dry-run=server")
    assert space.json("get", "cm/m1") == before
    assert space.json("get", "node", name)["spec"] == node["spec"]
    for kind, absent in (("namespace", "never"), ("pod", "never"), ("cm", "never")):
        space.kubectl("get", kind, absent, code=1)
    space.kubectl("delete", "node", name)


def test_row_10_diff_server_side_and_forced_replacement(space):
    space.apply(MAP, "--server-side")
    changed = MAP.replace("a: b", "a: c")
    space.kubectl("diff", "--server-side", "-f", "-", stdin=MAP)
    told = space.kubectl("diff", "--server-side", "-f", "-", stdin=changed, code=1)
    assert "+  a: c" in told.out
    before = space.json("get", "cm", "m1")["metadata"]["uid"]
    space.kubectl("replace", "--force", "-f", "-", stdin=changed)
    after = space.json("get", "cm", "m1")
    assert after["metadata"]["uid"] != before
    assert after["data"] == {"a": "c"}


# ---- rows 11 to 14: changing, deleting, waiting


def test_row_11_conditions_of_a_status_are_merged_by_type(space):
    name = space.namespace
    space.create(RULE.replace("NAME", name))
    for kind in ("One", "Two"):
        condition = {"type": kind, "status": "True", "reason": "R", "message": "",
                     "lastTransitionTime": "2026-01-01T00:00:00Z"}  # fmt: skip
        patch = json.dumps({"status": {"conditions": [condition]}})
        words = ("patch", "devicetaintrule", name, "--subresource=status", "--type=strategic")
        space.kubectl(*words, "-p", patch)
    conditions = space.json("get", "devicetaintrule", name)["status"]["conditions"]
    assert {"One", "Two"} <= {condition["type"] for condition in conditions}
    space.kubectl("delete", "devicetaintrule", name)


def test_row_12_labels_are_overwritten_only_when_asked_to(space):
    space.create(MAP)
    space.kubectl("label", "cm", "m1", "a=1")
    refused = space.kubectl("label", "cm", "m1", "a=2", code=1)
    assert "already has a value (1), and --overwrite is false" in refused.err
    space.kubectl("label", "cm", "m1", "a=2", "--overwrite")
    space.kubectl("annotate", "cm", "-l", "a=2", "n=m")
    space.kubectl("label", "cm", "m1", "a-")
    metadata = space.json("get", "cm", "m1")["metadata"]
    assert "labels" not in metadata
    assert metadata["annotations"] == {"n": "m"}


def test_row_12_drain_leaves_the_pods_of_a_daemon_set(space):
    name = space.namespace
    # Pods that other tests left waiting must not come to this node.
    taints = '[{"key": "own", "effect": "NoSchedule"}]'
    space.create(NODE.replace("NAME}", f"{name}}}, spec: {{taints: {taints}}}"))
    template = {
        "metadata": {"labels": {"a": "b"}},
        "spec": {
            "containers": [{"name": "c", "image": "i"}],
            "tolerations": [{"key": "own", "operator": "Exists"}],
        },
    }
    daemons = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "d"},
        "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template},
    }
    space.create(json.dumps(daemons))
    space.kubectl("rollout", "status", "daemonset/d", "--timeout=20s")
    (pod,) = space.kubectl("get", "pods", "-o", "name").out.split()
    refused = space.kubectl("drain", name, code=1)
    assert "cannot delete DaemonSet-managed Pods" in refused.err
    said = space.kubectl("drain", name, "--ignore-daemonsets").said
    assert "ignoring DaemonSet-managed Pods" in said
    assert space.kubectl("get", "pods", "-o", "name").out.split() == [pod]
    space.kubectl("delete", "daemonset", "d")
    space.kubectl("delete", "node", name)


def test_row_13_delete_by_file_of_several_kinds_and_of_the_absent(space):
    space.create(MAP + "---" + TEMPLATE)
    said = space.kubectl("delete", "-f", "-", stdin=MAP + "---" + TEMPLATE).out
    assert 'configmap "m1" deleted' in said
    assert 'resourceclaimtemplate.resource.k8s.io "t1" deleted' in said
    assert space.kubectl("delete", "cm", "m1", "--ignore-not-found").out == ""
    space.kubectl("run", "p1", "--image=i")
    space.kubectl("delete", "pod", "p1", "--now")
    space.kubectl("get", "pod", "p1", code=1)


def test_row_13_namespace_that_ends_takes_nothing_new_and_waits_for_finalizers(space):
    name = space.namespace
    space.create(MAP.replace("metadata: {", "metadata: {finalizers: [example.com/f], "))
    space.kubectl("delete", "namespace", name, "--wait=false")
    assert re.search(r"Terminating", space.kubectl("get", "namespace", name).out)
    refused = space.create(MAP.replace("m1", "late"), code=1)
    assert "because it is being terminated" in refused.err
    space.kubectl("patch", "cm", "m1", "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
    space.kubectl("wait", "--for=delete", f"namespace/{name}", "--timeout=30s")


def test_row_14_wait_for_several_and_for_any_value(space):
    names = [f"{space.namespace[:20]}-{number}" for number in range(2)]
    for name in names:
        space.create(RULE.replace("NAME", name))
    rules = [f"devicetaintrule/{name}" for name in names]
    said = space.kubectl("wait", "--for=jsonpath={.spec.taint.key}", *rules, "--timeout=10s").out
    assert said.count("condition met") == 2
    space.kubectl("wait", "--for=condition=None", rules[0], "--timeout=0s", code=1)
    space.kubectl("delete", *rules)


# ---- rows 15 to 19


def test_row_15_events_are_followed_and_filtered(space):
    def event(name, kind):
        return json.dumps({
            "apiVersion": "v1", "kind": "Event", "metadata": {"name": name},
            "involvedObject": {"kind": "Pod", "name": "p", "namespace": space.namespace},
            "reason": "R", "message": f"message of {name}", "type": kind,
        })  # fmt: skip

    space.create(event("one", "Normal"))
    with space.running("events", "-w") as following:
        heard = ""
        while "message of one" not in heard:
            heard += following.stdout.readline()
        space.create(event("two", "Warning"))
        while "message of two" not in heard:
            line = following.stdout.readline()
            assert line, heard
            heard += line
    warnings = space.kubectl("events", "--types=Warning").out
    assert "message of two" in warnings
    assert "message of one" not in warnings


def test_row_16_access_to_subresources_and_paths(server):
    can = ("auth", "can-i")
    words = ("update", "resourceclaims.resource.k8s.io", "--subresource=status")
    assert server.kubectl(*can, *words).out == "yes\n"
    assert server.kubectl(*can, "get", "/healthz").out == "yes\n"
    assert server.kubectl(*can, "list", "nodes", "-q").out == ""
    assert json.loads(server.kubectl("auth", "whoami", "-o", "json").out)["status"]["userInfo"]


REFUSALS = [
    (("logs", "p1"), "an emulated node runs no containers"),
    (("exec", "p1", "--", "ls"), "an emulated node runs no containers"),
    (("port-forward", "p1", "80"), "an emulated node runs no containers"),
    (("top", "nodes"), "Metrics API not available"),
    (("get", "nonsense"), "the server doesn't have a resource type"),
]


def test_row_17_what_is_not_served_ends_with_a_clear_error(space):
    space.create(NODE.replace("NAME", space.namespace))
    space.kubectl("run", "p1", "--image=i")
    space.kubectl("wait", "--for=condition=Ready", "pod/p1", "--timeout=20s")
    for words, reason in REFUSALS:
        assert reason in space.kubectl(*words, code=1).err
    assert "Unsupported upgrade" not in (space.folder / "redra.log").read_text()
    space.kubectl("delete", "pod", "p1", "--now")
    space.kubectl("delete", "node", space.namespace)


def test_row_17_cluster_is_dumped(space):
    folder = space.folder / "dump"
    space.kubectl(
        "cluster-info", "dump", "--namespaces", space.namespace, f"--output-directory={folder}"
    )
    assert (folder / "nodes.json").exists()


def test_row_19_unknown_fields_are_named_together(space):
    wrong = MAP.replace("\ndata:", "\ndate: {}\nkynd: x\ndata:")
    both = 'unknown field "date", unknown field "kynd"'
    assert f"strict decoding error: {both}" in space.create(wrong, code=1).err
    applied = space.apply(wrong, "--server-side", code=1).err
    for field in ("date", "kynd"):
        assert f"  .{field}: field not declared in schema" in applied
    warned = space.apply(wrong, "--validate=warn").err
    assert 'Warning: unknown field "date"' in warned
    assert 'Warning: unknown field "kynd"' in warned


def test_row_19_every_cause_of_an_invalid_object_is_listed(space):
    wrong = TEMPLATE.replace("name: r,", "name: UPPER,").replace("none.example.com", "Not_A_Name")
    refused = space.create(wrong, code=1)
    assert 'The ResourceClaimTemplate "t1" is invalid:' in refused.err
    assert "* spec.spec.devices.requests[0].name: Invalid value" in refused.err
    assert "* spec.spec.devices.requests[0].exactly.deviceClassName: Invalid value" in refused.err
