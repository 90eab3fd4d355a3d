"""The runs of a sweep: a picture for each measure, with a column for each run."""

from collections.abc import Mapping, Sequence

from markupsafe import Markup

from app.analysis.sweep import columns
from app.web import svg
from app.web.pictures import axes

WIDTH, HEIGHT = 900.0, 90.0

NUMBER_WIDTH = 36.0
"""The width of the number of a run, with a space, rounded up."""

PLOTTED = ("placed", "waiting", "evicted", "boundMean", "differing")
"""The measures of every sweep that are drawn."""

PLOTTED_ABOUT = ("largest ", "strandedShare ")
"""Prefixes of the columns of a class or a counter that are drawn."""

HEADINGS = {
    "placed": "Pods placed",
    "waiting": "Pods waiting",
    "evicted": "Pods evicted",
    "boundMean": "Mean time to a binding, in seconds",
    "differing": "Pods that end differently than in the base",
    "largest": "Largest claim of class",
    "strandedShare": "Stranded share of counter",
}

Row = Mapping[str, object]


def heading(measure: str) -> str:
    """The name of a measure for people."""
    name, _, about = measure.partition(" ")
    return f"{HEADINGS[name]} {about}".strip()


def measures(rows: Sequence[Row], names: Sequence[str]) -> list[tuple[str, float]]:
    """The measures to draw, each with its largest value; those without any value are left out."""
    wanted = [*PLOTTED, *(name for name in names if name.startswith(PLOTTED_ABOUT))]
    known = {name: [value for row in rows if (value := number(row.get(name))) is not None]
             for name in wanted}  # fmt: skip
    return [(name, max(values)) for name, values in known.items() if values]


def picture(measure: str, rows: Sequence[Row], most: float) -> Markup:
    """A column for each run, up to the largest value of the sweep; hatched where there is none."""
    top = most or 1.0
    step = (WIDTH - axes.LEFT) / max(1, len(rows))
    hatch = "lacking-" + "".join(filter(str.isalnum, measure))
    is_lacking = any(number(row.get(measure)) is None for row in rows)
    shapes = [_hatching(hatch)] if is_lacking else []
    shapes += [axes.level(text(most), 0.0, WIDTH)] if most else []
    shapes.append(axes.level("0", HEIGHT, WIDTH))
    for place, row in enumerate(rows):
        value = number(row.get(measure))
        height = HEIGHT if value is None else max(HEIGHT * value / top, 1.0 if value else 0.0)
        said = str(row.get("problem") or "no value") if value is None else text(value)
        shapes.append(
            svg.element(
                "rect",
                svg.title(f"{label(row)}: {said}"),
                x=axes.LEFT + place * step + 1,
                y=HEIGHT - height,
                width=max(1.0, step - 2),
                height=height,
                class_="lacking" if value is None else "claim",
                fill=f"url(#{hatch})" if value is None else None,
            )
        )
    about = f"{heading(measure)}, by run: at most {text(most)}"
    return svg.picture(WIDTH, HEIGHT + axes.BELOW, about, *shapes, _numbers(rows, step))


def _numbers(rows: Sequence[Row], step: float) -> Markup:
    """The numbers of the runs below their columns, as many as have room.

    Screen readers skip them, because each column has a title.
    """
    every = max(1, -(-int(NUMBER_WIDTH) // max(1, int(step))))
    y = HEIGHT + 14
    word = svg.element("text", "run", x=axes.LEFT - 6, y=y, text_anchor="end", class_="soft")
    numbers = [
        svg.element(
            "text", str(rows[place].get("cell", place)), x=axes.LEFT + (place + 0.5) * step, y=y,
            text_anchor="middle", class_="soft",
        )
        for place in range(0, len(rows), every)
    ]  # fmt: skip
    return svg.element("g", word, *numbers, aria_hidden="true")


def _hatching(name: str) -> Markup:
    line = svg.element("path", d="M0,6 L6,0", class_="hatch")
    pattern = svg.element(
        "pattern", line, id=name, width=6, height=6, patternUnits="userSpaceOnUse"
    )
    return svg.element("defs", pattern)


def label(row: Row) -> str:
    """The subject of a run, and its number."""
    parts = [str(row[name]) for name in columns.VARIED if row.get(name) not in (None, "", 0)]
    return f"run {row.get('cell')}: {' '.join(parts)}"


def number(value: object) -> float | None:
    """The value as a number; None for anything else."""
    return float(value) if isinstance(value, int | float) else None


def text(value: object) -> str:
    """A value of the table for people."""
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)
