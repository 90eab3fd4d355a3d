r"""Texts in the fields of documents other than objects: bodies of issues, outputs of notebooks.

    {"title": "It hangs", "body": "See\n```yaml\napiVersion: v1\nkind: Pod\n…"}

A text that a program cut into lines (`["apiVersion: v1\n", "kind: Pod\n"]`) is one text. One that
was bounded to so many characters ends anywhere: within a number, a name or a uid.
"""

import base64
import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from app.adapters.history import kinds
from app.adapters.history.enclosed import checkpoints, managed_states

DEPTH_MAX = 16
"""Levels of a document that are searched for texts."""

_MARKS = ("apiVersion", "kind")
_STORED = ('"kvs"', '"header"')

_PRINTED = re.compile(
    r"^[ \t]*(?:`{3})?(?:(?:NAMESPACE +)?(?:NAME {2,}[A-Z]|LAST ?SEEN {2,}(?:TYPE|FIRST ?SEEN) )"
    r"|Name: {2,}\S"
    r"|\| *(?:NAMESPACE|NAME|LAST SEEN) *\|)",
    re.MULTILINE,
)
"""The titles of a table of kubectl, or the first field of a description."""

WAS_CUT = re.compile(
    r"^[^\w{]*(?:(?:(?:output|rest|file|log) (?:was )?)?truncated"
    r"|\d{1,9} (?:more )?lines (?:hidden|omitted|skipped|truncated)"
    r"|(?<=\.\.\.)skipping|(?<=--)more--[ (\d]*|(?<=-- )more -+[ (\d]*)\W*$",
    re.IGNORECASE,
)
"""A line that says that a part of the text was cut off, or is not shown."""

_SERVED = ("creationTimestamp", "resourceVersion", "uid")
"""What the metadata of an object has that a server has stored."""

CUT_LIST = "the list ends before its kind, so its last item may be cut, and is left out"

CUT_ITEM = "the list ends before its kind, so its only item may be cut"
"""Left out, nothing would be read of a page that shows a list with one item and no more."""

OPEN_FENCE = "the text ends in a fence that is not closed, so its last object may be cut"

_CLOSERS = ("\n", "}", "]", "`", "</pre>", "</codeblock>", "</div>", "</p>")
"""Ends of texts that are whole: programs end each line, and documents in JSON or fences close.

So do parts of pages.
"""

_BEGINNINGS = ("apiVersion:", "---\n", "```")
"""The beginnings of a document, which starts a line also where a piece does not end one."""

_SHELLS = ("%%bash", "%%sh", "%%script bash", "%%script sh", "%%!")
_PROMPT = "$ "


def within(value: Any, depth: int = DEPTH_MAX) -> Iterator[str]:
    """The texts in a value that may hold objects.

    Texts within an object belong to it and are skipped.
    """
    if depth == 0:
        return
    if isinstance(value, str):
        is_marked = any(all(mark in value for mark in marks) for marks in (_MARKS, _STORED))
        if is_marked or _PRINTED.search(value):
            yield value
    elif isinstance(value, list):
        if (pieces := _of_pieces(value)) is not None:
            yield from within(pieces, depth - 1)
            return
        if len(value) > 1 and all(isinstance(item, str) for item in value):
            ends = "" if any(item.endswith("\n") for item in value) else "\n"
            yield from within(ends.join(value), depth - 1)
            return
        for item in value:
            yield from within(item, depth - 1)
    elif isinstance(value, dict):
        if "metadata" in value and ("apiVersion" in value or "kind" in value):
            return
        if managed_states.is_managed(value) or checkpoints.is_checkpoint(value):
            return
        if value.get("msg") == "Request Body":
            # A client in Go logs so, in JSON, what it sent, which is no object of the cluster.
            return
        if (cell := _of_cell(value)) is not None:
            yield from within(cell, depth - 1)
            return
        if value.get("type") == "message" and isinstance(text := value.get("text"), str):
            value = {**value, "text": _unescaped(text)}
        if value.get("encoding") == "base64" and isinstance(body := value.get("text"), str):
            # The recording of a browser has answers so that are no text, or were packed.
            value = {**value, "text": _decoded(body)}
        # Annotations hold previously applied states, and a webhook is asked to admit an object.
        skipped = ("annotations", "object") if kinds.is_admission(value) else ("annotations",)
        for name, part in value.items():
            if name not in skipped:
                yield from within(part, depth - 1)


def _of_pieces(values: list[Any]) -> str | None:
    """The text that an editor keeps in pieces, by their length or style; None for other values.

        [{"type": "text", "text": "apiVersion: v1\\nkind: "}, {"type": "text", "text": "Pod\\n…"}]

    Notion shows the text of a piece as `plain_text`.
    """
    pieces = [_of_piece(value) for value in values if isinstance(value, dict)]
    texts = [piece for piece in pieces if piece is not None]
    if not texts or len(texts) < len(values):
        return None
    text = texts[0]
    for before, piece in pairwise(texts):
        is_apart = not before.endswith("\n") and piece.startswith(_BEGINNINGS)
        text += f"\n{piece}" if is_apart else piece
    return text


def _of_piece(value: dict[str, Any]) -> str | None:
    kind = value.get("type")
    if kind == "hardBreak":
        return "\n"
    name = "plain_text" if "plain_text" in value else "text"
    text = value.get(name)
    if not isinstance(text, str) or (name == "text" and kind not in ("text", "link")):
        return None
    return text


def _decoded(text: str) -> str:
    try:
        return base64.b64decode(text, validate=True).decode()
    except ValueError:
        return ""


def _unescaped(text: str) -> str:
    """The text of a message of Slack, whose exports and API escape three characters."""
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def may_be_cut(text: str) -> bool:
    """Whether a text may end in the middle of a document: it ends in the middle of a line.

    Words that stand in a paragraph of their own are no line of a document.
    """
    if text.endswith(_CLOSERS):
        return False
    *_, above, last = ("", *text.rsplit("\n", 2))
    return bool(above.strip()) or not last[:1].isalpha() or ":" in last


def without_cut(value: Any) -> Any:
    """The whole part of the last document of such a text; None when nothing is whole.

    An object that nobody has stored was written for a reader, and is taken as it is. Of an object
    that a server has stored, without its last fields, nobody could tell what these were. kubectl
    sorts fields: `kind` follows the items of a list.
    """
    if not isinstance(value, dict):
        return value
    names, items = list(value), value.get("items")
    if not isinstance(items, list) or not items:
        return None if _is_stored(value) else value
    if names[-1] != "items" or "kind" not in value or not _is_stored(items[-1]):
        return value
    return {**value, "items": items[:-1]} if len(items) > 1 else None


def is_cut_list(value: Any) -> bool:
    """Whether a document of YAML is a list of stored objects that ends in the middle.

    kubectl sorts fields, so `kind` follows the items; YAML that breaks off is still YAML.
    """
    if not isinstance(value, dict) or "kind" in value or "apiVersion" not in value:
        return False
    items = value.get("items")
    if not isinstance(items, list) or list(value)[-1] != "items":
        return False
    return any(_is_stored(item) for item in items)


def _is_stored(value: Any) -> bool:
    metadata = value.get("metadata") if isinstance(value, dict) else None
    return isinstance(metadata, dict) and any(metadata.get(name) for name in _SERVED)


def _of_cell(value: Any) -> str | None:
    """The terminal's view of a code cell of a Jupyter notebook; None for other values.

        {"cell_type": "code", "source": ["!kubectl get pods -n shop\\n"],
         "outputs": [{"output_type": "stream", "text": ["NAME   READY   STATUS\\n", …]}]}

    becomes

        $ kubectl get pods -n shop
        NAME   READY   STATUS
    """
    if not isinstance(value, dict) or value.get("cell_type") != "code":
        return None
    outputs = value.get("outputs")
    shown = [_joined(text) for text in _cell_texts(outputs if isinstance(outputs, list) else [])]
    return "\n".join([*_cell_commands(_joined(value.get("source"))), *shown]) + "\n"


def _cell_commands(source: str) -> Iterator[str]:
    lines = source.split("\n")
    is_shell = lines[0].strip().startswith(_SHELLS)
    for line in lines[1:] if is_shell else lines:
        if is_shell:
            yield _PROMPT + line
        elif line.lstrip().startswith("!"):
            yield _PROMPT + line.lstrip()[1:].lstrip()


def _cell_texts(outputs: list[Any]) -> Iterator[Any]:
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
