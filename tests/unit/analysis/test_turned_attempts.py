"""Which other pod is named whose attempt came before on one side and after on the other one."""

import pytest

from app.analysis.diff import orders
from app.analysis.diff.courses import Course, Moment, Placement, Refusal
from app.analysis.diff.matching import Pair
from app.domain.log import ObjectKey, Revision
from app.domain.values.timestamps import Instant

TIME, WITHIN = 100, 5
"""The instant at which the pod parts, and how far from it attempts count."""


def moment(time: int) -> Moment:
    return Moment(time=Instant(time), revision=Revision(time))


def course(
    name: str, decided: int | None, node: str = "n", at: int = TIME, refused: int | None = None
) -> Course:
    """A pod that was placed as of a revision, if at all, and refused as of another one before."""
    made = Course(
        key=ObjectKey("", "pods", "ns", name), uid=name, ordinal=0, owner=None, base=name,
        created=moment(1),
    )  # fmt: skip
    if decided is not None:
        made.placed = Placement(at=moment(at), decided=Revision(decided), node=node)
    if refused is not None:
        refusal = Refusal(at=moment(at), decided=Revision(refused), message="none")
        made.refusals.append(refusal)
    return made


def pair(name: str, a: Course | None, b: Course | None, number: int = 0) -> Pair:
    return Pair(number=number, a=a, b=b)


OWN = pair("p", course("p", 10), course("p", 20))
FIRST = "pod ns/p was tried before pod ns/q in A, and after it in B"


@pytest.mark.parametrize(
    ("a", "b", "sentence"),
    [
        (course("q", 11), course("q", 19), FIRST),
        (course("q", 11), course("q", 21), ""),
        (course("q", 9), course("q", 19), ""),
        (course("q", 9), course("q", 21),
         "pod ns/p was tried before pod ns/q in B, and after it in A"),
        # Attempts as of one revision have no order.
        (course("q", 10), course("q", 19), ""),
        (course("q", 11), course("q", 20), ""),
        # They meet on no node.
        (course("q", 11, "far"), course("q", 19, "far"), ""),
        (course("q", 11, "far"), course("q", 19), FIRST),
        # The border of what counts as about the same time.
        (course("q", 11, at=TIME + WITHIN), course("q", 19, at=TIME - WITHIN), FIRST),
        (course("q", 11, at=TIME + WITHIN + 1), course("q", 19), ""),
        (course("q", 11), course("q", 19, at=TIME - WITHIN - 1), ""),
        # A refusal is an attempt, too, and the first one counts.
        (course("q", None, refused=11), course("q", 19), FIRST),
        (course("q", 9, refused=11), course("q", 19), FIRST),
        (course("q", None), course("q", 19), ""),
        (None, course("q", 19), ""),
        (course("q", 11), None, ""),
    ],
)  # fmt: skip
def test_pod_whose_attempt_changed_places_is_named(
    a: Course | None, b: Course | None, sentence: str
) -> None:
    assert orders.turned(OWN, [OWN, pair("q", a, b, 1)], TIME, WITHIN) == sentence


def test_pod_that_is_on_one_side_only_changed_no_places() -> None:
    other = pair("q", course("q", 11), course("q", 19), 1)
    for own in (pair("p", None, OWN.b), pair("p", OWN.a, None)):
        assert orders.turned(own, [other], TIME, WITHIN) == ""


def test_first_of_several_pods_is_named() -> None:
    others = [
        pair(name, course(name, a), course(name, b), number)
        for number, (name, a, b) in enumerate((("r", 11, 21), ("s", 11, 19), ("t", 11, 19)), 1)
    ]
    text = "pod ns/p was tried before pod ns/s in A, and after it in B"
    assert orders.turned(OWN, [OWN, *others], TIME, WITHIN) == text
