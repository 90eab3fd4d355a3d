"""Audit events in lists of YAML, and forms of text that are named for what they are."""

import html
import json

import pytest
import yaml

from app.domain.errors import InputError
from tests.unit.history.test_service_forms import CLAIMS, EVENTS, PLAIN, dense
from tests.unit.history.test_wrapped_texts import CLAIM, keys, read

ROWS = [{"eventId": str(at), "message": dense(each)} for at, each in enumerate(EVENTS)]
FIELDS = [[{"field": "@message", "value": dense(each)}] for each in EVENTS]
YAML = {
    "aws logs filter-log-events": yaml.safe_dump({"events": ROWS, "searchedLogStreams": []}),
    "below its command": "$ aws logs filter-log-events\n" + yaml.safe_dump({"events": ROWS}),
    "aws logs get-query-results": yaml.safe_dump({"results": FIELDS, "status": "Complete"}),
    "a list": yaml.safe_dump(EVENTS),
    "a list with its id first": yaml.safe_dump(EVENTS, sort_keys=False),
    "an EventList": yaml.safe_dump(
        {"apiVersion": "audit.k8s.io/v1", "kind": "EventList", "items": EVENTS}
    ),
}


@pytest.mark.parametrize("form", YAML)
def test_audit_events_in_yaml_are_read(tmp_path, form):
    records, lost = read(tmp_path, YAML[form])
    assert keys(records) == CLAIMS
    assert records[1].object["spec"] == {"note": 'a "b" => c'}
    assert lost == []


@pytest.mark.parametrize("is_sorted", [True, False])
def test_event_that_is_cut_in_a_list_of_yaml_is_lost_in_words(tmp_path, is_sorted):
    """Cut YAML is still YAML, and its last object would be a wrong one."""
    text = yaml.safe_dump(EVENTS, sort_keys=is_sorted)
    records, lost = read(tmp_path, text[: text.rindex("note:") + 7])
    assert keys(records) == CLAIMS[:1]
    assert len(lost) == 1
    assert "cut" in lost[0]


@pytest.mark.parametrize("put", ["2026-01-03T00:00:09.000009Z {}", "{}"])
def test_object_whose_line_is_cut_early_is_lost_in_words(tmp_path, put):
    lines = [json.dumps({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
                         "metadata": {"name": name, "namespace": "n"}})
             for name in ("one", "two")]  # fmt: skip
    text = put.replace("{}", lines[0]) + "\n" + put.replace("{}", lines[1][:19])
    records, lost = read(tmp_path, f"see\n{text}\n")
    assert [record.name for record in records] == ["one"]
    assert len(lost) == 1


def test_item_that_is_broken_in_a_list_set_in_is_lost_in_words(tmp_path):
    items = [{"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "uid": name}}
             for name in ("one", "two", "six")]  # fmt: skip
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": items}, indent=4)
    at = text.index("}", text.index('"two"'))
    lines = (text[:at] + text[at + 1 :]).splitlines()
    records, lost = read(tmp_path, "".join(f"    {line}\n" for line in lines))
    assert [record.name for record in records] == ["one", "six"]
    assert lost


@pytest.mark.parametrize(("cut", "expected", "losses"), [(0, 2, 0), (40, 1, 1)])
def test_each_line_of_a_log_that_was_pasted_into_a_message_is_read(tmp_path, cut, expected, losses):
    """Of several events in one text the first alone was read, and no word was about the others."""
    log = "\n".join(map(dense, EVENTS))
    message = {"type": "message", "text": f"see ```{log[: len(log) - cut]}```", "ts": "1"}
    records, lost = read(tmp_path, json.dumps([message]))
    assert keys(records) == CLAIMS[:expected]
    assert len(lost) == losses


def codeblock(text):
    shown = html.escape(text, quote=False).replace("\n", "<br>").replace("  ", "&nbsp; ")
    return f'<codeblock class="Yaml"><code>{shown}</code></codeblock>'


def test_code_in_messages_of_teams_is_read(tmp_path):
    messages = [{"body": {"contentType": "html", "content": codeblock(CLAIM)}}]
    records, lost = read(tmp_path, json.dumps({"value": messages}))
    assert [record.name for record in records] == ["one"]
    assert records[0].object["spec"]["devices"]["requests"][0]["name"] == "gpu"
    assert lost == []


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            "".join(f"{dense(each)}\n".replace("\\", "\\\\") for each in (PLAIN[0], EVENTS[1])),
            r"its backslashes are doubled.*JSONEachRow of ClickHouse, mysql --raw",
        ),
        (
            "".join(json.dumps({"version": "1.1", "short_message": dense(each)}) + "\0"
                    for each in EVENTS),
            r"a byte of zero between them, as GELF over TCP; write a line break",
        ),
        (f"{dense(EVENTS[0])}\n".replace("\\", "\\\\"), "its backslashes are doubled"),
        (CLAIM.replace("\n", "$\n"), r"each line ends with \$, as cat -A.*give the file itself"),
        (
            "see\n" + yaml.safe_dump([{"annotations": {"a": "b"}, **each} for each in EVENTS]),
            "an audit event in YAML that does not begin the file; give the list of the events",
        ),
    ],
)  # fmt: skip
def test_form_that_is_not_read_is_named(tmp_path, text, problem):
    with pytest.raises(InputError, match=problem):
        read(tmp_path, text)


@pytest.mark.parametrize("field", ["events", "- events"])
def test_sentence_about_events_in_prose_is_no_loss(tmp_path, field):
    """The words behind the name of a list are no list."""
    text = f"# Requests\n\n{field}: create 201: 22, patch 200: 10\n\n{dense(EVENTS[0])}\n"
    records, lost = read(tmp_path, text)
    assert keys(records) == CLAIMS[:1]
    assert lost == []
