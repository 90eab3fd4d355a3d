"""Every bound and choice is described once, and the reference page says the same."""

import ast
from pathlib import Path

from app.settings import Settings
from tests.architecture.syntax import nodes

PAGE = Path(__file__).resolve().parent.parent.parent / "docs" / "reference" / "settings.md"


def test_every_setting_says_what_it_is_for() -> None:
    silent = [name for name, text in Settings.described().items() if not text]
    assert not silent, silent


def test_every_setting_is_read_somewhere() -> None:
    read = {
        node.attr
        for path in (PAGE.parent.parent.parent / "app").rglob("*.py")
        for node in nodes(path)
        if isinstance(node, ast.Attribute)
    }
    assert sorted(set(Settings.described()) - read) == []


def test_reference_page_names_every_setting() -> None:
    text = PAGE.read_text()
    missing = [name for name in Settings.described() if f"`REDRA_{name.upper()}`" not in text]
    assert not missing, f"run `make docs`: {missing}"
