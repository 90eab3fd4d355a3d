"""A reader of `kubectl describe` pages for kinds without a page of their own.

For these kinds kubectl prints every field: each name as words, maps in the order of their keys,
lists without a separator between items. The schema of the kind therefore gives the names and types,
and a new item of a list begins where a name is not later in the order than the name before.

    Requests:
      Exactly:
        Device Class Name:  gpu
      Name:                 first
      Exactly:                            an item begins: "exactly" is no later than "name"
        Device Class Name:  gpu
      Name:                 second

Two adjacent items are read as one when the second has only later names: the page does not
distinguish them. For the same reason nothing is read of a section in which lines were left out.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from app.domain.objects.schema.structural import SchemaNode, SchemaShape
from app.domain.values.json_tree import JsonObject

_LINE = re.compile(r"(?P<blank> *)(?P<label>\S.*?):(?:[ \t]+(?P<value>.*))?")
_OPEN = ("&&", "||", "(", ",", "?", "+", "[", " in")
"""Endings of a line whose expression continues on the next line."""

_DOTS = re.compile(r"[ \t]*(?:\.\.\.|\u2026)[ \t]*")
_SECTIONS = ("API Version:", "Metadata:", "Spec:", "Status:")
"""The first lines of the fields of an object; what stands before them is about all objects."""

LEFT_OUT = "the ... stands for a part that was left out of the copy"
FLATTENED = "the indentation of this description was changed, so its fields cannot be told apart"
UNREAD = "this section of the description cannot be read from here on"

_NULL = "<nil>"
"""The text that kubectl prints for null, such as the creation time in a template."""

_WORDS = re.compile(r"[A-Za-z -]+")
_ACRONYMS = frozenset({"API", "URL", "UID", "OSB", "GUID"})
_STEP = 2
"""Spaces of indentation per level."""


def is_open(line: str) -> bool:
    """True when the value of a line continues on the next line, whatever that line contains."""
    return line.rstrip().endswith(_OPEN)


def is_gap(line: str) -> bool:
    """True for a line of dots, which stands for lines that were left out."""
    return _DOTS.fullmatch(line) is not None


@dataclass(slots=True)
class Fields:
    """The fields of an object, and the damage on its page: the index of a line and a sentence."""

    tree: JsonObject = field(default_factory=dict)
    damage: list[tuple[int, str]] = field(default_factory=list)


def read(lines: Sequence[str], node: SchemaNode) -> Fields:
    """The fields of an object, read with the schema `node` from the lines of its page.

    A section that was cut, or that cannot be read to its end, is left out as a whole.
    """
    content = Fields()
    begin = next((at for at, line in enumerate(lines) if line.startswith(_SECTIONS)), len(lines))
    for at, section in _sections(lines, begin):
        if section[0].startswith("Metadata:") and len(section) == 1:
            return Fields(damage=[(at, FLATTENED)])
        dots = next((index for index, line in enumerate(section) if is_gap(line)), None)
        if dots is not None:
            content.damage.append((at + dots, LEFT_OUT))
            continue
        page = _DescriptionReader(section)
        (part,) = page.items(node, 0, is_list=False)
        if page.unread is not None:
            content.damage.append((at + page.unread, UNREAD))
            continue
        content.tree.update(part)
    return content


def _sections(lines: Sequence[str], begin: int) -> Iterator[tuple[int, Sequence[str]]]:
    """The fields on the outermost level from a line on, each with the index of its first line."""
    end = begin
    while begin < len(lines):
        end = begin + 1
        while end < len(lines) and (
            not lines[end][:1].strip() or is_gap(lines[end]) or is_open(lines[end - 1])
        ):
            end += 1
        yield begin, lines[begin:end]
        begin = end


class _DescriptionReader:
    """A reader that walks through the lines of a page from the top."""

    def __init__(self, lines: Sequence[str]) -> None:
        self._lines = lines
        self._at = 0

    @property
    def unread(self) -> int | None:
        """The index of the first line that no field took; None when all lines were read."""
        rest = range(self._at, len(self._lines))
        return next((at for at in rest if self._lines[at].strip()), None)

    def items(self, node: SchemaNode | None, indent: int, *, is_list: bool) -> list[JsonObject]:
        """The objects at an indentation: one object, or the items of a list."""
        items: list[JsonObject] = [{}]
        before = ""
        while (match := self._line(indent)) is not None:
            name, child = _field(node, match["label"])
            if is_list and items[-1] and name <= before:
                items.append({})
            before = name
            self._at += 1
            if match["value"]:
                text = match["value"] + self._rest(match["value"])
                items[-1][name] = _scalar(text, child)
            else:
                items[-1][name] = self._nested(child, indent + _STEP)
        return items

    def _line(self, indent: int) -> re.Match[str] | None:
        """The match of the current line when it has a label at this indentation, else None."""
        if self._at >= len(self._lines):
            return None
        match = _LINE.fullmatch(self._lines[self._at].rstrip(" \t"))
        return match if match is not None and len(match["blank"]) == indent else None

    def _rest(self, text: str) -> str:
        rest: list[str] = []
        while is_open(rest[-1] if rest else text) and self._at < len(self._lines):
            rest.append(self._lines[self._at].rstrip())
            self._at += 1
        return "".join(f"\n{line}" for line in rest)

    def _nested(self, node: SchemaNode | None, indent: int) -> Any:
        shape = SchemaShape.ANY if node is None else node.shape
        if self._at >= len(self._lines) or not self._is_deeper(indent):
            return _EMPTY[shape]() if shape in _EMPTY else ""
        if shape is SchemaShape.LIST and node is not None:
            if node.items.shape in (SchemaShape.OBJECT, SchemaShape.MAP):
                return self.items(node.items, indent, is_list=True)
            return [_scalar(text, node.items) for text in self._texts(indent)]
        if shape is SchemaShape.ANY and self._line(indent) is None:
            return list(self._texts(indent))
        return self.items(node, indent, is_list=False)[0]

    def _texts(self, indent: int) -> list[str]:
        texts: list[str] = []
        while self._at < len(self._lines) and self._is_deeper(indent):
            texts.append(self._lines[self._at].strip())
            self._at += 1
        return texts

    def _is_deeper(self, indent: int) -> bool:
        line = self._lines[self._at]
        return bool(line.strip()) and line.startswith(" " * indent)


_EMPTY = {
    SchemaShape.OBJECT: dict,
    SchemaShape.MAP: dict,
    SchemaShape.ANY: dict,
    SchemaShape.LIST: list,
}


def _field(node: SchemaNode | None, label: str) -> tuple[str, SchemaNode | None]:
    """The field name of a label, and its schema where it is known."""
    name = _name(label)
    if node is None or node.shape is SchemaShape.ANY:
        return name, None
    if node.shape is SchemaShape.MAP:
        return name, node.items
    if name not in node.fields:
        # An acronym such as ID is one word in a label, but capitals in a name.
        name = next((each for each in node.fields if each.lower() == name.lower()), name)
    return name, node.fields.get(name)


def _name(label: str) -> str:
    """The field name of a label: `Device Class Name` is `deviceClassName`.

    A label that has other characters than letters, spaces and dashes is itself the name.
    """
    if not _WORDS.fullmatch(label):
        return label
    return "-".join(_joined(part.split()) for part in label.split(" - "))


def _joined(words: list[str]) -> str:
    if not words:
        return ""
    first, *others = words
    if first in _ACRONYMS:
        first = first.lower()
    elif len(first) == 1 or not first.isupper():
        first = first[:1].lower() + first[1:]
    return first + "".join(others)


def _scalar(text: str, node: SchemaNode | None) -> Any:
    if text.strip() == _NULL:
        return None
    shape = SchemaShape.ANY if node is None else node.shape
    if shape in (SchemaShape.BOOLEAN, SchemaShape.ANY) and text in ("true", "false"):
        return text == "true"
    is_number = re.fullmatch(r"-?[0-9]{1,18}", text) is not None
    if is_number and shape in (SchemaShape.INTEGER, SchemaShape.INT_OR_STRING, SchemaShape.ANY):
        return int(text)
    return text
