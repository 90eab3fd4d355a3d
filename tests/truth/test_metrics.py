"""The metrics of a history have the numbers that are counted from its raw events."""

import re
from collections import Counter

import pytest

from app.adapters.telemetry import Telemetry
from app.analysis.views import LiveViews
from app.service.metering import HistoryMeter
from tests import draws
from tests.simulation.fleet_acts import ACTS
from tests.simulation.fleet_world import FleetWorld

STEPS = 40
SCHEDULER = "system:kube-scheduler"
CLAIM_MAKER = "system:serviceaccount:kube-system:resource-claim-controller"
RESULTS = {"Unschedulable": "unschedulable", "Error": "error"}
SOURCES = {
    "resource.kubernetes.io/pod-claim-name": "resource_claim_template",
    "resource.kubernetes.io/extended-resource-claim": "extended_resource",
}
EVICTED = "DeletionByDeviceTaintManager"


def shown(cluster) -> dict[str, Counter]:
    """The values of each metric by its labels, after all events of a cluster."""
    meter, views = Telemetry(), LiveViews(cluster.profile)
    history = HistoryMeter(meter, "h", cluster.profile)
    for event in cluster.line.events:
        views.fold(event)
        history.fold(event, views.objects)
    history.publish({})
    values: dict[str, Counter] = {}
    for name, labels, value in re.findall(r"(?m)^(\w+)\{([^}]*)\} (\S+)$", meter.render()):
        own = dict(re.findall(r'(\w+)="([^"]*)"', labels))
        del own["history"]
        if float(value):
            values.setdefault(name, Counter())[tuple(sorted(own.items()))] += int(float(value))
    return values


def labels(**own: str) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(own.items()))


def counted(cluster) -> dict[str, Counter]:
    """The same from the states and decisions of the log.

    Since 1.37 all components count claims under one name. Parity: controllers.md 10.
    """
    attempts, creates, evictions, decisions = Counter(), Counter(), Counter(), Counter()
    for_extended: Counter = Counter()
    has_one_name = tuple(map(int, cluster.profile.version.split(".")[:2])) >= (1, 37)
    made = "dynamic_resource_allocation_resourceclaim_creates_total"
    placed, evicted, claims = set(), set(), {}
    for event in cluster.line.events:
        tree, actor = event.object, event.stamp.actor.user
        if event.type == "DecisionRecorded":
            decisions[labels(controller=tree["controller"], outcome=tree["outcome"])] += 1
            if tree["controller"] == "scheduling":
                inputs = tree["inputs"]
                failed = [(tree["outcome"], 1)]
                failed += [(one["outcome"], len(one["pods"])) for one in inputs.get("attempts", ())]
                for outcome, number in failed:
                    if outcome in RESULTS:
                        result = RESULTS[outcome]
                        attempts[labels(profile="default-scheduler", result=result)] += number
            continue
        uid = tree["metadata"].get("uid", "")
        if event.key.resource == "pods" and event.type != "ObjectDeleted":
            if tree["spec"].get("nodeName") and uid not in placed:
                placed.add(uid)
                if actor == SCHEDULER:
                    attempts[labels(profile="default-scheduler", result="scheduled")] += 1
            if EVICTED in str(tree.get("status")) and uid not in evicted:
                evicted.add(uid)
                evictions[()] += 1
        if event.key.resource == "resourceclaims":
            claims[event.key] = None if event.type == "ObjectDeleted" else tree
            if event.type == "ObjectCreated" and actor == SCHEDULER and not has_one_name:
                for_extended[labels(status="success")] += 1
            elif event.type == "ObjectCreated" and actor in (SCHEDULER, CLAIM_MAKER):
                creates[labels(status="success", admin_access=of_claim(tree)["admin_access"])] += 1
        is_told = event.key.resource == "events" and event.type != "ObjectDeleted"
        if is_told and actor == CLAIM_MAKER and tree["reason"] == "FailedResourceClaimCreation":
            creates[labels(status="failure", admin_access="false")] += 1
    present = Counter(labels(**of_claim(tree)) for tree in claims.values() if tree)
    return {
        "redra_decisions_total": decisions,
        "scheduler_schedule_attempts_total": attempts,
        made if has_one_name else "resourceclaim_controller_creates_total": creates,
        "scheduler_resourceclaim_creates_total": for_extended,
        "device_taint_eviction_controller_pod_deletions_total": evictions,
        "resourceclaim_controller_resource_claims": present,
    }


def of_claim(tree: dict) -> dict[str, str]:
    """The labels of a claim."""
    requests = tree["spec"]["devices"].get("requests") or ()
    annotations = tree["metadata"].get("annotations") or {}
    return {
        "allocated": str(bool((tree.get("status") or {}).get("allocation"))).lower(),
        "admin_access": str(any("'adminAccess': True" in str(one) for one in requests)).lower(),
        "source": next((SOURCES[one] for one in SOURCES if one in annotations), ""),
    }


def world(seed: int):
    """The cluster of a seeded world with mixed hardware."""
    made = FleetWorld(seed)
    for _ in range(STEPS):
        made.step(ACTS)
    return made.cluster


@draws.BY_DAY
@pytest.mark.parametrize("seed", draws.seeds(7))
def test_metrics_have_the_numbers_of_the_raw_events(seed):
    cluster = world(seed)
    values = shown(cluster)
    for name, wanted in counted(cluster).items():
        assert values.get(name, Counter()) == wanted, name


@draws.ONLY
def test_the_worlds_have_each_metric():
    met: Counter = Counter()
    for seed in range(30):
        for name, values in counted(world(seed)).items():
            met[name] += sum(values.values())
    assert all(met.values()), met
