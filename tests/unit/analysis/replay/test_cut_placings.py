"""Placements that no scheduler finished: another one took over, or the recording ended.

Instants are seconds. Another scheduler takes over at 50, and the recording ends at 100.
"""

from dataclasses import replace
from types import MappingProxyType
from typing import Any

import pytest

from app.analysis.replay import tolerances
from app.analysis.replay.attempts import Placing, PodCourse, Try, divided, leave_under_way
from app.analysis.replay.pace import RecordedPace
from app.domain.controllers.pacing import AttemptOutcome
from app.domain.values.timestamps import SECOND, Instant

OVER, END = 50, 100
DEVICES = ("r: p/a", "r: p/b")
INSTANTS = ("began", "claims_at", "bind_at", "earliest", "cut_at", "free_at", "seen_from")


def placing(began: float, **parts: Any) -> Placing:
    """A placement on node `n`; its instants are given in seconds."""
    given = {"node": "n", "written": 7, **parts, "began": began}
    given = {
        name: Instant(int(value * SECOND)) if name in INSTANTS and value is not None else value
        for name, value in given.items()
    }
    return Placing(**{"devices": list(DEVICES), **given})


EARLY = placing(1, claims_at=2, bind_at=3, seen_from=1)
LATE = placing(70, claims_at=71, bind_at=72, seen_from=70)
REST: MappingProxyType[str, Any] = MappingProxyType({"earliest": OVER, "written": 0})
"""What was written after the take-over is of a placement with a first write of its own."""


@pytest.mark.parametrize(
    ("placings", "expected"),
    [
        pytest.param([], [], id="none"),
        pytest.param([LATE], [LATE], id="all by the second scheduler"),
        pytest.param([EARLY], [EARLY], id="bound before"),
        pytest.param([EARLY, LATE], [EARLY, LATE], id="one by each"),
        pytest.param(
            [placing(10, claims_at=20, bind_at=60, seen_from=10)],
            [
                placing(10, claims_at=20, cut_at=OVER, seen_from=10),
                placing(60, bind_at=60, devices=[], **REST),
            ],
            id="the second one only binds the pod",
        ),
        pytest.param(
            [placing(10, claims_at=20, bind_at=OVER)],
            [
                placing(10, claims_at=20, cut_at=OVER),
                placing(OVER, bind_at=OVER, devices=[], **REST),
            ],
            id="its first write is the binding",
        ),
        pytest.param(
            [placing(10, claims_at=55, bind_at=60)],
            [
                placing(10, devices=[], cut_at=OVER),
                placing(55, claims_at=55, bind_at=60, **REST),
            ],
            id="the second one writes the claims, too",
        ),
        pytest.param(
            [placing(10, claims_at=OVER, bind_at=None)],
            [placing(10, devices=[], cut_at=OVER), placing(OVER, claims_at=OVER, **REST)],
            id="the second one writes the claims alone",
        ),
        pytest.param(
            [placing(10, bind_at=60)],
            [placing(10, devices=[], cut_at=OVER), placing(60, bind_at=60, **REST)],
            id="no claims are recorded",
        ),
        pytest.param(
            [placing(10, claims_at=20)],
            [placing(10, claims_at=20, cut_at=OVER)],
            id="nobody binds the pod",
        ),
        pytest.param([placing(10)], [placing(10, devices=[], cut_at=OVER)], id="only begun"),
        pytest.param([placing(OVER)], [placing(OVER)], id="begun by the second one"),
        pytest.param(
            [EARLY, placing(10, claims_at=20), LATE],
            [EARLY, placing(10, claims_at=20, cut_at=OVER), LATE],
            id="only the last before the take-over is cut off",
        ),
        pytest.param(
            [placing(10, claims_at=20, bind_at=60), LATE],
            [
                placing(10, claims_at=20, cut_at=OVER),
                placing(60, bind_at=60, devices=[], **REST),
                LATE,
            ],
            id="the rest comes before those that follow",
        ),
    ],
)
def test_placement_is_divided_where_another_scheduler_took_over(
    placings: list[Placing], expected: list[Placing]
) -> None:
    before = [replace(each) for each in placings]
    assert divided(placings, Instant(OVER * SECOND)) == expected
    assert placings == before


def tried(placed: Placing | None = None, first: float = 0, last: float = 0, **how: Any) -> Try:
    """A recorded attempt, of which a failed one has the message `none`."""
    outcome = AttemptOutcome(message="none")
    if placed is not None:
        outcome = AttemptOutcome(node=placed.node, devices=tuple(placed.devices))
    first, last = Instant(int(first * SECOND)), Instant(int(last * SECOND))
    return Try(instant=first, first=first, last=last, tried=outcome, placing=placed, **how)


LEAST = tolerances.TABLE.sure_after / SECOND
DONE = placing(1, claims_at=1 + 10 * LEAST, bind_at=1 + 14 * LEAST)
"""Its claims took ten times as long as is sure, its binding four times."""


@pytest.mark.parametrize(
    ("last", "others", "is_under_way"),
    [
        (placing(END - 10 * LEAST), [DONE], True),
        (placing(END - 10 * LEAST - 0.001), [DONE], False),
        (placing(END - LEAST), [], True),
        (placing(END - LEAST - 0.001), [], False),
        (placing(20, claims_at=END - 4 * LEAST), [DONE], True),
        (placing(20, claims_at=END - 4 * LEAST - 0.001), [DONE], False),
        (placing(20, claims_at=END - LEAST), [], True),
        (placing(END - 2 * LEAST, claims_at=END - LEAST), [placing(3)], True),
        # a placement without claims took all of its time to the binding
        (placing(20, claims_at=END - 8 * LEAST), [placing(1, bind_at=1 + 8 * LEAST)], True),
        (placing(END - 2 * LEAST), [placing(1, bind_at=1 + 8 * LEAST)], False),
        (placing(END - LEAST, claims_at=END - LEAST, bind_at=END), [DONE], False),
    ],
)
def test_placement_is_under_way_at_the_end_as_long_as_others_took(
    last: Placing, others: list[Placing], is_under_way: bool
) -> None:
    attempts = [[tried(each)] for each in others]
    leave_under_way([*attempts, [], [tried()], [tried(), tried(last)]], Instant(END * SECOND))
    assert (last.cut_at == END * SECOND) is is_under_way
    assert is_under_way or last.cut_at is None


def test_only_the_last_attempt_of_a_pod_is_under_way_and_no_deleted_one() -> None:
    replaced, gone = placing(END), placing(END, cut_at=END - 1)
    leave_under_way([[tried(replaced), tried()], [tried(gone)]], Instant(END * SECOND))
    assert replaced.cut_at is None
    assert gone.cut_at == (END - 1) * SECOND


ONE, BOTH, OTHER = DEVICES[:1], DEVICES, ("r: p/z",)


@pytest.mark.parametrize(
    ("placed", "node", "devices", "is_same"),
    [
        # the pod was deleted before all was written: more may have been chosen
        (placing(10, devices=list(ONE), cut_at=OVER), "n", BOTH, True),
        (placing(10, devices=list(ONE), cut_at=OVER), "n", ONE, True),
        (placing(10, devices=list(BOTH), cut_at=OVER), "n", ONE, False),
        (placing(10, devices=list(ONE), cut_at=OVER), "m", BOTH, False),
        (placing(10, devices=list(ONE)), "n", BOTH, False),
        (placing(10, devices=list(BOTH)), "n", BOTH, True),
        # the recording has no node
        (placing(10, devices=list(ONE), node=""), "m", ONE, True),
        (placing(10, devices=list(ONE), node=""), "", ONE, False),
        (placing(10, devices=list(ONE), node=""), "m", OTHER, False),
        (placing(10, devices=list(ONE), node="", cut_at=OVER), "m", BOTH, False),
    ],
)
def test_attempt_came_to_the_same_as_far_as_its_placement_is_recorded(
    placed: Placing, node: str, devices: tuple[str, ...], is_same: bool
) -> None:
    ours = AttemptOutcome(node=node, devices=devices)
    assert tried(placed).came_to(ours) is is_same


TRY = tolerances.TABLE.unseen_try / SECOND
FAILED, REPORTED = tried(), tried(is_reported=True)


def second(first: float) -> Try:
    return tried(first=first, last=first)


@pytest.mark.parametrize(
    ("tries", "number", "since", "until"),
    [
        ([FAILED], 1, None, 20 + TRY),
        ([FAILED], 1, 15, 15 + TRY),
        ([FAILED], 1, 20 - TRY, None),
        ([FAILED], 1, 19 - TRY, None),
        ([tried(EARLY), FAILED], 1, None, None),
        ([FAILED, tried(EARLY)], 1, None, 20 + TRY),
        # the second attempt of a pod has a report, and there was none by then
        ([REPORTED, second(21 + TRY)], 0, None, None),
        ([REPORTED, second(20 + TRY)], 0, None, 20 + TRY),
        ([FAILED, second(21 + TRY)], 0, None, 20 + TRY),
        ([REPORTED, REPORTED, second(21 + TRY)], 1, None, 20 + TRY),
        ([REPORTED], 0, None, 20 + TRY),
    ],
)
def test_placement_without_a_record_waits_for_the_next_attempt_of_its_pod(
    tries: list[Try], number: int, since: float | None, until: float | None
) -> None:
    """It is 20; the placement was possible first at `since`."""
    given = None if since is None else Instant(int(since * SECOND))
    course = PodCourse(tries, number=number, left_since=given)
    expected = None if until is None else until * SECOND
    assert course.leave(Instant(20 * SECOND)) == expected
    is_placed_there = any(each.placing for each in tries[:number])
    assert course.left_since == (None if is_placed_there else given or 20 * SECOND)


@pytest.mark.parametrize(
    ("tries", "began"),
    [
        ([], None),
        ([FAILED], None),
        ([tried(EARLY, first=4)], 4),
        ([tried(first=2), tried(EARLY, first=4), tried(LATE, first=3)], 3),
    ],
)
def test_pod_was_placed_no_earlier_than_its_first_successful_attempt(
    tries: list[Try], began: float | None
) -> None:
    pace = RecordedPace()
    assert pace.began_before("pod") is None
    pace._pods["pod"] = PodCourse(tries)
    assert pace.began_before("pod") == (None if began is None else began * SECOND)
