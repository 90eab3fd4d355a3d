"""Names of Kubernetes things stand in one module each."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from app.domain.values import api_groups, api_resources, condition_types, event_reasons, well_known
from app.domain.values.fields import paths
from tests.architecture.syntax import nodes
from tests.architecture.test_tidy import OURS, name, sources

JUDGES = (
    "app/adapters/second_opinion/",
    "app/analysis/verify/invariants/",
    "app/analysis/verify/taint_audit.py",
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


FIELDS = "app/domain/values/fields/"
"""The readers of fields."""

AMBIGUOUS = frozenset(("Ready",))
"""Types of conditions that are words of other things too, such as the title of a column."""

WALKS_MAX = 1_061
"""Calls of `json_tree` outside the readers and the judges: paths that one place reads, most of them
to check what a client wrote, value by value as it came. A path that a second place needs becomes a
reader, a part of which four fields are read a record; then this becomes less.
"""

WORDS_MAX = {"found": 0, "told": 0, "asked": 1, "taken": 0, "heard": 0}
"""How many variables, parameters, class fields and functions have names that say nothing of their
content: one field, because it is stored in the log under this name."""


OTHER_TONGUES = (
    *JUDGES,
    "app/api/redra/models.py",
    "app/api/redra/page_answers.py",
    "app/api/redra/replay_models.py",
)
"""Judges have nouns of their own, and the models of an API are named as its documents name them."""


def test_a_class_name_stands_for_one_thing() -> None:
    homes: dict[str, list[str]] = {}
    for path in sources(*OURS):
        if name(path).startswith(OTHER_TONGUES):
            continue
        for node in nodes(path):
            if isinstance(node, ast.ClassDef):
                homes.setdefault(node.name, []).append(name(path))
    twice = {noun: places for noun, places in homes.items() if len(places) > 1}
    assert len(homes) > 1_000
    assert not twice, f"give the second class the word that tells the two apart: {twice}"


def test_groups_are_named_in_one_module() -> None:
    assert len(GROUPS) > 15
    literal = [
        f"{name(path)}:{line}: {text}"
        for path in sources(*OURS)
        if name(path) != "app/domain/values/api_groups.py" and not name(path).startswith(JUDGES)
        for line, text in literals(path)
        if text.partition("/")[0] in GROUPS and re.fullmatch(r"[^/]+(/v\d\w*)?", text)
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


def test_condition_types_are_in_one_module() -> None:
    types = {text for constant, text in vars(condition_types).items() if constant.isupper()}
    assert len(types) > 10
    literal = [
        f"{name(path)}:{line}: {text}"
        for path in sources(*OURS)
        if name(path) != "app/domain/values/condition_types.py"
        and not name(path).startswith(JUDGES)
        for line, text in literals(path)
        if text in types - AMBIGUOUS
    ]
    assert not literal, f"take these from app.domain.values.condition_types: {literal}"


def test_reasons_of_event_objects_are_in_one_module() -> None:
    """`Scheduled` is the outcome of a decision, too."""
    constants = {key: value for key, value in vars(event_reasons).items() if key.isupper()}
    reasons = {value for value in constants.values() if isinstance(value, str)}
    literal = [
        f"{name(path)}:{line}: {text}"
        for path in sources(*OURS)
        if name(path) != "app/domain/values/event_reasons.py" and not name(path).startswith(JUDGES)
        for line, text in literals(path)
        if text in reasons - {event_reasons.SCHEDULED}
    ]
    assert len(reasons) >= 4
    assert not literal, f"take these from app.domain.values.event_reasons: {literal}"


def test_the_gate_of_recorded_rules_is_decided_in_one_module() -> None:
    """The others only compare a gate of settings that are complete, or name it in a note."""
    readers = {
        name(path)
        for path in sources(*OURS)
        for node in nodes(path)
        if isinstance(node, ast.ImportFrom)
        and any(alias.name == "RULES_GATE" for alias in node.names)
    }
    assert readers == {
        "app/analysis/recordings/recorded_gates.py",
        "app/bootstrap/recordings.py",
        "app/service/replays/verifying.py",
    }


Walk = tuple[str, tuple[str, ...]]
"""What sort of value is read, and its path."""


def walks(path: Path, module: str) -> Iterator[tuple[int, Walk | None]]:
    """Calls of a module's functions; None for the walk of one whose path is not all literal."""
    for node in nodes(path):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=called), attr=kind)) if (
                called == module
            ):
                steps = node.args if module == "paths" else node.args[1:]
                texts = [step.value for step in steps if isinstance(step, ast.Constant)]
                is_literal = len(texts) == len(steps)
                yield node.lineno, (kind, tuple(map(str, texts))) if is_literal else None


def outside_the_readers() -> Iterator[tuple[str, Walk | None]]:
    for path in sources("app", "projections"):
        if not name(path).startswith((FIELDS, *JUDGES)):
            for line, walk in walks(path, "json_tree"):
                yield f"{name(path)}:{line}", walk


def test_paths_with_a_reader_are_read_through_it() -> None:
    readers = {
        walk: name(path)
        for path in sources(FIELDS)
        for _, walk in walks(path, "paths")
        if walk is not None and walk[0] != "get"
    }
    assert ("text", ("metadata", "uid")) in readers
    assert len(readers) > 40
    walked = [
        f"{place}: {'.'.join(walk[1])} ({readers[walk]})"
        for place, walk in outside_the_readers()
        if walk in readers
    ]
    assert not walked, f"read these through app.domain.values.fields: {walked}"


def test_no_two_modules_make_the_same_reader() -> None:
    makers: dict[Walk, set[str]] = {}
    for path in sources("app", "projections"):
        if not name(path).startswith(JUDGES):
            for _, walk in walks(path, "paths"):
                if walk is not None and hasattr(paths, walk[0]):
                    home = FIELDS if name(path).startswith(FIELDS) else name(path)
                    makers.setdefault(walk, set()).add(home)
    assert makers["mapping", ("attributes",)] == {FIELDS}
    twice = {walk: homes for walk, homes in makers.items() if len(homes) > 1}
    assert not twice, f"take these from app.domain.values.fields: {twice}"


def test_walks_through_trees_become_fewer() -> None:
    count = sum(1 for _ in outside_the_readers())
    assert count <= WALKS_MAX, f"{count} calls of json_tree: a reader or a record is missing"


@cache
def bindings() -> dict[str, list[str]]:
    """The places that bind a variable, a parameter or a function to each of these words."""
    bound: dict[str, list[str]] = {word: [] for word in WORDS_MAX}
    for path in sources(*OURS):
        for node in nodes(path):
            if (word := bound_name(node)) in bound:
                bound[word].append(f"{name(path)}:{node.lineno}")
    return bound


def bound_name(node: ast.AST) -> str:
    """The name that a node binds; empty when it binds none."""
    if isinstance(node, ast.Name):
        return node.id if isinstance(node.ctx, ast.Store) else ""
    if isinstance(node, ast.arg):
        return node.arg
    is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    return node.name if is_function else ""


@pytest.mark.parametrize("word", WORDS_MAX)
def test_variables_and_functions_are_called_after_what_they_hold(word: str) -> None:
    bound = bindings()[word]
    assert len(bound) <= WORDS_MAX[word], f"a variable or a function is called {word}: {bound}"


FIXED_PLURAL = re.compile(
    r"\} (?:more|other|rarer) (?!with )(?:[a-z]+ )?[a-z]+s\b|\} more (?:were|are|have|do)\b"
)
"""A number in a text before a noun or verb that is always in the plural: `1 more values`."""

UPSTREAMS_WORDS = "app/domain/cel/syntax/issues.py"


def test_nouns_after_numbers_of_what_is_left_out_have_both_numbers() -> None:
    shown = [
        f"{name(path)}:{number}"
        for path in sources("app")
        if name(path) != UPSTREAMS_WORDS
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if FIXED_PLURAL.search(line)
    ]
    assert not shown, "app/domain/values/counts.py puts a noun into the number of its count"
