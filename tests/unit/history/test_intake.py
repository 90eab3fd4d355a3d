"""What cannot be folded later is refused while importing, with file, line and field."""

import pytest

from app.adapters.history.formats.bundle import BundleReader
from app.adapters.history.limits import DEFAULT_LIMITS
from app.bootstrap.rules import rules_for
from app.domain.errors import InputError
from app.domain.log.records import Op
from app.domain.objects.profile import Profile
from app.domain.values import timestamps
from app.domain.values.timestamps import Instant
from tests.fuzz import stories
from tests.unit.history.worlds import (
    PODS,
    audit,
    audit_records,
    brief,
    read_records,
    tree,
    write_lines,
)

RULES = rules_for(Profile())


@pytest.mark.parametrize("field", ["requestReceivedTimestamp", "stageTimestamp"])
@pytest.mark.parametrize(
    "time",
    [
        "9999-12-31T23:59:59.999999Z",
        "9999-01-01T00:00:00Z",
        "0000-01-01T00:00:00.000000Z",
        "0999-01-01T00:00:00.000000Z",
        "1969-12-31T23:59:59.999999Z",
        "10000-01-01T00:00:00Z",
        "9999-12-31T23:59:59-23:59",
        "2026-02-30T00:00:00.000000Z",
        "yesterday",
    ],
)
def test_time_that_no_log_can_hold_is_refused_with_line_and_field(tmp_path, field, time):
    good = audit("create", tree(PODS, "a", rv=3), type_=PODS, second=1)
    bad = audit("create", tree(PODS, "b", rv=4), type_=PODS, second=2) | {field: time}
    with pytest.raises(InputError, match=field) as refusal:
        audit_records(tmp_path, good, bad, rules=RULES)
    assert refusal.value.place == "audit.log:2"
    kept = audit_records(tmp_path, good, bad, rules=RULES, keep_going=True)
    assert brief(kept) == [("ADDED", "a")]


def test_time_of_an_object_that_no_log_can_hold_does_not_date_the_record(tmp_path):
    metadata = {"deletionTimestamp": "9999-12-31T23:59:59Z", "deletionGracePeriodSeconds": 2**62}
    taint = {"key": "k", "effect": "NoExecute", "timeAdded": "9999-12-31T23:59:59Z"}
    node = tree(("", "v1", "nodes", "Node"), "n", metadata=metadata, spec={"taints": [taint]})
    node["metadata"].pop("namespace")
    node["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
    path = write_lines(tmp_path / "nodes.jsonl", [{"type": "ADDED", "object": node}])
    record = read_records(path, rules=RULES)[0]
    assert record.observed_at == timestamps.parse("2026-01-01T00:00:00Z")


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("metadata", {"metadata": "x"}),
        ("metadata", {"metadata": ["x"]}),
        ("metadata.name", {"metadata": {"name": 5}}),
        ("metadata.uid", {"metadata": {"name": "b", "uid": 5}}),
        ("name", {"metadata": {"name": ""}}),
        ("metadata.namespace", {"metadata": {"name": "b", "namespace": 5}}),
        ("metadata.labels", {"metadata": {"name": "b", "labels": {"a": 5}}}),
        ("metadata.finalizers", {"metadata": {"name": "b", "finalizers": "x"}}),
        ("metadata.ownerReferences", {"metadata": {"name": "b", "ownerReferences": [5]}}),
        ("kind", {"kind": 5}),
        ("spec", {"spec": [1]}),
        ("spec.containers", {"spec": {"containers": {"name": "c"}}}),
        ("spec.containers.name", {"spec": {"containers": [{"name": 5}]}}),
        ("spec.terminationGracePeriodSeconds", {"spec": {"terminationGracePeriodSeconds": 2**63}}),
        ("spec.overhead", {"spec": {"overhead": {"cpu": "abc"}}}),
        ("status.startTime", {"status": {"startTime": "now"}}),
        ("status.conditions", {"status": {"conditions": {"type": "Ready"}}}),
    ],
)
def test_object_of_wrong_types_is_refused_with_line_and_field(tmp_path, field, change):
    changed = tree(PODS, "b", rv=4)
    metadata = change.get("metadata")
    if isinstance(metadata, dict):
        change = {"metadata": changed["metadata"] | metadata}
    lines = [
        audit("create", tree(PODS, "a", rv=3), type_=PODS, second=1),
        audit("create", changed | change, type_=PODS, name="b", second=2),
    ]
    with pytest.raises(InputError) as refusal:
        audit_records(tmp_path, *lines, rules=RULES)
    assert refusal.value.place == "audit.log:2"
    assert field.rpartition(".")[2] in refusal.value.problem
    kept = audit_records(tmp_path, *lines, rules=RULES, keep_going=True)
    assert ("ADDED", "a") in brief(kept)
    assert all(record.op is not Op.ADDED or record.name == "a" for record in kept)


@pytest.mark.parametrize("name", ["a\0b", "x" * 254, "é" * 127])
def test_name_that_no_database_can_hold_is_refused(tmp_path, name):
    line = audit("create", tree(PODS, name, rv=4), type_=PODS, second=2)
    with pytest.raises(InputError, match="name") as refusal:
        audit_records(tmp_path, line, rules=RULES)
    assert refusal.value.place == "audit.log:1"


@pytest.mark.parametrize(
    "damage", [b'"\xc3("', b'{"metadata":{"generation":' + b"9" * 5_000 + b"}}", b'{"a":1e999}']
)
def test_body_that_cannot_be_read_is_refused_with_its_line(tmp_path, damage):
    path = write_lines(
        tmp_path / "audit.log",
        [
            audit("create", tree(PODS, "a", rv=3), type_=PODS, second=1),
            audit("update", {"damage": 0}, type_=PODS, name="a", second=2),
        ],
    )
    path.write_bytes(path.read_bytes().replace(b'{"damage": 0}', damage))
    with pytest.raises(InputError) as refusal:
        read_records(path, rules=RULES)
    assert refusal.value.place == "audit.log:2"


def test_number_of_too_many_digits_is_refused_in_words(tmp_path):
    path = tmp_path / "dump.json"
    text = '{"apiVersion": "v1", "kind": "Pod", "metadata": {"generation": %s}}'
    path.write_text("\n".join(text % digits for digits in ("1", "9" * 5_000)))
    with pytest.raises(InputError) as refusal:
        read_records(path, rules=RULES)
    assert refusal.value.place.startswith("dump.json")


def test_patch_that_makes_an_object_of_wrong_types_is_a_gap(tmp_path):
    lines = [
        audit("create", tree(PODS, "a", rv=3), type_=PODS, second=1),
        audit(
            "patch",
            type_=PODS,
            name="a",
            request={"metadata": {"labels": "x"}},
            level="Request",
            agent="curl/8",
            second=2,
        ),
    ]
    found = audit_records(tmp_path, *lines, rules=RULES)
    assert brief(found) == [("ADDED", "a"), ("GAP", "a")]


def _bundle(tmp_path, change):
    lines = stories.bundle_lines()
    place = next(
        number
        for number, line in enumerate(lines)
        if line["payload"]["resource"] == "pods" and line["type"] == "ObjectUpdated"
    )
    change(lines[place])
    return stories.seal(tmp_path / "a.redra", lines, stories.SETTINGS), place + 1


def _object(**changes):
    def change(line):
        line["payload"]["object"] = line["payload"]["object"] | changes

    return change


def _without_metadata(line):
    del line["payload"]["object"]["metadata"]


def _metadata(**changes):
    def change(line):
        metadata = line["payload"]["object"]["metadata"]
        line["payload"]["object"]["metadata"] = metadata | changes

    return change


def _stamp(**changes):
    def change(line):
        line["stamp"] |= changes

    return change


def _payload(**changes):
    def change(line):
        line["payload"] |= changes

    return change


def _text(text):
    return lambda line: line["payload"].update(object=text)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (_without_metadata, "no metadata"),
        (_object(metadata=None), "no metadata"),
        (_object(metadata=5), "metadata is 5"),
        (_metadata(name="other"), "metadata.name"),
        (_metadata(name=None), "no metadata.name"),
        (_metadata(uid="other"), "metadata.uid"),
        (_metadata(resourceVersion="9" * 400), "metadata.resourceVersion"),
        (_metadata(resourceVersion="1"), "metadata.resourceVersion"),
        (_metadata(labels=[]), "metadata.labels"),
        (_object(spec={"containers": "x"}), "spec.containers"),
        (_object(status={"conditions": [{"type": {}}]}), "status.conditions.type"),
        (_payload(name="a\0"), "name"),
        (_payload(name=""), "name"),
        (_payload(uid="\0"), "uid"),
        (_payload(format=0), "format"),
        (_stamp(time="9999-12-31T23:59:59.999999Z"), "stamp.time"),
        (_stamp(time="1969-01-01T00:00:00.000000Z"), "stamp.time"),
        (_stamp(cause=10**6), "stamp.cause"),
        (_stamp(observed=-1), "stamp.observed"),
        (_stamp(verb="a\0"), "stamp.verb"),
        (_stamp(actor={"user": "a\0"}), "stamp.actor.user"),
        (_stamp(origin={"source": "s", "asked": 2**62}), "stamp.origin.asked"),
        (_text(b"5"), "object is 5"),
        (_text(b'{"a":1,"a":2}'), "canonical"),
        (_text(b'{"b":1,"a":2}'), "canonical"),
        (_text(b'{"a":1e999}'), "cannot be read"),
        (_text(b'{"a":"\\udfff\\ud800"}'), "malformed"),
        (_text(b"[" * 90_000 + b"]" * 90_000), "nested"),
        (_text(b'{"metadata":' * 150 + b"1" + b"}" * 150), "nested"),
    ],
)
def test_event_that_cannot_be_folded_is_refused_with_line_and_field(tmp_path, change, field):
    path, line = _bundle(tmp_path, change)
    with pytest.raises(InputError) as refusal:
        BundleReader(path, DEFAULT_LIMITS).check(RULES.schemas)
    assert refusal.value.place == f"a.redra/events.jsonl:{line}"
    assert field in refusal.value.problem


def test_bundle_of_ours_is_taken(tmp_path):
    path, _ = _bundle(tmp_path, lambda line: None)
    BundleReader(path, DEFAULT_LIMITS).check(RULES.schemas)


def test_instants_beyond_all_texts_are_written_as_the_nearest():
    assert timestamps.seconds_text(Instant(2**62)) == "9999-12-31T23:59:59Z"
    assert timestamps.seconds_text(Instant(-(2**62))) == "0001-01-01T00:00:00Z"
    assert timestamps.parse("9999-12-31T23:59:59.999999Z") == timestamps.LATEST
    assert timestamps.parse("0001-01-01T00:00:00Z") == timestamps.EARLIEST
    for text in ("9999-12-31T23:59:59.999999-00:01", "0001-01-01T00:00:00+00:01"):
        with pytest.raises(timestamps.TimestampError):
            timestamps.parse(text)
