"""Objects in what other tools and components keep: logs, checkpoints, states of Argo CD.

Such files hold objects beside what somebody wants, expects or prepared. Only what was in the
cluster comes in.
"""

import json

import pytest

from app.adapters.history import kinds
from app.adapters.history.enclosed import managed_states
from app.adapters.history.opening import open_history
from app.adapters.history.reading import ReadOptions
from app.bootstrap.rules import rules_for
from app.domain.errors import InputError
from app.domain.log.records import Loss
from app.domain.objects.profile import Profile
from tests.unit.history.formats import truth

RULES = rules_for(Profile())
NODE, CLAIM, POD, DAEMONS = truth.objects("Node", "ResourceClaim", "Pod", "DaemonSet")
NODE["status"]["nodeInfo"] = {"kubeletVersion": "v1.36.2"}
NO_KIND = "an object without its kind, which neither its fields nor its file tell"


def dense(value):
    return json.dumps(value, separators=(",", ":"))


def read(tmp_path, name, text):
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    with open_history([path], ReadOptions(rules=RULES)) as history:
        records = sorted(history.records(), key=lambda record: (record.kind, record.name))
        return records, history.left_out, [problem for _, problem in history.refused_places]


def keys(records):
    return [(record.kind, record.namespace, record.name) for record in records]


def older(tree):
    """A claim or slice as v1beta1 has it."""
    spec = tree["spec"]
    if "pool" in spec:
        devices = [{"name": each["name"], "basic": {}} for each in spec["devices"]]
        return {**tree, "spec": {**spec, "devices": devices}}
    requests = [{"name": each["name"], **each["exactly"]} for each in spec["devices"]["requests"]]
    return {**tree, "spec": {"devices": {"requests": requests}}}


def resource(live, wanted, **fields):
    """A resource as Argo CD answers it; of states that a server lacks the text is `null`."""
    states = {"liveState": live, "normalizedLiveState": live}
    states |= {"targetState": wanted, "predictedLiveState": wanted}
    return {"kind": "X", "name": "x", **{name: dense(each) for name, each in states.items()}}


ENTRY = {
    "ClaimUID": "uid-7",
    "ClaimName": "one",
    "Namespace": "shop",
    "PodUIDs": {"uid-9": {}},
    "DriverState": {"gpu.example.com": {"Devices": [{"PoolName": "n1", "DeviceName": "gpu-0"}]}},
}
STATE = {
    "kind": "DRACheckpoint",
    "apiVersion": "checkpoint.dra.kubelet.k8s.io/v1",
    "ClaimInfoStateList": [ENTRY],
}
CHECKPOINTS = {
    "as it is": dense({"Data": dense(STATE), "Checksum": 7}),
    "of jq": f"$ jq -r .Data dra_manager_state | jq\n{json.dumps(STATE, indent=2)}\n",
    "of old releases": dense({"version": "v1", "entries": [ENTRY], "checksum": 7}),
}


@pytest.mark.parametrize("form", CHECKPOINTS)
def test_claims_in_the_checkpoint_of_a_kubelet_are_allocated(tmp_path, form):
    (record,), _, lost = read(tmp_path, "dra_manager_state", CHECKPOINTS[form])
    assert keys([record]) == [("ResourceClaim", "shop", "one")]
    assert (record.uid, record.object["status"], lost) == ("uid-7", {"allocation": {}}, [])
    assert Loss.PRINTED in record.losses


def test_checkpoint_without_claims_is_refused(tmp_path):
    text = dense({"Data": dense(STATE | {"ClaimInfoStateList": []}), "Checksum": 7})
    with pytest.raises(InputError):
        read(tmp_path, "dra_manager_state", text)


@pytest.mark.parametrize("is_within", [False, True])
def test_only_live_states_of_argo_are_objects(tmp_path, is_within):
    answer = {"items": [resource(DAEMONS, CLAIM), resource(None, POD)]}
    text = dense({"result": answer["items"]} if is_within else answer)
    records, left_out, lost = read(tmp_path, "managed.json", text)
    assert (keys(records), lost) == ([("DaemonSet", "shop", "agent")], [])
    assert any(managed_states.REASON in reason for _, reason in left_out)


LOGGED = [
    (truth.bare(tree), tree["kind"]) for tree in (CLAIM, POD, NODE, *truth.objects("ResourceSlice"))
]
LOGGED += [(older(tree), kind) for tree, kind in LOGGED if kind.startswith("Resource")]


AS_LOGGED = {
    "line": lambda tree: dense({"msg": "preparing", "object": tree}),
    "list": lambda tree: dense({"items": [tree]}),
    "text": lambda tree: dense({"msg": "preparing", "object": dense(tree)}),
    "klog": lambda tree: f"{KLOG}{dense(dense(tree))}\n{DONE}",
    "klog without quotes": lambda tree: f"{KLOG}{dense(tree)}\n{DONE}",
}
KLOG = 'I0102 03:04:05.000006       1 controller.go:249] "updated object" type="X" content='
DONE = 'I0102 03:04:06.000006       1 controller.go:250] "done"\n'


@pytest.mark.parametrize("form", AS_LOGGED)
@pytest.mark.parametrize(("tree", "kind"), LOGGED)
def test_object_without_a_kind_has_the_one_that_its_fields_tell(tmp_path, tree, kind, form):
    line = AS_LOGGED[form]({"metadata": tree["metadata"], **tree})
    records, _, lost = read(tmp_path, "driver.log", line)
    assert (lost, [record.kind for record in records]) == ([], [kind])
    assert (records[0].name, records[0].uid) == (tree["metadata"]["name"], tree["metadata"]["uid"])
    if kind == "ResourceClaim":
        assert records[0].object["spec"] == CLAIM["spec"]


def test_logged_claim_of_the_first_form_is_named(tmp_path):
    spec = {"resourceClassName": "gpu", "allocationMode": "WaitForFirstConsumer"}
    tree = {"metadata": CLAIM["metadata"], "spec": spec}
    _, _, lost = read(tmp_path, "driver.log", AS_LOGGED["klog"](tree) + dense({"a": POD}))
    (problem,) = lost
    assert "ResourceClaim in resource.k8s.io/v1alpha2 is the older form" in problem


def test_fields_of_other_kinds_tell_none():
    """A revision of Knative has containers, a template of pods too; neither has their phases."""
    spec = {"containers": [{"name": "main", "image": "web:1"}]}
    for tree in (
        {**POD, "spec": spec, "status": {"actualReplicas": 1}},
        {**POD, "metadata": {"name": "web-1"}},
        DAEMONS,
        *truth.objects("Namespace", "DeviceClass", "CronJob"),
    ):
        assert kinds.of_fields(truth.bare(tree)) is None


def test_stored_object_whose_kind_nothing_tells_is_lost(tmp_path):
    items = [truth.bare(DAEMONS), truth.bare(POD)]
    records, _, lost = read(tmp_path, "all.json", dense({"items": items}))
    assert (keys(records), lost) == ([("Pod", "shop", "web-1")], [NO_KIND])


@pytest.mark.parametrize("indent", [None, 2])
def test_stored_objects_whose_kind_a_filter_left_out_are_lost(tmp_path, indent):
    """What `jq '.items[] | {metadata, spec}'` leaves: each comes in, or is named."""
    bare = [{"metadata": tree["metadata"], "spec": tree.get("spec")} for tree in truth.objects()]
    text = "".join(json.dumps(each, indent=indent) + "\n" for each in bare)
    records, _, lost = read(tmp_path, "all.json", text)
    claim, part = ("ResourceClaim", "shop", "claim"), ("ResourceSlice", "", "n1-gpu")
    assert keys(records) == [claim, part]
    assert lost == [NO_KIND] * (len(bare) - 2)


def managed(name, *states):
    instances = [{"schema_version": 1, "attributes": each} for each in states]
    return {"mode": "managed", "type": name, "name": "x", "instances": instances}


FLAT = {"id": "shop/web", "metadata": [{"name": "web"}], "spec": [{"node_name": "n1"}]}
WHOLE = {"object": {"value": POD, "type": ["object", {}]}}
WANTED = {"manifest": {"value": {**POD, "metadata": {"name": "wanted"}}, "type": ["object", {}]}}


def state(*resources):
    return json.dumps({"version": 4, "terraform_version": "1.9.0", "resources": [*resources]})


def test_state_of_terraform_has_the_objects_and_names_the_others(tmp_path):
    manifest = managed("kubernetes_manifest", WHOLE | WANTED)
    others = [managed("kubernetes_pod_v1", FLAT), managed("kubernetes_pod_v1", FLAT)]
    others.append({**managed("kubernetes_node", FLAT), "mode": "data"})
    text = state(manifest, *others, managed("aws_instance", {"id": "i-1"}))
    records, _, lost = read(tmp_path, "terraform.tfstate", text)
    assert keys(records) == [truth.key(POD)]
    assert records[0].object == POD
    assert lost == ["2 of kubernetes_pod_v1, whose fields Terraform keeps in a form of its own"]


def test_state_of_terraform_without_objects_is_refused(tmp_path):
    with pytest.raises(InputError, match="1 of kubernetes_pod_v1, whose fields"):
        read(tmp_path, "state.json", state(managed("kubernetes_pod_v1", FLAT)))
