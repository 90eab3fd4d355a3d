"""Regular expressions as Go reads them: those of CEL and the patterns of custom kinds.

Parity: cel.md 4, objects.md 15.5.
"""

import re
from typing import Final

import re2

_PATTERN_BYTES_MAX: Final = 100_000


class Pattern:
    """A compiled RE2 expression, which runs in linear time as upstream's."""

    __slots__ = ("_compiled",)

    def __init__(self, text: str) -> None:
        """Raises PatternError if the text is not an RE2 expression."""
        if len(text) > _PATTERN_BYTES_MAX:
            raise PatternError("expression nests too deeply")
        options = re2.Options()
        options.log_errors = False
        try:
            self._compiled = re2.compile(text, options=options)
        except re2.error as error:
            raise PatternError(_re2_message(error, text)) from error
        if any(match[0] == _ANY_BYTE for match in _ESCAPES.finditer(text)):
            raise PatternError(f"invalid escape sequence: `{_ANY_BYTE}`")

    def found_in(self, text: str) -> bool:
        """Whether the pattern matches anywhere in the text."""
        return self._compiled.search(text.encode()) is not None

    def first(self, text: str) -> str:
        """The first match, or an empty string."""
        # For a text, the library would turn the places of the match into those of its characters.
        match = self._compiled.search(text.encode())
        return "" if match is None else match.group().decode()

    def all(self, text: str, limit: int) -> tuple[str, ...]:
        """All non-overlapping matches, at most `limit` of them unless it is negative."""
        matches: list[str] = []
        last_end = -1
        for match in self._compiled.finditer(text):
            if 0 <= limit <= len(matches):
                break
            # In Go, an empty match directly after another match does not count.
            if match.end() == match.start() == last_end:
                continue
            matches.append(str(match.group()))
            last_end = match.end()
        return tuple(matches)


class PatternError(ValueError):
    """The text is not an RE2 expression; the message follows Go's."""


_ANY_BYTE: Final = r"\C"
"""What Go refuses: it may match a part of a character. The library of RE2 takes it."""

_ESCAPES: Final = re.compile(r"\\Q.*?(?:\\E|$)|\\.", re.DOTALL)
"""The escape sequences of an expression; a quotation is one, whatever stands in it."""


def _re2_message(error: Exception, text: str) -> str:
    cause = error.args[0] if error.args else ""
    cause = cause.decode() if isinstance(cause, bytes) else str(cause)
    cause, separator, detail = cause.partition(": ")
    return f"{_GO_CAUSES.get(cause, cause)}: `{detail if separator else text}`"


_GO_CAUSES: Final = {
    "missing ]": "missing closing ]",
    "missing )": "missing closing )",
    "no argument for repetition operator": "missing argument to repetition operator",
    "invalid repetition size": "invalid repeat count",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid named capture group": "invalid named capture",
    "bad repetition operator": "invalid nested repetition operator",
}
