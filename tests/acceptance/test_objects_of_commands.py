"""An object is named in one way: every command that takes one takes all of its forms."""

import json
from pathlib import Path

import pytest

from tests import draws
from tests.acceptance.test_moments_of_commands import commands
from tests.command_line import ROOT, database_running, redra

RECORDING = ROOT / "examples" / "recordings" / "maintenance"

QUESTIONS = {
    "why": ("why", "{}", "--history", "prod", "--at", "369"),
    "timeline": ("timeline", "prod", "{}"),
    "timeline with an option": ("timeline", "{}", "--history", "prod"),
    "log": ("log", "prod", "{}"),
    "log of a history as an option": ("log", "{}", "--history", "prod"),
}
"""Commands whose object stands by itself."""

OPTIONS = {
    "timeline": ("timeline", "prod", "--object"),
    "blast": ("blast", "--history", "prod", "--at", "369", "--delete"),
    "fork": ("fork", "prod@369", "--history", "copy", "-o", "json", "--delete"),
}
"""Commands whose object stands behind an option."""

POD = {
    "kubectl's": ["pod/n-3", "-n", "taints"],
    "a plural": ["pods/n-3", "-n", "taints"],
    "a short name": ["po/n-3", "-n", "taints"],
    "the kind": ["Pod/n-3", "-n", "taints"],
    "its namespace": ["pod/taints/n-3"],
    "two words": ["pod", "n-3", "-n", "taints"],
    "short and plain": ["po", "n-3", "-n", "taints"],
}
CLASS = [
    ["deviceclass/gpu.example.com"],
    ["deviceclasses", "gpu.example.com"],
    ["class/gpu.example.com"],
    ["deviceclass.resource.k8s.io", "gpu.example.com"],
]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A data folder with a recording, whose database runs."""
    folder = tmp_path_factory.mktemp("objects") / "data"
    with database_running(folder, recorded=True):
        yield folder


def forms(name: str) -> dict[str, list[str]]:
    """The forms of a pod: kubectl's and two others for each command, by turns; all with draws."""
    first, *others = POD
    if not draws.WHOLE:
        others = others[[*QUESTIONS, *OPTIONS].index(name) % 3 :: 3]
    return {form: POD[form] for form in (first, *others)}


def put(words: tuple[str, ...], given: list[str]) -> list[str]:
    place = words.index("{}")
    return [*words[:place], *given, *words[place + 1 :]]


def test_all_commands_that_take_an_object_are_tried() -> None:
    taking = {
        words[0]
        for words, command in commands()
        for parameter in command.params
        if "KIND/NAME" in str(parameter.metavar)
        or "KIND/[NAMESPACE/]NAME" in str(parameter.metavar)
    }
    tried = {words[0] for words in (*QUESTIONS.values(), *OPTIONS.values())}
    assert taking == tried | {"fit", "map"}


@draws.in_turn("ways")
@pytest.mark.database
@pytest.mark.parametrize("name", QUESTIONS)
def test_all_forms_of_an_object_mean_the_same(data: Path, name: str) -> None:
    words = QUESTIONS[name]
    answers = {form: redra(*put(words, given), data=data) for form, given in forms(name).items()}
    first = answers["kubectl's"]
    assert (first[0], "n-3" in first[1]) == (0, True)
    assert [form for form, answer in answers.items() if answer != first] == []
    classes = [redra(*put(words, given), data=data) for given in CLASS]
    assert classes[0][0] == 0, classes[0][2]
    assert [answer for answer in classes if answer != classes[0]] == []


@draws.in_turn("ways")
@pytest.mark.database
@pytest.mark.parametrize("name", OPTIONS)
def test_all_forms_of_an_object_mean_the_same_behind_an_option(data: Path, name: str) -> None:
    answers = {}
    for form, (first, *rest) in forms(name).items():
        given = [f"{first} {rest[0]}", *rest[1:]] if rest and rest[0] != "-n" else [first, *rest]
        code, out, error = redra(*OPTIONS[name], *given, data=data)
        answers[form] = (code, out.replace("taints/n-3", "n-3"), error)
        if name == "fork":
            redra("histories", "delete", "copy", "--yes", data=data)
    first = answers["kubectl's"]
    assert first[0] == 0, first[2]
    assert [form for form, answer in answers.items() if answer != first] == []


@pytest.mark.database
def test_log_of_an_object_is_the_events_of_that_object(data: Path) -> None:
    whole = [json.loads(line) for line in redra("log", "prod", data=data)[1].splitlines()]
    asked = redra("log", "prod", "pod/n-3", "-n", "taints", "--limit", "3", data=data)[1]
    of_pod = [
        event
        for event in whole
        if (event["payload"]["resource"], event["payload"]["name"]) == ("pods", "n-3")
    ]
    assert len(of_pod) > 3
    assert [json.loads(line) for line in asked.splitlines()] == of_pod[:3]
    _, out, _ = redra("log", "prod", "-n", "taints", data=data)
    placed = [event for event in whole if event["payload"]["namespace"] == "taints"]
    assert [json.loads(line) for line in out.splitlines()] == placed


@pytest.mark.database
def test_parts_of_a_map_are_named_as_objects(data: Path) -> None:
    named = ("--history", "prod", "--at", "369")
    plain = redra("map", *named, "--node", "worker-1", data=data)
    assert plain[0] == 0
    for words in (("node/worker-1",), ("no", "worker-1"), ("nodes/worker-1",)):
        assert redra("map", *words, *named, data=data) == plain
    pool = redra("map", "worker-1", "--driver", "gpu.example.com", *named, data=data)
    for words in (
        ("pool/gpu.example.com/worker-1",),
        ("pool/worker-1", "--driver", "gpu.example.com"),
    ):
        assert redra("map", *words, *named, data=data) == pool
    assert redra("map", "device/gpu.example.com/worker-1/gpu-0", *named, data=data) == pool
    code, out, error = redra("map", "pod/n-3", *named, data=data)
    assert (code, out, "redra why pod/n-3 shows what it has" in error) == (2, "", True)


@pytest.mark.database
def test_class_and_template_are_named_as_objects(data: Path) -> None:
    named = ("--history", "prod", "--at", "369")
    plain = redra("fit", *named, "--class", "gpu.example.com", data=data)
    assert plain[0] == 0, plain[2]
    assert redra("fit", "deviceclass/gpu.example.com", *named, data=data) == plain
    assert redra("fit", "prod", "class", "gpu.example.com", *named, data=data) == plain
    code, _, error = redra("fit", "pod/n-3", *named, data=data)
    assert (code, "'pod/n-3' is neither a class nor a template" in error) == (2, True)
    code, _, error = redra("fit", "prod", "gpu.example.com", data=data)
    assert code == 2
    assert "write class/gpu.example.com or template/gpu.example.com, and prod before it" in error


@pytest.mark.parametrize(
    "words", [("why", "pod"), ("timeline", "pod/"), ("log", "/x"), ("blast", "--delete", "pod")]
)
def test_words_that_name_nothing_are_refused_alike(words: tuple[str, ...], tmp_path: Path) -> None:
    code, out, error = redra(*words, data=tmp_path)
    assert (code, out) == (2, "")
    assert "does not name an object; write it as KIND/NAME, as in pod/web" in error


@pytest.mark.database
def test_kind_that_is_none_is_refused_with_the_nearest(data: Path) -> None:
    for words in (("why", "pot/n-3"), ("timeline", "prod", "pot/n-3")):
        code, _, error = redra(*words, "--history", "prod", data=data)
        assert (code, "there is no kind 'pot'; do you mean pod" in error) == (2, True), error


@pytest.mark.database
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("pod/n-3", "--at", "369"), "; there is one in namespace taints"),
        (("pod/n-3",), "; there was one in namespace taints until revision"),
        (("pod/n-33",), "; do you mean n-3 in namespace taints?"),
        (("class/gpu",), "; do you mean gpu.example.com?"),
        (("node/worker-9",), "; do you mean worker-"),
        (("pod/zzzzzz",), "not found in namespace default up to revision 532\n"),
    ],
)
def test_what_is_not_there_is_told_where_it_is(
    data: Path, words: tuple[str, ...], said: str
) -> None:
    code, out, error = redra("why", *words, "--history", "prod", data=data)
    assert (code, out, error.count("\n")) == (2, "", 1)
    assert said in error


@pytest.mark.database
def test_object_of_another_history_is_told_with_its_namespace(data: Path) -> None:
    assert redra("histories", "create", "empty", data=data)[0] == 0
    try:
        for words, place in ((("pod/n-3",), " (in namespace taints)"), (("pod/taints/n-3",), "")):
            code, _, error = redra("why", *words, "--history", "empty", data=data)
            assert code == 2
            assert error.endswith(f"; history prod{place} has it\n")
    finally:
        redra("histories", "delete", "empty", "--yes", data=data)


@pytest.mark.database
def test_deletion_of_what_is_not_there_is_told_where_it_is(data: Path) -> None:
    words = ("blast", "--delete", "pod/n-3", "--history", "prod", "--at", "369")
    code, _, error = redra(*words, data=data)
    assert (code, "there is one in namespace taints" in error) == (2, True)


@draws.in_turn("ways")
@pytest.mark.database
def test_questions_in_sql_may_be_of_one_history(data: Path) -> None:
    assert redra("import", RECORDING, "--history", "other", data=data)[0] == 0
    try:
        for statement in (
            "SELECT count(*) AS n FROM log",
            "/* of all */ select count(*) as n from log",
            "WITH few AS (SELECT * FROM log) SELECT count(*) AS n FROM few",
            "WITH RECURSIVE one AS (SELECT 1 AS i) SELECT count(*) AS n FROM log",
        ):
            rows = [
                json.loads(redra("sql", statement, *of, "-o", "json", data=data)[1])[0]["n"]
                for of in ((), ("--history", "prod"), ("--history", "other"))
            ]
            assert rows[0] == rows[1] + rows[2]
            assert rows[1] == rows[2] > 0
        both = redra(
            "sql", "SELECT name FROM histories", "--history", "other", "-o", "json", data=data
        )
        assert json.loads(both[1]) == [{"name": "other"}]
        code, _, error = redra("sql", "EXPLAIN SELECT 1", "--history", "prod", data=data)
        assert (code, "works only with SELECT, VALUES, TABLE and WITH" in error) == (2, True)
        for table in ("public.histories", 'PUBLIC . "histories"', '"public".histories'):
            words = ("sql", f"SELECT count(*) FROM {table}", "--history", "prod")
            code, out, error = redra(*words, data=data)
            assert (code, out) == (2, "")
            assert "has the rows of all histories" in error
        code, _, error = redra("sql", "SELECT 1", "--history", "nowhere", data=data)
        assert (code, "there is no history 'nowhere'" in error) == (2, True)
    finally:
        redra("histories", "delete", "other", "--yes", data=data)


@pytest.mark.database
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("pod/n-33", "-n", "taints"), "pod 'n-33' does not occur in the history; do you mean n-3"),
        (("pod/n-3", "-n", "default"), "in namespace default; there is one in namespace taints"),
        (("-n", "taint"), "namespace 'taint' does not occur in the history; do you mean taints"),
        (("node/worker-9",), "node 'worker-9' does not occur in the history; do you mean worker-"),
        (("pood/n-3",), "there is no kind 'pood'; do you mean pod or pods"),
        (("node/worker-9", "--after", "300"), "do you mean worker-"),
    ],
)
def test_log_of_what_does_not_occur_is_refused_with_the_nearest(
    data: Path, words: tuple[str, ...], said: str
) -> None:
    code, out, error = redra("log", "prod", *words, data=data)
    assert (code, out, error.count("\n")) == (2, "", 1)
    assert said in error


@pytest.mark.database
def test_log_of_a_part_without_the_object_is_empty(data: Path) -> None:
    for words in (("node/worker-1", "--until", "1"), ("pod/n-3", "-n", "taints", "--after", "532")):
        assert redra("log", "prod", *words, data=data) == (0, "", "")
