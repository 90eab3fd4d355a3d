"""The answer of a comparison in each of its forms: as JSON, as notes, for the pages, for forks."""

from typing import Any

import pytest

from app.analysis.diff import answers, causes, text
from app.analysis.diff.answers import ENTRIES_MAX, DiffForm
from app.analysis.diff.causes import Proof, Root, RootKind
from app.analysis.diff.classes import Class, Parted, PodAspect
from app.analysis.diff.courses import Moment, Placement
from app.analysis.diff.endings import AfterEnd
from app.analysis.diff.forks import LINES_MAX, ComparedFork, ForkReport
from app.analysis.diff.inputs import InputDifference, Verb, Write
from app.analysis.diff.matching import Pair
from app.analysis.diff.outcomes import EndEntry, EndReport
from app.analysis.diff.partings import Parting
from app.analysis.diff.refusals import RefusedCreation
from app.analysis.diff.rivals import Contest
from app.analysis.diff.sides import Side, switches_of
from app.analysis.replay.classes import Judgement
from app.analysis.replay.unapplied import Unapplied
from app.domain.controllers.registry import ControllerOptions
from app.domain.log import ObjectKey, Revision
from app.domain.objects.profile import Profile
from app.domain.values.timestamps import SECOND, Instant
from tests.unit.analysis.test_first_writes import events, pod
from tests.unit.analysis.test_pages_of_causes import CLASS, QUOTA, REFUSED, difference, report
from tests.unit.analysis.test_parted_courses import course, moment

RUN = Root(kind=RootKind.RUN, name="r", text="t")

NONE = dict.fromkeys(Class, 0)


def at(second: int) -> str:
    return f"1970-01-01T00:00:{second:02d}.000000Z"


def named(name: str, **more: Any) -> Side:
    return Side(name=name, profile=Profile(), options=ControllerOptions(), **more)


def after_end_of_a(subjects: str) -> AfterEnd:
    return AfterEnd(side="b", time=Instant(5 * SECOND), events=2, subjects=tuple(subjects))


ORDER = "in which order the pods are tried that waited at the moment of the fork is not known:"


def contest(name: str) -> Contest:
    """A placement that another order of attempts gives to pod z."""
    return Contest(
        history="h",
        pod=ObjectKey("", "pods", "ns", name),
        placed=Placement(
            at=Moment(Revision(7), Instant(5 * SECOND)), decided=Revision(6), node="n"
        ),
        rivals=(ObjectKey("", "pods", "ns", "z"),),
    )


def contested(name: str) -> str:
    return f"  h places ns/{name} on n at {at(5)}; tried before it, ns/z would have had that place"


def whole_pair() -> Pair:
    a = course((2, "n1"), evicted=9, ended=11, said=((1, "full"), (2, "tainted")))
    a.phase = "Failed"
    return Pair(number=1, a=a, b=course(said=((1, "full"),)))


def test_answer_as_json_has_both_courses_and_what_follows_from_what() -> None:
    a = named("left", revision=Revision(7), until=Instant(40 * SECOND), common=Revision(3))
    b = named("right", revision=Revision(8), until=Instant(50 * SECOND), shift=1_500_000)
    below = difference(
        pair=whole_pair(),
        classes=(Class.UNSCHEDULABLE, Class.LATER),
        parting=Parting(node="n", device="d", a="free", b="held"),
    )
    above = difference(RUN, below=[below], proof=Proof(settings=("x", "y"), is_minimal=False))
    below.parents = [above]
    write = Write(at=moment(1), what="created")
    answer = report(
        above,
        below,
        difference(RUN),
        a=a,
        b=b,
        same=5,
        counts={**NONE, Class.MOVED: 2, Class.UNSCHEDULABLE: 1},
        switches=("gate X: true → false",),
        changes=(
            InputDifference(key=CLASS, verb=Verb.ONLY_B, since=SECOND, a=None, b=write),
            InputDifference(key=QUOTA, verb=Verb.LATER, since=2 * SECOND, a=write, b=write),
        ),
        refused={REFUSED: RefusedCreation(by=QUOTA, side="b", text="why")},
        not_done={"z": 1, "y": 2},
        unexplained=4,
        listed_max=2,
        after_end=AfterEnd(side="b", time=Instant(9 * SECOND), events=3, subjects=("p", "q", "r")),
    )
    said = answers.of(answer, DiffForm.REPORT)
    differences = said.pop("differences")
    assert said == {
        "a": {"history": "left", "revision": 7, "time": at(40), "eventsAfter": 0},
        "b": {"history": "right", "revision": 8, "time": at(50), "eventsAfter": 0},
        "common": 3,
        "shiftSeconds": 1.5,
        "afterEnd": {
            "of": "a",
            "time": at(9),
            "events": 3,
            "subjects": ["p", "q"],
            "leftOut": 1,
        },
        "outcome": "different",
        "pods": {"same": 5, "different": 3, "classes": {"newly unschedulable": 1, "moved": 2}},
        "unexplained": 4,
        "notDone": {"y": 2, "z": 1},
        "settings": ["gate X: true → false"],
        "changes": [
            {
                "object": str(key),
                "change": verb,
                "text": f"{verb}: created" if verb == "only in B" else said_of,
                "time": at(second),
                "revisionA": revision,
                "revisionB": 2,
            }
            for key, verb, second, revision, said_of in (
                (CLASS, "only in B", 1, 0, ""),
                (QUOTA, "later in B", 2, 2, answer.changes[1].text),
            )
        ],
        "refused": [{"object": str(REFUSED), "by": str(QUOTA), "side": "b", "text": "why"}],
        "leftOut": 1,
        "texts": [],
        "orderNotKnown": [],
        "certainty": "sure",
        "doubts": (),
    }
    first, second = differences
    assert (first["causes"], first["chain"], first["consequences"]) == (["r"], ["r"], ["pods/ns/p"])
    assert first["proof"] == {"settings": ["x", "y"], "minimal": False, "smallest": True}
    assert second == {
        "subject": "pods/ns/p",
        "class": "newly unschedulable",
        "classes": ["newly unschedulable", "later"],
        "aspect": "placement",
        "time": at(2),
        "first": "a",
        "a": {
            "name": "p",
            "uid": "p",
            "outcome": "evicted",
            "text": "evicted on n with n1",
            "createdRevision": 1,
            "created": "",
            "node": "n",
            "devices": ["n1"],
            "placed": at(2),
            "placedRevision": 3,
            "decidedAt": 2,
            "refusals": 2,
            "lastRefusal": "tainted",
            "evicted": at(9),
            "evictedRevision": 10,
            "evictedFor": "r: ",
            "ended": at(11),
            "endedAs": "Failed",
        },
        "b": {
            "name": "p",
            "uid": "p",
            "outcome": "waits",
            "text": "waits: full",
            "createdRevision": 1,
            "created": "",
            "node": "",
            "devices": [],
            "placed": "",
            "placedRevision": 0,
            "decidedAt": 0,
            "refusals": 1,
            "lastRefusal": "full",
            "evicted": "",
            "evictedRevision": 0,
            "evictedFor": "",
            "ended": "",
            "endedAs": "",
        },
        "root": "r",
        "rootKind": "run",
        "causes": ["pods/ns/p"],
        "chain": ["pods/ns/p", "r"],
        "consequences": [],
        "parting": {"node": "n", "device": "d", "a": "free", "b": "held"},
    }


@pytest.mark.parametrize(
    ("same", "differences", "more", "said"),
    [
        (1, [], {}, "every decision is the same: 1 pod"),
        (2, [], {"a": named("h", common=Revision(7))},
         "every decision is the same: 2 pods from revision 7 on"),
        (3, [(Class.SAID,)], {},
         "no pod has another outcome; only texts change, of 1 of 4 pods"),
        (1, [(Class.MOVED,)], {"counts": {"moved": 1, "later": 0}},
         "1 pod is the same, 1 differs: 1 moved"),
        (0, [(Class.MOVED,), (Class.SAID,)], {"counts": {"moved": 1, "said otherwise": 1}},
         "0 pods are the same, 2 differ: 1 moved, 1 in text only"),
    ],
)  # fmt: skip
def test_counts_are_of_pods_by_their_gravest_class(
    same: int, differences: list[tuple[Class, ...]], more: dict[str, Any], said: str
) -> None:
    pods = [difference(RUN, classes=classes) for classes in differences]
    assert text.counts_text(report(*pods, same=same, **more)) == said


@pytest.mark.parametrize(
    ("more", "notes"),
    [
        ({}, []),
        ({"b": named("h", shift=1_250_000)},
         ["B happened 1.250 seconds after A: its times are shown as if they had begun as one"]),
        ({"b": named("h", shift=-119 * SECOND)},
         ["B happened 119.000 seconds before A: its times are shown as if they had begun as one"]),
        ({"b": named("h", shift=-120 * SECOND)},
         ["B happened 2m before A: its times are shown as if they had begun as one"]),
        ({"a": named("h", left_out=1, until=Instant(5 * SECOND)),
          "b": named("h", left_out=3, until=Instant(6 * SECOND))},
         [f"A has 1 more event, after {at(5)}: not compared",
          f"B has 3 more events, after {at(6)}: not compared"]),
        ({"b": named("h", left_out=3, beyond=events(("p", pod())))}, []),
        ({"not_done": {"b": 2, "a": 1}}, ["not done in B, 1: a", "not done in B, 2: b"]),
        ({"unexplained": 2}, ["no cause was found for 2 of them"]),
        ({"after_end": AfterEnd(side="a", time=Instant(5 * SECOND), events=1, subjects=())},
         [f"after the end of B, at {at(5)}, A has 1 more event: not compared"]),
        ({"after_end": after_end_of_a("pqr")},
         [f"after the end of A, at {at(5)}, B has 2 more events (p, q, r): not compared"]),
        ({"after_end": after_end_of_a("pqrst")},
         [f"after the end of A, at {at(5)}, B has 2 more events (p, q, r and 2 more): "
          "not compared"]),
        ({"contests": (contest("p"), contest("q"))}, [ORDER, *map(contested, "pq")]),
        ({"contests": tuple(map(contest, "pqrst"))},
         [ORDER, *map(contested, "pqr"), "  and 2 more placements of this kind: -o json"]),
    ],
)  # fmt: skip
def test_notes_say_what_was_not_compared(more: dict[str, Any], notes: list[str]) -> None:
    counts, *others = text.notes_of(report(same=1, **more))
    assert counts == "every decision is the same: 1 pod"
    assert others == notes


def test_page_shows_the_first_pod_that_both_sides_have() -> None:
    a, b = named("left", revision=Revision(7)), named("right", revision=Revision(8))
    alone = Pair(number=1, a=None, b=course((2, "n1")))
    only = difference(RUN, pair=alone, classes=(Class.ONLY_B,))
    other = difference(Root(kind=RootKind.RUN, name="s"), pair=whole_pair())
    page = answers.of(report(only, other, a=a, b=b), DiffForm.PAGE)
    assert (page["a"], page["b"], page["is_same"]) == ("left", "right", False)
    assert page["head"] == "A: left at revision 7; B: right at revision 8"
    assert page["notes"] == text.notes_of(report(only, other, a=a, b=b))
    assert [each["text"] for each in page["reasons"]] == ["r: t", "s: "]
    pods = [
        {"is_b": False, "namespace": "ns", "name": "p", "outcome": "evicted", "node": "n",
         "revision": 2},
        {"is_b": True, "namespace": "ns", "name": "p", "outcome": "waits", "node": "",
         "revision": 1},
    ]  # fmt: skip
    assert page["first"] == pods
    page = answers.of(report(only, a=a, b=b), DiffForm.PAGE)
    assert page["first"][0]["name"] == ""
    assert (page["first"][1]["name"], page["first"][1]["revision"]) == ("p", 2)
    assert answers.of(report(a=a, b=b), DiffForm.PAGE)["first"] == []


@pytest.mark.parametrize(
    ("aspect", "second", "revisions"),
    [
        (PodAspect.PLACEMENT, 2, [2, 3]),
        (PodAspect.EVICTION, 9, [10, 5]),
        (PodAspect.END, 11, [11, 5]),
        # Before the events of the other side: when it was placed.
        (PodAspect.EVICTION, 4, [10, 4]),
    ],
)
def test_pod_is_asked_about_at_the_moment_that_shows_the_difference(
    aspect: PodAspect, second: int, revisions: list[int]
) -> None:
    """The other side has events at the seconds 1 to 5, and nothing befalls the pod there."""
    pair = Pair(number=1, a=course((2, "n1"), evicted=9, ended=11), b=course((3, "m1")))
    one = difference(RUN, pair=pair, parted=Parted(aspect=aspect, time=second * SECOND, side="a"))
    others = events(*[("p", pod())] * 5)
    page = answers.of(report(one, b=named("right", events=others)), DiffForm.PAGE)
    assert [each["revision"] for each in page["first"]] == revisions


def test_page_of_the_ends_shows_a_bounded_number_of_differences() -> None:
    entries = tuple(EndEntry(subject=f"p{n}", a="x", b="y") for n in range(ENTRIES_MAX + 3))
    page = answers.of(
        EndReport(
            a=named("left", revision=Revision(7)),
            b=named("right"),
            what="outcomes",
            same=4,
            entries=entries,
            listed_max=9,
            after_end=AfterEnd(side="a", time=Instant(5 * SECOND), events=1, subjects=()),
        ),
        DiffForm.PAGE,
    )
    assert page == {
        "is_same": False,
        "a": "left",
        "b": "right",
        "head": "A: left at revision 7; B: right at revision 0",
        "notes": [
            f"4 are the same, {ENTRIES_MAX + 3} differ",
            f"after the end of B, at {at(5)}, A has 1 more event: not compared",
        ],
        "reasons": [],
        "first": [],
        "entries": [{"subject": f"p{n}", "a": "x", "b": "y"} for n in range(ENTRIES_MAX)],
        "omitted": 3,
    }


def left_out(number: int, author: str = "") -> Unapplied:
    return Unapplied(
        revision=Revision(number),
        time=Instant(5 * SECOND),
        key=REFUSED,
        change="ObjectCreated",
        author=author,
        why="there is none",
    )


def test_fork_says_what_of_its_inputs_applied_and_how_it_differs() -> None:
    compared = answers.of(report(same=3, counts=NONE), DiffForm.FORK)
    assert compared["counts"] == "every decision is the same: 3 pods"
    assert (compared["is_same"], compared["report"]["outcome"]) == (True, "same")
    assert (compared["notes"], compared["report"]["orderNotKnown"]) == ([], [])
    unsure = answers.of(report(contests=(contest("p"),), counts=NONE), DiffForm.FORK)
    assert unsure["notes"] == [ORDER, contested("p")]
    assert unsure["report"]["orderNotKnown"] == [
        {
            "history": "h",
            "pod": "pods/ns/p",
            "node": "n",
            "time": at(5),
            "revision": 7,
            "rivals": ["pods/ns/z"],
        }
    ]
    diff = ComparedFork(is_same=False, counts="one differs", report={"x": 1}, notes=["a doubt"])
    made = ForkReport(
        source="prod",
        fork="what-if",
        inputs=9,
        unapplied=[left_out(4, "alice"), left_out(5)],
        unlike=[CLASS],
        switches=["quirk c1: off", "gate X: on"],
        diff=diff,
    )
    assert made.to_json() == {
        "inputs": 9,
        "inputsLeftOut": [left_out(4, "alice").to_json(), left_out(5).to_json()],
        "unlikeWithoutChange": [str(CLASS)],
        "recordedWith": ["quirk c1: off", "gate X: on"],
        "diff": {"x": 1},
        "notCompared": "",
    }
    unlike = (
        "these are decided differently from the recording even without a change, so they show "
        "nothing about the change:"
    )
    assert list(made.lines()) == [
        "the recording shows these switches, and the fork has them: quirk c1: off, gate X: on",
        "9 recorded inputs were used, 2 of them do not apply there:",
        f"  revision 4, {at(5)}, {REFUSED} by alice: there is none",
        f"  revision 5, {at(5)}, {REFUSED}: there is none",
        unlike,
        f"  {CLASS}",
        "compared with prod: one differs",
        "a doubt",
        "`redra diff prod what-if` shows why",
    ]
    many = ForkReport(
        source="prod",
        fork="what-if",
        inputs=99,
        unapplied=[left_out(number) for number in range(LINES_MAX + 2)],
        unlike=[CLASS] * (LINES_MAX + 3),
        problem="it is too long",
    )
    assert (many.to_json()["diff"], many.to_json()["notCompared"]) == (None, "it is too long")
    said = list(many.lines())
    assert len(said) == 2 * LINES_MAX + 5
    assert said[LINES_MAX + 1] == "  and 2 more: -o json"
    assert said[-2:] == ["  and 3 more: -o json", "not compared with prod: it is too long"]
    same = ForkReport(
        source="prod",
        fork="what-if",
        inputs=1,
        unapplied=[],
        unlike=[],
        diff=ComparedFork(is_same=True, counts="all the same", report={}),
    )
    assert list(same.lines()) == [
        "1 recorded input was used, 0 of them do not apply there",
        "compared with prod: all the same",
    ]


UNKNOWN = Root(kind=RootKind.UNKNOWN, name="unknown", text="no cause", since=4)
SETTINGS = Root(kind=RootKind.SETTINGS, name="settings", text="gate X", since=5)
CHANGE = Root(kind=RootKind.CHANGE, name="nodes/n", text="only in B")


@pytest.mark.parametrize(
    ("reason", "roots"),
    [
        (
            "race",
            [
                CHANGE,
                Root(kind=RootKind.RUN, name="race", text="why"),
                Root(kind=RootKind.RUN, name="race", text="why"),
            ],
        ),
        (
            "switch --gate X",
            [
                CHANGE,
                Root(kind=RootKind.RUN, name="switch --gate X", text="why"),
                Root(kind=RootKind.SETTINGS, name="settings", text="switch --gate X: why", since=5),
            ],
        ),
        ("unexplained", [CHANGE, UNKNOWN, SETTINGS]),
    ],
)
@pytest.mark.parametrize("side", ["a", "b", "both"])
def test_runs_explain_what_no_change_does(reason: str, roots: list[Root], side: str) -> None:
    pair = Pair(number=1, a=None if side == "b" else course(), b=None if side == "a" else course())
    one = difference(CHANGE, UNKNOWN, SETTINGS, pair=pair)
    judgement = Judgement(reason=reason, detail="why")
    causes.judge([one], {"another": judgement})
    assert one.roots == [CHANGE, UNKNOWN, SETTINGS]
    causes.judge([one], {"p": judgement})
    assert one.roots == roots
    assert causes.unexplained([one, difference(UNKNOWN), difference(CHANGE)]) == 1


@pytest.mark.parametrize(
    ("proof", "made_by", "roots"),
    [
        (Proof(settings=("x", "y")), {},
         [CHANGE, Root(kind=RootKind.SETTINGS, name="x; y", text="x and y, together")]),
        (Proof(settings=("x",)), {"nodes/n": frozenset({"x"})},
         [CHANGE, Root(kind=RootKind.SETTINGS, name="x", text="x")]),
        (Proof(settings=("x",)), {"nodes/n": frozenset({"z"})},
         [Root(kind=RootKind.SETTINGS, name="x", text="x")]),
        (Proof(settings=("x",), is_minimal=False), {"nodes/n": frozenset({"z"})},
         [CHANGE, Root(kind=RootKind.SETTINGS, name="x", text="some of: x")]),
        (Proof(settings=()), {"nodes/n": frozenset({"z"})},
         [CHANGE, Root(kind=RootKind.UNKNOWN, name="unknown", text=Proof(settings=()).text)]),
    ],
)  # fmt: skip
def test_proved_settings_take_the_place_of_general_ones(
    proof: Proof, made_by: dict[str, frozenset[str]], roots: list[Root]
) -> None:
    one = difference(CHANGE, SETTINGS)
    causes.prove(one, proof, made_by)
    assert (one.roots, one.proof) == (roots, proof)


def test_moment_of_an_ended_pod_is_before_its_end() -> None:
    """The event of its end may be its deletion."""
    ended = course((2, "n1"))
    ended.ended = Moment(Revision(30), Instant(20 * SECOND))
    pair = Pair(number=1, a=ended, b=course((2, "n1"), ended=12))
    parted = Parted(aspect=PodAspect.END, time=12 * SECOND, side="b")
    page = answers.of(report(difference(RUN, pair=pair, parted=parted)), DiffForm.PAGE)
    assert [each["revision"] for each in page["first"]] == [29, 12]


def test_key_of_a_witness_is_that_of_its_pod() -> None:
    witness = answers.Witness(is_b=True, namespace="ns", name="q")
    assert witness.key == ObjectKey("", "pods", "ns", "q")


def test_texts_that_only_one_side_has_are_changes_from_nothing() -> None:
    """Pods that say the same of another object are one change with two examples."""
    a = course(said=((1, "no node has 2 gpus"), (2, "same")))
    b = course(said=((1, "no node has 3 gpus"), (2, "same"), (3, "one more")))
    said = [
        difference(RUN, pair=Pair(number=number, a=a, b=b), classes=(Class.SAID,))
        for number in (1, 2)
    ]
    moved = difference(Root(kind=RootKind.RUN, name="s"))
    texts = report(*said, moved, counts=NONE).to_json()["texts"]
    assert [(each["root"], each["before"], each["after"], each["count"]) for each in texts] == [
        ("r", "2", "3", 2),
        ("r", "", "one more", 2),
    ]
    turned = difference(RUN, pair=Pair(number=1, a=b, b=a), classes=(Class.SAID,))
    assert [
        (each["before"], each["after"], each["whole"])
        for each in report(turned, counts=NONE).to_json()["texts"]
    ] == [("3", "2", "no node has 2 gpus"), ("one more", "", "one more")]
    again = course(said=((1, "same"), (2, "no node has 2 gpus")))
    order = difference(RUN, pair=Pair(number=1, a=a, b=again), classes=(Class.SAID,))
    (only,) = report(order, counts=NONE).to_json()["texts"]
    assert (only["before"], only["after"], only["count"]) == ("", "", 1)


def test_settings_in_effect_are_named_as_on_the_command_line() -> None:
    options = ControllerOptions()
    shown = switches_of(Side(name="h", profile=Profile(), options=options))
    assert shown["profile"] == "1.37"
    kinds = {name.partition(" ")[0] for name in shown if name != "profile"}
    assert kinds == {"quirk", "rule", "gate"}
    for name, value in shown.items():
        if name.startswith("gate "):
            assert value == str(Profile().enabled(name.removeprefix("gate "))).lower()
        elif name != "profile":
            assert value in ("on", "off"), name
    rules = {name.removeprefix("rule ") for name in shown if name.startswith("rule ")}
    for version in ("1.34", "1.37"):
        profile = Profile(version=version)
        older = switches_of(Side(name="h", profile=profile, options=options))
        followed = {name for name in rules if profile.follows(name)}
        assert {name for name in rules if older[f"rule {name}"] == "on"} == followed
        assert (len(followed) == len(rules)) is (version == "1.37")


def test_change_that_refuses_an_object_and_is_a_root_is_not_named_twice() -> None:
    write = Write(at=moment(1), what="created")
    changes = tuple(
        InputDifference(key=key, verb=Verb.ONLY_B, since=SECOND, a=None, b=write)
        for key in (CLASS, QUOTA)
    )
    refused = {
        REFUSED: RefusedCreation(by=QUOTA, side="b", text="why"),
        CLASS: RefusedCreation(by=QUOTA, side="b", text="why"),
    }
    alone = report(changes=changes, refused=refused)
    assert [each.key for each in alone.refusing()] == [QUOTA]
    assert alone.idle() == []
    root = Root(kind=RootKind.CHANGE, name=str(QUOTA), text="only in B")
    named = report(difference(root), changes=changes, refused=refused)
    assert named.refusing() == []
    words = report(difference(root, classes=(Class.SAID,)), changes=changes, refused=refused)
    assert words.refusing() == []
    other = report(difference(CHANGE), changes=changes)
    assert [each.key for each in other.idle()] == [CLASS, QUOTA]
    assert other.refusing() == []
