"""Frozen records of selected fields of an object, read from a tree or from stored bytes.

A record declares its fields, each with a default. A field that the object lacks, or that has
another type, gets the default, as `json_tree` would read it: `text` for `str`, `integer` for
`int | None`, `flag` for `bool` and so on. Reading four or more fields is faster this way than one
by one.
"""

from collections.abc import Callable, Mapping
from types import NoneType, UnionType
from typing import Any, TypeAlias, TypeVar, get_args, get_origin

import msgspec

from app.domain.values import identifiers
from app.domain.values.json_tree import JsonView

_T = TypeVar("_T")


class FieldRecord(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """A part of an object; an absent field has its default."""


def of_tree(form: type[_T]) -> Callable[[object], _T]:
    """A reader of one record from a tree; it reads any other value as the default record."""
    convert = msgspec.convert
    lenient = _lenient(form)

    def read(tree: object) -> _T:
        try:
            return convert(tree, form)
        except msgspec.ValidationError:
            record: _T = lenient(tree)
            return record

    return read


def of_value(form: type[_T], value_of: Callable[[JsonView], Any]) -> Callable[[JsonView], _T]:
    """A reader of the record at a path of the tree."""
    read_one = of_tree(form)
    return lambda tree: read_one(value_of(tree))


def of_list(form: type[_T], items_of: Callable[[JsonView], Any]) -> Callable[[JsonView], list[_T]]:
    """A reader of the records in a list of the tree; items that are not objects are skipped."""
    convert = msgspec.convert
    listed = list[form]  # type: ignore[valid-type]  # the form is a value here
    read_one = of_tree(form)

    def read(tree: JsonView) -> list[_T]:
        items = items_of(tree)
        if not isinstance(items, list):
            return []
        try:
            return convert(items, listed)
        except msgspec.ValidationError:
            return [read_one(item) for item in items if isinstance(item, dict)]

    return read


def of_bytes(form: type[_T]) -> Callable[[bytes], _T]:
    """A reader of one record from stored bytes; the rest of the object is not decoded."""
    decode = msgspec.json.Decoder(form).decode
    lenient = _lenient(form)

    def read(body: bytes) -> _T:
        try:
            return decode(body)
        except msgspec.ValidationError:
            record: _T = lenient(msgspec.json.decode(body))
            return record

    return read


def of_list_bytes(form: type[_T]) -> Callable[[bytes], tuple[_T, ...]]:
    """A reader of the records in a stored list; items that are not objects are skipped."""
    decode = msgspec.json.Decoder(tuple[form, ...]).decode  # type: ignore[valid-type]  # a form made here
    lenient = _lenient(form)

    def read(part: bytes) -> tuple[_T, ...]:
        try:
            return decode(part)
        except msgspec.ValidationError:
            items = msgspec.json.decode(part)
            if not isinstance(items, list):
                return ()
            return tuple(lenient(item) for item in items if isinstance(item, Mapping))

    return read


_Read: TypeAlias = Callable[[Any], Any]


def _lenient(form: Any) -> _Read:
    """A reader of a record from a tree with unfit fields, which get their defaults."""
    empty = form()
    fields = [
        (field.name, field.encode_name, _reader(field.type, getattr(empty, field.name)))
        for field in msgspec.structs.fields(form)
    ]

    def read(tree: Any) -> Any:
        if not isinstance(tree, Mapping):
            return empty
        return form(**{name: part(tree[key]) for name, key, part in fields if key in tree})

    return read


def _reader(form: Any, default: Any) -> _Read:
    """A reader of one field, chosen by its type."""
    if get_origin(form) is UnionType:
        form = next(part for part in get_args(form) if part is not NoneType)
    form = identifiers.plain(form)
    if isinstance(form, type) and issubclass(form, msgspec.Struct):
        read = _lenient(form)
        return lambda value: read(value) if isinstance(value, Mapping) else default
    if get_origin(form) is tuple:
        item = identifiers.plain(get_args(form)[0])
        kind = str if item is str else dict
        part = _reader(item, None)
        return lambda value: (
            tuple(part(one) for one in value if isinstance(one, kind))
            if isinstance(value, list)
            else default
        )
    if get_origin(form) is dict:
        return lambda value: dict(value) if isinstance(value, Mapping) else default
    if form is int:
        return lambda value: (
            value if isinstance(value, int) and value.__class__ is not bool else default
        )
    return lambda value: value if isinstance(value, form) else default
