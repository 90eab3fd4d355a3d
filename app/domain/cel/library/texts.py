"""Functions on strings and regular expressions.

Positions and lengths are in code points. Parity: allocator.md 11.3 (strings, version 2), cel.md 4.
"""

from typing import Final

from app.domain.cel.values.value import NO_SUCH_OVERLOAD, CelError, Value, check_text
from app.domain.values.regular_expressions import Pattern, PatternError

_SPACE: Final = (
    "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)
_UPPER: Final = str.maketrans("abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ")
_LOWER: Final = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz")
_QUOTED: Final = str.maketrans(
    {
        "\a": "\\a",
        "\b": "\\b",
        "\f": "\\f",
        "\n": "\\n",
        "\r": "\\r",
        "\t": "\\t",
        "\v": "\\v",
        "\\": "\\\\",
        '"': '\\"',
    }
)


def out_of_range(index: int) -> CelError:
    """The error of a position outside a text."""
    return CelError(f"index out of range: {index}")


def contains(text: Value, part: Value) -> Value:
    """`text.contains(part)`."""
    if isinstance(text, str) and isinstance(part, str):
        return part in text
    return NO_SUCH_OVERLOAD


def starts_with(text: Value, prefix: Value) -> Value:
    """`text.startsWith(prefix)`."""
    if isinstance(text, str) and isinstance(prefix, str):
        return text.startswith(prefix)
    return NO_SUCH_OVERLOAD


def ends_with(text: Value, suffix: Value) -> Value:
    """`text.endsWith(suffix)`."""
    if isinstance(text, str) and isinstance(suffix, str):
        return text.endswith(suffix)
    return NO_SUCH_OVERLOAD


def char_at(text: str, index: int) -> Value:
    """`text.charAt(i)`; empty for the position after the end."""
    if not 0 <= index <= len(text):
        return out_of_range(index)
    return text[index : index + 1]


def index_of(text: str, part: str, offset: int = 0) -> Value:
    """`text.indexOf(part, offset)`: the first position from `offset` on, or -1.

    Only a negative offset is an error; the result for one beyond the end is -1.
    """
    if part == "":
        return offset
    if offset < 0:
        return out_of_range(offset)
    return text.find(part, offset)


def last_index_of(text: str, part: str) -> Value:
    """`text.lastIndexOf(part)`: the last position, or -1."""
    return text.rfind(part)


def last_index_of_from(text: str, part: str, offset: int) -> Value:
    """`text.lastIndexOf(part, offset)`: the last position not after `offset`, or -1."""
    if part == "":
        return offset
    if offset < 0:
        return out_of_range(offset)
    if offset >= len(text):
        return -1
    return text.rfind(part, 0, offset + len(part))


def join(parts: tuple[Value, ...], separator: str = "") -> Value:
    """`parts.join(separator)`."""
    if not all(isinstance(part, str) for part in parts):
        return NO_SUCH_OVERLOAD
    texts = [str(part) for part in parts]
    check_text(sum(map(len, texts)) + len(separator) * len(texts))
    return separator.join(texts)


def lower_ascii(text: str) -> Value:
    """`text.lowerAscii()`."""
    return text.translate(_LOWER)


def upper_ascii(text: str) -> Value:
    """`text.upperAscii()`."""
    return text.translate(_UPPER)


def replace(text: str, old: str, new: str, count: int = -1) -> Value:
    """`text.replace(old, new, count)`; a negative count replaces all."""
    places = text.count(old) if old else len(text) + 1
    replaced = places if count < 0 else min(places, count)
    check_text(len(text) + replaced * (len(new) - len(old)))
    return text.replace(old, new, count)


def split(text: str, separator: str, limit: int = -1) -> Value:
    """`text.split(separator, limit)`; a negative limit means no limit."""
    if limit == 0:
        return ()
    if separator == "":
        if limit < 0 or limit >= len(text):
            return tuple(text)
        return (*text[: limit - 1], text[limit - 1 :])
    return tuple(text.split(separator, limit - 1 if limit > 0 else -1))


def substring(text: str, start: int) -> Value:
    """`text.substring(start)`."""
    if not 0 <= start <= len(text):
        return out_of_range(start)
    return text[start:]


def substring_between(text: str, start: int, end: int) -> Value:
    """`text.substring(start, end)`."""
    if start > end:
        return CelError(f"invalid substring range. start: {start}, end: {end}")
    if not 0 <= start <= len(text):
        return out_of_range(start)
    if not 0 <= end <= len(text):
        return out_of_range(end)
    return text[start:end]


def trim(text: str) -> Value:
    """`text.trim()`: the text without surrounding Unicode white space."""
    return text.strip(_SPACE)


def quote(text: str) -> Value:
    """`strings.quote(text)`."""
    return f'"{text.translate(_QUOTED)}"'


def matches(text: Value, pattern: Value) -> Value:
    """`text.matches(pattern)` with a pattern computed at run time."""
    if not (isinstance(text, str) and isinstance(pattern, str)):
        return NO_SUCH_OVERLOAD
    compiled = compile_pattern(pattern)
    return compiled if isinstance(compiled, CelError) else compiled.found_in(text)


def find(text: str, pattern: str) -> Value:
    """`text.find(pattern)` with a pattern computed at run time."""
    compiled = compile_pattern(pattern, "Illegal regex: ")
    return compiled if isinstance(compiled, CelError) else compiled.first(text)


def find_all(text: str, pattern: str, limit: int = -1) -> Value:
    """`text.findAll(pattern, limit)` with a pattern computed at run time."""
    compiled = compile_pattern(pattern, "Illegal regex: ")
    return compiled if isinstance(compiled, CelError) else compiled.all(text, limit)


def compile_pattern(text: str, prefix: str = "") -> Pattern | CelError:
    """The pattern, or upstream's error."""
    try:
        return Pattern(text)
    except PatternError as error:
        return CelError(f"{prefix}error parsing regexp: {error}")
