"""What is said to help a pod that waits for binding conditions is reported by drivers: it runs."""

import copy
import re
from datetime import datetime, timedelta

import pytest

from app.domain.values import timestamps
from tests import draws
from tests.truth.bindings import model
from tests.truth.bindings.judging import happenings_of
from tests.truth.bindings.worlds import BindingWorld
from tests.truth.facts import results
from tests.unit.service.test_explaining import asking

SENTENCE = (
    r"report condition (\S+) of (\S+)/(\S+)/(\S+) in the status of claim (\S+) as (True|False)"
)
LOOK_SECONDS = 6
"""A little more than the time until the scheduler looks at the claims again."""


@draws.BY_DAY
@pytest.mark.parametrize("seed", draws.seeds(14))
async def test_pod_runs_when_drivers_report_what_is_said_to_help(seed):
    world = BindingWorld(seed)
    settings = {"controllers": {"bindingTimeoutSeconds": world.timeout}}
    for name, is_lasting in [*waiting(world)]:
        async with asking(world.cluster, settings=settings) as ask:
            answer = (await ask("pod", name, help=True)).to_json()
        (helps,) = answer["helps"]
        changes = helps["changes"]
        if is_lasting:
            assert runs(seed, name, changes), changes
        for number in range(len(changes)):
            fewer = [*changes[:number], *changes[number + 1 :]]
            assert not runs(seed, name, fewer), (changes[number], "is not needed")


def runs(seed, name, changes):
    """Whether the pod runs in a twin of the world whose drivers report these conditions."""
    twin = BindingWorld(seed)
    for sentence in changes:
        report(twin, *re.fullmatch(SENTENCE, sentence).groups())
    twin.cluster.wait(LOOK_SECONDS)
    return "nodeName" in twin.cluster.must("pods", name)["spec"]


@draws.ONLY
def test_the_worlds_have_pods_that_wait_for_one_report_and_for_several():
    waits = [one for seed in range(28) for one in waiting(BindingWorld(seed))]
    assert {is_lasting for _, is_lasting in waits} == {True, False}
    assert len(waits) > 10


def waiting(world):
    """The pods that wait for conditions, and whether they do so past the next look."""
    happenings = happenings_of(world)
    now = happenings[-1].time
    state = model.state_at(happenings, now, len(happenings))
    for one in model.waits(happenings):
        claims = [*model.claims_of(one.pod, state)]
        if one.ended is not None or one.is_gone or not all(results(each) for each in claims):
            continue
        since = min(each["status"]["allocation"]["allocationTimestamp"] for each in claims)
        end = datetime.fromisoformat(since) + timedelta(seconds=world.timeout)
        if any(lacks(claim) for claim in claims):
            clock = datetime.fromisoformat(timestamps.micro_text(world.cluster.line.now))
            yield one.pod["metadata"]["name"], clock + timedelta(seconds=LOOK_SECONDS) < end


def lacks(claim):
    """Whether a device of the claim lacks a condition, or has one that is a failure."""
    for result in results(claim):
        told = model.conditions_of(claim, result) or {}
        kinds = result.get("bindingConditions") or ()
        if any(told.get(kind, {}).get("status") != "True" for kind in kinds):
            return True
        failing = (result.get("bindingFailureConditions") or ()) if kinds else ()
        if any(told.get(kind, {}).get("status") == "True" for kind in failing):
            return True
    return False


def report(world, kind, driver, pool, device, name, status):
    """A driver writes a condition of a device as a sentence says."""
    claim = copy.deepcopy(world.cluster.must("resourceclaims", name.rpartition("/")[2]))
    devices = claim["status"].setdefault("devices", [])
    (result,) = [
        one
        for one in results(claim)
        if (one["driver"], one["pool"], one["device"]) == (driver, pool, device)
    ]
    own = next(
        (
            one
            for one in devices
            if one["device"] == device and one["driver"] == driver and one["pool"] == pool
        ),
        None,
    )
    if own is None:
        own = {key: result[key] for key in ("driver", "pool", "device", "shareID") if key in result}
        devices.append(own)
    others = [one for one in own.get("conditions") or () if one["type"] != kind]
    made = {"type": kind, "status": status, "reason": "Reported", "message": "",
            "lastTransitionTime": "2026-01-02T03:00:00Z"}  # fmt: skip
    own["conditions"] = [*others, made]
    world.cluster.update("resourceclaims", claim, "status")
