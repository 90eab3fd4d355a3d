"""The page of a sweep: a plot per measure and the table, without external resources."""

from collections.abc import Collection, Sequence
from typing import Any

from markupsafe import Markup

from app.analysis.sweep.columns import bases, worded
from app.domain.values import counts
from app.web.pictures import runs

_STYLE = Markup("""
body { font: 14px/1.4 system-ui, sans-serif; margin: 2rem; color-scheme: light dark }
table { border-collapse: collapse } th, td { text-align: right; padding: .1rem .6rem }
th:nth-child(-n+6), td:nth-child(-n+6) { text-align: left } tr:nth-child(even) { background: #8881 }
td:nth-child(n+4):nth-child(-n+6):not(:empty) { min-width: 10rem }
svg { display: block; margin: .5rem 0; width: 100%; max-width: 900px } .claim { fill: #3572b0 }
.axis, .hatch { stroke: #8888 }
text { fill: currentColor; font-size: 11px } .scroll { overflow-x: auto }
""")

Row = dict[str, Any]


def page(rows: Sequence[Row], columns: Sequence[str], title: str) -> str:
    """The page as HTML."""
    marked = bases(rows)
    plots = Markup("").join(
        Markup("<h2>{}</h2>{}").format(runs.heading(name), runs.picture(name, rows, most))
        for name, most in runs.measures(rows, columns)
    )
    head = Markup("").join(Markup("<th scope=col>{}</th>").format(worded(name)) for name in columns)
    body = Markup("\n").join(
        Markup("<tr>{}</tr>").format(
            Markup("").join(
                Markup("<td>{}</td>").format(_cell(row, name, marked)) for name in columns
            )
        )
        for row in rows
    )
    return Markup(
        "<!doctype html><html lang=en><meta charset=utf-8><title>{title}</title>"
        "<style>{style}</style><h1>{title}</h1><p>{number}, in the order of the plan; point at "
        "a bar for its run. Runs are compared with the base of their history and order.</p>"
        "{plots}<h2>Table</h2><div class=scroll><table><thead><tr>{head}</tr>"
        "</thead><tbody>{body}</tbody></table></div></html>\n"
    ).format(
        title=title,
        style=_STYLE,
        number=counts.of(len(rows), "run"),
        plots=plots,
        head=head,
        body=body,
    )


def _cell(row: Row, name: str, marked: Collection[int]) -> str:
    """The text of a cell; the number of a run with which others are compared says so."""
    is_base = name == "cell" and row[name] in marked
    return f"{row[name]} (base)" if is_base else runs.text(row[name])
