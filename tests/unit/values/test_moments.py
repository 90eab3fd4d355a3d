"""Moments as people write them."""

import pytest

from app.domain.values import moments, timestamps
from app.domain.values.timestamps import TimestampError

END = timestamps.parse("2026-03-10T12:00:00.5Z")


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("2026-03-09T01:02:03Z", "2026-03-09T01:02:03.000000Z"),
        ("2026-03-09T01:02:03+01:00", "2026-03-09T00:02:03.000000Z"),
        ("2026-03-09 01:02:03.25", "2026-03-09T01:02:03.250000Z"),
        ("2026-03-09T01:02", "2026-03-09T01:02:00.000000Z"),
        ("2026-03-09", "2026-03-09T00:00:00.000000Z"),
        ("11:59:59.123456Z", "2026-03-10T11:59:59.123456Z"),
        ("12:00:00.500001", "2026-03-09T12:00:00.500001Z"),
        ("13:00", "2026-03-09T13:00:00.000000Z"),
        ("10m", "2026-03-10T11:50:00.500000Z"),
        ("-45s", "2026-03-10T11:59:15.500000Z"),
        ("1d2h3m4s", "2026-03-09T09:56:56.500000Z"),
    ],
)
def test_moment_means_an_instant(text: str, meaning: str) -> None:
    assert timestamps.micro_text(moments.parse(text, END)) == meaning


@pytest.mark.parametrize("text", ["", "-", "10", "m", "25:00", "2026-02-30", "yesterday", "1m1h"])
def test_what_is_no_moment_is_refused(text: str) -> None:
    with pytest.raises(TimestampError):
        moments.parse(text, END)


@pytest.mark.parametrize("text", ["10m", "03:04:05"])
def test_moment_that_counts_from_the_end_needs_one(text: str) -> None:
    with pytest.raises(TimestampError):
        moments.parse(text)


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("10m", "10m before the last event at 2026-03-10T12:00:00.500000Z is "
                "2026-03-10T11:50:00.500000Z"),
        ("-45s", "45s before the last event at 2026-03-10T12:00:00.500000Z is "
                 "2026-03-10T11:59:15.500000Z"),
        ("13:00", "13:00 is 2026-03-09T13:00:00Z, the last such time up to the last event at "
                  "2026-03-10T12:00:00.500000Z"),
        ("42", ""), ("", ""), ("-", ""), ("2026-03-09T01:02:03Z", ""), ("yesterday", ""),
    ],
)  # fmt: skip
def test_moment_that_counts_from_the_end_is_said_as_an_instant(text: str, meaning: str) -> None:
    assert moments.meaning(text, moments.HistoryEnd(instant=END)) == meaning


def test_moment_of_a_live_history_counts_from_now() -> None:
    end = moments.HistoryEnd(instant=END, is_now=True)
    assert moments.meaning("10m", end) == (
        "10m before now, 2026-03-10T12:00:00.500000Z, is 2026-03-10T11:50:00.500000Z"
    )
    assert moments.meaning("13:00", end) == (
        "13:00 is 2026-03-09T13:00:00Z, the last such time up to now, 2026-03-10T12:00:00.500000Z"
    )
