"""Lines that `redra allocate` and `redra cel` cannot use: line, column or field, cause, exit."""

import json
from pathlib import Path

import pytest

from app.cli.application import application

GOOD = '{"name":"a","input":{"nodes":[],"classes":[],"slices":[],"claims":[]}}\n'
SLICE = """
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: s}
spec: {driver: d.com, nodeName: n1, pool: {name: n1, generation: 1, resourceSliceCount: 1},
  devices: [{name: d1, attributes: {x: {int: 3}}}]}
"""


def scenario(devices: int = 1, expression: str = "true", slices: int = 1) -> str:
    """One claim for one device, on one line."""
    found = [{"name": f"d{number}"} for number in range(devices)]
    given = {
        "nodes": [{"metadata": {"name": "n"}}],
        "classes": [
            {
                "metadata": {"name": "gpu"},
                "spec": {"selectors": [{"cel": {"expression": expression}}]},
            }
        ],
        "slices": [
            {
                "metadata": {"name": f"s{number}"},
                "spec": {
                    "driver": "d.com",
                    "nodeName": "n",
                    "pool": {"name": f"p{number}", "generation": 1, "resourceSliceCount": 1},
                    "devices": found,
                },
            }
            for number in range(slices)
        ],
        "claims": [
            {
                "metadata": {"name": "c", "namespace": "ns"},
                "spec": {
                    "devices": {
                        "requests": [
                            {
                                "name": "r",
                                "exactly": {
                                    "deviceClassName": "gpu",
                                    "allocationMode": "ExactCount",
                                    "count": 1,
                                },
                            }
                        ]
                    }
                },
            }
        ],
    }
    return json.dumps({"name": "big", "input": given}) + "\n"


def run(tmp_path: Path, capfd: pytest.CaptureFixture, command: str, text: str, *rest: str):
    file = tmp_path / "lines.jsonl"
    file.write_text(text)
    code = application([command, str(file), *rest])
    out, error = capfd.readouterr()
    return code, [json.loads(line) for line in out.splitlines()], error.replace(str(file), "FILE")


ALLOCATE = [
    pytest.param(GOOD + '{"name": }\n', "FILE:2: column 10", id="malformed"),
    pytest.param(GOOD + '{"name": "b"\n', "FILE:2: column 13: the JSON object ends too early"),
    pytest.param(GOOD + "[" * 100_000, "FILE:2: objects are nested too deeply", id="nested"),
    pytest.param(GOOD + "[1]\n", "FILE:2: a line must hold one JSON object", id="list"),
    pytest.param(GOOD + '{"name":"b"}', "FILE:2: input: must be an object", id="no-input"),
    pytest.param(GOOD + scenario(10_000), "has 10000 entries; at most 4096", id="devices"),
    pytest.param(
        GOOD + scenario(expression="true || " * 130_000 + "true"),
        "selectors[0].cel.expression: the expression has more than 100000 characters",
        id="expression",
    ),
]


@pytest.mark.parametrize(("text", "told"), ALLOCATE)
def test_a_scenario_that_cannot_be_used_ends_with_2(
    tmp_path: Path, capfd: pytest.CaptureFixture, text: str, told: str
) -> None:
    code, answers, error = run(tmp_path, capfd, "allocate", text)
    assert code == 2
    assert [found["name"] for found in answers] == ["a"]
    assert told in error


def test_ten_thousand_devices_in_many_slices_are_answered(
    tmp_path: Path, capfd: pytest.CaptureFixture
) -> None:
    code, answers, _ = run(tmp_path, capfd, "allocate", scenario(100, slices=100))
    assert code == 0
    assert answers[0]["results"][0]["allocations"] is not None
    assert {"elapsedMs", "steps"} <= set(answers[0])


@pytest.mark.parametrize(
    ("expression", "told"),
    [
        ("(" * 40_000 + "true" + ")" * 40_000, "CEL compile error: compilation failed: ERROR:"),
        # A step costs a tenth of the text that it joins: the limit is reached in 200 steps.
        (
            "[1,2,3,4,5].all(a, " * 4 + f'"{"x" * 50_000}" + "y" != ""' + ")" * 4,
            "actual cost limit exceeded",
        ),
        ("device.foo ==", "<input>:1:14: Syntax error"),
    ],
)
def test_an_expression_that_asks_too_much_is_an_error_of_the_answer(
    tmp_path: Path, capfd: pytest.CaptureFixture, expression: str, told: str
) -> None:
    code, answers, _ = run(tmp_path, capfd, "allocate", scenario(expression=expression))
    assert code == 0
    assert told in answers[0]["results"][0]["error"]


CASES = [
    ('{"name":"b","expression":5}', "FILE:2: expression is missing or not text"),
    ('{"name":"b","expression":"true","devices":7}', "FILE:2: devices: must be a list"),
    ('{"name":"b","expression":"true","devices":[7]}', "FILE:2: devices[0]: must be an object"),
    (
        '{"name":"b","expression":"true","devices":[{"attributes":{"x":3}}]}',
        "FILE:2: devices[0].attributes[x]: must be an object",
    ),
    ('{"name":"b","expression":"true","driver":1,"devices":[]}', "FILE:2: driver: must be text"),
]


@pytest.mark.parametrize(("text", "told"), CASES)
def test_a_selector_case_that_cannot_be_used_ends_with_2(
    tmp_path: Path, capfd: pytest.CaptureFixture, text: str, told: str
) -> None:
    first = '{"name":"a","expression":"true","devices":[{}]}\n'
    code, answers, error = run(tmp_path, capfd, "cel", first + text)
    assert code == 2
    assert answers == [{"name": "a", "maxCost": 0, "devices": [{"cost": 0, "match": True}]}]
    assert told in error


def test_a_selector_case_of_a_megabyte_is_refused_with_its_size(
    tmp_path: Path, capfd: pytest.CaptureFixture
) -> None:
    case = json.dumps({"name": "a", "expression": "true || " * 130_000 + "true"})
    code, answers, _ = run(tmp_path, capfd, "cel", case)
    assert code == 0
    assert "size exceeds limit: size: 1040004" in answers[0]["compileError"]


@pytest.mark.parametrize(
    ("expression", "position"),
    [("device.foo ==", "<input>:1:14:"), ("true &&\n device.y", "<input>:2:8:")],
)
def test_a_selector_that_does_not_compile_is_told_with_its_position(
    tmp_path: Path, capfd: pytest.CaptureFixture, expression: str, position: str
) -> None:
    slices = tmp_path / "slices.yaml"
    slices.write_text(SLICE)
    assert application(["cel", expression, "--slices", str(slices)]) == 1
    assert position in capfd.readouterr().err


def test_a_quirk_without_a_switch_says_why(tmp_path: Path, capfd: pytest.CaptureFixture) -> None:
    code, _, error = run(tmp_path, capfd, "allocate", GOOD, "--quirk", "q19=off")
    assert code == 2
    assert "quirk q19 has no switch" in error


@pytest.mark.parametrize("switch", ["zz=on", "zz=off", "=on"])
def test_an_unknown_quirk_is_refused_whichever_way(
    tmp_path: Path, capfd: pytest.CaptureFixture, switch: str
) -> None:
    code, _, error = run(tmp_path, capfd, "allocate", GOOD, "--quirk", switch)
    assert code == 2
    assert "there is no quirk" in error


def test_a_pace_without_decide_is_refused(capfd: pytest.CaptureFixture) -> None:
    code = application(["replay", "some-history", "--pace", "virtual"])
    error = capfd.readouterr().err
    assert code == 2
    assert "--pace" in error
    assert "add --mode decide" in error


READERS = {
    "cel": ["cel", "true", "--slices", "FILE"],
    "fleet": ["fleet", "--show", "--profile", "FILE"],
    "plan": ["fleet", "--show", "--profile", "nic", "--plan", "FILE"],
}
UNREADABLE = {
    "empty": b"",
    "binary": b"\xaa\x00\xff" * 100,
    "yaml": b"a: [",
    "json": b'{"kind":"x"',
    "list": b"[1, 2]",
    "number": b"3",
    "other fields": b"a: 1",
    "wrong types": b"devices: 3\nnodes: x\nname: [1]\ndriver: {}\nincidents: 7\n",
    "tag": b"!!python/object/apply:os.system [x]",
    "nested": b"[" * 100_000,
}


@pytest.mark.parametrize("command", READERS)
@pytest.mark.parametrize("content", UNREADABLE)
def test_a_file_that_cannot_be_used_is_named_in_one_sentence(
    tmp_path: Path, capfd: pytest.CaptureFixture, command: str, content: str
) -> None:
    file = tmp_path / "file"
    file.write_bytes(UNREADABLE[content])
    words = [word.replace("FILE", str(file)) for word in READERS[command]]
    assert application(words) == 2
    said = capfd.readouterr().err
    assert any(place in said for place in (str(file), "profile", "plan"))
    assert len(said.strip().splitlines()) == 1


LONG = "x" * 300
"""No file has a name of so many letters, and asking the system for it is an error."""


@pytest.mark.parametrize(
    "line",
    [
        f"verify {LONG}",
        f"import {LONG} --history made",
        f"lint {LONG}",
        f"export one -o {LONG}",
        f"report one -o {LONG}",
        f"head one -o {LONG}",
    ],
)
def test_name_that_no_file_can_have_is_refused_in_one_line(line, tmp_path, capsys):
    assert application([*line.split(), "--data", str(tmp_path / "data")]) == 2
    complaint = capsys.readouterr().err
    assert len(complaint.splitlines()) == 1
    assert LONG in complaint


@pytest.mark.parametrize(
    ("held", "expected", "is_expected"),
    [
        ({}, "d0", True),
        ({}, "d1", False),
        ({}, "", False),
        ({"devices": [{"driver": "d.com", "pool": "p0", "device": "d0"}]}, "d1", True),
        ({"devices": [{"driver": "d.com", "pool": "p0", "device": "d1"}]}, "d1", False),
    ],
)
@pytest.mark.parametrize("indent", [2, None])
def test_table_of_cases_is_answered_case_by_case(
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    held: dict,
    expected: str,
    is_expected: bool,
    indent: int | None,
) -> None:
    """The table that `export --as go-allocator-case` writes, and that of upstream."""
    (line,) = scenario(2).splitlines()
    given = json.loads(line)["input"]
    (node,) = given.pop("nodes")
    result = {"request": "r", "driver": "d.com", "pool": "p0", "device": expected}
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}
    allocation = {
        "devices": {"results": [result]},
        "nodeSelector": {"nodeSelectorTerms": [term]},
    }
    wanted = {"allocations": [allocation] if expected else None}
    case = {"name": "one", **given, "node": node, "allocatedState": held, "expected": wanted}
    table = json.dumps({"source": "redra", "count": 2, "cases": [case, case]}, indent=indent)
    code, answers, error = run(tmp_path, capfd, "allocate", table)
    assert [each["asExpected"] for each in answers] == [is_expected] * 2
    assert code == (not is_expected)
    assert ("2 answers other than the table expects" in error) == (not is_expected)
