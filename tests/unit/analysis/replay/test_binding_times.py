"""When the claims of a pod that is placed now are written, and when it is bound.

Recorded instants are in microseconds after the beginning of the attempt. What the recording lacks
follows from the tolerances: claims come `C` after the attempt, the binding `B`.
"""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from app.analysis.replay import tolerances
from app.analysis.replay.attempts import Placing
from app.analysis.replay.pace import RecordedPace
from app.domain.values.timestamps import Instant

BEGAN = Instant(1_000_000_000)
TABLE = tolerances.TABLE
BETWEEN = TABLE.writes_between
C, B, SURE = TABLE.claims_after, TABLE.bind_after, TABLE.sure_after
FAR = 10 * (B + SURE)


def times(
    *,
    after: int = 0,
    claims: int | None = None,
    bind: int | None = None,
    cut: int | None = None,
    is_known: bool = True,
) -> tuple[int, int, int]:
    """The instants after the beginning of the attempt, and how late the pod is from now on."""

    def instant(value: int | None) -> Instant | None:
        return None if value is None else Instant(BEGAN + value)

    placing = SimpleNamespace(
        began=BEGAN, claims_at=instant(claims), bind_at=instant(bind), cut_at=instant(cut)
    )
    course = SimpleNamespace(made=SimpleNamespace(placing=placing if is_known else None), late=0)
    pace = cast(Any, SimpleNamespace(_pods={"pod": course}))
    found = RecordedPace.bind_delay(pace, "pod", Instant(BEGAN + after))
    return found[0] - BEGAN, found[1] - BEGAN, course.late


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param({"claims": 70, "bind": 90}, (70, 90, 0), id="as recorded"),
        pytest.param(
            {"claims": FAR, "bind": FAR + 9, "after": SURE}, (FAR, FAR + 9, 0), id="hardly late"
        ),
        pytest.param(
            {"claims": FAR, "bind": FAR + 9, "after": SURE + 5},
            (FAR + 5, FAR + 14, 5),
            id="late, so all of it",
        ),
        pytest.param({"claims": -9, "bind": FAR, "after": -5}, (-5, FAR, 0), id="never before now"),
        pytest.param({"claims": -9, "bind": -7, "after": -5}, (-5, -5, 0), id="neither of them"),
        pytest.param({"bind": FAR}, (C, FAR, 0), id="no claims are recorded"),
        pytest.param({"bind": C - 1}, (C - 1, C - 1, 0), id="they came before the binding"),
        pytest.param({"claims": 70}, (70, 70 + B - C, 0), id="no binding is recorded"),
        pytest.param({}, (C, B, 0), id="neither is recorded"),
        pytest.param({"cut": FAR}, (FAR + 1, FAR + 1 + B - C, 0), id="not before the pod went"),
        pytest.param(
            {"claims": 70, "cut": FAR}, (70, FAR + 1, 0), id="the binding was not before it"
        ),
        pytest.param({"cut": 0}, (C, B, 0), id="it went at once"),
        pytest.param({"is_known": False, "after": 8}, (8 + C, 8 + B, 0), id="another placement"),
    ],
)
def test_placement_is_written_when_it_was_recorded_or_as_soon_as_usual(
    given: dict[str, Any], expected: tuple[int, int, int]
) -> None:
    assert times(**given) == expected


def test_pod_that_the_recording_lacks_is_bound_as_soon_as_usual() -> None:
    pace = cast(Any, SimpleNamespace(_pods={}))
    assert RecordedPace.bind_delay(pace, "pod", BEGAN) == (BEGAN + C, BEGAN + B)


@pytest.mark.parametrize(
    ("began", "number"),
    [(0, 0), (1, 0), (BETWEEN, 0), (BETWEEN + 1, 1), (BETWEEN + 2, 2), (99, 30 - BETWEEN)],
)
def test_attempt_between_writes_began_no_earlier_than_a_few_of_them_before(
    began: int, number: int
) -> None:
    """Where only the order of writes is known. They are noted in any order."""
    writes = [Instant(BEGAN + each) for each in range(30)]
    placing = Placing(began=Instant(BEGAN + began))
    tries = SimpleNamespace(placings=[placing])
    pace = cast(Any, SimpleNamespace(_writes=writes[::-1], _tries={"pod": tries}))
    RecordedPace._note_order(pace)
    assert placing.earliest == writes[number]


@pytest.mark.parametrize(
    ("freed", "claims", "free_at"),
    [
        ({}, 50, None),
        ({"p/a": [40]}, 50, 40),
        ({"p/a": [60]}, 50, None),
        ({"p/a": [50]}, 50, 50),
        ({"p/a": [60, 20, 40]}, 50, 40),
        ({"p/a": [20], "p/b": [45]}, 50, 45),
        ({"p/a": [45], "p/b": [20]}, 50, 45),
        ({"p/z": [40]}, 50, None),
        ({"p/a": [5, 40]}, None, 5),  # the attempt began at 10, and no claims are recorded
    ],
)
def test_placement_is_later_than_the_last_end_of_others_on_its_devices(
    freed: dict[str, list[int]], claims: int | None, free_at: int | None
) -> None:
    placing = Placing(
        began=Instant(10),
        devices=["r: p/a", "r: p/b"],
        claims_at=None if claims is None else Instant(claims),
    )
    known = {name: [Instant(each) for each in instants] for name, instants in freed.items()}
    tries = {"pod": SimpleNamespace(placings=[placing])}
    RecordedPace._note_freed(cast(Any, SimpleNamespace(_freed=known, _tries=tries)))
    assert placing.free_at == (free_at or 0)
