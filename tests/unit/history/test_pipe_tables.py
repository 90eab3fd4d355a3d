"""Tables of kubectl between bars, beside tables that are not of kubectl."""

import csv
import html
import io

import pytest

from app.adapters.history.printouts import pipe_tables
from tests.unit.history.test_wrapped_texts import read

PODS = [
    ("NAMESPACE", "NAME", "READY", "STATUS", "RESTARTS", "AGE", "NODE"),
    ("shop", "web-1", "1/1", "Running", "3 (2m ago)", "5m", "n1"),
    ("shop", "web-2", "0/1", "Pending", "0", "5m", "<none>"),
]
EVENTS = [
    ("LAST SEEN", "TYPE", "REASON", "OBJECT", "SUBOBJECT", "MESSAGE"),
    ("2m", "Warning", "FailedScheduling", "pod/web-2", "<none>", "0/1 nodes fit a|b."),
    ("5m", "Normal", "Pulled", "pod/web-1", "spec.containers{c}", "Image is there"),
]


def markdown(rows, cell=str):
    texts = [
        "| " + " | ".join(cell(text.replace("|", "\\|")) for text in row) + " |" for row in rows
    ]
    return "\n".join([texts[0], "|" + ":---|" * len(rows[0]), *texts[1:]]) + "\n"


def boxed(rows):
    """As psql and MySQL print tables with borders."""
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    border = "+" + "+".join("-" * (width + 2) for width in widths) + "+"
    lines = [
        "|" + "|".join(f" {text.ljust(width)} " for text, width in zip(row, widths, strict=True))
        + "|"
        for row in rows
    ]  # fmt: skip
    return "\n".join([border, lines[0], border, *lines[1:], border]) + "\n"


def drawn(rows):
    """As tools draw boxes with the signs for them."""
    lines = boxed(rows).splitlines()
    signs = [str.maketrans("+-|", f"{corner}─│") for corner in "┌├└"]
    out = [lines[0].translate(signs[0]), lines[1].translate(signs[1])]
    out += [line.translate(signs[1]) for line in lines[2:-1]]
    return "\n".join([*out, lines[-1].translate(signs[2])]) + "\n"


def separated(rows):
    out = io.StringIO()
    csv.writer(out).writerows(rows)
    return out.getvalue()


def jira(rows):
    titles, *others = (("|".join(cell or " " for cell in row)) for row in rows)
    return "\n".join([f"||{titles.replace('|', '||')}||", *(f"|{row}|" for row in others)]) + "\n"


def in_html(rows):
    cells = ["".join(f"<td><p>{html.escape(cell)}</p></td>" for cell in row) for row in rows]
    shown = "\n".join(f"<tr>{row}</tr>" for row in [cells[0].replace("td>", "th>"), *cells[1:]])
    page = f"<html><body><p>It waits</p><table><tbody>{shown}</tbody></table></body></html>"
    return f"<!DOCTYPE html>\n{page}\n"


FORMS = {
    "markdown": markdown,
    "code in cells": lambda rows: markdown(rows, lambda text: f"`{text}`" if text else ""),
    "entities": lambda rows: markdown(rows).replace("<", "&lt;").replace(">", "&gt;"),
    "escaped": lambda rows: markdown(rows).replace("<", "\\<").replace(">", "\\>"),
    "boxed": boxed,
    "drawn": drawn,
    "separated": separated,
    "jira": jira,
}


@pytest.mark.parametrize("form", FORMS)
def test_table_between_bars_is_read_as_kubectl_prints_it(tmp_path, form):
    records, lost = read(tmp_path, f"# It waits\n\n{FORMS[form](PODS)}\nthat is all\n")
    pods = {record.name: record.object for record in records}
    assert lost == []
    assert {name: tree["status"]["phase"] for name, tree in pods.items()} == {
        "web-1": "Running",
        "web-2": "Pending",
    }
    assert pods["web-1"]["spec"] == {"nodeName": "n1"}
    assert "spec" not in pods["web-2"]
    assert {record.namespace for record in records} == {"shop"}


def test_table_of_a_page_is_read_as_kubectl_prints_it(tmp_path):
    records, lost = read(tmp_path, in_html(PODS))
    pods = {record.name: record.object["status"]["phase"] for record in records}
    assert (pods, lost) == ({"web-1": "Running", "web-2": "Pending"}, [])
    events, lost = read(tmp_path, in_html(EVENTS))
    assert [event.object["message"] for event in events] == [row[-1] for row in EVENTS[1:]]
    assert lost == []


@pytest.mark.parametrize("form", ["markdown", "code in cells", "separated"])
def test_events_between_bars_keep_the_bars_of_their_messages(tmp_path, form):
    records, lost = read(tmp_path, FORMS[form](EVENTS))
    events = {record.object["reason"]: record.object for record in records}
    assert lost == []
    assert events["FailedScheduling"]["message"] == "0/1 nodes fit a|b."
    assert "fieldPath" not in events["FailedScheduling"]["involvedObject"]
    assert events["Pulled"]["involvedObject"]["fieldPath"] == "spec.containers{c}"


@pytest.mark.parametrize(
    "lines",
    [
        ["| NAME", "| web-1", ""],
        ["| Name | Status |", "|---|---|", "| web-1 | fine |"],
        ["NAME, she said, is", "a, b, c"],
        ["| METRIC | VALUE |", "|---|---|", "| a | 1 |"],
        ["a | b", "c || d"],
        ["|", "||", "+-+"],
    ],
)
def test_other_lines_between_bars_stay_as_they_are(lines):
    assert pipe_tables.plain(lines) == lines


def test_row_with_other_cells_stays_as_it_is():
    lines = markdown(PODS).splitlines()
    lines[3] = "| shop | web-2 |"
    assert pipe_tables.plain(lines)[3] == lines[3]


@pytest.mark.parametrize(
    "line", ["|" + "-" * 200_000 + "x", "|" + "| " * 100_000, "NAME," * 50_000]
)
def test_long_lines_between_bars_are_seen_in_one_pass(line):
    """Each character looked at for each one before it is 20 G steps, more than a test may take."""
    assert pipe_tables.plain([line, "|---|"])[1] == "|---|"


SEEN = [
    ("NAME", "READY", "STATUS", "RESTARTS", "IP", "NODE", "AGE"),
    ("web-1", "1/1", "Running", "3", "10.0.0.7", "n1", "5m"),
    ("web-2", "0/1", "Pending", "0", "<none>", "<none>", "5m"),
]


def screen(rows):
    """As k9s keeps a screen: more columns, some with signs, and a word for what is not set."""
    titles = ("%CPU/R", "PF", *rows[0][1:-1], "%MEM/L", "AGE")
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(
        [
            ("NAME", *titles),
            *((row[0], "n/a", "●", *row[1:-1], "n/a", row[-1]) for row in rows[1:]),
        ]
    )
    return out.getvalue().replace("<none>", "n/a")


def page(rows, mark="\t", nothing="-"):
    """As a page in a browser is copied: words for titles, the namespace behind the name."""
    titles = ("Name", "Namespace", *(title.title() for title in rows[0][1:-1]), "Memory", "Created")
    lines = [titles, *((row[0], "shop", *row[1:-1], "<none>", "Jan 2, 2026") for row in rows[1:])]
    if mark == ",":
        return "".join(",".join(f'"{cell}"' for cell in row) + "\n" for row in lines).replace(
            "<none>", nothing
        )
    return "".join(mark.join(row) + "\n" for row in lines).replace("<none>", nothing)


SHOWN = {
    "pods-shop-1767323045000000000.csv": screen(SEEN),
    "screen.csv": "kubectl get pods -n shop\n" + screen(SEEN),
    "copied.txt": page(SEEN),
    "copied.md": f"The page shows\n\n```\n{page(SEEN)}```\n",
    "export.csv": page(SEEN, ",", ""),
}


@pytest.mark.parametrize("name", SHOWN)
def test_table_of_another_program_is_read_as_that_of_kubectl(tmp_path, name):
    widths = [max(len(row[at]) for row in SEEN) for at in range(len(SEEN[0]))]
    printed = ["$ kubectl get pods -n shop -o wide"]
    printed += [
        "   ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        for row in SEEN
    ]
    wanted, _ = read(tmp_path, "\n".join(printed) + "\n")
    records, lost = read(tmp_path, SHOWN[name], name=name)
    assert [each.object for each in records] == [each.object for each in wanted]
    assert len(wanted) == 2
    assert lost == []


def test_table_of_a_page_about_other_things_is_text():
    rows = [("Name", "Namespace", "Status"), ("a", "shop", "Bound"), ("b", "shop", "Bound")]
    lines = ["\t".join(row) for row in rows]
    assert pipe_tables.plain(lines) == lines
