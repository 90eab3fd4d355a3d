"""Pruning of trees: from the form that was sent to the form that the API stores.

One pass copies the tree, checks types, drops and reports unknown fields, drops nulls and empty
collections, sets fields that are always shown, and writes quantities and times in canonical form.
Each schema node is compiled once into a function.

Parity: api.md 0 and 5. Messages follow the decoder of the API server: the error for a
wrong type names the innermost struct, the path without indices, and the Go type.
"""

from collections.abc import Callable, Mapping
from functools import cache, lru_cache
from itertools import chain
from typing import Any, Protocol, TypeAlias

from app.domain.errors import RedraError
from app.domain.objects.schema import corrections
from app.domain.objects.schema.structural import SchemaNode, SchemaShape, kind_name
from app.domain.values import quantity, timestamps
from app.domain.values.json_tree import JsonObject

Cleaner: TypeAlias = Callable[[Any, list[str]], Any]
"""A function that prunes a value and appends to the list of problems, whose paths are relative."""


class WrongType(RedraError):
    """A value that cannot be decoded into its field. The message is the API server's.

    `fields` is the path of field names from the root, `struct` the innermost struct.
    """

    def __init__(self, value: str, expected: str) -> None:
        super().__init__(value, expected)
        self.value = value
        self.expected = expected
        self.fields: list[str] = []
        self.struct = ""

    def __str__(self) -> str:
        if not self.expected:
            return self.value
        place = ".".join(self.fields)
        return (
            f"json: cannot unmarshal {self.value} into Go struct field "
            f"{self.struct}.{place} of type {self.expected}"
        )


def clean(node: SchemaNode, tree: JsonObject) -> tuple[JsonObject, list[str]]:
    """Returns the pruned copy of `tree`, and a text for each unknown field: `unknown field
    "spec.x"`.

    Raises WrongType for a value whose type does not fit its field.
    """
    problems: list[str] = []
    kept: JsonObject = _cleaner(node)(tree, problems)
    return kept, [f'unknown field "{path.lstrip(".")}"' for path in problems]


def clean_partial(node: SchemaNode, tree: JsonObject) -> tuple[JsonObject, list[str]]:
    """The same for an applied configuration: sets no fields, so the apply owns none of them."""
    problems: list[str] = []
    kept: JsonObject = _cleaner(node, complete=False)(tree, problems)
    return kept, [f'unknown field "{path.lstrip(".")}"' for path in problems]


def clean_value(node: SchemaNode, value: Any) -> Any:
    """Returns the pruned copy of a part of an object; unknown fields are not reported."""
    return _cleaner(node)(value, [])


def _cleaner(node: SchemaNode, *, complete: bool = True) -> Cleaner:
    cleaner = node.cleaner if complete else node.partial_cleaner
    if cleaner is None:
        compiler = _COLLECTIONS.get(node.shape)
        if compiler is None:
            cleaner = _SCALARS[node.shape](node)
        else:
            cleaner = compiler(node, complete=complete)
        if complete:
            node.cleaner = cleaner
        else:
            node.partial_cleaner = cleaner
    return cleaner


def _compile_object(node: SchemaNode, *, complete: bool) -> Cleaner:
    struct = kind_name(node.definition) if node.definition else "object"
    go_type = node.go_type
    shown: list[tuple[str, Any, Cleaner | None]] = []
    keeps_empty = corrections.KEEPS_EMPTY.get(struct, frozenset())
    table: dict[str, tuple[type | None, Cleaner, bool, bool]] = {}

    def fill() -> None:
        # The table is filled on first use, because a type may contain itself.
        for name, field in node.fields.items():
            kept = name in node.required or name in keeps_empty
            drops_empty = field.shape in (SchemaShape.LIST, SchemaShape.MAP) and not kept
            cleaner = _cleaner(field, complete=complete)
            table[name] = (_PLAIN.get(field.shape), cleaner, field.omits_zero, drops_empty)
        for name, zero in node.always.items() if complete else ():
            if name in node.fields:
                is_struct = isinstance(zero, dict)
                shown.append((name, zero, _cleaner(node.fields[name]) if is_struct else None))

    def clean_object(value: Any, problems: list[str]) -> Any:
        if value.__class__ is not dict:
            raise WrongType(_name(value), go_type)
        if not table:
            fill()
        kept: JsonObject = {}
        for key, item in value.items():
            entry = table.get(key)
            if entry is None:
                problems.append(f".{key}")
                continue
            plain, cleaner, omits_zero, drops_empty = entry
            if item.__class__ is plain:
                if item or not omits_zero:
                    kept[key] = item
                continue
            if item is None:
                continue
            before = len(problems)
            try:
                item = cleaner(item, problems)
            except WrongType as wrong:
                wrong.fields.insert(0, key)
                wrong.struct = wrong.struct or struct
                raise
            if len(problems) != before:
                problems[before:] = [f".{key}{path}" for path in problems[before:]]
            if drops_empty and not item:
                continue
            if omits_zero and not item and item.__class__ is not dict:
                continue
            kept[key] = item
        for key, zero, struct_cleaner in shown:
            if key not in kept:
                kept[key] = zero if struct_cleaner is None else struct_cleaner(zero, problems)
        return kept

    return clean_object


_PLAIN: Mapping[SchemaShape, type] = {
    SchemaShape.STRING: str,
    SchemaShape.BOOLEAN: bool,
    SchemaShape.BYTES: str,
}
"""The class whose values need no change, by shape."""


def _compile_map(node: SchemaNode, *, complete: bool) -> Cleaner:
    go_type = node.go_type
    items = node.items
    plain = _PLAIN.get(items.shape)
    zero = _ZERO.get(items.shape)

    def clean_map(value: Any, problems: list[str]) -> Any:
        if value.__class__ is not dict:
            raise WrongType(_name(value), go_type)
        cleaner = _cleaner(items, complete=complete)
        kept: JsonObject = {}
        for key, item in value.items():
            if item.__class__ is plain:
                kept[key] = item
                continue
            before = len(problems)
            kept[key] = cleaner(zero if item is None else item, problems)
            if len(problems) != before:
                problems[before:] = [f".{key}{path}" for path in problems[before:]]
        return kept

    return clean_map


def _compile_list(node: SchemaNode, *, complete: bool) -> Cleaner:
    go_type = node.go_type
    items = node.items
    plain = _PLAIN.get(items.shape)
    zero = _ZERO.get(items.shape)

    @cache  # asked when a list is pruned: a type may contain itself
    def text_fields() -> frozenset[str]:
        if items.shape is not SchemaShape.OBJECT or (complete and items.always):
            return frozenset()
        are_texts = all(_PLAIN.get(field.shape) is str for field in items.fields.values())
        return frozenset(items.fields) if are_texts else frozenset()

    def clean_list(value: Any, problems: list[str]) -> Any:
        if value.__class__ is not list:
            raise WrongType(_name(value), go_type)
        if len(value) >= LONG_LIST and (texts := text_fields()) and _are_clean(value, texts):
            return list(map(dict.copy, value))
        known = items.cleaner if complete else items.partial_cleaner
        cleaner = known or _cleaner(items, complete=complete)
        kept: list[Any] = []
        for index, item in enumerate(value):
            if item.__class__ is plain:
                kept.append(item)
                continue
            before = len(problems)
            kept.append(cleaner(zero if item is None else item, problems))
            if len(problems) != before:
                problems[before:] = [f"[{index}]{path}" for path in problems[before:]]
        return kept

    return clean_list


LONG_LIST = 8
"""The length from which on the items of a list are looked at together before each for itself."""


def _are_clean(items: list[Any], texts: frozenset[str]) -> bool:
    """Whether pruning changes nothing: all items are objects of known texts that are not empty."""
    if set(map(type, items)) != {dict} or not texts.issuperset(chain.from_iterable(items)):
        return False
    values = list(chain.from_iterable(map(dict.values, items)))
    return all(values) and set(map(type, values)) == {str}


_ZERO: Mapping[SchemaShape, Any] = {
    SchemaShape.STRING: "",
    SchemaShape.BYTES: "",
    SchemaShape.BOOLEAN: False,
    SchemaShape.INTEGER: 0,
    SchemaShape.NUMBER: 0,
    SchemaShape.QUANTITY: "0",
    SchemaShape.OBJECT: {},
    SchemaShape.MAP: {},
    SchemaShape.LIST: [],
}
"""The replacement of null inside lists and maps, by shape."""


def _compile_scalar(node: SchemaNode) -> Cleaner:
    go_type = node.go_type
    expected = bool if node.shape is SchemaShape.BOOLEAN else str

    def clean_scalar(value: Any, problems: list[str]) -> Any:
        if value.__class__ is not expected:
            raise WrongType(_name(value), go_type)
        return value

    return clean_scalar


def _compile_integer(node: SchemaNode) -> Cleaner:
    go_type = node.go_type
    limit = 2**31 if node.format == "int32" else 2**63

    def clean_integer(value: Any, problems: list[str]) -> Any:
        if value.__class__ is not int:
            actual = f"number {value}" if value.__class__ is float else _name(value)
            raise WrongType(actual, go_type)
        if not -limit <= value < limit:
            raise WrongType(f"number {value}", go_type)
        return value

    return clean_integer


def _compile_number(node: SchemaNode) -> Cleaner:
    go_type = node.go_type

    def clean_number(value: Any, problems: list[str]) -> Any:
        if value.__class__ is not int and value.__class__ is not float:
            raise WrongType(_name(value), go_type)
        return value

    return clean_number


def _compile_quantity(node: SchemaNode) -> Cleaner:
    def clean_quantity(value: Any, problems: list[str]) -> Any:
        if value.__class__ is str:
            return _quantity_text(value)
        if value.__class__ is int or value.__class__ is float:
            return _quantity_text(str(value) if isinstance(value, int) else repr(value))
        raise WrongType(quantity.FORMAT_ERROR, "")

    return clean_quantity


@lru_cache(maxsize=65_536)
def _quantity_text(text: str) -> str:
    try:
        return str(quantity.parse(text.strip()))
    except quantity.QuantityError as problem:
        raise WrongType(str(problem), "") from problem


def _compile_time(node: SchemaNode) -> Cleaner:
    canonical = _seconds_text if node.shape is SchemaShape.TIME else _micro_text

    def clean_time(value: Any, problems: list[str]) -> Any:
        if value.__class__ is not str:
            raise WrongType(_name(value), node.go_type)
        return canonical(value)

    return clean_time


@lru_cache(maxsize=4_096)
def _seconds_text(text: str) -> str:
    return timestamps.seconds_text(_instant(text))


@lru_cache(maxsize=1_024)
def _micro_text(text: str) -> str:
    return timestamps.micro_text(_instant(text))


def _instant(text: str) -> timestamps.Instant:
    try:
        return timestamps.parse(text)
    except timestamps.TimestampError as problem:
        detail = f'parsing time "{text}" as "2006-01-02T15:04:05Z07:00": cannot parse it'
        raise WrongType(detail, "") from problem


def _compile_int_or_string(node: SchemaNode) -> Cleaner:
    def clean_int_or_string(value: Any, problems: list[str]) -> Any:
        if value.__class__ is not str and value.__class__ is not int:
            raise WrongType(_name(value), "int32")
        return value

    return clean_int_or_string


def _compile_any(node: SchemaNode) -> Cleaner:
    def clean_any(value: Any, problems: list[str]) -> Any:
        # The value is not copied: its structure is unknown, so no code changes it.
        return value

    return clean_any


def _name(value: Any) -> str:
    """The name of a JSON value's type in the decoder's messages."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return "string"
    if isinstance(value, list):
        return "array"
    return "object" if isinstance(value, dict) else "null"


class _CompileCollection(Protocol):
    def __call__(self, node: SchemaNode, *, complete: bool) -> Cleaner: ...


_COLLECTIONS: Mapping[SchemaShape, _CompileCollection] = {
    SchemaShape.OBJECT: _compile_object,
    SchemaShape.MAP: _compile_map,
    SchemaShape.LIST: _compile_list,
}

_SCALARS: Mapping[SchemaShape, Callable[[SchemaNode], Cleaner]] = {
    SchemaShape.STRING: _compile_scalar,
    SchemaShape.BYTES: _compile_scalar,
    SchemaShape.BOOLEAN: _compile_scalar,
    SchemaShape.INTEGER: _compile_integer,
    SchemaShape.NUMBER: _compile_number,
    SchemaShape.QUANTITY: _compile_quantity,
    SchemaShape.TIME: _compile_time,
    SchemaShape.MICRO_TIME: _compile_time,
    SchemaShape.INT_OR_STRING: _compile_int_or_string,
    SchemaShape.ANY: _compile_any,
}
