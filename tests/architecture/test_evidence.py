"""The page of evidence names code and tests that exist, and no rule without evidence or doubt."""

import ast
import re
from dataclasses import fields
from functools import cache
from pathlib import Path

import pytest

from app.domain.controllers.quirks import ControllerQuirks
from docs import generate
from tests.shared_data import REPOSITORY

TEST = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
PLACE = re.compile(r"`([\w/]+\.py)::(\w+)`")
SOURCES = re.compile(
    r"(allocator|controllers|objects|cel|api)\.md \d|kubernetes #\d+|KEP-\d+|reference|"
    r"vectors|recordings? |own:"
)


def rows() -> list[tuple[str, str, str, str]]:
    """The cells of each rule."""
    text = (generate.FOLDER.parent / "parity" / "evidence.md").read_text(encoding="utf-8")
    table = []
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split(" | ")]
        if line.startswith("| ") and cells[0] != "rule":
            assert len(cells) == 4, line
            table.append(tuple(cells))
    return table


@cache
def names(path: Path) -> frozenset[str]:
    """What a module defines, at any depth."""
    defined = {"__doc__"}
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            defined.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            defined.update(target.id for target in targets if isinstance(target, ast.Name))
    return frozenset(defined)


@pytest.mark.parametrize("row", rows(), ids=lambda row: row[0][:50])
def test_rule_has_a_place_evidence_and_tests(row: tuple[str, str, str, str]) -> None:
    _, where, evidence, held_by = row
    place = PLACE.fullmatch(where)
    assert place
    assert place[2] in names(REPOSITORY / place[1]), where
    assert SOURCES.search(evidence), evidence
    cells = held_by.split("<br>")
    assert all(TEST.fullmatch(cell) for cell in cells), held_by
    for file, name in TEST.findall(held_by):
        assert name in names(REPOSITORY / file), f"{file}::{name}"


def test_rule_that_only_a_recording_shows_has_its_doubt() -> None:
    recorded = re.compile(r"[\w-]+\.md [\d., and]+ \*\(recorded\)\*")
    other = re.compile(r"\.md \d|kubernetes #|KEP-|reference|vectors|own:")
    for rule, _, evidence, _ in rows():
        sources, _, doubt = recorded.sub("", evidence).partition("Doubt:")
        assert other.search(sources) or doubt, rule


def test_every_difference_between_releases_is_listed() -> None:
    listed = " ".join(rule for rule, *_ in rows())
    numbers = set(re.findall(r"\b[rc]\d+\b", listed))
    own = {one.name for one in fields(ControllerQuirks) if one.name.startswith("r")}
    assert own | {"c15", "c24"} <= numbers
