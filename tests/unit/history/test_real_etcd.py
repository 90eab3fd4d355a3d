"""What a real etcd wrote is read as it was written; `real_etcd.py` made the files."""

import gzip
import json
import struct

import pytest

from app.adapters.history.opening import open_history
from app.adapters.history.reading import ReadOptions
from app.adapters.history.storage.write_logs import EtcdKeys, LoggedRequests, StoredKey, writes
from app.domain.errors import InputError
from app.domain.log.records import Op
from tests.unit.history.real_etcd import FOLDER
from tests.unit.history.worlds import read_records

VERSIONS = ("3.4.23", "3.5.1")


def saved(name):
    return gzip.decompress((FOLDER / f"{name}.gz").read_bytes())


def expected(version):
    """The records that the writes have to give, and the objects that exist at the end."""
    made = json.loads(saved(f"{version}.writes.json"))
    before, after, live = {}, [], {}
    for revision, operation, name, pod in made["writes"]:
        record = (operation, name, str(revision), pod)
        if pod is None:
            live.pop(name)
        else:
            live[name] = (str(revision), pod)
        if revision > made["compacted"]:
            after.append(record)
        elif pod is None:
            before.pop(name)
        else:
            before[name] = ("BASELINE", *record[1:])
    baseline = sorted(before.values(), key=lambda each: int(each[2]))
    return [*baseline, *after], live


def read(folder, name, version):
    path = folder / name
    path.write_bytes(saved(f"{version}.{name}"))
    for record in read_records(path):
        pod = None
        if record.op is not Op.DELETED:
            pod = {**record.object, "metadata": dict(record.object["metadata"])}
            pod["metadata"].pop("resourceVersion", None)
        yield record.op.name, record.name, record.resource_version, pod


@pytest.mark.parametrize("version", VERSIONS)
def test_snapshot_gives_every_write_since_the_compaction_and_the_state_before(tmp_path, version):
    records, _ = expected(version)
    assert {"BASELINE", "ADDED", "MODIFIED", "DELETED"} == {record[0] for record in records}
    assert list(read(tmp_path, "db", version)) == records


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("form", ["json", "fields"])
def test_printed_keys_give_the_objects_that_exist(tmp_path, version, form):
    _, live = expected(version)
    printed = {each[1]: each[2:] for each in read(tmp_path, f"get.{form}", version)}
    assert printed == live


def folder_behind(folder):
    """A data folder whose database is behind its log."""
    for name, place in (("behind.db", "snap/db"), ("behind.wal", f"wal/{'0' * 16}-{'0' * 16}.wal")):
        path = folder / "member" / place
        path.parent.mkdir(parents=True)
        path.write_bytes(saved(f"3.5.1.{name}"))
    return folder


def compared(record):
    """What two copies of a store have in common of a write; whether a key was there is compared."""
    pod = None if record.op is Op.DELETED else record.object
    return record.op, record.name, record.resource_version, pod


@pytest.mark.parametrize("named", ["folder", "database"])
def test_log_of_a_data_folder_gives_the_writes_that_its_database_lacks(tmp_path, named):
    snapshot = tmp_path / "after.db"
    snapshot.write_bytes(saved("3.5.1.after.db"))
    behind = tmp_path / "behind.db"
    behind.write_bytes(saved("3.5.1.behind.db"))
    folder = folder_behind(tmp_path / "data")
    path = folder if named == "folder" else folder / "member" / "snap" / "db"
    expected_ = list(map(compared, read_records(snapshot)))
    assert list(map(compared, read_records(path))) == expected_
    assert len(list(read_records(behind))) < len(expected_) / 2


@pytest.mark.parametrize("part", [0.1, 0.5, 0.903, 0.99])
def test_log_that_breaks_off_gives_the_writes_before_and_says_what_it_does_not_know(tmp_path, part):
    folder = folder_behind(tmp_path / "data")
    whole = list(map(compared, read_records(folder)))
    (log,) = (folder / "member" / "wal").iterdir()
    content = log.read_bytes()
    log.write_bytes(content[: int(len(content) * part)])
    with open_history([folder], ReadOptions()) as recorded:
        records = list(map(compared, recorded.records()))
        said = " ".join(why for _, why in recorded.refused_places)
    assert records == whole[: len(records)]
    assert len(records) < len(whole)
    requests = LoggedRequests()
    requests.read(log.read_bytes())
    assert ("at the end of the log" in said) == (requests.uncommitted > 0)


def test_log_that_lacks_an_entry_gives_the_writes_before_it_and_says_so():
    requests = LoggedRequests()
    requests.read(saved("3.5.1.behind.wal"))
    del requests.by_index[120]
    after = requests.after(117, "wal")
    assert [next(after), next(after)] == [requests.by_index[118], requests.by_index[119]]
    with pytest.raises(InputError, match="the log of etcd lacks its entry 120"):
        next(after)


def logged(index: int, request: bytes) -> bytes:
    """The record of an entry in a log of etcd."""
    entry = b"\x18" + varint(index) + b"\x22" + varint(len(request)) + request
    record = b"\x08\x02\x1a" + varint(len(entry)) + entry
    return struct.pack("<q", len(record)) + record


def varint(number: int) -> bytes:
    low, rest = number & 127, number >> 7
    return bytes((low | 128,)) + varint(rest) if rest else bytes((low,))


@pytest.mark.parametrize(
    ("written", "known"),
    [
        ([(1, b"a"), (2, b"b"), (3, b"c"), (2, b"d"), (3, b"e")], {1: b"a", 2: b"d", 3: b"e"}),
        ([(1, b"a"), (2, b"b"), (3, b"c"), (1, b"d")], {1: b"d"}),
        ([(2**60, b"a"), (1, b"b"), (2, b"c")], {1: b"b", 2: b"c"}),
    ],
)
def test_entry_of_a_later_leader_replaces_all_from_its_index_on(written, known):
    """A damaged index may be any number: what it replaces is not counted down to."""
    requests = LoggedRequests()
    requests.read(b"".join(logged(index, request) for index, request in written))
    assert requests.by_index == known


def test_request_that_asks_for_more_than_is_known_of_a_key_ends_the_reading():
    # A transaction that compares the value of the key `a`.
    compared_value = bytes.fromhex("32090a0710031a01613a00")
    store = EtcdKeys(5, {"a": StoredKey(2, 5, 1, 0)}, set())
    with pytest.raises(InputError, match="compares values, and what follows is not known"):
        list(writes(store, [compared_value], "wal"))


def test_log_without_its_database_is_lost_by_name(tmp_path):
    folder = folder_behind(tmp_path / "data")
    (folder / "member" / "snap" / "db").unlink()
    with pytest.raises(InputError, match="write-ahead log of etcd, whose database is not beside"):
        read_records(folder)
