"""kine tables, from SQLite, from dumps of SQL and from CSV. Vector 20.6."""

import csv
import shutil
import sqlite3
from pathlib import Path

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


def postgres_groups(path):
    """As pg_dump writes with --rows-per-insert and --on-conflict-do-nothing."""
    rows = [
        f"({at}, '{name}', {made}, {gone}, 0, {before}, 0, '\\x{content.hex()}', NULL)"
        for at, name, made, gone, before, content in ROWS
    ]
    statements = [",\n\t".join(group) for group in (rows[:3], rows[3:])]
    path.write_text("".join(
        f"INSERT INTO public.kine ({TITLES}) VALUES\n\t{each} ON CONFLICT DO NOTHING;\n\n"
        for each in statements
    ))  # fmt: skip
    return path


def mysql_replaced(path):
    """As mysqldump writes with --replace or --insert-ignore, where somebody adds to a table."""
    whole = mysql_dump(path).read_bytes()
    one = whole.index(b",(4,")
    path.write_bytes(
        whole[:one].replace(b"INSERT INTO", b"REPLACE INTO")
        + b";\nINSERT  IGNORE INTO `kine` VALUES " + whole[one + 1 :]
    )  # fmt: skip
    return path


DUMPS = [sqlite_dump, mysql_dump, mysql_hexadecimal, postgres_copy, postgres_inserts]
DUMPS += [postgres_groups, mysql_replaced]


def bare_lines(path):
    """As the archives of pg_dump hold the rows, without a statement."""
    lines = postgres_copy(path).read_text().splitlines(keepends=True)
    path.write_text("".join(line for line in lines if line[0].isdigit()))
    return path


def digits(path):
    """As sqlite3 exports hex(value)."""
    return _exported(path, lambda content: content.hex().upper())


def quoted(path):
    """As sqlite3 exports quote(value)."""
    return _exported(path, lambda content: f"X'{content.hex().upper()}'")


def _exported(path, shown):
    titles = ["id", "name", "created", "deleted", "prev_revision", "value"]
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([titles, *([*row[:5], shown(row[5])] for row in ROWS)])
    return path


def json_lines(path):
    """As row_to_json of PostgreSQL."""
    titles = ("id", "name", "created", "deleted", "prev_revision", "value")
    rows = [dict(zip(titles, (*row[:5], f"\\x{row[5].hex()}"), strict=True)) for row in ROWS]
    path.write_bytes(b"\n".join(map(msgspec.json.encode, rows)) + b"\n")
    return path


def json_array(path):
    """As sqlite3 with -json."""
    lines = json_lines(path).read_bytes().replace(b"\\\\x", b"").splitlines()
    path.write_bytes(b"[" + b",\n".join(lines) + b"]\n")
    return path


def aligned(path):
    """As psql shows a table."""
    rows = [[" id", " name ", " created ", " deleted ", " prev_revision ", " value"]]
    rows += [[f" {part} " for part in (*row[:5], f"\\x{row[5].hex()}")] for row in ROWS]
    lines = ["|".join(row).rstrip() for row in rows]
    lines.insert(1, "----+------+---------+---------+---------------+-------")
    path.write_text("\n".join([*lines, f"({len(ROWS)} rows)", "", ""]))
    return path


def with_bars(path):
    """As sqlite3 exports hex(value), and psql with -A, which counts the rows."""
    text = digits(path).read_text().replace(",", "|")
    path.write_text(f"{text}({len(ROWS)} rows)\n")
    return path


def with_tabs(path):
    """As mysql writes hex(value) into a file."""
    path.write_text(digits(path).read_text().replace(",", "\t"))
    return path


def with_marked_digits(path):
    """As mysql with --binary-as-hex writes it."""
    path = _exported(path, lambda content: f"0x{content.hex().upper()}")
    path.write_text(path.read_text().replace(",", "\t"))
    return path


EXPORTS = [aligned, with_bars, with_tabs, with_marked_digits]
EXPORTS += [export, digits, quoted, json_lines, json_array, bare_lines]


@pytest.mark.parametrize("write", [database, *EXPORTS, *DUMPS])
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


RULE = bytes.fromhex(
    "6b3873000a2b0a187265736f757263652e6b38732e696f2f7631616c70686133120f4465766963655461696e7452756c65"
    "1287010a3b0a096770752d332d656363"
    "2a2433663063396435652d303030302d343030302d383030302d303030303030303030303031380142060880f2d6ca06"
    "12480a20120f6770752e6578616d706c652e636f6d1a066e6f64652d6122056770752d3312240a0f6578616d706c652e"
    "636f6d2f6563631a094e6f4578656375746522060880f2d6ca061a002200"
)
"""Vector 20.1 of history-formats.md."""


def test_objects_below_another_prefix_are_read_and_what_others_store_there_is_not(tmp_path):
    widget = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}}
    profile = {"apiVersion": "projectcalico.org/v3", "kind": "Profile", "metadata": {"name": "p"}}
    rows = [
        ("/registry-prod/devicetaintrules/gpu-3-ecc", RULE),
        ("/registry-prod/example.com/widgets/n/w", msgspec.json.encode(widget)),
        ("/calico/resources/v3/projectcalico.org/profiles/p", msgspec.json.encode(profile)),
        ("/registry-prod/ranges/serviceips", RULE),
        ("/cilium/state/nodes/v1/default/n1", b'{"Name": "n1"}'),
    ]
    table = [(at, name, 1, 0, 0, content) for at, (name, content) in enumerate(rows, start=2)]
    table.append((7, rows[0][0], 0, 1, 2, RULE))
    records = read_records(database(tmp_path / "state.db", table))
    assert [(record.op, record.name) for record in records] == [
        (Op.ADDED, "gpu-3-ecc"),
        (Op.ADDED, "w"),
        (Op.DELETED, "gpu-3-ecc"),
    ]


def test_value_that_an_export_shows_as_it_is_names_the_way_to_export_it(tmp_path):
    path = _exported(tmp_path / "kine.csv", lambda content: content.decode()[1:])
    with pytest.raises(InputError, match=r"not in digits, as hex\(value\) gives them"):
        read_records(path)


def test_archive_of_a_dump_is_named_and_its_rows_are_read(tmp_path):
    (tmp_path / "toc.dat").write_bytes(b"PGDMP\x01\x0e\0")
    with pytest.raises(InputError, match=r"an archive of pg_dump.*pg_restore -f"):
        read_records(tmp_path / "toc.dat")
    rows = bare_lines(tmp_path / "3343.dat")
    rows.write_bytes(rows.read_bytes() + b"\\.\n\n\n")
    with open_history([tmp_path], ReadOptions()) as recorded:
        assert [each.resource_version for each in recorded.records()] == ["2", "4", "6"]
        assert [place for place, _ in recorded.left_out] == ["toc.dat"]
        assert not recorded.refused


def in_use(folder):
    """A database as it lies there while it is used: its last rows stand in its log alone."""
    source = folder / "source.db"
    database(source, ROWS[:3])
    connection = sqlite3.connect(source, isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.executemany(
        "INSERT INTO kine (id, name, created, deleted, prev_revision, value) VALUES (?,?,?,?,?,?)",
        ROWS[3:],
    )
    copy = folder / "db"
    copy.mkdir()
    for ending in ("", "-wal", "-shm"):
        shutil.copy(f"{source}{ending}", copy / f"state.db{ending}")
    connection.close()
    return copy


@pytest.mark.parametrize("form", ["folder", "file", "archive"])
def test_rows_in_the_log_beside_a_database_are_read(tmp_path, form):
    path = in_use(tmp_path)
    if form == "archive":
        path = Path(shutil.make_archive(str(tmp_path / "db"), "gztar", path))
    with open_history([path / "state.db" if form == "file" else path], ReadOptions()) as recorded:
        assert [each.resource_version for each in recorded.records()] == ["2", "4", "6"]
        assert not recorded.refused


def test_database_without_its_log_gives_its_rows_and_a_log_alone_is_lost(tmp_path):
    folder = in_use(tmp_path)
    (folder / "state.db-wal").rename(tmp_path / "other.db-wal")
    records = read_records(folder)
    assert [each.resource_version for each in records] == ["2"]
    with pytest.raises(InputError, match="the write-ahead log of a database of SQLite, whose"):
        read_records(tmp_path / "other.db-wal")


def test_other_databases_are_refused(tmp_path):
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE x (y)")
    connection.close()
    with pytest.raises(InputError, match="the table kine cannot be read: no such table"):
        read_records(path)
