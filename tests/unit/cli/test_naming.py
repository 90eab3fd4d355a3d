"""Names of what answers list, as other commands take them."""

import json
from pathlib import Path

import pytest
import yaml

from app.cli import console
from app.domain.errors import InputError
from tests.command_line import redra
from tests.prepared_data import prepare


@pytest.mark.parametrize(
    ("answer", "names"),
    [
        ([{"name": "prod", "revision": 3}], ["prod"]),
        ([{"resource": "pods", "namespace": "a", "name": "web", "kind": "X"}] * 2, ["pod/a/web"]),
        ({"history": "prod", "items": []}, []),
        (
            {
                "items": [
                    {"text": "x", "objects": [{"group": "", "resource": "nodes", "name": "n"}]}
                ]
            },
            ["node/n"],
        ),
        (
            {"pools": [{"driver": "d", "pool": "p", "devices": [{"name": "x"}]}], "history": "h"},
            ["pool/d/p"],
        ),
        ({"subject": "pod a/web", "outcome": "X"}, ["pod/a/web"]),
        ([{"incident": "x", "objects": ["Pod a/b"]}], ["x"]),
        ([{"group": "example.com", "resource": "widgets", "name": "w"}], ["widgets.example.com/w"]),
    ],
)
def test_names_are_those_that_commands_take(answer: object, names: list[str]) -> None:
    assert console.names_in(answer) == names


def test_answer_without_names_is_refused_in_a_sentence() -> None:
    with pytest.raises(InputError, match="this answer has no names"):
        console.names_in({"history": "h", "largest": 3})


@pytest.mark.parametrize(
    "words",
    [("minimise", "x", "--keep", "violation"), ("export", "x"), ("report", "x"), ("head", "x")],
)
def test_form_in_the_place_of_a_file_is_refused(words: tuple[str, ...], tmp_path: Path) -> None:
    code, out, error = redra(*words, "-o", "json", data=tmp_path)
    assert (code, out) == (2, "")
    assert "-o is the file to write here, and 'json' is an output format" in error


@pytest.mark.parametrize(
    "words",
    [
        "controllers x scheduling=off -o name",
        "rebuild x -o name",
        "minimise x --keep evicted -o small.zip --output name",
        "sweep plan.yaml -o out --output name",
    ],
)
def test_answer_without_names_is_refused_before_anything_is_done(
    words: str, tmp_path: Path
) -> None:
    code, out, error = redra(*words.split(), folder=tmp_path)
    assert (code, out) == (2, "")
    assert error == "redra: -o name: this answer has no names; use json\n"
    assert list(tmp_path.iterdir()) == []


def test_name_of_a_made_history_is_its_answer(tmp_path: Path) -> None:
    prepare(tmp_path)
    pod = tmp_path / "pod.yaml"
    pod.write_text("{apiVersion: v1, kind: Node, metadata: {name: n}}")
    code, out, _ = redra("import", pod, "--history", "x", "-o", "name", data=tmp_path)
    assert (code, out) == (0, "x\n")
    code, out, _ = redra("fork", "x", "--history", "y", "-o", "name", data=tmp_path)
    assert (code, out) == (0, "y\n")


@pytest.mark.parametrize("form", ["yaml", "name"])
def test_forms_of_kubectl_are_made_of_the_json(form: str) -> None:
    code, out, error = redra("incidents", "list", "-o", form)
    assert (code, error) == (0, "")
    _, document, _ = redra("incidents", "list", "-o", "json")
    rows = json.loads(document)
    assert (yaml.safe_load(out) if form == "yaml" else out.split()) == (
        rows if form == "yaml" else [row["name"] for row in rows]
    )
    # What one command is asked for is not what the next one says.
    assert redra("incidents", "list", "-o", "json")[1] == document
