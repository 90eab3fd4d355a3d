"""Audit events and lines of logs as collectors and command lines print them."""

import csv
import io
import json

import pytest

from app.domain.log.records import Op
from app.domain.values import timestamps
from tests.unit.history.test_logged_events import POD, klog
from tests.unit.history.test_wrapped_texts import AT, FAILURE, LINES, keys, read
from tests.unit.history.worlds import audit, tree

EVENTS = [
    audit("create", tree(name=name, rv=rv, spec={"note": 'a "b" => c'}), name=name, second=rv)
    for rv, name in enumerate(("one", "two"), start=1)
]
PLAIN = [
    audit("create", tree(name=name, rv=rv), name=name, second=rv)
    for rv, name in enumerate(("one", "two"), start=1)
]
CLAIMS = [
    (Op.ADDED, "ResourceClaim", "default", "one"),
    (Op.ADDED, "ResourceClaim", "default", "two"),
]


def dense(event):
    return json.dumps(event, separators=(",", ":"))


def of_ruby(value, pair="=>"):
    """A value as Ruby shows it."""
    if isinstance(value, dict):
        pairs = (f"{of_ruby(name)}{pair}{of_ruby(part, pair)}" for name, part in value.items())
        return "{" + ", ".join(pairs) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(of_ruby(each, pair) for each in value) + "]"
    return "nil" if value is None else json.dumps(value)


def fluent_bit(record, at=0, stamp="[1767225601.000000001, {}]"):
    """A line of the output stdout of fluent-bit, which does not escape the quotes in a text."""
    return f"[{at}] kube.audit: [{stamp}, {record}]\n"


def of_logstash(value, indent=0):
    """A value as the codec rubydebug shows it: over lines, with places in lists."""
    margin, end = " " * (indent + 4), "\n" + " " * indent
    if isinstance(value, dict) and value:
        width = max(len(json.dumps(name)) for name in value)
        pairs = (
            f"{margin}{json.dumps(name):>{width}} => {of_logstash(part, indent + width + 8)}"
            for name, part in value.items()
        )
        return "{\n" + ",\n".join(pairs) + end + "}"
    if isinstance(value, list) and value:
        items = (f"{margin}[{at}] {of_logstash(each, indent + 8)}" for at, each in enumerate(value))
        return "[\n" + ",\n".join(items) + end + "]"
    return of_ruby(value).replace("#{", "\\#{")


def at_the_time(record):
    """The record with its time, which has no quotes."""
    return record[:-2] + ',\n    "@timestamp" => 2026-01-02T03:04:05.123456789Z\n}\n'


FORMS = {
    "Logstash": "".join(
        at_the_time(of_logstash({"message": dense(event), "tags": ["a #{b}"], "x": None}))
        for event in EVENTS
    ),
    "Logstash, fields": "".join(at_the_time(of_logstash(event)) for event in EVENTS),
    "Logstash behind words": "".join(
        f"[main] Pipeline started\n{at_the_time(of_logstash(event))}" for event in EVENTS
    ),
    "an array of texts": json.dumps([dense(event) for event in EVENTS], indent=4),
    "an array of texts on a line": json.dumps([dense(event) for event in EVENTS]) + "\n",
    "an array of texts below a command": (
        "$ aws logs filter-log-events --query 'events[].message'\n"
        + json.dumps([dense(event) for event in EVENTS], indent=4)
    ),
    "texts of jq": "".join(f"{json.dumps(dense(event))}\n" for event in EVENTS),
    "texts with tabs": "\t".join(dense(event) for event in EVENTS) + "\n",
    "fluent-bit": "".join(
        fluent_bit(f'{{"log"=>"{dense(event)}", "stream"=>"stdout", "time"=>"x"}}', at)
        for at, event in enumerate(EVENTS)
    ),
    "fluent-bit before 2.1": "".join(
        fluent_bit(f'{{"log"=>"{dense(event)}"}}', at, "1767225601.000000001")
        for at, event in enumerate(EVENTS)
    ),
    "fluent-bit, escaped": "".join(
        fluent_bit(f'{{"log"=>{json.dumps(dense(event))}}}') for event in EVENTS
    ),
    "fluent-bit, fields": "".join(fluent_bit(of_ruby(event)) for event in PLAIN),
    "fluentd": "".join(
        f"2026-01-01 00:00:01.000000000 +0000 kube-audit: {dense(event)}\n" for event in EVENTS
    ),
    "fluentd, an error": "".join(
        '2026-01-01 00:00:01 +0000 [warn]: #0 dump an error event: error_class=E error="400" '
        f'location=nil tag="kube-audit" time=2026-01-01 record={of_ruby(event)}\n'
        for event in EVENTS
    ),
    "Ruby 3.4": "".join(f"{of_ruby(event, ' => ')}\n" for event in EVENTS),
}


@pytest.mark.parametrize("form", FORMS)
def test_audit_events_are_read_as_they_are_printed(tmp_path, form):
    records, lost = read(tmp_path, FORMS[form], name="audit.txt")
    assert keys(records) == CLAIMS
    assert [each.actor.user for each in records] == ["alice", "alice"]
    if form != "fluent-bit, fields":
        assert records[0].object["spec"] == {"note": 'a "b" => c'}
    assert lost == []


@pytest.mark.parametrize(
    "shown",
    [
        lambda event: at_the_time(of_logstash({"message": dense(event)})),
        lambda event: at_the_time(of_logstash(event)),
        lambda event: fluent_bit(f'{{"log"=>{json.dumps(dense(event))}}}'),
        lambda event: f"{of_ruby(event, ' => ')}\n",
        lambda event: f"{json.dumps(dense(event))}\n",
    ],
    ids=["Logstash", "Logstash, fields", "fluent-bit, escaped", "Ruby 3.4", "texts of jq"],
)
def test_backslashes_of_an_object_are_its_own(tmp_path, shown):
    """A backslash stands before a letter that has an escape of its own in Ruby."""
    note = r"C:\exe C:\#1 C:\\end \d+ C:\all C:\var"
    event = audit("create", tree(name="one", rv=1, spec={"note": note}), name="one", second=1)
    records, lost = read(tmp_path, shown(event), name="audit.txt")
    assert [each.object["spec"]["note"] for each in records] == [note]
    assert lost == []


def test_record_of_logstash_that_breaks_off_is_lost_alone(tmp_path):
    first, second = (at_the_time(of_logstash(event)) for event in EVENTS)
    records, lost = read(tmp_path, f"{first[: len(first) // 2]}\n{second}", name="audit.txt")
    assert keys(records) == CLAIMS[1:]
    assert len(lost) == 1
    assert lost[0].startswith("audit.txt:1")


@pytest.mark.parametrize("form", ["fluent-bit", "fluent-bit, fields", "texts of jq"])
def test_event_that_is_cut_is_lost_alone(tmp_path, form):
    first, second = FORMS[form].splitlines()
    records, lost = read(tmp_path, f"{first[: len(first) // 2]}\n{second}\n", name="audit.txt")
    assert keys(records) == CLAIMS[1:]
    assert len(lost) == 1
    assert lost[0].startswith("audit.txt:1")


@pytest.mark.parametrize("wrap", ["fluent-bit", "texts"])
def test_lines_of_logs_are_read_from_the_same_forms(tmp_path, wrap):
    lines = [*LINES, klog(POD)]
    text = json.dumps(lines, indent=1)
    if wrap == "fluent-bit":
        text = "".join(fluent_bit(f'{{"log"=>"{line}", "stream"=>"stderr"}}') for line in lines)
    records, lost = read(tmp_path, text, at=AT)
    assert sorted(each.verb for each in records) == ["", "attempt", "unschedulable"]
    [attempt] = [each for each in records if each.verb == "unschedulable"]
    assert attempt.message.endswith("1 cannot allocate all claims.")
    assert FAILURE in text or json.dumps(FAILURE)[1:-1] in text
    assert lost == []


@pytest.mark.parametrize(
    "prefix",
    [
        "node-1: ",
        "kube-scheduler-m kube-scheduler ",
        "kube-system kube-scheduler-m kube-scheduler ",
        "[kube-scheduler-m] ",
        "[kube-scheduler-m kube-scheduler] ",
        "[pod/kube-scheduler-m/kube-scheduler] ",
        "Jan 02 03:04:05 m kube-scheduler[12]: ",
        "2026-01-02T03:04:05+0000 m kube-scheduler[12]: ",
    ],
)
def test_lines_of_klog_in_json_are_read_behind_the_names_of_their_source(tmp_path, prefix):
    pod = {"name": "web-1", "namespace": "shop"}
    attempt = {"ts": 1767323045000.002, "caller": "scheduler/schedule_one.go:83", "v": 3}
    attempt |= {"msg": "Attempting to schedule pod", "pod": pod}
    failure = attempt | {"msg": "Unable to schedule pod; no fit; waiting", "err": "0/1 nodes"}
    text = "".join(f"{prefix}{dense(each)}\n" for each in (attempt, failure))
    records, lost = read(tmp_path, text, at=AT)
    assert [(each.verb, each.namespace, each.name) for each in records] == [
        ("attempt", "shop", "web-1"),
        ("unschedulable", "shop", "web-1"),
    ]
    assert {timestamps.seconds_text(each.observed_at) for each in records} == {
        "2026-01-02T03:04:05Z"
    }
    assert lost == []


PARTS = ("user", "objectRef", "responseStatus", "responseObject")
STORES = {
    "lines": "".join,
    "hits": lambda lines: "".join(f'{{"_source": {line.strip()}}}\n' for line in lines),
    "a list": lambda lines: f"[{','.join(lines)}]",
}


def in_texts(event, names, cut=0):
    """The event as a store with flat records keeps it: parts with JSON are texts."""
    texts = {name: json.dumps(event[name]) for name in names}
    if cut:
        texts["responseObject"] = texts["responseObject"][:-cut]
    return json.dumps({**event, **texts}) + "\n"


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("names", [PARTS, *((each,) for each in PARTS)])
def test_parts_of_events_that_a_store_keeps_as_texts_are_read(tmp_path, store, names):
    form = STORES[store]
    whole, lost = read(tmp_path, form([f"{json.dumps(event)}\n" for event in EVENTS]), name="w.log")
    records, lost_here = read(
        tmp_path, form([in_texts(each, names) for each in EVENTS]), name="a.log"
    )
    assert keys(records) == keys(whole) == CLAIMS
    assert [each.object for each in records] == [each.object for each in whole]
    assert [each.actor for each in records] == [each.actor for each in whole]
    assert lost == lost_here == []


@pytest.mark.parametrize("store", STORES)
def test_body_whose_text_a_store_cut_is_a_gap(tmp_path, store):
    cut = [in_texts(each, PARTS, cut=3) for each in EVENTS]
    records, _ = read(tmp_path, STORES[store](cut), name="a.log")
    assert [record.op for record in records] == [Op.GAP, Op.GAP]


def test_repeated_key_in_a_part_that_is_a_text_is_named(tmp_path):
    event = json.loads(in_texts(EVENTS[0], PARTS))
    event["responseObject"] = event["responseObject"].replace('"note":', '"note": "x", "note":', 1)
    records, lost = read(tmp_path, json.dumps(event) + "\n", name="a.log")
    assert keys(records) == CLAIMS[:1]
    assert ["note" in each for each in lost] == [True]


def flat(tree, prefix=""):
    """The fields of an event by their paths, as stores without nesting keep them."""
    fields = {}
    for name, value in tree.items():
        is_tree = isinstance(value, dict) and value
        fields |= flat(value, f"{prefix}{name}.") if is_tree else {prefix + name: value}
    return fields


def in_lists(event):
    """The fields of an event as a search answers them, which does not know what is a list."""
    fields = {f"k8s.{name}": value for name, value in flat(event).items()}
    return {name: value if isinstance(value, list) else [value] for name, value in fields.items()}


def typed(value):
    """A value in the JSON of OpenTelemetry."""
    if isinstance(value, dict):
        pairs = [{"key": name, "value": typed(part)} for name, part in value.items()]
        return {"kvlistValue": {"values": pairs}}
    if isinstance(value, list):
        return {"arrayValue": {"values": [typed(part) for part in value]}}
    return {"intValue": str(value)} if isinstance(value, int) else {"stringValue": value}


def table(titles, rows):
    """A table in CSV, whose cells all have quotes."""
    text = io.StringIO()
    csv.writer(text, quoting=csv.QUOTE_ALL).writerows([titles, *rows])
    return text.getvalue()


EXTRACTED = ("auditID", "stage", "verb", "objectRef.name", "user.username")

WHOLE_BESIDE_FIELDS = {
    "a table of Splunk": table(
        ["_raw", "_time", *EXTRACTED],
        [
            [dense(event), "x", *(flat(event).get(name, "") for name in EXTRACTED)]
            for event in EVENTS
        ],
    ),
    "results of Splunk": "".join(
        json.dumps({"result": {"auditID": event["auditID"], "verb": event["verb"]}})[:-2]
        + f', "stage": "ResponseComplete", "_raw": {json.dumps(dense(event))}}}}}\n'
        for event in EVENTS
    ),
    "fields that an agent took out": "".join(
        json.dumps({**flat(event), "message": dense(event)}) + "\n" for event in EVENTS
    ),
    "hits with their source and their fields": "".join(
        json.dumps({"fields": in_lists(event), "_source": event}) + "\n" for event in EVENTS
    ),
    "records of OpenTelemetry": json.dumps(
        {
            "resourceLogs": [
                {"scopeLogs": [{"logRecords": [{"body": typed(event)} for event in EVENTS]}]}
            ]
        }
    ),
    "fields of Graylog": "".join(
        json.dumps(
            {
                "version": "1.1",
                "short_message": "audit",
                **{
                    f"_{name}": value if isinstance(value, str) else dense(value)
                    for name, value in event.items()
                },
            }
        )
        + "\n"
        for event in EVENTS
    ),
    "pairs of a time and a record": "".join(
        json.dumps([1767225601.5, {"log": dense(event)}]) + "\n" for event in EVENTS
    ),
}


@pytest.mark.parametrize("form", WHOLE_BESIDE_FIELDS)
def test_events_that_services_take_apart_are_whole(tmp_path, form):
    whole, _ = read(tmp_path, "".join(f"{json.dumps(each)}\n" for each in EVENTS), name="w.log")
    records, lost = read(tmp_path, WHOLE_BESIDE_FIELDS[form], name="a.txt")
    assert keys(records) == keys(whole) == CLAIMS
    assert [each.actor for each in records] == [each.actor for each in whole]
    assert [each.object for each in records] == [each.object for each in whole]
    assert lost == []


COLUMNS = ("auditID", "stage", "verb", "requestURI", "objectRef.apiGroup", "objectRef.resource")
COLUMNS += ("objectRef.namespace", "objectRef.name", "user.username", "responseStatus.code")
WITHOUT_BODIES = {
    "a table of chosen fields": table(
        COLUMNS, [[str(flat(event)[name]) for name in COLUMNS] for event in PLAIN]
    ),
    "fields of a search, all as lists": json.dumps(
        {
            "hits": {
                "total": {"value": 2},
                "hits": [
                    {
                        "_id": "1",
                        "fields": in_lists(event),
                    }
                    for event in PLAIN
                ],
            }
        }
    ),
}


@pytest.mark.parametrize("form", WITHOUT_BODIES)
def test_fields_that_stores_make_flat_say_which_object_was_written(tmp_path, form):
    records, lost = read(tmp_path, WITHOUT_BODIES[form], name="a.txt")
    assert keys(records) == [(Op.GAP, "", "default", name) for name in ("one", "two")]
    assert {each.resource for each in records} == {"resourceclaims"}
    assert [each.actor.user for each in records] == ["alice", "alice"]
    assert lost == []
