"""What a real etcd wrote is read as it was written; `real_etcd.py` made the files."""

import gzip
import json

import pytest

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
