"""The cached names in a data folder, for shell completion without a database.

    folder/names.json   histories, and for each the names of objects of some kinds

The file is a hint: commands with an open database write it, and no answer uses it. Errors of
reading and writing are ignored.
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
"""For each history, the names of objects as `NAMESPACE/NAME` or `NAME`, by plural."""


def read(folder: Path) -> dict[str, dict[str, list[str]]]:
    """The cached names; empty without a readable file."""
    with suppress(OSError, ValueError, RecursionError):
        path = folder / FILE
        if path.stat().st_size <= _BYTES_MAX:
            return msgspec.json.decode(path.read_bytes(), type=dict[str, dict[str, list[str]]])
    return {}


def keep_histories(folder: Path, histories: Sequence[str]) -> None:
    """Store the names of the histories; other histories are removed with their objects."""
    known = read(folder)
    if [*known] != [*histories]:
        _write(folder, {name: known.get(name, {}) for name in histories})


def keep_objects(folder: Path, history: str, names: Mapping[str, Sequence[str]]) -> None:
    """Store the names of the objects of a history."""
    _write(folder, {**read(folder), history: names})


def _write(folder: Path, names: Names) -> None:
    with suppress(OSError):
        whole_files.write(folder / FILE, json.dumps(names).encode())
