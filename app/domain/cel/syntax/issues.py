"""Issues of a compilation: their positions, and their text in upstream's form.

`ERROR: <input>:LINE:COLUMN: message`, then the source line and a caret below the position
(Parity: cel.md 3, allocator.md 11.1).
"""

from bisect import bisect_right
from dataclasses import dataclass, field

from app.domain.cel.limits import ERRORS_REPORTED_MAX
from app.domain.errors import RedraError

_WIDE_DOT = "．"
_WIDE_CARET = "＾"


class CompileError(RedraError):
    """An expression cannot be compiled. `str()` is upstream's text.

    `position` is the 0-based code point of the first issue, if it has one.
    Cure: correct the expression at the place that the text names.
    """

    def __init__(self, text: str, *, position: int | None = None) -> None:
        super().__init__(text)
        self.text = text
        self.position = position


@dataclass(frozen=True, slots=True, kw_only=True)
class Issue:
    """One error, and its position as a 0-based code point."""

    position: int
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceText:
    """An expression and the positions at which its lines begin."""

    text: str
    starts: tuple[int, ...] = field(init=False)

    def __post_init__(self) -> None:
        starts = [0]
        starts.extend(index + 1 for index, char in enumerate(self.text) if char == "\n")
        object.__setattr__(self, "starts", tuple(starts))

    def place(self, position: int) -> tuple[int, int]:
        """Line (from 1) and column (from 0) of a code point."""
        line = bisect_right(self.starts, position)
        return line, position - self.starts[line - 1]

    def line(self, number: int) -> str:
        """The text of a line, counted from 1."""
        start = self.starts[number - 1]
        end = self.starts[number] - 1 if number < len(self.starts) else len(self.text)
        return self.text[start:end]

    def describe(self, issue: Issue) -> str:
        """The issue in upstream's form."""
        if not self.text:
            # For an empty source, upstream prints column 0 and no source line.
            return f"ERROR: <input>:1:0: {issue.message}"
        line, column = self.place(issue.position)
        heading = f"ERROR: <input>:{line}:{column + 1}: {issue.message}"
        snippet = self.line(line).replace("\t", " ")
        dots = "".join("." if ord(char) < 0x80 else _WIDE_DOT for char in snippet[:column])
        below = snippet[column : column + 1]
        caret = _WIDE_CARET if below and ord(below) >= 0x80 else "^"
        return f"{heading}\n | {snippet}\n | {dots}{caret}"

    def failure(self, issues: list[Issue]) -> CompileError:
        """All issues of a compilation as one error, in the order of their positions."""
        # An expansion may use an argument twice; an error in it is reported once.
        ordered = sorted(dict.fromkeys(issues), key=lambda issue: issue.position)
        texts = [self.describe(issue) for issue in ordered[:ERRORS_REPORTED_MAX]]
        if len(ordered) > ERRORS_REPORTED_MAX:
            texts.append(f"{len(ordered) - ERRORS_REPORTED_MAX} more errors were truncated")
        return CompileError("compilation failed: " + "\n".join(texts), position=ordered[0].position)
