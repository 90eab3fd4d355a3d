"""The picture of a pool as strips of devices.

A device is filled if held, hatched if impossible, both if held but not published any more, dashed
if tainted. Partitions of one physical device, which use the same counter set, have their own strip.
"""

import re
from collections.abc import Callable, Sequence
from itertools import takewhile

from markupsafe import Markup

from app.analysis.map_answers import MappedDevice, MappedPool
from app.domain.values import counts
from app.web import svg

WIDTH, GAP, MARGIN, LABEL = 1000.0, 4.0, 3.0, 15.0
CELL, HEIGHT = 62.0, 24.0
SMALL = 14.0
SMALL_FROM = 60
"""The least number of devices in a strip for which cells are small and have no names."""

COMPACT_MAX = 16
"""The most devices of a pool that has a compact picture, if they are one strip."""

COMPACT_IN_ROW = 4
"""Cells in a row of a compact picture: a node of four or eight devices has one or two full rows."""

LETTERS_MAX = 9

_WORDS = re.compile("[a-zA-Z0-9]+")


def is_compact(pool: MappedPool) -> bool:
    """True if the picture of the pool is so small that many of them stand side by side."""
    return len(pool.devices) <= COMPACT_MAX and len(_strips(pool)) == 1


def draw(pool: MappedPool, to_claim: Callable[[str], str], is_narrow: bool = False) -> Markup:
    """The devices in order; a held device is a link to its first claim.

    A narrow picture has `COMPACT_IN_ROW` devices in a row.
    """
    strips = _strips(pool)
    picture_width = 2 * MARGIN + COMPACT_IN_ROW * (CELL + GAP) if is_narrow else WIDTH
    # A page has many of these pictures, and its ids are unique.
    hatch = "-".join(("hatch", *_WORDS.findall(f"{pool.driver} {pool.pool}")))
    shapes: list[Markup] = [_patterns(hatch)]
    y = MARGIN
    for label, devices in strips:
        if label:
            shapes.append(svg.element("text", label, x=MARGIN, y=y + 10, class_="soft mono"))
            y += LABEL
        is_small = len(devices) >= SMALL_FROM
        width, height = (SMALL, SMALL) if is_small else (CELL, HEIGHT)
        per_row = int((picture_width - 2 * MARGIN) // (width + GAP))
        names = _short_names(devices)
        for number, device in enumerate(devices):
            row, column = divmod(number, per_row)
            cell = _DeviceBox(
                MARGIN + column * (width + GAP), y + row * (height + GAP), width, height
            )
            short = "" if is_small else names[device.name]
            shapes.append(_device(device, cell, short, hatch, to_claim))
        y += -(-len(devices) // per_row) * (height + GAP) + GAP
    summary = ", ".join(f"{count} {state}" for state, count in states(pool).items())
    devices_text = counts.of(len(pool.devices), "device")
    label = f"{devices_text} of {pool.driver}/{pool.pool}: {summary}"
    return svg.picture(picture_width, y, label, *shapes, role="group")


def gauge(share: float) -> Markup:
    """The used share of a counter, as a bar."""
    return svg.element(
        "svg",
        svg.element("rect", x=0, y=0, width=100, height=10, class_="gauge"),
        svg.element("rect", x=0, y=0, width=min(100.0, 100 * share), height=10, class_="used"),
        viewBox="0 0 100 10",
        preserveAspectRatio="none",
        class_="gauge-bar",
        aria_hidden="true",
    )


def states(pool: MappedPool) -> dict[str, int]:
    """The number of devices per state, the most frequent state first."""
    counts: dict[str, int] = {}
    for device in pool.devices:
        counts[device.state] = counts.get(device.state, 0) + 1
    return dict(sorted(counts.items(), key=lambda item: -item[1]))


class _DeviceBox:
    """The rectangle in which a device is drawn."""

    def __init__(self, x: float, y: float, width: float, height: float) -> None:
        self.x, self.y, self.width, self.height = x, y, width, height

    def rect(self, inset: float = 0.0, **attributes: object) -> Markup:
        """The rectangle of the cell, reduced by `inset` on each side."""
        return svg.element(
            "rect",
            x=self.x + inset,
            y=self.y + inset,
            width=self.width - 2 * inset,
            height=self.height - 2 * inset,
            rx=3,
            **attributes,
        )


def _strips(pool: MappedPool) -> list[tuple[str, Sequence[MappedDevice]]]:
    """The devices by counter set if each uses exactly one; else one strip of all devices."""
    if not all(len(device.sets) == 1 for device in pool.devices):
        return [("", pool.devices)]
    strips: dict[str, list[MappedDevice]] = {}
    for device in pool.devices:
        strips.setdefault(device.sets[0], []).append(device)
    if len(strips) == 1:
        return [("", pool.devices)]
    return list(strips.items())


def _short_names(devices: Sequence[MappedDevice]) -> dict[str, str]:
    """The short names of the devices in a strip, without their common prefix.

    A device whose name is a prefix of all others is the whole device, and the others are its
    partitions.
    """
    names = [device.name for device in devices]
    whole = min(names, key=len, default="")
    parts = [name for name in names if name != whole]
    if not parts or not all(name.startswith(whole) for name in parts):
        parts, whole = names, ""
    first, last = min(parts, default=""), max(parts, default="")
    same = sum(
        1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(first, last, strict=False))
    )
    prefix = first[:same] if len(parts) > 1 else ""
    prefix = prefix[: prefix.rfind("-") + 1]
    short = {name: name.removeprefix(prefix) for name in parts}
    return {**short, whole: "whole"} if whole else short


def _patterns(hatch: str) -> Markup:
    line = svg.element("path", d="M0,6 L6,0", class_="hatch")
    return svg.element(
        "defs",
        svg.element("pattern", line, id=hatch, width=6, height=6, patternUnits="userSpaceOnUse"),
    )


def _device(
    device: MappedDevice, cell: _DeviceBox, short: str, hatch: str, to_claim: Callable[[str], str]
) -> Markup:
    label = f"{device.name}: {device.state}"
    if device.holders:
        label += f" by {', '.join(device.holders)}"
    if device.lacks:
        label += f", too little left of {', '.join(device.lacks)}"
    if device.taints:
        label += f", taints {', '.join(device.taints)}"
    is_impossible = device.state in ("blocked", "unusable")
    is_unpublished = device.state == "unpublished"
    is_held = is_unpublished or device.state == "held"
    kind = "held" if is_held else "blocked" if is_impossible else "free"
    parts = [svg.title(label), cell.rect(class_=kind)]
    if is_impossible or is_unpublished:
        parts.append(cell.rect(fill=f"url(#{hatch})"))
    if device.taints:
        parts.append(cell.rect(1.5, class_="tainted"))
    if short:
        cut = f"{short[: LETTERS_MAX - 1]}\N{HORIZONTAL ELLIPSIS}"
        parts.append(
            svg.element(
                "text",
                short if len(short) <= LETTERS_MAX else cut,
                x=cell.x + cell.width / 2,
                y=cell.y + cell.height / 2 + 4,
                text_anchor="middle",
                class_=f"mono {'over-hatch' if is_impossible or is_unpublished else ''}".strip(),
                aria_hidden="true",
            )
        )
    if device.holders:
        return svg.element("a", *parts, href=to_claim(device.holders[0]), aria_label=label)
    return svg.element("g", *parts)
