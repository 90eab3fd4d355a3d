"""The picture of lanes: bars for states, marks for events, hatched areas for gaps.

A bar is dashed while its object waits.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from app.analysis.keeping import span_changes as states
from app.analysis.lanes import Blind, Lane, Lanes, LaneState, Mark
from app.analysis.navigation import TROUBLES
from app.domain.values import counts, timestamps
from app.domain.values.timestamps import Instant
from app.web import svg
from app.web.frame import noun

WIDTH, LABELS, ROW, TOP, BAR = 1200.0, 330.0, 24.0, 26.0, 12.0
LETTERS_MAX = 38
TICKS = 6
NEAR = 5.0
"""The least distance between marks; closer marks are drawn as one."""

SAID_MAX = 5
"""Marks that the label of a combined mark describes; troubles come first."""

_KINDS = {"pods": "pod", "resourceclaims": "claim", "devices": "device", "nodes": "node"}
_DASHED = frozenset((states.WAITING, states.NOT_READY))
_FADED = frozenset((states.FINISHED, states.ENDING, states.BOUND, states.ALLOCATED))
_TALL = frozenset((states.RUNNING, states.HELD, states.RESERVED, states.READY))

_SHORT = timestamps.SECOND // 100
"""The length of a picture up to which its axis shows microseconds."""


class _Scale:
    """The scale from instants to x coordinates between the labels and the right edge."""

    def __init__(self, answer: Lanes) -> None:
        self.begin = timestamps.parse(answer.begin)
        self.end = max(timestamps.parse(answer.end), Instant(self.begin + 1))

    def x(self, text: str) -> float:
        """The x coordinate of an instant; without one, the right edge."""
        time = timestamps.parse(text) if text else self.end
        part = (time - self.begin) / (self.end - self.begin)
        return LABELS + min(1.0, max(0.0, part)) * (WIDTH - LABELS - 8)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ways:
    """The link targets of a picture.

    They are the object of a lane at a revision, the page at a revision, and the interval of a state
    that combines several.
    """

    to_object: Callable[[Lane, int], str]
    to_moment: Callable[[int], str]
    to_stretch: Callable[[LaneState], str]


def draw(answer: Lanes, ways: Ways) -> Markup:
    """The picture.

    The name of a lane is a link to its object, bars and marks are links to their moments.
    """
    scale = _Scale(answer)
    height = TOP + ROW * len(answer.lanes) + 6
    rows = [_row(lane, TOP + ROW * number, scale, ways) for number, lane in enumerate(answer.lanes)]
    blind = [_blind(gap, scale, height) for gap in answer.gaps]
    label = f"{len(answer.lanes)} lanes from {answer.begin} to {answer.end}"
    return svg.picture(
        WIDTH, height, label, _patterns(), _axis(scale, height), *blind, *rows, role="group"
    )


def legend() -> list[tuple[Markup, str]]:
    """Each sign with its meaning: the colours of kinds, then the shapes of states, then marks."""
    signs = [(_bar_sign(kind, BAR), kind) for kind in _KINDS.values()]
    signs.append((_bar_sign("any waits", BAR - 4), "waiting or not ready"))
    signs.append((_bar_sign("any fades", BAR - 4), "bound, allocated, ending or over"))
    signs.append((_bar_sign("any", BAR), "running, held, reserved or ready"))
    signs.append((_sign(_sign_of(13, 7, False)), "event"))
    signs.append((_sign(_sign_of(13, 8, True)), "trouble"))
    area = svg.element("rect", x=1, y=1, width=24, height=12, fill="url(#blind)", class_="blind")
    signs.append((_sign(area), "not recorded"))
    several = svg.element("rect", x=1, y=3, width=24, height=8, fill="url(#several)")
    signs.append((_sign(several), "several short states"))
    return signs


def _bar_sign(classes: str, height: float) -> Markup:
    y = (14 - height) / 2
    return _sign(svg.element("rect", x=1, y=y, width=24, height=height, rx=2, class_=classes))


def _sign(shape: Markup) -> Markup:
    return svg.element("svg", shape, viewBox="0 0 26 14", aria_hidden="true")


def _patterns() -> Markup:
    line = svg.element("path", d="M0,6 L6,0", class_="hatch")
    pattern = svg.element(
        "pattern", line, id="blind", width=6, height=6, patternUnits="userSpaceOnUse"
    )
    stripe = svg.element("rect", width=2, height=6, class_="stripe")
    stripes = svg.element(
        "pattern", stripe, id="several", width=4, height=6, patternUnits="userSpaceOnUse"
    )
    return svg.element("defs", pattern, stripes)


def _axis(scale: _Scale, height: float) -> Markup:
    day = timestamps.micro_text(scale.begin)[:10]
    parts: list[Markup] = []
    lasts = scale.end - scale.begin
    # As many digits as tell the labels apart.
    digits = 19 if lasts > 10 * timestamps.SECOND else 23 if lasts > _SHORT else 26
    instants = [Instant(scale.begin + lasts * number // TICKS) for number in range(TICKS + 1)]
    for number, time in enumerate(instants):
        # Within a few microseconds, several labels would stand in one place.
        if number and time == instants[number - 1]:
            continue
        text = timestamps.micro_text(time)
        x = scale.x(text)
        anchor = "end" if number == TICKS else "start" if number == 0 else "middle"
        shown = text[11:digits]
        parts.append(svg.element("line", x1=x, x2=x, y1=18.0, y2=height, class_="axis"))
        parts.append(svg.element("text", shown, x=x, y=13.0, text_anchor=anchor, class_="soft"))
    date = svg.element("text", f"{day}, UTC", x=8.0, y=13.0, class_="soft date")
    return svg.element("g", date, svg.element("g", *parts, class_="beside"), aria_hidden="true")


def _row(lane: Lane, y: float, scale: _Scale, ways: Ways) -> Markup:
    kind = _KINDS.get(lane.resource, "pod")
    parts = [svg.element("line", x1=0, x2=WIDTH, y1=y + ROW, y2=y + ROW, class_="rule")]
    parts.append(_label(lane, y, ways.to_object))
    middle = y + ROW / 2
    shapes = [_bar(state, kind, middle, scale, ways) for state in lane.states]
    shapes += _marks(lane.marks, middle, scale, ways.to_moment)
    # On a narrow screen, the bars stand below their name, not beside it.
    return svg.element("g", *parts, svg.element("g", *shapes, class_="beside below"))


def _label(lane: Lane, y: float, to_object: Callable[[Lane, int], str]) -> Markup:
    name, indent = lane.key.namespaced_name, 4.0 + 16 * lane.depth
    said = _name(lane)
    room = LETTERS_MAX - 3 * lane.depth - len(said)
    short = name if len(name) <= room else f"\N{HORIZONTAL ELLIPSIS}{name[-room + 1 :]}"
    text = svg.element(
        "text",
        svg.title(f"{said} {name}"),
        svg.element("tspan", f"{said} ", class_="soft"),
        svg.element("tspan", short, class_="mono"),
        x=indent,
        y=y + ROW / 2 + 4,
        class_="above",
    )
    last = lane.states[-1].begin if lane.states else 0
    there = to_object(lane, last)
    return svg.element("a", text, href=there) if there else text


def _name(lane: Lane) -> str:
    return "device" if lane.resource == "devices" else noun(lane.resource)


def _bar(state: LaneState, kind: str, middle: float, scale: _Scale, ways: Ways) -> Markup:
    left, right = scale.x(state.began), scale.x(state.ended)
    height = BAR if state.state in _TALL else BAR - 4
    classes: str | None = kind
    there = ways.to_moment(state.begin)
    if state.count > 1:
        # It has a pattern, which a class would replace by a fill.
        classes, there = None, ways.to_stretch(state)
    elif state.state in _DASHED:
        classes = f"{kind} waits"
    elif state.state in _FADED:
        classes = f"{kind} fades"
    until = f"until revision {state.end}" if state.end else "and still is"
    label = f" ({state.label})" if state.label else ""
    description = f"{state.state}{label} from revision {state.begin} {until}"
    bar = svg.element(
        "rect",
        x=left,
        y=middle - height / 2,
        width=max(1.5, right - left),
        height=height,
        rx=2,
        fill=None if classes else "url(#several)",
        class_=classes,
    )
    return svg.element("a", svg.title(description), bar, href=there, tabindex=-1)


def _marks(
    marks: tuple[Mark, ...], middle: float, scale: _Scale, to_moment: Callable[[int], str]
) -> list[Markup]:
    """A mark for each event; overlapping events have one mark with a combined label."""
    groups: list[list[Mark]] = []
    last = -NEAR
    for mark in marks:
        x = scale.x(mark.time)
        if groups and x - last < NEAR:
            groups[-1].append(mark)
        else:
            groups.append([mark])
            last = x
    shapes = []
    for group in groups:
        first = group[0]
        troubles = [mark for mark in group if mark.kind in TROUBLES]
        others = [mark for mark in group if mark.kind not in TROUBLES]
        description = _said((*troubles, *others))
        shape = _sign_of(scale.x(first.time), middle, bool(troubles))
        href = to_moment(group[-1].revision)
        shapes.append(svg.element("a", svg.title(description), shape, href=href, tabindex=-1))
    return shapes


def _said(marks: Sequence[Mark]) -> str:
    """The label of the marks: the first ones in full, then the number of others."""
    texts = [
        f"{mark.kind} at revision {mark.revision}" + (f": {mark.text}" if mark.text else "")
        for mark in marks[:SAID_MAX]
    ]
    more = len(marks) - SAID_MAX
    if more > 0:
        texts.append(f"and {more} more {counts.plural(more, 'event')}")
    return "; ".join(texts)


def _sign_of(x: float, y: float, is_trouble: bool) -> Markup:
    """A triangle for an event that needs attention, a diamond for others."""
    if is_trouble:
        points = f"{x:.1f},{y - 6:.1f} {x + 5:.1f},{y + 4:.1f} {x - 5:.1f},{y + 4:.1f}"
        return svg.element("polygon", points=points, class_="trouble")
    points = f"{x:.1f},{y - 4:.1f} {x + 4:.1f},{y:.1f} {x:.1f},{y + 4:.1f} {x - 4:.1f},{y:.1f}"
    return svg.element("polygon", points=points, class_="event")


def _blind(gap: Blind, scale: _Scale, height: float) -> Markup:
    left, right = scale.x(gap.began), scale.x(gap.ended)
    return svg.element(
        "rect",
        svg.title(f"not all changes from revision {gap.begin} to {gap.end} were recorded"),
        x=left,
        y=18.0,
        width=max(3.0, right - left),
        height=height - 18,
        fill="url(#blind)",
        class_="blind-area beside",
    )
