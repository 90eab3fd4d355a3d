"""The time that a client's requests waited for its rate limit before they were sent.

A log has the instant at which a request arrived, not the one at which it was made. In a burst of
writes these are seconds apart: the scheduler sends 50 a second after the first hundred. Two sources
show the wait. The Event of a failed attempt has the instant of the attempt, and its condition is a
request of the same client as the bindings. So the distance between the two is the wait at that
time. Where no such pair is near, a simulated token bucket shows since when the real one had been
empty.
"""

from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

from app.analysis.replay import tolerances
from app.domain.values.timestamps import SECOND, Instant


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """The instant at which a request was made: not before `first`, not after `last`."""

    first: Instant
    last: Instant

    @property
    def has_waited(self) -> bool:
        """Whether the request was made noticeably before it was sent, as far as known."""
        return self.first < self.last

    @property
    def middle(self) -> Instant:
        """The middle of the interval, for use where one instant is needed."""
        return Instant((self.first + self.last) // 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """The requests of a client that were refused: they wait for its limit and write nothing.

    `seen` has the instants of those that are recorded. A recording without refused requests, such
    as one of watch streams, has `deleted` instead: when each object was deleted that some requests
    may have waited for. `slack` is by how much instants of writes may be wrong.
    """

    seen: Sequence[Instant] = ()
    deleted: Sequence[Instant] = ()
    slack: int = 0


class Waits:
    """The waits of one client, from pairs (sent, made) and from the instants of its writes.

    A limit passes requests in the order in which they were made. So a request was made between
    those that were sent before and after it, however far away they are. During a pause in sending
    nothing waits, so pairs on the other side of such a pause are not used. A wrong pair would make
    the interval of every request near it wrong, so pairs must be certain.
    """

    def __init__(
        self,
        pairs: Iterable[tuple[Instant, Instant]],
        writes: Iterable[Instant],
        likely: Iterable[tuple[Instant, Instant]] = (),
        refused: Refused = Refused(),
    ) -> None:
        """`likely` are pairs that may be wrong. They count only where there is no certain pair.

        That is between two pauses: if no certain pair lies between them, and the request was made
        after the first one.
        """
        sure, guesses, instants = sorted(pairs), sorted(likely), sorted((*writes, *refused.seen))
        self.slack = refused.slack
        self._slack = tolerances.TABLE.overtaken_by + refused.slack
        self._deleted = sorted(refused.deleted)
        others = {sent for sent, _ in (*sure, *guesses)} - set(instants)
        self._requests = sorted((*instants, *others))
        sure = [(sent, made) for sent, made in sure if made >= self._reach(sent)]
        self._busy = _busy_since(self._requests, tolerances.TABLE.near)
        self._learn(sure)
        self._busy = [since for since in self._busy if not self._is_waiting(since)]
        # Between two pauses, certain and likely pairs are not mixed.
        stretches = {self._busy_from(sent) for sent, _ in sure}
        sure += (
            (sent, made)
            for sent, made in guesses
            if self._busy_from(sent) not in stretches and made >= self._busy_from(sent)
        )
        self._learn(sorted(sure))
        self._writes, self._since = _empty_since(instants)
        if self._is_slower(sure):
            self._writes, self._since = [], []

    def _learn(self, pairs: Sequence[tuple[Instant, Instant]]) -> None:
        """Learns pairs in the order in which their requests were sent."""
        self._sent = [sent for sent, _ in pairs]
        self._made_by = list(accumulate((made for _, made in pairs), max))
        self._made_from = list(accumulate((made for _, made in reversed(pairs)), min))[::-1]

    def _is_waiting(self, since: Instant) -> bool:
        """Whether a request waited during the pause that ended with the request at this instant."""
        index, number = bisect_left(self._sent, since), bisect_left(self._requests, since)
        if not number or index == len(self._sent):
            return False
        return self._made_from[index] <= self._requests[number - 1]

    def of(self, sent: Instant) -> Made:
        """The interval in which the request sent at this instant was made."""
        since = self._empty_from(sent)
        if since is not None and since >= sent:
            return Made(first=sent, last=sent)
        before, after = self._made_before(sent), self._made_after(sent)
        known = [made for made in (before, since) if made is not None]
        if not known and after is not None:
            known.append(self._busy_from(sent))
        first = max(known, default=sent)
        if sent - first < tolerances.TABLE.wait_seen:
            return Made(first=sent, last=sent)
        last = sent if after is None else min(sent, after + tolerances.TABLE.overtaken_by)
        return Made(
            first=Instant(first - tolerances.TABLE.overtaken_by), last=Instant(max(first, last))
        )

    def reach_over(self, end: Instant, made: Iterable[Made]) -> bool:
        """Whether acts began by an end, and went on until a request of then may have been made.

        The first and the last of them may be two acts.
        """
        known, since = tuple(made), self.longest(end)
        return any(each.first <= end for each in known) and any(
            since <= each.last for each in known
        )

    def longest(self, sent: Instant) -> Instant:
        """The earliest instant at which the request sent at this one may have been made.

        The limit is unknown, but it passes requests in order: a request was not made before one
        that was sent earlier. While a request waits, the bucket is empty, and the requests before
        it are sent one step of the limit apart; later requests are sent no faster. `sent` may also
        be an instant at which the request still waited and was then abandoned.
        """
        earliest = self._reach(sent)
        index = bisect_left(self._sent, sent)
        if not index:
            return earliest
        return Instant(max(earliest, self._made_by[index - 1] - tolerances.TABLE.overtaken_by))

    def passed(self, made: Instant) -> Instant:
        """The earliest instant at which a request made at `made` can be sent.

        It is the instant at which the last request of a pair made before was sent.
        """
        index = bisect_right(self._made_by, made)
        return self._sent[index - 1] if index else made

    def _reach(self, sent: Instant) -> Instant:
        """The earliest instant from which this request may have waited in the queue."""
        number = bisect_left(self._requests, sent)
        is_request = self._requests[number : number + 1] == [sent]
        return self._queued[number][0] if is_request else self._queued_from(sent, number)

    @cached_property
    def _queued(self) -> list[tuple[Instant, int]]:
        """For each request, the earliest instant from which it may have waited in the queue.

        The second value is the number of the first request of that queue.

        Each request before it in the queue makes it wait for one step of the limit. All steps are
        as long as the longest one, and at most as long as the intervals between later requests
        allow. Example: after twenty requests, ten a second, it waited up to two seconds. A pause of
        two seconds before requests that follow each other closely is not a step.

        The queue of a later request does not begin before that of an earlier one. So the beginning
        only moves forward, and one pass over all requests is enough.

        A longer pause is no end of a queue if requests that are not recorded fill it: as many as
        one attempt makes for each object that was deleted meanwhile.
        """
        requests, slack = self._requests, self._slack
        steps = self._steps
        pauses = [
            one - before - slack for before, one in zip([0, *requests], requests, strict=False)
        ]
        missing = self._missing(pauses)
        longest, shortest = deque[int](), deque[int]()
        queued: list[tuple[Instant, int]] = []
        begin = 0
        for number in range(len(requests)):
            while longest and pauses[longest[-1]] <= pauses[number]:
                longest.pop()
            longest.append(number)
            while shortest and steps[shortest[-1]] >= steps[number]:
                shortest.pop()
            shortest.append(number)
            while begin < number:
                if longest[0] <= begin:
                    longest.popleft()
                elif shortest[0] < begin:
                    shortest.popleft()
                elif pauses[longest[0]] > steps[shortest[0]] and missing[number] > missing[begin]:
                    begin += 1
                else:
                    break
            step = steps[number] if begin == number else steps[shortest[0]]
            reach = Instant(requests[begin] - step - slack)
            is_after_pause = not begin or requests[begin - 1] < reach
            queued.append((reach if is_after_pause else requests[begin - 1], begin))
        return queued

    def _missing(self, pauses: Sequence[int]) -> Sequence[int]:
        """Balances by request: if one is greater than an earlier one, requests between are missing.

        Each pause before a request needs so many more as steps fit into it; each deletion may have
        left so many as one attempt makes.
        """
        if not self._deleted:
            return range(len(pauses))
        needed = accumulate(
            _fitting(pause, step) for pause, step in zip(pauses, self._steps, strict=True)
        )
        return [
            count - tolerances.TABLE.writes_between * bisect_right(self._deleted, one)
            for count, one in zip(needed, self._requests, strict=True)
        ]

    def _queued_from(self, waiting: Instant, number: int) -> Instant:
        """The same for a request that waits at the instant `waiting`, after `number` others."""
        requests, slack = self._requests, self._slack
        later = bisect_right(requests, waiting)
        following = requests[later : later + tolerances.TABLE.writes_at_once - 1]
        if self._deleted:
            begin = max(0, self._queued[number - 1][1] - 1) if number else 0
            near = [*requests[begin:number], waiting, *following]
            refused = Refused(deleted=self._deleted, slack=slack - tolerances.TABLE.overtaken_by)
            return Waits((), near, refused=refused)._queued[number - begin][0]
        step, earliest, longest = _step_max([waiting, *following]), waiting, 0
        while longest <= step:
            reach = Instant(earliest - step - slack)
            if not number or requests[number - 1] < reach:
                return reach
            number -= 1
            longest = max(longest, earliest - requests[number] - slack)
            earliest = requests[number]
            step = min(step, self._steps[number])
        return earliest

    @cached_property
    def _steps(self) -> list[int]:
        """For each request, the longest step of the limit that the following requests allow."""
        count = tolerances.TABLE.writes_at_once
        return [
            _step_max(self._requests[number : number + count])
            for number in range(len(self._requests))
        ]

    def _is_slower(self, pairs: Iterable[tuple[Instant, Instant]]) -> bool:
        """Whether most long waits happened while the bucket should have passed every request."""
        long = [
            self._empty_from(sent) == sent
            for sent, made in pairs
            if sent - made > tolerances.TABLE.overtaken_by
        ]
        return len(long) >= tolerances.TABLE.slower_min and 2 * sum(long) > len(long)

    def _made_before(self, sent: Instant) -> Instant | None:
        """The instant of the request of the last pair before; None if a pause lies between."""
        index = bisect_left(self._sent, sent)
        if not index or self._busy_from(self._sent[index - 1]) != self._busy_from(sent):
            return None
        return self._made_by[index - 1]

    def _made_after(self, sent: Instant) -> Instant | None:
        """The instant of the request of the first pair from here; None if a pause lies between."""
        index = bisect_left(self._sent, sent)
        if index == len(self._sent) or self._busy_from(self._sent[index]) != self._busy_from(sent):
            return None
        return self._made_from[index]

    def _busy_from(self, sent: Instant) -> Instant:
        """The instant of the first request after the last pause up to `sent`."""
        index = bisect_right(self._busy, sent)
        return self._busy[index - 1] if index else sent

    def _empty_from(self, sent: Instant) -> Instant | None:
        """The instant since which the bucket was empty; `sent` if it was not; None if unknown."""
        index = bisect_left(self._writes, sent)
        if index == len(self._writes) or self._writes[index] != sent:
            return None
        since = self._since[index]
        return sent if since is None else since


def in_order(pairs: Iterable[tuple[Instant, Instant]]) -> list[tuple[Instant, Instant]]:
    """The largest set of pairs (sent, made) that can be true together: both orders are the same.

    It has at most one of several pairs of one request. Requests overtake each other a little, so
    requests made at about the same time may have been sent in any order. Among sets of equal size,
    the one with the shorter waits is chosen.
    """
    # Going from the last request to the first, the times of the attempts must not rise.
    ranked = {(-sent, made // -tolerances.TABLE.overtaken_by): (sent, made) for sent, made in pairs}
    ends: list[int] = []
    chains: list[tuple[tuple[Instant, Instant], int | None]] = []
    last: list[int] = []
    for (_, rank), pair in sorted(ranked.items(), key=lambda each: (each[0][0], -each[0][1])):
        place = bisect_right(ends, rank)
        chains.append((pair, last[place - 1] if place else None))
        if place == len(ends):
            ends.append(rank)
            last.append(len(chains) - 1)
        else:
            ends[place], last[place] = rank, len(chains) - 1
    chosen: list[tuple[Instant, Instant]] = []
    number = last[-1] if last else None
    while number is not None:
        pair, number = chains[number]
        chosen.append(pair)
    return chosen


def _busy_since(writes: list[Instant], pause: int) -> list[Instant]:
    """The instants of the first write and of the first ones after pauses longer than this."""
    return [
        sent
        for before, sent in zip([None, *writes], writes, strict=False)
        if before is None or sent - before > pause
    ]


def _empty_since(writes: list[Instant]) -> tuple[list[Instant], list[Instant | None]]:
    """The instants since which the bucket had been empty at each write, None where it was not.

    Example: of 103 writes at once, the last three found it (nearly) empty, since the hundredth.
    When more was sent than the bucket allows, the real limit was different, and nothing is known.
    """
    since: list[Instant | None] = []
    left = float(tolerances.TABLE.writes_at_once)
    last = writes[0] if writes else Instant(0)
    began: Instant | None = None
    for sent in writes:
        left = (
            min(
                tolerances.TABLE.writes_at_once,
                left + (sent - last) * tolerances.TABLE.writes_a_second / SECOND,
            )
            - 1
        )
        last = sent
        if left < -tolerances.TABLE.writes_at_once / 2:
            return [], []
        if left > tolerances.TABLE.nearly_empty:
            began = None
        elif began is None:
            began = sent
        since.append(began)
    return writes, since


def _fitting(pause: int, step: int) -> int:
    """The least number of requests sent within a pause, each a step after the one before."""
    return max(0, -(-pause // max(step, 1)) - 1)


def _step_max(following: Sequence[Instant]) -> int:
    """The longest step of the limit that the intervals between these requests allow."""
    longest = tolerances.TABLE.reported_before
    steps = (
        (sent - following[0] + tolerances.TABLE.overtaken_by) // count
        for count, sent in enumerate(following)
        if count
    )
    return min(longest, min(steps, default=longest))
