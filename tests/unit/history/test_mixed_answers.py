"""Answers of log services that hold more than audit events, and lists that break off."""

import csv
import json

import pytest
import yaml

from app.adapters.history.opening import open_history
from app.adapters.history.reading import ReadOptions
from app.domain.errors import InputError
from app.domain.log.records import Op
from app.domain.values import timestamps
from tests.unit.history.test_logged_events import klog
from tests.unit.history.test_more_field_forms import SAID, SEEN
from tests.unit.history.test_wrapped_texts import keys, read
from tests.unit.history.worlds import audit, tree

EVENT = audit("create", tree(name="one", rv=1), name="one", second=1)
ADDED = (Op.ADDED, "ResourceClaim", "default", "one")
WAITS = '"Unable to schedule pod; no fit; waiting" pod="shop/web-1" err="no device"'
LINE = klog(WAITS, place="schedule_one.go:1000")
TRIED = "unschedulable"


def answer(rows):
    """An answer of the query API of a workspace: columns and rows."""
    titles = [{"name": name, "type": "string"} for name in rows[0]]
    cells = [list(row.values()) for row in rows]
    return json.dumps({"tables": [{"name": "PrimaryResult", "columns": titles, "rows": cells}]})


def azure(category, line):
    return {"category": category, "properties": {"log": line}, "time": "2026-01-02T03:04:06Z"}


def google(name, **payload):
    return {"insertId": name, "timestamp": "2026-01-02T03:04:06Z", **payload}


MIXED = {
    "records of Azure": json.dumps(
        {"records": [azure("kube-audit", json.dumps(EVENT)), azure("kube-scheduler", LINE)]}
    ),
    "lines of Azure": "".join(
        f"{json.dumps(each)}\n"
        for each in (azure("kube-audit", json.dumps(EVENT)), azure("kube-scheduler", LINE))
    ),
    "an answer of a workspace": answer(
        [
            {"Category": "kube-audit", "log_s": json.dumps(EVENT)},
            {"Category": "kube-scheduler", "log_s": LINE},
        ]
    ),
    "messages of CloudWatch": json.dumps(
        {"events": [{"message": json.dumps(EVENT)}, {"message": LINE}]}, indent=2
    ),
    "entries with the head of a line apart": json.dumps(
        [google("1", jsonPayload={"audit": EVENT}), google("2", jsonPayload={"message": WAITS})]
    ),
}


@pytest.mark.parametrize("name", MIXED)
def test_lines_of_the_scheduler_beside_audit_events_are_read(tmp_path, name):
    records, lost = read(tmp_path, MIXED[name], name="log.json")
    assert sorted(each.verb for each in records) == ["create", TRIED]
    assert ADDED in keys(records)
    assert lost == []


def test_entries_that_are_neither_are_counted(tmp_path):
    path = tmp_path / "log.json"
    others = [azure("guard", "level=info"), azure("kube-scheduler", LINE), azure("guard", "x")]
    path.write_text(json.dumps([azure("kube-audit", json.dumps(EVENT)), *others]))
    with open_history([path], ReadOptions()) as history:
        assert len(list(history.records())) == 2
        assert history.left_out == [("log.json", "entries without an audit event (2)")]


def test_answer_with_events_of_a_workspace(tmp_path):
    records, lost = read(tmp_path, answer([SEEN, {**SEEN, "Name": "web-2"}]), name="answer.json")
    [first, second] = [each.object for each in records]
    assert {each["involvedObject"]["name"] for each in (first, second)} == {"web-1", "web-2"}
    assert first["message"] == SAID
    assert lost == []


def test_answer_with_columns_of_audit_events(tmp_path):
    row = {"AuditId": "a", "Level": "RequestResponse", "Stage": "ResponseComplete"}
    row |= {"Verb": "create", "RequestUri": EVENT["requestURI"], "User": '{"username": "jo"}'}
    for column in ("ObjectRef", "ResponseStatus", "ResponseObject"):
        row[column] = json.dumps(EVENT[column[0].lower() + column[1:]])
    row["StageReceivedTime"] = EVENT["stageTimestamp"]
    records, lost = read(tmp_path, answer([row]), name="answer.json")
    assert keys(records) == [ADDED]
    assert records[0].actor.user == "jo"
    assert lost == []


def listed(*names):
    items = [tree(name=name, rv=at) for at, name in enumerate(names, start=1)]
    return yaml.safe_dump({"apiVersion": "v1", "items": items, "kind": "List"})


@pytest.mark.parametrize("wrap", ["{}", "# It hangs\n```\n{}\n```\nthanks\n"])
def test_list_that_breaks_off_before_its_kind_lacks_its_last_item(tmp_path, wrap):
    """kubectl writes the kind behind the items, and YAML that breaks off is still YAML."""
    whole = listed("one", "two", "three")
    begin, end = whole.rindex("name: three"), whole.index("kind: List")
    ends = [at + 1 for at in range(begin, end) if whole[at] == "\n"]
    assert len(ends) > 2
    for at in ends:
        records, lost = read(tmp_path, wrap.format(whole[:at].rstrip("\n")), name="out.yaml")
        assert [each.name for each in records] == ["one", "two"], whole[:at]
        [reason] = lost
        assert "its last item may be cut" in reason
    records, lost = read(tmp_path, wrap.format(whole), name="out.yaml")
    assert ([each.name for each in records], lost) == (["one", "two", "three"], [])


def test_row_of_a_table_gives_its_time_to_the_line_in_it(tmp_path):
    path = tmp_path / "query.csv"
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([["TimeGenerated", "log_s"], ["2026-01-02T03:04:05Z", LINE]])
    with open_history([path], ReadOptions()) as history:
        (record,) = history.records()
        assert (record.verb, record.name, record.namespace) == (TRIED, "web-1", "shop")
        assert timestamps.seconds_text(record.observed_at) == "2026-01-02T03:04:05Z"
        assert list(history.refusals) == []


@pytest.mark.parametrize(
    "prefix", ["[pod/apiserver-m/apiserver] ", "[m] ", "[1.2.3.4:443] ", "[apiserver-m apiserver] "]
)
def test_audit_events_behind_a_name_in_brackets_are_read(tmp_path, prefix):
    records, lost = read(tmp_path, "".join(f"{prefix}{json.dumps(EVENT)}\n" for _ in range(2)))
    assert keys(records) == [ADDED]
    assert lost == []


def of_nothing(kind, items, version="v1"):
    metadata = {"resourceVersion": ""}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "items": items}


NO_CLAIMS = of_nothing("ResourceClaimList", None, "resource.k8s.io/v1")


@pytest.mark.parametrize(
    ("lists", "kinds"),
    [
        ([of_nothing("List", [])], "objects"),
        ([of_nothing("PodList", [])], "pods"),
        ([of_nothing("PodList", []), NO_CLAIMS], "pods, resourceclaims"),
    ],
)
def test_lists_of_nothing_are_refused_as_such(tmp_path, lists, kinds):
    """A cluster or namespace without such objects is no unknown format."""
    path = tmp_path / "lists.yaml"
    path.write_text(yaml.safe_dump_all(lists))
    with (
        pytest.raises(
            InputError, match=f"no object is in it: every list of {kinds} in it is empty"
        ),
        open_history([path], ReadOptions()) as history,
    ):
        list(history.records())
