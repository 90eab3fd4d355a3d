"""Forks of recordings of fleet worlds, which hold every kind of hardware and act.

Without a change they end with the decisions of the world. Rows come in turn; each was unlike once.
"""

import random
from pathlib import Path

import pytest

from app.analysis.edits import Apply, DeleteEdit, Edit
from app.bootstrap import process_settings, replays, stores
from app.domain.log import Event, EventType
from app.domain.objects.profile import Profile
from app.domain.values import json_tree
from app.domain.values.timestamps import SECOND
from tests import draws
from tests.cluster import DRIVER, Cluster
from tests.conformance.fleet_recordings import record
from tests.conformance.soak_lines import retell
from tests.conformance.test_forks_with_recorded_inputs import Recording

pytestmark = pytest.mark.timeout(0)
"""Forks are bounded in number; how long they take is a matter of the machine."""

ACTS = 60
GPUS = "example.com/gpu"
RULE = {
    "apiVersion": "resource.k8s.io/v1beta2",
    "kind": "DeviceTaintRule",
    "metadata": {"name": "planted"},
    "spec": {
        "deviceSelector": {"driver": DRIVER},
        "taint": {"key": "example.com/planted", "value": "x", "effect": "NoSchedule"},
    },
}


async def load(folder: Path, profile: Profile) -> Recording:
    """The recording that was written into a folder, as `redra import` makes it."""
    settings = process_settings.settings(
        profile=profile.version, gates=[f"{name}=true" for name in profile.gates]
    )
    store = stores.memory_store()
    name = await replays.load_files(store, settings, (folder / "audit.jsonl",))
    info = await store.log.find_history(name)
    assert info is not None
    return Recording(store, info)


async def recorded(cluster: Cluster, folder: Path) -> tuple[Recording, list[Event]]:
    """The recording of a cluster, with its events."""
    retell(cluster.line.events, {}, folder, random.Random(1), answers=2)
    recording = await load(folder, cluster.profile)
    return recording, await recording.events(recording.info)


@pytest.mark.parametrize("is_reported", [False, True], ids=["silent", "reported"])
async def test_pod_that_waits_for_its_devices_goes_on_waiting(
    is_reported: bool, tmp_path: Path
) -> None:
    """The wait ends after ten minutes, which are counted from the allocation."""
    cluster = Cluster()
    cluster.device_class()
    cluster.node()
    conditions = {"bindingConditions": ["ready"], "bindingFailureConditions": ["failed"]}
    cluster.slice(devices=[{"name": "d", "bindsToNode": True, **conditions}])
    cluster.claim()
    cluster.pod(claim="claim")
    cluster.settle().wait(30)
    if is_reported:
        claim = cluster.must("resourceclaims", "claim")
        (result,) = claim["status"]["allocation"]["devices"]["results"]
        device = {part: result[part] for part in ("driver", "pool", "device")}
        status = {"devices": [{**device, "data": {"progress": "slow"}}]}
        cluster.patch("resourceclaims", "claim", {"status": status}, subresource="status")
    moment = cluster.settle().line.now
    cluster.wait(620)
    cluster.pod("later")
    cluster.settle()
    recording, events = await recorded(cluster, tmp_path)
    began = max(each.revision for each in events if each.stamp.time <= moment + SECOND)
    assert any("device binding timeout" in each.body.decode() for each in events[began:])
    _, outcome = await recording.fork(began)
    assert outcome.diff.is_same, outcome.diff.to_json()["differences"]
    assert (outcome.unapplied, outcome.unlike) == ((), ())


@pytest.mark.parametrize(
    ("name", "edit", "root"),
    [
        ("early", DeleteEdit(name="node/n1"), "nodes/n1"),
        ("late", Apply(tree=RULE), "devicetaintrules.resource.k8s.io/planted"),
    ],
    ids=["evicted with its node", "refused for extended resources"],
)
async def test_change_is_the_root_of_what_it_does_to_a_pod(
    name: str, edit: Edit, root: str, tmp_path: Path
) -> None:
    """The late pod asks for an extended resource: its claim is made after its choice."""
    cluster = Cluster(Profile(version="1.36", gates={"DRADeviceTaintRules": True}))
    cluster.create("resource.k8s.io/v1", "DeviceClass", "gpu", spec={"extendedResourceName": GPUS})
    cluster.node()
    cluster.slice(devices=2)
    owner = {"apiVersion": "v1", "kind": "Node", "name": "n1"}
    owner["uid"] = cluster.must("nodes", "n1")["metadata"]["uid"]
    cluster.patch("resourceslices", "n1-slice", {"metadata": {"ownerReferences": [owner]}})
    cluster.template()
    cluster.pod("early", template="gpu")
    cluster.settle().wait(30)
    moment = cluster.line.now
    cluster.wait(60)
    cluster.pod("late", requests={GPUS: "1"})
    cluster.settle().wait(60)
    recording, events = await recorded(cluster, tmp_path)
    at = max(each.revision for each in events if each.stamp.time <= moment + SECOND)
    _, outcome = await recording.fork(at, edit)
    tree = outcome.diff.to_json()["differences"]
    roots = {each["subject"]: each["root"] for each in tree}
    assert roots[f"pods/default/{name}"] == root
    assert outcome.diff.unexplained == 0


async def test_fork_amid_the_writes_for_extended_resources_begins_after_them(
    tmp_path: Path,
) -> None:
    """The claim is made, protected and allocated, then the pod names it and is bound: one act."""
    cluster = Cluster(kubelet=True)
    cluster.create("resource.k8s.io/v1", "DeviceClass", "gpu", spec={"extendedResourceName": GPUS})
    cluster.node()
    cluster.slice(devices=2)
    cluster.pod("late", requests={GPUS: "1"})
    cluster.settle().wait(60)
    recording, events = await recorded(cluster, tmp_path)
    (made,) = (
        each.revision
        for each in events
        if each.key.resource == "resourceclaims" and each.type is EventType.OBJECT_CREATED
    )
    bound = next(
        each.revision
        for each in events
        if json_tree.get(each.object, "spec", "nodeName") == "n1" and each.key.resource == "pods"
    )
    assert bound - made >= 3
    for at in range(made - 1, bound + 1):
        fork, outcome = await recording.fork(at)
        assert outcome.diff.is_same, f"at {at}: {outcome.diff.to_json()['differences']}"
        assert (outcome.unapplied, outcome.unlike) == ((), ()), f"at {at}"
        assert fork.parent_revision == (bound if at >= made else at)


@draws.in_turn("ways")
@pytest.mark.parametrize(("seed", "at"), [(301, 452), (302, 361), (306, 266), (309, 634)])
async def test_fork_without_a_change_ends_with_the_decisions_of_a_fleet_world(
    seed: int, at: int, tmp_path: Path
) -> None:
    recording = await load(tmp_path, record(tmp_path, seed, ACTS))
    _, outcome = await recording.fork(at)
    assert outcome.diff.is_same, outcome.diff.to_json()["differences"]
    assert (outcome.unapplied, outcome.unlike) == ((), ())
