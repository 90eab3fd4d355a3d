"""Lines that a terminal broke at its edge, joined again.

Text that is copied out of a terminal has a line break wherever a long line reached the edge: within
a string of JSON, where none may be, and in the middle of a line of YAML. All such lines have one
length, the width of the terminal, and no line is longer. One break alone could also be one that
somebody made instead of a space, so it is left as it is.

    "message": "0/3 nodes are availa       a break at the edge,
    ble: 3 cannot allocate all claim       and one more
    s."
"""

import re
from collections.abc import Callable, Iterator, Sequence

from app.adapters.history.json_text import RepairedDocument

BREAKS_MIN = 2
"""The least number of breaks at one width that shows a terminal."""

WIDTH_MIN = 60
"""The least number of columns of a terminal whose single break is suspected."""

_WORDS = re.compile(r"[ \t]*[\w(,;:.'\"-]")
_TOKENS = re.compile(r'"(?:[^"\\]++|\\.)*+"|[\[\]{}]', re.DOTALL)
_DEPTHS = {"{": 1, "[": 1, "}": -1, "]": -1}
_FIELD = re.compile(r"""\s*(?:-(?: |$)|[\w.$/"'-]+:(?:\s|$))""")
_IN_A_WORD = re.compile(r"(?<=[\w.+-])\n(?=[\w.+-])")


def json_document(text: str, start: int) -> RepairedDocument | None:
    """The JSON document that begins at a position; None if no terminal has broken its lines."""
    tokens = [*_document(text, start)]
    if not tokens:
        return None
    end = tokens[-1].end()
    breaks = [
        token.start() + at.start() for token in tokens for at in re.finditer("\n", token.group())
    ]
    # What stands before the document on its first line counts as well.
    begin = text.rfind("\n", 0, start) + 1
    width = max(map(len, text[begin:end].split("\n")))
    widths = {at - (text.rfind("\n", 0, at) + 1) for at in breaks}
    if len(breaks) < BREAKS_MIN or widths != {width}:
        return None
    pieces, at = [], start
    for token in tokens:
        pieces += [_IN_A_WORD.sub("", text[at : token.start()]), token.group().replace("\n", "")]
        at = token.end()
    return RepairedDocument("".join(pieces), end, len(breaks))


def _document(text: str, start: int) -> Iterator[re.Match[str]]:
    """The strings and brackets of a document; nothing if it does not end."""
    tokens, depth = [], 0
    for token in _TOKENS.finditer(text, start):
        tokens.append(token)
        depth += _DEPTHS.get(token.group(), 0)
        if not depth:
            yield from tokens
            return


def yaml_document(
    lines: Sequence[str], begin: int, end: int, goes_on: Callable[[str], bool]
) -> RepairedDocument | None:
    """The YAML document whose lines seem to end at `end`; None if it does not go on behind it.

    `goes_on` tells the lines of a document; the rest of a broken line may be none of them. Every
    line of the terminal's width is taken to be broken, so one behind which a field begins leaves
    the document uncertain.
    """
    width = len(lines[end - 1])
    joined: list[str] = []
    breaks, last_break, at = 0, begin, begin
    is_certain, goes_between = True, False
    while at < len(lines) and len(lines[at]) <= width:
        line = lines[at]
        if at > begin and len(lines[at - 1]) == width:
            is_certain = is_certain and not _FIELD.match(line)
            joined[-1] += line
            breaks, last_break = breaks + 1, at
        elif at == begin or goes_on(line):
            joined.append(line)
            goes_between = goes_between or (breaks > 0 and bool(line.strip()))
        else:
            break
        at += 1
    goes_behind = any(line.strip() for line in lines[last_break + 1 : at])
    # Words of prose may stand behind the last line, but not where nothing else does.
    is_last = at == len(lines) and goes_between
    if breaks < BREAKS_MIN or at <= end or not (goes_behind or is_last):
        return None
    return RepairedDocument("\n".join(joined), at, breaks, is_certain)


def may_go_on(lines: Sequence[str], begin: int, end: int) -> bool:
    """Whether a terminal may have broken the last line of a YAML document.

    It is the longest one, as long as a terminal is wide, and words stand directly below it.
    """
    width = len(lines[end - 1])
    if width < WIDTH_MIN or width < max(map(len, lines[begin:end])):
        return False
    return end < len(lines) and _WORDS.match(lines[end]) is not None and len(lines[end]) <= width
