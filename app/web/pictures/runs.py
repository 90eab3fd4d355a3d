"""The runs of a sweep: a picture for each measure, with a column for each run."""

from collections.abc import Mapping, Sequence

from markupsafe import Markup

from app.analysis.sweep import columns
from app.web import svg
from app.web.pictures import axes

WIDTH, HEIGHT = 900.0, 90.0

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
    return svg.picture(WIDTH, HEIGHT + 4.0, about, *shapes)


def _hatching(name: str) -> Markup:
    line = svg.element("path", d="M0,6 L6,0", class_="hatch")
    pattern = svg.element(
        "pattern", line, id=name, width=6, height=6, patternUnits="userSpaceOnUse"
    )
    return svg.element("defs", pattern)


def label(row: Row) -> str:
    """What a run is of, and its number."""
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
