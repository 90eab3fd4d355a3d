"""What two sides are compared by: switches, drawn values of inputs, roots, and who is named."""

import pytest

from app.analysis.diff import causes, compare, testimony
from app.analysis.diff.causes import RootKind
from app.analysis.diff.sides import Side, switches_of
from app.analysis.diff.testimony import ClaimFacts, DeviceFacts, NodeFacts, PoolFacts
from app.domain.controllers.registry import ControllerOptions
from app.domain.log import ObjectKey, Revision
from app.domain.objects.profile import GATES, RELEASE_RULES, Profile
from app.domain.values.timestamps import SECOND
from tests.unit.analysis.test_changed_inputs import differing, write

RULE = ObjectKey("resource.k8s.io", "devicetaintrules", "", "r")


def side(version: str, **options: frozenset[str]) -> Side:
    return Side(
        name="h", profile=Profile(version=version), options=ControllerOptions(**options), events=[]
    )


@pytest.mark.parametrize(
    ("rule", "before", "after"),
    [(rule, "1.34", "1.35" if rule == "slice-limits" else "1.37") for rule in RELEASE_RULES],
)
def test_rules_of_releases_are_switches_that_go_on(rule, before, after) -> None:
    texts = compare.switched(side(before), side(after))
    assert f"profile: {before} → {after}" in texts
    assert f"rule {rule}: off → on" in texts
    assert f"rule {rule}: on → off" in compare.switched(side(after), side(before))


def test_switches_are_on_or_off_and_gates_true_or_false() -> None:
    switches = dict(switches_of(side("1.36")))
    assert switches.pop("profile") == "1.36"
    gates = {name: value for name, value in switches.items() if name.startswith("gate ")}
    assert gates.keys() == {f"gate {gate}" for gate in GATES}
    assert set(gates.values()) == {"true", "false"}
    assert {switches[name] for name in switches.keys() - gates.keys()} == {"on", "off"}
    assert compare.switched(side("1.36"), side("1.36")) == ()


def ruling(added: str, effect: str = "NoExecute") -> dict:
    return {"spec": {"taint": {"key": "k", "effect": effect, "timeAdded": added}}}


@pytest.mark.parametrize(
    ("other", "differs"),
    [
        (ruling("2026-01-02T03:00:00Z"), False),
        (ruling("2026-01-02T04:00:00Z"), False),
        (ruling("2026-01-02T03:00:00Z", "NoSchedule"), True),
    ],
)
def test_time_that_the_server_adds_to_a_taint_makes_no_difference(other, differs) -> None:
    one = [write(5, ruling("2026-01-02T03:00:00Z"), RULE)]
    listed = differing(one, [write(5, other, RULE)])
    assert bool(listed) == differs


POD = ObjectKey("", "pods", "ns", "p")


@pytest.mark.parametrize(
    ("other", "differs"),
    [
        ({"nodeName": "n1", "priority": 1}, False),
        ({"nodeName": "n2", "priority": 1}, False),
        ({"priority": 1}, False),
        ({"nodeName": "n1", "priority": 2}, True),
    ],
)
def test_node_that_a_scheduler_chose_makes_no_difference_of_a_pod(other, differs) -> None:
    one = [write(5, {"spec": {"nodeName": "n1", "priority": 1}}, POD)]
    assert bool(differing(one, [write(5, {"spec": other}, POD)])) == differs


def test_change_from_outside_is_a_root_with_its_object_words_and_beginning() -> None:
    (change,) = differing([write(5, ruling(""), RULE)], [])
    root = causes.root_of(change)
    assert (root.kind, root.name, root.text, root.since) == (
        RootKind.CHANGE,
        str(RULE),
        change.text,
        5 * SECOND,
    )
    assert change.text.startswith("only in A: ")


def test_pods_are_named_in_all_that_a_side_answers() -> None:
    uids, named = frozenset({"u", "other"}), frozenset({"a pod", "other"})

    def answers(users: frozenset[str]) -> testimony.Testimony:
        return testimony.Testimony(
            revision=Revision(3),
            is_there=True,
            node_facts={"n": NodeFacts(content=b"n", pods=users)},
            devices={
                "d": DeviceFacts(
                    holders=users,
                    slice="s",
                    content=b"d",
                    taints=frozenset(),
                    rules=frozenset(),
                )
            },
            pools={
                "p": PoolFacts(generation=1, problem="", slices=frozenset(), holders=users),
            },
            claims={"c": ClaimFacts(key=RULE, is_there=True, users=users)},
        )

    assert answers(uids).renamed({"u": "a pod"}) == answers(named)
    assert answers(uids).renamed({}) == answers(uids)
