"""Conversion of optional access to method calls, for the grammar of cel-python.

`a.?b` becomes `a.optional_field_("b")`, and `a[?k]` becomes `a.optional_index_(k)`. Optional
entries of lists and maps (`[?a]`, `{?k: v}`) stay as they are, and cel-python refuses them.
"""

import re
from typing import Final

FIELD: Final = "optional_field_"
INDEX: Final = "optional_index_"

_TOKEN: Final = re.compile(
    r"""
      (?P<text>[bBrR]{0,2}(?:\"\"\".*?\"\"\"|'''.*?'''))
    | (?P<raw>[bB]?[rR][bB]?(?:"[^"\n]*"|'[^'\n]*'))
    | (?P<line>[bB]?(?:"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'))
    | (?P<comment>//[^\n]*)
    | (?P<field>\.\?\s*(?P<name>[_a-zA-Z][_a-zA-Z0-9]*))
    | (?P<index>\[\?)
    | (?P<word>[_a-zA-Z0-9]+)
    | (?P<space>\s+)
    | (?P<sign>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_OPERAND_ENDS: Final = frozenset(")]}")


def is_used(expression: str) -> bool:
    """True if the expression may contain optional access."""
    return ".?" in expression or "[?" in expression


def rewrite(expression: str) -> str:
    """The expression with optional access converted to method calls."""
    if not is_used(expression):
        return expression
    parts: list[str] = []
    brackets: list[str] = []
    ends_operand = False
    for token in _TOKEN.finditer(expression):
        kind, piece = token.lastgroup, token.group()
        if kind in ("space", "comment"):
            parts.append(" " if kind == "comment" else piece)
            continue
        if token["field"]:
            piece = f'.{FIELD}("{token["name"]}")'
        elif kind == "index" and ends_operand:
            piece = f".{INDEX}("
            brackets.append(")")
        elif piece.startswith("["):
            brackets.append("]")
        elif piece == "]" and brackets:
            piece = brackets.pop()
        parts.append(piece)
        ends_operand = kind not in ("sign", "index") or piece in _OPERAND_ENDS
    return "".join(parts)
