"""Fleets: hardware profiles become nodes and slices that the allocator can use."""

from importlib import resources

import pytest
import yaml

from app.analysis.fleet import generation, incidents
from app.analysis.fleet.generation import Fleet
from app.analysis.fleet.incidents import FleetIncident, IncidentKind, Present
from app.bootstrap import fleets
from app.domain.errors import InputError
from tests import draws
from tests.cluster import USER, Cluster
from tests.shared_data import shared_path

GPU = "gpu.nvidia.com"
QUICKSTART = "demo/specs/quickstart/v1/gpu-test4.yaml"

PROFILES = fleets.profile_names()

PLAN = {
    "hours": 48,
    "deviceTaints": {"perHour": 1, "minutes": 20},
    "driverLosses": {"perHour": 0.5, "minutes": 10},
    "nodeLosses": {"perHour": 0.2, "minutes": 60},
}


def profile(name: str) -> dict:
    return fleets.read_profile(name)


class World:
    """A cluster that holds a fleet."""

    def __init__(self, name: str, nodes: int = 2) -> None:
        self.fleet = generation.build(profile(name), nodes, 1)
        self.cluster = Cluster(kubelet=True)
        self.warnings: list[str] = []
        self.send([generation.class_command(tree) for tree in self.fleet.classes])
        self.send([generation.node_command(tree) for tree in self.fleet.nodes])
        self.publish(self.fleet)

    def send(self, commands) -> None:
        for command in commands:
            self.warnings += self.cluster.line.submit(command, actor=USER).warnings
        self.cluster.settle()

    def present(self) -> Present:
        nodes = {name: self.cluster.must("nodes", name) for name in self.cluster.names("nodes")}
        names = self.cluster.names("resourceslices")
        return Present(
            nodes=nodes,
            slices=tuple(self.cluster.must("resourceslices", name) for name in names),
        )

    def publish(self, whole: Fleet) -> int:
        present = self.present()
        commands = [
            command
            for pool in whole.pools
            for command in generation.publish(pool, present.slices_of(pool), present.uid_of)
        ]
        self.send(commands)
        return len(commands)

    def happen(self, incident: FleetIncident) -> None:
        self.send(incidents.commands(incident, self.fleet, self.present()))
        self.send(incidents.follow_up(incident, self.fleet, self.present()))

    def generations(self) -> set[int]:
        return {tree["spec"]["pool"]["generation"] for tree in self.present().slices}


@pytest.mark.parametrize("name", PROFILES)
def test_every_profile_gives_usable_pools_without_a_warning(name):
    world = World(name)
    inventory = world.cluster.line.views.inventory
    states = {inventory.pool(pool).state for pool in inventory.pool_ids()}
    assert states == {"usable"}
    assert world.warnings == []
    assert len(inventory.pool_ids()) == len(world.fleet.pools)


@pytest.mark.parametrize("name", PROFILES)
def test_same_seed_gives_the_same_fleet_and_another_one_does_not_change_names(name):
    first, again = (generation.build(profile(name), 2, 7) for _ in range(2))
    assert generation.manifests(first) == generation.manifests(again)
    other = generation.build(profile(name), 2, 8)
    assert [p.devices for p in other.pools] == [p.devices for p in first.pools]


@pytest.mark.parametrize(("name", "devices"), [("a100-mig", 8 * 26), ("h100-mig", 8 * 26)])
def test_mig_nodes_have_every_placement_of_every_profile(name, devices):
    made = generation.build(profile(name), 1, 1).pools[0]
    assert len(made.devices) == devices
    assert len(set(made.devices)) == devices
    assert all(len(spec.get("devices", ())) <= 64 for spec in made.specs)


@draws.in_turn("rows of partitions")
@pytest.mark.parametrize(
    ("name", "partition", "fit"),
    [
        ("a100-mig", "1g.5gb", 8 * 7),
        ("a100-mig", "1g.5gb+me", 8),
        ("a100-mig", "1g.10gb", 8 * 4),
        ("a100-mig", "3g.20gb", 8 * 2),
        ("a100-mig", "7g.40gb", 8),
        ("h100-mig", "1g.10gb", 8 * 7),
        ("h100-mig", "2g.20gb", 8 * 3),
        ("h100-mig", "7g.80gb", 8),
    ],
)
def test_as_many_partitions_fit_as_the_hardware_takes(name, partition, fit):
    cluster = World(name, nodes=1).cluster
    attributes = f'device.attributes["{GPU}"]'
    selector = f'{attributes}.type == "mig" && {attributes}.profile == "{partition}"'
    cluster.device_class("partition", selector=selector)
    cluster.template(class_name="partition")
    for number in range(fit + 1):
        cluster.pod(f"p{number:02d}", template="gpu")
    cluster.settle()
    phases = [cluster.must("pods", pod)["status"]["phase"] for pod in cluster.names("pods")]
    assert phases.count("Running") == fit


def test_deployment_of_the_quickstart_runs_on_the_fleet():
    path = shared_path("corpus") / "kubernetes-sigs__dra-driver-nvidia-gpu" / QUICKSTART
    cluster = World("a100-mig", nodes=1).cluster
    for document in yaml.safe_load_all(path.read_text()):
        cluster.apply(document)
    cluster.settle()
    pods = [
        cluster.line.views.objects.get(key) for key in cluster.line.views.objects.keys("", "pods")
    ]
    assert [pod["status"]["phase"] for pod in pods] == ["Running"] * 4


def test_tpu_mesh_takes_one_slice_of_eight_by_eight_or_many_small_ones():
    world = World("tpu-8x8", nodes=1)
    assert len(world.fleet.nodes) == 16
    devices = world.fleet.pools[0].devices
    shapes = [name.split("-")[1] for name in devices]
    assert {shape: shapes.count(shape) for shape in shapes} == {
        "2x2": 16, "2x4": 8, "4x4": 4, "4x8": 2, "8x8": 1,
    }  # fmt: skip


def test_publishing_again_writes_nothing():
    world = World("a100-mig")
    assert world.publish(world.fleet) == 0
    assert world.generations() == {1}


def test_changed_pool_goes_to_the_next_generation_and_others_stay():
    world = World("a100-mig")
    smaller = profile("a100-mig")
    smaller["pools"][0]["units"] = 2
    changed = generation.build(smaller, 1, 1)
    renamed = Fleet(
        profile=changed.profile,
        nodes=world.fleet.nodes,
        classes=(),
        pools=(generation.build(smaller, 2, 1).pools[0], world.fleet.pools[1]),
    )
    assert world.publish(renamed) > 0
    assert world.generations() == {1, 2}
    inventory = world.cluster.line.views.inventory
    assert all(inventory.pool(pool).usable for pool in inventory.pool_ids())


def test_slices_belong_to_their_node():
    world = World("cpu", nodes=1)
    world.cluster.delete("nodes", "cpu-1")
    world.cluster.settle()
    assert world.cluster.names("resourceslices") == []


def test_incidents_are_the_same_for_the_same_seed():
    whole = generation.build(profile("nic"), 8, 1)
    first = incidents.plan(whole, PLAN, 5)
    assert first == incidents.plan(whole, PLAN, 5)
    assert first != incidents.plan(whole, PLAN, 6)
    assert {incident.kind for incident in first} == set(IncidentKind)
    assert list(first) == sorted(first, key=lambda found: (found.at_seconds, found.name))


def test_after_all_incidents_the_fleet_is_whole_again():
    world = World("nic", nodes=4)
    start = world.cluster.seconds
    for incident in incidents.plan(world.fleet, PLAN, 3):
        world.cluster.wait(max(0.0, start + incident.at_seconds - world.cluster.seconds))
        world.happen(incident)
    assert world.cluster.names("devicetaintrules") == []
    assert len(world.cluster.names("nodes")) == 4
    assert len(world.cluster.names("resourceslices")) == 8
    assert max(world.generations()) > 0


def test_lost_driver_loses_its_slices_and_republishes_them():
    world = World("cpu", nodes=1)
    lost = FleetIncident(
        at_seconds=0, kind=IncidentKind.LOSE_DRIVER, name="x", node="cpu-1", driver="dra.cpu"
    )
    world.happen(lost)
    world.cluster.wait(31)
    assert world.cluster.names("resourceslices") == []
    world.happen(
        FleetIncident(
            at_seconds=1, kind=IncidentKind.RETURN_DRIVER, name="x", node="cpu-1", driver="dra.cpu"
        )
    )
    world.cluster.wait(60)
    assert len(world.cluster.names("resourceslices")) == 1


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"name": ""}, "has no name"),
        ({"pools": []}, "has no pools"),
        ({"pools": [{"units": 1}]}, "has no driver"),
        ({"pools": [{"driver": "d", "units": 1_000}]}, "cannot have 1000 units"),
        ({"pools": [{"driver": "d", "devices": [{"name": "{what}"}]}]}, "is not known"),
        ({"pools": [{"driver": "d", "grid": {"rows": 99, "columns": 9}}]}, "hosts"),
    ],
)
def test_profile_that_cannot_be_read_is_named(change, said):
    with pytest.raises(InputError, match=said):
        generation.build(profile("cpu") | change, 1, 1)


def test_profile_may_be_a_file(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text((resources.files("app") / "domain/devices/profiles/cpu.yaml").read_text())
    assert fleets.read_profile(str(path)) == profile("cpu")
    with pytest.raises(InputError, match="no profile"):
        fleets.read_profile("nothing")


def test_manifests_are_plain_documents():
    text = fleets.manifests_text(generation.build(profile("tpu-8x8"), 1, 1))
    assert "&id" not in text
    kinds = [document["kind"] for document in yaml.safe_load_all(text)]
    assert (kinds.count("Node"), kinds.count("ResourceSlice")) == (16, 2)
