"""The page of the checklist has every row of the contract, and every test that it names exists."""

import ast
import re
from functools import cache
from pathlib import Path

from docs import generate
from tests.shared_data import REPOSITORY
from tests.together import together

ROW = re.compile(r"^\| (\d+) \| ([^|]+) \| ([^|]+) \|(.*)$", re.MULTILINE)
TEST = re.compile(r"`([\w/]+\.py)::(\w+)`")


def page() -> str:
    return (generate.FOLDER / "checklist.md").read_text(encoding="utf-8")


@cache
def functions(path: Path) -> frozenset[str]:
    """The names of the test functions of a file."""
    if not path.is_file():
        return frozenset()
    tree = ast.parse(path.read_text(encoding="utf-8"))
    definitions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return frozenset(node.name for node in tree.body if isinstance(node, definitions))


@together(sorted(set(TEST.findall(page()))), "::".join)
def test_named_test_exists(test: tuple[str, str]) -> None:
    file, name = test
    assert file.startswith("tests/")
    assert name.startswith("test_")
    assert name in functions(REPOSITORY / file)


def test_every_row_names_its_proof() -> None:
    rows = ROW.findall(page())
    assert [int(number) for number, *_ in rows] == list(range(1, len(rows) + 1))
    for number, _, _, proof in rows:
        cells = proof.strip().removesuffix("|").strip().split("<br>")
        assert all(TEST.fullmatch(cell) for cell in cells), f"row {number}"


def test_rows_and_levels_are_those_of_the_contract() -> None:
    text = (REPOSITORY / "docs" / "parity" / "api.md").read_text(encoding="utf-8")
    contract = re.findall(r"^\| (\d+) \| .+ \| ([^|]+) \|$", text.split("## 15.")[1], re.MULTILINE)
    wanted = [(number, level.split(";")[0].strip()) for number, level in contract]
    assert [(number, level.strip()) for number, _, level, _ in ROW.findall(page())] == wanted
