"""The page of a comparison: each root cause by its kind, with what follows and what it refuses."""

import pytest

from app.analysis.diff import text
from app.analysis.diff.causes import PodDifference, Proof, Root, RootKind
from app.analysis.diff.classes import Class, Parted, PodAspect
from app.analysis.diff.inputs import InputDifference, Verb, Write
from app.analysis.diff.matching import Pair
from app.analysis.diff.outcomes import EndEntry, EndReport
from app.analysis.diff.partings import Parting
from app.analysis.diff.refusals import RefusedCreation
from app.analysis.diff.report import DiffReport
from app.analysis.diff.sides import Side
from app.analysis.explain.reasons import Reason
from app.domain.controllers.registry import ControllerOptions
from app.domain.log import ObjectKey
from app.domain.objects.profile import Profile
from app.domain.values.timestamps import SECOND
from tests.unit.analysis.test_parted_courses import course, moment

QUOTA = ObjectKey("", "resourcequotas", "ns", "quota")
CLASS = ObjectKey("resource.k8s.io", "deviceclasses", "", "gpu")
REFUSED = ObjectKey("", "pods", "ns", "q")


def difference(*roots: Root, **parts: object) -> PodDifference:
    given: dict = {
        "pair": Pair(number=1, a=course((2, "n1")), b=course((3, "m1"))),
        "classes": (Class.MOVED,),
        "parted": Parted(aspect=PodAspect.PLACEMENT, time=2 * SECOND, side="a"),
        "roots": list(roots),
    }
    return PodDifference(**given | parts)


def report(*differences: PodDifference, **parts: object) -> DiffReport:
    side = Side(name="h", profile=Profile(), options=ControllerOptions())
    given: dict = {
        "a": side,
        "b": side,
        "same": 0,
        "counts": {},
        "switches": (),
        "changes": (),
        "differences": differences,
        "unexplained": 0,
        "listed_max": 9,
    }
    return DiffReport(**given | parts)


def lines(reasons: list[Reason] | tuple[Reason, ...], depth: int = 0) -> list[str]:
    return [
        line
        for reason in reasons
        for line in ("  " * depth + reason.text, *lines(reason.children, depth + 1))
    ]


AT = "1970-01-01T00:00:02.000000Z"
POD = [
    f"  pod ns/p: moved, from {AT} on",
    f"    A: runs on n with n1, bound at {AT}",
    "    B: runs on m with m1, bound at 1970-01-01T00:00:03.000000Z",
]


@pytest.mark.parametrize(
    ("root", "said"),
    [
        (
            Root(kind=RootKind.CHANGE, name=str(CLASS), text="only in B: created"),
            f"{CLASS} only in B: created",
        ),
        (
            Root(kind=RootKind.END, name="pods/ns/r", text="ended earlier"),
            "pods/ns/r: ended earlier",
        ),
        (
            Root(kind=RootKind.RUN, name="the run", text="chose otherwise"),
            "the run: chose otherwise",
        ),
        (Root(kind=RootKind.UNKNOWN, name="", text="no cause was found"), "no cause was found"),
        (
            Root(kind=RootKind.SETTINGS, name="settings", text="gate X: true → false"),
            "settings: gate X: true → false",
        ),
    ],
)
def test_root_is_named_as_its_kind_is(root: Root, said: str) -> None:
    assert lines(text.reasons_of(report(difference(root)))) == [said, *POD]


def test_consequence_stands_below_its_cause_with_what_the_sides_answer() -> None:
    root = Root(kind=RootKind.RUN, name="r", text="t")
    parting = Parting(node="n", device="d1", a="free", b="held by x")
    below = difference(parting=parting)
    above = difference(root, below=[below])
    below.parents = [above]
    where = "they part at d1: in A free; in B held by x"
    assert lines(text.reasons_of(report(above, below))) == [
        "r: t",
        *POD,
        *(f"  {line}" for line in POD),
        f"      {where}",
    ]
    below.parting = Parting(node="n", device="d1", a="free", b="free")
    assert where not in str(lines(text.reasons_of(report(above, below))))


def test_proof_of_all_below_a_root_is_said_once() -> None:
    root = Root(kind=RootKind.RUN, name="r", text="t")
    proof = Proof(settings=("gate X: true → false",))
    differences = [difference(root, proof=proof), difference(root, proof=proof)]
    listed = lines(text.reasons_of(report(*differences)))
    assert [line.strip() for line in listed].count(f"by {proof.text}") == 1
    other = difference(root, proof=Proof(settings=("gate Y: true → false",)))
    listed = [line.strip() for line in lines(text.reasons_of(report(*differences, other)))]
    assert [line for line in listed if line.startswith("by ")] == [
        f"by {each.proof.text}" for each in (*differences, other) if each.proof is not None
    ]


def test_change_without_differences_says_what_it_refuses_or_that_nothing_follows() -> None:
    write = Write(at=moment(1), what="created")
    changed = [
        InputDifference(key=key, verb=Verb.ONLY_B, since=SECOND, a=None, b=write)
        for key in (CLASS, QUOTA)
    ]
    why = 'pods "q" is forbidden: exceeded quota: quota'
    refused = {REFUSED: RefusedCreation(by=QUOTA, side="b", text=why)}
    page = report(changes=tuple(changed), refused=refused, switches=("gate X: true → false",))
    assert lines(text.reasons_of(page)) == [
        "settings, without a consequence: gate X: true → false",
        f"{QUOTA} only in B: created",
        f"  B refuses {REFUSED}: exceeded quota: quota",
        f"{CLASS} only in B: created: nothing follows",
    ]


def test_differences_at_the_end_are_listed_and_counted() -> None:
    side = Side(name="h", profile=Profile(), options=ControllerOptions())
    entries = tuple(EndEntry(subject=f"pods/ns/p{n}", a="runs", b="waits") for n in range(3))
    page = EndReport(a=side, b=side, what="outcomes", same=4, entries=entries, listed_max=2)
    body = page.to_json()
    assert (body["outcome"], body["by"]) == ("different", "outcomes")
    assert (body["same"], body["different"], body["leftOut"]) == (4, 3, 1)
    assert body["differences"] == [
        {"subject": f"pods/ns/p{n}", "a": "runs", "b": "waits"} for n in range(2)
    ]
    shown = text.end_page(page)
    assert shown[1] == "4 are the same, 3 differ"
    assert shown[2:5] == ["pods/ns/p0", "  A: runs", "  B: waits"]
    same = EndReport(a=side, b=side, what="outcomes", same=7, entries=(), listed_max=2)
    assert (same.to_json()["outcome"], text.page_json(same)["outcome"]) == ("same", "same")
