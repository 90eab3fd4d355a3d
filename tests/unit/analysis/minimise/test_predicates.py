"""Predicates: how they are written, and what they take for the same defect."""

import pytest
from msgspec import structs

from app.analysis.minimise import predicates
from app.analysis.minimise.predicates import CommandPredicate, PodCondition, ViolationPredicate
from app.analysis.verify.invariants import ViolationKind
from app.analysis.verify.invariants.placements import Switches
from app.domain.errors import InputError
from app.domain.log import EventType
from app.domain.log.chain import canonical_json
from tests.cluster import Cluster
from tests.unit.analysis.invariants.test_rules import Story
from tests.unit.analysis.invariants.worlds import device, key_of, result


class Shown:
    """A history that was run."""

    switches = Switches()

    def __init__(self, cluster: Cluster) -> None:
        self.events = cluster.line.events

    def under(self, switches):
        raise AssertionError("nothing differs here")


def waiting(*, devices: int, holder: bool) -> Cluster:
    """A pod that waits: for a device that is held, or for one that there is not."""
    cluster = Cluster()
    cluster.device_class()
    cluster.node()
    cluster.slice(devices=devices)
    if holder:
        cluster.claim("held")
        cluster.pod("holder", claim="held")
        cluster.settle()
    cluster.claim("wanted")
    cluster.pod("waiting", claim="wanted")
    return cluster.settle()


@pytest.mark.parametrize(
    "text",
    [
        "violation",
        "violation device-in-one-claim",
        "unschedulable",
        "unschedulable team-a/web because cannot allocate all claims",
        "evicted web",
        "differs quirk=c8 moved",
        "differs profile=1.36,1.37 newly unschedulable",
        "difference race",
    ],
)
def test_predicate_is_read_as_it_is_written(text: str) -> None:
    assert predicates.parse(text).text == text


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "'' is not a predicate"),
        ("wrong", "'wrong' is not a predicate"),
        ("violation nothing", "there is no rule 'nothing'"),
        ("evicted a b", "'a b' is not one pod"),
        ("evicted a because", "there is no text after because"),
        ("differs profile=1.36", "does not name two control planes"),
        ("differs quirk=c8 somehow", "there is no class 'somehow'"),
        ("difference whatever", "there is no class 'whatever'"),
        ("differs profile=1.36,1.99", "there is no profile '1.99'"),
        ("differs quirk=zz", "there is no quirk 'zz'"),
        ("differs quirk=q19", "quirk q19 has no switch"),
        ("differs gate=Nope", "there is no feature gate 'Nope'"),
        ("differs gate=GangScheduling", "cannot be switched: PodGroups are not emulated"),
        ("command", "'command' has no words"),
        ("differs", "'differs' names no control planes"),
        ("violation 'x", "it cannot be read"),
    ],
)
def test_what_is_no_predicate_is_refused_in_one_sentence(text: str, problem: str) -> None:
    with pytest.raises(InputError, match="--keep") as refusal:
        predicates.parse(text, "--keep")
    assert problem in str(refusal.value)


@pytest.mark.parametrize(
    ("text", "cure"),
    [
        ("wrong", "begin with violation, unschedulable, evicted, differs, difference or command"),
        ("evicted a b", "write NAMESPACE/NAME"),
        ("differs profile=1.36", "write profile=1.36,1.37, quirk=q6 or gate=DRAPartition"),
        ("differs", "write profile=1.36,1.37, quirk=q6 or gate=DRAPartitionableDevices after it"),
        ("command", "write command PROGRAM ARGUMENT…"),
        ("violation nothing", "choose from "),
        ("difference whatever", "choose from "),
    ],
)
def test_refused_predicate_comes_with_what_to_write_instead(text: str, cure: str) -> None:
    with pytest.raises(InputError) as refusal:
        predicates.parse(text, "--keep")
    assert refusal.value.place == "--keep"
    assert refusal.value.cure.startswith(cure)


def test_command_gets_the_bundle_where_it_says_so_or_at_its_end() -> None:
    assert predicates.parse("command check {} -v") == CommandPredicate(words=("check", "{}", "-v"))
    assert predicates.parse("command check") == CommandPredicate(words=("check", "{}"))


def test_pod_that_waits_for_another_reason_is_not_the_same() -> None:
    held = Shown(waiting(devices=1, holder=True))
    absent = Shown(waiting(devices=0, holder=False))
    predicate = predicates.parse("unschedulable")
    assert isinstance(predicate, PodCondition)
    for mine in (held, absent):
        assert predicate.sightings(mine)
        settled = predicate.settled(mine)
        assert settled.sightings(mine)
    # A device in use is not no device, whatever the message of the pod says.
    assert not predicate.settled(held).sightings(absent)


def test_pod_whose_selector_fails_cannot_be_scheduled_and_does_not_merely_wait() -> None:
    failing = Cluster()
    failing.device_class(selector="device.attributes['gpu.example.com'].absent == 1")
    failing.node()
    failing.slice(devices=1)
    failing.claim("wanted")
    failing.pod("waiting", claim="wanted")
    failed = Shown(failing.settle())
    waits = Shown(waiting(devices=1, holder=True))
    predicate = predicates.parse("unschedulable waiting")
    (sighting,) = predicate.sightings(failed)
    assert "SchedulerError" in sighting.text
    assert predicate.settled(failed).sightings(failed)
    assert not predicate.settled(failed).sightings(waits)
    assert not predicate.settled(waits).sightings(failed)


def test_decisions_about_a_claim_of_that_name_say_nothing_of_a_pod() -> None:
    shown = Shown(waiting(devices=1, holder=True))
    (decision,) = [
        event
        for event in shown.events
        if event.type is EventType.DECISION_RECORDED and event.key.name == "waiting"
    ]
    last = next(event for event in reversed(shown.events) if event.key.name == "waiting")
    body = {**decision.object, "controller": "claims", "resource": "resourceclaims", "summary": {}}
    other = structs.replace(decision, body=canonical_json(body), tree=body)
    settled = predicates.parse("unschedulable").settled(shown)
    shown.events = [*shown.events, other, last]
    assert predicates.parse("unschedulable").settled(shown) == settled
    assert settled.device


def test_cause_that_only_the_decision_names_is_kept() -> None:
    cluster = waiting(devices=1, holder=True)
    cluster.node("other")
    cluster.slice("other", devices=1)
    cluster.rule("bad", selector={"pool": "other"})
    cluster.wait(10)
    shown = Shown(cluster.settle())
    settled = {
        text: predicates.parse(f"unschedulable waiting because {text}").settled(shown)
        for text in ("taint", "allocated")
    }
    assert all(each.sightings(shown) for each in settled.values())
    held = Shown(waiting(devices=1, holder=True))
    assert settled["allocated"].sightings(held)
    assert not settled["taint"].sightings(held)
    assert not predicates.parse("unschedulable because nothing").sightings(shown)


@pytest.mark.parametrize(
    ("text", "is_said"),
    [
        ("taint", False),
        ("hare", False),
        ("in the process", True),
        ("resource claim", True),
        ("shared", True),
        ("taints/shared", True),
        ("claim taints/shared is in", True),
        ("claim taints/share", False),
    ],
)
def test_part_of_a_name_is_no_cause(text: str, is_said: bool) -> None:
    message = "0/2 nodes are available: resource claim taints/shared is in the process"
    cluster = Cluster()
    cluster.pod("waiting")
    said = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    status = {"conditions": [{**said, "message": message}]}
    cluster.patch("pods", "waiting", {"status": status}, subresource="status")
    shown = Shown(cluster)
    predicate = predicates.parse(f"unschedulable because {text}")
    assert bool(predicate.sightings(shown)) is is_said


def test_pod_without_nodes_does_not_wait_for_devices() -> None:
    nowhere = Cluster()
    nowhere.device_class()
    nowhere.claim("wanted")
    nowhere.pod("waiting", claim="wanted")
    settled = predicates.parse("unschedulable").settled(Shown(waiting(devices=0, holder=False)))
    assert predicates.parse("unschedulable").sightings(Shown(nowhere.settle()))
    assert not settled.sightings(Shown(nowhere))


def test_pod_and_cause_are_those_that_are_named() -> None:
    shown = Shown(waiting(devices=1, holder=True))
    for text, is_so in (
        ("unschedulable waiting", True),
        ("unschedulable default/waiting because cannot allocate", True),
        ("unschedulable holder", False),
        ("unschedulable waiting because taint", False),
        ("evicted", False),
        ("violation", False),
    ):
        assert bool(predicates.parse(text).sightings(shown)) is is_so, text


def broken_and_unsure() -> Shown:
    """A pod whose claim changes perhaps, one whose claim changes surely, and an odd share."""
    story = Story()
    for name, is_sure in (("perhaps", False), ("surely", True)):
        story.pod(name, "x")
        if not is_sure:
            story.gap(key_of("pods", name), "gap")
        tree, write = story.change(key_of("pods", name), after=1)
        field = "resourceClaimName" if is_sure else "unknown"
        tree["spec"]["resourceClaims"][0][field] = "y"
        write()
    story.publish("p", device("a"))
    story.allocate("x", result("p", "a", shareID="1"))
    shown = Shown(Cluster())
    shown.events = story.events
    return shown


FIELDS, SHARES = "immutable-field-unchanged", "share-of-shared-device"


@pytest.mark.parametrize(
    ("text", "about"),
    [
        ("violation", ["surely", "x"]),
        (f"violation {FIELDS}", ["surely", "perhaps"]),
        (f"violation {SHARES}", ["x"]),
        ("violation device-in-one-claim", []),
    ],
)
def test_violations_are_those_of_the_rule_or_failures_the_gravest_first(text, about) -> None:
    shown = broken_and_unsure()
    sightings = predicates.parse(text).sightings(shown)
    assert [each.objects[0].name for each in sightings] == about
    times = {event.stamp.time for event in shown.events}
    for each in sightings:
        assert each.at in times
        assert f"{FIELDS}" in each.text or f"{SHARES}" in each.text
        assert each.objects[0].name in each.text


@pytest.mark.parametrize(
    ("text", "rule", "about"),
    [
        ("violation", FIELDS, ["surely"]),
        (f"violation {FIELDS}", FIELDS, ["surely"]),
        (f"violation {SHARES}", SHARES, ["x"]),
    ],
)
def test_violation_that_a_history_shows_is_kept_with_its_rule_and_kind(text, rule, about) -> None:
    shown = broken_and_unsure()
    settled = predicates.parse(text).settled(shown)
    assert settled == ViolationPredicate(rule=rule, kind=ViolationKind.BROKEN)
    assert [each.objects[0].name for each in settled.sightings(shown)] == about


@pytest.mark.parametrize(
    ("kind", "status", "word"),
    [
        ("DisruptionTarget", "True", "evicted"),
        ("DisruptionTarget", "False", None),
        ("PodScheduled", "False", "unschedulable"),
        ("PodScheduled", "True", None),
    ],
)
def test_pod_is_evicted_or_cannot_be_scheduled_as_its_condition_says(kind, status, word) -> None:
    cluster = Cluster()
    cluster.pod("p")
    said = {"type": kind, "status": status, "reason": "Unschedulable", "message": "why"}
    cluster.patch("pods", "p", {"status": {"conditions": [said]}}, subresource="status")
    shown = Shown(cluster)
    for each in ("evicted", "unschedulable"):
        sightings = predicates.parse(f"{each} p").sightings(shown)
        texts = [(sighting.objects[0].name, sighting.text) for sighting in sightings]
        assert texts == ([("p", "pods/default/p: Unschedulable: why")] if each == word else [])


def test_main_cause_is_the_one_that_keeps_most_devices_away_in_all_requests() -> None:
    shown = Shown(waiting(devices=1, holder=True))
    index, decision = next(
        (index, event)
        for index, event in enumerate(shown.events)
        if event.type is EventType.DECISION_RECORDED and event.key.name == "waiting"
    )
    causes = [
        {"request": request, "cause": cause, "devices": count}
        for request, cause, count in (("a", "one", 3), ("a", "two", 2), ("b", "two", 2))
    ]
    body = {**decision.object, "summary": {**decision.object["summary"], "causes": causes}}
    other = structs.replace(decision, body=canonical_json(body), tree=body)
    shown.events = [*shown.events[:index], other, *shown.events[index + 1 :]]
    assert predicates.parse("unschedulable").settled(shown).device == "two"
