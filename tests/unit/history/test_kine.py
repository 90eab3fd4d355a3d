"""kine tables, from SQLite, from dumps of SQL and from CSV. Vector 20.6."""

import csv
import sqlite3

import msgspec
import pytest

from app.adapters.history.opening import open_history
from app.adapters.history.reading import ReadOptions
from app.domain.errors import InputError
from app.domain.log.records import Op
from tests.unit.history.worlds import read_records

NAME = "/registry/resourceclaims/n/a"


def value(number):
    return msgspec.json.encode(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {"name": "a", "namespace": "n", "uid": "u"},
            "spec": {"n": number, "text": 'it\'s \\ "a"\nb'},
        }
    )


BROKEN = "the dump breaks off or is damaged in a row"

ROWS = [
    (1, "compact_rev_key", 1, 0, 0, b""),
    (2, NAME, 1, 0, 0, value(2)),
    (3, "gap-3", 0, 1, 0, b""),
    (4, NAME, 0, 0, 2, value(4)),
    (6, NAME, 0, 1, 4, value(4)),
]


def database(path, rows=ROWS):
    with sqlite3.connect(path) as connection:
        connection.execute(
            "CREATE TABLE kine (id INTEGER PRIMARY KEY, name TEXT, created INT, deleted INT,"
            " create_revision INT, prev_revision INT, lease INT, value BLOB, old_value BLOB)"
        )
        connection.executemany(
            "INSERT INTO kine (id, name, created, deleted, prev_revision, value)"
            " VALUES (?,?,?,?,?,?)",
            rows,
        )
    connection.close()
    return path


def export(path, rows=ROWS):
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "name", "created", "deleted", "prev_revision", "value"])
        writer.writerows([*row[:5], f"\\x{row[5].hex()}"] for row in rows)
    return path


TITLES = "id, name, created, deleted, create_revision, prev_revision, lease, value, old_value"


def sqlite_dump(path):
    """What sqlite3 itself writes."""
    with sqlite3.connect(database(path.with_suffix(".db"))) as connection:
        path.write_text("\n".join(connection.iterdump()) + "\n")
    connection.close()
    return path


def mysql_dump(path):
    """As mysqldump writes several rows in a statement: with a backslash before some letters."""

    def cell(content):
        for letter, escaped in ((b"\\", b"\\\\"), (b"'", b"\\'"), (b'"', b'\\"'), (b"\n", b"\\n")):
            content = content.replace(letter, escaped)
        return b"_binary '" + content + b"'"

    rows = [
        b"(%d,'%s',%d,%d,0,%d,0,%s,NULL)" % (at, name.encode(), made, gone, before, cell(content))
        for at, name, made, gone, before, content in ROWS
    ]
    path.write_bytes(
        b"-- MySQL dump 10.13\nCREATE TABLE `kine` (\n  `id` bigint\n);\n"
        + b"INSERT INTO `kine` VALUES " + b",".join(rows) + b";\nUNLOCK TABLES;\n"
    )  # fmt: skip
    return path


def mysql_hexadecimal(path):
    """As mysqldump writes with --hex-blob and --complete-insert, columns in another order."""
    rows = [
        f"(0x{content.hex()},{at},'{name}',{made},{gone},{before})" if content else
        f"('',{at},'{name}',{made},{gone},{before})"
        for at, name, made, gone, before, content in ROWS
    ]  # fmt: skip
    columns = "(`value`, `id`, `name`, `created`, `deleted`, `prev_revision`)"
    path.write_text(f"INSERT INTO `kine` {columns} VALUES\n" + ",\n".join(rows) + ";\n")
    return path


def postgres_copy(path):
    lines = [
        f"{at}\t{name}\t{made}\t{gone}\t0\t{before}\t0\t\\\\x{content.hex()}\t\\N"
        for at, name, made, gone, before, content in ROWS
    ]
    path.write_text(
        f"--\nCOPY public.kine ({TITLES}) FROM stdin;\n" + "\n".join(lines) + "\n\\.\n\nSELECT 1;\n"
    )
    return path


def postgres_inserts(path):
    path.write_text("".join(
        f"INSERT INTO public.kine VALUES ({at}, '{name}', {made}, {gone}, 0, {before}, 0, "
        f"'\\x{content.hex()}', NULL);\n"
        for at, name, made, gone, before, content in ROWS
    ))  # fmt: skip
    return path


DUMPS = [sqlite_dump, mysql_dump, mysql_hexadecimal, postgres_copy, postgres_inserts]


@pytest.mark.parametrize("write", [database, export, *DUMPS])
def test_rows_become_changes(tmp_path, write):
    names = {database: "state.db", export: "kine.csv"}
    path = write(tmp_path / names.get(write, "kine.sql"))
    with open_history([path], ReadOptions()) as recorded:
        records = list(recorded.records())
        assert any("1 ids are missing" in note for note in recorded.notes)
    assert [(record.op, record.resource_version) for record in records] == [
        (Op.ADDED, "2"),
        (Op.MODIFIED, "4"),
        (Op.DELETED, "6"),
    ]
    assert records[1].object["spec"] == {"n": 4, "text": 'it\'s \\ "a"\nb'}
    assert records[2].object["spec"] == records[1].object["spec"]


def test_rows_before_the_compaction_are_baseline(tmp_path):
    rows = [(1, "compact_rev_key", 1, 0, 4, b""), *ROWS[1:]]
    records = read_records(database(tmp_path / "state.db", rows))
    assert [(record.op, record.resource_version) for record in records] == [
        (Op.BASELINE, "4"),
        (Op.DELETED, "6"),
    ]


@pytest.mark.parametrize("write", DUMPS)
def test_dump_that_breaks_off_in_a_row_gives_the_rows_before_and_says_so(tmp_path, write):
    path = write(tmp_path / "kine.sql")
    whole = path.read_bytes()
    path.write_bytes(whole[: whole.rindex(NAME.encode()) + len(NAME) + 4])
    with open_history([path], ReadOptions()) as recorded:
        assert [each.resource_version for each in recorded.records()] == ["2", "4"]
        assert [why for _, why in recorded.refused_places] == [BROKEN]


@pytest.mark.parametrize("write", [sqlite_dump, mysql_hexadecimal, postgres_copy, postgres_inserts])
def test_dump_with_a_damaged_value_gives_the_rows_before_and_says_so(tmp_path, write):
    path = write(tmp_path / "kine.sql")
    whole, digits = path.read_bytes(), value(4).hex().encode()
    place = whole.lower().rindex(digits) + len(digits) - 1
    path.write_bytes(whole[:place] + whole[place + 1 :])
    with open_history([path], ReadOptions()) as recorded:
        assert [each.resource_version for each in recorded.records()] == ["2", "4"]
        assert [why for _, why in recorded.refused_places] == [BROKEN]


def test_other_databases_are_refused(tmp_path):
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE x (y)")
    connection.close()
    with pytest.raises(InputError, match="the table kine cannot be read: no such table"):
        read_records(path)
