"""The page of a pod's scheduling attempts: a row per attempt, with the delay after it."""

from itertools import zip_longest

from markupsafe import Markup

from app.analysis.attempts import AttemptList
from app.domain.log import ObjectKey
from app.domain.values import durations, timestamps
from app.web import svg
from app.web.frame import Frame, render

WIDTH, HEIGHT = 220.0, 14.0


def page(frame: Frame, answer: AttemptList, key: ObjectKey) -> bytes:
    """The page."""
    begin = timestamps.parse(answer.created)
    instants = [timestamps.parse(text) for one in answer.items for text in (one.time, one.again)
                if text]  # fmt: skip
    length = max(1, max([*instants, frame.time], default=begin) - begin)
    rows = []
    for one, follower in zip_longest(answer.items, answer.items[1:]):
        start, end = ((timestamps.parse(text) - begin) / length for text in (one.time, one.ended))
        until = (timestamps.parse(one.again) - begin) / length if one.again else end
        rows.append(
            {
                "attempt": one,
                "clock": one.time[:23].replace("T", " "),
                "after": durations.text((timestamps.parse(one.time) - begin) / timestamps.SECOND),
                "is_fine": one.has_node,
                "held": durations.text((until - end) * length / timestamps.SECOND)
                if one.again
                else "",
                "is_early": bool(one.again) and follower is not None and follower.time < one.again,
                "bar": bar(start, end, until, is_fine=one.has_node),
            }
        )
    return render("attempts.html", frame=frame, answer=answer, key=key, rows=rows)


def bar(start: float, ended: float, until: float, *, is_fine: bool) -> Markup:
    """The bar of an attempt: its time between creation and the end, and the delay after it."""
    x, end = max(0.0, start) * WIDTH, min(1.0, max(ended, until)) * WIDTH
    begin = min(end, max(x, ended * WIDTH))
    middle = HEIGHT / 2
    sign = (
        svg.element("circle", cx=min(WIDTH - 4, x + 4), cy=middle, r=4, class_="device")
        if is_fine
        else svg.element(
            "polygon", points=f"{x:.1f},1 {x + 8:.1f},1 {x + 4:.1f},{HEIGHT - 1:.1f}",
            class_="trouble",
        )
    )  # fmt: skip
    held = svg.element(
        "rect", x=begin, y=middle - 2, width=end - begin, height=4, class_="pod fades"
    )
    line = svg.element("line", x1=0, x2=WIDTH, y1=middle, y2=middle, class_="axis")
    return svg.element(
        "svg", line, held, sign, viewBox=f"0 0 {WIDTH:.0f} {HEIGHT:.0f}", class_="track",
        aria_hidden="true",
    )  # fmt: skip
