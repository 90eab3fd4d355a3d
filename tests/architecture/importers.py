"""`python -m tests.architecture.importers` lists the modules that one other module imports.

Each line has the lines of the module and of both together, the module, and its importer. A module
that the limit of lines cut out of a thought goes back to its importer; one with a thought of its
own stays.
"""

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from tests.architecture.syntax import nodes

ROOT = Path(__file__).resolve().parent.parent.parent
OURS = ("app", "projections")


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
    for row in sorted(rows, key=lambda row: row.lines):
        print(*(f"{count:4}" for count in row.lines), row.module, row.importer)
    print(f"{len(rows)} modules have one importer")
