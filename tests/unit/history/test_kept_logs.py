"""Lines of kube-scheduler as services that keep logs hand them out: documents over many lines."""

import json

import pytest
import yaml

from app.domain.values import timestamps
from tests.unit.history.test_wrapped_texts import AT, CLAIM, FAILURE, LINES, keys, read

TIMES = ("2027-01-02T03:04:05.1Z", "2027-01-02T03:04:05.2Z")
NANOSECONDS = ("1798859045100000000", "1798859045200000000")
"""The same two moments."""


def pairs(times=TIMES):
    return list(zip(times, LINES, strict=True))


ENTRIES = [
    {"insertId": str(n), "severity": "INFO", "textPayload": f"{line}\n", "timestamp": time}
    for n, (time, line) in enumerate(pairs())
]
HITS = [
    {
        "_index": "logs",
        "_source": {"@timestamp": time, "message": line, "event": {"original": line}},
    }
    for time, line in pairs()
]
STREAMS = {
    "resultType": "streams",
    "result": [{"stream": {"app": "x"}, "values": pairs(NANOSECONDS)}],
}
SHOWN = [
    {"line": line, "timestamp": time, "fields": {"app": "x"}} for time, line in pairs(NANOSECONDS)
]
EVENTS = [{"timestamp": int(time[:13]), "message": line} for time, line in pairs(NANOSECONDS)]
LOGS = [{"id": "A", "attributes": {"message": line, "timestamp": time}} for time, line in pairs()]
FIELDS = [
    {
        "jsonPayload": {"message": json.loads(line.partition("] ")[2].split(" pod=")[0])}
        | {"pod": "shop/web-1", "err": "0/1 nodes are available: 1 cannot allocate all claims."},
        "timestamp": time,
    }
    for time, line in pairs()
]
KEPT = {
    "gcloud": ENTRIES,
    "gcloud, fields": FIELDS,
    "loki": {"status": "success", "data": STREAMS},
    "grafana": SHOWN,
    "elasticsearch": {"took": 1, "hits": {"total": {"value": 2}, "hits": HITS}},
    "cloudwatch": {"events": EVENTS},
    "datadog": {"data": LOGS},
}
FORMS = {
    "over lines": lambda value: json.dumps(value, indent=2),
    "on one line": json.dumps,
    "behind a byte order mark": lambda value: "\ufeff" + json.dumps(value, indent=2),
    "behind a line": lambda value: "\n" + json.dumps(value, indent=4) + "\n",
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("service", KEPT)
def test_attempts_are_found_in_the_answer_of_a_service_once(tmp_path, service, form):
    records, lost = read(tmp_path, FORMS[form](KEPT[service]))
    assert [(record.verb, str(record.key)) for record in records] == [
        ("attempt", "pods/shop/web-1"),
        ("unschedulable", "pods/shop/web-1"),
    ]
    assert [timestamps.micro_text(record.observed_at) for record in records] == [
        "2027-01-02T03:04:05.100000Z",
        "2027-01-02T03:04:05.200000Z",
    ]
    assert "1 cannot allocate all claims" in records[1].message
    assert lost == []


def test_attempts_are_found_in_what_gcloud_prints_by_itself(tmp_path):
    records, _ = read(tmp_path, "---\n".join(yaml.safe_dump(entry) for entry in ENTRIES))
    assert [record.verb for record in records] == ["attempt", "unschedulable"]
    assert timestamps.micro_text(records[0].observed_at) == "2027-01-02T03:04:05.100000Z"


def test_entry_has_its_place_in_the_list(tmp_path):
    records, _ = read(tmp_path, json.dumps([{"textPayload": "none of ours"}, *ENTRIES], indent=1))
    assert [record.place for record in records] == ["text:1[1]", "text:1[2]"]


def test_cell_of_a_table_has_its_quotes_twice(tmp_path):
    cell = LINES[1].replace('"', '""')
    records, _ = read(tmp_path, f'timestamp,textPayload\n{TIMES[0]},"{cell}"\n', at=AT)
    assert [record.verb for record in records] == ["unschedulable"]
    assert records[0].message.endswith("1 cannot allocate all claims.")


def test_log_in_utf_16_is_read(tmp_path):
    records, _ = read(tmp_path, "\r\n".join(LINES).encode("utf-16"), at=AT)
    assert [record.verb for record in records] == ["attempt", "unschedulable"]


def test_log_beside_objects_in_one_text(tmp_path):
    """Both are read, and the lines of other programs are no attempts."""
    other = 'E0102 03:04:05.123456     912 x.go:1] "Failed to get status for pod" pod="shop/web-1"'
    records, _ = read(tmp_path, f"{other}\n```\n{CLAIM}```\n{LINES[1]}\n", at=AT)
    assert sorted(record.kind for record in records) == ["Pod", "ResourceClaim"]
    records, _ = read(tmp_path, f"{other}\n```\n{CLAIM}```\n", at=AT)
    assert [key[1:] for key in keys(records)] == [("ResourceClaim", "shop", "one")]


def test_words_of_a_failure_outside_of_a_log_are_no_attempt(tmp_path):
    records, _ = read(tmp_path, f"I saw {FAILURE}\n```\n{CLAIM}```\n", at=AT)
    assert [record.kind for record in records] == ["ResourceClaim"]


@pytest.mark.parametrize("size", [90, 120, 1000])
def test_line_that_a_container_runtime_split_is_one_line(tmp_path, size):
    """The two streams split their lines each for itself."""
    whole = LINES[1]
    pieces = [whole[at : at + size] for at in range(0, len(whole), size)]
    text = f"{TIMES[0]} stdout P a line of the \n"
    for number, piece in enumerate(pieces, start=1):
        tag = "F" if number == len(pieces) else "P"
        text += f"{TIMES[0]} stderr {tag} {piece}\n"
    text += f"{TIMES[0]} stdout F other stream\n{TIMES[1]} stderr F {LINES[0]}\n"
    records, _ = read(tmp_path, text)
    assert [record.verb for record in records] == ["unschedulable", "attempt"]
    assert records[0].message.endswith("1 cannot allocate all claims.")
    assert [record.position for record in records] == ["2", str(len(pieces) + 3)]
