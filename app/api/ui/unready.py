"""Pages that take longer than a request waits.

Such a page is made on without the request, which is answered with what is known about its progress.
The next request for the same page by the same user, with the same rights, gets the page.
"""

from collections.abc import Awaitable, Callable

import anyio

from app.api.redra.answers import Inquiry
from app.api.server.limits import WaitBounds
from app.domain.log import Actor
from app.domain.objects.access.rules import Grants
from app.domain.values.bounded import Bounded
from app.service.answering.errands import Errand

_Place = tuple[int, Actor, Grants, str, bytes]
"""The runtime, the user with their present rights, the path and the query."""

MADE_AT_ONCE = frozenset(("blast", "report"))
"""Pages whose work ends with their request, because it is bounded by its own settings."""

AT_LENGTH = {"again": "by", "compare": "with", "rehearsal": "to"}
"""Pages that may take minutes, with the parameter without which they are only a form.

They take turns, so that they leave room for the others.
"""


class UnreadyPages:
    """The pages that were begun, until a request gets them or they are too old."""

    def __init__(self, bounds: WaitBounds, at_length_max: int) -> None:
        """At most `at_length_max` of the pages `AT_LENGTH` are made at a time."""
        self._bounds = bounds
        self._at_length_max = at_length_max
        self._at_length: list[Errand[bytes]] = []
        self._begun: Bounded[_Place, Errand[bytes]] = Bounded(bounds.kept_max)

    async def page(
        self, inquiry: Inquiry, part: str, make: Callable[[], Awaitable[bytes]]
    ) -> bytes | None:
        """The page; None when it is not ready in time, or waits for its turn.

        Raises what the making of it raises.
        """
        if part in MADE_AT_ONCE or inquiry.request.method == "POST":
            return await make()
        runtime, place = inquiry.runtime, _place_of(inquiry)
        errand = self._begun.get(place)
        if errand is None or self._is_old(errand):
            if _is_at_length(inquiry, part) and self._count_at_length() >= self._at_length_max:
                return None
            errand = self._begin(inquiry, part, make)
        if errand is None and runtime.errands.are_all_busy:
            # In its request, the page would hold a connection for any length of time.
            if not await runtime.errands.wait_turn(self._bounds.seconds):
                return None
            errand = self._begin(inquiry, part, make)
            if errand is None:
                return None
        if errand is None:
            return await make()
        self._begun[place] = errand
        if not await errand.wait_ended(self._bounds.seconds):
            return None
        if self._begun.get(place) is errand:
            del self._begun[place]
        return errand.outcome()

    def before(self, inquiry: Inquiry) -> int:
        """The number of answers after one of which the page has its turn; 0 if it has begun."""
        if _place_of(inquiry) in self._begun:
            return 0
        return max(inquiry.runtime.errands.count, self._count_at_length())

    def _begin(
        self, inquiry: Inquiry, part: str, make: Callable[[], Awaitable[bytes]]
    ) -> Errand[bytes] | None:
        errand = inquiry.runtime.errands.begin(("page", _place_of(inquiry)), make)
        if errand is not None and _is_at_length(inquiry, part) and errand not in self._at_length:
            self._at_length.append(errand)
        return errand

    def _count_at_length(self) -> int:
        self._at_length = [errand for errand in self._at_length if not errand.is_ended]
        return len(self._at_length)

    def _is_old(self, errand: Errand[bytes]) -> bool:
        age = anyio.current_time() - errand.ended_at
        return errand.is_ended and age > self._bounds.kept_seconds


def _is_at_length(inquiry: Inquiry, part: str) -> bool:
    return part in AT_LENGTH and bool(inquiry.request.parameter(AT_LENGTH[part]))


def _place_of(inquiry: Inquiry) -> _Place:
    """The page of an inquiry and its reader."""
    request = inquiry.request
    query = bytes(request.scope.get("query_string", b""))
    # Who has lost a right meanwhile must not get what was read with it.
    rights = inquiry.reader().grants
    return inquiry.runtime.life, inquiry.actor, rights, request.path, query
