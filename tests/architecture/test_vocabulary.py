"""Names of Kubernetes things stand in one module each."""

import ast
from collections.abc import Iterator
from pathlib import Path

from app.domain.values import api_groups, api_resources, well_known
from tests.architecture.syntax import nodes
from tests.architecture.test_tidy import OURS, name, sources

JUDGES = (
    "app/adapters/second_opinion/",
    "app/analysis/verify/invariants/",
    "app/domain/allocation/checking/",
)
"""Judges read objects by themselves: a mistake in a shared name would pass unseen."""

GROUPS = {
    group
    for constant, group in vars(api_groups).items()
    if constant.isupper() and ("." in group or group == "apps")
}
"""The groups whose names are no words of their own."""


def literals(path: Path) -> Iterator[tuple[int, str]]:
    for node in nodes(path):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value


def test_groups_are_named_in_one_module() -> None:
    assert len(GROUPS) > 15
    literal = [
        f"{name(path)}:{line}: {text}"
        for path in sources(*OURS)
        if name(path) != "app/domain/values/api_groups.py" and not name(path).startswith(JUDGES)
        for line, text in literals(path)
        if text in GROUPS
    ]
    assert not literal, f"take these from app.domain.values.api_groups: {literal}"


def pairs(path: Path) -> Iterator[tuple[int, tuple[str, str]]]:
    """Two-element tuples of a group, by its text or by its name, and a text."""
    for node in nodes(path):
        if not isinstance(node, ast.Tuple) or len(node.elts) != 2:
            continue
        match node.elts:
            case [ast.Constant(value=str(group)), ast.Constant(value=str(plural))]:
                yield node.lineno, (group, plural)
            case [
                ast.Attribute(value=ast.Name(id="api_groups"), attr=constant),
                ast.Constant(value=str(plural)),
            ]:
                yield node.lineno, (getattr(api_groups, constant), plural)


def test_resources_are_named_in_one_module() -> None:
    resources = {pair for pair in vars(api_resources).values() if isinstance(pair, tuple)}
    assert ("", "pods") in resources
    literal = [
        f"{name(path)}:{line}: {pair}"
        for path in sources(*OURS)
        if name(path) != "app/domain/values/api_resources.py" and not name(path).startswith(JUDGES)
        for line, pair in pairs(path)
        if pair in resources
    ]
    assert not literal, f"take these from app.domain.values.api_resources: {literal}"


def test_well_known_names_are_in_one_module() -> None:
    names = {text for constant, text in vars(well_known).items() if constant.isupper()}
    assert len(names) > 10
    literal = [
        f"{name(path)}:{line}: {text}"
        for path in sources(*OURS)
        if name(path) != "app/domain/values/well_known.py" and not name(path).startswith(JUDGES)
        for line, text in literals(path)
        if text in names
    ]
    assert not literal, f"take these from app.domain.values.well_known: {literal}"
