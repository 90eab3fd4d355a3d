"""Recordings altered an eighth time, and the verdict of decide, fixed before any run.

`WRONG`: no controller writes such a status, so decide is unexplained and names its object.
`UNFIT`: the time in a status contradicts that of its write, so nothing is said to agree.
`HARMLESS`: the controller had not seen the newest spec; decide proves it.

Rows come by day: each is one more field of a status, with the same verdict.
"""

import json
import random

import pytest

from app.adapters.history.writers import AuditWriter
from app.analysis.replay.report import Agreement
from app.bootstrap import process_settings, replays, stores
from app.domain.objects.profile import Profile
from app.service.replays.verifying import VerifyOutcome
from tests import draws
from tests.cluster import Cluster
from tests.conformance import selection, tampering
from tests.conformance import status_tampering as status
from tests.conformance import test_subtle_tampering as subtly
from tests.conformance.verdicts import judged, judged_lines, names_one

pytestmark = pytest.mark.timeout(0)
"""Runs are bounded in number; how long they take is a matter of the machine."""

RULED = ("e-taints", "j-api-versions")

WRONG = [
    *selection.rows(
        (
            status.observe_a_later_generation,
            status.observe_an_earlier_generation,
            status.observe_no_generation,
            status.leave_the_observed_generation_out,
            status.tell_another_number,
            status.give_another_reason,
            status.turn_the_status,
            status.leave_the_time_out,
        ),
        RULED,
    ),
    *selection.rows((status.observe_another_generation_of_a_pod,), ("a-quickstart", *RULED)),
]
UNFIT = [
    *selection.rows((status.write_before_the_rule_was_made, status.write_after_the_answer), RULED),
    ("e-taints", status.write_before_the_spec_changed),
]


@draws.BY_DAY
@pytest.mark.parametrize(("name", "alter"), WRONG)
async def test_status_that_no_controller_writes_is_unexplained(name, alter, tmp_path):
    lines = subtly.read(name)
    told = alter(lines, random.Random(f"{name} 0"))
    (decided,) = await judged_lines(name, lines, tmp_path, (replays.decide,))
    assert not decided.explained, told
    assert names_one(decided, told)


@draws.BY_DAY
@pytest.mark.parametrize(("name", "alter"), UNFIT)
async def test_time_of_a_status_that_does_not_fit_is_never_verified(name, alter, tmp_path):
    verified, decided, told = await judged(name, alter, tmp_path)
    assert verified.outcome in (VerifyOutcome.PARTLY, VerifyOutcome.FAILED), told
    assert decided.agreement in (Agreement.PARTLY, Agreement.UNEXPLAINED, Agreement.IMPOSSIBLE), (
        told
    )


@draws.in_turn("ways")
async def test_status_about_the_spec_before_is_proved(tmp_path):
    verified, decided, told = await judged("e-taints", status.describe_the_spec_before, tmp_path)
    assert verified.outcome is VerifyOutcome.VERIFIED, told
    assert decided.agreement in (Agreement.AGREES, Agreement.PROVED), told


@pytest.mark.parametrize(
    ("release", "agreement", "classes"),
    [("1.34", Agreement.AGREES, set()), ("1.35", Agreement.PROVED, {"profile 1.34"})],
)
async def test_gate_of_the_generations_of_pods_can_be_off_in_1_34_alone(
    release, agreement, classes, tmp_path
):
    """A pod finds one of two devices; nothing says which generation its condition is about."""
    cluster = Cluster(Profile(version=release))
    cluster.node("node-0")
    cluster.device_class()
    cluster.slice("node-0", devices=[{"name": "gpu-0"}])
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu", "count": 2}}
    spec = {"devices": {"requests": [request]}}
    cluster.create("resource.k8s.io/v1", "ResourceClaimTemplate", "one", spec={"spec": spec})
    cluster.pod("waiting", template="one")
    cluster.wait(5)
    writer = AuditWriter(tmp_path / "audit.jsonl")
    writer.write(cluster.line.events)
    writer.finish({})
    text = (tmp_path / "audit.jsonl").read_text()
    lines = [json.loads(line) for line in text.splitlines()]
    assert '"observedGeneration"' in text
    for line in tampering.of(lines, "pods"):
        for tree in tampering.bodies(line):
            for condition in tree.get("status", {}).get("conditions") or ():
                condition.pop("observedGeneration", None)
    path = tampering.write(lines, tmp_path / "audit.jsonl")
    settings = process_settings.settings(profile=release)
    store = stores.memory_store()
    history = await replays.load_files(store, settings, (path,))
    report = await replays.decide(store, settings, history, "", subtly.silent)
    assert report.agreement is agreement
    assert {each.reason for each in report.differences} == classes
