"""Decoding of JSON and YAML bodies, with bounds, and with a report of duplicate keys.

YAML is read as by kubectl's conversion to JSON: times and sexagesimal numbers are strings, keys
become strings, anchors are expanded. All sizes are bounded (`DecodeBounds`); a body beyond a bound
is refused with the bound in the message.
"""

import json
import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, cast

import msgspec
import yaml

from app.domain.errors import BadRequest, TooLarge
from app.domain.values.json_tree import JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodeBounds:
    """The bounds of a body.

    `values_max` counts scalars, lists and objects after anchors are expanded; `bytes_max` bounds
    the size of the body, and of its JSON form after anchors are expanded.
    """

    bytes_max: int = 3 * 1024 * 1024
    depth_max: int = 100
    values_max: int = 2_000_000


DEFAULT_BOUNDS = DecodeBounds()

_decoder = msgspec.json.Decoder()
_encoder = msgspec.json.Encoder()


class Decoded(msgspec.Struct, frozen=True, kw_only=True):
    """A decoded body. `problems` has one text for each duplicate key: `duplicate field
    "metadata.name"`."""

    value: Any
    problems: tuple[str, ...] = ()


def decode_json(text: bytes, bounds: DecodeBounds = DEFAULT_BOUNDS) -> Decoded:
    """Returns the JSON value of `text`. Raises BadRequest if invalid, TooLarge beyond a bound."""
    _check_size(text, bounds)
    try:
        value = _decoder.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as problem:
        raise BadRequest(f"the body is not JSON: {problem}") from problem
    # Nesting is at most the number of brackets, which is below the bound for nearly every body.
    depth_max = bounds.depth_max
    most = _up_to(depth_max, text, b"{") + _up_to(depth_max, text, b"[")
    if most > depth_max and _depth(value) > depth_max:
        raise TooLarge(f"the body is nested more than {bounds.depth_max} deep")
    keys = repeated_keys(text, _encoder.encode(value))
    return Decoded(value=value, problems=tuple(f'duplicate field "{key}"' for key in keys))


def decode_yaml(text: bytes, bounds: DecodeBounds = DEFAULT_BOUNDS) -> Decoded:
    """Returns the first YAML document of `text` as JSON; None for an empty text."""
    for document in decode_yaml_documents(text, bounds):
        return document
    return Decoded(value=None)


def decode_yaml_documents(text: bytes, bounds: DecodeBounds = DEFAULT_BOUNDS) -> Iterator[Decoded]:
    """Yields every YAML document of `text` as JSON, except empty ones.

    Raises BadRequest naming line and column, TooLarge beyond a bound.
    """
    _check_size(text, bounds)
    try:
        loader = yaml.CSafeLoader(text)
    except (yaml.YAMLError, UnicodeDecodeError) as problem:
        raise BadRequest(f"the body is not YAML: {_one_line(problem)}") from problem
    try:
        while loader.check_event():
            event = loader.get_event()
            if isinstance(event, yaml.DocumentStartEvent):
                document = _DocumentBuilder(bounds).build(loader)
                if document.value is not None:
                    yield document
    except (yaml.YAMLError, UnicodeDecodeError) as problem:
        raise BadRequest(f"the body is not YAML: {_one_line(problem)}") from problem
    finally:
        loader.dispose()


def decode(text: bytes, *, is_yaml: bool, bounds: DecodeBounds = DEFAULT_BOUNDS) -> Decoded:
    """Decodes a body that must be one object; `is_yaml` follows from its content type.

    Raises BadRequest for another value, and as `decode_json` and `decode_yaml_documents` do.
    """
    decoded = decode_yaml(text, bounds) if is_yaml else decode_json(text, bounds)
    if not isinstance(decoded.value, dict):
        raise BadRequest("the body must be one object")
    return decoded


def as_object(decoded: Decoded) -> JsonObject:
    """Returns the value of a decoded body that is known to be an object."""
    return cast(JsonObject, decoded.value)


def _check_size(text: bytes, bounds: DecodeBounds) -> None:
    if len(text) > bounds.bytes_max:
        raise TooLarge(f"the body has {len(text)} bytes; at most {bounds.bytes_max} are accepted")


def _up_to(most: int, text: bytes, mark: bytes) -> int:
    """The number of marks in a text, or `most` + 1 where there are more.

    `bytes.count` looks at each byte, `bytes.replace` searches for marks: a quarter of the time.
    """
    return len(text) - len(text.replace(mark, b"", most + 1))


def _depth(value: Any) -> int:
    """The nesting depth of a value, computed level by level without recursion."""
    depth = 0
    level = [value]
    while level:
        depth += 1
        deeper: list[Any] = []
        for item in level:
            if item.__class__ is dict:
                inner: Iterable[Any] = item.values()
            elif item.__class__ is list:
                inner = item
            else:
                continue
            deeper += [each for each in inner if each.__class__ is dict or each.__class__ is list]
        level = deeper
    return depth


def repeated_keys(text: bytes, encoded: bytes) -> tuple[str, ...]:
    """Returns the paths of the keys that occur again in one object of a JSON text.

    `encoded` is the value of the text, encoded again. Colons follow keys or are inside strings. The
    only other notation of a colon inside a string is its number. Without such a notation, the text
    has as many colons as the encoded value, and one or more in addition for each lost key.
    """
    has_numbers = b"\\u003a" in text or b"\\u003A" in text
    if not has_numbers and _count(text, b":") == _count(encoded, b":"):
        return ()
    return _duplicates(text)


_FEW = 1_000
"""The number of marks up to which a search for each takes less time than a look at each byte."""


def _count(text: bytes, mark: bytes) -> int:
    marks = _up_to(_FEW, text, mark)
    return marks if marks <= _FEW else text.count(mark)


class _Repeated(dict[str, Any]):
    """An object of the slow decoder, with its duplicate keys."""

    repeated: tuple[str, ...] = ()


def _pairs(pairs: list[tuple[str, Any]]) -> _Repeated:
    repeated_keys = _Repeated()
    repeated = []
    for key, value in pairs:
        if key in repeated_keys:
            repeated.append(key)
        repeated_keys[key] = value
    repeated_keys.repeated = tuple(repeated)
    return repeated_keys


def _duplicates(text: bytes) -> tuple[str, ...]:
    keys: list[str] = []

    def visit(value: Any, path: str) -> None:
        if isinstance(value, _Repeated):
            keys.extend(f"{path}.{key}".lstrip(".") for key in value.repeated)
            for key, item in value.items():
                visit(item, f"{path}.{key}")
        elif isinstance(value, list):
            for index, item in enumerate(value):
                visit(item, f"{path}[{index}]")

    # As text, a number may have any number of digits.
    visit(json.loads(text, object_pairs_hook=_pairs, parse_int=str), "")
    return tuple(keys)


_COLLECTION_WEIGHT = 3
"""The least size of a collection as JSON in bytes: brackets and a comma."""


@dataclass(slots=True)
class _OpenCollection:
    """A collection under construction. `key` is the pending key of a mapping.

    `size` is the number of its values so far, `weight` their least size as JSON in bytes.
    """

    value: Any
    path: str
    anchor: str | None
    size: int = 1
    weight: int = _COLLECTION_WEIGHT
    key: str | None = None
    merges: list[JsonObject] = field(default_factory=list)


class _DocumentBuilder:
    """Builds one document from the parser's events, without recursion."""

    def __init__(self, bounds: DecodeBounds) -> None:
        self.bounds = bounds
        self.open: list[_OpenCollection] = []
        self.anchors: dict[str, tuple[Any, int, int]] = {}
        self.problems: list[str] = []
        self.values = 0
        self.result: Any = None

    def build(self, loader: yaml.CSafeLoader) -> Decoded:
        """Reads events until the end of the document, and returns the decoded document."""
        while not isinstance(event := loader.get_event(), yaml.DocumentEndEvent):
            if isinstance(event, yaml.ScalarEvent):
                value = _scalar(event, is_key=self._expects_key())
                self._add(value, event, event.anchor, weight=len(event.value) + 1)
            elif isinstance(event, yaml.AliasEvent):
                self._alias(event)
            elif isinstance(event, yaml.MappingStartEvent):
                self._start({}, event)
            elif isinstance(event, yaml.SequenceStartEvent):
                self._start([], event)
            else:
                self._end(event)
        return Decoded(value=self.result, problems=tuple(self.problems))

    def _expects_key(self) -> bool:
        top = self.open[-1] if self.open else None
        return top is not None and top.key is None and isinstance(top.value, dict)

    def _start(self, value: Any, event: Any) -> None:
        if self._expects_key():
            raise BadRequest(f"the body is not JSON-like YAML: {_place(event)}: a key is not text")
        if len(self.open) >= self.bounds.depth_max:
            raise TooLarge(f"the body is nested more than {self.bounds.depth_max} deep")
        self.open.append(_OpenCollection(value=value, path=self._path(), anchor=event.anchor))

    def _path(self) -> str:
        if not self.open:
            return ""
        top = self.open[-1]
        if isinstance(top.value, list):
            return f"{top.path}[{len(top.value)}]"
        return f"{top.path}.{top.key}"

    def _end(self, event: Any) -> None:
        done = self.open.pop()
        for merged in done.merges:
            if not isinstance(merged, dict):
                raise BadRequest(
                    f"the body is not YAML: {_place(event)}: map merge requires map or sequence "
                    "of maps as the value"
                )
            for key, value in merged.items():
                done.value.setdefault(key, value)
        self._add(done.value, event, done.anchor, size=done.size, weight=done.weight)

    def _alias(self, event: Any) -> None:
        if event.anchor not in self.anchors:
            raise BadRequest(f"the body is not YAML: {_place(event)}: unknown alias")
        value, size, weight = self.anchors[event.anchor]
        self._add(value, event, None, size=size, weight=weight)

    def _add(
        self, value: Any, event: Any, anchor: str | None, *, weight: int, size: int = 1
    ) -> None:
        if anchor is not None:
            self.anchors[anchor] = (value, size, weight)
        if not self.open:
            self.result = value
            self._count(size, weight)
            return
        top = self.open[-1]
        top.size += size
        top.weight += weight
        self._count(top.size, top.weight)
        if isinstance(top.value, list):
            top.value.append(value)
        elif top.key is None:
            self._take_key(top, value, event)
        elif top.key == "<<" and isinstance(value, dict | list):
            top.merges.extend(value if isinstance(value, list) else [value])
            top.key = None
        else:
            top.value[top.key] = value
            top.key = None

    def _take_key(self, top: _OpenCollection, value: Any, event: Any) -> None:
        if not isinstance(value, str):
            raise BadRequest(f"the body is not JSON-like YAML: {_place(event)}: a key is not text")
        if value in top.value:
            path = f"{top.path}.{value}".lstrip(".")
            self.problems.append(f'duplicate field "{path}"')
        top.key = value

    def _count(self, size: int, weight: int) -> None:
        if weight > self.bounds.bytes_max:
            raise TooLarge(
                f"the body has more than {self.bounds.bytes_max} bytes after aliases are expanded"
            )
        if size > self.bounds.values_max:
            raise TooLarge(
                f"the body has more than {self.bounds.values_max} values after aliases are expanded"
            )


_NULLS = frozenset({"", "~", "null", "Null", "NULL"})
_TRUE = frozenset(["y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"])
_FALSE = frozenset(["n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"])
_INTEGER = re.compile(r"[-+]?(?:0[bB][01]+|0[oO]?[0-7]+|0[xX][0-9a-fA-F]+|0|[1-9][0-9]*)")
"""An integer after its underscores, which are allowed anywhere in it, are removed."""
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_LOOSE_UNDERSCORE = re.compile(r"(?<![0-9])_|_(?![0-9])")
_INFINITE = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_DIGITS_MAX = 4_000


def _scalar(event: Any, *, is_key: bool) -> Any:
    """The JSON value of a scalar. Keys are always strings, as written."""
    text = cast(str, event.value)
    tag = event.tag
    if is_key or tag in ("tag:yaml.org,2002:str", "!"):
        return text
    if tag == "tag:yaml.org,2002:binary":
        return "".join(text.split())
    if event.style or (tag is None and not event.implicit[0]):
        return text
    return _plain(text, event)


def _plain(text: str, event: Any) -> Any:
    value = value_of(text)
    if isinstance(value, float) and not math.isfinite(value):
        raise BadRequest(f"the body is not JSON: {_place(event)}: {text} has no JSON form")
    return value


def value_of(text: str) -> Any:
    """Returns the value of a scalar without quotes, as kubectl reads it; `.inf` is a float."""
    if len(text) > _DIGITS_MAX or is_text(text):
        return text
    if text in _NULLS:
        return None
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    digits = _digits(text)
    if _INTEGER.fullmatch(digits):
        return _integer(digits)
    if _FLOAT.fullmatch(digits):
        value = float(digits)
        # A whole float has no decimal point as JSON, so integer fields accept it.
        return int(value) if value.is_integer() and abs(value) < 1e21 else value
    return float(text.replace(".", ""))


def _integer(digits: str) -> int:
    sign = -1 if digits[0] == "-" else 1
    digits = digits.lstrip("+-")
    if len(digits) > 1 and digits[0] == "0" and digits[1] in "01234567":
        return sign * int(digits, 8)
    return sign * int(digits, 0)


def is_text(text: str) -> bool:
    """Whether a scalar without quotes is the text that it shows, not a number or the like."""
    if text in _NULLS or text in _TRUE or text in _FALSE:
        return False
    if text[0] not in "+-.0123456789":
        return True
    digits = _digits(text)
    if _FLOAT.fullmatch(digits) and not _INTEGER.fullmatch(digits):
        return math.isinf(float(digits))
    return not (_INTEGER.fullmatch(digits) or _INFINITE.fullmatch(text))


def _digits(text: str) -> str:
    """A number without its underscores; behind a point they count only between digits."""
    if text[0] == "." and _LOOSE_UNDERSCORE.search(text):
        return text
    return text.replace("_", "")


def _place(event: Any) -> str:
    mark = event.start_mark
    return f"line {mark.line + 1}, column {mark.column + 1}"


def _one_line(problem: Exception) -> str:
    return " ".join(str(problem).split()).replace(' in "<byte string>", ', " at ")
