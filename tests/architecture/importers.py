"""`python -m tests.architecture.importers` lists the modules that one other module imports.

Each line has why the module stands alone, its lines, those of both together, the module, and its
importer. What has reason "none" could be a part of its importer: a module that the limit of lines
cut out of a thought goes back to it, one with a thought of its own stays.
"""

import ast
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from tests.architecture.syntax import nodes

ROOT = Path(__file__).resolve().parent.parent.parent
OURS = ("app", "projections")
LINES_MAX = 500
"""The most lines of a module (`test_tidy`)."""

ROWS_MIN = 3
"""So many modules in one display (a tuple, list, set or dictionary) are a table."""

KINDS_MIN = 5
"""So many modules of one folder that only one other module imports are kinds of one thing."""


class Reason(StrEnum):
    """Why a module with one importer is a module."""

    DOOR = "door"
    """The importer is the front of its folder, which holds names for all others."""

    ROW = "row"
    """The importer is a registry: adding a kind is adding a module and a row."""

    ROOM = "room"
    """The importer is in another layer, which may import this one, not hold its work."""

    LINES = "lines"
    """Both together have too many lines."""

    NONE = "none"


class SingleImport(NamedTuple):
    """A module, the only module that imports it, and the paths of both."""

    module: str
    importer: str
    paths: tuple[Path, Path]

    @property
    def lines(self) -> tuple[int, int]:
        """The lines of the module, and of both."""
        own, other = (len(path.read_text().splitlines()) for path in self.paths)
        return own, own + other


def single_imports(root: Path, folders: tuple[str, ...] = OURS) -> list[SingleImport]:
    """The modules below the folders with one importer there, packages themselves left out."""
    modules = {
        _name(path.relative_to(root)): path
        for folder in folders
        for path in sorted((root / folder).rglob("*.py"))
    }
    importers: dict[str, set[str]] = {name: set() for name in modules}
    for name, path in modules.items():
        for imported in _imported(path, modules):
            importers[imported].add(name)
    return [
        SingleImport(name, importer, (path, modules[importer]))
        for name, path in modules.items()
        if path.name != "__init__.py" and len(importers[name] - {name}) == 1
        for importer in importers[name] - {name}
    ]


def reasons(rows: Iterable[SingleImport]) -> dict[str, Reason]:
    """Why each of these modules stands alone, by its name."""
    rows = list(rows)
    kinds = Counter((row.importer, _folder(row.module)) for row in rows)
    own: dict[Path, set[str]] = {}
    for row in rows:
        own.setdefault(row.paths[1], set()).add(row.module)
    in_tables = {name for path, names in own.items() for name in _rows_of_tables(path, names)}
    return {
        row.module: Reason.DOOR
        if row.paths[1].name == "__init__.py" and _folder(row.module) == row.importer
        else Reason.ROW
        if kinds[row.importer, _folder(row.module)] >= KINDS_MIN or row.module in in_tables
        else Reason.ROOM
        if _room(row.module) != _room(row.importer)
        else Reason.LINES
        if row.lines[1] > LINES_MAX
        else Reason.NONE
        for row in rows
    }


def _folder(module: str) -> str:
    return module.rpartition(".")[0]


def _room(module: str) -> str:
    """The layer of a module: a package of `app`, in the domain one of those below it."""
    parts = module.split(".")
    return ".".join(parts[: 3 if parts[1:2] == ["domain"] else 2])


def _rows_of_tables(importer: Path, own: set[str]) -> set[str]:
    """The modules that a file has in a display with others that only it imports."""
    names: dict[str, str] = {}
    for node in nodes(importer):
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                for module in {f"{node.module}.{alias.name}", str(node.module)} & own:
                    names[alias.asname or alias.name] = module
    tables = (
        {
            names[part.id]
            for part in ast.walk(node)
            if isinstance(part, ast.Name) and part.id in names
        }
        for node in nodes(importer)
        if isinstance(node, (ast.Tuple, ast.List, ast.Set, ast.Dict))
    )
    return {module for table in tables if len(table) >= ROWS_MIN for module in table}


def _name(path: Path) -> str:
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imported(path: Path, modules: Mapping[str, Path]) -> Iterator[str]:
    for node in nodes(path):
        names = (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [f"{node.module}.{alias.name}" for alias in node.names]
            if isinstance(node, ast.ImportFrom)
            else []
        )
        for name in names:
            # `from package.module import name` imports the module.
            module = name if name in modules else name.rpartition(".")[0]
            if module in modules:
                yield module


if __name__ == "__main__":
    rows = single_imports(ROOT)
    why = reasons(rows)
    for row in sorted(rows, key=lambda row: (why[row.module], row.lines)):
        print(
            f"{why[row.module]:5}", *(f"{count:4}" for count in row.lines), row.module, row.importer
        )
    print(f"{len(rows)} modules have one importer:", *Counter(why.values()).most_common())
