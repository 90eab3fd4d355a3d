"""Every row of upstream's eviction table (controllers.md 8.1), its events in all orders."""

import re

import pytest

from tests import draws
from tests.shared_data import REPOSITORY
from tests.unit.controllers import taint_cases
from tests.unit.controllers.taint_cases import (
    Case,
    Wait,
    add,
    change,
    claim,
    pod,
    pool_slice,
    remove,
    rule,
    taint,
    tolerate,
)

MARKING = ["Marking for deletion"]
CANCELLING = ["Cancelling deletion"]
ONE_PENDING = frozenset({"1 pod needs to be evicted in 1 namespace."})
ONE_EVICTED = ("Completed", "1 pod evicted since starting the controller.")
TWO_EVICTED = ("Completed", "2 pods evicted since starting the controller.")
IDLE = ("NotStarted", "")
FROZEN = (
    "if the effect was NoExecute. This information will not be updated again. "
    "Recreate the DeviceTaintRule to trigger an update."
)

POD, CLAIM, CLEAN = (add(pod()),), (add(claim()),), (add(pool_slice()),)
TAINTED = (add(pool_slice(taint())),)
LATER = (add(claim(tolerations=(tolerate(3600),))),)
RULE = (add(rule()),)
EVICTED = {"deleted": {"pod": 0}, "said": {"pod": MARKING}}


def made_pod(**more):
    """The pod of a claim made from a template."""
    return pod(template=True, **more)


def two_pods(namespaces, effect):
    """Two pods with a claim each, and one rule."""
    second = namespaces[1]
    return (
        (add(pod("a", claims=("ca",))),),
        (add(pod("b", claims=("cb",), namespace=second)),),
        (add(claim("ca", users=("a",))),),
        (add(claim("cb", users=("b",), devices=("d1", "d2"), namespace=second)),),
        (add(rule(effect=effect)),),
    )


def two_rules(seconds_a, seconds_b):
    """A pod with two claims, each hit by a rule of its own."""
    return (
        (add(pod(claims=("ca", "cb"))),),
        (add(claim("ca", devices=("d0",), tolerations=(tolerate(seconds_a, "a"),))),),
        (add(claim("cb", devices=("d1",), tolerations=(tolerate(seconds_b, "b"),))),),
        (add(rule("a", key="a", device="d0")),),
        (add(rule("b", key="b", device="d1")),),
    )


BOTH_DELETED = {"deleted": {"a": 0, "b": 0}, "said": {"a": MARKING, "b": MARKING}}
BOTH_CREDITED = {"rules": {"a": ONE_EVICTED, "b": ONE_EVICTED}, "pending": ONE_PENDING}

CASES = [
    Case(name="empty", phases=((),)),
    Case(
        name="populate-pools",
        phases=(
            ((add(pool_slice(taint(), name="old")),), (add(pool_slice(generation=2)),), CLAIM),
        ),
        claims={},
    ),
    Case(
        name="update-pools",
        phases=(
            (
                (add(pool_slice(taint(), name="old")),),
                (add(pool_slice(generation=2)), remove(pool_slice(generation=2))),
                CLAIM,
            ),
        ),
        claims={"claim": (0, 1)},
    ),
    Case(name="untainted-claim", phases=((CLEAN, CLAIM),), claims={}),
    Case(
        name="tainted-claim-through-resourceslice",
        phases=((TAINTED, CLAIM),),
        claims={"claim": (0, 1)},
    ),
    Case(
        name="tainted-claim-through-rule",
        phases=((RULE, CLEAN, CLAIM),),
        claims={"claim": (0, 1)},
        rules={"rule": IDLE},
    ),
    Case(name="rule-status", phases=((RULE,),), rules={"rule": IDLE}),
    Case(name="evict-pod-resourceclaim", phases=((TAINTED, CLAIM, POD),), **EVICTED),
    Case(
        name="evict-pod-resourceclaimtemplate",
        phases=((TAINTED, (add(claim(owner="uid-pod")),), (add(made_pod()),)),),
        **EVICTED,
    ),
    Case(
        name="evict-pod-after-scheduling",
        phases=((TAINTED, CLAIM, (add(pod(node="")), change(pod()))),),
        **EVICTED,
    ),
    # The gate of group reservations is alpha and off: such a reservation is nobody's pod.
    Case(
        name="evict-pod-resourceclaim-podgroup",
        phases=((TAINTED, (add(claim(resource="podgroups")),), POD),),
        claims={"claim": (0, 1)},
    ),
    Case(
        name="no-evict-pod-in-podgroup-without-claim",
        phases=((TAINTED, (add(claim(resource="podgroups")),), (add(pod(claims=())),)),),
    ),
    Case(
        name="evict-pod-rule",
        phases=((RULE, CLEAN, CLAIM, POD),),
        rules={"rule": ONE_EVICTED},
        pending=ONE_PENDING,
        **EVICTED,
    ),
    Case(
        name="evict-pod-rule-later",
        phases=((RULE, CLEAN, LATER, POD),),
        rules={"rule": ONE_EVICTED},
        pending=ONE_PENDING,
        deleted={"pod": 3600},
        said={"pod": MARKING},
    ),
    Case(
        name="evict-many-pods-many-namespaces",
        phases=(two_pods(("default", "other"), "NoExecute"),),
        rules={"rule": TWO_EVICTED},
        pending=frozenset({"2 pods need to be evicted in 2 different namespaces."}),
        **BOTH_DELETED,
    ),
    Case(
        name="evict-many-pods-same-namespace",
        phases=(two_pods(("default", "default"), "NoExecute"),),
        rules={"rule": TWO_EVICTED},
        pending=frozenset({"2 pods need to be evicted in 1 namespace."}),
        **BOTH_DELETED,
    ),
    Case(
        name="none-pod-rule",
        phases=(((add(rule(effect="None")),), CLEAN, CLAIM, POD),),
        rules={
            "rule": (
                "NoEffect",
                "3 published devices selected. 1 allocated device selected. "
                f"1 pod would be evicted in 1 namespace {FROZEN}",
            )
        },
    ),
    Case(
        name="none-many-pods-many-namespaces",
        phases=(two_pods(("default", "other"), "None"),),
        rules={
            "rule": (
                "NoEffect",
                "0 published devices selected. 3 allocated devices selected. "
                f"2 pods would be evicted in 2 different namespaces {FROZEN}",
            )
        },
    ),
    Case(
        name="none-many-pods-same-namespace",
        phases=(two_pods(("default", "default"), "None"),),
        rules={
            "rule": (
                "NoEffect",
                "0 published devices selected. 3 allocated devices selected. "
                f"2 pods would be evicted in 1 namespace {FROZEN}",
            )
        },
    ),
    Case(
        name="none-podgroup-rule",
        phases=(((add(rule(effect="None")),), CLEAN, (add(claim(resource="podgroups")),), POD),),
        rules={
            "rule": (
                "NoEffect",
                "3 published devices selected. 1 allocated device selected. "
                f"0 pods would be evicted in 0 different namespaces {FROZEN}",
            )
        },
    ),
    Case(
        name="multiple-claims-same-rule",
        phases=(
            (
                (add(pod(claims=("ca", "cb"))),),
                (add(claim("ca")),),
                (add(claim("cb", devices=("d1",))),),
                RULE,
            ),
        ),
        rules={"rule": ONE_EVICTED},
        pending=ONE_PENDING,
        **EVICTED,
    ),
    Case(
        name="multiple-claims-different-rules-order-1",
        phases=(two_rules(30, 60),),
        deleted={"pod": 30},
        said={"pod": MARKING},
        **BOTH_CREDITED,
    ),
    Case(
        name="multiple-claims-different-rules-order-2",
        phases=(two_rules(60, 30),),
        deleted={"pod": 30},
        said={"pod": MARKING},
        **BOTH_CREDITED,
    ),
    Case(
        name="evict-pod-resourceclaim-again",
        phases=(
            (TAINTED, LATER, POD),
            ((remove(pool_slice(taint())),),),
            (TAINTED,),
        ),
        deleted={"pod": 3600},
        said={"pod": CANCELLING + MARKING},
    ),
    Case(
        name="evict-pod-resourceclaim-unrelated-changes",
        phases=(
            (TAINTED, LATER, POD),
            (
                (change(pool_slice(taint(), labels={"a": "b"})),),
                (change(claim(tolerations=(tolerate(3600),), labels={"a": "b"})),),
                (change(pod(labels={"a": "b"})),),
            ),
        ),
        deleted={"pod": 3600},
        said={"pod": MARKING},
    ),
    Case(
        name="evict-pod-later",
        phases=((TAINTED, LATER, POD),),
        deleted={"pod": 3600},
        said={"pod": MARKING},
    ),
    Case(
        name="evict-pod-later-many",
        phases=(
            (
                TAINTED,
                (add(claim(tolerations=(tolerate(20, "other"), tolerate(60), tolerate(30)))),),
                POD,
            ),
        ),
        deleted={"pod": 30},
        said={"pod": MARKING},
    ),
    Case(
        name="evict-pod-toleration-mismatch",
        phases=((TAINTED, (add(claim(tolerations=(tolerate(60, "other"),))),), POD),),
        **EVICTED,
    ),
    Case(
        name="no-evict-pod-toleration-forever",
        phases=((TAINTED, (add(claim(tolerations=(tolerate(),))),), POD),),
        claims={},
    ),
    Case(
        name="no-evict-pod-toleration-forever-many",
        phases=((TAINTED, (add(claim(tolerations=(tolerate(60), tolerate()))),), POD),),
        claims={},
    ),
    Case(
        name="evict-pod-partial-toleration",
        phases=(
            (
                (add(pool_slice(taint(), taint("other"))),),
                (add(claim(tolerations=(tolerate(),))),),
                POD,
            ),
        ),
        claims={"claim": (0, 1)},
        **EVICTED,
    ),
    Case(
        name="evict-pod-many-taints",
        phases=(
            (
                (add(pool_slice(taint("a"), taint("b"))),),
                (add(claim(tolerations=(tolerate(60, "a"), tolerate(30, "b")))),),
                (add(rule("a", key="a")),),
                (add(rule("b", key="b")),),
                POD,
            ),
        ),
        deleted={"pod": 30},
        said={"pod": MARKING},
        claims={"claim": (30, 4)},
        **BOTH_CREDITED,
    ),
    Case(
        name="no-evict-pod-not-scheduled",
        phases=((TAINTED, CLAIM, (add(pod(node="")),)),),
        claims={"claim": (0, 1)},
    ),
    Case(name="no-evict-no-taint", phases=((CLEAN, CLAIM, POD),), claims={}),
    Case(
        name="no-evict-no-taint-update",
        phases=((CLEAN, CLAIM, POD), ((change(pool_slice(labels={"a": "b"})),),)),
        claims={},
    ),
    Case(
        name="no-evict-pod-resourceclaimtemplate-no-status",
        phases=((TAINTED, (add(claim(owner="uid-pod")),), (add(made_pod(status=False)),)),),
        claims={"claim": (0, 1)},
    ),
    Case(
        name="no-evict-pod-resourceclaimtemplate-no-claim",
        phases=((TAINTED, (add(made_pod()),)),),
        claims={},
    ),
    Case(
        name="no-evict-other-device",
        phases=((TAINTED, (add(claim(devices=("d1",))),), POD),),
        claims={},
    ),
    Case(
        name="no-evict-wrong-pod",
        phases=((TAINTED, CLAIM, (add(pod(uid="uid-other")),)),),
        claims={"claim": (0, 1)},
    ),
    Case(
        name="evict-wrong-pod-replaced",
        phases=(
            (
                TAINTED,
                CLAIM,
                (add(pod(uid="uid-other")), remove(pod(uid="uid-other")), add(pod())),
            ),
        ),
        **EVICTED,
    ),
    Case(
        name="no-evict-wrong-resourceclaim",
        phases=((TAINTED, (add(claim(owner="uid-other")),), (add(made_pod()),)),),
        claims={"claim": (0, 1)},
    ),
    Case(
        name="evict-wrong-resourceclaim-replaced",
        phases=(
            (
                TAINTED,
                (
                    add(claim(owner="uid-other", uid="first")),
                    remove(claim(owner="uid-other", uid="first")),
                    add(claim(owner="uid-pod")),
                ),
                (add(made_pod()),),
            ),
        ),
        **EVICTED,
    ),
    Case(
        name="cancel-eviction-remove-taint",
        phases=((TAINTED, LATER, POD), ((change(pool_slice()),),)),
        said={"pod": CANCELLING},
        claims={},
    ),
    Case(
        name="cancel-eviction-reduce-taint",
        phases=(
            (TAINTED, LATER, POD),
            ((change(pool_slice(taint(effect="NoSchedule"))),),),
        ),
        said={"pod": CANCELLING},
        claims={},
    ),
    Case(
        name="cancel-eviction-remove-taint-in-new-slice",
        phases=((TAINTED, LATER, POD), ((add(pool_slice(name="new", generation=2)),),)),
        said={"pod": CANCELLING},
        claims={},
    ),
    Case(
        name="cancel-eviction-remove-slice",
        phases=((TAINTED, LATER, POD), ((remove(pool_slice(taint())),),)),
        said={"pod": CANCELLING},
        claims={},
    ),
    Case(name="cancel-eviction-pod-deletion", phases=((TAINTED, LATER, POD), ((remove(pod()),),))),
    Case(
        name="no-evict-resourceclaim-deallocated",
        phases=((TAINTED, LATER, POD), ((change(claim(allocated=False)),),)),
        said={"pod": CANCELLING},
        claims={},
    ),
    Case(
        name="no-evict-resourceclaim-deleted",
        phases=((TAINTED, LATER, POD), ((remove(claim(tolerations=(tolerate(3600),))),),)),
        said={"pod": CANCELLING},
        claims={},
    ),
    Case(
        name="ignore-none-effect",
        phases=(((add(pool_slice(taint(effect="None"))),), CLAIM, POD),),
        claims={},
    ),
    Case(
        name="ignore-unknown-effect",
        phases=(((add(pool_slice(taint(effect="Unheard"))),), CLAIM, POD),),
        claims={},
    ),
    Case(
        name="eviction-change-taint",
        phases=(
            (
                (add(pool_slice(taint(value="good"))),),
                (add(claim(tolerations=(tolerate(operator="Equal", value="good"),))),),
                POD,
            ),
            Wait(seconds=10),
            ((change(pool_slice(taint(value="worse"))),),),
        ),
        deleted={"pod": 10},
        said={"pod": MARKING},
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_row_ends_as_the_table_says(case):
    check(case, *next(taint_cases.outcomes(case)))


@draws.BY_DAY
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_row_ends_the_same_in_every_order_of_events(case):
    for order, seen in taint_cases.outcomes(case):
        check(case, order, seen)


def check(case, order, seen):
    """What came of the events of a row in this order is what the row says."""
    assert seen.deleted == case.deleted, order
    assert seen.said == case.said, order
    assert seen.rules == case.rules, order
    assert seen.pending == case.pending, order
    if case.claims is not None:
        assert seen.claims == case.claims, order


def test_every_row_of_the_table_has_a_case():
    text = (REPOSITORY / "docs" / "parity" / "controllers.md").read_text(encoding="utf-8")
    table = text[text.index("### 8.1") : text.index("Others: initial objects")]
    names = [case.name for case in CASES]
    rows = [
        name.strip()
        for line in table.splitlines()
        if (found := re.match(r"\| ([a-z][^|]+) \|", line)) and found[1] != "case"
        for name in re.split(r"[;/]", found[1])
    ]
    assert len(rows) >= 50
    # A row like `-update` continues the name before it.
    missing = [
        row
        for row in rows
        if not any(name == row or (row[0] == "-" and name.endswith(row)) for name in names)
    ]
    assert missing == []


def test_no_two_cases_have_one_name():
    names = [case.name for case in CASES]
    assert len(names) == len(set(names))


# The rows below the table


def test_pod_that_is_gone_when_it_is_due_leaves_no_trace():
    case = Case(
        name="parallel", phases=((TAINTED, LATER, POD), Wait(seconds=3599), ((remove(pod()),),))
    )
    for order, seen in taint_cases.outcomes(case):
        assert (seen.deleted, seen.said) == ({}, {}), order


@pytest.mark.parametrize("seconds", [0, 30])
def test_rule_evicts_at_once_or_after_the_tolerated_seconds(seconds):
    held = claim(tolerations=(tolerate(seconds),) if seconds else ())
    case = Case(name="rule", phases=((RULE, CLEAN, (add(held),), POD),))
    for order, seen in taint_cases.outcomes(case):
        assert seen.deleted == {"pod": seconds}, order


@draws.in_turn(
    "ways",
    each_day="unit/controllers/test_eviction_inventory.py::test_row_ends_as_the_table_says",
)
def test_thousand_pods_are_previewed_twice_and_then_evicted():
    """None, then another `timeAdded`, then NoExecute; each change is a generation of the rule."""
    pods = [(add(pod(f"p{n}", claims=(f"c{n}",))),) for n in range(1000)]
    claims = [(add(claim(f"c{n}", users=(f"p{n}",), devices=(f"d{n}",))),) for n in range(1000)]
    slices = [
        (add(pool_slice(name=f"s{n}", devices=tuple(f"d{n * 50 + m}" for m in range(50)))),)
        for n in range(20)
    ]
    told = [found[0] for found in (*pods, *claims, *slices)]
    second = rule(effect="None", generation=2)
    second["spec"]["taint"]["timeAdded"] = "2026-01-02T03:00:05Z"
    line, seen = taint_cases.tell(
        [
            told,
            [add(rule(effect="None"))],
            Wait(seconds=5),
            [change(second)],
            Wait(seconds=5),
            [change(rule(generation=3))],
        ]
    )
    conditions = [
        (found["observedGeneration"], found["reason"])
        for event in line.events
        if event.key.resource == "devicetaintrules"
        for found in event.object.get("status", {}).get("conditions", ())
        if event.stamp.verb == "patch"
    ]
    assert conditions == [
        (1, "NoEffect"),
        (2, "NoEffect"),
        (3, "PodsPendingEviction"),
        (3, "Completed"),
    ]
    assert len(seen.deleted) == 1000
    assert seen.rules["rule"] == ("Completed", "1000 pods evicted since starting the controller.")
