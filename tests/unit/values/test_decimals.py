"""Integers that clients write as text."""

import pytest

from app.domain.values import decimals

LARGEST = "9" * decimals.DIGITS_MAX


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0", 0),
        ("007", 7),
        ("-5", -5),
        (LARGEST, 10**18 - 1),
        (f"-{LARGEST}", 1 - 10**18),
        (f"{LARGEST}9", None),
        ("9" * 5_000, None),
        ("--5", None),
        ("-", None),
        ("+5", None),
        ("5 ", None),
        ("1_000", None),
        ("²", None),
        ("٣", None),
        ("", None),
    ],
)
def test_only_ascii_digits_that_fit_into_64_bits_are_a_number(text, number):
    assert decimals.integer(text) == number
    assert decimals.natural(text) == (None if text.startswith("-") else number)


@pytest.mark.parametrize(
    ("value", "number"),
    [("25%", 25), ("0%", 0), ("%", None), ("-5%", None), ("25", None), (25, None), (None, None)],
)
def test_percentages_are_numbers_before_a_sign(value, number):
    assert decimals.percentage(value) == number
    assert decimals.percentage("9" * 5_000 + "%") is None
