"""Pages that take longer than a request waits.

Such a page is made on without the request, which is answered with what is known about its progress.
The next request for the same page by the same user, with the same rights, gets the page. Pages that
may take minutes are listed for their user, with their progress, and can be cancelled.
"""

import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import anyio

from app.api.redra.inquiries import Inquiry
from app.api.server.limits import WaitBounds
from app.api.ui import framing
from app.domain.log import Actor
from app.domain.objects.access.rules import Grants
from app.domain.values.bounded import Bounded
from app.domain.values.json_tree import JsonObject
from app.service.answering.errands import Errand
from app.service.runtime import HistoryRuntime
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _PageWork:
    """The work that makes a page, and the runtime of its history."""

    runtime: HistoryRuntime
    make: Callable[[], Awaitable[bytes]]


@dataclass(slots=True, kw_only=True, eq=False)
class LongPage:
    """A page of `AT_LENGTH`: its place, and its address with the answer.

    While it waits for its turn it has its `work`, and from then on its `errand`. `asked_at` is the
    time of the last request for it; `turned` is set when its turn comes, or when it is cancelled
    before.
    """

    id: str
    place: _Place
    part: str
    address: str
    subject: str
    work: _PageWork | None
    errand: Errand[bytes] | None = None
    is_cancelled: bool = False
    waits_since: float = field(default_factory=anyio.current_time)
    asked_at: float = field(default_factory=anyio.current_time)
    turned: anyio.Event = field(default_factory=anyio.Event)

    @property
    def is_ended(self) -> bool:
        """Whether its work is done or has failed."""
        return self.errand is not None and self.errand.is_ended

    @property
    def seconds(self) -> float:
        """The time since it was begun, or from then to its end; before, the time that it waits."""
        if self.errand is None:
            return anyio.current_time() - self.waits_since
        until = self.errand.ended_at if self.errand.is_ended else anyio.current_time()
        return until - self.errand.begun_at

    async def wait_ended(self, seconds: float) -> None:
        """Wait until its work has ended or it is cancelled, at most this time."""
        self.asked_at = anyio.current_time() + seconds
        with anyio.move_on_after(seconds):
            await self.turned.wait()
            if self.errand is not None:
                await self.errand.wait_ended()


class UnreadyPages:
    """The pages that were begun, until a request gets them or they are too old.

    Pages at length that find no room wait in a line, in the order of their first request, and are
    begun in turn. One that nobody asks for any more loses its place.
    """

    def __init__(self, bounds: WaitBounds, at_length_max: int) -> None:
        """At most `at_length_max` of the pages `AT_LENGTH` are made at a time."""
        self._bounds = bounds
        self._at_length_max = at_length_max
        self._at_length: list[LongPage] = []
        self._line: list[LongPage] = []
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
            if _is_at_length(inquiry, part):
                return await self._at_length_page(inquiry, part, make)
            errand = self._begin(inquiry, make)
        if errand is None and runtime.errands.are_all_busy:
            # In its request, the page would hold a connection for any length of time.
            if not await runtime.errands.wait_turn(self._bounds.seconds):
                return None
            errand = self._begin(inquiry, make)
            if errand is None:
                return None
        if errand is None:
            return await make()
        self._begun[place] = errand
        return await self._outcome(place, errand)

    async def _outcome(self, place: _Place, errand: Errand[bytes]) -> bytes | None:
        if not await errand.wait_ended(self._bounds.seconds):
            return None
        if self._begun.get(place) is errand:
            del self._begun[place]
        return errand.outcome()

    async def _at_length_page(
        self, inquiry: Inquiry, part: str, make: Callable[[], Awaitable[bytes]]
    ) -> bytes | None:
        """A page at length that has not begun: it is begun, or gets or keeps a place in the line.

        If the line is full, it gets none, and None is returned.
        """
        place = _place_of(inquiry)
        if place in self._begun:
            del self._begun[place]
        self._shorten()
        one = next((one for one in self._line if one.place == place), None)
        if one is not None:
            one.asked_at = anyio.current_time()
        elif len(self._line) < self._bounds.kept_max:
            there = Links(history=inquiry.runtime.info.name, moment=inquiry.moment)
            self._line.append(
                LongPage(
                    id=secrets.token_hex(_ID_BYTES),
                    place=place,
                    part=part,
                    address=there.to(part, **dict(framing.pairs(inquiry.request))),
                    subject=inquiry.request.parameter(AT_LENGTH[part]),
                    work=_PageWork(runtime=inquiry.runtime, make=make),
                )
            )
        self._advance()
        errand = self._begun.get(place)
        return None if errand is None else await self._outcome(place, errand)

    def before(self, inquiry: Inquiry) -> int:
        """The number of answers after one of which the page has its turn; 0 if it has begun."""
        if _place_of(inquiry) in self._begun:
            return 0
        return max(inquiry.runtime.errands.count, self._count_at_length())

    def ahead(self, page: LongPage) -> int:
        """The number of pages in the line before this one."""
        return self._line.index(page) if page in self._line else 0

    def under_way(self, inquiry: Inquiry) -> LongPage | None:
        """The page of an inquiry, if it may take minutes and has begun, or waits for its turn."""
        place = _place_of(inquiry)
        return next((one for one in self._kept() if one.place == place), None)

    def of(self, inquiry: Inquiry) -> list[LongPage]:
        """The long pages of the inquiry's user and history that were not fetched yet."""
        return self.of_reader(*_place_of(inquiry)[:3])

    def of_reader(self, life: int, actor: Actor, rights: Grants) -> list[LongPage]:
        """The long pages of a user with these rights in a runtime that were not fetched yet."""
        return [one for one in self._kept() if one.place[:3] == (life, actor, rights)]

    async def cancel(self, page: LongPage) -> None:
        """Cancel or remove a page; the next one in the line has its turn."""
        if page.errand is None:
            page.is_cancelled = True
            page.turned.set()
            self._line = [one for one in self._line if one is not page]
            return
        await page.errand.cancel()
        if self._begun.get(page.place) is page.errand:
            del self._begun[page.place]
        self._shorten()
        self._advance()

    def report_progress(self, inquiry: Inquiry, progress: JsonObject) -> None:
        """Note the progress of the page of an inquiry."""
        errand = self._begun.get(_place_of(inquiry))
        if errand is not None:
            errand.progress = progress

    def _kept(self) -> list[LongPage]:
        """The long pages that a request can still get, and then those that wait."""
        self._shorten()
        begun = [
            one
            for one in self._at_length
            if one.errand is not None
            and self._begun.get(one.place) is one.errand
            and not self._is_old(one.errand)
        ]
        return begun + self._line

    def _begin(
        self, inquiry: Inquiry, make: Callable[[], Awaitable[bytes]]
    ) -> Errand[bytes] | None:
        return inquiry.runtime.errands.begin(("page", _place_of(inquiry)), make)

    def _advance(self) -> None:
        """Begin the pages whose turn it is, in the order of the line."""
        for one in tuple(self._line):
            if self._count_at_length() >= self._at_length_max:
                return
            if one.work is None:
                continue
            errands = one.work.runtime.errands
            errand = errands.begin(("page", one.place), one.work.make)
            if errand is None or errands.tasks is None:
                # Its history makes as many other answers as it may, or has ended.
                continue
            one.errand = self._begun[one.place] = errand
            # The views of a history that is closed meanwhile are not to be kept by its pages.
            one.work = None
            self._line.remove(one)
            self._at_length.append(one)
            one.turned.set()
            errands.tasks.start_soon(self._advance_after, errand)

    async def _advance_after(self, errand: Errand[bytes]) -> None:
        await errand.wait_ended()
        self._shorten()
        self._advance()

    def _shorten(self) -> None:
        """Take pages that nobody asks for any more, or whose history has ended, from the line."""
        self._line = [one for one in self._line if not self._is_left(one)]

    def _count_at_length(self) -> int:
        self._at_length = [
            one
            for one in self._at_length
            if one.errand is not None
            and (not one.errand.is_ended or self._begun.get(one.place) is one.errand)
            and not self._is_old(one.errand)
        ]
        return sum(not one.is_ended for one in self._at_length)

    def _is_left(self, page: LongPage) -> bool:
        """Whether nobody asks any more for a page that waits, or its history has ended."""
        age = anyio.current_time() - page.asked_at
        is_ended = page.work is None or page.work.runtime.errands.tasks is None
        return age > self._bounds.kept_seconds or is_ended

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
