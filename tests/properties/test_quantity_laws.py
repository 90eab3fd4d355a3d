"""Laws of quantities over generated spellings."""

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from app.domain.values import quantity

DECIMAL = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E", "e3", "E-2", "e0"]
BINARY = ["Ki", "Mi", "Gi", "Ti", "Pi"]
number = st.from_regex(r"[+-]?[0-9]{1,12}(\.[0-9]{0,6})?", fullmatch=True)
spelling = st.builds(str.__add__, number, st.sampled_from(DECIMAL + BINARY))


def exact(value: quantity.Quantity) -> Fraction:
    return Fraction(value.nanos, 10**9)


@given(spelling)
def test_text_of_a_quantity_parses_to_the_same_number(text: str) -> None:
    found = quantity.parse(text)
    if abs(exact(found)) >= 10**18:
        return  # a suffix beyond E is lost by upstream, and so here
    assert quantity.compare(quantity.parse(str(found)), found) == 0


@given(spelling)
def test_canonical_text_is_a_fixed_point(text: str) -> None:
    found = quantity.parse(text)
    if abs(exact(found)) >= 10**18:
        return
    canonical = str(quantity.add(found, quantity.ZERO))
    again = quantity.parse(canonical)
    assert str(quantity.add(again, quantity.ZERO)) == canonical


@given(spelling, spelling)
def test_arithmetic_is_exact(left_text: str, right_text: str) -> None:
    left, right = quantity.parse(left_text), quantity.parse(right_text)
    assert exact(quantity.add(left, right)) == exact(left) + exact(right)
    assert exact(quantity.subtract(left, right)) == exact(left) - exact(right)


@given(spelling, spelling)
def test_comparison_agrees_with_the_difference(left_text: str, right_text: str) -> None:
    left, right = quantity.parse(left_text), quantity.parse(right_text)
    difference = exact(left) - exact(right)
    assert quantity.compare(left, right) == (difference > 0) - (difference < 0)


@given(spelling)
def test_compact_mantissa_and_exponent_make_the_number(text: str) -> None:
    found = quantity.parse(text)
    assert Fraction(found.mantissa) * Fraction(10) ** found.exponent == exact(found)
