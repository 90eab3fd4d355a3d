"""The strip in the header: the density of events over time, and the moment of the page."""

from collections.abc import Callable

from markupsafe import Markup

from app.analysis.navigation import Density
from app.domain.log import Revision
from app.domain.values import counts
from app.domain.values.timestamps import Instant
from app.web import svg

STRETCHES = 96
WIDTH, HEIGHT, TOP = 1200.0, 34.0, 8.0


def draw(density: Density, now: Instant, here: Callable[[object], str], since: Revision) -> Markup:
    """The strip: a bar per interval, and a line at the moment of the page.

    A triangle marks troubles, a line marks findings. Each bar is a link to the end of its interval,
    unless that is before `since`, where the page has nothing to show. `here` returns the URL of the
    page at a revision.
    """
    stretches = density.stretches
    if not stretches:
        return Markup("")
    most = max(one.entries for one in stretches) or 1
    width = WIDTH / len(stretches)
    bars = []
    for number, one in enumerate(stretches):
        if not one.entries and not one.findings:
            continue
        left = number * width
        height = max(2.0, (HEIGHT - TOP) * (one.entries / most) ** 0.5)
        description = f"up to revision {one.revision}: {counts.of(one.entries, 'event')}"
        description += f", {one.claims} of devices" if one.claims else ""
        description += f", {counts.of(one.decisions, 'decision')}" if one.decisions else ""
        description += f", {counts.of(one.troubles, 'trouble')}" if one.troubles else ""
        description += f", {counts.of(one.findings, 'finding')}" if one.findings else ""
        shapes = [
            svg.title(description),
            svg.element("rect", x=left, y=0.0, width=width, height=HEIGHT, fill_opacity=0),
            _bar(left, width, height, "quiet"),
        ]
        done = one.claims + one.decisions
        if done:
            part = height * min(1.0, done / one.entries)
            shapes.append(_bar(left, width, max(1.0, part), "claimed" if one.claims else "decided"))
        if one.troubles:
            middle = left + width / 2
            points = f"{middle:.1f},0 {middle + 4:.1f},7 {middle - 4:.1f},7"
            shapes.append(svg.element("polygon", points=points, class_="trouble"))
        if one.findings:
            x = left + width / 2
            ends = {"x1": x, "x2": x, "y1": 0.0, "y2": HEIGHT}
            shapes.append(svg.element("line", **ends, class_="finding"))
        # Bars are not in the tab order: the step links lead to the same moments.
        if one.revision >= since:
            bars.append(svg.element("a", *shapes, href=here(one.revision), tabindex=-1))
        else:
            bars.append(svg.element("g", *shapes, class_="fades"))
    x = density.place(now) * WIDTH
    cursor = svg.element(
        "line", x1=x, x2=x, y1=0.0, y2=HEIGHT, class_="cut", data_cursor="", aria_hidden="true"
    )
    body = svg.element(
        "svg",
        *bars,
        cursor,
        viewBox=f"0 0 {WIDTH:.0f} {HEIGHT:.0f}",
        preserveAspectRatio="none",
        aria_hidden="true",
    )
    return svg.element("div", body, class_="strip")


def key(density: Density) -> Markup:
    """The legend: the meaning of the colours and shapes that the strip shows."""
    shown = [one for one in density.stretches if one.entries or one.findings]
    signs = [
        (any(one.entries for one in shown), _square("quiet"), "events"),
        (any(one.claims for one in shown), _square("claimed"), "of devices"),
        (
            any(one.decisions and not one.claims for one in shown),
            _square("decided"),
            "decisions",
        ),
        (
            any(one.troubles for one in shown),
            svg.element("polygon", points="5,1 9.5,9 0.5,9", class_="trouble"),
            "trouble",
        ),
        (
            any(one.findings for one in shown),
            svg.element("line", x1=5.0, x2=5.0, y1=0.0, y2=10.0, class_="finding"),
            "finding",
        ),
    ]
    items = [
        svg.element("span", svg.element("svg", shape, viewBox="0 0 10 10"), word)
        for is_shown, shape, word in signs
        if is_shown
    ]
    legend = svg.element("span", *items)
    return svg.element("span", legend, class_="key", aria_hidden="true")


def _square(kind: str) -> Markup:
    return svg.element("rect", width=10.0, height=10.0, class_=kind)


def _bar(left: float, width: float, height: float, kind: str) -> Markup:
    return svg.element(
        "rect",
        x=left + 0.5,
        y=HEIGHT - height,
        width=max(0.5, width - 1),
        height=height,
        class_=kind,
    )
