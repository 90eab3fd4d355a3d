"""Numbers that clients write as text: values of annotations, and percentages of a whole."""

DIGITS_MAX = 18
"""The most digits of a number; every such number fits into 64 bits."""


def integer(text: str) -> int | None:
    """The number of a text of ASCII digits after an optional minus sign; None for any other text.

    More digits than `DIGITS_MAX` are no number: Python refuses to convert thousands of them.
    """
    digits = text.removeprefix("-")
    is_number = digits.isascii() and digits.isdecimal() and len(digits) <= DIGITS_MAX
    return int(text) if is_number else None


def natural(text: str) -> int | None:
    """The number of a text of ASCII digits; None for any other text."""
    return None if text.startswith("-") else integer(text)


def percentage(value: object) -> int | None:
    """The number of a text such as `25%`; None for any other value."""
    if not isinstance(value, str) or not value.endswith("%"):
        return None
    return natural(value.removesuffix("%"))


def share(value: object, whole: int, *, rounds_up: bool = True) -> int:
    """A count that is a number or a percentage of a whole (IntOrString); 0 for any other value."""
    percent = percentage(value)
    if percent is not None:
        hundredths = percent * whole
        return -(-hundredths // 100) if rounds_up else hundredths // 100
    return value if isinstance(value, int) and not isinstance(value, bool) else 0
