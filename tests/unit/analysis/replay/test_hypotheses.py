"""Hypotheses about differences: which are tried, and about what.

The table has a row per sentence of "Classes of differences" in docs/explanation/decide.md.
"""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from app.adapters import schemas
from app.analysis.replay import facts
from app.analysis.replay.authors import CLAIMS
from app.analysis.replay.differences import Aspect, Sides
from app.analysis.replay.hypotheses.hypothesis import Hypothesis
from app.analysis.replay.hypotheses.proposals import Proposals
from app.analysis.replay.hypotheses.successors import successions
from app.analysis.replay.lags import Refused, Waits
from app.analysis.replay.lateness import Process
from app.analysis.replay.traces import AllocationStep, Step, Trace
from app.analysis.replay.variants import Hold, Succession, Variant
from app.analysis.replay.writers import short_name
from app.domain.controllers.scheduling.reports import messages
from app.domain.log import ObjectKey
from app.domain.values.timestamps import Instant

POD = ObjectKey("", "pods", "ns", "p")
CLAIM = ObjectKey("resource.k8s.io", "resourceclaims", "ns", "c")
RULE = ObjectKey("resource.k8s.io", "devicetaintrules", "", "r")
NODE = ObjectKey("", "nodes", "", "n")
SLICE = ObjectKey("resource.k8s.io", "resourceslices", "", "n-s")
NAMESPACE = ObjectKey("", "namespaces", "", "ns")
UIDS = {POD: "pod", CLAIM: "claim", RULE: "rule", NAMESPACE: "namespace"}

SECOND = 1_000_000
GONE = Instant(100 * SECOND)

FAILED = facts.EventSeen("Warning", "FailedScheduling", "0/1 nodes are available")
IN_FLIGHT = facts.EventSeen(
    "Warning", "FailedScheduling", "resource claim c is in the process of being allocated"
)
SKIPPED = facts.EventSeen("Warning", "FailedScheduling", "skip schedule deleting pod: ns/p")
TRIED = facts.ConditionSet("PodScheduled", "False", "Unschedulable", "0/1 nodes are available")
PLACED = facts.ConditionSet("PodScheduled", "True", "", "")
NOMINATED = facts.Nominated("n")
RELEASED = facts.Released()
RESERVED = facts.Reserved("p", "pod")
UNRESERVED = facts.Unreserved("p", "pod")


def step(key: ObjectKey, *what: facts.Fact, at: int = 100, writer: str = "") -> Step:
    time = Instant(at * SECOND)
    return Step(revision=1, time=time, writer=writer, key=key, uid=UIDS[key], facts=what)


def traces(*, removed: bool = False, finished: bool = False) -> tuple[Trace, Trace]:
    """The recorded trace and that of a run, which know a pod, its claim and a rule."""
    pair = Trace(schemas.load("1.36")), Trace(schemas.load("1.36"))
    for trace in pair:
        trace.keys.update({uid: key for key, uid in UIDS.items()})
        trace.owner_of["claim"] = "pod"
    if removed:
        pair[0].removed["pod"] = GONE
    if finished:
        pair[1].finished["pod"] = GONE
    return pair


def proposed(
    aspect: Aspect,
    *,
    theirs: tuple[Step, ...] = (),
    ours: tuple[Step, ...] = (),
    about: ObjectKey = POD,
    waits: Waits = Waits((), ()),
    **ends: bool,
) -> list[tuple[str, str, object]]:
    """Class, changed field and target of the hypotheses about a difference, in their order."""
    recorded, again = traces(**ends)
    sides = Sides(
        aspect=aspect,
        uid=UIDS[about],
        recorded=[each.text for each in theirs],
        again=[each.text for each in ours],
        only_recorded=theirs,
        only_again=ours,
    )
    made = Proposals(recorded, waits=waits).local(sides, again)
    return [(each.reason, each.field, each.target) for each in made]


def test_object_that_only_a_report_names_has_no_hypothesis_of_its_own() -> None:
    recorded, again = (Trace(schemas.load("1.36")) for _ in range(2))
    sides = Sides(aspect=Aspect.SAID, uid="gone", recorded=["a"], again=[])
    assert list(Proposals(recorded).local(sides, again)) == []


def test_condition_that_only_its_instant_gives_to_an_attempt_may_be_of_another_one() -> None:
    failed = facts.ConditionSet(
        type="PodScheduled", status="False", reason="Unschedulable", message="none"
    )
    recorded, again = (Trace(schemas.load("1.36")) for _ in range(2))
    recorded.keys["pod"] = POD
    tried = Step(revision=1, time=Instant(1), writer="", key=POD, uid="pod", facts=(failed,))
    sides = Sides(
        aspect=Aspect.CONDITIONS, uid="pod", recorded=["a"], again=[], only_recorded=(tried,)
    )
    for paired_by_time, expected in (({"pod"}, ["apart", "apart+tried"]), ({"other"}, [])):
        made = Proposals(recorded, paired_by_time).local(sides, again)
        assert [each.field for each in made if "apart" in each.field] == expected


TRIES = [("timing", "tried", "pod"), ("timing", "tried+repeated", "pod")]
REFUSED_CLAIM = facts.EventSeen("Warning", "FailedResourceClaimCreation", "exceeded quota")
ALONE = [*TRIES, ("timing", "tried+untried", "pod")]
LIMITED = ("timing", "is_limited", None)
ENDS = [
    ("race", name, CLAIM)
    for name in (
        *("collected_last", "collected_first", "released_last", "released_first"),
        "released_first+handed_over",
    )
]


@pytest.mark.parametrize(
    ("micros", "theirs", "is_likely"),
    [
        (0, (), True),
        (400_000, (), True),
        (600_000, (), False),
        (-1, (), False),
        (0, (step(POD, FAILED),), False),
        ((-900_000, 800_000), (), True),
        ((400_000, 2_100_000), (), True),
        ((600_000, 2_300_000), (), False),
        ((-1_800_000, -1), (), False),
    ],
)
def test_events_about_which_a_namespace_ends_soon_may_be_refused(micros, theirs, is_likely):
    """Only where all that only the run says comes within half a second before that.

    In a source without times it ended between two instants.
    """
    recorded, again = traces()
    first, last = micros if isinstance(micros, tuple) else (micros, micros)
    recorded.ends["ns"].append((Instant(100 * SECOND + first), Instant(100 * SECOND + last)))
    sides = Sides(
        aspect=Aspect.SAID,
        uid="pod",
        recorded=list(theirs),
        again=[FAILED],
        only_recorded=theirs,
        only_again=(step(POD, SKIPPED),),
    )
    made = [each.detail for each in Proposals(recorded).local(sides, again)]
    assert ("the Event came when the namespace was to end, and was refused" in made) is is_likely


@pytest.mark.parametrize(
    ("theirs", "ours", "expected"),
    [
        ((FAILED,), (), [*ALONE, LIMITED]),
        ((TRIED,), (), [*ALONE, LIMITED]),
        ((FAILED,), (PLACED,), [("race", field, uid) for _, field, uid in TRIES]),
        ((FAILED,), (FAILED,), [*(("race", field, uid) for _, field, uid in ALONE), LIMITED]),
        ((IN_FLIGHT,), (), [*(("in flight", field, uid) for _, field, uid in ALONE), LIMITED]),
        ((SKIPPED,), (), [("timing", "skipped", "pod"), LIMITED]),
        ((SKIPPED, FAILED), (), [("timing", "skipped", "pod"), *ALONE, LIMITED]),
        ((), (FAILED,), [("timing", "untried", "pod"), LIMITED]),
        ((), (TRIED, FAILED), [("timing", "untried", "pod"), LIMITED]),
        ((), (IN_FLIGHT,), [("in flight", "untried", "pod"), LIMITED]),
        ((), (FAILED, PLACED), []),
        ((PLACED,), (), []),
        ((PLACED,), (FAILED,), []),
        ((), (), []),
    ],
)
def test_pod_is_tried_as_recorded_where_attempts_differ(theirs, ours, expected) -> None:
    """A placement that only one side has is never explained by an attempt that was not made."""
    sides = {
        "theirs": tuple(step(POD, fact) for fact in theirs),
        "ours": tuple(step(POD, fact) for fact in ours),
    }
    assert proposed(Aspect.CONDITIONS, **sides) == expected


@pytest.mark.parametrize(
    ("ours", "removed", "expected"),
    [
        ((NOMINATED,), True, [("race", "unanswered", "pod")]),
        ((NOMINATED,), False, []),
        ((NOMINATED, PLACED), True, []),
        ((), True, []),
        ((facts.Created(),), True, [("race", "unsynced", POD)]),
        ((facts.ClaimsNamed(()), facts.Created(), facts.Removed()), True,
         [("race", "unsynced", POD)]),
        ((facts.Created(), RESERVED), True, []),
        ((facts.Created(),), False, []),
        ((REFUSED_CLAIM,), True, [("race", "unsynced", POD)]),
        ((REFUSED_CLAIM,), False, []),
        ((REFUSED_CLAIM, NOMINATED), True, []),
    ],
)  # fmt: skip
def test_write_for_a_pod_that_is_gone_may_have_come_too_late(ours, removed, expected) -> None:
    ours = tuple(step(POD, fact) for fact in ours)
    assert proposed(Aspect.WRITES, ours=ours, removed=removed) == expected


@pytest.mark.parametrize(
    ("at", "is_bound", "expected"),
    [(100, False, ["unanswered"]), (90, False, []), (100, True, [])],
)
def test_nomination_may_meet_no_pod_as_long_as_its_request_may_have_waited(
    at, is_bound, expected
) -> None:
    """A pod that was bound before it went had been nominated: the requests keep their order."""
    recorded, again = traces(removed=True)
    if is_bound:
        recorded.node_of["pod"] = step(POD, facts.Bound("n"), at=95)
    sent = [Instant(95 * SECOND + number * SECOND // 10) for number in range(80)]
    ours = (step(POD, NOMINATED, at=at),)
    sides = Sides(aspect=Aspect.WRITES, uid="pod", recorded=[], again=["a"], only_again=ours)
    proposals = Proposals(recorded, waits=Waits((), sent))
    assert [each.field for each in proposals.local(sides, again)] == expected


UNTRIED, UNREPORTED = ("timing", "untried", "pod"), ("race", "unreported", "pod")


@pytest.mark.parametrize(
    ("since", "at", "expected"),
    [
        (60, 100, [UNTRIED, UNREPORTED]),
        (60, 61, [UNTRIED, UNREPORTED]),
        (60, 58, [UNTRIED]),
        (95, 96, [UNTRIED, UNREPORTED]),
        (95, 85, [UNTRIED]),
        (120, 100, [UNTRIED, UNREPORTED]),
        (120, 98, [UNTRIED]),
    ],
)
def test_condition_may_meet_no_pod_as_long_as_its_request_may_have_waited(
    since, at, expected
) -> None:
    """Ten requests a second were sent from a second on; the pod went in second 100."""
    sent = [Instant(since * SECOND + number * SECOND // 10) for number in range(800)]
    waits = Waits((), [Instant(10 * SECOND), *sent])
    ours = (step(POD, TRIED, at=at),)
    assert proposed(Aspect.WRITES, ours=ours, removed=True, waits=waits) == expected
    assert proposed(Aspect.SAID, ours=ours, removed=True, waits=waits) == [UNTRIED]
    assert proposed(Aspect.WRITES, ours=ours, waits=waits) == [UNTRIED]
    theirs = (step(POD, PLACED),)
    assert proposed(Aspect.WRITES, ours=ours, theirs=theirs, removed=True, waits=waits) == []


def test_every_condition_of_a_report_in_vain_is_a_failed_attempt() -> None:
    ready = facts.ConditionSet("Ready", "False", "", "")
    ours = (step(POD, TRIED), step(POD, ready))
    assert proposed(Aspect.WRITES, ours=ours, removed=True) == []
    assert proposed(Aspect.WRITES, ours=(step(POD, FAILED),), removed=True) == [UNTRIED]


def test_report_in_vain_may_have_ended_a_nomination() -> None:
    ended = facts.NominationEnded()
    late = (step(POD, TRIED, ended),)
    assert UNREPORTED in proposed(Aspect.WRITES, ours=late, removed=True)
    assert proposed(Aspect.WRITES, ours=(step(POD, ended),), removed=True) == []


def test_events_in_another_order_were_written_when_they_were_recorded() -> None:
    recorded, again = traces()
    sides = Sides(aspect=Aspect.SAID, uid="pod", recorded=["a", "b"], again=["b", "a"])
    made = [
        (each.reason, each.field, each.target) for each in Proposals(recorded).local(sides, again)
    ]
    assert made == [
        ("race", "reported", "pod"),
        ("race", "reported+repeated", "pod"),
        ("race", "reported+repeated+joined", "pod"),
    ]
    other = Sides(aspect=Aspect.SAID, uid="pod", recorded=["a"], again=["b"])
    assert list(Proposals(recorded).local(other, again)) == []
    writes = Sides(aspect=Aspect.WRITES, uid="pod", recorded=["a", "b"], again=["b", "a"])
    assert list(Proposals(recorded).local(writes, again)) == []


def test_report_of_an_attempt_that_was_not_made_here_may_have_been_late_besides() -> None:
    """One limit delays conditions and reports: a pod differs in its attempts and their order.

    Last, the place that it did not get may have been another pod's, whose requests waited.
    """
    late = ["reported", "reported+repeated", "reported+repeated+joined"]
    expected = ["tried", "tried+repeated", "tried+untried"]
    expected += [*(f"tried+{each}" for each in late), "is_limited"]
    report = step(POD, FAILED)
    assert [field for _, field, _ in proposed(Aspect.SAID, theirs=(report,))] == expected
    condition = step(POD, TRIED)
    assert not any(
        "reported" in field for _, field, _ in proposed(Aspect.CONDITIONS, theirs=(condition,))
    )


@pytest.mark.parametrize("fact", [facts.DeletionAsked(30), facts.FinalizerRemoved("f"), RELEASED,
                                  facts.Removed(), UNRESERVED])  # fmt: skip
def test_end_of_a_claim_is_a_race_of_those_who_end_it(fact: facts.Fact) -> None:
    alone = (step(CLAIM, fact),)
    assert proposed(Aspect.WRITES, theirs=alone, about=CLAIM) == ENDS
    assert proposed(Aspect.WRITES, ours=alone, about=CLAIM) == ENDS
    mixed = (step(CLAIM, fact, facts.Allocated(("r: p/d",))),)
    assert proposed(Aspect.WRITES, theirs=mixed, about=CLAIM) == []


@pytest.mark.parametrize("aspect", [Aspect.WRITES, Aspect.ORDER])
def test_nobody_comes_after_the_end_of_a_claim_that_has_none(aspect: Aspect) -> None:
    """Later is not never: a claim that is still there was not ended by the other one."""
    recorded, again = traces()
    recorded.kept["claim"] = {}
    ended = (step(CLAIM, facts.Removed()),)
    uid = "pod" if aspect is Aspect.ORDER else "claim"
    sides = Sides(aspect=aspect, uid=uid, recorded=[], again=["a"], only_again=ended)
    made = [each.field for each in Proposals(recorded).local(sides, again)]
    assert made == ["collected_first", "released_first"]


def test_order_of_a_pods_writes_is_about_its_claims() -> None:
    ended = (step(CLAIM, RELEASED),)
    assert proposed(Aspect.ORDER, theirs=ended) == ENDS
    assert proposed(Aspect.CONDITIONS, theirs=ended) == []


def of_claim(
    aspect: Aspect, theirs: tuple[Sequence[facts.Fact], ...], ours: tuple[Sequence[facts.Fact], ...]
) -> list[str]:
    """The orders that are tried for a claim with these writes, one after the other.

    Only the traces have the writes, as where devices or the objects at the end are compared, or
    where both sides have the same writes in another order.
    """
    recorded, again = pair = traces()
    for trace, writes in zip(pair, (theirs, ours), strict=True):
        for number, what in enumerate(writes):
            made = replace(step(CLAIM, *what), revision=number)
            trace.writes["claim"].append(made)
            trace.of_pod["pod"].append(made)
            for given in what:
                if isinstance(given, facts.Allocated):
                    trace.allocations["claim"].append(
                        AllocationStep(
                            revision=number,
                            time=made.time,
                            key=CLAIM,
                            uid="claim",
                            pod="pod",
                            devices=given.devices,
                            allocation={"devices": list(given.devices)},
                        )
                    )
    answers = [[each.allocation for each in trace.allocations["claim"]] for trace in pair]
    uid = "pod" if aspect is Aspect.ORDER else "claim"
    sides = Sides(aspect=aspect, uid=uid, recorded=answers[0], again=answers[1])
    orders = {name for _, name, _ in ENDS}
    made = [each.field for each in Proposals(recorded).local(sides, again)]
    return [name for name in made if name in orders]


A, B = (facts.Allocated((f"r: p/{name}",)) for name in "ab")
ORDERS = [name for _, name, _ in ENDS]


@pytest.mark.parametrize(
    ("theirs", "ours", "expected"),
    [
        (((A,),), ((B,),), []),
        (((A,), (RELEASED,)), ((B,), (RELEASED,)), []),
        (((A,),), ((B,), (RELEASED,), (facts.Removed(),)), []),
        (((A,),), (), []),
        (((facts.Removed(),),), ((A,), (facts.Removed(),)), ORDERS),
        (((A,), (RELEASED,), (B,)), ((A,),), ORDERS),
        (((A,), (RELEASED,), (B,)), ((A,), (RELEASED,), (A,)), []),
        (((A,), (UNRESERVED, RELEASED), (B,)), ((A,), (RELEASED,), (A,)), ORDERS),
    ],
)
def test_devices_differ_for_the_end_of_a_claim_only_where_that_differs_before(
    theirs, ours, expected
) -> None:
    """What comes after an allocation cannot be why it differs."""
    assert of_claim(Aspect.DEVICES, theirs, ours) == expected


@pytest.mark.parametrize(
    ("theirs", "ours", "expected"),
    [
        (((A,),), ((B,),), []),
        (((A,), (RELEASED,)), ((B,), (RELEASED,)), []),
        (((A,), (RELEASED,)), ((A,),), ORDERS),
    ],
)
def test_claim_at_the_end_differs_for_its_end_only_where_that_differs(
    theirs, ours, expected
) -> None:
    assert of_claim(Aspect.FINAL, theirs, ours) == expected


@pytest.mark.parametrize("aspect", [Aspect.WRITES, Aspect.ORDER])
@pytest.mark.parametrize(
    ("theirs", "expected"), [((RELEASED, RESERVED), ORDERS), ((A, RESERVED), [])]
)
def test_order_of_the_same_writes_is_one_of_ends_where_a_claim_ends(
    aspect: Aspect, theirs: tuple[facts.Fact, ...], expected: list[str]
) -> None:
    writes = tuple((fact,) for fact in theirs)
    assert of_claim(aspect, writes, writes[::-1]) == expected


@pytest.mark.parametrize("writer", ["", "scheduler"])
def test_reservation_that_the_scheduler_took_back_is_tried_first(writer: str) -> None:
    recorded, again = traces()
    recorded.writes["claim"] = [step(CLAIM, UNRESERVED, writer=writer)]
    ended = (step(CLAIM, RELEASED),)
    sides = Sides(aspect=Aspect.WRITES, uid="claim", recorded=[], again=[], only_again=ended)
    made = [(each.field, each.target) for each in Proposals(recorded).local(sides, again)]
    assert made == [("returned", CLAIM), *((field, claim) for _, field, claim in ENDS)]


@pytest.mark.parametrize(
    "other", [step(CLAIM, UNRESERVED, writer="garbage-collector"), step(CLAIM, RESERVED)]
)
def test_only_the_scheduler_takes_its_reservation_back(other: Step) -> None:
    recorded, again = traces()
    recorded.writes["claim"] = [other]
    ended = (step(CLAIM, RELEASED),)
    sides = Sides(aspect=Aspect.WRITES, uid="claim", recorded=[], again=[], only_again=ended)
    made = [each.field for each in Proposals(recorded).local(sides, again)]
    assert "returned" not in made


def test_finished_pod_is_synced_again_with_both_quirks() -> None:
    ours = (step(CLAIM, RESERVED),)
    claims = frozenset({CLAIM})
    quirk = ("quirk C8 or C22", "quirks", claims)
    assert proposed(Aspect.WRITES, ours=ours, about=CLAIM, finished=True) == [quirk]
    assert proposed(Aspect.WRITES, ours=ours, about=CLAIM) == []
    placed = (step(CLAIM, RESERVED, facts.Allocated(("r: p/d",))),)
    assert proposed(Aspect.WRITES, ours=placed, about=CLAIM, finished=True) == []
    made = next(iter(Proposals(traces()[0]).local(sides_of(ours), traces(finished=True)[1])))
    variant = made.on(Variant())
    assert variant.switches.quirks == {"c8": True, "c22": True}
    assert variant.resyncs
    assert variant.released_first == claims


def sides_of(ours: tuple[Step, ...]) -> Sides:
    return Sides(aspect=Aspect.WRITES, uid="claim", recorded=[], again=[], only_again=ours)


NEW_COUNTS = ("", "+counted_last", "+counted", "+counted_first")
"""When the process that begins counts, if not at the recorded instant."""


def test_status_of_a_rule_is_counted_at_three_instants_also_by_a_new_process() -> None:
    assert proposed(Aspect.RULES, ours=(step(RULE, PLACED),), about=RULE) == [
        ("timing", "postponed", "rule"),
        *(("timing", f"begun_anew{counted}", "r") for counted in NEW_COUNTS),
        ("timing", "counted_last", "r"),
        ("timing", "counted", "r"),
        ("timing", "counted_first", "r"),
    ]


def test_hypothesis_adds_its_target_to_each_of_its_fields() -> None:
    before = Variant(tried=frozenset({"earlier"}))
    made = Hypothesis(reason="race", detail="", field="tried+repeated", target="pod").on(before)
    assert made == Variant(tried=frozenset({"earlier", "pod"}), repeated=frozenset({"pod"}))
    virtual = Variant(tried=frozenset({"earlier"}), is_paced=False)
    assert Hypothesis(reason="timing", detail="", field="is_paced").on(virtual) == before


@pytest.mark.parametrize("aspect", [Aspect.NODES, Aspect.DEVICES])
@pytest.mark.parametrize(("recorded", "expected"), [(["n1"], True), ([], False)])
def test_recorded_placement_may_have_been_decided_earlier_and_one_that_is_not_recorded_not(
    aspect: Aspect, recorded: list[str], expected: bool
) -> None:
    """The pod need not be bound: it may have gone when its claims were written."""
    there, again = traces()
    sides = Sides(aspect=aspect, uid="pod", recorded=list(recorded), again=["n2"])
    fields = [each.field for each in Proposals(there).local(sides, again)]
    assert ("waited" in fields) is expected


@pytest.mark.parametrize("aspect", Aspect)
def test_lower_limit_of_the_client_is_thought_of_last_for_placements_and_refusals(
    aspect: Aspect,
) -> None:
    """It holds for all requests of a client; a pod without a recorded place had no requests."""
    there, again = traces()
    sides = Sides(aspect=aspect, uid="pod", recorded=["n1"], again=["n2"])
    made = list(Proposals(there).local(sides, again))
    is_placement = aspect in (Aspect.NODES, Aspect.DEVICES)
    assert [each.field for each in made[-1:]] == ["is_limited"] * is_placement
    assert all(each.field != "is_limited" for each in made[:-1])
    if made:
        assert made[-1].on(Variant()) == Variant(is_limited=True)
    is_of_conditions = aspect is Aspect.CONDITIONS
    assert (LIMITED in proposed(aspect, ours=(step(POD, TRIED),))) is is_of_conditions


@pytest.mark.parametrize(
    ("gone", "node", "written", "expected"),
    [
        (103, "", (), {("other", Instant(104 * SECOND))}),
        (99, "", (), set()),
        (160, "", (), set()),
        (103, "n", (), set()),
        (103, "", (NOMINATED,), set()),
    ],
)
def test_pod_that_was_gone_may_have_had_a_place_if_nothing_says_otherwise(
    gone, node, written, expected
) -> None:
    """Its claim was gone a second later; requests that were made after 100 s wait for 10 s."""
    recorded, again = traces()
    other, claim = POD._replace(name="other"), CLAIM._replace(name="of-other")
    for uid, key, at in (("other", other, gone), ("of-other", claim, gone + 1)):
        recorded.keys[uid], recorded.removed[uid] = key, Instant(at * SECOND)
    recorded.owner_of["of-other"] = "other"
    if node:
        recorded.node_of["other"] = step(POD, facts.Bound(node))
    recorded.writes["other"] = [step(POD, fact) for fact in written]
    writes = [Instant(100 * SECOND + number * SECOND // 2) for number in range(80)]
    pairs = [(at, Instant(100 * SECOND + number)) for number, at in enumerate(writes[:40])]
    refused = step(POD, TRIED, at=110)
    sides = Sides(
        aspect=Aspect.CONDITIONS, uid="pod", recorded=["a"], again=[], only_recorded=(refused,)
    )
    made = Proposals(recorded, waits=Waits(pairs, writes)).local(sides, again)
    hidden = [each for each in made if each.field == "hidden"]
    assert [each.target for each in hidden] == ([expected] if expected else [])
    for each in hidden:
        assert each.on(Variant()) == Variant(hidden=expected, unanswered={"other"})
    # A placement that was recorded may also be that of a client with a lower limit.
    recorded.writes["pod"] = [step(POD, NOMINATED, at=110)]
    placed = Sides(aspect=Aspect.NODES, uid="pod", recorded=["n1"], again=["n2"])
    made = Proposals(recorded, waits=Waits(pairs, writes)).local(placed, again)
    fields = [each.field for each in made if each.field.startswith("hidden")]
    assert fields == (["hidden", "hidden+is_limited"] if expected else [])


@pytest.mark.parametrize(
    ("slack", "expected"), [(1, [(100.5, 700.2)]), (0, [])], ids=["whole seconds", "exact times"]
)
def test_choice_is_lost_once_where_steps_have_whole_seconds_and_requests_are_spread(
    slack, expected
) -> None:
    """The second attempt has two writes in the second in which the scheduler is back."""
    recorded, _ = traces()
    recorded.of_pod["pod"] = [
        step(POD, NOMINATED, at=100),
        step(POD, TRIED, at=700),
        step(POD, NOMINATED, at=700),
        step(POD, TRIED, at=700),
    ]
    instants = [Instant(int(at * SECOND)) for at in (100, 100.5, 700.2, 700.4, 700.6)]
    waits = Waits((), instants, refused=Refused(slack=slack * SECOND))
    certain, bound = successions("pod", recorded, Process(instants), waits)
    assert sorted((each.since / SECOND, each.until / SECOND) for each in certain) == expected
    assert not bound


@pytest.mark.parametrize(
    ("pause", "is_proposed"), [(3, True), (1, False)], ids=["replaced", "without a pause"]
)
def test_placement_may_rest_on_one_that_a_new_scheduler_lost(pause, is_proposed) -> None:
    recorded, again = traces()
    recorded.keys["other"] = POD._replace(name="other")
    steps = [step(POD, NOMINATED, at=100), step(POD, TRIED, at=100 + pause)]
    recorded.of_pod["other"] = steps
    own, others = (
        Sides(aspect=Aspect.NODES, uid=uid, recorded=["a"], again=["b"]) for uid in ("pod", "other")
    )
    scheduler = Process([each.time for each in steps])
    proposals = Proposals(recorded, scheduler=scheduler)
    proposed = list(proposals.of_placement(own, again, [own, others]))
    lost = [each.target for each in proposed if each.field == "lost"]
    assert [{each.pod for each in target} for target in lost] == [{"other"}] * is_proposed
    assert [*proposed[: len(proposed) - len(lost)]] == list(proposals.local(own, again))


@pytest.mark.parametrize(
    ("gone", "written", "done", "is_held", "led", "is_proposed"),
    [
        pytest.param(108, (), (), False, (), True, id="nothing was written meanwhile"),
        pytest.param(108, (), (FAILED,), False, (), True, id="the old one had refused the pod"),
        pytest.param(160, (), (), False, (), False, id="for longer than any process is away"),
        pytest.param(108, (105,), (), False, (), False, id="the scheduler was there"),
        pytest.param(108, (), (NOMINATED,), False, (), False, id="the pod was nominated"),
        pytest.param(108, (), (), True, (), False, id="the same process holds the Lease"),
        pytest.param(120, (), (), False, (103.5, 110), False, id="one renewed its Lease"),
        pytest.param(120, (), (), False, (111, 200), False, id="the next one had it soon"),
        pytest.param(108, (), (), False, (90, 101), True, id="the old one had it until then"),
        pytest.param(108, (), (), False, (107, 200), True, id="the next one had it too late"),
        pytest.param(99, (), (), False, (), False, id="gone when it was placed here"),
        pytest.param(None, (), (), False, (), False, id="never removed"),
    ],
)
def test_pod_may_be_gone_before_the_next_scheduler_tries_it(
    gone, written, done, is_held, led, is_proposed
) -> None:
    recorded, again = traces()
    again.node_of["pod"] = step(POD, facts.Bound("n"), at=101)
    if gone is not None:
        recorded.removed["pod"] = Instant(gone * SECOND)
    recorded.writes["pod"] = [step(POD, fact, at=90) for fact in done]
    instants = [Instant(at * SECOND) for at in (90, *written, 200)]

    def is_led(begin: Instant, end: Instant) -> bool:
        first, last = (int(at * SECOND) for at in led or (0, -1))
        return begin <= end and first <= end and begin <= last

    proposals = Proposals(recorded, scheduler=Process(instants, lambda *_: is_held, is_led))
    for uid in ("pod", "claim"):
        root = Sides(aspect=Aspect.DEVICES, uid=uid, recorded=[], again=["a"])
        pod = Sides(aspect=Aspect.NODES, uid="pod", recorded=[], again=["n"])
        proposed = proposals.of_placement(root, again, [root, pod])
        held = [each.target for each in proposed if each.field == "held"]
        since = Instant(91 * SECOND if done else 0)
        assert held == [Hold(pod="pod", since=since, until=Instant(109 * SECOND))] * is_proposed


@pytest.mark.parametrize(
    ("last", "written", "is_held", "is_proposed"),
    [
        pytest.param(NOMINATED, (100, 104), False, True, id="it paused around the end of the wait"),
        pytest.param(NOMINATED, (100, 101.5), False, False, id="its pause was shorter"),
        pytest.param(NOMINATED, (100, 170), False, False, id="no process is away for so long"),
        pytest.param(NOMINATED, (100,), False, False, id="it wrote no more"),
        pytest.param(TRIED, (100, 104), False, False, id="it had refused the pod"),
        pytest.param(NOMINATED, (100, 104), True, False, id="the same process holds the Lease"),
    ],
)
def test_wait_may_be_lost_if_the_next_scheduler_never_tries_the_pod(
    last, written, is_held, is_proposed
) -> None:
    recorded, again = traces()
    recorded.of_pod["pod"] = [step(POD, last, at=90)]
    again.node_of["pod"] = step(POD, facts.Bound("n"), at=101)
    instants = [Instant(int(at * SECOND)) for at in (90, *written)]
    proposals = Proposals(recorded, scheduler=Process(instants, lambda *_: is_held))
    root = Sides(aspect=Aspect.NODES, uid="pod", recorded=[], again=["n"])
    lost = [each.target for each in proposals.local(root, again) if each.field == "lost"]
    span = Succession(pod="pod", since=Instant(100 * SECOND), until=Instant(104 * SECOND))
    assert lost == [{span}] * is_proposed


GIVEN_UP = facts.ConditionSet(
    "PodScheduled", "False", "SchedulerError", messages.prebind_failure("claim is being deleted")
)


@pytest.mark.parametrize(
    ("fact", "writer", "at", "is_proposed"),
    [
        pytest.param(GIVEN_UP, "scheduler", 101, True, id="only this side gave the wait up"),
        pytest.param(GIVEN_UP, "scheduler", 99, False, id="before the scheduler paused"),
        pytest.param(TRIED, "scheduler", 101, False, id="an attempt is no wait"),
        pytest.param(UNRESERVED, "resource-claim-controller", 101, False, id="another took it"),
    ],
)
def test_wait_may_be_lost_if_only_this_side_gave_it_up(fact, writer, at, is_proposed) -> None:
    recorded, again = traces()
    recorded.of_pod["pod"] = [step(POD, NOMINATED, at=90)]
    again.of_pod["pod"] = [step(POD, fact, at=at, writer=writer)]
    scheduler = Process([Instant(each * SECOND) for each in (98, 99, 100, 104)])
    root = Sides(aspect=Aspect.CONDITIONS, uid="pod", recorded=[], again=["said"])
    proposed = Proposals(recorded, scheduler=scheduler).local(root, again)
    lost = [each.target for each in proposed if each.field == "lost"]
    span = Succession(pod="pod", since=Instant(100 * SECOND), until=Instant(104 * SECOND))
    assert lost == [{span}] * is_proposed


@pytest.mark.parametrize(
    ("marked", "owner", "is_held", "is_proposed"),
    [
        pytest.param(101, "pod", False, True, id="while no scheduler wrote"),
        pytest.param(99, "pod", False, False, id="before the scheduler paused"),
        pytest.param(89, "pod", False, False, id="before the choice"),
        pytest.param(None, "pod", False, False, id="never"),
        pytest.param(101, "other", False, False, id="a claim of another pod"),
        pytest.param(101, "pod", True, False, id="the same process holds the Lease"),
    ],
)
def test_wait_may_be_lost_when_its_claim_was_marked_for_deletion(
    marked, owner, is_held, is_proposed
) -> None:
    """The next scheduler does not try such a pod, and here the wait goes on to its end."""
    recorded, again = traces()
    recorded.of_pod["pod"] = [step(POD, NOMINATED, at=90)]
    recorded.owner_of["claim"] = owner
    if marked is not None:
        recorded.marked["claim"] = Instant(marked * SECOND)
    again.of_pod["pod"] = [step(POD, GIVEN_UP, at=690, writer="scheduler")]
    instants = [Instant(each * SECOND) for each in (85, 90, 98, 99, 100, 104, 689, 690, 691)]
    scheduler = Process(instants, lambda *_: is_held)
    root = Sides(aspect=Aspect.CONDITIONS, uid="pod", recorded=[], again=["said"])
    proposed = Proposals(recorded, scheduler=scheduler).local(root, again)
    lost = [each.target for each in proposed if each.field == "lost"]
    span = Succession(pod="pod", since=Instant(100 * SECOND), until=Instant(104 * SECOND))
    assert lost == [{span}] * is_proposed


@pytest.mark.parametrize(
    ("written", "is_held", "recorded", "again", "is_proposed"),
    [
        pytest.param((90, 99), False, ["n"], [], True, id="as soon as the next one began"),
        pytest.param((90, 97, 98.8, 99.9), False, ["n"], [], False, id="seconds after it began"),
        pytest.param((98.5, 100), False, ["n"], [], False, id="no pause"),
        pytest.param((90, 99), True, ["n"], [], False, id="the same process holds the Lease"),
        pytest.param((90, 99), False, ["n"], ["m"], False, id="placed on both sides"),
        pytest.param((90, 99), False, [], ["n"], False, id="placed here alone"),
    ],
)
def test_pod_may_be_placed_by_a_scheduler_that_has_just_begun(
    written, is_held, recorded, again, is_proposed
) -> None:
    """No change has woken it here: a new process tries all that waits."""
    theirs, ours = traces()
    theirs.writes["pod"] = [step(POD, NOMINATED, at=100)]
    instants = [Instant(int(at * SECOND)) for at in (*written, 100)]
    waits, process = Waits((), instants), Process(instants, lambda *_: is_held)
    proposals = Proposals(theirs, waits=waits, scheduler=process)
    root = Sides(aspect=Aspect.NODES, uid="pod", recorded=recorded, again=again)
    proposed = [each.target for each in proposals.local(root, ours) if each.field == "tried"]
    assert proposed == ["pod"] * is_proposed


STARTED = facts.FieldChanged("status", "null", "conditions")


@pytest.mark.parametrize(
    ("key", "at", "writer", "field"),
    [
        (RULE, 102, "device-taint-eviction-controller", "unsynced"),
        (POD, 120, "pod-garbage-collector", "uncollected"),
    ],
)
@pytest.mark.parametrize(
    ("gone", "written", "is_held", "led", "is_proposed"),
    [
        pytest.param(118, (), False, (), True, id="nothing was written meanwhile"),
        pytest.param(118, (117,), False, (), True, id="the next one had just begun"),
        pytest.param(118, (115,), False, (), False, id="the manager was there"),
        pytest.param(118, (), True, (), False, id="the same process holds the Lease"),
        pytest.param(118, (), False, (103, 110), False, id="one renewed its Lease"),
        pytest.param(118, (), False, (90, 101), True, id="the old one had it until then"),
        pytest.param(161, (), False, (), False, id="for longer than any process is away"),
        pytest.param(None, (), False, (), False, id="never removed"),
    ],
)
def test_object_may_be_gone_before_the_next_process_looks_at_it(
    key, at, writer, field, gone, written, is_held, led, is_proposed
) -> None:
    """It could be looked at from the hundredth second on."""
    recorded, again = traces()
    if gone is not None:
        recorded.removed[UIDS[key]] = Instant(gone * SECOND)
    instants = [Instant(each * SECOND) for each in (95, *written, 200)]

    def is_led(begin: Instant, end: Instant) -> bool:
        first, last = (each * SECOND for each in led or (0, -1))
        return begin <= end and first <= end and begin <= last

    manager = Process(instants, lambda *_: is_held, is_led)
    ours = (step(key, STARTED, at=at, writer=writer),)
    sides = Sides(aspect=Aspect.WRITES, uid=UIDS[key], recorded=[], again=["a"], only_again=ours)
    made = Proposals(recorded, manager=manager).local(sides, again)
    names = ("unsynced", "uncollected")
    assert [each.change for each in made if each.field in names] == [(field, key)] * is_proposed


def test_object_that_ends_while_its_controller_rests_shortly_is_no_reason() -> None:
    """No process of the manager is replaced within ten seconds."""
    recorded, again = traces()
    recorded.removed["rule"] = Instant(104 * SECOND)
    manager = Process([Instant(each * SECOND) for each in (98, 108)])
    sides = Sides(
        aspect=Aspect.WRITES,
        uid="rule",
        recorded=[],
        again=["a"],
        only_again=(step(RULE, STARTED, at=102),),
    )
    made = Proposals(recorded, manager=manager).local(sides, again)
    assert not any(each.field == "unsynced" for each in made)


@pytest.mark.parametrize(
    ("key", "gone", "skew", "is_proposed"),
    [
        pytest.param(POD, 101, 2, True, id="dated within the difference of clocks"),
        pytest.param(POD, 103, 2, False, id="dated later"),
        pytest.param(POD, 99, 2, False, id="dated before"),
        pytest.param(POD, 101, 0, False, id="with one clock"),
        pytest.param(CLAIM, 101, 2, False, id="no pod"),
    ],
)
def test_pod_may_have_been_removed_before_a_clock_that_is_ahead_says(
    key, gone, skew, is_proposed
) -> None:
    recorded, again = traces()
    recorded.skew = skew * SECOND
    recorded.keys["gone"], recorded.removed["gone"] = key, Instant(gone * SECOND)
    asked = step(CLAIM, facts.DeletionAsked(0), at=100)
    sides = Sides(
        aspect=Aspect.WRITES, uid="claim", recorded=["a"], again=[], only_recorded=(asked,)
    )
    soon = [e for e in Proposals(recorded).local(sides, again) if e.field == "removed_soon"]
    assert [each.target for each in soon] == [{"gone"}] * is_proposed


REMAINING = facts.ConditionSet("NamespaceContentRemaining", "True", "SomeResourcesRemain", "c")


@pytest.mark.parametrize(
    ("claim", "asked", "answered", "is_proposed"),
    [
        pytest.param(CLAIM, 99, 101, True, id="asked before the look, answered after it"),
        pytest.param(CLAIM, 101, 102, False, id="asked after it"),
        pytest.param(CLAIM, 98, 99, False, id="answered before it"),
        pytest.param(CLAIM, 99, None, False, id="never removed"),
        pytest.param(CLAIM._replace(namespace="b"), 99, 101, False, id="of another namespace"),
        pytest.param(POD, 99, 101, False, id="no claim"),
    ],
)
def test_claims_may_be_gone_before_the_status_of_their_namespace_if_they_were_asked_to_be(
    claim: ObjectKey, asked: int, answered: int | None, is_proposed: bool
) -> None:
    recorded, again = traces()
    recorded.keys["gone"] = claim
    if answered is not None:
        recorded.removable["gone"] = Instant(asked * SECOND)
        recorded.removed["gone"] = Instant(answered * SECOND)
    sides = Sides(
        aspect=Aspect.CONDITIONS,
        uid="namespace",
        recorded=[],
        again=["remaining"],
        only_again=(step(NAMESPACE, REMAINING),),
    )
    proposed = list(Proposals(recorded).local(sides, again))
    assert [each.change for each in proposed] == (
        [("removed_first", frozenset({claim}))] if is_proposed else []
    )
    for each in proposed:
        assert each.on(Variant()).removed_first == {claim}


@pytest.mark.parametrize(
    ("key", "within", "is_proposed"),
    [
        pytest.param(NODE, (90, 120), True, id="a node that may have been there"),
        pytest.param(SLICE, (90, 120), True, id="a slice"),
        pytest.param(NODE, (111, 120), False, id="gone after the attempt"),
        pytest.param(NODE, (90, 109), False, id="gone before it"),
        pytest.param(CLAIM, (90, 120), False, id="no hardware"),
    ],
)
def test_hardware_may_have_been_removed_just_before_the_next_write(
    key: ObjectKey, within: tuple[int, int], is_proposed: bool
) -> None:
    recorded, again = traces()
    recorded.keys["gone"] = key
    first, last = (Instant(each * SECOND) for each in within)
    recorded.removed_within = {"gone": (first, last)}
    sides = Sides(
        aspect=Aspect.CONDITIONS,
        uid="pod",
        recorded=[],
        again=["refused"],
        only_again=(step(POD, TRIED, at=110),),
    )
    proposed = Proposals(recorded).local(sides, again)
    last_removed = [each for each in proposed if each.field == "removed_last"]
    assert bool(last_removed) is is_proposed
    for each in last_removed:
        assert each.on(Variant()).removed_last == {"gone"}


NAMED = facts.ClaimsNamed((("c", "c-2"),))


@pytest.mark.parametrize(
    ("ours", "theirs", "by_others", "is_gone", "is_proposed"),
    [
        pytest.param(NAMED, (), True, True, True, id="named anew here alone"),
        pytest.param(NAMED, (), False, True, False, id="removed by a controller"),
        pytest.param(NAMED, (), True, False, False, id="never removed"),
        pytest.param(NAMED, (step(POD, NAMED),), True, True, False, id="named there, too"),
        pytest.param(NOMINATED, (), True, True, False, id="nothing of its claims"),
    ],
)
def test_claim_of_a_pod_may_have_been_removed_just_before_the_next_write(
    ours: facts.Fact,
    theirs: tuple[Step, ...],
    by_others: bool,
    is_gone: bool,
    is_proposed: bool,
) -> None:
    recorded, again = traces()
    if is_gone:
        recorded.removed["claim"] = GONE
    if by_others:
        recorded.other_writers.add("claim")
    sides = Sides(
        aspect=Aspect.WRITES,
        uid="pod",
        recorded=[each.text for each in theirs],
        again=["named"],
        only_recorded=theirs,
        only_again=(step(POD, ours),),
    )
    proposed = list(Proposals(recorded).local(sides, again))
    last = [each for each in proposed if each.field == "removed_last"]
    assert bool(last) is is_proposed
    for each in last:
        assert each.on(Variant()).removed_last == {"claim"}


@pytest.mark.parametrize(
    ("theirs", "ours", "is_gone", "is_proposed"),
    [
        pytest.param(None, NAMED, True, True, id="claims only here"),
        pytest.param(None, NAMED, False, False, id="the pod stays"),
        pytest.param(NAMED, NAMED, True, False, id="claims on both sides"),
        pytest.param(None, TRIED, True, False, id="no claims"),
    ],
)
def test_pod_that_nobody_synced_was_not_placed_for_that(
    theirs: facts.Fact | None,
    ours: facts.Fact,
    is_gone: bool,
    is_proposed: bool,
) -> None:
    recorded, again = traces(removed=is_gone)
    if theirs is not None:
        recorded.of_pod["pod"].append(step(POD, theirs))
    again.of_pod["pod"] += [step(POD, ours), step(POD, NOMINATED)]
    placed = step(POD, NOMINATED)
    sides = Sides(aspect=Aspect.NODES, uid="pod", recorded=[], again=["n"], only_again=(placed,))
    proposed = Proposals(recorded).local(sides, again)
    changes = [each.change for each in proposed if each.field == "unsynced"]
    assert changes == ([("unsynced", POD)] if is_proposed else [])


@pytest.mark.parametrize(
    ("acts", "is_excused"),
    [([], True), ([59], True), ([65], True), ([64, 65], False), ([97], False), ([99], True)],
)
def test_pod_was_looked_at_before_it_was_gone_if_requests_came_between(acts, is_excused) -> None:
    """The pod could be looked at from the sixtieth second on, and was gone in the hundredth.

    A single request may have waited for a slow limit; another one just before it shows the limit.
    """
    recorded, again = traces(removed=True)
    recorded.writes["claim"] = [
        step(CLAIM, facts.Created(), at=at, writer=short_name(CLAIMS)) for at in acts
    ]
    ours = (step(POD, REFUSED_CLAIM, at=60),)
    sides = Sides(aspect=Aspect.SAID, uid="pod", recorded=[], again=["said"], only_again=ours)
    proposed = Proposals(recorded).local(sides, again)
    assert any(each.field == "unsynced" for each in proposed) is is_excused
