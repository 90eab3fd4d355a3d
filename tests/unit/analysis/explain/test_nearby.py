"""Facts beside a refusal: none is wrong or irrelevant for the pod."""

import pytest

from app.analysis.explain.reasons import NAMES_MAX
from app.domain.controllers import registry
from app.domain.controllers.registry import ControllerOptions
from app.service.explaining import former_circumstances
from tests.cluster import DRIVER, Cluster
from tests.unit.analysis.explain.test_outcomes import idle_cluster, why

BUSY = {"key": "gpu.example.com/busy", "effect": "NoSchedule"}


def tolerating(key, **more):
    return {"key": key, "operator": "Exists", **more}


def two_requests(*tolerations):
    """A cluster whose one tainted device is wanted twice, each time with such tolerations."""
    cluster = idle_cluster()
    cluster.slice(devices=[{"name": "d", "taints": [BUSY]}])
    requests = [
        {"name": name, "exactly": {"deviceClassName": "gpu", "tolerations": each}}
        for name, each in zip(("a", "b"), tolerations, strict=True)
    ]
    spec = {"devices": {"requests": requests}}
    cluster.create("resource.k8s.io/v1", "ResourceClaim", "claim", spec=spec)
    cluster.pod(claim="claim")
    return cluster


@pytest.mark.parametrize(
    ("toleration", "is_told"),
    [
        (tolerating("gpu.example.com/busy"), False),
        (tolerating("gpu.example.com/busy", effect="NoSchedule"), False),
        (tolerating("gpu.example.com/busy", effect="NoExecute"), True),
        ({"key": "gpu.example.com/busy", "operator": "Equal", "value": "x"}, True),
        (tolerating("gpu.example.com/bsuy"), True),
        (tolerating("gpu.exampel.com/busy"), True),
        (tolerating("gpu.exampel.com/bsuy"), True),
        (tolerating("nic.another.org/bsuy"), False),
        # Keys of one owner begin alike, and mean different things.
        (tolerating("gpu.example.com/unhealthy"), False),
    ],
)
async def test_toleration_is_named_only_where_it_nearly_fits_the_taint(toleration, is_told):
    _, said = await why(two_requests([toleration], []))
    assert any("does not fit taint" in line for line in said) is is_told


def with_nodes(**labels):
    """A cluster with a served node for each entry and its labels."""
    cluster = idle_cluster()
    for name, values in labels.items():
        cluster.node(name, **values)
        cluster.patch("nodes", name, {"spec": {"taints": None}}, namespace="")
    cluster.slice(devices=[{"name": "d", "taints": [BUSY]}])
    cluster.claim()
    cluster.pod(claim="claim")
    return cluster


@pytest.mark.parametrize(
    ("labels", "is_told"),
    [
        ({}, True),
        ({"kind": "gpu"}, True),
        ({"role": "control-plane"}, False),
        ({"kind": "cpu"}, False),
    ],
)
async def test_node_without_a_driver_is_named_only_where_it_is_labelled_like_those_with_one(
    labels, is_told
):
    cluster = with_nodes(n2=labels)
    if "kind" in labels:
        cluster.patch("nodes", "n1", {"metadata": {"labels": {"kind": "gpu"}}}, namespace="")
    _, said = await why(cluster)
    assert any("no slice of any driver" in line for line in said) is is_told


async def test_node_that_a_slice_without_devices_is_for_has_a_slice():
    cluster = with_nodes(n2={"rack": "r2"})
    cluster.patch("nodes", "n1", {"metadata": {"labels": {"rack": "r2"}}}, namespace="")
    assert any("no slice of any driver" in line for line in (await why(cluster))[1])
    match = {"key": "rack", "operator": "In", "values": ["r2"]}
    where = {"nodeSelectorTerms": [{"matchExpressions": [match]}]}
    tree = {"driver": DRIVER, "nodeSelector": where, "devices": [],
            "pool": {"name": "racks", "generation": 1, "resourceSliceCount": 1}}  # fmt: skip
    cluster.create("resource.k8s.io/v1", "ResourceSlice", "rack", spec=tree)
    assert not any("no slice of any driver" in line for line in (await why(cluster))[1])


@pytest.mark.parametrize(
    ("key", "value", "is_told"),
    [
        ("zone", "z1", True),
        ("example.com/gpu", "yes", True),
        # A word that is the value of many labels says nothing.
        ("example.com/other", "true", False),
        ("example.com/gpus", "true", True),
    ],
)
async def test_label_is_named_only_where_it_is_near_what_a_slice_selects(key, value, is_told):
    cluster = idle_cluster()
    cluster.patch("nodes", "n1", {"metadata": {"labels": {key: value}}}, namespace="")
    wanted = {"zone": "z2"}.get(key, "true")
    name = "zone" if key == "zone" else "example.com/gpu"
    match = {"key": name, "operator": "In", "values": [wanted]}
    where = {"nodeSelectorTerms": [{"matchExpressions": [match]}]}
    tree = {"driver": DRIVER, "nodeSelector": where, "devices": [{"name": "d"}],
            "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1}}  # fmt: skip
    cluster.create("resource.k8s.io/v1", "ResourceSlice", "s", spec=tree)
    cluster.claim()
    cluster.pod(claim="claim")
    _, said = await why(cluster)
    assert any(line.startswith("slice s is for nodes with") for line in said)
    assert any(line == f"node n1 has {key}={value}" for line in said) is is_told


def owned(cluster, kind, name, owner_kind, owner):
    """Makes an object of a workload with its controller, if it has one."""
    tree = {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": "default"},
    }
    spec = {"selector": {"matchLabels": {"app": "a"}}, "replicas": 0, "template": {
        "metadata": {"labels": {"app": "a"}},
        "spec": {"containers": [{"name": "main", "image": "busybox:1"}]}}}  # fmt: skip
    if owner_kind:
        tree["metadata"]["ownerReferences"] = [reference(owner_kind, owner)]
    return cluster.apply({**tree, "spec": spec})["metadata"]["uid"]


def reference(kind, owner):
    name, uid = owner
    return {"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": uid, "controller": True}


@pytest.mark.parametrize(
    ("age", "deleted", "is_told"), [(60, False, True), (-60, False, False), (60, True, False)]
)
async def test_holder_of_the_same_deployment_is_named_only_if_it_is_older_and_stays(
    age, deleted, is_told
):
    cluster = Cluster(options=ControllerOptions(off=frozenset(registry.NAMES)))
    cluster.device_class()
    cluster.node()
    cluster.patch("nodes", "n1", {"spec": {"taints": None}}, namespace="")
    cluster.slice(devices=1)
    deployment = owned(cluster, "Deployment", "web", "", ())
    sets = {
        name: owned(cluster, "ReplicaSet", name, "Deployment", ("web", deployment))
        for name in ("web-1", "web-2")
    }
    first = [("other", "web-1"), ("pod", "web-2")]
    for name, made in first if age > 0 else reversed(first):
        cluster.claim(f"{name}-claim")
        cluster.apply({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "namespace": "default",
                         "ownerReferences": [reference("ReplicaSet", (made, sets[made]))]},
            "spec": {"containers": [{"name": "main", "image": "busybox:1"}],
                     "nodeName": "n1" if name == "other" else "",
                     "resourceClaims": [{"name": "gpu", "resourceClaimName": f"{name}-claim"}]},
        })  # fmt: skip
        cluster.wait(abs(age))
    device = {"request": "gpu", "driver": DRIVER, "pool": "n1", "device": "gpu-0"}
    uid = cluster.must("pods", "other")["metadata"]["uid"]
    status = {"allocation": {"devices": {"results": [device]}},
              "reservedFor": [{"resource": "pods", "name": "other", "uid": uid}]}  # fmt: skip
    cluster.patch("resourceclaims", "other-claim", {"status": status}, subresource="status")
    if deleted:
        cluster.delete("pods", "other")
    _, said = await why(cluster)
    assert any("allocated to default/other-claim" in line for line in said), said
    assert any("pod of the same deployment default/web" in line for line in said) is is_told


def tainted(*names, of):
    """The devices of a slice, of which some are tainted."""
    return [{"name": name, "taints": [BUSY] if name in names else []} for name in of]


def written(cluster, name, devices):
    tree = cluster.must("resourceslices", name, "")
    cluster.update("resourceslices", {**tree, "spec": {**tree["spec"], "devices": devices}})


async def test_taint_of_several_devices_is_dated_from_when_all_had_it():
    cluster = idle_cluster()
    cluster.slice(devices=tainted(of=("a", "b")))
    cluster.wait(60)
    written(cluster, "n1-slice", tainted("a", of=("a", "b")))
    cluster.wait(60)
    written(cluster, "n1-slice", tainted("a", "b", of=("a", "b")))
    cluster.claim()
    cluster.pod(claim="claim")
    _, said = await why(cluster)
    (line,) = [line for line in said if "taints 2 devices gpu.example.com/busy" in line]
    assert "at 2026-01-02T03:02:00" in line


async def test_devices_of_a_rule_are_counted_beside_those_of_many_slices():
    cluster = idle_cluster()
    names = [f"n{number}" for number in range(1, 7)]
    for name in names[1:]:
        cluster.node(name)
        cluster.patch("nodes", name, {"spec": {"taints": None}}, namespace="")
    cluster.slice(devices=[{"name": "a"}])
    for name in names[1:-1]:
        cluster.slice(name, devices=tainted("a", of=("a",)))
    cluster.slice(names[-1], devices=[{"name": "a"}])
    cluster.rule("all", key="x.test/hot", effect="NoSchedule")
    cluster.claim()
    cluster.pod(claim="claim")
    _, said = await why(cluster)
    lines = [line for line in said if line.startswith("rule all taints")]
    assert [line.split(" since")[0] for line in lines] == [
        "rule all taints 6 devices x.test/hot:NoSchedule"
    ]


async def test_look_below_deleted_slices_is_for_those_that_are_told(monkeypatch):
    cluster = idle_cluster()
    names = [f"n{number}" for number in range(1, 7)]
    for name in names[1:]:
        cluster.node(name)
        cluster.patch("nodes", name, {"spec": {"taints": None}}, namespace="")
    for name in names:
        cluster.slice(name)
    for name in names:
        cluster.delete("resourceslices", f"{name}-slice", "")
    cluster.claim()
    cluster.pod(claim="claim")
    looks = []
    ended_before = former_circumstances.ended_before

    async def counted(evidence, revision, node):
        looks.append(node)
        return await ended_before(evidence, revision, node)

    monkeypatch.setattr(former_circumstances, "ended_before", counted)
    _, said = await why(cluster)
    assert len([line for line in said if "was deleted, by" in line]) == NAMES_MAX
    assert looks == ["n6", "n5", "n4"]


@pytest.mark.parametrize(
    ("kind", "is_told"), [("", True), ("DaemonSet", True), ("ReplicaSet", False)]
)
async def test_failing_pod_is_named_below_a_slice_only_if_it_may_be_its_driver(kind, is_told):
    cluster = Cluster(options=ControllerOptions(off=frozenset(registry.NAMES)))
    cluster.device_class()
    cluster.node()
    cluster.patch("nodes", "n1", {"spec": {"taints": None}}, namespace="")
    cluster.slice()
    owners = [reference(kind, ("maker", "uid-of-maker"))] if kind else []
    cluster.apply({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "plugin", "namespace": "default", "ownerReferences": owners},
        "spec": {"nodeName": "n1", "containers": [{"name": "main", "image": "busybox:1"}]},
    })  # fmt: skip
    state = {"name": "main", "image": "", "imageID": "", "ready": False, "restartCount": 9,
             "state": {"waiting": {"reason": "CrashLoopBackOff"}}}  # fmt: skip
    cluster.patch("pods", "plugin", {"status": {"containerStatuses": [state]}},
                  subresource="status")  # fmt: skip
    cluster.delete("resourceslices", "n1-slice", "")
    cluster.claim()
    cluster.pod(claim="claim")
    _, said = await why(cluster)
    assert any("slice n1-slice of pool" in line for line in said)
    assert any("pod default/plugin on that node fails" in line for line in said) is is_told


@pytest.mark.parametrize("again", [False, True])
async def test_node_that_was_made_anew_before_its_slice_is_not_named_below_the_slice(again):
    cluster = idle_cluster()

    def register():
        cluster.delete("nodes", "n1", "")
        cluster.node()
        cluster.patch("nodes", "n1", {"spec": {"taints": None}}, namespace="")

    register()
    cluster.slice()
    if again:
        register()
    cluster.delete("resourceslices", "n1-slice", "")
    cluster.claim()
    cluster.pod(claim="claim")
    _, said = await why(cluster)
    assert any("slice n1-slice of pool" in line for line in said)
    assert any("made anew" in line for line in said) is again
