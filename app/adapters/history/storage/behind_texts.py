"""The output of programs that show a store, behind other text: its deletions would be lost.

Where such output begins a file, it is read. Behind other text its values may still be read as
objects that exist, and what was deleted would exist for ever.
"""

from collections.abc import Iterator

from app.adapters.history.storage import etcdctl, shown_rows
from app.domain.errors import InputError

_PATTERNS = (
    (shown_rows.ROWS, "rows of kine behind other text, of which no deletion is read"),
    (etcdctl.WRITES, "writes of etcdctl watch behind other text, of which no deletion is read"),
)
_CURE = "give the output of that program in a file of its own"


def losses(content: bytes, name: str) -> Iterator[InputError]:
    """The losses in a text of another format, at the line where such output begins."""
    for pattern, problem in _PATTERNS:
        if (match := pattern.search(content)) is not None:
            line = content.count(b"\n", 0, match.start()) + 1
            yield InputError(problem, place=f"{name}:{line}", cure=_CURE)
