"""Audit logs without fractions of seconds. Parity: history-formats.md 4.4."""

import pytest

from app.domain.log.records import Loss, TimeQuality
from tests.unit.history.worlds import CLAIMS, audit, audit_records, tree


def made(rv, time):
    claim = tree(CLAIMS, f"c{rv}", rv=rv)
    return audit("create", claim, requestReceivedTimestamp=time, stageTimestamp=time)


CUT, ZERO, BETWEEN = (f"2026-01-01T00:00:0{text}Z" for text in ("7", "8.000000", "8.000250"))


@pytest.mark.parametrize(
    ("times", "derived"),
    [
        ((CUT, CUT), [True, True]),
        ((ZERO, ZERO), [False, False]),
        ((CUT, ZERO), [True, False]),
        ((CUT, BETWEEN), [False, False]),
    ],
)
def test_time_whose_fraction_was_cut_is_known_to_the_second(tmp_path, times, derived):
    """Servers write the zeros of a fraction. A log with another fraction has not lost any."""
    records = audit_records(tmp_path, *(made(rv, time) for rv, time in enumerate(times, 5)))
    assert [record.time_quality is TimeQuality.DERIVED for record in records] == derived
    assert [record.asked_at is None for record in records] == derived
    assert [Loss.COARSE_TIME in record.losses for record in records] == derived
