"""`/redra/v1/histories/<history>/entries`: the whole timeline as JSON lines, optionally followed.

The first line lists the losses of the recording, and says which instants relative moments name.
Then come the existing entries, one per line, and a line with their count, the revision up to which
the log was read, and the times of its first and last event; later lines are new entries. An answer
without the line of the count is incomplete.
"""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from functools import partial

import anyio
import msgspec

from app.analysis.scope import USED_KINDS, Scope
from app.api.redra.inquiries import Inquiry, integer
from app.domain.errors import InputError
from app.domain.log import Event, Revision
from app.domain.log.doubts import Doubt
from app.domain.log.projection import Row
from app.domain.values import api_resources
from app.service import moments, recorded_doubts
from app.service.histories import Histories
from app.service.runtime import HistoryRuntime
from app.service.timelines import (
    TimelineReader,
    TimelineRequest,
    check_until,
    of_last,
    scope_of,
    shown,
)

_FOLLOW_SECONDS = 60.0
"""Seconds of one wait of a follower for events."""


_EVENTS_FOR_AN_OBJECT = 8
"""Events that are folded in the time in which an object of a past moment is made known.

It decides only which way is taken, not what is shown.
"""


class EntriesApi:
    """Answers with timelines; a bounded number is read at a time, and no answer is held whole.

    Each chunk reads one page of the log. Names in the request are checked first, so that an unknown
    name is refused before the first line.
    """

    def __init__(self, histories: Histories, *, at_once_max: int, page_max: int) -> None:
        self._histories = histories
        self._turns = anyio.CapacityLimiter(at_once_max)
        self._page_max = page_max

    async def lines(self, inquiry: Inquiry) -> AsyncGenerator[bytes, None]:
        """The lines of the entries that the reader may see; they go on when followed.

        Raises InputError before the first line for a name that does not occur, an unknown kind of
        object or an invalid moment.
        """
        runtime = inquiry.runtime
        request = _wanted(inquiry)
        pinned = moments.resolved((request.since, request.until), runtime.end)
        since, until = pinned.moments
        wanted = replace(
            request,
            since=since,
            until=until,
        )
        scope = await scope_of(runtime.log, runtime.info, wanted)
        if not inquiry.request.flag("follow"):
            await check_until(runtime.log, runtime.info, wanted)
        last = integer(inquiry.request, "last", 0)
        left_out = 0
        if last:
            async with self._turns:
                scope = await of_last(
                    *(runtime.log, runtime.info, scope, last),
                    page_max=self._page_max,
                    seen=lambda rows: shown(_seen(inquiry, rows), wanted),
                )
        # The nearest names in the error would reveal objects to readers with limited rights.
        is_checked = inquiry.reader().is_unlimited and not inquiry.request.flag("follow")
        if last or is_checked:
            async with self._turns:
                reader = self._reader(inquiry, scope)
                count = await self._count(inquiry, reader, wanted, is_whole=bool(last))
            left_out = max(count - last, 0) if last else 0
            if is_checked:
                await reader.check()
        doubts = await recorded_doubts.doubts_of(runtime.log, runtime.info)
        return self._sent(
            inquiry, self._reader(inquiry, scope), wanted, doubts, left_out, pinned.as_of
        )

    def _reader(self, inquiry: Inquiry, scope: Scope) -> TimelineReader:
        runtime = inquiry.runtime
        # The claims of pods with a label are only for readers who may read the pods.
        shown = replace(scope, claims_of_pods=inquiry.reader().sees_all(api_resources.PODS))
        return TimelineReader(
            *(runtime.log, runtime.info, shown),
            page_max=self._page_max,
            objects_at=partial(self._objects_at, runtime),
        )

    async def _objects_at(
        self, runtime: HistoryRuntime, revision: Revision
    ) -> Sequence[Event] | None:
        """The last events of the objects that a scope asks about, unless there are very many."""
        if runtime.views.objects.total * _EVENTS_FOR_AN_OBJECT > revision:
            return None
        try:
            objects = (await self._histories.at(runtime.info.name, revision)).objects
        except InputError:
            return None  # more objects than views of the past may hold
        keys = [key for place in USED_KINDS for key in objects.keys(*place)]
        return [event for key in keys if (event := objects.event(key)) is not None]

    async def _count(
        self, inquiry: Inquiry, reader: TimelineReader, wanted: TimelineRequest, *, is_whole: bool
    ) -> int:
        """The number of entries; with `is_whole` all entries are counted.

        Otherwise the log is read only until every requested name has occurred.
        """
        count = 0
        async for rows in reader.pages():
            count += len(shown(_seen(inquiry, rows), wanted))
            if reader.knows_all_names and not is_whole:
                break
        return count

    async def _next(self, pages: AsyncGenerator[list[Row], None]) -> list[Row] | None:
        """The rows of the next page; None after the last one."""
        async with self._turns:
            return await anext(pages, None)

    async def _sent(
        self,
        inquiry: Inquiry,
        reader: TimelineReader,
        wanted: TimelineRequest,
        doubts: Sequence[Doubt],
        left_out: int,
        as_of: Mapping[str, str],
    ) -> AsyncGenerator[bytes, None]:
        encoder = msgspec.json.Encoder()
        yield encoder.encode_lines([{**as_of, "doubts": msgspec.to_builtins(doubts)}])
        count = 0
        async with aclosing(reader.pages()) as pages:
            # A turn covers the read of one page, so that a slow client blocks no other request.
            while (page := await self._next(pages)) is not None:
                rows = shown(_seen(inquiry, page), wanted)
                skipped = min(left_out, len(rows))
                left_out -= skipped
                count += len(rows) - skipped
                if rows[skipped:]:
                    yield encoder.encode_lines(rows[skipped:])
        yield encoder.encode_lines([{"count": count, **msgspec.structs.asdict(reader.extent)}])
        runtime = inquiry.runtime
        if not inquiry.request.flag("follow"):
            return
        with runtime.watches.guest():
            while not reader.is_over and not runtime.watches.ended:
                await runtime.wait_for(Revision(reader.revision + 1), _FOLLOW_SECONDS)
                rows = shown(_seen(inquiry, await reader.read()), wanted)
                if rows:
                    yield encoder.encode_lines(rows)


def _seen(inquiry: Inquiry, rows: list[Row]) -> list[Row]:
    return inquiry.reader().rows("timeline", rows)


def _wanted(inquiry: Inquiry) -> TimelineRequest:
    request = inquiry.request
    return TimelineRequest(
        namespace=request.parameter("namespace"),
        name=request.parameter("name"),
        subject=request.parameter("object"),
        kinds=frozenset(filter(None, request.parameter("kinds").split(","))),
        device=request.parameter("device"),
        node=request.parameter("node"),
        author=request.parameter("actor"),
        labels=request.parameter("labels"),
        since=request.parameter("since"),
        until=request.parameter("until"),
        decisions=request.flag("decisions"),
    )
