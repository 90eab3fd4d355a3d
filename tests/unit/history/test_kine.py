"""kine tables, from SQLite and from CSV. Vector 20.6."""

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
            "spec": {"n": number},
        }
    )


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


@pytest.mark.parametrize("write", [database, export])
def test_rows_become_changes(tmp_path, write):
    path = write(tmp_path / ("state.db" if write is database else "kine.csv"))
    with open_history([path], ReadOptions()) as recorded:
        records = list(recorded.records())
        assert any("1 ids are missing" in note for note in recorded.notes)
    assert [(record.op, record.resource_version) for record in records] == [
        (Op.ADDED, "2"),
        (Op.MODIFIED, "4"),
        (Op.DELETED, "6"),
    ]
    assert records[1].object["spec"] == {"n": 4}
    assert records[2].object["spec"] == {"n": 4}


def test_rows_before_the_compaction_are_baseline(tmp_path):
    rows = [(1, "compact_rev_key", 1, 0, 4, b""), *ROWS[1:]]
    records = read_records(database(tmp_path / "state.db", rows))
    assert [(record.op, record.resource_version) for record in records] == [
        (Op.BASELINE, "4"),
        (Op.DELETED, "6"),
    ]


def test_other_databases_are_refused(tmp_path):
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE x (y)")
    connection.close()
    with pytest.raises(InputError, match="the table kine cannot be read: no such table"):
        read_records(path)
