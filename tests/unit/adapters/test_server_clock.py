"""How far the clock of a server is, judged by dates of which the truth is known."""

import random
from email.utils import formatdate

import pytest

from app.adapters.cluster.requests import ServerClock
from app.domain.values.timestamps import SECOND, Instant

BEGIN = 1_790_000_000 * SECOND


def note(clock: ServerClock, sent: int, trip: int, offset: int, *, way: int, age: int) -> None:
    """An answer that was made `way` after it was asked for, with a date that is `age` old."""
    seconds = (sent + way + offset - age) // SECOND
    clock.note(formatdate(seconds, usegmt=True), Instant(sent), Instant(sent + trip))


@pytest.mark.parametrize("trip_max", [0, SECOND // 10, 20 * SECOND])
def test_offset_is_within_what_is_stated_however_long_the_way(trip_max: int) -> None:
    rng = random.Random(trip_max)
    stated = 0
    for _ in range(300):
        clock, now = ServerClock(), BEGIN + rng.randrange(SECOND)
        offset = rng.choice((-1, 1)) * rng.randrange(25 * SECOND, 4_000 * SECOND)
        for _ in range(rng.randint(1, 8)):
            trip = rng.randint(0, trip_max)
            note(clock, now, trip, offset, way=rng.randint(0, trip), age=rng.randrange(SECOND))
            assert abs(clock.offset - offset) <= clock.spread
            stated += clock.spread < 2 * SECOND + trip_max
            now += rng.randrange(3 * SECOND)
    assert stated


def test_date_of_a_busy_server_is_corrected_by_the_next_answer() -> None:
    clock, offset = ServerClock(), 3_600 * SECOND
    note(clock, BEGIN, 1_000, offset, way=500, age=4 * SECOND)
    assert abs(clock.offset - offset) > clock.spread
    note(clock, BEGIN + 5 * SECOND, 1_000, offset, way=500, age=0)
    assert abs(clock.offset - offset) <= clock.spread


def test_date_that_comes_late_changes_nothing() -> None:
    clock, offset = ServerClock(), 3_600 * SECOND
    note(clock, BEGIN, 1_000, offset, way=500, age=0)
    before = clock.offset, clock.spread
    note(clock, BEGIN + 5 * SECOND, 1_000, offset, way=500, age=4 * SECOND)
    assert (clock.offset, clock.spread) == before
