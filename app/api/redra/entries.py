"""`/redra/v1/histories/<history>/entries`: the whole timeline as JSON lines, and what goes on.

The first line says what the recording lacks and how many entries there are already, each other one
is an entry.
"""

from collections.abc import AsyncGenerator

import msgspec

from app.api.redra.answers import Asked, integer
from app.domain.log import Revision
from app.domain.log.projection import Row
from app.service import recorded_doubts
from app.service.timelines import TimelineReader, TimelineRequest, scope_of, shown

_FOLLOW_SECONDS = 60.0
"""How long a follower waits for events at once."""


async def lines(asked: Asked, *, page_max: int) -> AsyncGenerator[bytes, None]:
    """The lines of the entries that the reader may see, which go on where they are followed.

    Raises InputError before the first line for a name that does not occur, a kind of object or a
    moment that is none.
    """
    wanted = _wanted(asked)
    runtime = asked.runtime
    scope = await scope_of(runtime.log, runtime.info, wanted)
    reader = TimelineReader(runtime.log, runtime.info, scope, page_max=page_max)
    rows = _seen(asked, await reader.read())
    if asked.reader().is_unlimited and not asked.request.flag("follow"):
        # The nearest names would tell others what there is.
        reader.check()
    last = integer(asked.request, "last", 0)
    doubts = await recorded_doubts.doubts_of(runtime.log, runtime.info)
    entries = shown(rows, wanted)[-last:]
    head = {"doubts": msgspec.to_builtins(doubts), "count": len(entries)}
    return _sent(asked, reader, wanted, [head, *entries])


async def _sent(
    asked: Asked, reader: TimelineReader, wanted: TimelineRequest, first: list[Row]
) -> AsyncGenerator[bytes, None]:
    yield msgspec.json.Encoder().encode_lines(first)
    runtime = asked.runtime
    if not asked.request.flag("follow"):
        return
    with runtime.watches.guest():
        while not reader.is_over and not runtime.watches.ended:
            await runtime.wait_for(Revision(reader.revision + 1), _FOLLOW_SECONDS)
            rows = shown(_seen(asked, await reader.read()), wanted)
            if rows:
                yield msgspec.json.Encoder().encode_lines(rows)


def _seen(asked: Asked, rows: list[Row]) -> list[Row]:
    return asked.reader().rows("timeline", rows)


def _wanted(asked: Asked) -> TimelineRequest:
    request = asked.request
    return TimelineRequest(
        namespace=request.parameter("namespace"),
        name=request.parameter("name"),
        subject=request.parameter("object"),
        kinds=frozenset(filter(None, request.parameter("kinds").split(","))),
        device=request.parameter("device"),
        node=request.parameter("node"),
        since=request.parameter("since"),
        until=request.parameter("until"),
        decisions=request.flag("decisions"),
    )
