"""The bookkeeping that all views share: the rows that changed, and the hash over all rows.

This module is not a view. A view marks the keys that an event touches; a row is computed when a
caller reads it, so that a row touched a hundred times between two reads is computed once.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable

from app.domain.log import Event, Revision
from app.domain.log.pages import Page
from app.domain.log.projection import Row, RowKey, RowSetHash, Table, row_part

NOTED_MAX = 5_000
"""Objects that a view notes before it works out their effects, even without a reader."""


class PagedView(ABC):
    """A view that folds whole pages; a single event is a page of one."""

    revision = Revision(0)

    @abstractmethod
    def _take(self, page: Page) -> None:
        """Apply the events of a page to the view."""

    def fold(self, event: Event) -> None:
        """Fold one event."""
        self.fold_page(Page((event,)))

    def fold_page(self, page: Page) -> None:
        """Fold the events of a page."""
        self._take(page)
        if page.events:
            self.revision = page.events[-1].revision


class RowChanges:
    """Changed keys by table, and the state hash.

    `compute` returns the row of a key, or None when the row is gone. Example: after `touch(t, k)`
    twice, `take()` returns `{t: {k}}` and a second `take()` returns nothing; `row(t, k)` computes
    the row and adds it to the hash; `state_hash()` computes only the rows that nobody read.
    """

    def __init__(
        self, tables: tuple[Table, ...], compute: Callable[[str, RowKey], Row | None]
    ) -> None:
        self._compute = compute
        self._changed: dict[str, set[RowKey]] = {table.name: set() for table in tables}
        self._unhashed: dict[str, set[RowKey]] = {table.name: set() for table in tables}
        self._hash = RowSetHash()

    def touched(self, table: str) -> set[RowKey]:
        """The set to which a view adds the keys of touched rows; always the same set object."""
        return self._changed[table]

    def take(self) -> dict[str, set[RowKey]]:
        """Keys touched since the last call, by table; tables without such keys are left out."""
        touched: dict[str, set[RowKey]] = {}
        for table, keys in self._changed.items():
            if keys:
                touched[table] = set(keys)
                self._unhashed[table] |= keys
                keys.clear()
        return touched

    def row(self, table: str, key: RowKey) -> Row | None:
        """The present row; the first read after `take` also adds the row to the hash."""
        row = self._compute(table, key)
        waiting = self._unhashed.get(table)
        if waiting is not None and key in waiting:
            self._hash.put(table, key, row)
            waiting.discard(key)
        return row

    def state_hash(self) -> str:
        """The hash over all rows as they are now."""
        for table, changed in self._changed.items():
            waiting = self._unhashed[table]
            for key in changed | waiting:
                self._hash.put(table, key, self._compute(table, key))
            waiting.clear()
        return self._hash.text()


class LateRows(ABC):
    """A view that only notes events when it folds, and works out their effects when it is read.

    A subclass sets `_changes` and implements `_catch_up`. The methods that read rows are defined
    here, and each of them calls `_catch_up` first.
    """

    _changes: RowChanges

    @abstractmethod
    def _catch_up(self) -> None:
        """Work out the effects of the noted events, and touch the rows that changed."""

    def take_changed(self) -> dict[str, set[RowKey]]:
        """Keys of rows touched since the last call."""
        self._catch_up()
        return self._changes.take()

    def row(self, table: str, key: RowKey) -> Row | None:
        """The present row; None when it is gone."""
        self._catch_up()
        return self._changes.row(table, key)

    def state_hash(self) -> str:
        """The hash over all rows."""
        self._catch_up()
        return self._changes.state_hash()


class AppendedRows:
    """Row changes and the state hash of a view whose rows are only appended and never change.

    Rows are numbered in the order of appending. Only positions and a sum are kept, so a million
    rows cost nothing beyond the rows themselves. A row that is read is also added to the hash, so
    that it is made once.
    """

    def __init__(self, table: str, key: Callable[[int], RowKey], row: Callable[[int], Row]) -> None:
        self._table = table
        self._key = key
        self._make = row
        self._position = 0
        self._hashed = 0
        self._early: set[int] = set()
        self._sum = 0

    def take(self, count: int) -> dict[str, set[RowKey]]:
        """Keys of the rows appended since the last call; `count` is the present number of rows."""
        if self._position == count:
            return {}
        keys = {self._key(number) for number in range(self._position, count)}
        self._position = count
        return {self._table: keys}

    def row(self, number: int) -> Row:
        """The row with that number."""
        row = self._make(number)
        if number >= self._hashed and number not in self._early:
            self._early.add(number)
            self._sum += row_part(self._table, self._key(number), row)
        return row

    def state_hash(self, count: int) -> str:
        """The hash over all rows, `count` in number; equals the hash of RowSetHash."""
        early = self._early
        for number in range(self._hashed, count):
            if number not in early:
                self._sum += row_part(self._table, self._key(number), self._make(number))
        self._sum %= 1 << 256
        early.clear()
        self._hashed = count
        return f"sha256:{self._sum:064x}"
