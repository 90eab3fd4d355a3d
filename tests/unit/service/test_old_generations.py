"""A pool of which one node sees an old generation as complete (Q12): every answer says the same."""

import pytest

from app.analysis import device_map
from app.analysis.device_map import DeviceMapRequest, MapBounds
from app.analysis.scan.attempts import UNNOTICED
from app.analysis.verify.invariants import InvariantWatch, Switches, ViolationKind
from app.analysis.verify.invariants.violations import Violation
from app.domain.allocation.quirks import Quirks
from app.service.replays.scanning import scan as scan_history
from tests.cluster import DRIVER, Cluster
from tests.unit.analysis.capacity.test_sampling import look
from tests.unit.analysis.invariants import model
from tests.unit.analysis.invariants.test_against_model import watched
from tests.unit.service.test_explaining import asking, texts
from tests.unit.service.test_replaying import history_of


@pytest.fixture(scope="module")
def cluster() -> Cluster:
    """Generation 3 of pool p is for n2; a pod on n1 gets a device of generation 2."""
    made = Cluster()
    made.device_class()
    for name in ("n1", "n2"):
        made.node(name)
    made.slice("n2", [{"name": "e0"}], name="c1", pool="p", generation=3)
    made.slice("n1", [{"name": "e8"}, {"name": "e7"}], name="c2", pool="p", generation=2)
    made.claim()
    made.pod(claim="claim", nodeSelector={"kubernetes.io/hostname": "n1"})
    return made.settle()


async def test_scan_names_the_defect(cluster: Cluster) -> None:
    log, info = await history_of(cluster.line.events)
    report = await scan_history(log, info, cluster.line.head.revision, attempts_max=10)
    assert [(one.incident, one.times) for one in report.sightings] == [(UNNOTICED, 1)]


async def test_why_says_where_the_devices_are_still_allocated(cluster: Cluster) -> None:
    async with asking(cluster) as ask:
        held = await ask("device", f"{DRIVER}/p/e8")
        free = await ask("device", f"{DRIVER}/p/e7")
        of_slice = await ask("resourceslice", "c2")
        node = await ask("node", "n1")
        claim = await ask("resourceclaim", "claim")
    assert (held.outcome, free.outcome) == ("Allocated", "Free")
    unnoticed = "on n1 the scheduler does not notice generation 3"
    for one in (held, free, of_slice, node):
        assert any(text.startswith(unnoticed) for text in texts(one.reason)), one.subject
    assert not any("not allocated any more" in text for text in texts(of_slice.reason))
    assert not any("complete and usable" in text for text in texts(node.reason))
    assert not any("not published any more" in text for text in texts(claim.reason))


@pytest.mark.parametrize(
    ("quirks", "pools"),
    [
        (Quirks(), [("n1", 2, ["held", "free"]), ("n2", 3, ["free"])]),
        (Quirks(q12=False), [("n2", 3, ["free", "unpublished"])]),
    ],
)
def test_map_has_the_generation_that_each_node_uses(cluster, quirks, pools) -> None:
    answer = device_map.of("h", cluster.line.views, DeviceMapRequest(), MapBounds(), quirks)
    shown = [
        (one.node, one.generation, [each.state for each in one.devices]) for one in answer.pools
    ]
    assert shown == pools


@pytest.mark.parametrize("later", [[{"name": "f0"}], [], None], ids=["renamed", "emptied", "gone"])
def test_map_has_what_claims_hold_and_no_slice_publishes(later) -> None:
    made = Cluster()
    made.device_class()
    made.node("n1")
    made.slice("n1", [{"name": "e0"}, {"name": "e1"}], name="c1", pool="p")
    made.claim()
    made.pod(claim="claim")
    (device,) = made.settle().devices_of("claim")
    made.delete("resourceslices", "c1")
    if later is not None:
        made.slice("n1", later, name="c2", pool="p", generation=2)
    answer = device_map.of("h", made.line.views, DeviceMapRequest(), MapBounds())
    (pool,) = answer.pools
    states = {one.name: (one.state, one.holders) for one in pool.devices}
    free = {one["name"]: ("free", ()) for one in later or ()}
    assert states == {device.split("/")[-1]: ("unpublished", ("default/claim",)), **free}
    assert (pool.state, pool.node) == (("unpublished", "") if later is None else ("usable", "n1"))


def test_capacity_counts_what_nodes_can_be_given(cluster: Cluster) -> None:
    (gpu,) = look(cluster).classes
    assert (gpu.devices, gpu.free) == (3, 2)


def violations(cluster: Cluster) -> list[Violation]:
    watch = InvariantWatch()
    watch.follow(cluster.line.events)
    return watch.broken()


def test_allocation_from_the_old_generation_is_a_known_mistake(cluster: Cluster) -> None:
    (broken,) = violations(cluster)
    assert (broken.rule, broken.kind) == ("allocated-device-published", ViolationKind.KNOWN)
    assert watched(cluster.line.events) == model.expected(cluster.line.events, Switches())


def test_device_that_the_driver_moves_later_is_no_mistake_of_the_scheduler() -> None:
    made = Cluster()
    made.device_class()
    for name in ("n1", "n2"):
        made.node(name)
    made.slice("n1", [{"name": "e8"}], name="c2", pool="p", generation=2)
    made.claim()
    made.pod(claim="claim")
    made.settle()
    made.slice("n2", [{"name": "e0"}], name="c1", pool="p", generation=3)
    (broken,) = violations(made)
    assert broken.kind is ViolationKind.OUTSIDE
