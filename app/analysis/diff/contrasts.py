"""Two values as texts: of long ones the part that differs, with what is right beside it."""

from itertools import takewhile
from typing import Any

from app.analysis.diff import flow_style
from app.domain.log.chain import canonical_json

LONG = 80
"""The length from which on the common beginning and end of two texts are left out."""

BESIDE = 24
"""The characters that are kept on both sides of the part that differs."""

_LEFT_OUT = "\N{HORIZONTAL ELLIPSIS}"


def of(a: Any, b: Any) -> tuple[str, str]:
    """Both values on one line, without what is the same far from the part that differs."""
    left, right = map(_shown, (a, b))
    if min(len(left), len(right)) <= LONG:
        return left, right
    start = _same(left, right)
    # The same character cannot be of the beginning and of the end.
    end = _same(left[start:][::-1], right[start:][::-1])
    start, end = max(0, start - BESIDE), max(0, end - BESIDE)
    return _part(left, start, end), _part(right, start, end)


def _shown(value: Any) -> str:
    """The value on one line; a text by itself has quotes, so that its ends can be seen."""
    return canonical_json(value).decode() if isinstance(value, str) else flow_style.shown(value)


def _same(left: str, right: str) -> int:
    """The length of the common beginning."""
    pairs = zip(left, right, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _part(text: str, start: int, end: int) -> str:
    before, after = (_LEFT_OUT if cut else "" for cut in (start, end))
    return f"{before}{text[start : len(text) - end]}{after}"
