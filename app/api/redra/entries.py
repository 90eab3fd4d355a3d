"""`/redra/v1/histories/<history>/entries`: the whole timeline as JSON lines, and what goes on.

The first line says what the recording lacks. Then come the entries that there are already, a line
each, and a line with their count and the revision up to which the log was read; what follows it has
happened since. An answer without that line has broken off.
"""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import replace

import anyio
import msgspec

from app.analysis.scope import Scope
from app.api.redra.answers import Inquiry, integer
from app.domain.log import Revision
from app.domain.log.doubts import Doubt
from app.domain.log.projection import Row
from app.domain.values import api_resources
from app.service import recorded_doubts
from app.service.timelines import (
    TimelineReader,
    TimelineRequest,
    check_until,
    scope_of,
    shown,
)

_FOLLOW_SECONDS = 60.0
"""How long a follower waits for events at once."""


class EntriesApi:
    """Answers with timelines, which a bounded number at a time read; no answer is held whole.

    A page of the log is read for each chunk. What is asked for by name is looked for first, so that
    an unknown name is refused before the first line.
    """

    def __init__(self, *, at_once_max: int, page_max: int) -> None:
        self._turns = anyio.CapacityLimiter(at_once_max)
        self._page_max = page_max

    async def lines(self, inquiry: Inquiry) -> AsyncGenerator[bytes, None]:
        """The lines of the entries that the reader may see, which go on where they are followed.

        Raises InputError before the first line for a name that does not occur, a kind of object or
        a moment that is none.
        """
        wanted = _wanted(inquiry)
        runtime = inquiry.runtime
        scope = await scope_of(runtime.log, runtime.info, wanted)
        if not inquiry.request.flag("follow"):
            await check_until(runtime.log, runtime.info, wanted)
        last = integer(inquiry.request, "last", 0)
        left_out = 0
        # The nearest names would tell others what there is.
        is_checked = inquiry.reader().is_unlimited and not inquiry.request.flag("follow")
        if last or is_checked:
            async with self._turns:
                reader = self._reader(inquiry, scope)
                count = await self._count(inquiry, reader, wanted, is_whole=bool(last))
            left_out = max(count - last, 0) if last else 0
            if is_checked:
                reader.check()
        doubts = await recorded_doubts.doubts_of(runtime.log, runtime.info)
        return self._sent(inquiry, self._reader(inquiry, scope), wanted, doubts, left_out)

    def _reader(self, inquiry: Inquiry, scope: Scope) -> TimelineReader:
        runtime = inquiry.runtime
        # Which claims belong to pods with some label is for those who may read the pods.
        shown = replace(scope, claims_of_pods=inquiry.reader().sees_all(api_resources.PODS))
        return TimelineReader(runtime.log, runtime.info, shown, page_max=self._page_max)

    async def _count(
        self, inquiry: Inquiry, reader: TimelineReader, wanted: TimelineRequest, *, is_whole: bool
    ) -> int:
        """How many entries there are; all are counted where `is_whole`.

        Else the log is read as far as it takes to meet every name that is wanted.
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
    ) -> AsyncGenerator[bytes, None]:
        encoder = msgspec.json.Encoder()
        yield encoder.encode_lines([{"doubts": msgspec.to_builtins(doubts)}])
        count = 0
        async with aclosing(reader.pages()) as pages:
            # A turn is for reading a page: who takes the lines slowly keeps nobody waiting.
            while (page := await self._next(pages)) is not None:
                rows = shown(_seen(inquiry, page), wanted)
                skipped = min(left_out, len(rows))
                left_out -= skipped
                count += len(rows) - skipped
                if rows[skipped:]:
                    yield encoder.encode_lines(rows[skipped:])
        yield encoder.encode_lines([{"count": count, "revision": reader.revision}])
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
        labels=request.parameter("labels"),
        since=request.parameter("since"),
        until=request.parameter("until"),
        decisions=request.flag("decisions"),
    )
