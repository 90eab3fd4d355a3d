"""Journals as `journalctl -o export` writes them, put beside the same entries as `-o json`."""

import json
import random

import pytest

from app.adapters.history.enclosed import journals
from app.domain.values import timestamps
from tests.unit.history.test_kubelet_lines import LINE
from tests.unit.history.test_logged_events import POD, klog
from tests.unit.history.test_more_field_forms import read

CLAIM = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaim",
    "metadata": {"name": "gpu", "namespace": "shop", "uid": "u-1"},
}
MESSAGES = (
    klog(POD),
    LINE,
    klog('"Started"'),
    json.dumps(CLAIM),
    json.dumps(CLAIM | {"metadata": CLAIM["metadata"] | {"name": "shown"}}, indent=2),
)


def entries(messages):
    for number, message in enumerate(messages):
        yield {
            "__CURSOR": f"s=1;i={number}",
            "__REALTIME_TIMESTAMP": str(1767323045000006 + number),
            "_SYSTEMD_UNIT": "kubelet.service",
            "SYSLOG_IDENTIFIER": "kubelet",
            "MESSAGE": message,
        }


def exported(entry):
    """An entry in the form of journalctl, by the documentation of that form."""
    out = b""
    for name, value in entry.items():
        for each in value if isinstance(value, list) else [value]:
            content = each.encode()
            if "\n" in each or "\0" in each:
                size = len(content).to_bytes(8, "little")
                out += name.encode() + b"\n" + size + content + b"\n"
            else:
                out += name.encode() + b"=" + content + b"\n"
    return out + b"\n"


def told(records):
    return [(each.verb, each.kind, each.object, each.observed_at) for each in records]


@pytest.mark.parametrize("message", [*MESSAGES[1:], None], ids=lambda each: str(each)[:12])
def test_exported_journal_gives_what_the_same_journal_gives_as_json(tmp_path, message):
    chosen = list(entries(MESSAGES if message is None else [message, MESSAGES[0]]))
    as_json, _ = read(tmp_path, "".join(f"{json.dumps(each)}\n" for each in chosen), name="j.json")
    records, lost = read(tmp_path, b"".join(map(exported, chosen)), name="j.export")
    assert told(records) == told(as_json)
    assert records
    assert lost == []


def test_entry_of_an_exported_journal_has_its_time(tmp_path):
    records, _ = read(tmp_path, b"".join(map(exported, entries(MESSAGES[:1]))))
    (record,) = [each for each in records if each.kind == "Event"]
    assert timestamps.micro_text(record.observed_at) == "2026-01-02T03:04:05.000006Z"


def test_values_of_any_bytes_are_what_they_were():
    drawn = random.Random(5)
    for _ in range(50):
        many = [
            {
                "__REALTIME_TIMESTAMP": str(drawn.randrange(10**16)),
                "MESSAGE": "".join(drawn.choices("a=\n\0\té{", k=drawn.randrange(12))),
                "TAG": ["".join(drawn.choices("b=\n", k=3)) for _ in range(2)],
            }
            for _ in range(3)
        ]
        content = b"".join(map(exported, many))
        made = journals.as_lines(content)
        lines = made.content.split(b"\n")
        at = [content.count(b"\n", 0, content.find(exported(each))) for each in many]
        assert journals.is_export(content)
        assert made.broken == []
        assert [json.loads(lines[each]) for each in at] == many
        assert sum(map(bool, lines)) == len(many)


@pytest.mark.parametrize("cut", [3, 20, 60])
def test_entry_that_is_cut_is_named_and_the_others_are_read(tmp_path, cut):
    first, last = map(exported, entries([MESSAGES[3], MESSAGES[4]]))
    records, lost = read(tmp_path, first + last[:-cut], name="cut.export")
    assert [each.object["metadata"]["name"] for each in records] == ["gpu"]
    line = first.count(b"\n") + 1
    assert [each.partition(";")[0] for each in lost] == [
        f"cut.export:{line}: an entry of the journal is cut or damaged"
    ]


def test_text_that_only_quotes_a_journal_is_none():
    assert not journals.is_export(b"I saw\n__REALTIME_TIMESTAMP=1\nMESSAGE=x\n")
    assert not journals.is_export(b"KEY=value\nMESSAGE=x\n\n__REALTIME_TIMESTAMP=1\n")
