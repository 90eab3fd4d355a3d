"""The scanner of tokens, and the values of literals.

A token has its start and end in code points. Characters that cannot begin a token are skipped with
an issue, so that one mistake does not hide the next.
"""

import re
from dataclasses import dataclass
from typing import Final

from app.domain.cel.syntax.issues import Issue
from app.domain.cel.values.value import INT_MAX, INT_MIN, UINT_MAX, Uint

END: Final = "<EOF>"
IDENTIFIER: Final = "IDENTIFIER"
ESCAPED: Final = "ESC_IDENTIFIER"
INT: Final = "NUM_INT"
UINT: Final = "NUM_UINT"
FLOAT: Final = "NUM_FLOAT"
STRING: Final = "STRING"
BYTES: Final = "BYTES"

KEYWORDS: Final = frozenset({"in", "true", "false", "null"})
RESERVED: Final = frozenset(
    (
        *("as", "break", "const", "continue", "else", "for", "function", "if", "import", "let"),
        *("loop", "package", "namespace", "return", "var", "void", "while"),
    )
)

_RAW_BODY = r'(?:"""[\s\S]*?"""|\'\'\'[\s\S]*?\'\'\'|"[^"\r\n]*"|\'[^\'\r\n]*\')'
_BODY = (
    r'(?:"""(?:[^\\]|\\[\s\S])*?"""|\'\'\'(?:[^\\]|\\[\s\S])*?\'\'\''
    r'|"(?:[^"\\\r\n]|\\[^\r\n])*"|\'(?:[^\'\\\r\n]|\\[^\r\n])*\')'
)
_TOKEN = re.compile(
    rf"""
      (?P<space>[ \t\f\r\n]+|//[^\n]*)
    | (?P<BYTES>[bB](?:[rR]{_RAW_BODY}|{_BODY}))
    | (?P<STRING>[rR]{_RAW_BODY}|{_BODY})
    | (?P<IDENTIFIER>[A-Za-z_][A-Za-z0-9_]*)
    | (?P<ESC_IDENTIFIER>`[A-Za-z0-9_./\ -]+`)
    | (?P<NUM_FLOAT>[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+
        |\.[0-9]+(?:[eE][+-]?[0-9]+)?)
    | (?P<NUM_UINT>(?:0x[0-9a-fA-F]+|[0-9]+)[uU])
    | (?P<NUM_INT>0x[0-9a-fA-F]+|[0-9]+)
    | (?P<operator>&&|\|\||<=|>=|==|!=|[-+*/%<>!?:.,()\[\]{{}}])
    """,
    re.VERBOSE,
)

_ESCAPE = re.compile(
    r"\\(?:([abfnrtv\\?\"'`])|[xX]([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})"
    r"|([0-3][0-7]{2})|([\s\S]?))"
)
_SIMPLE_ESCAPES = {
    "a": "\a",
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
}


class LiteralError(ValueError):
    """A literal has the right form but no valid value; the message is upstream's."""


@dataclass(frozen=True, slots=True)
class Token:
    """`kind` is a token class, or the text itself for operators and keywords."""

    kind: str
    text: str
    position: int
    end: int


def scan(text: str, issues: list[Issue]) -> list[Token]:
    """Returns all tokens of the text and an end token; other text becomes an issue."""
    tokens: list[Token] = []
    position = 0
    length = len(text)
    match = _TOKEN.match
    while position < length:
        lexed = match(text, position)
        if lexed is None:
            rest = _unrecognised(text, position)
            message = f"Syntax error: token recognition error at: '{rest}'"
            issues.append(Issue(position=position, message=message))
            position += len(rest)
            continue
        kind = lexed.lastgroup or ""
        end = lexed.end()
        if kind != "space":
            lexeme = lexed.group()
            if kind == "operator" or lexeme in KEYWORDS:
                kind = lexeme
            tokens.append(Token(kind, lexeme, position, end))
        position = end
    tokens.append(Token(END, END, length, length))
    return tokens


def _unrecognised(text: str, position: int) -> str:
    """The text of a token error: an unfinished string up to its line's end, else a character."""
    if text[position] in "\"'":
        end = text.find("\n", position)
        return text[position:] if end < 0 else text[position:end]
    return text[position]


def integer(text: str) -> int:
    """The value of an int literal with an optional sign. Raises LiteralError beyond 64 bits."""
    if len(text) > 64:
        raise LiteralError("invalid int literal")
    value = int(text, 16) if "x" in text else int(text)
    if not INT_MIN <= value <= INT_MAX:
        raise LiteralError("invalid int literal")
    return value


def unsigned(text: str) -> Uint:
    """The value of a uint literal. Raises LiteralError beyond 64 bits."""
    digits = text[:-1]
    if len(digits) > 64:
        raise LiteralError("invalid uint literal")
    value = int(digits, 16) if "x" in digits else int(digits)
    if value > UINT_MAX:
        raise LiteralError("invalid uint literal")
    return Uint(value)


def double(text: str) -> float:
    """The value of a double literal. Raises LiteralError if it is too large to be finite."""
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise LiteralError("invalid double literal")
    return value


def string(lexeme: str) -> str:
    """The value of a string literal with its prefix and quotes."""
    raw = lexeme[0] in "rR"
    body = _unquote(lexeme[1:] if raw else lexeme)
    if raw or "\\" not in body:
        return body
    return _ESCAPE.sub(_string_escape, body)


def octets(lexeme: str) -> bytes:
    """The value of a bytes literal with its prefix and quotes."""
    raw = lexeme[1] in "rR"
    body = _unquote(lexeme[2:] if raw else lexeme[1:])
    if raw or "\\" not in body:
        return body.encode()
    parts: list[bytes] = []
    position = 0
    for escape in _ESCAPE.finditer(body):
        parts += (body[position : escape.start()].encode(), _bytes_escape(escape))
        position = escape.end()
    parts.append(body[position:].encode())
    return b"".join(parts)


def _unquote(quoted: str) -> str:
    width = 3 if quoted[:3] in ('"""', "'''") and len(quoted) >= 6 else 1
    body = quoted[width:-width]
    return body.replace("\r\n", "\n").replace("\r", "\n") if "\r" in body else body


def _string_escape(escape: re.Match[str]) -> str:
    simple, two, four, eight, octal, _unknown = escape.groups()
    if simple is not None:
        return _SIMPLE_ESCAPES.get(simple, simple)
    if octal is not None:
        return chr(int(octal, 8))
    digits = two or four or eight
    if digits is None:
        raise LiteralError(f"unable to unescape string: {escape.group()}")
    code = int(digits, 16)
    if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
        raise LiteralError("invalid unicode code point")
    return chr(code)


def _bytes_escape(escape: re.Match[str]) -> bytes:
    simple, two, _four, _eight, octal, _unknown = escape.groups()
    if simple is not None:
        return _SIMPLE_ESCAPES.get(simple, simple).encode()
    if octal is not None:
        return bytes([int(octal, 8)])
    if two is None:
        raise LiteralError(f"unable to unescape bytes: {escape.group()}")
    return bytes([int(two, 16)])
