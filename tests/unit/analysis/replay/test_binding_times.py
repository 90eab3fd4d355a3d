"""When the claims of a pod that is placed now are written, and when it is bound.

Recorded instants are in microseconds after the beginning of the attempt. What the recording lacks
follows from the tolerances: claims come `C` after the attempt, the binding `B`.
"""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from app.analysis.replay import tolerances
from app.analysis.replay.acts import Act
from app.analysis.replay.attempts import Placing, PodCourse, Try
from app.analysis.replay.pace import RecordedPace
from app.domain.controllers.garbage import namespaces
from app.domain.controllers.pacing import AttemptOutcome
from app.domain.log import Actor, Event, EventType, ObjectKey, Revision, Stamp
from app.domain.log.chain import canonical_json
from app.domain.log.event import Origin
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
    refused: int | None = None,
    is_known: bool = True,
) -> tuple[int, int, int]:
    """The instants after the beginning of the attempt, and how late the pod is from now on."""

    def instant(value: int | None) -> Instant | None:
        return None if value is None else Instant(BEGAN + value)

    placing = Placing(
        began=BEGAN,
        claims_at=instant(claims),
        bind_at=instant(bind),
        cut_at=instant(cut),
        refused_at=instant(refused),
    )
    course = SimpleNamespace(made=SimpleNamespace(placing=placing if is_known else None), late=0)
    pace = cast(Any, SimpleNamespace(_pods={"pod": course}))
    found = RecordedPace.bind_delay(pace, "pod", Instant(BEGAN + after))
    return found[0] - BEGAN, found[1] - BEGAN, course.late


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param({"claims": 70, "bind": 90}, (70, 90, 0), id="as recorded"),
        pytest.param({"refused": 40}, (40, 40, 0), id="refused before its claims are written"),
        pytest.param({"claims": 30, "refused": 40}, (30, 40, 0), id="refused after that"),
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


def result(device: str, **parts: Any) -> dict[str, Any]:
    return {"request": "r", "driver": "d", "pool": "p", "device": device, **parts}


def allocated(*results: dict[str, Any]) -> dict[str, Any]:
    return {"status": {"allocation": {"devices": {"results": list(results)}}}}


A, OTHER = result("a"), result("b")
FREE: dict[str, Any] = {"status": {}}
DELETED, UPDATED = EventType.OBJECT_DELETED, EventType.OBJECT_UPDATED


@pytest.mark.parametrize(
    ("before", "type_", "after", "freed"),
    [
        (allocated(A, OTHER), UPDATED, FREE, {"p/a", "p/b"}),
        (allocated(A), DELETED, allocated(A), {"p/a"}),
        (allocated(A), DELETED, FREE, {"p/a"}),
        (allocated(A), UPDATED, allocated(A), set()),
        (allocated(A), UPDATED, allocated(OTHER), set()),
        (FREE, UPDATED, FREE, set()),
        (FREE, DELETED, allocated(A), set()),
        (None, DELETED, allocated(A), set()),
        # others may have them at the same time
        (allocated(A, result("b", adminAccess=True)), UPDATED, FREE, {"p/a"}),
        (allocated(A, result("b", adminAccess=False)), UPDATED, FREE, {"p/a", "p/b"}),
        (allocated(result("a", consumedCapacity={}), OTHER), UPDATED, FREE, {"p/b"}),
    ],
)
@pytest.mark.parametrize("resource", ["resourceclaims", "pods"])
def test_devices_of_a_claim_are_free_when_its_release_was_requested(
    before: dict[str, Any] | None,
    type_: EventType,
    after: dict[str, Any],
    freed: set[str],
    resource: str,
) -> None:
    key = ObjectKey("resource.k8s.io", resource, "ns", "c")
    stamp = Stamp(
        time=Instant(9), actor=Actor(user="u"), verb="update", origin=Origin(source="x", asked=7)
    )
    event = Event(
        revision=Revision(1), type=type_, key=key, uid="c", body=canonical_json(after), stamp=stamp
    )
    pace = RecordedPace()
    act = Act(event=event, before=before, known=Instant(9), user="u", is_guessed=False)
    pace._learn_freed(act)
    assert pace._freed == ({name: [7] for name in freed} if resource == "resourceclaims" else {})


@pytest.mark.parametrize(
    ("written", "entered", "is_before"),
    [
        (5, {"other": 6}, True),
        (5, {"other": 5}, False),
        (5, {"other": 4}, False),
        (0, {"other": 6}, False),  # its version is not known
        (5, {}, False),
        (5, {"pod": 6}, False),
    ],
)
def test_placement_that_was_written_before_another_pod_was_there_is_older(
    written: int, entered: dict[str, int], is_before: bool
) -> None:
    pace = RecordedPace(entered=entered)
    failed = Try(instant=BEGAN, first=BEGAN, last=BEGAN, tried=AttemptOutcome(message="none"))
    tried = AttemptOutcome(node="n")
    placing = Placing(began=BEGAN, written=written)
    placed = Try(instant=BEGAN, first=BEGAN, last=BEGAN, tried=tried, placing=placing)
    assert not pace.is_decided_before("pod", "other")
    for tries, number, is_left in (
        ([placed], 0, True),
        ([failed, placed], 0, True),
        ([failed, placed], 1, True),
        ([placed, failed], 1, False),
        ([failed], 0, False),
    ):
        pace._pods["pod"] = PodCourse(tries, number=number)
        assert pace.is_decided_before("pod", "other") is (is_before and is_left)


def test_acts_about_a_namespace_are_over_when_another_one_of_its_name_begins() -> None:
    pace = RecordedPace()
    queue, key = namespaces.NAME, ("ns",)
    stamp = Stamp(time=BEGAN, actor=Actor(user="u"), verb="update")
    event = Event(
        revision=Revision(1),
        type=UPDATED,
        key=ObjectKey("", "namespaces", "", "ns"),
        uid="n",
        body=b"{}",
        stamp=stamp,
    )
    places = [(queue, key), (f"{queue}/content", ("ns", "", "pods")), (queue, ("other",))]
    places.append(("claims", ("ns", "c")))
    for place in places:
        for later in (0, 5, 9):
            at = Instant(BEGAN + later)
            act = Act(event=event, before=None, known=at, user="u", is_guessed=False)
            pace._note(place, act)
    before = Instant(BEGAN - 1)
    pace.pass_over("ns", Instant(BEGAN + 5))
    pace.pass_over("ns", Instant(BEGAN + 3))
    nexts = [pace.next_act(*place, before) for place in places]
    assert nexts == [BEGAN + 9, BEGAN + 9, BEGAN, BEGAN]
