"""`/redra/v1/histories/<history>/events`: the log as JSON lines, up to its end or followed."""

import math
from collections.abc import AsyncGenerator, Callable

import anyio
import anyio.lowlevel
import msgspec

from app.api.redra.inquiries import Inquiry
from app.domain.errors import BadRequest
from app.domain.log import Event, Revision
from app.domain.log.chain import event_json, stamp_json

_FOLLOW_SECONDS = 60.0
"""Seconds of one wait of a follower for events."""


def event_line(event: Event) -> bytes:
    """One event as a JSON line: the stamp and the whole object."""
    key = event.key
    head = msgspec.json.encode(
        {
            "revision": event.revision,
            "type": event.type.value,
            "group": key.group,
            "resource": key.resource,
            "namespace": key.namespace,
            "name": key.name,
            "uid": event.uid,
            "hash": event.hash.hex(),
        }
    )
    return b'%s,"stamp":%s,"object":%s}\n' % (head[:-1], stamp_json(event.stamp), event.body)


def bundle_line(event: Event) -> bytes:
    """One event as a line of a bundle, in the format of `redra log`."""
    return msgspec.json.encode(event_json(event)) + b"\n"


def line_of(inquiry: Inquiry) -> Callable[[Event], bytes]:
    """The function that makes lines in the requested form. Raises BadRequest for an unknown one."""
    form = inquiry.request.parameter("form")
    if form not in ("", "bundle"):
        raise BadRequest(f'form must be bundle, or absent, not "{form[:64]}"')
    return bundle_line if form else event_line


async def read(
    inquiry: Inquiry, after: Revision, until: Revision, limit: int, page: int
) -> AsyncGenerator[bytes, None]:
    """Yield lines of at most `limit` events that the reader may see."""
    runtime = inquiry.runtime
    while limit > 0 and after < until:
        # If events are left out, pages have full size, so that a small limit needs few pages.
        size = min(page, limit) if inquiry.reader().is_unlimited else page
        events = await runtime.log.read(runtime.info.id, after=after, until=until, limit=size)
        if not events:
            return
        after = events[-1].revision
        seen = inquiry.seen(events)[:limit]
        if seen:
            yield b"".join(map(line_of(inquiry), seen))
        limit -= len(seen)
        await anyio.lowlevel.checkpoint()


async def follow(
    inquiry: Inquiry, after: Revision, limit: int, seconds: int
) -> AsyncGenerator[bytes, None]:
    """Yield lines of new events that the reader may see.

    Ends after `limit` events, and after `seconds` unless that is 0.
    """
    end = anyio.current_time() + seconds if seconds else math.inf
    runtime = inquiry.runtime
    with runtime.subscribe(after=after) as subscription, runtime.watches.guest():
        while limit > 0:
            left = end - anyio.current_time()
            if left <= 0:
                return
            waiting = min(left, _FOLLOW_SECONDS)
            events = await subscription.catch_up() or await subscription.next_batch(waiting)
            seen = inquiry.seen(events or ())[:limit]
            if seen:
                yield b"".join(map(line_of(inquiry), seen))
                limit -= len(seen)
