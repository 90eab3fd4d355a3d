"""The gauges of the scheduling queue hold the pods that raw objects put there.

A pod without a node that was never tried is gated, for what PreEnqueue says of it; one that was
tried waits for its back-off or an event, or is gated when its claims went since; none is ready to
be tried once the controllers rest. Parity: controllers.md 3.2 and 4.1.
"""

import re
from collections import Counter
from collections.abc import Iterator

import pytest

from app.adapters.telemetry import Telemetry
from app.service.metering import HistoryMeter
from tests import draws
from tests.cluster import Cluster
from tests.truth import raw
from tests.truth.bindings.worlds import BindingWorld
from tests.truth.facts import FINISHED, Facts, reserved_for
from tests.truth.test_metrics import world as fleet
from tests.truth.waiting.judging import changes_of
from tests.truth.waiting.worlds import SmallWorld

WORLDS = 2
"""Worlds of one row, of each kind."""

UNSURE = ("either", "ending", "nominated")
"""Places of pods that a queue may have or not; a binding may have written nothing yet."""

_GAUGE = re.compile(r'(?m)^scheduler_pending_pods\{.*queue="(\w+)".*\} (\S+)$')


def shown(cluster: Cluster) -> dict[str, int]:
    """The gauges of the present moment."""
    meter = Telemetry()
    history = HistoryMeter(meter, "h", cluster.profile)
    history.publish({one.name: one for one in cluster.controllers})
    return {queue: int(float(value)) for queue, value in _GAUGE.findall(meter.render())}


def places(facts: Facts) -> Iterator[str]:
    """Where each pod without a node is: `gated`, `tried`, one of several, or nowhere."""
    for name, pod in facts.pods.items():
        spec, status = pod["spec"], pod.get("status") or {}
        is_default = spec.get("schedulerName", "default-scheduler") == "default-scheduler"
        if spec.get("nodeName") or not is_default or status.get("phase") in FINISHED:
            continue
        told = [one["type"] for one in status.get("conditions") or ()]
        is_held = spec.get("schedulingGates") or lacks_a_claim(facts, name, pod)
        if "deletionTimestamp" in pod["metadata"]:
            yield "ending"
        elif status.get("nominatedNodeName"):
            yield "binding" if has_reserved(facts, name, pod) else "nominated"
        elif "PodScheduled" not in told or spec.get("schedulingGates"):
            yield "gated" if is_held else "ready"
        else:
            yield "either" if is_held else "tried"


def lacks_a_claim(facts: Facts, name: str, pod: dict) -> bool:
    """Whether a claim of the pod is not there, is being deleted, or is of another pod."""
    namespace = name.partition("/")[0]
    made = {
        one["name"]: one.get("resourceClaimName")
        for one in (pod.get("status") or {}).get("resourceClaimStatuses") or ()
    }
    for entry in pod["spec"].get("resourceClaims") or ():
        is_made = "resourceClaimTemplateName" in entry
        if is_made and entry["name"] not in made:
            return True
        claim = made[entry["name"]] if is_made else entry["resourceClaimName"]
        tree = facts.claims.get(f"{namespace}/{claim}")
        if claim and (tree is None or "deletionTimestamp" in tree["metadata"]):
            return True
        if claim and is_made:
            owners = tree["metadata"].get("ownerReferences") or ()
            if pod["metadata"]["uid"] not in [one["uid"] for one in owners]:
                return True
    return False


def has_reserved(facts: Facts, name: str, pod: dict) -> bool:
    """Whether a claim is reserved for a pod, as claims are once its binding began."""
    own = pod["metadata"]["name"]
    return any(
        own in reserved_for(claim)
        for place, claim in facts.claims.items()
        if place.partition("/")[0] == name.partition("/")[0]
    )


def differences(gauges: dict[str, int], counted: Counter) -> Iterator[str]:
    """One line for each gauge that cannot be so."""
    unsure = sum(counted[place] for place in UNSURE)
    if gauges["active"] != counted["ready"]:
        yield f"active {gauges['active']}, counted {counted['ready']}"
    if not counted["gated"] <= gauges["gated"] <= counted["gated"] + unsure:
        yield f"gated {gauges['gated']}, counted {dict(counted)}"
    waiting = gauges["backoff"] + gauges["unschedulable"]
    if not counted["tried"] <= waiting <= counted["tried"] + unsure:
        yield f"waiting {waiting}, counted {dict(counted)}"


def worlds(seed: int) -> Iterator[tuple[str, Cluster]]:
    """One world of each kind."""
    yield "small", SmallWorld(seed).cluster
    yield "binding", BindingWorld(seed).cluster
    yield "fleet", fleet(seed)


def counted(cluster: Cluster) -> Counter:
    """How many pods are in each place."""
    history = raw.RawHistory(changes_of(cluster))
    return Counter(places(Facts(history.at(cluster.line.events[-1].revision))))


@draws.BY_DAY
@pytest.mark.parametrize("first", draws.seeds(7))
def test_gauges_have_the_pods_that_raw_objects_put_there(first):
    for seed in range(first * WORLDS, (first + 1) * WORLDS):
        for kind, cluster in worlds(seed):
            gauges, own = shown(cluster.settle()), counted(cluster)
            assert list(differences(gauges, own)) == [], f"{kind} {seed}"
            for queue in ("active", "gated", "unschedulable"):
                more = {**gauges, queue: gauges[queue] + 1 + sum(own[one] for one in UNSURE)}
                assert list(differences(more, own)), f"{kind} {seed}: blind for {queue}"


@draws.ONLY
def test_the_worlds_have_each_place():
    met: Counter = Counter()
    for seed in range(30):
        for _, cluster in worlds(seed):
            met += counted(cluster)
    assert {"gated", "tried", "binding", "nominated"} <= met.keys()
