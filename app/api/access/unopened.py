"""The rules of histories that are being opened, which takes up to minutes.

Roles and bindings are read from the log by themselves. What was read holds as long as the head of
the log is the same: any event may change a right, and a head names all events before it.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import anyio

from app.domain.log import Head, HistoryId, HistoryInfo
from app.domain.objects.access.rules import Book
from app.domain.objects.reader import ObjectsReader
from app.domain.values import api_groups
from app.domain.values.bounded import Bounded
from app.service.histories import Histories
from projections.objects import ObjectsProjection

KEPT_MAX = 16
"""The histories whose rules are kept; of more, which are opened at once, some are read again."""


@dataclass(slots=True, eq=False)
class _Read:
    """The rules of a history at a head; None before they were read."""

    head: Head | None = None
    book: Book = field(default_factory=lambda: Book(()))
    turn: anyio.Lock = field(default_factory=anyio.Lock)


class UnopenedBooks:
    """Reads the rules once for all requests that come while a history is being opened."""

    def __init__(self, histories: Histories, book_of: Callable[[ObjectsReader, str], Book]) -> None:
        """`book_of` gives the rules for the objects and the name of a history."""
        self._histories = histories
        self._book_of = book_of
        self._read: Bounded[tuple[HistoryId, str], _Read] = Bounded(KEPT_MAX)

    async def book(self, info: HistoryInfo) -> Book:
        """The present rules of a history. Raises LogError."""
        place = (info.id, info.name)
        read = self._read.recent(place)
        if read is None:
            read = self._read[place] = _Read()
        async with read.turn:
            head = await self._histories.head(info)
            if read.head != head:
                objects = ObjectsProjection(tells_changes=False)
                async for event in self._histories.objects_at(info, head.revision, api_groups.RBAC):
                    objects.fold(event)
                read.book, read.head = self._book_of(objects, info.name), head
        return read.book
