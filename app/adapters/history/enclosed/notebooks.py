"""Cells of Jupyter notebooks: commands of a shell, and what they printed, as a terminal shows both.

    {"cell_type": "code", "source": ["!kubectl get pods -n shop\\n"],
     "outputs": [{"output_type": "stream", "text": ["NAME   READY   STATUS\\n", …]}]}

becomes

    $ kubectl get pods -n shop
    NAME   READY   STATUS
"""

from collections.abc import Iterator
from typing import Any

_SHELLS = ("%%bash", "%%sh", "%%script bash", "%%script sh", "%%!")
_PROMPT = "$ "


def of_cell(value: Any) -> str | None:
    """The terminal's view of a code cell; None for other values."""
    if not isinstance(value, dict) or value.get("cell_type") != "code":
        return None
    outputs = value.get("outputs")
    shown = [_joined(text) for text in _texts(outputs if isinstance(outputs, list) else [])]
    return "\n".join([*_commands(_joined(value.get("source"))), *shown]) + "\n"


def _commands(source: str) -> Iterator[str]:
    lines = source.split("\n")
    is_shell = lines[0].strip().startswith(_SHELLS)
    for line in lines[1:] if is_shell else lines:
        if is_shell:
            yield _PROMPT + line
        elif line.lstrip().startswith("!"):
            yield _PROMPT + line.lstrip()[1:].lstrip()


def _texts(outputs: list[Any]) -> Iterator[Any]:
    for output in outputs:
        if not isinstance(output, dict):
            continue
        yield output.get("text")
        data = output.get("data")
        yield data.get("text/plain") if isinstance(data, dict) else None


def _joined(value: Any) -> str:
    """A text of a notebook, which is kept whole or by lines with their ends; else empty."""
    if isinstance(value, list):
        return "".join(part for part in value if isinstance(part, str))
    return value if isinstance(value, str) else ""
