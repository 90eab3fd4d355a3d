"""Proposed changes, read from files, for the command line."""

from collections.abc import Sequence
from pathlib import Path

from app.bootstrap import manifests
from app.domain.errors import InputError
from app.settings import Settings


def read_objects(settings: Settings, files: Sequence[Path]) -> list[tuple[str, object]]:
    """The objects in files (`-`: standard input), each with its place. Raises InputError."""
    limits = manifests.limits_of(settings)
    trees: list[tuple[str, object]] = []
    for file in files:
        documents = manifests.read_documents(file, limits, cure="raise REDRA_BLAST_BYTES_MAX")
        if not documents:
            raise InputError("it holds no object", place=str(file))
        for place, tree in documents:
            if not isinstance(tree, dict):
                raise InputError("a document must be an object", place=place)
        trees += documents
    return trees
