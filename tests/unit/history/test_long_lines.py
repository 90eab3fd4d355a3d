"""Lines of foreign files that a pattern would try in so many ways that it never ended."""

import io
import re

import pytest

from app.adapters.history import mixtures
from app.adapters.history.audit import tables
from app.adapters.history.enclosed import line_documents
from app.adapters.history.formats import (
    collected_events,
    component_logs,
    kubelet_lines,
    logged_events,
)
from app.adapters.history.limits import DEFAULT_LIMITS
from app.adapters.history.printouts import descriptions, pages
from app.adapters.history.printouts.commands import Commands
from app.adapters.history.unpacking import ByteSource
from app.domain.log.records import KUBELET_REPORT
from tests import draws

MANY = 1_000_000


def table(text):
    return ByteSource("a.csv", lambda: io.BytesIO(text.encode()), DEFAULT_LIMITS)


@pytest.mark.parametrize("cell", [',"', ',""', ",a", ',"a'])
def test_line_of_many_cells_that_is_no_title_is_refused(cell):
    assert not tables.is_table(table("a" + cell * 5_000 + "!"))


@pytest.mark.parametrize(
    ("title", "is_title"),
    [
        ("TimeGenerated [UTC],log_s", True),
        ('"TimeGenerated [UTC]","log_s",', True),
        ('"a",b,"",c d', True),
        ("protoPayload.methodName,timestamp", True),
        ("alone", False),
        (",a", False),
        ("a,b!", False),
        ('{"a": 1, "b": 2}', False),
    ],
)
def test_titles_of_tables(title, is_title):
    assert (tables._TITLE.fullmatch(title) is not None) == is_title


def test_long_line_of_a_description_is_read():
    blank = " " * MANY
    match = descriptions._DescriptionReader([f"a:  x{blank}y \t"])._line(0)
    assert (match["label"], match["value"]) == ("a", f"x{blank}y")


def test_fields_after_a_long_word_of_a_scheduler_log_are_read():
    rest = f'"Successfully bound pod to node" {"x" * MANY} pod="a/b" node="n1"'
    assert component_logs._attempt(rest)[1:] == (
        "a",
        "b",
        "Successfully bound pod to node: node n1",
    )


@pytest.mark.parametrize("line", ["k " * MANY, "k get " + "-get " * 20_000, "oc " * 40])
def test_line_of_many_commands_is_text(line):
    above = Commands()
    above.note(line, 1)
    assert above.of(2, None) is None


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        ("gpu=yes:NoSchedule", ("gpu", "yes", "NoSchedule")),
        ("example.com/gpu:NoExecute", ("example.com/gpu", None, "NoExecute")),
        ("x" * MANY, None),
        ("a=" * MANY, None),
    ],
)
def test_taint_of_a_description(line, parts):
    match: re.Match | None = pages._TAINT.search(line)
    assert (match and match.group("key", "value", "effect")) == parts


@pytest.mark.parametrize(
    "line",
    [
        '"name=x"' * MANY,
        "name=x a=b " * (MANY // 10),
        f"x {collected_events.MARK}=v1 " * (MANY // 20),
        f"name=x\t{collected_events.MARK}=v1 " * (MANY // 20),
        "{" + 'namespace="a" ' * (MANY // 10) + f" {collected_events.MARK}=v1",
    ],
)
def test_line_of_many_fields_of_a_collector_is_none_of_its_events(line):
    assert collected_events.of_line(line) is None


def test_namespace_before_the_line_of_a_collector_is_read_from_many_labels():
    labels = "{" + 'namespace="a" ' * (MANY // 10)
    line = f'name=web kind=Pod {collected_events.MARK}=v1 reason=BackOff msg="x"'
    assert collected_events.of_line(f"{labels} {line}").namespace == ""
    assert collected_events.of_line(labels + '{namespace="b"} ' + line).namespace == "b"


def test_text_of_many_quotes_has_no_events_and_no_end():
    line = r'"{\"' * MANY
    assert [*line_documents.quoted(line)] == []
    with pytest.raises(ValueError, match="Expecting"):
        line_documents.record('{"a"=>' + '\\"' * MANY)


def test_pods_and_fields_behind_a_long_word_of_a_kubelet_log_are_read():
    text, word = "SyncLoop ADD", "x" * MANY
    report = kubelet_lines.of_fields(text, {"pods": f'["{word}" "shop/web"]'})
    assert report == [(KUBELET_REPORT, "shop", "web", text)]
    fields = f'{word} Kind:"Pod", Namespace:"shop", Name:"web"'
    line = f"Event(v1.ObjectReference{{{fields}}}): type: 'Warning' reason: 'Failed' x"
    assert logged_events.of_reference(line).name == "web"


@pytest.mark.parametrize(
    "mark",
    [
        "```", pytest.param("{code:", marks=draws.in_turn("refusals")), "{noformat}", "<![CDATA[",
        "]]>", "> ", "1\t",
    ],
)  # fmt: skip
def test_line_of_many_marks_of_fences_is_text(mark):
    mixture = mixtures.take_apart(mark.encode() * (MANY // len(mark)), "a", DEFAULT_LIMITS)
    assert (mixture.parts, mixture.damaged) == ([], [])
