"""Dumps that a viewer, a word processor or a page changed on the way: the objects are the same."""

import html
import json
import re

import pytest
import yaml

from app.adapters.history.enclosed.line_documents import AROUND_APPLIED
from app.adapters.history.enclosed.texts import OPEN_FENCE
from app.adapters.history.enclosed.yaml_blocks import INTERRUPTED
from app.adapters.history.opening import open_history
from app.adapters.history.reading import ReadOptions
from app.domain.errors import InputError
from tests.unit.history.worlds import CLAIMS, tree

SELECTOR = 'device.driver == "gpu.example.com" && device.attributes["gpu.example.com"].size == "b"'
APPLIED = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "gpu"}}
CLASSES = ("resource.k8s.io", "v1", "deviceclasses", "DeviceClass")
CLASS = tree(
    CLASSES,
    "gpu",
    metadata={
        "annotations": {
            "kubectl.kubernetes.io/last-applied-configuration": json.dumps(APPLIED) + "\n"
        },
        "uid": "u-1",
        "resourceVersion": "12",
        "creationTimestamp": "2026-01-02T03:04:05Z",
    },
    spec={"selectors": [{"cel": {"expression": SELECTOR}}]},
)
del CLASS["metadata"]["namespace"]
CLAIM = tree(
    CLAIMS,
    "one",
    "shop",
    metadata={"uid": "u-2", "resourceVersion": "13", "creationTimestamp": "2026-01-02T03:04:06Z"},
    spec={"devices": {"requests": [{"name": "a", "exactly": {"deviceClassName": "gpu"}}]}},
)
LIST = {"apiVersion": "v1", "items": [CLASS, CLAIM], "kind": "List", "metadata": {}}


class _AsKubectl(yaml.SafeDumper):
    """The notation of kubectl: literal blocks, and quotes around what looks like another type."""


def _text(dumper, value):
    style = "|" if "\n" in value else '"' if re.match(r"\d", value) else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


_AsKubectl.add_representer(str, _text)
YAML = yaml.dump(LIST, Dumper=_AsKubectl, width=1000)
JSON = json.dumps(LIST, indent=4)


def read(tmp_path, content, name="a.txt"):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with open_history([path], ReadOptions()) as history:
        objects = {record.name: record.object for record in history.records()}
        return objects, [f"{place}: {problem}" for place, problem in history.refused_places]


def numbered(form):
    return "\n".join(form.format(at, line) for at, line in enumerate(YAML.split("\n"), start=1))


def typographic(text):
    marks = iter("\u201c\u201d" * text.count('"'))
    return re.sub('"', lambda _: next(marks), text)


@pytest.mark.parametrize(
    "text",
    [
        numbered("{:7d} {}"),
        numbered("{:3d} {}"),
        numbered("{} {}"),
        numbered("{:5d}  {}"),
        numbered("{}:{}"),
        "$ kubectl get -o yaml | less -N\n" + numbered("{:7d} {}") + "\nthat is all\n",
        typographic(YAML),
        f"I see:\n{typographic(YAML)}",
        YAML.replace("\n", "\r\r\n"),
        f"I see:\r\r\n{YAML}".replace("\n", "\r\r\n"),
        html.escape(YAML),
        html.escape(YAML).replace("&quot;", "&#34;"),
        html.escape(JSON),
    ],
    ids=lambda text: repr(text[:24]),
)
def test_changed_dump_has_the_objects_of_the_dump(tmp_path, text):
    plain, _ = read(tmp_path, YAML, "plain.yaml")
    objects, refused = read(tmp_path, text)
    assert objects == plain
    assert objects["gpu"]["spec"]["selectors"][0]["cel"]["expression"] == SELECTOR
    assert refused == []


def test_typographic_quotes_beside_plain_ones_are_part_of_a_value(tmp_path):
    text = YAML.replace("deviceClassName: gpu", "deviceClassName: \u201cgpu\u201d")
    objects, _ = read(tmp_path, text)
    (request,) = objects["one"]["spec"]["devices"]["requests"]
    assert request["exactly"]["deviceClassName"] == "\u201cgpu\u201d"


def test_typographic_quotes_within_a_value_in_quotes_are_part_of_it(tmp_path):
    text = (
        "apiVersion: v1\nkind: ConfigMap\nmetadata: \n  name: a\n  labels:\n    b: \u201cc\u201d\n"
    )
    text += "  annotations:\n    d: \u201ca {} b\u201d\n    e: \u201cf\u201d\n"
    objects, _ = read(tmp_path, text.format("\\\u201cg\\\u201d"))
    assert objects["a"]["metadata"]["labels"] == {"b": "c"}
    assert objects["a"]["metadata"]["annotations"] == {"d": 'a "g" b', "e": "f"}


def test_numbers_that_count_on_by_chance_stay(tmp_path):
    text = "queue:\n1 web waits\n2 web-2 waits\n3 web-3 waits\n\n"
    objects, refused = read(tmp_path, f"{text}{YAML}")
    assert set(objects) == {"gpu", "one"}
    assert refused == []


@pytest.mark.parametrize(
    "text",
    [
        "\n".join(f"# {line}" for line in YAML.split("\n")),
        "\n".join(f"| 12 - {line}" for line in YAML.split("\n")),
    ],
)
def test_what_was_applied_is_no_object_where_the_one_around_it_is_not_read(tmp_path, text):
    with pytest.raises(InputError, match=AROUND_APPLIED):
        read(tmp_path, text)
    objects, refused = read(tmp_path, f"I see:\n{text}\n\n{yaml.safe_dump(CLAIM)}")
    assert set(objects) == {"one"}
    assert len(refused) == 1
    assert refused[0].endswith(AROUND_APPLIED)


def test_what_was_applied_is_no_object_in_a_text_with_escapes(tmp_path):
    objects, _ = read(tmp_path, f"made {YAML!r}\n\n{yaml.safe_dump(CLAIM)}")
    assert set(objects) == {"one"}


def logged(tree):
    return f"level=info msg=listed body={json.dumps(json.dumps(tree))} took=3ms\n"


def test_list_that_a_program_logs_between_quotes_has_its_objects(tmp_path):
    plain, _ = read(tmp_path, JSON, "plain.json")
    objects, refused = read(tmp_path, f"{logged(LIST)}level=info msg=done\n")
    assert objects == plain
    assert refused == []


def test_list_between_quotes_of_what_somebody_asks_for_is_text(tmp_path):
    asked = {**LIST, "items": [CLASS, {**CLAIM, "metadata": {"name": "asked"}}]}
    objects, _ = read(tmp_path, f"{logged(asked)}{logged(CLAIM)}")
    assert set(objects) == {"one"}


TEXTS = {"a": "first\n  second: 2\n\nthird\n", "b": "x\n\n\ny"}
DOC = {
    **CLAIM,
    "metadata": {**CLAIM["metadata"], "name": "doc", "uid": "u-3", "annotations": TEXTS},
}
PAGED = {**LIST, "items": [*LIST["items"], DOC]}
PAGED_YAML = yaml.dump(PAGED, Dumper=_AsKubectl, width=1000)


def paused(text, mark, every, *, ahead=False):
    """The lines with a mark behind each so many of them, or at the beginning of the next."""
    lines = text.rstrip("\n").split("\n")
    marked = range(every, len(lines), every)
    return "\n".join(
        f"{mark}{'' if ahead else chr(10)}{line}" if at in marked else line
        for at, line in enumerate(lines)
    )


@pytest.mark.parametrize("every", range(2, 9))
@pytest.mark.parametrize("form", [PAGED_YAML, json.dumps(PAGED, indent=4)], ids=["yaml", "json"])
@pytest.mark.parametrize(
    ("mark", "ahead"),
    [
        ("--More--", False),
        ("\x1b[7m--More--(31%)\x1b[27m", False),
        ("-- More --", False),
        ("<--- More --->", False),
        (":", False),
        ("--More--\r" + " " * 9 + "\r", True),
        ("--More--" + "\b" * 8 + " " * 8 + "\b" * 8, True),
    ],
)
def test_objects_between_the_marks_of_a_pager_are_the_same(tmp_path, form, mark, ahead, every):
    plain, _ = read(tmp_path, form)
    assert plain["doc"]["metadata"]["annotations"] == TEXTS
    objects, refused = read(tmp_path, paused(form, mark, every, ahead=ahead))
    assert (objects, refused) == (plain, [])


@pytest.mark.parametrize("mark", ["--More--", "-- More --(7%)", "<--- More --->", "...skipping..."])
@pytest.mark.parametrize("behind", ["", "$ kubectl get nodes\n", "\nnote: I stopped here\n"])
def test_dump_that_somebody_stopped_to_page_through_is_named(tmp_path, mark, behind):
    _, refused = read(tmp_path, f"{YAML}{mark}\n{behind}")
    assert refused == [
        f"a.txt:{YAML.count(chr(10)) + 1}: the text says that a part was cut off here"
    ]


def test_lines_behind_the_marks_of_a_pager_keep_their_numbers(tmp_path):
    text = f"{paused(YAML, '--More--', 5)}\n---\n"
    _, refused = read(tmp_path, f"{text}apiVersion: v1\nkind: [\nmetadata:\n  name: a\n")
    (problem,) = refused
    first = text.count("\n") + 1
    assert any(problem.startswith(f"a.txt:{first + at}") for at in range(4)), problem


@pytest.mark.parametrize("every", [10, 12, 19])
@pytest.mark.parametrize("line", ["(END)", "lines 1-24", "I pressed a key here"])
def test_document_that_other_words_interrupt_is_named(tmp_path, line, every):
    _, refused = read(tmp_path, paused(YAML, line, every))
    assert f"a.txt:{every + 1}: {INTERRUPTED}" in refused


@pytest.mark.parametrize("words", ["It fails:\n  a: b\n", "Then\n\n  a: b\n", "* one\n  two\n"])
def test_words_behind_a_document_do_not_interrupt_it(tmp_path, words):
    _, refused = read(tmp_path, f"{YAML}{words}")
    assert refused == []


SCALARS = (
    "apiVersion: v1\nkind: Pod\nmetadata:\n  name: web\n  annotations:\n    a: |\n      b\n\n"
    "\n        c: d\n    e: |+\n      f\n\n    g: >-\n      h\n      i\n\n      j\n"
    '    k: l\n      m\n\n      n\n    o: "p\n      q\n\n      r"\n    s: |-\n      t\n'
)


@pytest.mark.parametrize("name", ["a.txt", "a.yaml"])
@pytest.mark.parametrize("before", ["", "# made by hand\n", "---\n", "I see:\n"])
@pytest.mark.parametrize("end", ["\n\n", "\n  \n", "\r\n\r\n"])
def test_empty_line_behind_each_line_is_in_no_text(tmp_path, name, before, end):
    values = yaml.safe_load(SCALARS)["metadata"]["annotations"]
    assert values["a"] == "b\n\n\n  c: d\n"
    second = SCALARS.replace("web", "db").replace("  k: l", "  k: u")
    text = f"{before}{SCALARS}---\n{second}"
    objects, refused = read(tmp_path, text.replace("\n", end), name)
    assert refused == []
    assert objects["web"]["metadata"]["annotations"] == values
    assert objects["db"]["metadata"]["annotations"] == {**values, "k": "u m\nn"}


def test_empty_lines_that_only_one_text_has_stay(tmp_path):
    text = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: web\n  annotations:\n    a: |\n"
    objects, _ = read(tmp_path, text + "\n\n".join(f"      {at}" for at in range(20)), "a.yaml")
    assert objects["web"]["metadata"]["annotations"]["a"].count("\n") >= 38


@pytest.mark.parametrize("name", ["a.txt", "a.yaml"])
def test_problem_between_empty_lines_is_where_it_stands(tmp_path, name):
    text = f"{SCALARS}---\n{SCALARS.replace('web', 'db')}  name: twice\n".replace("\n", "\n\n")
    wanted = text[: text.index("  name: twice")].count("\n") + 1
    path = tmp_path / name
    path.write_text(text)
    with open_history([path], ReadOptions(keep_going=True)) as history:
        assert {record.name for record in history.records()} <= {"web"}
        assert [place for place, _ in history.refused_places] == [f"{name}:{wanted}"]


FENCED = f"I see:\n```yaml\n{yaml.dump(CLASS)}---\n{yaml.dump(CLAIM, sort_keys=False)}"


@pytest.mark.parametrize("end", ["", "\n"])
def test_object_that_an_open_fence_leaves_without_its_end_is_named(tmp_path, end):
    whole, refused = read(tmp_path, f"{FENCED}```\n")
    assert set(whole) == {"gpu", "one"}
    assert refused == []
    last = FENCED.index("name: one")
    for length in (*range(last, len(FENCED), 17), len(FENCED)):
        objects, refused = read(tmp_path, f"{FENCED[:length]}{end}")
        assert objects["gpu"] == whole["gpu"]
        assert any(OPEN_FENCE in problem for problem in refused), FENCED[:length]


@pytest.mark.parametrize("mark", ["```", "~~~", "{code}", "[/code]", "</pre>"])
def test_mark_behind_an_object_leaves_nothing_open(tmp_path, mark):
    _, refused = read(tmp_path, f"{yaml.dump(CLAIM)}{mark}\n\nThat is all.\n")
    assert refused == []
    _, refused = read(tmp_path, f"{yaml.dump(CLAIM)}{mark}\n")
    assert refused == []
