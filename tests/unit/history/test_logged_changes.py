"""Changes of a watch in the lines of collectors: an object that went is not taken for one that is.

The lines are written after what the OpenTelemetry collector and log shippers write.
"""

import json

import pytest

from app.domain.log.records import Op
from tests.unit.history.test_wrapped_texts import keys, read
from tests.unit.history.worlds import CLAIMS, tree


def any_value(value):
    """A value as OpenTelemetry writes it in JSON: with its type, and whole numbers as text."""
    match value:
        case bool():
            return {"boolValue": value}
        case int():
            return {"intValue": str(value)}
        case float():
            return {"doubleValue": value}
        case str():
            return {"stringValue": value}
        case list():
            return {"arrayValue": {"values": [any_value(item) for item in value]}}
        case dict():
            pairs = [{"key": name, "value": any_value(part)} for name, part in value.items()]
            return {"kvlistValue": {"values": pairs} if pairs else {}}
    return {}


def collected(body):
    """A line of the collector's file exporter."""
    record = {"observedTimeUnixNano": "1767225600000000000", "body": any_value(body)}
    return {"resourceLogs": [{"resource": {}, "scopeLogs": [{"logRecords": [record]}]}]}


def shipped(body):
    """A line of a log shipper."""
    return {"time": "2026-01-01T00:00:00Z", "kubernetes": {"host": "n1"}, "log": body}


def claim(rv, **spec):
    return tree(CLAIMS, "c1", "shop", rv=rv, spec={"devices": {"requests": []}, **spec})


@pytest.mark.parametrize("wrap", [collected, shipped])
def test_changes_of_a_watch_in_a_log_are_changes(tmp_path, wrap):
    changes = [("ADDED", claim(4)), ("MODIFIED", claim(5)), ("DELETED", claim(6))]
    lines = [json.dumps(wrap({"type": type_, "object": each})) for type_, each in changes]
    records, lost = read(tmp_path, "\n".join(lines))
    assert [(record.op, record.resource_version) for record in records] == [
        (Op.BASELINE, "4"),
        (Op.MODIFIED, "5"),
        (Op.DELETED, "6"),
    ]
    assert lost == []


def test_object_that_went_before_the_log_begins_does_not_exist(tmp_path):
    lines = [json.dumps(shipped({"type": "DELETED", "object": claim(6)}))]
    lines.append(json.dumps(shipped(tree(CLAIMS, "c2", "shop", rv=7, spec={}))))
    records, _ = read(tmp_path, "\n".join(lines))
    last = {record.name: record.op for record in records}
    assert last == {"c1": Op.DELETED, "c2": Op.BASELINE}


def test_objects_of_a_collector_are_what_they_were(tmp_path):
    spec = {"flag": True, "weight": 0.5, "count": 3, "names": ["a", None], "none": {}, "null": None}
    stored = claim(4, **spec)
    records, _ = read(tmp_path, json.dumps(collected(stored)))
    assert keys(records) == [(Op.BASELINE, "ResourceClaim", "shop", "c1")]
    assert records[0].object == stored


@pytest.mark.parametrize("text", ["--5", "9" * 5_000, "٣"])
def test_whole_number_of_a_collector_that_is_none_stays_a_text(tmp_path, text):
    line = json.dumps(collected(claim(4, count=12345)))
    assert '"12345"' in line
    records, _ = read(tmp_path, line.replace('"12345"', json.dumps(text)))
    assert records[0].object["spec"]["count"] == text
