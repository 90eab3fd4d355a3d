"""The verdict that decide must give for each recording that was altered by machine.

What decides nothing (clocks, versions) comes by day, as do kinds that a log lacks; each run has
something wrong and something that accuses nobody.
"""

import json
from dataclasses import replace

import pytest

from app.adapters.history.writers import AuditWriter
from app.analysis.replay.classes import DifferenceClass
from app.analysis.replay.differences import Aspect
from app.analysis.replay.report import Agreement
from app.bootstrap import process_settings, replays, stores
from app.cli import replaying
from app.domain.controllers.registry import ControllerOptions
from app.domain.controllers.scheduling.binding_cycle.delayed_binding import (
    FixedBindDelay,
)
from app.domain.errors import InputError
from tests import draws
from tests.cluster import DRIVER, Cluster
from tests.conformance import altered_recordings as altered
from tests.conformance import disordered_logs
from tests.kept import Kept
from tests.shared_data import shared_path

pytestmark = pytest.mark.timeout(0)
"""Runs are bounded in number; how long they take is a matter of the machine."""

PLAIN = ("a-quickstart", "c-multihost-tpu", "e-taints")
LITERAL = (Aspect.NODES, Aspect.DEVICES, Aspect.EVICTIONS, Aspect.RULES)


def recorded(name):
    return disordered_logs.read(shared_path("histories", name, "audit.jsonl.gz"))


async def decide(lines, folder, *, profile="1.36", quirks=(), runs_max=None):
    path = disordered_logs.write(lines, folder)
    settings = process_settings.settings(profile=profile, quirks=list(quirks))
    if runs_max is not None:
        settings = replace(settings, decide_runs_max=runs_max)
    store = stores.memory_store()
    history = await replays.load_files(store, settings, (path,))
    return await replays.decide(store, settings, history, "", lambda *_: None)


_STRAIGHT = Kept()


async def straight(name, folder):
    """The report of the recording as it is."""
    if name not in _STRAIGHT:
        _STRAIGHT[name] = await decide(recorded(name), folder / "straight")
    return _STRAIGHT[name]


def judged(report):
    return {aspect: (counts.same, counts.different) for aspect, counts in report.aspects.items()}


def unexplained(report, aspect):
    return [
        found
        for found in report.differences
        if found.aspect is aspect and found.reason == DifferenceClass.UNEXPLAINED
    ]


@draws.in_turn("ways")
@pytest.mark.parametrize("name", draws.by_turns([PLAIN]))
async def test_names_of_users_decide_nothing(name, tmp_path):
    plain = await straight(name, tmp_path)
    found = await decide(altered.renamed(recorded(name)), tmp_path / "renamed")
    assert judged(found) == judged(plain)
    assert found.agreement is plain.agreement


@draws.in_turn("ways")
@pytest.mark.parametrize(
    ("name", "versions"),
    draws.by_turns(
        [
            [(name, ("v1beta1",)) for name in PLAIN],
            [("e-taints", ("v1beta2",))],
            [("a-quickstart", ("v1", "v1beta2", "v1beta1"))],
        ]
    ),
)
async def test_version_in_which_objects_were_recorded_decides_nothing(name, versions, tmp_path):
    plain = await straight(name, tmp_path)
    lines = altered.in_versions(recorded(name), *versions)
    assert versions[-1] in {line["objectRef"].get("apiVersion") for line in lines}
    found = await decide(lines, tmp_path / "older")
    assert judged(found) == judged(plain)
    assert found.agreement is plain.agreement


async def test_version_that_no_release_has_is_refused_with_its_place(tmp_path):
    lines = altered.in_versions(recorded("a-quickstart"), "v3")
    path = disordered_logs.write(lines, tmp_path)
    settings = process_settings.settings(profile="1.36")
    with pytest.raises(InputError, match=r"v3 was never released") as caught:
        await replays.load_files(stores.memory_store(), settings, tuple(path.glob("audit*")))
    line = int(caught.value.place.rpartition(":")[2])
    assert lines[line - 1]["objectRef"]["apiVersion"] == "v3"
    # In a folder its lines are lost, and nobody may say that what is left agrees.
    report = await decide(lines, tmp_path / "folder")
    assert report.agreement is Agreement.PARTLY


@draws.in_turn("ways")
@pytest.mark.parametrize("name", draws.by_turns([PLAIN[::-1]]))
async def test_controllers_of_one_account_are_told_apart_by_what_they_do(name, tmp_path):
    report = await decide(altered.under_one_account(recorded(name)), tmp_path)
    assert [dict(report.aspects[aspect].different) for aspect in LITERAL] == [{}] * len(LITERAL)
    assert report.explained


@draws.in_turn("ways")
async def test_accounts_of_another_name_are_known_by_what_they_do(tmp_path):
    plain = await straight("e-taints", tmp_path)
    lines = altered.under_accounts_of_a_company(recorded("e-taints"))
    found = await decide(lines, tmp_path / "renamed")
    assert judged(found) == judged(plain)
    assert found.aspects[Aspect.EVICTIONS].same > 5


@draws.in_turn("ways")
async def test_release_that_is_said_to_ignore_rules_and_does_not_is_the_switch(tmp_path):
    """A patched 1.36.2 shows only its version; its decisions show the repair."""
    report = await decide(recorded("e-taints"), tmp_path, profile="1.36.2")
    classes = {why for counts in report.aspects.values() for why in counts.different}
    assert classes == {"quirk c24=off"}
    assert report.agreement is Agreement.PROVED


@draws.in_turn("ways")
@pytest.mark.parametrize("millis", [-300, 300])
async def test_clock_of_the_scheduler_decides_nothing(millis, tmp_path):
    report = await decide(altered.with_late_clock(recorded("e-taints"), millis), tmp_path)
    assert [dict(report.aspects[aspect].different) for aspect in LITERAL] == [{}] * len(LITERAL)
    assert report.explained


@pytest.mark.parametrize("name", draws.by_turns([["a-quickstart", "e-taints"]]))
async def test_device_given_twice_is_a_violation_and_no_race(name, tmp_path):
    lines, claim = altered.given_twice(recorded(name), 6)
    report = await decide(lines, tmp_path)
    assert not report.explained
    assert [place for place in report.violations if place.endswith(f"/{claim}")]
    (found,) = unexplained(report, Aspect.DEVICES)
    assert found.subject.endswith(f"/{claim}")
    assert found.detail.startswith("violation: device")


def strangers(lines):
    """Consumers that a claim with one consumer cannot have: each with name and uid."""
    gone = altered.uid_of(lines, "pods", "pod0")
    return {
        "a pod that does not name the claim": ("pod6", altered.uid_of(lines, "pods", "pod6")),
        "a pod that is gone": ("pod0", gone),
        "nobody": ("ghost", "eeeeeeee-0000-0000-0000-000000000009"),
        "another pod of this name": ("pod7", "eeeeeeee-0000-0000-0000-000000000007"),
    }


@draws.in_turn("wrongs")
@pytest.mark.parametrize("who", strangers(recorded("a-quickstart")))
async def test_reservation_for_a_stranger_is_unexplained_and_no_race(who, tmp_path):
    lines = recorded("a-quickstart")
    (claim,) = altered.claims_of(lines, "pod7")
    report = await decide(altered.reserved_as_well(lines, claim, *strangers(lines)[who]), tmp_path)
    assert not report.explained
    assert [found.subject.rpartition("/")[2] for found in report.differences] == [claim, "pod7"]
    assert {found.reason for found in report.differences} == {DifferenceClass.UNEXPLAINED}


@draws.in_turn("wrongs")
async def test_claim_that_is_not_as_its_template_is_unexplained(tmp_path):
    """The selector is one that the recorded device fulfils: nothing else differs."""
    lines = recorded("a-quickstart")
    (claim,) = altered.claims_of(lines, "pod7")
    selector = {"cel": {"expression": "device.driver == 'gpu.example.com'"}}
    report = await decide(altered.made_with(lines, claim, selectors=[selector]), tmp_path)
    assert not report.explained
    (found,) = unexplained(report, Aspect.WRITES)
    assert found.subject.endswith(f"/{claim}")
    assert "device.driver ==" in str(found.recorded)
    assert "device.driver ==" not in str(found.again)


LACKING = {
    "classes": lambda line: line["objectRef"]["resource"] != "deviceclasses",
    "slices": lambda line: line["objectRef"]["resource"] != "resourceslices",
    "nodes": lambda line: line["objectRef"]["resource"] != "nodes",
}


@draws.BY_DAY
@pytest.mark.parametrize("what", LACKING)
async def test_without_a_kind_that_decisions_need_nothing_is_judged(what, tmp_path):
    lines = [line for line in recorded("a-quickstart") if LACKING[what](line)]
    report = await decide(lines, tmp_path)
    assert report.agreement is Agreement.PARTLY
    assert report.aspects[Aspect.NODES].different.keys() == {DifferenceClass.NOT_COMPARABLE}
    (detail,) = {found.detail for found in report.differences}
    assert detail.startswith("the recording has no ")
    assert report.runs == 0
    assert report.to_json()["certainty"] == "unsure"


@draws.in_turn("ways")
@pytest.mark.parametrize("lines_missing", [50, 110])
async def test_log_that_begins_late_is_compared_in_part(lines_missing, tmp_path):
    report = await decide(recorded("a-quickstart")[lines_missing:], tmp_path)
    assert report.agreement is Agreement.PARTLY
    assert report.doubts


@draws.in_turn("ways")
async def test_pod_that_was_made_without_its_body_leaves_its_placement_open(tmp_path):
    lines = recorded("a-quickstart")
    bare = altered.without_bodies(lines, lambda line: altered.is_made(line, "pods", "pod7"))
    report = await decide(bare, tmp_path)
    assert report.agreement is Agreement.PARTLY


@draws.in_turn("ways")
async def test_allocation_that_was_recorded_without_its_body_accuses_nobody(tmp_path):
    lines = recorded("a-quickstart")
    claims = altered.claims_of(lines, "pod7")

    def is_theirs(line):
        reference = line["objectRef"]
        is_status = reference.get("subresource") == "status"
        return (
            is_status
            and reference["resource"] == "resourceclaims"
            and (reference.get("name") in claims)
        )

    report = await decide(altered.without_bodies(lines, is_theirs), tmp_path)
    assert report.agreement is Agreement.PARTLY


@draws.in_turn("wrongs")
async def test_pod_away_from_its_devices_is_unexplained(tmp_path):
    lines = recorded("a-quickstart")
    pod, node = next(altered.bound(lines))
    other = next(each for _, each in altered.bound(lines) if each != node)
    report = await decide(altered.moved(lines, pod, other), tmp_path)
    assert not report.explained
    claims = {found.subject.rpartition("/")[2] for found in unexplained(report, Aspect.DEVICES)}
    assert altered.claims_of(lines, pod) <= claims


async def test_pod_that_was_never_placed_is_unexplained_where_there_was_a_place(tmp_path):
    """Its namespace and the reservation stay.

    If they went, that would prove that the end of the pod is not recorded.
    """
    lines = recorded("j-api-versions")
    pod, _ = next(altered.bound(lines))
    lines = altered.without(lines, altered.is_release_of(lines, pod))
    left_out = altered.is_placement_of(pod, altered.claims_of(lines, pod))
    report = await decide(altered.without(lines, left_out), tmp_path)
    assert not report.explained
    assert pod in [found.subject.rpartition("/")[2] for found in unexplained(report, Aspect.NODES)]


@draws.in_turn("wrongs")
async def test_eviction_that_did_not_take_place_is_unexplained(tmp_path):
    lines = recorded("e-taints")
    *_, pod = altered.evicted(lines)
    report = await decide(altered.without(lines, altered.is_eviction_of(pod)), tmp_path)
    assert not report.explained
    missing = unexplained(report, Aspect.EVICTIONS)
    assert pod in [found.subject.rpartition("/")[2] for found in missing]


@draws.in_turn("ways")
async def test_effect_of_a_switch_has_the_class_of_the_switch(tmp_path):
    """On an idle cluster no finished pod gets a second claim; with the switch on, each does."""
    report = await decide(recorded("a-quickstart"), tmp_path, quirks=["c22=on"])
    classes = {why for counts in report.aspects.values() for why in counts.different}
    assert "switch --quirk c22=on" in classes
    assert report.agreement is Agreement.PROVED


def with_devices(**kinds):
    """A node with devices of these kinds, and a class that selects the fast ones."""
    cluster = Cluster(options=ControllerOptions(bind_delay=FixedBindDelay(40_000)))
    cluster.node("node-0")
    cluster.device_class()
    cluster.device_class("fast", f'device.attributes["{DRIVER}"].kind == "fast"')
    named = [
        {"name": name, "attributes": {"kind": {"string": kind}}} for name, kind in kinds.items()
    ]
    cluster.slice("node-0", devices=named)
    return cluster


FAST = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "fast"}}]}}


def race(gap):
    """Two pods of one node with two devices, and the log of it; the second comes after a gap."""
    cluster = with_devices(left="fast", right="fast")
    cluster.create("resource.k8s.io/v1", "ResourceClaimTemplate", "one", spec={"spec": FAST})
    cluster.pod("first", template="one")
    cluster.wait(gap)
    cluster.pod("second", template="one")
    cluster.wait(5)
    return cluster.line.events


def race_of_claims():
    """Two pods whose claims come at one moment, that of the second pod first."""
    cluster = with_devices(left="fast", right="fast")
    for name in ("first", "second"):
        cluster.pod(name, claim=name)
    cluster.wait(5)
    for name in ("second", "first"):
        cluster.create("resource.k8s.io/v1", "ResourceClaim", name, spec=FAST)
    cluster.wait(5)
    return cluster.line.events


def lines_of(events, folder):
    folder.mkdir()
    writer = AuditWriter(folder / "audit.jsonl")
    writer.write(events)
    writer.finish({})
    return [json.loads(line) for line in (folder / "audit.jsonl").read_text().splitlines()]


async def test_outcome_of_the_other_order_is_explained_where_there_was_a_race(tmp_path):
    """A scheduler at work sees both claims, and takes the older pod first; else the other one."""
    lines = lines_of(race_of_claims(), tmp_path / "log")
    assert (await decide(lines, tmp_path / "straight")).agreement is Agreement.AGREES
    report = await decide(altered.exchanged(lines, "left", "right"), tmp_path / "other")
    assert report.explained


@pytest.mark.parametrize("gap", [0, 60])
async def test_outcome_of_the_other_order_is_unexplained_where_there_was_none(gap, tmp_path):
    """The queue gives new pods in the order in which they come, also within a microsecond."""
    lines = lines_of(race(gap), tmp_path / "log")
    report = await decide(altered.exchanged(lines, "left", "right"), tmp_path / "other")
    assert not report.explained


async def test_device_that_no_longer_fits_makes_its_allocation_unexplained(tmp_path):
    lines = lines_of(race(60), tmp_path / "log")
    changed = altered.with_attribute(lines, "left", "kind", "slow")
    report = await decide(changed, tmp_path / "slow")
    assert not report.explained
    assert unexplained(report, Aspect.DEVICES)


@pytest.mark.parametrize("is_altered", [False, True])
async def test_refusal_of_a_pod_that_fits_until_the_next_one_comes_is_unexplained(
    is_altered, tmp_path
):
    """Both attempts of the pod come too late or too early for a scheduler that sees late."""
    cluster = with_devices(left="slow")
    for name, device_class in (("fast", "fast"), ("any", "gpu")):
        requests = [{"name": "gpu", "exactly": {"deviceClassName": device_class}}]
        spec = {"spec": {"devices": {"requests": requests}}}
        cluster.create("resource.k8s.io/v1", "ResourceClaimTemplate", name, spec=spec)
    for name, template in (("refused", "fast"), ("second", "any"), ("third", "any")):
        cluster.pod(name, template=template)
        cluster.wait(2)
    cluster.wait(12)
    cluster.finish("second")
    cluster.wait(5)
    assert cluster.must("pods", "third")["spec"]["nodeName"] == "node-0"
    lines = lines_of(cluster.line.events, tmp_path / "log")
    if is_altered:
        lines = altered.with_attribute(lines, "left", "kind", "fast")
    report = await decide(lines, tmp_path / "decided", profile="1.37")
    assert report.explained is not is_altered
    accused = {found.subject for found in unexplained(report, Aspect.NODES)}
    assert accused == ({"pods/default/refused"} if is_altered else set())


@draws.in_turn("wrongs")
async def test_class_that_no_run_has_proved_is_none(tmp_path):
    report = await decide(recorded("b-mig-partitions"), tmp_path, runs_max=0)
    assert not report.explained
    assert {found.reason for found in report.differences} == {DifferenceClass.UNEXPLAINED}
    assert all(found.detail.startswith("not proved within") for found in report.differences)


@draws.in_turn("ways")
def test_each_outcome_has_its_exit_status():
    statuses = {outcome: replaying.STATUSES[outcome.value] for outcome in Agreement}
    assert statuses == {
        Agreement.AGREES: 0,
        Agreement.PROVED: 3,
        Agreement.PARTLY: 3,
        Agreement.UNEXPLAINED: 1,
        Agreement.IMPOSSIBLE: 1,
    }
