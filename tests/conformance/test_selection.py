"""A normal run judges each alteration at least once, and alterations of each recording."""

import importlib
import inspect
from collections import Counter
from pathlib import Path

import pytest
from _pytest.mark.structures import ParameterSet

from tests import draws
from tests.conformance.selection import BY_WORK

HERE = Path(__file__).parent


def modules(pattern):
    names = sorted(path.stem for path in HERE.glob(pattern))
    return [importlib.import_module(f"tests.conformance.{each}") for each in names]


def alterations():
    """The functions that alter the lines of a recording."""
    return {
        each
        for module in modules("*tampering.py")
        for _, each in inspect.getmembers(module, inspect.isfunction)
        if each.__module__ == module.__name__
        and list(inspect.signature(each).parameters) == ["lines", "draw"]
        and not each.__name__.startswith("_")
    }


def judging():
    """The tests that judge altered recordings."""
    for module in modules("test_*tamper*.py") + modules("test_lossy_logs.py"):
        for name, test in inspect.getmembers(module, inspect.isfunction):
            if name.startswith("test_"):
                yield test


def values(test):
    """The values in the rows of a test that a normal run takes."""
    for mark in getattr(test, "pytestmark", ()):
        for row in mark.args[1] if mark.name == "parametrize" else ():
            if not isinstance(row, ParameterSet):
                yield from row if isinstance(row, tuple) else (row,)
            elif draws.ONLY.mark not in row.marks:
                yield from row.values


def test_each_alteration_is_judged_in_a_normal_run():
    judged = {value for test in judging() for value in values(test) if callable(value)}
    # A test of one alteration names it in its body.
    bodies = {name for test in judging() for name in test.__code__.co_names}
    missing = {each.__qualname__ for each in alterations() - judged} - bodies
    assert missing == set()
    assert len(judged & alterations()) > 80


@pytest.mark.parametrize("name", BY_WORK)
def test_alterations_of_each_recording_are_judged_in_a_normal_run(name):
    assert (
        Counter(value for test in judging() for value in values(test) if value in BY_WORK)[name] > 3
    )
