"""Each function, class and constant of a module of the product has a user in the product."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from tests.architecture.syntax import nodes, tree
from tests.architecture.test_tidy import OURS, ROOT, name, sources

OUTSIDE = {
    ("app/adapters/postgres/tables.py", "PARTITIONS"): "migrations repeat it; a test compares both",
    ("app/adapters/postgres/tables.py", "views"): "declared for the comparison of schemas",
    ("app/analysis/scan/scanning.py", "LOOKED_FOR"): "a test compares it with the gallery",
    ("app/cli/exit_codes.py", "NEGATIVE"): "a page of reference is generated from it",
    ("app/cli/exit_codes.py", "table"): "a page of reference is generated from it",
    ("app/adapters/history/catalogue/__init__.py", "ENTRIES"): "a page of reference is made of it",
}
"""What is used from outside of the product, and why it stands in the product all the same."""

BY_NAME = {
    "app/cli/": {"register"},
    "app/domain/cel/object_rules.py": {"problem_of", "broken", "text_of"},
    "app/domain/cel/policy_rules.py": {"problem_of"},
    "app/testing/plugin.py": {
        "pytest_configure",
        "pytest_assertrepr_compare",
        "redra_cluster",
        "redra_history",
    },
}
"""What is called through a module that stands for a port, a command's registry or pytest."""


def module_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def definitions(path: Path) -> Iterator[tuple[str, ast.stmt]]:
    """The names that a module defines for itself and others, without those of decorators."""
    for node in tree(path).body:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                if not any(isinstance(each, ast.Call) for each in node.decorator_list):
                    yield node.name, node
            case ast.Assign(targets=targets):
                yield from ((each.id, node) for each in targets if isinstance(each, ast.Name))
            case ast.AnnAssign(target=ast.Name(id=bound)):
                yield bound, node


def uses(path: Path, modules: dict[str, Path]) -> Iterator[tuple[str, str]]:
    """The names that a file uses, each with its module."""
    own, aliases = module_of(path), defaultdict[str, set[str]](set)
    for node in nodes(path):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                if (module := f"{node.module}.{alias.name}") in modules:
                    aliases[alias.asname or alias.name].add(module)
                yield node.module, alias.name
    for node in nodes(path):
        match node:
            case ast.Name(id=read, ctx=ast.Load()):
                yield own, read
            case ast.Attribute(value=ast.Name(id=alias), attr=read):
                yield from ((module, read) for module in aliases.get(alias, ()))
            case ast.Constant(value=str(text)):
                # An annotation as text, or a row that names a function of its module.
                yield from ((own, word) for word in text.split("[") if word.isidentifier())


def test_what_the_product_defines_is_used_in_the_product() -> None:
    modules = {module_of(path): path for path in sources(*OURS)}
    used = {use for path in modules.values() for use in uses(path, modules)}
    assert len(used) > 20_000
    unused = [
        (name(path), defined)
        for module, path in modules.items()
        for defined, _ in definitions(path)
        if (module, defined) not in used
        and not defined.startswith("__")
        and not any(
            name(path).startswith(place) and defined in names for place, names in BY_NAME.items()
        )
    ]
    extra = sorted(set(unused) - OUTSIDE.keys())
    assert not extra, f"delete these, or move them to the tests that use them: {extra}"
    assert set(unused) == set(OUTSIDE), "these are used by now"
