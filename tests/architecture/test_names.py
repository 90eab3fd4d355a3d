"""The names of the product that tests, measurements and generators use exist.

mypy checks the product alone, and an import in a function, or an attribute of a module, is looked
up when that line runs: on another day, with `make draws`, or never.
"""

import ast
import importlib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.architecture.syntax import nodes

ROOT = Path(__file__).resolve().parent.parent.parent
READERS = ("tests", "bench", "docs", "examples")
PRODUCT = ("app", "projections")


class Use(NamedTuple):
    """A name of a module of the product, and the line that uses it."""

    line: int
    module: str
    name: str


def uses(path: Path) -> Iterator[Use]:
    """The names that a file imports from the product, and those that it reads from its modules."""
    tree = nodes(path)
    modules: dict[str, set[str]] = defaultdict(set)
    for node in tree:
        if isinstance(node, ast.ImportFrom) and _is_ours(node.module or ""):
            for alias in node.names:
                yield Use(node.lineno, str(node.module), alias.name)
                modules[alias.asname or alias.name].add(f"{node.module}.{alias.name}")
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if _is_ours(alias.name):
                    yield Use(node.lineno, alias.name, "__name__")
                    modules[alias.asname or ""].add(alias.name)
    # A variable, or another module, may have the same name in another function.
    named = {name: next(iter(several)) for name, several in modules.items() if len(several) == 1}
    others = {node.arg for node in tree if isinstance(node, ast.arg)} | {
        node.id for node in tree if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    for node in tree:
        if (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id not in others
            and _is_module(module := named.get(node.value.id, ""))
        ):
            yield Use(node.lineno, module, node.attr)


def exists(use: Use) -> bool:
    """False if the product has no such module, or the module has no such name."""
    try:
        module = importlib.import_module(use.module)
    except ModuleNotFoundError:
        return False
    return hasattr(module, use.name) or _is_module(f"{use.module}.{use.name}")


def _is_ours(module: str) -> bool:
    return module.partition(".")[0] in PRODUCT


def _is_module(name: str) -> bool:
    path = ROOT.joinpath(*name.split("."))
    return bool(name) and (path.with_suffix(".py").is_file() or (path / "__init__.py").is_file())


def test_names_of_the_product_that_others_use_exist():
    missing = [
        f"{path.relative_to(ROOT)}:{use.line} {use.module}.{use.name}"
        for folder in READERS
        for path in sorted((ROOT / folder).rglob("*.py"))
        for use in uses(path)
        if not exists(use)
    ]
    assert not missing


def test_what_is_renamed_is_noticed_in_functions_too(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "from app.domain.values import quantity, nowhere\n"
        "import app.domain.values.quantity as amounts\n"
        "def late(record):\n"
        "    from app.domain.values.quantity import Quantity, Renamed\n"
        "    from app.renamed import anything\n"
        "    quantity.parse, quantity.renamed, amounts.renamed, record.renamed\n"
    )
    assert [use[1:] for use in uses(program) if not exists(use)] == [
        ("app.domain.values", "nowhere"),
        ("app.domain.values.quantity", "Renamed"),
        ("app.renamed", "anything"),
        ("app.domain.values.quantity", "renamed"),
        ("app.domain.values.quantity", "renamed"),
    ]
