"""What columns over time stand on: lines at amounts, and clocks below."""

from markupsafe import Markup

from app.web import svg

LEFT = 64.0
"""Room for amounts at the left."""

BELOW = 18.0
"""Room for clocks below."""

CLOCK_WIDTH = 60.0
"""A clock takes so much room, or a little less."""

TICKS_MAX = 6


def level(amount: str, y: float, width: float) -> Markup:
    """A line at an amount, with the amount; the table beside the picture tells it as well."""
    line = svg.element("line", x1=LEFT, x2=width, y1=y, y2=y, class_="axis")
    number = svg.element(
        "text", amount, x=LEFT - 6, y=max(y, 10.0), text_anchor="end", class_="soft"
    )
    return svg.element("g", line, number, aria_hidden="true")


def clock(time: str, x: float, width: float, height: float) -> Markup:
    """The hour of an instant in RFC 3339 below a column; the last one ends where columns end."""
    is_last = x > width - CLOCK_WIDTH
    return svg.element(
        "text", time[11:19], x=width if is_last else x, y=height + 14, class_="soft",
        text_anchor="end" if is_last else "start",
    )  # fmt: skip


def clocks_at(count: int) -> range:
    """The columns of so many that have a clock."""
    return range(0, count, -(-count // TICKS_MAX) or 1)
