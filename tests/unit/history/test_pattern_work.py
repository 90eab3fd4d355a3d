"""No pattern for foreign text works more than twice as much on twice the text."""

import ast
import functools
import importlib
import inspect
import pkgutil
import random
import re
from collections import defaultdict
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

import app.adapters.history
from tests import draws
from tests.unit.history import pattern_work

TWICE_MAX = 3.3
"""Linear work doubles, and begins with a little; quadratic work is four times as much."""

CHARS, TEXTS = 40, 20
WAYS = ("match", "fullmatch", "finditer")
NAMED_ELSEWHERE = {
    ("printouts.untitled", "_POD"): {"fullmatch"},
    ("printouts.untitled", "_CLAIM"): {"fullmatch"},
    ("printouts.untitled", "_NODE"): {"fullmatch"},
    ("printouts.pages", "_IN_POD"): {"fullmatch"},
    ("line_marks", "_NUMBERED"): {"match"},
    ("line_marks", "_COUNTED"): {"match"},
    ("formats.older_lines", "_SENTENCES"): {"fullmatch"},
    ("storage.kine_sql", "_PLAIN"): {"match"},
    ("storage.kine_sql", "_ESCAPED"): {"match"},
}
"""How patterns are used that reach their users under another name."""


def modules() -> Iterator[tuple[str, ModuleType]]:
    package = app.adapters.history
    for each in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        yield each.name.removeprefix(f"{package.__name__}."), importlib.import_module(each.name)


def patterns_in(value: Any) -> Iterator[re.Pattern[Any]]:
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, tuple | list | dict):
        for each in value.values() if isinstance(value, dict) else value:
            yield from patterns_in(each)


@functools.cache
def attributes_in(module: ModuleType) -> dict[str, set[str]]:
    """The attributes of each name in a module."""
    attributes: dict[str, set[str]] = defaultdict(set)
    for node in ast.walk(ast.parse(inspect.getsource(module))):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            attributes[node.value.id].add(node.attr)
    return attributes


def ways_of(module: ModuleType, path: str, name: str) -> set[str]:
    """The methods of a pattern that its module calls; that of a search for the others."""
    calls = attributes_in(module).get(name, set())
    calls = NAMED_ELSEWHERE.get((path, name), calls) or {"finditer"}
    return {each if each in WAYS else "finditer" for each in calls}


def cases() -> Iterator[Any]:
    seen = set()
    for path, module in modules():
        for name, value in vars(module).items():
            for pattern in patterns_in(value):
                if pattern not in seen:
                    seen.add(pattern)
                    way = sorted(ways_of(module, path, name))[0]
                    yield draws.by_day(f"{path}.{name}", pattern, way)


def worst(pattern: re.Pattern[Any], way: str, texts: list[tuple[str, str]]) -> tuple[float, Any]:
    growths = [
        (pattern_work.growth(pattern, way, before, unit, after, CHARS), (before, unit, after))
        for before, unit in texts
        for after in ("", "!")
    ]
    return max(growths)


CASES = [*cases()]


@pytest.mark.parametrize(
    ("name", "pattern", "way"), CASES, ids=[str(each.values[0]) for each in CASES]
)
def test_twice_the_text_is_twice_the_work(name, pattern, way):
    texts = [*pattern_work.hostile(pattern, range(2))]
    for seed in draws.seeds(1, first=draws.DAY):
        few = random.Random(f"{name}{seed}").sample(texts, min(TEXTS, len(texts)))
        growth, text = worst(pattern, way, few)
        assert growth < TWICE_MAX, (name, way, text)


@pytest.mark.parametrize(
    "text",
    [
        r"\w+:",
        r"a[^b]*b",
        r'"(?:[^"\\]|\\.)*"',
        r"\{[^{}]*\bx=[^{}]*\}",
        r"(?:a|b)*c",
        r"(?:a+)+b",
        r"(?<![^\s])n=\S+ (?:\w+=\S+ )*M=",
    ],
)
def test_pattern_with_more_work_is_noticed(text):
    pattern = re.compile(text)
    texts = [*pattern_work.hostile(pattern, range(2))]
    assert worst(pattern, "finditer", texts)[0] >= TWICE_MAX


@pytest.mark.parametrize("seed", draws.seeds(1, first=draws.DAY))
def test_counting_matcher_finds_what_python_finds(seed):
    choice = random.Random(seed)
    for row in choice.sample(CASES, 8):
        pattern = row.values[1]
        texts = ["".join(text) for text in pattern_work.hostile(pattern, range(2))]
        for text in choice.sample(texts, min(4, len(texts))):
            text = f"{text} {choice.choice(texts)}\n{text}"
            content = text.encode() if isinstance(pattern.pattern, bytes) else text
            text = content.decode("latin-1") if isinstance(content, bytes) else text
            matcher = pattern_work.Matcher(pattern, text, pattern_work.UNBOUNDED)
            matcher.finditer()
            assert matcher.spans == [each.span() for each in pattern.finditer(content)], pattern
