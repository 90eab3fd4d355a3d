"""Every bound and choice is described once, and the reference page says the same."""

import ast
import re
from pathlib import Path

from app.settings import Settings

PAGE = Path(__file__).resolve().parent.parent.parent / "docs" / "reference" / "settings.md"


def test_every_setting_says_what_it_is_for() -> None:
    silent = [name for name, text in Settings.described().items() if not text]
    assert not silent, silent


def test_every_setting_is_read_somewhere() -> None:
    """Parses only modules with a word that may be the reading of a setting not yet seen."""
    unread = set(Settings.described())
    for path in sorted((PAGE.parent.parent.parent / "app").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if unread.intersection(re.findall(r"\.\s*(\w+)", text)):
            nodes = ast.walk(ast.parse(text))
            unread -= {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    assert sorted(unread) == []


def test_reference_page_names_every_setting() -> None:
    text = PAGE.read_text()
    missing = [name for name in Settings.described() if f"`REDRA_{name.upper()}`" not in text]
    assert not missing, f"run `make docs`: {missing}"
