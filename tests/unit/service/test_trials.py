"""Candidates of a minimisation: a cut is one only when the API takes every write after it.

Runs of candidates: they are freed at once, and have the views of their events.
"""

import gc
import weakref
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from app.analysis.replay.variants import Switches
from app.analysis.sweep import measures
from app.bootstrap.engines import Engines
from app.bootstrap.minimising import sources
from app.bootstrap.minimising.sources import Source
from app.domain.log import ObjectKey
from app.domain.values import api_resources
from app.domain.values.fields import core
from app.domain.values.timestamps import SECOND, Instant
from app.service.replays.trials import Ran, Runner
from app.settings import Settings
from tests.cluster import DRIVER, Cluster
from tests.simulation import planted_soak

SLICE = ObjectKey(*api_resources.RESOURCE_SLICES, "", "slice")
DEVICE = ("spec", "devices", "[name=gpu-0]")
TAINT = (*DEVICE, "taints", "[key=broken]")
CLAIM = ObjectKey(*api_resources.RESOURCE_CLAIMS, "default", "mine")
POP_GATE = "SchedulerPopFromBackoffQ"
RESULT = ("status", "allocation", "devices", "results", "[request=gpu]")


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Source:
    """A slice of which a device is tainted later."""
    cluster = Cluster()
    cluster.node("node-1")
    cluster.slice("node-1", [{"name": "gpu-0"}, {"name": "gpu-1"}], name="slice")
    tree = cluster.must("resourceslices", "slice")
    taint = {"key": "broken", "value": "yes", "effect": "NoSchedule"}
    devices = [{"name": "gpu-0", "taints": [taint]}, {"name": "gpu-1"}]
    cluster.update("resourceslices", {**tree, "spec": {**tree["spec"], "devices": devices}})
    path = tmp_path_factory.mktemp("trials") / "taint.zip"
    planted_soak.write(cluster, path)
    return anyio.run(sources.read_files, Settings(), (path,), None)


@pytest.mark.parametrize("is_recorded", [False, True])
@pytest.mark.parametrize(
    ("cut", "is_valid"),
    [
        ((*TAINT, "value"), True),
        (TAINT, True),
        ((*DEVICE, "taints"), True),
        ((*TAINT, "key"), False),
        ((*TAINT, "effect"), False),
        ((*DEVICE, "name"), False),
    ],
)
def test_write_that_the_api_would_refuse_is_no_candidate(
    source: Source, cut: tuple[str, ...], is_valid: bool, is_recorded: bool
) -> None:
    material = source.recorded if is_recorded else source.decided
    runner = Runner(material, source.info, Engines())
    candidate = replace(source.whole(material), cuts=frozenset({(SLICE, cut)}))
    assert runner.is_valid(candidate) is is_valid


@pytest.fixture(scope="module")
def allocated(tmp_path_factory: pytest.TempPathFactory) -> Source:
    """A claim that an administrator allocates, as an older scheduler did."""
    cluster = Cluster()
    cluster.claim("mine")
    result = {"request": "gpu", "driver": DRIVER, "pool": "node-1", "device": "gpu-0"}
    fields = [{"key": "metadata.name", "operator": "In", "values": ["node-1"]}]
    selector = {"nodeSelectorTerms": [{"matchFields": fields}]}
    allocation = {"devices": {"results": [result]}, "nodeSelector": selector}
    tree = cluster.must("resourceclaims", "mine")
    cluster.update("resourceclaims", {**tree, "status": {"allocation": allocation}}, "status")
    path = tmp_path_factory.mktemp("trials") / "allocated.zip"
    planted_soak.write(cluster, path)
    return anyio.run(sources.read_files, Settings(), (path,), None)


def test_administrator_who_allocates_is_no_scheduler(allocated: Source) -> None:
    writes = [step.event.key for step in allocated.decided.steps]
    assert writes.count(CLAIM) == 2


@pytest.mark.parametrize(
    ("cut", "is_valid"),
    [
        (("status", "allocation", "nodeSelector"), True),
        ((*RESULT, "device"), False),
        ((*RESULT, "request"), False),
        (RESULT, True),
    ],
)
def test_status_that_the_api_would_refuse_is_no_candidate(
    allocated: Source, cut: tuple[str, ...], is_valid: bool
) -> None:
    runner = Runner(allocated.decided, allocated.info, Engines())
    candidate = replace(allocated.whole(allocated.decided), cuts=frozenset({(CLAIM, cut)}))
    assert runner.is_valid(candidate) is is_valid


@pytest.fixture
def uncollected() -> Iterator[None]:
    """The collector is off."""
    gc.disable()
    yield
    gc.enable()


@pytest.fixture(scope="module")
def soak(tmp_path_factory: pytest.TempPathFactory) -> Source:
    """A small soak, in which pods wait for claims."""
    path = tmp_path_factory.mktemp("trials") / "soak.zip"
    planted_soak.write(planted_soak.soak(1, 6), path)
    return anyio.run(sources.read_files, Settings(), (path,), None)


def ran(source: Source) -> Ran:
    runner = Runner(source.decided, source.info, Engines())
    return runner.run(source.whole(source.decided))


def test_run_is_freed_with_its_last_use(uncollected: None, soak: Source) -> None:
    """A worker runs hundreds, each as large as its history, and hardly ever collects."""
    views = weakref.ref(ran(soak).views)
    scheduling = [each for each in Engines().controllers(soak.info) if each.name == "scheduling"]
    scheduler = weakref.ref(scheduling.pop())
    assert (views(), scheduler()) == (None, None)


def test_run_has_the_views_of_its_events(soak: Source) -> None:
    once = ran(soak)
    assert once.views is not None
    assert measures.measured(once.side, once.views) == measures.measured(once.side)


def test_history_that_is_not_decided_has_no_views(soak: Source) -> None:
    runner = Runner(soak.recorded, soak.info, Engines())
    assert runner.run(soak.whole(soak.recorded)).views is None


def test_other_switches_decide_no_further_than_the_bundle_of_a_run(tmp_path: Path) -> None:
    """Its readers end with its last event, before the backoff of a pod is over without the gate."""
    cluster = Cluster()
    cluster.node("n1")
    cluster.device_class()
    cluster.slice("n1", [{"name": "gpu-0"}])
    cluster.template()
    cluster.pod("first", template="gpu")
    cluster.settle().pod("second", template="gpu")
    cluster.settle().kill("first")
    cluster.settle()
    path = tmp_path / "backoff.zip"
    planted_soak.write(cluster, path)
    read = anyio.run(sources.read_files, Settings(), (path,), None)
    until = Instant(read.last + 60 * SECOND)
    runner = Runner(read.decided, read.info, Engines())
    run = runner.run(replace(read.whole(read.decided), until=until))
    placed = [
        {
            event.key.name
            for event in events
            if event.key[:2] == api_resources.PODS and core.node_name(event.object)
        }
        for events in (run.events, run.under(Switches(gates={POP_GATE: False})).events)
    ]
    assert placed == [{"first", "second"}, {"first"}]


def test_no_two_objects_of_a_run_have_the_same_uid(soak: Source) -> None:
    """The soak and its run draw uids from one seed."""
    keys: dict[str, set[ObjectKey]] = {}
    for each in ran(soak).events:
        if each.is_about_object:
            keys.setdefault(each.uid, set()).add(each.key)
    assert [named for named in keys.values() if len(named) > 1] == []
