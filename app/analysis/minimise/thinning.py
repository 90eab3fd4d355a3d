"""Delta debugging: leaves out parts of a candidate, from all of them to single ones.

The generators yield candidates, are sent whether each still shows what must stay, and continue from
the first that does. The number yielded together only affects the time: those after the first
success are dropped.

Example, with parts a to d of which only c is needed, two candidates at a time (`-`: no parts):

    candidate   shows it   best
    -           no         abcd
    cd          yes        cd
    -           no         cd
    d           no         cd
    c           yes        c

Of many parts that are alike, the smallest number that shows it is looked for by halves, and three
of them are then tried by themselves.
"""

from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import TypeAlias, TypeVar

from app.analysis.minimise import alike
from app.analysis.minimise.alike import FEW, Sort
from app.analysis.minimise.material import Candidate

_Part = TypeVar("_Part")

_Remove: TypeAlias = Callable[[Candidate, Collection[_Part]], Candidate]
"""The candidate without some parts, and without what needs them."""

Tries: TypeAlias = Generator[Sequence[Candidate], Sequence[bool], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """The beginning of a pass: the kind and the number of the parts that it tries to leave out."""

    name: str
    parts: int


class Thinning:
    """A candidate that becomes smaller; `best` is the smallest that showed it so far.

    `width` candidates are tried together, not counting those for which `is_out` tells at once that
    they do not show it. `report_progress` is called with each pass and each success. `represented`
    is the greatest number of parts that stayed since it was last set to 0 because three like them
    must.
    """

    def __init__(
        self,
        start: Candidate,
        *,
        width: int,
        is_out: Callable[[Candidate], bool],
        report_progress: Callable[[Pass | Candidate], None],
    ) -> None:
        self.best = start
        self.represented = 0
        self.report_progress = report_progress
        self._width = width
        self._is_out = is_out

    def first(self, candidates: Sequence[Candidate]) -> Tries:
        """Continues from the first of these candidates that shows it."""
        rest = iter(candidates)
        while batch := self._batch(rest):
            verdicts = yield batch
            for candidate, shows in zip(batch, verdicts, strict=True):
                if shows:
                    self._take(candidate)
                    return

    def thin(
        self,
        name: str,
        parts: Sequence[_Part],
        remove: _Remove[_Part],
        *,
        most: int | None = None,
        sort_of: Callable[[_Part], Sort] | None = None,
    ) -> Tries:
        """Leaves out as many parts as possible, many parts that are alike in one.

        Where it is known that more than `most` parts cannot go together, the search for single
        parts starts with those.
        """
        crowds = [] if sort_of is None else alike.crowds(parts, sort_of)
        if all(len(crowd) <= FEW for crowd in crowds):
            yield from self._halve(name, parts, remove, most=most)
            return
        units = [
            unit
            for crowd in crowds
            for unit in ([crowd] if len(crowd) > FEW else [[part] for part in crowd])
        ]
        yield from self._halve(
            name, units, lambda best, some: remove(best, list(chain.from_iterable(some)))
        )
        for crowd in units:
            left = [part for part in crowd if remove(self.best, [part]) != self.best]
            if len(left) > FEW:
                yield from self._fewest(name, left, remove)
            elif len(crowd) > FEW:
                yield from self._halve(name, left, remove)

    def _fewest(self, name: str, parts: Sequence[_Part], remove: _Remove[_Part]) -> Tries:
        """Looks for the number of parts that are alike which have to stay.

        All do if no example can go alone. Otherwise they go from the end, then from the
        beginning: one of them may be the one that shows it. If an example of the rest can still go,
        they are not alike enough.
        """
        rest, before = list(parts), self.best
        self.report_progress(Pass(name=name, parts=len(rest)))
        yield from self._example(rest, remove)
        if self.best == before:
            self.note_represented(len(rest))
            return
        for is_from_end in (True, False):
            low, high = 0, len(rest)
            while high - low > 1:
                middle, before = (low + high) // 2, self.best
                gone = rest[-middle:] if is_from_end else rest[:middle]
                yield from self.first([remove(before, gone)])
                low, high = (low, middle) if self.best == before else (middle, high)
            rest = rest[: len(rest) - low] if is_from_end else rest[low:]
        before = self.best
        yield from self._example(rest, remove)
        if self.best != before:
            yield from self._halve(name, rest, remove)
        else:
            self.note_represented(len(rest))

    def note_represented(self, parts: int) -> None:
        """Notes that of so many parts that are alike, only examples were tried by themselves."""
        if parts > FEW:
            self.represented = max(self.represented, parts)

    def _example(self, parts: Sequence[_Part], remove: _Remove[_Part]) -> Tries:
        """Leaves out the first of the examples that can go alone."""
        examples = alike.examples(parts)
        tries = [remove(self.best, [part]) for part in examples]
        yield from self.first([each for each in tries if each != self.best])

    def _halve(
        self,
        name: str,
        parts: Sequence[_Part],
        remove: _Remove[_Part],
        *,
        most: int | None = None,
    ) -> Tries:
        """Leaves out as many parts as possible: first all, then halves, down to single parts.

        A part that needs another is left out with it, and does not count as a part any more. Where
        it is known that more than `most` parts cannot go together, the search starts with those.
        """
        rest = list(parts)
        self.report_progress(Pass(name=name, parts=len(rest)))
        size, place = len(rest) if most is None else most, 0
        while batch := self._batch(
            remove(self.best, rest[at : at + length])
            for length, at in _cuts(len(rest), size, place)
        ):
            cuts = list(islice(_cuts(len(rest), size, place), len(batch)))
            verdicts = yield [each for each in batch if each != self.best]
            shows = iter(verdicts)
            for (length, at), candidate in zip(cuts, batch, strict=True):
                size, place = length, at + length
                if candidate == self.best or next(shows):
                    # The part is already gone, or is not needed.
                    if candidate != self.best:
                        self._take(candidate)
                    del rest[at : at + length]
                    place = at
                    break

    def _batch(self, candidates: Iterable[Candidate]) -> list[Candidate]:
        """The next candidates, until the number of open ones reaches the width.

        A candidate that equals the best ends the batch, because the search continues from there.
        """
        batch: list[Candidate] = []
        open_ones = 0
        for candidate in candidates:
            batch.append(candidate)
            if self._width == 1 or candidate == self.best:
                break
            open_ones += not self._is_out(candidate)
            if open_ones == self._width:
                break
        return batch

    def _take(self, candidate: Candidate) -> None:
        self.best = candidate
        self.report_progress(candidate)


def _cuts(count: int, size: int, place: int) -> Iterator[tuple[int, int]]:
    """The cuts out of `count` parts while none succeeds, from a place on: length, start.

    Example: of 4 parts, from 2 at 0 on, `(2, 0), (2, 2), (1, 0), (1, 1), (1, 2), (1, 3)`.
    """
    while size:
        for start in range(place, count, size):
            yield size, start
        size, place = min(size, count + 1) // 2, 0
