"""Values formatted as Go prints them in messages: `%v`, `%#v`, and quoted text."""

from collections.abc import Mapping
from typing import Any

_ESCAPES = {
    '"': '\\"',
    "\\": "\\\\",
    "\n": "\\n",
    "\t": "\\t",
    "\r": "\\r",
}


def quoted(text: str) -> str:
    """The text formatted with `%q`."""
    return '"' + "".join(_ESCAPES.get(char, char) for char in text) + '"'


def plain(value: Any) -> str:
    """The value formatted with `%v`: `map[a:1 b:map[c:x]]`, `[1 2]`, `<nil>`."""
    match value:
        case None:
            return "<nil>"
        case bool():
            return "true" if value else "false"
        case Mapping():
            return f"map[{' '.join(f'{key}:{plain(value[key])}' for key in sorted(value))}]"
        case list():
            return f"[{' '.join(plain(item) for item in value)}]"
        case _:
            return str(value)


def syntax(value: Any) -> str:
    """A decoded JSON value formatted with `%#v`: `map[string]interface {}{"a":1}`."""
    match value:
        case None:
            return "interface {}(nil)"
        case bool():
            return "true" if value else "false"
        case str():
            return quoted(value)
        case Mapping():
            items = ", ".join(f"{quoted(key)}:{syntax(value[key])}" for key in sorted(value))
            return f"map[string]interface {{}}{{{items}}}"
        case list():
            return f"[]interface {{}}{{{', '.join(syntax(item) for item in value)}}}"
        case _:
            return str(value)
