"""Rows of kine as the shells of databases show them, with values that are JSON as they are."""

import csv
import io
import json

import pytest

from app.adapters.history.opening import open_history
from app.adapters.history.reading import ReadOptions
from app.domain.errors import InputError
from app.domain.log.records import Op
from tests.unit.history.test_kine import NAME, ROWS
from tests.unit.history.worlds import read_records

TITLES = ["id", "name", "created", "deleted", "create_revision", "prev_revision", "lease"]
TITLES += ["value", "old_value"]


def shown(row):
    at, name, made, gone, before, value = row
    # A rule in CEL has bars, which some shells have between cells.
    text = value.decode().replace('"n":', '"rule":"a || b","n":')
    return [str(each) for each in (at, name, made, gone, 0, before, 0, text, "")]


CELLS = [shown(row) for row in ROWS]
BARS = "".join("|".join(cells) + "\n" for cells in CELLS)


def frame(mark, rule):
    rows = [f"{mark} " + f" {mark} ".join(cells) + f" {mark}" for cells in (TITLES, *CELLS)]
    return "\n".join([rule, rows[0], rule, *rows[1:], rule, ""])


def upright(head, mark):
    rows = [
        "\n".join(f"{title:>15}{mark}{cell}" for title, cell in zip(TITLES, cells, strict=True))
        for cells in CELLS
    ]
    return "".join(f"{head.format(at)}{row}\n" for at, row in enumerate(rows, start=1))


def commas():
    file = io.StringIO()
    csv.writer(file, lineterminator="\n").writerows(CELLS)
    return file.getvalue()


def quoted(row):
    at, name, made, gone, before, value = row
    return f"{at},'{name}',{made},{gone},0,{before},0,X'{value.hex()}',NULL"


def doubled():
    lines = ["\t".join(cells).replace("\\", "\\\\") for cells in (TITLES, *CELLS)]
    return "\n".join(lines) + "\n"


def objects(indent):
    rows = [dict(zip(TITLES, cells, strict=True)) for cells in CELLS]
    return "\n".join(json.dumps(row, indent=indent) for row in rows)


INSERTS = "".join(
    'INSERT INTO "table" VALUES({},{},{},{},{},{},{},{},NULL);\n'.format(
        cells[0], f"'{cells[1]}'", *cells[2:7], "'" + cells[7].replace("'", "''") + "'"
    )
    for cells in CELLS
)
FORMS = {
    "sqlite3": BARS,
    "sqlite3 behind its prompt": f"sqlite> select * from kine;\n{BARS}sqlite> \n",
    "sqlite3 in a fence": f"$ sqlite3 state.db\n```\n{BARS}```\n$ \n",
    "in another order": "".join("|".join(cells) + "\n" for cells in reversed(CELLS)),
    "sqlite3 -header": "|".join(TITLES) + "\n" + BARS,
    "with the mark of Windows": "\ufeff" + BARS.replace("\n", "\r\n"),
    "sqlite3 -csv": commas(),
    "sqlite3 -line": upright("\n", " = "),
    "sqlite3 -box": frame("\u2502", "\u251c\u2500\u2500\u253c\u2500\u2500\u2524"),
    "sqlite3 -quote": "\n".join(map(quoted, ROWS)) + "\n",
    "sqlite3 .mode insert": INSERTS,
    "mysql": doubled(),
    "mysql -t": frame("|", "+----+------+"),
    "mysql \\G": upright("******** {}. row ********\n", ": ") + "5 rows in set (0.00 sec)\n",
    "psql -x": upright("-[ RECORD {} ]---+-----\n", " | "),
    "jq": objects(2),
    "json behind a command": "$ sqlite3 -json state.db\n" + objects(None),
}


@pytest.mark.parametrize("form", FORMS)
def test_deletion_in_rows_as_a_shell_shows_them_is_read(tmp_path, form):
    path = tmp_path / "kine.txt"
    path.write_text(FORMS[form])
    records = read_records(path)
    assert [(each.op, each.resource_version) for each in records] == [
        (Op.ADDED, "2"),
        (Op.MODIFIED, "4"),
        (Op.DELETED, "6"),
    ]
    assert records[1].object["spec"]["n"] == 4


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            "".join("|".join([*each[:4], each[5], each[7]]) + "\n" for each in CELLS),
            r"no titles, and 6 cells where the table has 9 columns; export id, name",
        ),
        (
            "".join("  ".join(each) + "\n" for each in CELLS),
            r"spaces alone between their cells; export id, name",
        ),
    ],
)
def test_rows_that_do_not_say_what_a_cell_is_are_refused(tmp_path, text, problem):
    path = tmp_path / "kine.txt"
    path.write_text(text)
    with pytest.raises(InputError, match=problem):
        read_records(path)


PROSE = "# words above it\n" * 900
WATCHED = f"PUT\n{NAME}\n{CELLS[1][7]}\nDELETE\n{NAME}\n\n"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (BARS, "rows of kine behind other text"),
        (FORMS["sqlite3 -line"], "rows of kine behind other text"),
        (WATCHED, "writes of etcdctl watch behind other text"),
    ],
)
def test_deletions_far_behind_other_text_are_named_as_lost(tmp_path, text, problem):
    path = tmp_path / "notes.txt"
    path.write_text(PROSE + text)
    with open_history([path], ReadOptions()) as recorded:
        assert all(each.op is not Op.DELETED for each in recorded.records())
        assert any(problem in why for _, why in recorded.refused_places)


def of_docker(text):
    return "".join(
        json.dumps({"log": f"{line}\n", "stream": "stdout", "time": f"{STAMP}Z"}) + "\n"
        for line in text.splitlines()
    )


STAMP = "2026-01-02T03:04:05.000000001"
BEFORE = [
    of_docker,
    lambda text: "".join(f"{STAMP}Z stdout F {line}\n" for line in text.splitlines()),
    lambda text: "".join(f"> {line}\n" for line in text.splitlines()),
    lambda text: "".join(f"{STAMP}Z {line}\n" for line in text.splitlines()),
]


@pytest.mark.parametrize("put", BEFORE)
@pytest.mark.parametrize("text", [BARS, WATCHED])
def test_deletions_behind_what_each_line_begins_with_are_lost_in_words(tmp_path, put, text):
    path = tmp_path / "collected.log"
    path.write_text(put(text))
    try:
        with open_history([path], ReadOptions()) as recorded:
            is_read = any(each.op is Op.DELETED for each in recorded.records())
            losses = [why for _, why in recorded.refused_places]
    except InputError as problem:
        is_read, losses = False, [str(problem)]
    assert is_read or any("no deletion is read" in why for why in losses)


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_writes_of_a_watch_are_read_below_its_command(tmp_path, ends):
    path = tmp_path / "watch.txt"
    path.write_bytes(f"$ etcdctl watch --prefix /\n{WATCHED}".replace("\n", ends).encode())
    assert [each.op for each in read_records(path)][-1] is Op.DELETED


def test_deletion_of_what_no_row_shows_is_counted(tmp_path):
    path = tmp_path / "kine.txt"
    other = [*CELLS[1][:7], CELLS[1][7].replace('"name":"a"', '"name":"b"'), ""]
    other[1] = NAME.replace("/n/a", "/n/b")
    path.write_text("".join("|".join(each) + "\n" for each in (CELLS[0], other, CELLS[4])))
    with open_history([path], ReadOptions()) as recorded:
        assert [each.name for each in recorded.records()] == ["b"]
        assert any("deletions of keys that nothing before" in note for note in recorded.notes)
