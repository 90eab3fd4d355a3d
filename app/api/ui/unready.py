"""Pages that take longer than a request waits.

Such a page is made on without the request, which is answered with what is known about its progress.
The next request for the same page by the same user, with the same rights, gets the page. Pages that
may take minutes are listed for their user, with their progress, and can be cancelled.
"""

import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import anyio

from app.api.redra.answers import Inquiry
from app.api.server.limits import WaitBounds
from app.api.ui import framing
from app.domain.log import Actor
from app.domain.objects.access.rules import Grants
from app.domain.values.bounded import Bounded
from app.domain.values.json_tree import JsonObject
from app.service.answering.errands import Errand
from app.web.links import Links

_Place = tuple[int, Actor, Grants, str, str]
"""The runtime, the user with their present rights, the path and the query."""

MADE_AT_ONCE = frozenset(("blast", "report"))
"""Pages whose work ends with their request, because it is bounded by its own settings."""

JOBS = "jobs"
"""The page where work is cancelled, so it waits for none; its rows are bounded, too.

At a past moment it waits like the others, because the objects of that moment are read.
"""

AT_LENGTH = {"again": "by", "compare": "with", "rehearsal": "to"}
"""Pages that may take minutes, with the parameter without which they are only a form.

They take turns, so that they leave room for the others.
"""


_ID_BYTES = 8


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LongPage:
    """A page of `AT_LENGTH` that was begun: its place, its address with the answer, its work."""

    id: str
    place: _Place
    part: str
    address: str
    subject: str
    errand: Errand[bytes]

    @property
    def seconds(self) -> float:
        """The time since it was begun, or from then to its end."""
        until = self.errand.ended_at if self.errand.is_ended else anyio.current_time()
        return until - self.errand.begun_at


class UnreadyPages:
    """The pages that were begun, until a request gets them or they are too old."""

    def __init__(self, bounds: WaitBounds, at_length_max: int) -> None:
        """At most `at_length_max` of the pages `AT_LENGTH` are made at a time."""
        self._bounds = bounds
        self._at_length_max = at_length_max
        self._at_length: list[LongPage] = []
        self._begun: Bounded[_Place, Errand[bytes]] = Bounded(bounds.kept_max)

    async def page(
        self, inquiry: Inquiry, part: str, make: Callable[[], Awaitable[bytes]]
    ) -> bytes | None:
        """The page; None when it is not ready in time, or waits for its turn.

        Raises what the making of it raises.
        """
        is_at_once = part in MADE_AT_ONCE or (part == JOBS and not inquiry.moment)
        if is_at_once or inquiry.request.method == "POST":
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

    def under_way(self, inquiry: Inquiry) -> LongPage | None:
        """The page of an inquiry, if it may take minutes and has begun."""
        place = _place_of(inquiry)
        return next((one for one in self._kept() if one.place == place), None)

    def of(self, inquiry: Inquiry) -> list[LongPage]:
        """The pages of the inquiry's user and history that have begun and were not fetched."""
        return self.of_reader(*_place_of(inquiry)[:3])

    def of_reader(self, life: int, actor: Actor, rights: Grants) -> list[LongPage]:
        """The pages of a user with these rights in a runtime that have begun, not fetched yet."""
        return [one for one in self._kept() if one.place[:3] == (life, actor, rights)]

    async def cancel(self, page: LongPage) -> None:
        """Cancel or remove a page."""
        await page.errand.cancel()
        if self._begun.get(page.place) is page.errand:
            del self._begun[page.place]

    def tell(self, inquiry: Inquiry, progress: JsonObject) -> None:
        """Note the progress of the page of an inquiry."""
        errand = self._begun.get(_place_of(inquiry))
        if errand is not None:
            errand.progress = progress

    def _kept(self) -> list[LongPage]:
        """The long pages that a request can still get."""
        return [
            one
            for one in self._at_length
            if self._begun.get(one.place) is one.errand and not self._is_old(one.errand)
        ]

    def _begin(
        self, inquiry: Inquiry, part: str, make: Callable[[], Awaitable[bytes]]
    ) -> Errand[bytes] | None:
        place = _place_of(inquiry)
        errand = inquiry.runtime.errands.begin(("page", place), make)
        is_new = all(one.errand is not errand for one in self._at_length)
        if errand is not None and _is_at_length(inquiry, part) and is_new:
            there = Links(history=inquiry.runtime.info.name, moment=inquiry.moment)
            one = LongPage(
                id=secrets.token_hex(_ID_BYTES),
                place=place,
                part=part,
                address=there.to(part, **dict(framing.pairs(inquiry.request))),
                subject=inquiry.request.parameter(AT_LENGTH[part]),
                errand=errand,
            )
            self._at_length.append(one)
        return errand

    def _count_at_length(self) -> int:
        kept = self._kept()
        self._at_length = [one for one in self._at_length if one in kept or not one.errand.is_ended]
        return sum(not one.errand.is_ended for one in self._at_length)

    def _is_old(self, errand: Errand[bytes]) -> bool:
        age = anyio.current_time() - errand.ended_at
        return errand.is_ended and age > self._bounds.kept_seconds


def _is_at_length(inquiry: Inquiry, part: str) -> bool:
    return part in AT_LENGTH and bool(inquiry.request.parameter(AT_LENGTH[part]))


def _place_of(inquiry: Inquiry) -> _Place:
    """The page of an inquiry and its reader."""
    request = inquiry.request
    query = framing.query_text(framing.pairs(request))
    # A user who lost a right in the meantime must not get answers that were read with it.
    rights = inquiry.reader().grants
    return inquiry.runtime.life, inquiry.actor, rights, request.path, query
