"""A tree of reasons as lines of a page: wrapped between words and cut, with counts, if too long.

Names, device ids and expressions are never broken inside a word. A word that is longer than the
line gets its own line.
"""

import re
import textwrap
from collections.abc import Sequence
from dataclasses import replace

from app.analysis.explain.reasons import Reason
from app.domain.values import counts
from app.domain.values.json_tree import JsonObject

WIDTH = 100
"""The number of columns when the width of the terminal is unknown."""

WIDTH_MIN = 40

LINES_MAX = 50
"""Lines of a page."""

COMPARED_LINES_MAX = 400
"""Lines of a page with two histories compared; the JSON has everything."""

KEPT_TEXT_MAX = 300
"""Characters to which a reason that is kept is not shortened further: its end may decide."""

_TEXT_STEPS = (600, 300, 200, 140, 100)
_CHILDREN_STEPS = (1_000, 40, 20, 12, 8, 5, 3)
_ONLY_REVISION = re.compile(r"(\(revision )?\d+\)")
_AT_REVISION = re.compile(r"(at )?\S+ \(revision \d+\)$")
_JOINT = "\x00"
"""The character between words that stay on one line while a text is wrapped."""

_TAIL = "more; -o json has all of them"


def page(
    head: str,
    reasons: Sequence[Reason],
    *,
    notes: Sequence[str] = (),
    width: int = WIDTH,
    lines_max: int = LINES_MAX,
) -> list[str]:
    """Renders the head, the notes and the tree in at most `lines_max` lines of `width` columns.

    What does not fit is cut in steps: first long texts, then branches after the first ones, then
    the innermost reasons, level by level, then the end of the page. Each cut is stated on the page.
    """
    width = max(width, WIDTH_MIN)
    top = [line for text in (head, *notes) for line in _wrapped(text, "", "  ", width)]
    lines: list[str] = []
    for children_max in _CHILDREN_STEPS:
        for text_max in _TEXT_STEPS:
            lines = [*top, *_lines(reasons, "", width, text_max, children_max)]
            if len(lines) <= lines_max:
                return lines
    whole = len(lines)
    for levels in range(_depth(reasons) - 1, 0, -1):
        outer = _down_to(reasons, levels)
        lines = [*top, *_lines(outer, "", width, _TEXT_STEPS[-1], _CHILDREN_STEPS[-1])]
        if len(lines) < lines_max:
            break
    shown = lines[: lines_max - 1]
    return [*shown, f"… {counts.of(whole - len(shown), 'line')} {_TAIL}"]


def of_json(body: JsonObject, width: int, *, lines_max: int = LINES_MAX) -> list[str]:
    """The page in `body`: its `lines`, or the page made of `head`, `notes` and `reasons`."""
    if "lines" in body:
        return list(body["lines"])
    reasons = [Reason.from_json(each) for each in body["reasons"]]
    return page(body["head"], reasons, notes=body["notes"], width=width, lines_max=lines_max)


def check_json(body: JsonObject) -> None:
    """Checks that a page can be made of `body`; raises the error of the failed read otherwise."""
    if not all(isinstance(line, str) for line in body.get("lines", ())):
        raise TypeError("lines are no texts")
    if "lines" not in body:
        for each in body["reasons"]:
            Reason.from_json(each)
        _ = body["head"], body["notes"]


def shortened(text: str, length: int) -> str:
    """Cuts the text at a space before `length` and adds an ellipsis if it is longer than that.

    A text whose last quarter before it has no space, such as a value in JSON, is cut within it.
    """
    if len(text) <= length:
        return text
    end = text.rfind(" ", length * 3 // 4, length)
    return f"{text[: end if end > 0 else length]} …"


def _lines(
    reasons: Sequence[Reason], indent: str, width: int, text_max: int, children_max: int
) -> list[str]:
    shown = _first(reasons, children_max)
    rest = len(reasons) - len(shown)
    if rest:
        shown.append(Reason(text=f"… {rest} {_TAIL}"))
    lines: list[str] = []
    for number, reason in enumerate(shown, 1):
        is_last = number == len(shown)
        branch, below = ("└─ ", "   ") if is_last else ("├─ ", "│  ")
        deeper = f"{indent}{below}"
        hanging = f"{deeper}{'│  ' if reason.children else '   '}"
        length = max(text_max, KEPT_TEXT_MAX) if reason.is_kept else text_max
        lines += _wrapped(shortened(reason.line, length), f"{indent}{branch}", hanging, width)
        lines += _lines(reason.children, deeper, width, text_max, children_max)
    return lines


def _depth(reasons: Sequence[Reason]) -> int:
    """The number of levels of a tree."""
    return max((1 + _depth(reason.children) for reason in reasons), default=0)


def _down_to(reasons: Sequence[Reason], levels: int) -> list[Reason]:
    """The tree without what stands below so many levels; reasons that are kept stay."""
    return [
        replace(reason, children=tuple(_down_to(reason.children, levels - 1)))
        for reason in reasons
        if levels > 0 or reason.is_kept
    ]


def _first(reasons: Sequence[Reason], count: int) -> list[Reason]:
    """The first `count` reasons in their order; reasons that are kept have precedence."""
    if len(reasons) <= count:
        return list(reasons)
    free = max(0, count - sum(reason.is_kept for reason in reasons))
    shown: list[Reason] = []
    for reason in reasons:
        if reason.is_kept:
            shown.append(reason)
        elif free:
            free -= 1
            shown.append(reason)
    return shown


def _wrapped(text: str, first: str, following: str, width: int) -> list[str]:
    lines = _filled(text, first, following, width)
    if not _ONLY_REVISION.fullmatch(lines[-1].removeprefix(following)):
        return lines
    # The revision goes with its instant, and not alone onto a line.
    joined = _AT_REVISION.sub(lambda one: one[0].replace(" ", _JOINT), text)
    together = _filled(joined, first, following, width)
    if max(map(len, together)) > width:
        return lines
    return [line.replace(_JOINT, " ") for line in together]


def _filled(text: str, first: str, following: str, width: int) -> list[str]:
    return textwrap.wrap(
        text,
        width,
        initial_indent=first,
        subsequent_indent=following,
        break_long_words=False,
        break_on_hyphens=False,
    ) or [first.rstrip()]
