"""What a prover makes of differences, where the outcome of every run is known in advance.

A control plane here is a function from a variant to answers, so what is behind a difference is
written down, and the judgement of each follows from "Classes of differences" in
docs/explanation/decide.md.
"""

import asyncio
from collections.abc import Callable, Mapping

import pytest

from app.analysis.replay import differences, facts
from app.analysis.replay.attempts import Placing, PodCourse, Try
from app.analysis.replay.authors import EVICTION, NODES, SCHEDULER
from app.analysis.replay.classes import End, Sought
from app.analysis.replay.differences import Aspect
from app.analysis.replay.pace import RecordedPace
from app.analysis.replay.proving.budget import Budget
from app.analysis.replay.proving.evidence import Evidence, Switched
from app.analysis.replay.proving.prover import Prover
from app.analysis.replay.proving.runs import IsOver, MadeRun
from app.analysis.replay.races import Races
from app.analysis.replay.traces import Step, Trace
from app.analysis.replay.unsure.lacks import Lacks
from app.analysis.replay.variants import Hold, Switches, Variant
from app.domain.controllers.pacing import AttemptOutcome
from app.domain.log import ObjectKey
from app.domain.log.doubts import NEVER_SEEN, Affects, Doubt
from app.domain.values.timestamps import Instant

GROUP = "resource.k8s.io"
RESOURCES = {"p": ("", "pods"), "c": (GROUP, "resourceclaims"), "n": ("", "nodes")}

Answers = Mapping[tuple[Aspect, str], str]
"""The node of a pod, the reason of a condition, the instant's second first; by aspect and uid."""

UNPROVED = "no hypothesis gives the recorded outcome"
ENDED = "ended"


def key_of(uid: str) -> ObjectKey:
    group, resource = RESOURCES[uid[0]]
    return ObjectKey(group, resource, "" if resource == "nodes" else "ns", uid)


def trace(answers: Answers) -> Trace:
    made = Trace()
    for number, ((aspect, uid), answer) in enumerate(answers.items()):
        fact: facts.Fact = facts.ConditionSet("Ready", "True", answer, "")
        if aspect is Aspect.NODES:
            fact = facts.Bound(answer)
        elif answer == ENDED:
            fact = facts.Released()
        time = Instant(number + 1)
        step = Step(revision=1, time=time, writer="", key=key_of(uid), uid=uid, facts=(fact,))
        made.keys[uid] = step.key
        match aspect:
            case Aspect.NODES:
                made.node_of[uid] = step
            case Aspect.EVICTIONS:
                made.evicted[uid] = step
            case Aspect.CONDITIONS:
                made.conditions[uid, "Ready"] = [step]
            case _:
                made.writes[uid] = [step]
    return made


class Proof:
    """The judgements of all differences between a recording and what a control plane answers."""

    def __init__(
        self,
        recorded: Answers,
        plane: Callable[[Variant], Answers],
        *,
        variant: Variant | None = None,
        runs_max: int = 60,
        sought: Sought | None = None,
        pace: RecordedPace | None = None,
        **evidence: object,
    ) -> None:
        self.variants: list[Variant] = []
        variant = variant or Variant()

        async def run(changed: Variant, until: Instant | None, is_over: IsOver | None) -> MadeRun:
            self.variants.append(changed)
            again = trace(plane(changed))
            is_cut_short = is_over is not None and is_over(again, Instant(1_000))
            return MadeRun(trace=again, events=1, is_cut_short=is_cut_short)

        there, base = trace(recorded), trace(plane(variant))
        prover = Prover(
            recorded=there,
            end=End(at=Instant(1_000), later=Trace()),
            evidence=Evidence(**evidence),  # type: ignore[arg-type]  # named by the test
            races=Races(there, pace or RecordedPace()),
            run=run,
            compare=differences.compare,
            variant=variant,
            budget=Budget(runs_max=runs_max, events_max=1_000),
        )
        asyncio.run(prover.judge(base, differences.compare(there, base).different, sought))
        self.runs = len(self.variants)
        self.variant = prover.variant
        self.judged = {
            uid: (each.reason, each.detail) for (_, uid, _), each in prover.judgements.items()
        }
        self.reasons = {uid: reason for uid, (reason, _) in self.judged.items()}


def switched(**quirks: bool) -> Switched:
    """One switch, or several, with a class of that name."""
    return Switched(reason=",".join(quirks), switches=Switches(quirks=quirks))


def differing(recorded: Answers, agreeing: Mapping[str, bool]) -> Answers:
    """The recorded answers, others for objects that do not agree."""
    return {
        place: answer if agreeing.get(place[1], True) else f"not {answer}"
        for place, answer in recorded.items()
    }


N1, N2 = (Aspect.CONDITIONS, "n1"), (Aspect.CONDITIONS, "n2")
P1, P2 = (Aspect.NODES, "p1"), (Aspect.NODES, "p2")
C1, C2 = (Aspect.WRITES, "c1"), (Aspect.WRITES, "c2")


def test_without_differences_nothing_runs() -> None:
    proof = Proof({P1: "a"}, lambda variant: {P1: "a"})
    assert (proof.judged, proof.runs) == ({}, 0)


# nodes


def test_status_of_a_node_is_not_emulated_where_taking_it_over_gives_what_was_recorded() -> None:
    recorded = {N1: "a", N2: "a"}
    proof = Proof(
        recorded,
        lambda variant: differing(recorded, {uid: uid in variant.unheard for uid in ("n1", "n2")}),
    )
    assert proof.reasons == {"n1": "not emulated", "n2": "not emulated"}
    assert proof.variant.unheard == {"n1", "n2"}
    assert proof.runs == 1


def test_node_that_differs_in_more_than_its_status_is_unexplained_and_hides_no_other() -> None:
    recorded = {N1: "a", N2: "a", P1: "a"}

    def plane(variant: Variant) -> Answers:
        follows = (NODES, "n2") in variant.imposed
        return differing(recorded, {"n1": "n1" in variant.unheard, "n2": False, "p1": follows})

    proof = Proof(recorded, plane)
    assert proof.judged["n2"] == ("unexplained", UNPROVED)
    assert proof.reasons == {
        "n1": "not emulated",
        "n2": "unexplained",
        "p1": "follows from another difference",
    }


def test_status_of_a_node_is_unexplained_where_taking_it_over_changes_something_else() -> None:
    recorded = {N1: "a", P1: "a"}
    proof = Proof(
        recorded,
        lambda variant: differing(
            recorded, {"n1": bool(variant.unheard), "p1": not variant.unheard}
        ),
    )
    assert proof.reasons == {"n1": "unexplained"}


# the pace, and switches that were set


def test_what_the_recorded_pace_does_away_with_is_a_race() -> None:
    recorded = {C1: "a", P1: "a"}
    proof = Proof(
        recorded,
        lambda variant: differing(recorded, {"c1": variant.is_paced, "p1": False}),
        variant=Variant(is_paced=False),
    )
    assert proof.judged["c1"] == ("race", "as recorded at the recorded pace")
    assert proof.reasons["p1"] == "unexplained"
    assert proof.variants[0].is_paced


def test_difference_that_the_recorded_pace_brings_is_judged_too() -> None:
    recorded = {C1: "a", P1: "a"}
    proof = Proof(
        recorded,
        lambda variant: differing(recorded, {"c1": variant.is_paced, "p1": not variant.is_paced}),
        variant=Variant(is_paced=False),
    )
    assert proof.reasons == {"c1": "race", "p1": "unexplained"}


def test_switch_that_was_set_is_the_cause_of_what_vanishes_without_it() -> None:
    recorded = {P1: "a", P2: "a", C1: "a"}

    def plane(variant: Variant) -> Answers:
        quirks = variant.switches.quirks
        return differing(recorded, {"p1": "q1" in quirks, "p2": "q2" in quirks, "c1": False})

    chosen = [switched(q1=False), switched(q2=False)]
    proof = Proof(recorded, plane, chosen=chosen)
    assert proof.judged["p1"] == ("q1", "without the switch the outcome is as recorded")
    assert proof.reasons == {"p1": "q1", "p2": "q2", "c1": "unexplained"}
    assert proof.variant.switches == Switches(), "the replay goes on with the switch"


def test_rules_that_the_scheduler_saw_explain_placements_without_the_quirk() -> None:
    recorded = {P1: "a", C1: "a"}

    def plane(variant: Variant) -> Answers:
        return differing(recorded, dict.fromkeys(("p1", "c1"), "c24" in variant.switches.quirks))

    proof = Proof(recorded, plane, rules_seen=switched(c24=False))
    assert proof.reasons == {"p1": "c24", "c1": "c24"}
    assert proof.runs == 1


def test_quirk_of_rules_is_tried_for_placements_alone() -> None:
    recorded = {C1: "a"}

    def plane(variant: Variant) -> Answers:
        return differing(recorded, {"c1": "c24" in variant.switches.quirks})

    assert Proof(recorded, plane, rules_seen=switched(c24=False)).reasons == {"c1": "unexplained"}


def test_rule_that_forbids_the_recorded_device_was_not_seen_there() -> None:
    recorded = {(Aspect.CONDITIONS, "c1"): "a", P1: "a"}

    def plane(variant: Variant) -> Answers:
        return differing(recorded, dict.fromkeys(("c1", "p1"), "c24" in variant.switches.quirks))

    rules = switched(c24=True)
    proof = Proof(recorded, plane, rules_seen=rules, forbidden={"c1": True})
    assert proof.reasons == {"c1": "released bug C24", "p1": "follows from another difference"}
    by_slice = Proof(recorded, plane, rules_seen=rules, forbidden={"c1": False})
    assert set(by_slice.reasons.values()) == {"unexplained"}


# hypotheses about single objects


def test_hypothesis_holds_whose_run_gives_what_was_recorded() -> None:
    """Of the four orders in which a claim may end, the third is what happened."""

    def plane(variant: Variant) -> Answers:
        return {} if key_of("c1") in variant.released_last else {C1: ENDED}

    proof = Proof({}, plane)
    assert proof.judged == {"c1": ("race", "the claim controller came after the collector")}
    assert proof.variant == Variant(released_last=frozenset({key_of("c1")}))
    assert proof.runs == 3


def test_hypotheses_about_several_objects_share_runs() -> None:
    def plane(variant: Variant) -> Answers:
        agree = {
            C1: key_of("c1") in variant.released_last,
            C2: key_of("c2") in variant.collected_first,
        }
        return {place: ENDED for place, agrees in agree.items() if not agrees}

    proof = Proof({}, plane)
    assert proof.judged == {
        "c1": ("race", "the claim controller came after the collector"),
        "c2": ("race", "the collector came before the others"),
    }
    assert proof.runs == 3
    assert proof.variant.collected_last == frozenset(), "what did not hold is not kept"


def test_hypothesis_does_not_hold_where_its_run_differs_elsewhere() -> None:
    recorded = {P1: "a"}

    def plane(variant: Variant) -> Answers:
        holds = key_of("c1") in variant.released_last
        return {P1: "b"} if holds else {P1: "a", C1: ENDED}

    proof = Proof(recorded, plane)
    assert proof.judged == {"c1": ("unexplained", UNPROVED)}
    assert proof.variant == Variant()


# placements


def test_what_vanishes_with_an_unexplained_placement_follows_from_it() -> None:
    recorded = {P1: "a", P2: "a", C1: "a"}

    def plane(variant: Variant) -> Answers:
        is_imposed = (SCHEDULER, "p1") in variant.imposed
        return differing(recorded, {"p1": is_imposed, "p2": is_imposed, "c1": False})

    proof = Proof(recorded, plane)
    assert proof.judged["p1"] == ("unexplained", UNPROVED)
    assert proof.reasons == {
        "p1": "unexplained",
        "p2": "follows from another difference",
        "c1": "unexplained",
    }


@pytest.mark.parametrize("others", [(), (P2,)])
def test_writes_are_taken_as_recorded_only_while_a_difference_may_follow_from_them(
    others: tuple[tuple[Aspect, str], ...],
) -> None:
    recorded = dict.fromkeys((P1, *others), "a")
    never = dict.fromkeys(("p1", "p2"), False)
    proof = Proof(recorded, lambda _: differing(recorded, never))
    assert set(proof.reasons.values()) == {"unexplained"}
    # The last one of several is judged when none is left.
    assert len({each.imposed for each in proof.variants} - {frozenset()}) == len(others)


@pytest.mark.parametrize("is_better", [False, True], ids=["lost", "kept"])
def test_writes_without_which_more_is_as_recorded_are_not_kept(is_better: bool) -> None:
    """The line of an allocation is lost: where nobody has its devices, other pods get them."""
    others = {(Aspect.NODES, f"p{number}"): "a" for number in range(2, 5)}
    recorded = {P1: "a", C2: "a", **others}

    def plane(variant: Variant) -> Answers:
        is_imposed = (SCHEDULER, "p1") in variant.imposed
        is_other = is_imposed and not is_better
        is_ended = is_other or key_of("c1") not in variant.released_last
        wrong = {uid: False for _, uid in others} if is_other else {}
        answers = differing(recorded, {"p1": False, "c2": is_imposed, **wrong})
        return {**answers, C1: ENDED} if is_ended else answers

    proof = Proof(recorded, plane)
    assert proof.judged["c1"] == ("race", "the claim controller came after the collector")
    follows = "follows from another difference"
    assert proof.reasons == {"p1": "unexplained", "c2": follows, "c1": "race"}
    assert ((SCHEDULER, "p1") in proof.variant.imposed) is is_better


def test_eviction_that_is_unexplained_is_taken_from_its_own_controller() -> None:
    evicted = (Aspect.EVICTIONS, "p1")
    recorded = {evicted: "a", P2: "a"}

    def plane(variant: Variant) -> Answers:
        return differing(recorded, {"p1": False, "p2": (EVICTION, "p1") in variant.imposed})

    proof = Proof(recorded, plane)
    assert proof.reasons == {"p1": "unexplained", "p2": "follows from another difference"}


def test_earliest_placement_is_judged_first() -> None:
    """The second pod got the first one's place: the later difference is never the cause."""
    recorded = {P2: "a", P1: "a"}

    def plane(variant: Variant) -> Answers:
        first, second = ((SCHEDULER, uid) in variant.imposed for uid in ("p2", "p1"))
        return differing(recorded, {"p2": first or second, "p1": first or second})

    proof = Proof(recorded, plane)
    assert proof.reasons == {"p2": "unexplained", "p1": "follows from another difference"}


def test_allocation_that_no_order_allows_is_a_violation_whatever_explains_it() -> None:
    recorded = {P1: "a"}

    def plane(variant: Variant) -> Answers:
        return differing(recorded, {"p1": "q1" in variant.switches.quirks})

    overused = {"p1": "device d is held twice"}
    proof = Proof(recorded, plane, others=[switched(q1=True)], overused=overused)
    assert proof.judged == {"p1": ("unexplained", "violation: device d is held twice")}


# other control planes

OTHERS = [switched(**{name: True}) for name in ("q1", "q2", "q3", "q4")]


@pytest.mark.parametrize("cause", ["q2", "q3", "q4"])
def test_switch_that_gives_the_recorded_outcome_is_found_among_all(cause: str) -> None:
    """With `q1` the outcome is a third one, whatever else is switched."""

    def plane(variant: Variant) -> Answers:
        quirks = variant.switches.quirks
        return {P1: "c" if "q1" in quirks else "a" if cause in quirks else "b"}

    proof = Proof({P1: "a"}, plane, others=OTHERS)
    assert proof.judged == {"p1": (cause, "with it the outcome is as recorded")}
    assert proof.variant.switches == Switches(quirks={cause: True})


def test_switches_that_change_nothing_together_are_tried_no_further() -> None:
    """One run has all of them; the others have none."""
    proof = Proof({P1: "a"}, lambda variant: {P1: "b"}, others=OTHERS)
    assert proof.reasons == {"p1": "unexplained"}
    turned = [sorted(each.switches.quirks) for each in proof.variants]
    assert [names for names in turned if names] == [["q1", "q2", "q3", "q4"]]


def test_switch_explains_nothing_where_something_else_differs_then() -> None:
    def plane(variant: Variant) -> Answers:
        turned = "q3" in variant.switches.quirks
        return {P1: "a" if turned else "b", P2: "b" if turned else "a"}

    proof = Proof({P1: "a", P2: "a"}, plane, others=OTHERS)
    assert proof.reasons == {"p1": "unexplained"}


def test_other_release_gates_and_quirks_are_tried_apart() -> None:
    others = [
        Switched(reason="profile 1.35", switches=Switches(profile="1.35")),
        Switched(reason="gate G=false", switches=Switches(gates={"G": False})),
        switched(q1=True),
    ]
    for wanted in others:

        def plane(variant: Variant, wanted: Switches = wanted.switches) -> Answers:
            return {P1: "a" if variant.switches == wanted else "b"}

        assert Proof({P1: "a"}, plane, others=others).reasons == {"p1": wanted.reason}


@pytest.mark.parametrize("unexplained", [False, True])
def test_other_control_planes_are_tried_only_while_all_else_is_explained(
    unexplained: bool,
) -> None:
    """After one difference that nothing explains, no switch excuses the next one."""

    def plane(variant: Variant) -> Answers:
        answers = {C1: "a" if "q1" in variant.switches.quirks else "b"}
        if unexplained:
            answers[P1] = "a" if (SCHEDULER, "p1") in variant.imposed else "b"
        return answers

    recorded = {C1: "a", **({P1: "a"} if unexplained else {})}
    proof = Proof(recorded, plane, others=[switched(q1=True)])
    assert proof.reasons["c1"] == ("unexplained" if unexplained else "q1")


# bounds


def test_what_was_not_tried_says_so() -> None:
    proof = Proof({}, lambda variant: {C1: ENDED}, runs_max=2)
    assert proof.runs == 2
    detail = "not proved within 2 runs (REDRA_DECIDE_RUNS_MAX)"
    assert proof.judged == {"c1": ("unexplained", detail)}


def test_switches_get_half_of_the_runs() -> None:
    def plane(variant: Variant) -> Answers:
        return {P1: f"b{len(variant.switches.quirks)}"}

    proof = Proof({P1: "a"}, plane, others=OTHERS, runs_max=8)
    turned = [len(each.switches.quirks) for each in proof.variants]
    assert [number for number in turned if number] == [4]
    assert proof.judged["p1"][1] == "not proved within 8 runs (REDRA_DECIDE_RUNS_MAX)"


def test_proof_ends_with_the_difference_that_is_sought() -> None:
    recorded = {P1: "a", C1: "a"}

    def plane(variant: Variant) -> Answers:
        return differing(recorded, {"p1": "q1" in variant.switches.quirks, "c1": False})

    proof = Proof(recorded, plane, chosen=[switched(q1=False)], sought=Sought(reason="q1"))
    assert proof.reasons["p1"] == "q1"
    assert proof.runs == 1
    elsewhere = Proof(recorded, plane, sought=Sought(reason="race", aspect="evictions"))
    assert (elsewhere.judged, elsewhere.runs) == ({}, 0)


def test_effect_of_a_switch_is_found_beside_its_effects_on_other_placements() -> None:
    recorded = {P1: "a", P2: "a"}

    def plane(variant: Variant) -> Answers:
        is_turned = "q1" in variant.switches.quirks
        return differing(recorded, {"p1": is_turned, "p2": is_turned})

    sought = Sought(reason="q1", placed=("p1",))
    proof = Proof(recorded, plane, chosen=[switched(q1=False)], sought=sought)
    assert (proof.reasons["p1"], proof.runs) == ("q1", 1)
    other = Proof(recorded, plane, sought=Sought(reason="race", placed=("p1",)))
    assert (other.judged, other.runs) == ({}, 0)


def test_placement_that_a_switch_leaves_ends_the_search_for_its_effect() -> None:
    recorded = {P1: "a", P2: "a", C1: "a"}

    def plane(variant: Variant) -> Answers:
        return differing(
            recorded, {"p1": "q1" in variant.switches.quirks, "p2": False, "c1": False}
        )

    sought = Sought(reason="q1", explained={"p1": ("c1",)}, placed=("p1",))
    proof = Proof(recorded, plane, chosen=[switched(q1=False)], sought=sought)
    assert (proof.judged, proof.runs) == ({}, 1)


# what no run can decide

NO_CLASSES = Lacks(
    (Doubt(code=NEVER_SEEN, affects=Affects.CONTENT, kind="deviceclasses", count=0, text=""),)
)


def test_nothing_is_tried_where_a_kind_is_missing_that_all_decisions_need() -> None:
    """An allocation that no order allows stays one, and so does an impossible fact."""
    recorded = {P1: "a", P2: "a", C1: "a"}
    proof = Proof(
        recorded,
        lambda variant: differing(recorded, dict.fromkeys(("p1", "p2", "c1"), False)),
        lacks=NO_CLASSES,
        overused={"p1": "device d is held twice"},
        impossible={key_of("p2"): "bound twice"},
        others=[switched(q1=True)],
    )
    assert proof.judged == {
        "p1": ("unexplained", "violation: device d is held twice"),
        "p2": ("unexplained", "bound twice"),
        "c1": ("not comparable", "the recording has no deviceclasses"),
    }
    assert proof.runs == 0


@pytest.mark.parametrize("impossible", ["", "bound twice"])
def test_impossible_fact_is_the_detail_of_what_nothing_explains(impossible: str) -> None:
    recorded = {P1: "a"}
    proof = Proof(
        recorded,
        lambda variant: differing(recorded, {"p1": False}),
        impossible={key_of("p1"): impossible} if impossible else {},
    )
    assert proof.judged == {"p1": ("unexplained", impossible or UNPROVED)}


# the turn of a competitor


def attempt(first: int, last: int, *, is_placed: bool = True, bound: int | None = None) -> Try:
    outcome = AttemptOutcome(node="n") if is_placed else AttemptOutcome(message="none")
    bind_at = None if bound is None else Instant(bound)
    placing = Placing(began=Instant(first), bind_at=bind_at) if is_placed else None
    at, until = Instant(first), Instant(last)
    return Try(instant=at, first=at, last=until, tried=outcome, placing=placing)


FOLLOWS = ("follows from another difference", "gone when an earlier difference is as recorded")
LATER = ("race: order of waiting pods", "pods/ns/p2 wanted the same and was tried after it")


@pytest.mark.parametrize(
    ("theirs", "spoiled", "expected"),
    [
        pytest.param([], False, {"p1": LATER, "p2": FOLLOWS}, id="never placed"),
        pytest.param([attempt(3, 10)], False, {"p1": LATER, "p2": FOLLOWS}, id="at that time"),
        pytest.param([attempt(1, 5)], False, {"p1": LATER, "p2": FOLLOWS}, id="perhaps after it"),
        pytest.param([attempt(1, 4)], False, {}, id="surely before it"),
        pytest.param([attempt(1, 4, bound=12)], False, {}, id="surely before it, bound after it"),
        pytest.param(
            [attempt(1, 4, is_placed=False)], False, {"p1": LATER, "p2": FOLLOWS}, id="refused"
        ),
        pytest.param([], True, {}, id="something else differs then"),
    ],
)
def test_competitor_that_is_tried_after_the_pod_explains_its_placement(
    theirs: list[Try], spoiled: bool, expected: dict[str, tuple[str, str]]
) -> None:
    """The recorded attempt of the pod was made between 5 and 9; both want one node."""
    pace = RecordedPace()
    pace._pods = {"p1": PodCourse([attempt(5, 9)]), "p2": PodCourse(theirs)}
    recorded = {P1: "a", C1: "x"}

    def plane(variant: Variant) -> Answers:
        if Hold(pod="p2", until=Instant(10)) in variant.held:
            return {P1: "a", C1: "y" if spoiled else "x"}
        return {C1: "x", P2: "a"}

    proof = Proof(recorded, plane, pace=pace)
    unexplained = {"p1": ("unexplained", UNPROVED), "p2": ("unexplained", UNPROVED)}
    assert proof.judged == (expected or unexplained)
    held = {Hold(pod="p2", until=Instant(10))} if expected else set()
    assert proof.variant.held == held


# rules

RULED = (Aspect.CONDITIONS, "c1"), (Aspect.CONDITIONS, "c2")


@pytest.mark.parametrize(
    ("is_on", "forbidden", "agreeing", "expected"),
    [
        pytest.param(True, {}, "p1", {}, id="no rule forbids anything"),
        pytest.param(True, {"c1": True}, "", {}, id="turned on, nothing changes"),
        pytest.param(True, {"c1": True}, "p1 spoiled", {}, id="turned on, something else differs"),
        pytest.param(
            True,
            {"c1": True, "c2": False},
            "c1 c2",
            {"c1": "released bug C24", "c2": FOLLOWS[0]},
            id="the taint of a rule and that of a slice",
        ),
        pytest.param(False, {}, "", {}, id="turned off, nothing changes"),
        pytest.param(False, {}, "p1 spoiled", {}, id="turned off, something else differs"),
        pytest.param(False, {}, "p1 c1", {"p1": "c24", "c1": "c24"}, id="turned off, two agree"),
    ],
)
def test_quirk_of_rules_is_kept_where_its_run_gives_more_of_what_was_recorded(
    is_on: bool, forbidden: dict[str, bool], agreeing: str, expected: dict[str, str]
) -> None:
    recorded = {P1: "a", **dict.fromkeys(RULED, "a"), C2: "a"}

    def plane(variant: Variant) -> Answers:
        is_turned = "c24" in variant.switches.quirks
        agrees = {uid: is_turned and uid in agreeing for uid in ("p1", "c1", "c2")}
        answers = dict(differing(recorded, agrees))
        answers[C2] = "b" if is_turned and "spoiled" in agreeing else "a"
        return answers

    proof = Proof(recorded, plane, rules_seen=switched(c24=is_on), forbidden=forbidden)
    assert proof.reasons == {**dict.fromkeys(("p1", "c1", "c2"), "unexplained"), **expected}
    kept = Switches(quirks={"c24": is_on}) if expected else Switches()
    assert proof.variant.switches == kept
    tried = any(each.switches.quirks for each in proof.variants)
    assert tried is (bool(forbidden) or not is_on)
