"""`redra lint` as CI and authors of drivers meet it."""

import json
from pathlib import Path

import pytest
import yaml

from app.analysis.lint.linting import RULES
from tests import draws
from tests.command_line import EXAMPLES, database_running, redra
from tests.shared_data import shared_path

BROKEN = """\
apiVersion: resource.k8s.io/v1beta1
kind: ResourceSlice
metadata:
  name: board
spec:
  driver: board.example.com
  pool: {name: board, generation: 1, resourceSliceCount: 2}
  allNodes: true
  devices:
  - name: a
    basic:
      attributes:
        model: {string: x}
  - name: b
    basic:
      attributes:
        model:
          int: 3
---
apiVersion: v1
kind: List
items:
- apiVersion: resource.k8s.io/v1
  kind: DeviceClass
  metadata: {name: board}
  spec:
    selectors:
    - cel:
        expression: device.driver == "bord.example.com"
"""


MODELS = ("small", "middle", "large")


def alternative(model: str) -> str:
    """A class and two slices, with the same names for each model."""
    selector = f'device.attributes["board.example.com"].model == "{model}"'
    trees = [
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "DeviceClass",
            "metadata": {"name": "board"},
            "spec": {"selectors": [{"cel": {"expression": selector}}]},
        }
    ]
    for number in range(2):
        device = {"name": f"d-{number}", "attributes": {"model": {"string": model}}}
        spec = {
            "driver": "board.example.com",
            "nodeName": "node-a",
            "pool": {"name": "node-a", "generation": 1, "resourceSliceCount": 2},
            "devices": [device],
        }
        trees.append(
            {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "ResourceSlice",
                "metadata": {"name": f"board-{number}"},
                "spec": spec,
            }
        )
    return yaml.safe_dump_all(trees)


def test_alternatives_of_a_folder_are_told_once(tmp_path: Path) -> None:
    for number, model in enumerate(MODELS):
        (tmp_path / f"case-{number}.yaml").write_text(alternative(model))
    code, out, _ = redra("lint", tmp_path, "-o", "json")
    findings = json.loads(out)["findings"]
    assert code == 0
    assert [each["rule"] for each in findings] == ["object-duplicate", "object-duplicate"]
    for number, each in enumerate(findings, 1):
        assert each["place"]["source"].endswith(f"case-{number}.yaml")
        assert "DeviceClass/board is there already, as 2 more objects of" in each["message"]
        assert len(each["related"]) == 3
    for number in range(3):
        assert redra("lint", tmp_path / f"case-{number}.yaml", "--fail-on", "note")[0] == 0


def test_name_that_one_file_has_twice_is_told_each_time(tmp_path: Path) -> None:
    path = tmp_path / "all.yaml"
    path.write_text("---\n".join(alternative(model) for model in MODELS))
    _, out, _ = redra("lint", path, "-o", "json")
    rules = [each["rule"] for each in json.loads(out)["findings"]]
    assert rules.count("object-duplicate") == 6


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    path = tmp_path / "broken.yaml"
    path.write_text(BROKEN)
    return path


def test_findings_have_the_line_of_their_field(broken: Path) -> None:
    code, out, _ = redra("lint", broken, "-o", "json")
    found = {each["rule"]: each["place"]["line"] for each in json.loads(out)["findings"]}
    assert code == 1
    assert found == {
        "pool-incomplete": 7,
        "attribute-type-differs": 17,
        "class-matches-nothing": 29,
    }


@pytest.mark.parametrize("name", ["broken.txt", "broken"])
def test_file_of_manifests_is_one_whatever_its_suffix_is(broken: Path, name: str) -> None:
    """As for kubectl; of manifests between other text, packed, the last state is checked."""
    other = broken.rename(broken.with_name(name))
    code, out, _ = redra("lint", other, "-o", "json")
    assert code == 1
    assert sorted(each["place"]["line"] for each in json.loads(out)["findings"]) == [7, 17, 29]
    other.write_text(f"Look:\n\n```yaml\n{BROKEN}```\n")
    code, out, _ = redra("lint", other, "-o", "json")
    assert code == 1
    assert "class-matches-nothing" in out


@pytest.mark.parametrize(
    ("threshold", "ignored", "expected"),
    [
        ("error", [], 1),
        ("error", ["pool-incomplete"], 0),
        ("warning", ["pool-incomplete"], 1),
        ("note", ["pool-incomplete", "attribute-type-differs", "class-matches-nothing"], 0),
    ],
)
def test_exit_code_is_that_of_the_gravest(
    broken: Path, threshold: str, ignored: list[str], expected: int
) -> None:
    options = [word for rule in ignored for word in ("--ignore", rule)]
    assert redra("lint", broken, "--fail-on", threshold, *options)[0] == expected


def test_examples_are_clean_but_for_notes() -> None:
    code, out, error = redra("lint", EXAMPLES, "--fail-on", "warning")
    assert (code, error) == (0, ""), out


def test_text_says_place_reason_and_cure(broken: Path) -> None:
    _, out, _ = redra("lint", broken)
    assert f"error pool-incomplete: {broken}:7: ResourceSlice/board" in out
    assert f"  cure: {RULES['pool-incomplete'].cure}" in out
    assert out.endswith("2 objects: 1 error, 2 warnings, 0 notes\n")


@pytest.mark.parametrize(
    ("name", "is_refused"),
    [
        ("board", False),
        ("a.b-c1", False),
        ("x" * 253, False),
        ("x" * 254, True),
        ("Board", True),
        ("a_b", True),
        ("-a", True),
        ("a-", True),
        ("a..b", True),
        ("a b", True),
    ],
)
@pytest.mark.parametrize("kind", ["DeviceClass", "ResourceSlice", "ResourceClaim"])
def test_name_that_the_api_refuses_is_an_error_at_its_line(
    kind: str, name: str, is_refused: bool, tmp_path: Path
) -> None:
    """DNS-1123 subdomains of at most 253 characters are names."""
    spec = {
        "DeviceClass": {},
        "ResourceSlice": {
            "driver": "board.example.com",
            "pool": {"name": "board", "generation": 1, "resourceSliceCount": 1},
            "allNodes": True,
            "devices": [{"name": "a"}],
        },
        "ResourceClaim": {
            "devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "board"}}]}
        },
    }[kind]
    tree = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": spec,
    }
    path = tmp_path / "named.yaml"
    path.write_text(yaml.safe_dump(tree, sort_keys=False, width=1000))
    _, out, _ = redra("lint", path, "-o", "json")
    report = json.loads(out)
    refusals = [each for each in report["findings"] if each["rule"] == "object-invalid"]
    assert {each["place"]["field"] for each in refusals} == (
        {"metadata.name"} if is_refused else set()
    )
    assert {each["place"]["line"] for each in refusals} == ({4} if is_refused else set())
    assert report["objects"] == 1


def test_standard_input_is_read() -> None:
    code, out, _ = redra("lint", "-", "-o", "json", stdin=BROKEN)
    assert code == 1
    assert {each["place"]["source"] for each in json.loads(out)["findings"]} == {"standard input"}


def test_sarif_has_what_its_schema_requires(broken: Path) -> None:
    """The parts that SARIF 2.1.0 requires, and the references within the log."""
    _, out, _ = redra("lint", broken, "-o", "sarif")
    log = json.loads(out)
    assert log["version"] == "2.1.0"
    (run,) = log["runs"]
    driver = run["tool"]["driver"]
    assert driver["name"] == "redra"
    assert [rule["id"] for rule in driver["rules"]] == list(RULES)
    assert len(run["results"]) == 3
    for result in run["results"]:
        assert result["message"]["text"]
        assert result["level"] in ("none", "note", "warning", "error")
        assert driver["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
        (location,) = result["locations"]
        physical = location["physicalLocation"]
        assert physical["artifactLocation"]["uri"] == broken.as_posix()
        assert physical["region"]["startLine"] >= 1
    with_related = [each for each in run["results"] if "relatedLocations" in each]
    assert all(each["id"] >= 1 for result in with_related for each in result["relatedLocations"])


@pytest.mark.parametrize(
    ("head", "message"),
    [
        ("apiVersion: resource.k8s.io/v1\nkind: ResourceSlize", "there is no kind 'ResourceSlize'"),
        ("apiVersion: resource.k8s.io/v1\nkind: resourceslice", "there is no kind 'resourceslice'"),
        ("apiVersion: resource.k8s.io/v1\nkind: 7", "kind is missing, or is not text"),
        ("apiVersion: resource.k8s.io/v1", "kind is missing, or is not text"),
        ("kind: ResourceSlice", "apiVersion is missing, or is not text"),
        ("apiVersion: v1\nkind: ResourceSlice", "there is no kind 'ResourceSlice' in v1"),
        ("apiVersion: example.com/v1\nkind: ResourceSlice", ""),
        ("apiVersion: resource.k8s.io/v1alpha3\nkind: ResourcePoolStatusRequest", ""),
        ("kind: ClusterConfiguration", ""),
    ],
)
def test_object_of_no_kind_of_the_api_is_not_passed_over(
    tmp_path: Path, head: str, message: str
) -> None:
    path = tmp_path / "slice.yaml"
    path.write_text(f"{head}\nmetadata: {{name: board}}\nspec: {{}}\n")
    code, out, _ = redra("lint", path, "-o", "json")
    findings = json.loads(out)["findings"]
    assert code == bool(message)
    assert [each["rule"] for each in findings] == ["object-invalid"] * code
    assert all(message in each["message"] for each in findings)


@pytest.mark.parametrize(
    ("written", "read_as"),
    [("n", "bool"), ("off", "bool"), ("1e3", "number"), ("0o7", "number"), ('"n"', "")],
)
def test_name_that_kubectl_reads_as_no_text_is_refused(
    tmp_path: Path, written: str, read_as: str
) -> None:
    path = tmp_path / "claim.yaml"
    path.write_text(
        "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {name: c}\nspec:\n"
        f"  devices: {{requests: [{{name: {written}, exactly: {{deviceClassName: a}}}}]}}\n"
    )
    code, out, _ = redra("lint", path, "-o", "json")
    messages = [each["message"] for each in json.loads(out)["findings"]]
    assert code == bool(read_as)
    assert [f"cannot unmarshal {read_as} into" in message for message in messages] == [True] * code


def test_object_that_the_api_refuses_is_named(tmp_path: Path) -> None:
    path = tmp_path / "slice.yaml"
    tree = yaml.safe_load(BROKEN.partition("---")[0])
    tree["spec"]["pool"]["resourceSliceCount"] = 0
    path.write_text(yaml.safe_dump(tree))
    _, out, _ = redra("lint", path, "-o", "json")
    (finding,) = json.loads(out)["findings"]
    assert finding["rule"] == "object-invalid"
    assert finding["place"]["field"] == "spec.pool.resourceSliceCount"
    assert finding["message"] == "Invalid value: 0: must be greater than zero"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["lint"], "either no source is given, or both files and a history"),
        (["lint", "gone.yaml"], "gone.yaml: there is no such file\n"),
        (["lint", "lab"], "no such file; a history is checked with --history lab\n"),
        (["lint", "examples/cluster", "--ignore", "no-such-rule"], "there is no rule"),
        (
            ["lint", "examples/cluster", "--history", "x"],
            "either no source is given, or both files and a history",
        ),
    ],
)
def test_bad_questions_are_refused_in_one_sentence(words: list[str], message: str) -> None:
    code, out, error = redra(*words)
    assert (code, out) == (2, "")
    assert message in error
    assert error.count("\n") == 1


@pytest.mark.parametrize("text", ["", "---\n# nothing\n---\n", "Error", "[1]"])
def test_source_without_any_object_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "slices.yaml").write_text(text)
    for source in (tmp_path, tmp_path / "slices.yaml", "-"):
        place = "standard input" if source == "-" else source
        assert redra("lint", source, stdin=text) == (2, "", f"redra: {place}: it holds no object\n")
    (tmp_path / "more.yaml").write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: more}\n")
    assert redra("lint", tmp_path) == (0, "0 objects: 0 errors, 0 warnings, 0 notes\n", "")


@pytest.mark.parametrize("entry", ["null", "7", "text"])
def test_entry_of_a_list_that_is_no_object_is_refused(entry: str, tmp_path: Path) -> None:
    file = tmp_path / "list.yaml"
    of_class = "{apiVersion: resource.k8s.io/v1, kind: DeviceClass, metadata: {name: c}, spec: {}}"
    file.write_text(f"apiVersion: v1\nkind: List\nitems: [{of_class}, {entry}]\n")
    expected = (2, "", f"redra: {file}:1: items[1] must be an object\n")
    assert redra("lint", file) == expected
    assert redra("lint", tmp_path) == expected


def test_manifests_beside_a_log_are_said_not_to_be_checked(tmp_path: Path) -> None:
    """A log in a folder is a recording, whose manifests are its inputs; else they are lost."""
    (tmp_path / "board.yaml").write_text(BROKEN)
    code, out, _ = redra("lint", tmp_path, "-o", "json")
    assert (code, json.loads(out)["notChecked"]) == (1, [])
    audit = (shared_path("histories", "j-api-versions") / "audit.jsonl.gz").read_bytes()
    (tmp_path / "audit.jsonl.gz").write_bytes(audit)
    sentence = f"2 manifests beside a log in {tmp_path}; lint their files apart from the log"
    code, out, _ = redra("lint", tmp_path, "-o", "json")
    assert json.loads(out)["notChecked"] == [sentence]
    code, out, _ = redra("lint", tmp_path)
    assert f"not checked: {sentence}\n" in out
    code, out, _ = redra("lint", tmp_path, "-o", "sarif")
    (invocation,) = json.loads(out)["runs"][0]["invocations"]
    (notice,) = invocation["toolExecutionNotifications"]
    assert notice["message"]["text"] == f"not checked: {sentence}"


def test_templates_of_a_chart_are_said_not_to_be_checked(tmp_path: Path) -> None:
    """Named alone, a template is refused: nothing of it is checked."""
    (tmp_path / "board.yaml").write_text(BROKEN)
    template = tmp_path / "class.yaml"
    template.write_text("kind: DeviceClass\nmetadata: {name: a, labels: {{ .Values.labels }}}\n")
    problem = (
        f"{template}:2: it is a template, which is no YAML before its {{{{ … }}}} are replaced; "
        "render it, for example with helm template"
    )
    code, out, _ = redra("lint", tmp_path, "-o", "json")
    assert (code, json.loads(out)["notChecked"]) == (1, [problem])
    assert redra("lint", template) == (2, "", f"redra: {problem}\n")


def test_recording_is_looked_at_over_time() -> None:
    code, out, _ = redra("lint", shared_path("histories", "c-multihost-tpu"), "-o", "json")
    findings = json.loads(out)["findings"]
    spells = [each for each in findings if each["rule"] == "pool-incomplete-for"]
    assert code == 0
    assert "was incomplete 3 times" in spells[0]["message"]


@draws.in_turn("ways")
@pytest.mark.parametrize("name", ["a-quickstart", "b-mig-partitions"])
def test_recordings_of_sound_drivers_have_notes_at_most(name: str) -> None:
    code, out, _ = redra("lint", shared_path("histories", name), "--fail-on", "warning")
    assert code == 0, out


@draws.in_turn("ways")
@pytest.mark.database
def test_history_and_its_bundle_say_what_the_recording_says(tmp_path: Path) -> None:
    recording, data = shared_path("histories", "j-api-versions"), tmp_path / "data"
    bundle = tmp_path / "versions.zip"
    with database_running(data):
        assert redra("import", recording, "--history", "versions", data=data)[0] == 0
        assert redra("export", "versions", "-o", bundle, data=data)[0] == 0
        answers = [
            redra("lint", "--history", "versions", "-o", "json", data=data),
            redra("lint", bundle, "-o", "json"),
            redra("lint", recording, "-o", "json"),
        ]
    rules = [
        [(each["rule"], each["message"]) for each in json.loads(out)["findings"]]
        for _, out, _ in answers
    ]
    assert rules[0] == rules[1] == rules[2] != []
    first = json.loads(answers[0][1])["findings"][0]
    assert first["place"]["revision"] > 0
