"""The interface of every projection, and the order-free hash over its rows."""

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, runtime_checkable

from app.domain.log.chain import canonical_json
from app.domain.log.event import Event, Revision
from app.domain.log.pages import Page

RowKey: TypeAlias = tuple[str | int, ...]
"""The values of a row's key columns, in the order of `Table.key`."""

Row: TypeAlias = dict[str, Any]
"""Column name to JSON value; every key column is in it.

A value that is already canonical JSON may be given as `msgspec.Raw`.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column: `type` is text, integer, boolean, instant (microseconds), decimal or json."""

    name: str
    type: str
    description: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table of a view; `key` identifies a row within one history."""

    name: str
    key: tuple[str, ...]
    columns: tuple[Column, ...]
    description: str = ""

    def key_of(self, row: Mapping[str, object]) -> RowKey:
        """The key of a row."""
        key: list[str | int] = []
        for name in self.key:
            part = row[name]
            assert isinstance(part, str | int), "key columns are text or integers"
            key.append(part)
        return tuple(key)


class Projection(Protocol):
    """A view folded from the log. Folding never fails: unknown events are skipped.

    Folding a page as a whole gives the same state as folding its events one by one.
    """

    @property
    def name(self) -> str: ...
    @property
    def version(self) -> int: ...
    @property
    def revision(self) -> Revision: ...
    def fold(self, event: Event) -> None: ...
    def fold_page(self, page: Page) -> None: ...
    def tables(self) -> tuple[Table, ...]: ...
    def take_changed(self) -> dict[str, set[RowKey]]: ...
    def row(self, table: str, key: RowKey) -> Row | None: ...
    def state_hash(self) -> str: ...
    def dump(self) -> bytes: ...
    def load(self, state: bytes) -> None: ...


@runtime_checkable
class DumpsInParts(Protocol):
    """A view whose dump may be hundreds of megabytes, so that nobody should hold all of it."""

    def dump_parts(self) -> Iterator[bytes]:
        """The dump in parts of bounded size, of the state at the time of the first part."""
        ...


def dumped(view: Projection) -> Iterable[bytes]:
    """The dump of a view, in parts where it gives parts."""
    return view.dump_parts() if isinstance(view, DumpsInParts) else (view.dump(),)


_MODULUS = 1 << 256
_NUL = b"\\u0000"


def row_part(table: str, key: RowKey, row: Row) -> int:
    """The amount that one row adds to the sum of `RowSetHash`."""
    text = canonical_json([table, key, row])
    if _NUL in text:
        # PostgreSQL's text cannot hold it: the row is hashed as it is stored.
        cells = {name: _stored(cell) for name, cell in row.items()}
        text = canonical_json([table, [_stored(part) for part in key], cells])
    return int.from_bytes(hashlib.sha256(text).digest(), "big")


def storable(text: str) -> str:
    """The text as PostgreSQL can hold it: the visible symbol stands for the character 0."""
    return text.replace("\0", "\u2400") if "\0" in text else text


def _stored(cell: object) -> object:
    return storable(cell) if isinstance(cell, str) else cell


def sum_text(total: int) -> str:
    """The sum of the amounts of all rows as text: `sha256:` and 64 hex digits."""
    return f"sha256:{total % _MODULUS:064x}"


class RowSetHash:
    """The sum modulo 2^256 of the hashes of all rows: equal sets of rows give equal sums.

    A changed row costs one hash, whatever the size of the view. Example: after `put(k, r1)` and
    `put(k, r2)` the sum is that of `{k: r2}` alone.
    """

    def __init__(self) -> None:
        self._sum = 0
        self._parts: defaultdict[str, dict[RowKey, int]] = defaultdict(dict)

    def put(self, table: str, key: RowKey, row: Row | None) -> None:
        """Sets one row, or removes it when `row` is None."""
        parts = self._parts[table]
        old = parts.pop(key, 0)
        new = 0
        if row is not None:
            new = parts[key] = row_part(table, key, row)
        self._sum = (self._sum - old + new) % _MODULUS

    def text(self) -> str:
        """The sum as text."""
        return sum_text(self._sum)
