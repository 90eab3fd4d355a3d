"""The page of pod start times by step: percentiles, their course over time, the slowest pods."""

from collections.abc import Callable, Sequence

from markupsafe import Markup

from app.analysis.lanes import LanesRequest
from app.analysis.starts import STEPS, PaceStretch, PodStart, StartPace
from app.domain.values import counts, durations
from app.web import svg
from app.web.frame import Frame, render
from app.web.pictures import axes

NAMES = {
    "claims": "until its claims are made",
    "devices": "until they have devices",
    "binding": "until it has a node",
    "starting": "until it runs",
}
CLASSES = {"claims": "claim fades", "devices": "claim", "binding": "pod", "starting": "device"}
WIDTH, BAR = 520.0, 14.0
COLUMNS, HEIGHT = 900.0, 120.0


def page(frame: Frame, answer: StartPace, wanted: LanesRequest) -> bytes:
    """The page."""
    longest = max((one.seconds for one in answer.pods), default=0.0)
    return render(
        "pace.html",
        frame=frame,
        answer=answer,
        wanted=wanted,
        names=NAMES,
        seconds=durations.text,
        legend=[(_sign(CLASSES[name]), NAMES[name]) for name in STEPS],
        columns=columns(answer.stretches, frame.here),
        rows=[
            {"pod": one, "bar": waterfall(one, longest), "steps": _steps(one)}
            for one in answer.pods
        ],
    )


def waterfall(start: PodStart, longest: float) -> Markup:
    """The steps of one pod start in sequence; the step it waits or waited for is dashed."""
    scale = WIDTH / longest if longest else 0.0
    x = 0.0
    shapes: list[Markup] = []
    for step in start.steps:
        width = step.seconds * scale
        if step.seconds:
            shapes.append(
                svg.element(
                    "rect",
                    svg.title(f"{NAMES[step.name]}: {durations.text(step.seconds)}"),
                    x=x, y=1, width=max(1.0, width), height=BAR - 2, class_=CLASSES[step.name],
                )
            )  # fmt: skip
        x += width
    unfinished = start.waits_for or start.gone_before
    if unfinished:
        left = start.seconds - sum(step.seconds for step in start.steps)
        verb = "waits" if start.waits_for else "waited"
        text = f"{verb} for {durations.text(left)} {NAMES[unfinished]}"
        shapes.append(
            svg.element(
                "rect",
                svg.title(text),
                x=x, y=2, width=max(1.0, left * scale), height=BAR - 4, class_="pod waits",
            )
        )  # fmt: skip
    return svg.element(
        "svg",
        *shapes,
        viewBox=f"0 0 {WIDTH:.0f} {BAR:.0f}",
        preserveAspectRatio="none",
        aria_hidden="true",
    )


def columns(stretches: Sequence[PaceStretch], to_moment: Callable[[object], str]) -> Markup:
    """A column per time interval: the 99th percentile, and within it the median.

    A column is a link to the end of its interval.
    """
    most = max((one.p99 for one in stretches), default=0.0)
    if not most:
        return Markup("")
    width = (COLUMNS - axes.LEFT) / len(stretches)
    with_clock = axes.clocks_at([one.begin for one in stretches])
    shapes = [
        axes.level(durations.text(most), 0.0, COLUMNS),
        axes.level("0 s", HEIGHT, COLUMNS),
        axes.day(stretches[0].begin, HEIGHT),
    ]
    for number, one in enumerate(stretches):
        text = (
            f"{counts.of(one.count, 'pod')} from {one.begin[11:19]} to {one.end[11:19]}: "
            f"median {durations.text(one.p50)}, 99 % within {durations.text(one.p99)}"
        )
        x = axes.LEFT + number * width
        parts = [svg.title(text)]
        for value, kind in ((one.p99, "pod fades"), (one.p50, "pod")):
            height = HEIGHT * value / most
            parts.append(
                svg.element(
                    "rect", x=x + 2, y=HEIGHT - height, width=width - 4,
                    height=height, class_=kind,
                )
            )  # fmt: skip
        there = to_moment(one.revision) if one.revision else None
        shapes.append(
            svg.element("a", *parts, href=there, aria_label=text, tabindex=-1)
            if there
            else svg.element("g", *parts)
        )
        if number in with_clock:
            shapes.append(axes.clock(one.begin, x, COLUMNS, HEIGHT))
    label = f"Seconds from creation to a node over time, at most {durations.text(most)}"
    return svg.picture(COLUMNS, HEIGHT + axes.BELOW, label, *shapes, role="group")


def _steps(start: PodStart) -> list[dict[str, object]]:
    return [
        {
            "name": NAMES[step.name],
            "seconds": durations.text(step.seconds),
            "revision": step.revision,
        }
        for step in start.steps
        if step.seconds
    ]


def _sign(kind: str) -> Markup:
    shape = svg.element("rect", x=1, y=1, width=24, height=12, class_=kind)
    return svg.element("svg", shape, viewBox="0 0 26 14", aria_hidden="true")
