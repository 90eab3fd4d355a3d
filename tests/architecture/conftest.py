"""Forgets the syntax trees of our modules, a quarter of a gigabyte, after the last test of them."""

import pytest

from tests.architecture import syntax


def pytest_runtest_teardown(nextitem: pytest.Item | None) -> None:
    """Forgets the trees when a test of another folder follows."""
    if nextitem is None or not nextitem.nodeid.startswith("tests/architecture/"):
        syntax.tree.cache_clear()
        syntax.nodes.cache_clear()
