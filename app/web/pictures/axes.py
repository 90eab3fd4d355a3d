"""The axes of columns over time: lines at amounts, and times of day below."""

from collections.abc import Sequence

from markupsafe import Markup

from app.web import svg

LEFT = 84.0
"""The width of the amounts at the left, and of the day below them."""

BELOW = 18.0
"""The height of the times below."""

CLOCK_WIDTH = 60.0
"""The width of a time, rounded up."""

TICKS_MAX = 6


def day(time: str, height: float) -> Markup:
    """The day of the first column, and that the times of day are UTC, at the left below."""
    return svg.element(
        "text", f"{time[5:10]} UTC", x=LEFT - 6, y=height + 14, text_anchor="end", class_="soft"
    )


def level(amount: str, y: float, width: float) -> Markup:
    """A line at an amount, with its label.

    Screen readers skip it, because the table has the amount too.
    """
    line = svg.element("line", x1=LEFT, x2=width, y1=y, y2=y, class_="axis")
    number = svg.element(
        "text", amount, x=LEFT - 6, y=max(y, 10.0), text_anchor="end", class_="soft"
    )
    return svg.element("g", line, number, aria_hidden="true")


def clock(time: str, x: float, width: float, height: float) -> Markup:
    """The time of day of an instant in RFC 3339, below a column; the last one is right-aligned."""
    is_last = x > width - CLOCK_WIDTH
    return svg.element(
        "text", _clock(time), x=width if is_last else x, y=height + 14, class_="soft",
        text_anchor="end" if is_last else "start",
    )  # fmt: skip


def clocks_at(times: Sequence[str]) -> list[int]:
    """The indexes of the columns that have a time below: no two of them show the same one."""
    spread = range(0, len(times), -(-len(times) // TICKS_MAX) or 1)
    first = {_clock(times[index]): index for index in reversed(spread)}
    return sorted(first.values())


def _clock(time: str) -> str:
    return time[11:19]
