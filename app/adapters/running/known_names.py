"""The names in a data folder, for who completes words at a shell and must not start a database.

    folder/names.json   histories, and of each the names of some kinds of its objects

It is a hint: written by commands that had the database open, never read for an answer. What cannot
be read or written is left alone.
"""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from app.adapters import whole_files

FILE = "names.json"
_BYTES_MAX = 16 * 1024 * 1024

Names = Mapping[str, Mapping[str, Sequence[str]]]
"""Of each history the names of objects, as `NAMESPACE/NAME` or `NAME`, by plural."""


def read(folder: Path) -> dict[str, dict[str, list[str]]]:
    """What is known; nothing where there is no such file."""
    with suppress(OSError, ValueError, RecursionError):
        path = folder / FILE
        if path.stat().st_size <= _BYTES_MAX:
            return msgspec.json.decode(path.read_bytes(), type=dict[str, dict[str, list[str]]])
    return {}


def keep_histories(folder: Path, histories: Sequence[str]) -> None:
    """Keep which histories there are; those that are gone are forgotten with their objects."""
    known = read(folder)
    if [*known] != [*histories]:
        _write(folder, {name: known.get(name, {}) for name in histories})


def keep_objects(folder: Path, history: str, names: Mapping[str, Sequence[str]]) -> None:
    """Keep the names of objects of a history."""
    _write(folder, {**read(folder), history: names})


def _write(folder: Path, names: Names) -> None:
    with suppress(OSError):
        whole_files.write(folder / FILE, json.dumps(names).encode())
