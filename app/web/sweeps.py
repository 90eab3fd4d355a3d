"""The page of a sweep: a plot per measure and the table, without external resources."""

from collections.abc import Sequence
from typing import Any

from markupsafe import Markup, escape

from app.domain.values import counts

PLOTTED = ("placed", "waiting", "evicted", "boundMean", "differing")

PLOTTED_ABOUT = ("largest ", "strandedShare ")
"""Prefixes of the columns of a class or a counter that are plotted."""

WIDTH, HEIGHT, LEFT = 900, 120, 60

_STYLE = Markup("""
body { font: 14px/1.4 system-ui, sans-serif; margin: 2rem; color-scheme: light dark }
table { border-collapse: collapse } th, td { text-align: right; padding: .1rem .6rem }
th:nth-child(-n+6), td:nth-child(-n+6) { text-align: left } tr:nth-child(even) { background: #8881 }
svg { display: block; margin: .5rem 0 } rect { fill: #3572b0 } rect.lacking { fill: #b0353522 }
text { fill: currentColor; font-size: 11px } .scroll { overflow-x: auto }
""")

Row = dict[str, Any]


def page(rows: Sequence[Row], columns: Sequence[str], title: str) -> str:
    """The page as HTML."""
    measures = [*PLOTTED, *(name for name in columns if name.startswith(PLOTTED_ABOUT))]
    plots = Markup("").join(_plot(name, rows) for name in measures)
    head = Markup("").join(Markup("<th scope=col>{}</th>").format(name) for name in columns)
    body = Markup("\n").join(
        Markup("<tr>{}</tr>").format(
            Markup("").join(Markup("<td>{}</td>").format(_text(row[name])) for name in columns)
        )
        for row in rows
    )
    return Markup(
        "<!doctype html><html lang=en><meta charset=utf-8><title>{title}</title>"
        "<style>{style}</style><h1>{title}</h1><p>{runs}, in the order of the plan; point at "
        "a bar for its run.</p>{plots}<h2>Table</h2><div class=scroll><table><thead><tr>{head}</tr>"
        "</thead><tbody>{body}</tbody></table></div></html>\n"
    ).format(
        title=title,
        style=_STYLE,
        runs=counts.of(len(rows), "run"),
        plots=plots,
        head=head,
        body=body,
    )


def _plot(name: str, rows: Sequence[Row]) -> Markup:
    """A bar chart over the runs; a run without a value is marked over the full height."""
    values = [row.get(name) for row in rows]
    top = max((value for value in values if value is not None), default=0) or 1
    step = (WIDTH - LEFT) / max(1, len(rows))
    bars = Markup("").join(
        _bar(LEFT + number * step, step, value, top, row)
        for number, (value, row) in enumerate(zip(values, rows, strict=True))
    )
    return Markup(
        '<h2>{name}</h2><svg viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        'role="img" aria-label="{name} by run"><text x="0" y="12">{top}</text>'
        '<text x="0" y="{height}">0</text>{bars}</svg>'
    ).format(name=name, width=WIDTH, height=HEIGHT, top=_text(top), bars=bars)


def _bar(x: float, step: float, value: float | None, top: float, row: Row) -> Markup:
    height = HEIGHT if value is None else HEIGHT * value / top
    label = " ".join(
        str(row[name])
        for name in ("history", "profile", "gates", "quirks", "change", "seed")
        if row.get(name) not in (None, "")
    )
    return Markup(
        '<rect class="{kind}" x="{x:.2f}" y="{y:.2f}" width="{width:.2f}" height="{height:.2f}">'
        "<title>{label}: {value}</title></rect>"
    ).format(
        kind="lacking" if value is None else "value",
        x=x,
        y=HEIGHT - height,
        width=max(0.5, step - 1),
        height=height,
        label=label,
        value=row.get("problem") if value is None else _text(value),
    )


def _text(value: Any) -> str:
    if value is None:
        return ""
    return str(escape(f"{value:.4g}" if isinstance(value, float) else value))
