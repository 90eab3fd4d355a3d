"""The first states of watches: the objects that exist when a watch begins.

Many watches may begin at once, as after a restart of the server. They take turns: in one turn of
the event loop one of them takes its snapshot or makes a page of lines, so that other requests come
in between. Watches that show the same objects in the same form share the snapshot and the pages.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

import anyio

from app.api.kubernetes.negotiation import Shape
from app.api.kubernetes.representations import Target
from app.api.kubernetes.selection import Selection
from app.api.kubernetes.timelines import Timeline
from app.domain.log import Event, Revision
from app.domain.values.bounded import Bounded
from app.domain.values.timestamps import Instant

PAGE_BYTES = 256 * 1024
"""A page is sent when it has this many bytes; its last object may exceed them."""


class FirstView(NamedTuple):
    """The facts that make the first states of two watches equal.

    The cells of a table show ages, so `now` counts for tables.
    """

    life: int
    revision: Revision
    resource: tuple[str, str]
    shown_as: tuple[str, str, int]
    form: tuple[Shape, str, str]
    is_revealed: bool
    selection: Selection
    now: Instant | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StatePage:
    """Lines of a first state, and the index of the first object of the next page."""

    lines: bytes
    end: int


class FirstStates:
    """The first states that a server sends now.

    Snapshots and pages are kept while any first state is being sent, at most `pages_max` of each.
    """

    def __init__(self, pages_max: int) -> None:
        self.turn = anyio.Lock()  # Only one task has it in a turn of the event loop.
        self._snapshots: Bounded[FirstView, Sequence[Event]] = Bounded(pages_max)
        self._pages: Bounded[tuple[FirstView, int], StatePage] = Bounded(pages_max)
        self._sending = 0

    @contextmanager
    def sending(self) -> Iterator[None]:
        """Keep what is shared until the first states that begin meanwhile are sent, too."""
        self._sending += 1
        try:
            yield
        finally:
            self._sending -= 1
            if not self._sending:
                self._snapshots.clear()
                self._pages.clear()

    def snapshot(
        self, view: FirstView, selection: Selection, timeline: Timeline, target: Target
    ) -> Sequence[Event]:
        """The selected objects at the shown revision; the caller has the turn."""
        snapshot = self._snapshots.recent(view)
        if snapshot is None:
            snapshot = selection.select(timeline.views.objects, target.kind)
            self._snapshots[view] = snapshot
        return snapshot

    def page(
        self,
        view: FirstView,
        snapshot: Sequence[Event],
        start: int,
        line: Callable[[Event], bytes],
    ) -> StatePage:
        """The page that begins with an object of the snapshot; the caller has the turn."""
        page = self._pages.recent((view, start))
        if page is None:
            page = self._pages[view, start] = _page(snapshot, start, line)
        return page


def view_of(timeline: Timeline, target: Target, selection: Selection) -> FirstView:
    """The initial events of a watch that begins now."""
    kind, form = target.kind, target.form
    is_table = form.shape is Shape.TABLE
    return FirstView(
        life=target.life,
        revision=timeline.revision,
        resource=(kind.group, kind.plural),
        shown_as=(target.group, target.version, target.definition),
        form=(form.shape, form.version, target.include),
        is_revealed=target.secrets is not None,
        selection=selection,
        now=timeline.now if is_table else None,
    )


def _page(snapshot: Sequence[Event], start: int, line: Callable[[Event], bytes]) -> StatePage:
    parts: list[bytes] = []
    size, end = 0, start
    while end < len(snapshot) and size < PAGE_BYTES:
        part = line(snapshot[end])
        parts.append(part)
        size += len(part)
        end += 1
    return StatePage(lines=b"".join(parts), end=end)
