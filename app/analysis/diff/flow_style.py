"""Values as YAML on one line, the way people write them: quotes only where YAML needs them."""

import re
from typing import Any

from app.domain.log.chain import canonical_json

_PLAIN = re.compile(r"[A-Za-z/][A-Za-z0-9_./@+=-]*(?::[A-Za-z0-9_./@+=-]+)*")
"""Texts that are texts without quotes; no more than these, so that any reader agrees."""

_WORDS = frozenset(("true", "false", "null", "yes", "no", "on", "off", "y", "n"))


def shown(value: Any) -> str:
    """The value as YAML in flow style, with the keys of each map in order."""
    match value:
        case dict():
            pairs = (f"{_text(name)}: {shown(item)}" for name, item in sorted(value.items()))
            return f"{{{', '.join(pairs)}}}"
        case list():
            return f"[{', '.join(map(shown, value))}]"
        case str():
            return _text(value)
        case _:
            return canonical_json(value).decode()


def _text(text: str) -> str:
    is_plain = _PLAIN.fullmatch(text) and text.lower() not in _WORDS
    return text if is_plain else canonical_json(text).decode()
