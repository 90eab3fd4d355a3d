"""How much a regular expression works on a text: the steps of a matcher that backtracks.

Python's own matcher tells no work, and time depends on the machine. This one reads the parsed
pattern and counts each look at a character and each attempt to go on. Repeats of up to
`UNBOUNDED` count as `BOUNDED` at most: they multiply the work and do not let it grow.
"""

import re
import re._constants as codes
import re._parser as parser
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

BOUNDED, UNBOUNDED = 4, 1_000
STEPS_MAX = 60_000
CANDIDATES = "a0=\" :.-/[]{}()<>\t\n,'A_%+|#*`\\“”!$&?;~é"

_CATEGORIES = {
    codes.CATEGORY_DIGIT: str.isdecimal,
    codes.CATEGORY_NOT_DIGIT: lambda char: not char.isdecimal(),
    codes.CATEGORY_SPACE: str.isspace,
    codes.CATEGORY_NOT_SPACE: lambda char: not char.isspace(),
    codes.CATEGORY_WORD: lambda char: char.isalnum() or char == "_",
    codes.CATEGORY_NOT_WORD: lambda char: not (char.isalnum() or char == "_"),
}
_REPEATS = (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT)
_ONE = (codes.LITERAL, codes.NOT_LITERAL, codes.ANY, codes.IN)

Go = Callable[[int], int]
"""From a position to where the match ends, or -1."""
Node = Callable[[int, Go], int]


class TooMuchWork(Exception):
    """The pattern worked more than `STEPS_MAX` steps."""


class Matcher:
    """One pattern on one text. With `bounded` at `UNBOUNDED`, repeats have their own bounds."""

    def __init__(self, pattern: re.Pattern[Any], text: str, bounded: int = BOUNDED) -> None:
        self._bounded = bounded
        self.text, self.steps, self.flags = text, 0, pattern.flags
        self.spans: list[tuple[int, int]] = []
        self._groups: dict[int, tuple[int, int]] = {}
        self._node = self._sequence(list(parsed(pattern)))

    def finditer(self) -> int:
        """The steps of looking for all matches, whose places are in `spans` then."""
        start = 0
        with _deep():
            while start <= len(self.text):
                end = self._node(start, lambda at: at)
                if end >= 0:
                    self.spans.append((start, end))
                start = start + 1 if end <= start else end
        return self.steps

    def match(self) -> int:
        """The steps of a match at the beginning; the end does not matter."""
        with _deep():
            self._node(0, lambda at: at)
        return self.steps

    def fullmatch(self) -> int:
        """The steps of a match of the whole text."""
        with _deep():
            self._node(0, lambda at: at if at == len(self.text) else -1)
        return self.steps

    def _step(self) -> None:
        self.steps += 1
        if self.steps > STEPS_MAX:
            raise TooMuchWork

    def _sequence(self, tree: list[Any]) -> Node:
        nodes = [self._of(op, value) for op, value in tree]

        def run(at: int, go: Go, index: int = 0) -> int:
            if index == len(nodes):
                return go(at)
            return nodes[index](at, lambda after: run(after, go, index + 1))

        return run

    def _of(self, op: Any, value: Any) -> Node:
        if op in _ONE:
            return self._char(accepts(op, value, self.flags))
        if op in _REPEATS:
            return self._repeat(op, *value)
        if op is codes.SUBPATTERN:
            return self._group(value[0], self._sequence(list(value[3])))
        if op is codes.ATOMIC_GROUP:
            return self._atomic(self._sequence(list(value)))
        if op is codes.BRANCH:
            return self._branch([self._sequence(list(each)) for each in value[1]])
        if op in (codes.ASSERT, codes.ASSERT_NOT):
            return self._around(value, op is codes.ASSERT)
        if op is codes.AT:
            return self._place(value)
        if op is codes.GROUPREF:
            return self._again(value)
        raise AssertionError(op)

    def _char(self, is_one: Callable[[str], bool]) -> Node:
        def run(at: int, go: Go) -> int:
            self._step()
            return go(at + 1) if at < len(self.text) and is_one(self.text[at]) else -1

        return run

    def _repeat(self, op: Any, least: int, most: int, tree: Any) -> Node:
        most = sys.maxsize if most > UNBOUNDED else max(least, min(most, self._bounded))
        parts = list(tree)
        if len(parts) == 1 and parts[0][0] in _ONE:
            return self._run_of(op, least, most, accepts(*parts[0], self.flags))
        node = self._sequence(parts)
        if op is codes.POSSESSIVE_REPEAT:
            return self._atomic(self._many(codes.MAX_REPEAT, least, most, node))
        return self._many(op, least, most, node)

    def _run_of(self, op: Any, least: int, most: int, is_one: Callable[[str], bool]) -> Node:
        def run(at: int, go: Go) -> int:
            end = at
            lazy = op is codes.MIN_REPEAT
            while end < len(self.text) and end - at < most:
                if lazy and end - at >= least and (done := go(end)) >= 0:
                    return done
                self._step()
                if not is_one(self.text[end]):
                    break
                end += 1
            if lazy or op is codes.POSSESSIVE_REPEAT:
                return go(end) if end - at >= least else -1
            for last in range(end, at + least - 1, -1):
                self._step()
                if (done := go(last)) >= 0:
                    return done
            return -1

        return run

    def _many(self, op: Any, least: int, most: int, node: Node) -> Node:
        def run(at: int, go: Go, count: int = 0, before: int = -1) -> int:
            self._step()
            if count < least:
                return node(at, lambda after: run(after, go, count + 1, at))
            if op is codes.MIN_REPEAT and (done := go(at)) >= 0:
                return done
            if count < most and at != before:
                done = node(at, lambda after: run(after, go, count + 1, at))
                if done >= 0:
                    return done
            return -1 if op is codes.MIN_REPEAT else go(at)

        return run

    def _group(self, number: int | None, node: Node) -> Node:
        def run(at: int, go: Go) -> int:
            def keep(after: int) -> int:
                if number is not None:
                    self._groups[number] = (at, after)
                return go(after)

            return node(at, keep)

        return run

    def _atomic(self, node: Node) -> Node:
        def run(at: int, go: Go) -> int:
            end = node(at, lambda after: after)
            return go(end) if end >= 0 else -1

        return run

    def _branch(self, nodes: list[Node]) -> Node:
        def run(at: int, go: Go) -> int:
            for node in nodes:
                self._step()
                if (done := node(at, go)) >= 0:
                    return done
            return -1

        return run

    def _around(self, value: Any, is_wanted: bool) -> Node:
        direction, tree = value
        node, width = self._sequence(list(tree)), tree.getwidth()[1]

        def run(at: int, go: Go) -> int:
            self._step()
            begin = at if direction > 0 else at - width
            is_there = begin >= 0 and node(begin, lambda after: after) >= 0
            return go(at) if is_there == is_wanted else -1

        return run

    def _place(self, place: Any) -> Node:
        def is_word(at: int) -> bool:
            return 0 <= at < len(self.text) and _CATEGORIES[codes.CATEGORY_WORD](self.text[at])

        def run(at: int, go: Go) -> int:
            self._step()
            many = bool(self.flags & re.MULTILINE)
            if place is codes.AT_BEGINNING:
                here = at == 0 or (many and self.text[at - 1] == "\n")
            elif place is codes.AT_END:
                rest = self.text[at : at + 2]
                here = rest in ("", "\n") or (many and rest[0] == "\n")
            elif place in (codes.AT_BOUNDARY, codes.AT_NON_BOUNDARY):
                here = (is_word(at - 1) != is_word(at)) == (place is codes.AT_BOUNDARY)
            else:
                here = at == (0 if place is codes.AT_BEGINNING_STRING else len(self.text))
            return go(at) if here else -1

        return run

    def _again(self, number: int) -> Node:
        def run(at: int, go: Go) -> int:
            begin, end = self._groups.get(number, (0, -1))
            self.steps += max(0, end - begin)
            if end < begin or not self.text.startswith(self.text[begin:end], at):
                return -1
            return go(at + end - begin)

        return run


def parsed(pattern: re.Pattern[Any]) -> Any:
    """The tree of a pattern, as Python parses it."""
    return parser.parse(pattern.pattern, pattern.flags)


def accepts(op: Any, value: Any, flags: int) -> Callable[[str], bool]:
    """Which characters one place of a pattern takes."""
    if flags & re.IGNORECASE:
        plain = accepts(op, value, flags & ~re.IGNORECASE)
        return lambda char: plain(char.lower()) or plain(char.upper())
    if op is codes.LITERAL:
        return lambda char: ord(char) == value
    if op is codes.NOT_LITERAL:
        return lambda char: ord(char) != value
    if op is codes.ANY:
        return lambda char: bool(flags & re.DOTALL) or char != "\n"
    if op is codes.RANGE:
        return lambda char: value[0] <= ord(char) <= value[1]
    if op is codes.CATEGORY:
        return _CATEGORIES[value]
    rest = [each for each in value if each[0] is not codes.NEGATE]
    tests = [accepts(*each, flags) for each in rest]
    is_negated = len(rest) != len(value)
    cache: dict[str, bool] = {}

    def is_one(char: str) -> bool:
        if char not in cache:
            cache[char] = any(test(char) for test in tests) != is_negated
        return cache[char]

    return is_one


def pieces(tree: Any, flags: int, choice: int) -> list[str]:
    """A text of the shape of a pattern, by the parts of the pattern; `choice` picks characters,
    branches and how often what is repeated comes."""
    parts: list[str] = []
    literal = ""
    for op, value in tree:
        if op is codes.LITERAL:
            literal += chr(value)
            continue
        if literal:
            parts, literal = [*parts, literal], ""
        if op in _ONE:
            parts.append(_char(op, value, flags, choice))
        elif op in _REPEATS:
            least, most, part = value
            count = max(least, min(most, 1 + choice % 2))
            once = pieces(part, flags, choice)
            parts += ["".join(once) * count] if len(once) == 1 else once * count
        elif op is codes.SUBPATTERN:
            parts += pieces(value[3], flags, choice)
        elif op is codes.ATOMIC_GROUP:
            parts += pieces(value, flags, choice)
        elif op is codes.BRANCH:
            parts += pieces(value[1][choice % len(value[1])], flags, choice)
    return [each for each in [*parts, literal] if each]


def _char(op: Any, value: Any, flags: int, choice: int) -> str:
    is_one = accepts(op, value, flags)
    chars = [char for char in CANDIDATES if is_one(char)]
    if not chars:
        chars = [chr(each[1] if each[0] is codes.LITERAL else each[1][0]) for each in value]
    return chars[choice % len(chars)]


def hostile(pattern: re.Pattern[Any], choices: range) -> Iterator[tuple[str, str]]:
    """What comes once, and what comes again and again: parts of texts of the pattern's shape."""
    seen = set()
    for choice in choices:
        parts = pieces(parsed(pattern), pattern.flags, choice)
        for begin in range(len(parts)):
            before = "".join(parts[:begin])
            for end in {*range(begin + 1, min(begin + 8, len(parts)) + 1), len(parts)}:
                unit = "".join(parts[begin:end])
                for each in ((before, unit), ("", unit)):
                    if each not in seen:
                        seen.add(each)
                        yield each


def growth(
    pattern: re.Pattern[Any], way: str, before: str, unit: str, after: str, size: int
) -> float:
    """How many times the work of twice the text is that of the text."""
    works = []
    times = max(6, size // len(unit))
    for count in (times, 2 * times):
        text = before + unit * count + after
        try:
            works.append(getattr(Matcher(pattern, text), way)())
        except TooMuchWork:
            return float("inf")
    return works[1] / works[0]


@contextmanager
def _deep() -> Iterator[None]:
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(1_000_000)
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)
