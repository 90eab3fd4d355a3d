"""What `etcdctl watch --prefix` prints: writes and deletions, not only what is there."""

import base64
import json

import pytest

from app.adapters.history import unpacking
from app.adapters.history.opening import open_history
from app.adapters.history.reading import ReadOptions
from app.domain.log.records import Op
from tests.unit.history.formats.test_every_format import read as read_with_report
from tests.unit.history.test_etcdctl_simple import stored_pod
from tests.unit.history.worlds import read_records

PLACE = "/registry/pods/shop/"

LATER_NOTE = "three"
"""The note of a pod that has the name of one that is gone."""

# (what happens, name, version of the key, the note that the value has, the note that it had)
WRITES = (
    ("PUT", "a", 1, "one", None),
    ("PUT", "b", 4, "two\nDELETE\n", "one"),
    ("PUT", "a", 2, "", "one"),
    ("DELETE", "b", 0, None, "two\nDELETE\n"),
    ("DELETE", "never-seen", 0, None, None),
    ("PUT", "b", 1, LATER_NOTE, None),
    ("DELETE", "a", 0, None, ""),
)


def value(name, note):
    uid = f"u-{name}-{note == LATER_NOTE}"
    return stored_pod(name.encode(), note.encode(), uid=uid.encode())


def simple(writes, *, with_previous):
    lines = []
    for kind, name, _, note, former in writes:
        lines.append(kind.encode())
        if with_previous and former is not None:
            lines += [f"{PLACE}{name}".encode(), value(name, former)]
        lines += [f"{PLACE}{name}".encode(), b"" if note is None else value(name, note)]
    return b"\n".join(lines) + b"\n"


def pair_of(name, content, version, revision):
    key = base64.b64encode(f"{PLACE}{name}".encode()).decode()
    pair = {"key": key, "mod_revision": revision}
    if content is None:
        return pair
    return {**pair, "version": version, "value": base64.b64encode(content).decode()}


def in_json(writes, *, with_previous):
    texts = []
    for revision, (kind, name, version, note, former) in enumerate(writes, start=10):
        content = None if note is None else value(name, note)
        event = {"kv": pair_of(name, content, version, revision)}
        if kind == "DELETE":
            event["type"] = 1
        if with_previous and former is not None:
            event["prev_kv"] = pair_of(name, value(name, former), 1, revision - 1)
        texts.append(json.dumps({"Header": {"revision": revision}, "Events": [event]}))
    return "\n".join(texts).encode()


def quoted(content):
    return '"' + "".join(f"\\x{byte:02x}" for byte in content) + '"'


def in_fields(writes, *, with_previous):
    lines = []
    for revision, (kind, name, version, note, former) in enumerate(writes, start=10):
        lines += ['"ClusterID" : 7', f'"Revision" : {revision}', f'"Type" : {kind}']
        if with_previous and former is not None:
            lines += [f'"PrevKey" : "{PLACE}{name}"', f'"PrevModRevision" : {revision - 1}']
            lines += ['"PrevVersion" : 1', f'"PrevValue" : {quoted(value(name, former))}']
        content = b"" if note is None else value(name, note)
        lines += [f'"Key" : "{PLACE}{name}"', f'"ModRevision" : {revision}']
        lines += [f'"Version" : {version}', f'"Value" : {quoted(content)}']
    return "\n".join(lines).encode()


FORMS = {"simple": simple, "json": in_json, "fields": in_fields}


def course(records):
    """The notes of the pods that are there, by name, after each record that changes them."""
    there, states = {}, [{}]
    for record in records:
        if record.op is Op.DELETED:
            del there[record.name]
        elif record.object is not None:
            there[record.name] = record.object["metadata"].get("annotations", {}).get("n", "")
        if there != states[-1]:
            states.append(dict(there))
    return states


def expected(*, with_previous):
    """The same, counted from the writes alone."""
    there, states = {}, [{}]
    for kind, name, _, note, former in WRITES:
        if with_previous and former is not None and name not in there:
            there[name] = former
            states.append(dict(there))
        if kind == "PUT":
            there[name] = note
        else:
            there.pop(name, None)
        if there != states[-1]:
            states.append(dict(there))
    return states


@pytest.mark.parametrize("with_previous", [False, True], ids=["", "with what was replaced"])
@pytest.mark.parametrize("form", FORMS)
def test_course_of_a_watch_is_read(tmp_path, form, with_previous):
    path = tmp_path / "watch.txt"
    path.write_bytes(FORMS[form](WRITES, with_previous=with_previous))
    records, _, refused = read_with_report(path)
    assert course(records) == expected(with_previous=with_previous)
    assert refused == []


@pytest.mark.parametrize("form", ["json", "fields"])
def test_first_version_of_a_key_is_a_creation(tmp_path, form):
    path = tmp_path / "watch.txt"
    path.write_bytes(FORMS[form](WRITES, with_previous=False))
    created = [each.object for each in read_records(path) if each.op is Op.ADDED]
    assert [each["metadata"]["name"] for each in created] == ["a", "b"]
    assert [each["metadata"]["resourceVersion"] for each in created] == ["10", "15"]


def test_write_after_an_end_is_a_creation_where_no_version_tells_it(tmp_path):
    path = tmp_path / "watch.txt"
    path.write_bytes(simple(WRITES, with_previous=False))
    created = [each.name for each in read_records(path) if each.op is Op.ADDED]
    assert created == ["b"]


@pytest.mark.parametrize("chunk", [1, 7, 64])
def test_watch_is_read_wherever_the_file_is_cut_into_chunks(tmp_path, monkeypatch, chunk):
    path = tmp_path / "watch.txt"
    path.write_bytes(simple(WRITES, with_previous=True))
    whole = course(read_records(path))
    monkeypatch.setattr(unpacking, "CHUNK", chunk)
    assert course(read_records(path)) == whole


@pytest.mark.parametrize("end", [b"\n", b"", b"\n\n"], ids=["a line", "nothing", "two lines"])
def test_deletion_at_the_end_of_a_watch_is_read(tmp_path, end):
    path = tmp_path / "watch.txt"
    path.write_bytes(simple(WRITES, with_previous=False).rstrip(b"\n") + end)
    last = read_records(path)[-1]
    assert (last.op, last.name) == (Op.DELETED, "a")


def test_deletion_of_what_nothing_shows_is_counted(tmp_path):
    path = tmp_path / "watch.txt"
    path.write_bytes(simple(WRITES, with_previous=False))
    with open_history([path], ReadOptions()) as recorded:
        list(recorded.records())
        counted = [each for each in recorded.notes if "nothing before them shows" in each]
    assert counted == ["deletions of keys that nothing before them shows: 1"]
