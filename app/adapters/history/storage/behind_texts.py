"""The output of programs that show a store, behind other text: its deletions would be lost.

Where such output begins a file, it is read. Behind other text its values may still be read as
objects that exist, and what was deleted would exist for ever.
"""

import re
from collections.abc import Iterator

from app.adapters.history.storage import etcd, etcdctl, shown_rows
from app.domain.errors import InputError

_ROWS = "rows of kine behind other text, of which no deletion is read"
_WRITES = "writes of etcdctl watch behind other text, of which no deletion is read"
_SPACE = rb"(?:[|\t,]|\\t)"
_KEY = rb"(?:compact_rev_key|gap-\d{1,20}|/[^\s,|\\]{1,700})"
_ROW = re.compile(rb"\d%b%b%b[01tf]%b[01tf]%b" % (_SPACE, _KEY, _SPACE, _SPACE, _SPACE))
"""A row behind what a collector, a chat or a mail puts before each line."""

_PREFIXES = b"|".join(re.escape(each.encode()) for each in etcd.PREFIXES)
_DELETION = re.compile(rb"\bDELETE(?:\r?\n|\\n\"[^\n]{0,200}\n)[^\n]{0,200}?(?:%b)\S" % _PREFIXES)
_PATTERNS = (
    (_ROW, _ROWS),
    (shown_rows.ROWS, _ROWS),
    (_DELETION, _WRITES),
    (etcdctl.WRITES, _WRITES),
)
_CURE = "give the output of that program in a file of its own"


def losses(content: bytes, name: str) -> Iterator[InputError]:
    """The losses in a text of another format, at the line where such output begins."""
    problems = set[str]()
    for pattern, problem in _PATTERNS:
        if problem not in problems and (match := pattern.search(content)) is not None:
            problems.add(problem)
            line = content.count(b"\n", 0, match.start()) + 1
            yield InputError(problem, place=f"{name}:{line}", cure=_CURE)
