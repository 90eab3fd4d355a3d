"""Events as collectors for Loki write them, in each form in which people get them out of it."""

import csv
import io
import json

import pytest

from app.adapters.history.opening import open_history
from app.adapters.history.reading import ReadOptions
from app.domain.log.records import Loss

SAID = '0/4 nodes are available: 4 cannot allocate all claims of "gpu". See a=b.'
LABELS = {"job": "loki.source.kubernetes_events", "namespace": "shop", "instance": "events"}
STAMP, NANOS = "2026-01-02T03:04:05.25Z", "1767323045250000000"
FIELDS = {
    "name": "web-2",
    "kind": "Pod",
    "action": "Scheduling",
    "objectAPIversion": "v1",
    "objectRV": "31",
    "eventRV": "30",
    "reportingcontroller": "default-scheduler",
    "sourcecomponent": "default-scheduler",
    "sourcehost": "n1",
    "reason": "FailedScheduling",
    "type": "Warning",
    "count": "4",
}


def logfmt(message=SAID, **changed):
    fields = " ".join(f"{name}={text}" for name, text in ({**FIELDS, **changed}).items())
    return f"{fields} msg={json.dumps(message)}"


def table(rows):
    out = io.StringIO()
    csv.writer(out).writerows(rows)
    return out.getvalue()


def shown(labels):
    return "{" + ", ".join(f'{name}="{text}"' for name, text in sorted(labels.items())) + "}"


STREAM = {"stream": LABELS, "values": [[NANOS, logfmt()]]}
FORMS = {
    "logcli": f"{STAMP} {shown(LABELS)} {logfmt()}\n",
    "logcli as JSON": json.dumps({"labels": LABELS, "line": logfmt(), "timestamp": STAMP}) + "\n",
    "an answer": json.dumps(
        {"status": "success", "data": {"resultType": "streams", "result": [STREAM]}}
    ),
    "a download": json.dumps(
        [{"line": logfmt(), "timestamp": NANOS, "date": STAMP, "fields": LABELS}], indent=2
    ),
    "lines in JSON": json.dumps(
        {
            "labels": LABELS,
            "line": json.dumps({**FIELDS, "count": 4, "msg": SAID}),
            "timestamp": STAMP,
        }
    ),
}


def read(folder, name, text):
    path = folder / name
    path.write_text(text)
    with open_history([path], ReadOptions()) as history:
        return list(history.records()), list(history.refusals), list(history.notes)


@pytest.mark.parametrize("form", FORMS)
def test_event_of_a_collector_is_read_with_its_time_and_place(tmp_path, form):
    records, lost, _ = read(tmp_path, "events.txt", FORMS[form])
    assert lost == []
    (event,) = [record.object for record in records]
    assert event["involvedObject"] == {
        "apiVersion": "v1",
        "kind": "Pod",
        "namespace": "shop",
        "name": "web-2",
    }
    assert (event["metadata"]["namespace"], event["type"]) == ("shop", "Warning")
    assert (event["reason"], event["message"], event["count"]) == ("FailedScheduling", SAID, 4)
    assert event["source"] == {"component": "default-scheduler", "host": "n1"}
    assert event["lastTimestamp"] == "2026-01-02T03:04:05Z"
    assert Loss.PRINTED in records[0].losses


def test_line_without_labels_leaves_the_place_a_guess(tmp_path):
    line = f"{STAMP}\t{logfmt()}\n"
    records, _, notes = read(tmp_path, "alloy.log", line + logfmt("up", name="n1", kind="Node"))
    assert {record.object["involvedObject"]["name"]: record.namespace for record in records} == {
        "web-2": "default",
        "n1": "default",
    }
    guess = "printed objects taken to be in the namespace default, a guess: 1"
    assert guess in notes


def test_cell_of_a_table_doubles_the_quotes_of_a_line(tmp_path):
    plain = SAID.replace('"', "")
    rows = [["Time", "labels", "Line"], [STAMP, json.dumps(LABELS), logfmt(plain)]]
    records, lost, _ = read(tmp_path, "logs.csv", table(rows))
    assert [(record.namespace, record.object["message"]) for record in records] == [("shop", plain)]
    assert lost == []


def test_series_is_one_event_with_its_largest_count(tmp_path):
    lines = [f"2026-01-02T03:0{at}:00Z {logfmt(count=str(at))}\n" for at in (1, 3, 2)]
    records, _, _ = read(tmp_path, "alloy.log", "".join(lines))
    (event,) = [record.object for record in records]
    assert (event["count"], event["firstTimestamp"], event["lastTimestamp"]) == (
        3,
        "2026-01-02T03:01:00Z",
        "2026-01-02T03:03:00Z",
    )


def test_line_that_is_cut_is_named(tmp_path):
    cut = logfmt()[: -len(json.dumps(SAID)) - 20]
    records, lost, _ = read(tmp_path, "alloy.log", f"{STAMP} {logfmt()}\n{STAMP} {cut}\n")
    assert len(records) == 1
    assert [(each.place, each.problem) for each in lost] == [
        ("alloy.log:2", "the line about an event is cut")
    ]
