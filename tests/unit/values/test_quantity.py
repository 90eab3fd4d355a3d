"""Quantities: parsing, printing, arithmetic and the oddities that decide allocations."""

import pytest

from app.domain.values import quantity
from app.domain.values.quantity import QuantityError, QuantityFormat
from tests.together import together

PRINTED = [
    ("1000", "1k"),
    ("1500", "1500"),
    ("1.5", "1500m"),
    ("0.5", "500m"),
    ("1000m", "1"),
    ("100m", "100m"),
    ("2000k", "2M"),
    ("1e4", "10e3"),
    ("1.500", "1.500"),
    ("1.5Gi", "1536Mi"),
    ("0.5Gi", "512Mi"),
    ("0.1Ki", "102400m"),
    ("1.1Ki", "1126400m"),
    ("1024Ki", "1Mi"),
    ("512", "512"),
    ("1024", "1024"),
    ("0.1n", "1n"),
    ("16Ei", "9223372036854775807"),
    ("-16Ei", "-9223372036854775807"),
    ("+5", "+5"),
    ("01", "01"),
    ("1.", "1."),
    ("1E6", "1E6"),
    ("3Ki", "3Ki"),
    ("0", "0"),
    ("0Ki", "0"),
    ("+", "0"),
    (".", "0"),
    ("-.m", "0"),
    ("Ki", "0"),
    ("e3", "0"),
    ("1000E", "1"),
    ("1E", "1E"),
    ("1e100", "10e99"),
    ("1e-5000", "1e-9"),
    ("-0.1n", "-1n"),
    ("100Ti", "100Ti"),
    ("42949672960", "42949672960"),
]


@together(PRINTED, lambda row: row[0])
def test_quantity_prints_as_upstream(row: tuple[str, str]) -> None:
    written, printed = row
    assert str(quantity.parse(written)) == printed


@pytest.mark.parametrize("text", ["", "1..2", "1 ", "abc", "1Ki ", "1e1.5", "٣"])
def test_malformed_text_has_the_format_error(text: str) -> None:
    with pytest.raises(QuantityError, match="quantities must match"):
        quantity.parse(text)


@pytest.mark.parametrize("text", ["1K", "1ki", "1mi", "1e", "5-", "--1", "5+3", "1Ki5", "1ee5"])
def test_unknown_suffix_has_the_suffix_error(text: str) -> None:
    with pytest.raises(QuantityError, match="suffix"):
        quantity.parse(text)


@pytest.mark.parametrize("text", ["Pi", "Ei", ".Ei", ".e-12", "1e100000", "9" * 5000])
def test_unreadable_number_has_the_numeric_error(text: str) -> None:
    with pytest.raises(QuantityError, match="numeric part"):
        quantity.parse(text)


def test_integers_are_a_matter_of_representation() -> None:
    integers = ["50k", "99Ti", "10Gi", "0", "1000"]
    others = ["1000m", "1.0", "100Ti", "1Pi", "1.5Gi", "100E"]
    assert [quantity.is_integer(quantity.parse(text)) for text in integers] == [True] * 5
    assert [quantity.is_integer(quantity.parse(text)) for text in others] == [False] * 6


def test_numbers_compare_across_formats() -> None:
    assert quantity.compare(quantity.parse("200M"), quantity.parse("0.2G")) == 0
    assert quantity.compare(quantity.parse("1Ki"), quantity.parse("1024")) == 0
    assert quantity.compare(quantity.parse("1G"), quantity.parse("1Gi")) == -1


def test_sum_has_the_left_format_and_zero_takes_the_right_one() -> None:
    one, zero = quantity.parse("1Ki"), quantity.parse("0")
    assert str(quantity.add(one, quantity.parse("1000"))) == "2024"
    assert str(quantity.add(zero, quantity.parse("2048Ki"))) == "2Mi"
    assert str(quantity.subtract(zero, quantity.parse("2Ki"))) == "-2Ki"
    assert quantity.add(one, zero).text is None


def test_sum_is_compact_until_the_mantissa_overflows() -> None:
    big = quantity.from_integer(2**63 - 1)
    assert quantity.add(quantity.parse("1"), quantity.parse("1")).compact
    assert not quantity.add(big, quantity.parse("1")).compact
    assert not quantity.add(quantity.parse("1"), quantity.parse("1.5Gi")).compact


@pytest.mark.parametrize(
    ("text", "units"), [("1.5", 2), ("-1.5", -2), ("1.5Gi", 1610612736), ("0.1", 1), ("100E", 0)]
)
def test_whole_units_round_away_from_zero_in_compact_form(text: str, units: int) -> None:
    assert quantity.round_up(quantity.parse(text)) == units


def test_whole_units_of_a_negative_decimal_form_round_towards_zero_plus_one() -> None:
    assert quantity.round_up(quantity.to_decimal(quantity.parse("-1.5"))) == 0


def test_whole_units_beyond_64_bits_wrap_in_decimal_form() -> None:
    assert quantity.round_up(quantity.to_decimal(quantity.parse("10E"))) == 10**19 - 2**64


def test_only_compact_quantities_of_one_spelling_are_identical() -> None:
    assert quantity.identical(quantity.parse("3Ki"), quantity.parse("3Ki"))
    assert not quantity.identical(quantity.parse("1Gi"), quantity.parse("1024Mi"))
    half = quantity.parse("1.5Gi")
    assert not quantity.identical(half, half)


def test_json_allows_numbers_null_and_white_space() -> None:
    assert str(quantity.from_json(" 1500 ")) == "1500"
    assert str(quantity.from_json(2000)) == "2k"
    assert str(quantity.from_json(1.5)) == "1500m"
    assert quantity.from_json(None) == quantity.ZERO
    with pytest.raises(QuantityError):
        quantity.from_json(True)


def test_binary_fraction_below_one_becomes_decimal() -> None:
    assert quantity.parse("0.0001Ki").format is QuantityFormat.DECIMAL_SI
