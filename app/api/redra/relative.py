"""The meaning of the relative moments of a request, as a field of the answer."""

from collections.abc import Awaitable
from dataclasses import replace

from app.api.redra.answers import Inquiry
from app.api.server.messages import Response, Stream
from app.service import moments
from app.service.runtime import HistoryRuntime

SIGNED = "head"
"""The part of the answers that is signed, and has no further field."""


_OF_STRETCHES = ("since", "until")
"""The parameters that hold moments, beside `at`."""


async def with_meanings(
    inquiry: Inquiry, part: str, answering: Awaitable[Response | Stream]
) -> Response | Stream:
    """The answer, with the meanings of relative moments."""
    end = inquiry.runtime.end
    answer = await answering
    if part == SIGNED or not isinstance(answer, Response):
        return answer
    request = inquiry.request
    given = (inquiry.moment, *(request.parameter(name) for name in _OF_STRETCHES))
    return replace(answer, body=moments.with_meaning(answer.body, given, end))


def named(runtime: HistoryRuntime, moment: str, answer: Response) -> Response:
    """The answer about a moment, with its meaning if it is relative."""
    return replace(answer, body=moments.with_meaning(answer.body, [moment], runtime.end))
