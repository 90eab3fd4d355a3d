"""Files that users write, YAML or JSON: read within bounds; errors name file and line."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from app.adapters.history import documents
from app.adapters.history.limits import ImportLimits
from app.adapters.history.reading import Notes
from app.domain.errors import InputError
from app.domain.objects.schema import decode
from app.settings import Settings

STANDARD_INPUT = "-"


def limits_of(settings: Settings) -> ImportLimits:
    """The bounds of files with changes, for blast radius questions and forks."""
    return ImportLimits(
        document_bytes_max=settings.blast_bytes_max,
        depth_max=settings.yaml_depth_max,
        yaml_expanded_nodes_max=settings.yaml_nodes_max,
    )


def read_documents(
    file: Path,
    limits: ImportLimits = ImportLimits(),
    *,
    cure: str = "split the file",
    as_kubectl: bool = False,
) -> list[tuple[str, Any]]:
    """The documents that are not empty, with their places; `-` is standard input.

    Raises InputError, also for keys that occur again in an object. `cure` is the advice when the
    file is larger than `document_bytes_max`. `as_kubectl` reads scalars without quotes as kubectl
    does: `n` and `off` are false, `1e3` is a number.
    """
    name = "standard input" if str(file) == STANDARD_INPUT else str(file)
    content = _content(file, name, limits.document_bytes_max, cure)
    notes = Notes()
    scalar = decode.value_of if as_kubectl else None
    trees = [
        (f"{name}:{line}", tree)
        for line, tree in documents.parse(content, name, limits, notes, scalar=scalar)
        if tree is not None
    ]
    for refusal in notes.refusals:
        raise InputError(refusal.problem, place=refusal.place, cure="take the others out")
    return trees


def _content(file: Path, name: str, bytes_max: int, cure: str) -> bytes:
    try:
        if str(file) == STANDARD_INPUT:
            content = sys.stdin.buffer.read(bytes_max + 1)
        else:
            with file.open("rb") as opened:
                content = opened.read(bytes_max + 1)
    except OSError as problem:
        raise InputError(str(problem.strerror), place=name) from problem
    if len(content) > bytes_max:
        raise InputError(f"more than {bytes_max} bytes", place=name, cure=cure)
    return content


def read_objects(settings: Settings, files: Sequence[Path]) -> list[tuple[str, object]]:
    """The objects in files (`-`: standard input), each with its place. Raises InputError."""
    limits = limits_of(settings)
    trees: list[tuple[str, object]] = []
    for file in files:
        read = read_documents(file, limits, cure="raise REDRA_BLAST_BYTES_MAX", as_kubectl=True)
        if not read:
            raise InputError("it holds no object", place=str(file))
        for place, tree in read:
            if not isinstance(tree, dict):
                raise InputError("a document must be an object", place=place)
        trees += read
    return trees
