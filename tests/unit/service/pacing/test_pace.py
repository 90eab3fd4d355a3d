"""Speeds, positions, and when what was recorded is shown."""

import pytest

from app.adapters import schemas
from app.domain.errors import InputError
from app.domain.objects import registry
from app.domain.objects.schema import structural
from app.domain.values.timestamps import SECOND, Instant
from app.service.pacing.pace import MAX, PacedPosition, parse_speed, speed_text
from app.service.pacing.shifting import TimeMap, shifted


def at(seconds: float) -> Instant:
    return Instant(int(seconds * SECOND))


@pytest.mark.parametrize(
    ("text", "speed", "written"),
    [("1x", 1, "1x"), ("10X", 10, "10x"), (" 0.5 ", 0.5, "0.5x"), ("100", 100, "100x"),
     ("max", MAX, "max"), ("step", 0, "step")],
)  # fmt: skip
def test_speed_is_read_and_written(text: str, speed: float, written: str) -> None:
    assert parse_speed(text) == speed
    assert speed_text(speed) == written


@pytest.mark.parametrize("text", ["", "x", "fast", "0", "-1x", "nan", "inf", "1e9", "1xx", "１x"])
def test_what_is_no_speed_is_refused(text: str) -> None:
    if text == "１x":  # a digit of another script is read as a number by Python
        assert parse_speed(text) == 1
        return
    with pytest.raises(InputError, match="is not a speed"):
        parse_speed(text)


@pytest.mark.parametrize(("text", "side"), [("-1", "less"), ("0", "less"), ("1e9", "more")])
def test_number_out_of_range_is_said_to_be_too_small_or_too_large(text: str, side: str) -> None:
    with pytest.raises(InputError, match=f"^--speed: '{text}' is .*: it is {side} than possible;"):
        parse_speed(text)


def test_position_moves_with_the_speed_and_not_while_paused() -> None:
    pace = PacedPosition(at(100), at(0), speed=10, is_paused=False)
    assert pace.position(at(2)) == at(120)
    pace.change(at(2), paused=True)
    assert pace.position(at(50)) == at(120)
    pace.change(at(50), speed=0.5, paused=False)
    assert pace.position(at(60)) == at(125)
    pace.move(at(7), at(60))
    assert pace.position(at(62)) == at(8)


def test_wait_is_as_long_as_it_takes_and_never_negative() -> None:
    pace = PacedPosition(at(0), at(0), speed=4, is_paused=False)
    assert pace.wait_for(at(8), at(1)) == SECOND
    assert pace.wait_for(at(2), at(1)) == 0
    assert not pace.is_due(at(4.1), at(1))
    assert pace.is_due(at(4), at(1))
    pace.change(at(1), paused=True)
    assert pace.wait_for(at(8), at(1)) is None
    assert not pace.is_due(at(0), at(1))
    pace.change(at(1), speed=MAX, paused=False)
    assert pace.wait_for(at(8_000), at(1)) == 0
    assert pace.position(at(100)) == at(4)


def test_times_keep_their_distance_before_the_beginning_and_go_at_the_pace_after() -> None:
    times = TimeMap()
    times.begin(at(100), at(1_000), 10)
    assert times.shown(at(40)) == at(940)
    assert times.shown(at(100)) == at(1_000)
    assert times.shown(at(150)) == at(1_005)


def test_turn_does_not_move_what_was_shown_before() -> None:
    times = TimeMap()
    times.begin(at(100), at(1_000), 1)
    shown = [times.shown(at(each)) for each in (100, 105, 110)]
    times.turn(at(110), at(1_010), 0)
    times.turn(at(110), at(1_500), 10)
    assert [times.shown(at(each)) for each in (100, 105, 110)] == shown
    assert times.shown(at(120)) == at(1_501)


def test_turns_beyond_those_that_are_remembered_change_nothing() -> None:
    times = TimeMap(turns_max=2)
    times.begin(at(100), at(1_000), 1)
    times.turn(at(110), at(1_010), 10)
    shown = times.shown(at(120))
    times.turn(at(115), at(2_000), 1)
    assert times.shown(at(120)) == shown == at(1_011)


def test_all_times_that_the_schema_knows_are_moved_and_nothing_else() -> None:
    times = TimeMap()
    times.begin(at(0), at(60), 1)
    node = structural.storage_node(
        schemas.load("1.37"), registry.find("coordination.k8s.io", "leases")
    )
    tree = {
        "metadata": {
            "creationTimestamp": "1970-01-01T00:00:01Z",
            "annotations": {"note": "1970-01-01T00:00:01Z"},
            "managedFields": [{"manager": "m", "time": "1970-01-01T00:00:02Z"}],
        },
        "spec": {"renewTime": "1970-01-01T00:00:03.500000Z", "holderIdentity": "1970"},
    }
    assert shifted(node, tree, times) == {
        "metadata": {
            "creationTimestamp": "1970-01-01T00:01:01Z",
            "annotations": {"note": "1970-01-01T00:00:01Z"},
            "managedFields": [{"manager": "m", "time": "1970-01-01T00:01:02Z"}],
        },
        "spec": {"renewTime": "1970-01-01T00:01:03.500000Z", "holderIdentity": "1970"},
    }
    assert tree["metadata"]["creationTimestamp"] == "1970-01-01T00:00:01Z"
