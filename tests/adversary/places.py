"""Values in lines of a log: where they are, and what another one there is about."""

from dataclasses import dataclass
from typing import Any

from tests.adversary.log import Json

Path_ = tuple[str | int, ...]

_WRITES = ("create", "update", "patch", "delete")


@dataclass(frozen=True)
class Place:
    """A value of one line: its position, and the path below each side that has it.

    `other` replaces it, unless the sort makes another value of the one there. An answer has to name
    the object `about`, or that of the line.
    """

    line: int
    path: Path_
    sort: str
    other: str | None = None
    about: str = ""


def at(node: Any, path: Path_) -> Any:
    """The value below a path, or `None`."""
    for step in path:
        try:
            node = node[step]
        except (KeyError, IndexError, TypeError):
            return None
    return node


def is_write(line: Json) -> bool:
    """Whether a line is of a write that the server did."""
    return line["verb"] in _WRITES and line["responseStatus"].get("code", 0) in (200, 201)
