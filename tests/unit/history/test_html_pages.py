"""Pages of GitHub that were saved: a file, a gist, a change, and what pages leave out."""

import html
import json

import pytest

from app.adapters.history.limits import DEFAULT_LIMITS
from app.adapters.history.mixtures import take_apart
from app.domain.errors import InputError
from app.domain.log.records import Op
from tests.unit.history.test_wrapped_texts import CLAIM, keys, read

LINES = CLAIM.splitlines()
ONE = [(Op.ADDED, "ResourceClaim", "shop", "one")]


def page(body):
    return f"<!DOCTYPE html>\n<html><head><title>x</title></head><body>\n{body}\n</body></html>\n"


def coloured(line):
    """A line as a viewer colours it."""
    name, colon, value = line.partition(":")
    shown = f'<span class="pl-ent">{html.escape(name)}</span>{colon}{html.escape(value)}'
    return shown if colon else html.escape(line)


def script(tree):
    return f'<script type="application/json" data-target="x">{json.dumps(tree)}</script>'


def table(rows, of_rows="diff-table"):
    cells = "".join(f"<tr><td>{at}</td>{row}</tr>\n" for at, row in enumerate(rows, start=1))
    return f'<p>a.yaml</p><table class="{of_rows}"><tbody>\n{cells}</tbody></table>'


def cell(line, sign="addition", marker="", text=None):
    """A cell of a change; older pages have the sign in the text, newer ones in an attribute."""
    inner = coloured(line) if text is None else text
    attribute = f' data-code-marker="{marker}"' if marker else ""
    return (
        f'<td class="blob-code blob-code-{sign}">\n'
        f'  <span class="blob-code-inner blob-code-marker"{attribute}>{inner}</span>\n</td>'
    )


def in_columns(line):
    left = '<td class="blob-code blob-code-empty" data-split-side="left"></td>'
    return left + cell(line, marker="+")


def in_boxes(line):
    return (
        '<td class="diff-text-cell"><code class="diff-text syntax-highlighted-line addition">'
        f'<span class="diff-text-marker">+</span><div class="diff-text-inner">{coloured(line)}'
        "</div></code></td>"
    )


HUNK = f'<td class="blob-code blob-code-inner blob-code-hunk">@@ -0,0 +1,{len(LINES)} @@</td>'
FILE = [
    f'<td id="LC1" class="blob-code blob-code-inner js-file-line">{coloured(x)}</td>' for x in LINES
]
ADDED = [
    {"type": "HUNK", "text": "@@ -0,0 +1,9 @@"},
    *({"type": "ADDITION", "text": x} for x in LINES),
]
PAGES = {
    "a file as JSON": script({"payload": {"blob": {"rawLines": LINES, "large": False}}}),
    "a file as JSON and as a text": script({"payload": {"blob": {"rawLines": LINES}}})
    + f'<textarea id="read-only-cursor-text-area">{html.escape(CLAIM)}</textarea>',
    "a file as a table": table(FILE, "highlight js-file-line-container"),
    "an added file": table([HUNK, *(cell(x, marker="+") for x in LINES)]),
    "an added file, signs in the text": table(
        [HUNK, *(cell("", text=f"+{coloured(x)}") for x in LINES)]
    ),
    "an added file in columns": table([HUNK, *map(in_columns, LINES)]),
    "an added file in boxes": table([*map(in_boxes, LINES)]),
    "an added file as JSON": script({"props": {"entries": [{"diffLines": ADDED}]}}),
    "an added file as JSON, signs in the text": script(
        {"diffLines": [ADDED[0], *({**x, "text": f"+{x['text']}"} for x in ADDED[1:])]}
    ),
    "a pasted text": f"<form><textarea rows=9>{html.escape(CLAIM)}</textarea></form>",
}


@pytest.mark.parametrize("name", PAGES)
def test_file_is_read_from_the_page_that_shows_it(tmp_path, name):
    records, lost = read(tmp_path, page(PAGES[name]))
    assert keys(records) == ONE
    assert records[0].object["spec"]["devices"]["requests"][0]["name"] == "gpu"
    assert lost == []


CHANGES = {
    "a changed file": [cell(x, "context", " ") for x in LINES[:-1]] + [cell(LINES[-1], marker="+")],
    "a changed file, signs in the text": [
        *(cell("", "context", text=f" {coloured(x)}") for x in LINES[:-1]),
        cell("", text=f"+{coloured(LINES[-1])}"),
    ],
    "a file that was taken away": [cell(x, "deletion", "-") for x in LINES],
}


@pytest.mark.parametrize("name", CHANGES)
def test_change_of_a_file_is_no_document(tmp_path, name):
    with pytest.raises(InputError, match="no text, file or change that it shows holds objects"):
        read(tmp_path, page(table([HUNK, *CHANGES[name]])))


def test_two_files_of_a_change_are_two(tmp_path):
    other = [line.replace("name: one", "name: two") for line in LINES]
    rows = [table([HUNK, *(cell(x, marker="+") for x in lines)]) for lines in (LINES, other)]
    records, _ = read(tmp_path, page("\n".join(rows)))
    assert [record.name for record in records] == ["one", "two"]


def test_change_that_the_page_does_not_show_is_lost(tmp_path):
    shown = table([HUNK, *(cell(x, marker="+") for x in LINES)])
    hidden = "<p>Large diffs are not rendered by default.</p>"
    records, lost = read(tmp_path, page(f"{shown}\n{hidden}"))
    assert keys(records) == ONE
    line = page(f"{shown}\n{hidden}").splitlines().index(hidden) + 1
    assert lost == [f"text:{line}: the page leaves out a text here"]


def test_damage_in_a_file_is_named_with_its_line_in_the_file(tmp_path):
    damaged = [*LINES[:3], "  name: one: two", *LINES[4:]]
    body = script({"rawLines": [*damaged, "---", *LINES]})
    records, lost = read(tmp_path, page(body))
    assert keys(records) == ONE
    assert lost[0].startswith("text:3:4:12: it is not YAML")


def test_script_that_nests_deeply_is_bounded():
    tree: dict = {"rawLines": LINES}
    for _ in range(200):
        tree = {"a": tree}
    assert take_apart(page(script(tree)).encode(), "x", DEFAULT_LIMITS).parts == []


def test_file_in_a_page_that_was_cut_is_lost(tmp_path):
    body = f"<pre>{CLAIM}</pre>\n{script({'rawLines': ['kind: Pod']})}".removesuffix("]}</script>")
    records, lost = read(tmp_path, f"<!DOCTYPE html>\n<html><body>\n{body}")
    assert keys(records) == ONE
    assert lost == [f"text:{4 + len(LINES)}: the page leaves out a text here"]


def test_command_in_a_file_is_not_of_the_tables_of_the_page(tmp_path):
    lines = [*["prose"] * 40, "$ kubectl get pods -n shop"]
    pods = "NAME   READY   STATUS    RESTARTS   AGE\nweb    1/1     Running   0          9s\n"
    shown = table([f'<td class="js-file-line">{line}</td>' for line in lines])
    records, _ = read(tmp_path, page(f"{shown}<pre>{pods}</pre>"))
    assert [(record.namespace, record.name) for record in records] == [("default", "web")]


@pytest.mark.parametrize("part", ["<a ", "<a x='", "<!--x"])
def test_page_of_parts_without_an_end_is_read_to_a_bound(tmp_path, part):
    """To look for the end of each in the whole rest takes 4 times as long for twice as many."""
    body = f"<pre>{CLAIM}</pre>\n{part * 2_000}"
    records, lost = read(tmp_path, f"<!DOCTYPE html>\n<html><body>\n{body}")
    assert keys(records) == ONE
    assert lost == [f"text:{4 + len(LINES)}: the page leaves out a text here"]


XHTML = (
    '<?xml version="1.0" encoding="UTF-8"?>\n'
    '<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.0 Strict//EN" "xhtml1-strict.dtd">\n'
)


@pytest.mark.parametrize(
    "begin", [XHTML, XHTML.splitlines()[0], "<!-- saved -->\n<!-- again -->\n", "\ufeff"]
)
def test_page_is_one_whatever_is_declared_before_it(begin, tmp_path):
    text = f"{begin}<html><body>\n<p>kind: prose</p>\n<pre>{html.escape(CLAIM)}</pre></body></html>"
    records, lost = read(tmp_path, text, name="bug.xhtml")
    assert keys(records) == ONE
    assert lost == []


def test_document_that_is_no_page_stays_text(tmp_path):
    records, _ = read(tmp_path, f'<?xml version="1.0"?>\n<!-- of <html> -->\n```\n{CLAIM}```\n')
    assert keys(records) == ONE


def test_text_that_a_page_shows_twice_in_one_way_is_there_twice(tmp_path):
    """What is printed again says that it is so again."""
    titles = "NAME   STATE                AGE\n"
    states = ("pending", "allocated,reserved", "pending")
    blocks = "".join(f"<pre>{titles}one    {state:20} 5s\n</pre>\n" for state in states)
    command = "<p>$ kubectl get resourceclaims -n shop</p>\n"
    records, _ = read(tmp_path, page(command + blocks), name="bug.html")
    shown = [each.object["status"].get("allocation") for each in records]
    assert shown == [None, {}, None]


def test_text_that_a_page_holds_in_two_ways_counts_once(tmp_path):
    text = html.escape(CLAIM)
    body = f"<pre>{text}</pre>\n<textarea>{text}</textarea>\n"
    taken = take_apart(page(body).encode(), "x", DEFAULT_LIMITS)
    assert len(taken.parts) == 1


PART_BEGINS = {
    "a cell": '<td class="comment-body markdown-body">\n<p dir="auto">kind: prose</p>\n{}</td>\n',
    "a text": '<p dir="auto">What <strong>happened</strong>: kind: Pod</p>\n{}',
    "the text itself": "{}",
}


@pytest.mark.parametrize("around", PART_BEGINS.values(), ids=PART_BEGINS)
def test_part_of_a_page_is_read_like_a_page(around, tmp_path):
    text = "\n".join(map(coloured, LINES))
    block = f'<div class="highlight" dir="auto"><pre class="notranslate"><code>{text}</code></pre>'
    records, lost = read(tmp_path, around.format(f"{block}</div>\n"), name="comment.html")
    assert keys(records) == ONE
    assert lost == []


PASTED = (
    "NAME   READY   STATUS    RESTARTS   AGE   IP       NODE\n"
    "web    0/1     Pending   0          1m    <none>   <none>\n"
)


@pytest.mark.parametrize(
    ("begin", "end"),
    [
        ("<pre><code>", "</code></pre>"),
        ("<pre>", "</pre>"),
        ('<pre lang="yaml"><code>', "</code></pre>"),
    ],
)
def test_text_between_elements_that_a_person_wrote_is_taken_as_it_is(begin, end, tmp_path):
    """What somebody pastes between them is not escaped: `<none>` is a cell and no element."""
    text = f"{begin}{CLAIM}{end}\n\nand\n\n{begin}{PASTED}{end}\n"
    records, lost = read(tmp_path, text)
    assert keys(records) == [*ONE, (Op.BASELINE, "Pod", "default", "web")]
    assert lost == []
