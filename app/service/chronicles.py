"""The chronicles of running histories: folded on the first question, then kept up to date.

What was folded is kept with the history, so that a later program goes on from there.

A long history is not read at once: each question reads a bounded number of further events, and the
answer says up to which revision it has read.
"""

from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeAlias, TypeVar

import anyio
import anyio.lowlevel

from app.analysis.chosen_spans import ManyObjects
from app.analysis.chronicle import Chronicle
from app.analysis.recordings import incomplete_pools, uncertainty
from app.analysis.views import LiveViews
from app.domain.errors import NotFound
from app.domain.log import Revision
from app.domain.log.doubts import Doubt
from app.domain.values.bounded import Bounded
from app.service import recorded_doubts
from app.service.folding.kept_chronicles import STRETCH, ChronicleStore, Keeping
from app.service.replays.verifying import switches_over_time
from app.service.runtime import HistoryRuntime

PAGE_MAX = 2_000
"""Events that are read at once."""

TURN_MAX = 100
"""Events that are folded before the reader yields to the loop: a few milliseconds."""

QUIET_PAGE_MAX, QUIET_TURN_MAX = 200, 20
"""The same where nobody waits: requests that come meanwhile wait for a part of either."""

BUSY_PAGE_MAX = 40
"""Events that are read at once where nobody waits for them while the history is written."""


T = TypeVar("T")

_Steps: TypeAlias = Callable[[Chronicle], Iterator[None]]
"""The steps of a work on a chronicle, after each of which other tasks may run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Beginning:
    """The beginning of a chronicle: `make` makes it, for a recording that lacks what `lacking` has.

    `doubts` are those of the recording, as the report up to the revision `reported` has them.
    """

    make: Callable[[], Chronicle]
    doubts: tuple[Doubt, ...]
    lacking: frozenset[str]
    reported: Revision


@dataclass(slots=True)
class _KeptChronicle:
    chronicle: Chronicle
    beginning: _Beginning
    store: ChronicleStore | None = None
    keeping: Keeping = field(default_factory=Keeping)
    lock: anyio.Lock = field(default_factory=anyio.Lock)
    readers: int = 0
    """The number of tasks that read the whole log; meanwhile, questions use what has been read."""

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Count a reader of the whole log."""
        self.readers += 1
        try:
            yield
        finally:
            self.readers -= 1


class Chronicles:
    """The chronicles of histories. One question reads at most `events_max` events.

    At most `kept_max` chronicles are kept in memory, and stretches of `stretch` events with the
    history.
    """

    def __init__(self, *, kept_max: int, events_max: int, stretch: int = STRETCH) -> None:
        self._kept: Bounded[int, _KeptChronicle] = Bounded(kept_max)
        self._events_max = events_max
        self._stretch = stretch
        self._beginning = anyio.Lock()

    async def of(self, runtime: HistoryRuntime) -> tuple[Chronicle, tuple[Doubt, ...]]:
        """The chronicle of a history, and the doubts of its recording.

        It has been folded to the head, or as far as one question may read.
        """
        kept = await self._kept_of(runtime)
        if not kept.readers:
            await self._read_on(kept, runtime)
        return kept.chronicle, kept.beginning.doubts

    async def with_states(
        self,
        runtime: HistoryRuntime,
        answer: Callable[[Chronicle], T],
        steps: Callable[[Chronicle], Iterable[None]] = lambda _: (),
    ) -> tuple[T, Chronicle, tuple[Doubt, ...]]:
        """The answer of a question about states over time, with the chronicle and the doubts.

        They are worked out of the objects that the answer is about, or else of all. Other requests
        are answered meanwhile, also between the `steps` that prepare the answer.
        """
        kept = await self._kept_of(runtime)
        while True:
            if not kept.readers:
                await self._read_on(kept, runtime)
            try:
                if await self._work_out(kept, lambda each: each.states_in_steps(steps(each))):
                    chronicle = kept.chronicle
                    return answer(chronicle), chronicle, kept.beginning.doubts
            except ManyObjects:
                await self._work_out(kept, Chronicle.spans_in_steps)

    async def whole_with_states(self, runtime: HistoryRuntime, until: Revision) -> Chronicle:
        """Like `whole`, with the states over time of the objects that a question is about."""
        return await self._whole_with(runtime, until, Chronicle.states_in_steps)

    async def whole_with_spans(self, runtime: HistoryRuntime, until: Revision) -> Chronicle:
        """Like `whole`, with the states over time of all objects."""
        return await self._whole_with(runtime, until, Chronicle.spans_in_steps)

    async def _whole_with(
        self, runtime: HistoryRuntime, until: Revision, steps: _Steps
    ) -> Chronicle:
        kept = await self._kept_of(runtime)
        while True:
            await self._read_whole(kept, runtime, until)
            if await self._work_out(kept, steps):
                return kept.chronicle

    async def doubts(self, runtime: HistoryRuntime, views: LiveViews) -> tuple[Doubt, ...]:
        """The doubts about a recording at the moment of views, also those that its objects raise.

        Of a long history they rest on what has been read. Only recordings are read.
        """
        if not runtime.info.is_recorded:
            return await recorded_doubts.doubts_of(runtime.log, runtime.info)
        chronicle, doubts = await self.of(runtime)
        return (*incomplete_pools.of_all(views), *chronicle.doubts(doubts, until=views.revision))

    async def begin_reading(self, runtime: HistoryRuntime) -> tuple[Revision, Revision]:
        """Start reading the whole log in the background if it is longer than one question may read.

        Returns the last revision that has been read, and the last one there is.
        """
        kept = await self._kept_of(runtime)
        revision, last = kept.chronicle.revision, runtime.views.revision
        if last - revision > self._events_max:
            runtime.errands.begin("chronicle", partial(self.whole, runtime, last))
        return revision, last

    async def read_within(
        self, runtime: HistoryRuntime, until: Revision, seconds: float | None
    ) -> None:
        """Have the log read up to a revision, and wait for that, at most so many seconds.

        The reading goes on in the background. Raises NotFound as `whole` does.
        """
        kept = await self._kept_of(runtime)
        with anyio.move_on_after(seconds):
            while kept.chronicle.revision < until:
                work = partial(self.whole, runtime, until)
                errand = runtime.errands.begin("chronicle", work)
                if errand is None:
                    await work()
                    return
                await errand.wait_ended()
                errand.outcome()

    async def whole(self, runtime: HistoryRuntime, until: Revision) -> Chronicle:
        """The chronicle of a history, folded up to a revision; other requests run meanwhile.

        Raises NotFound when the history can no longer be read to that revision. Reading counts as a
        use of the history. The chronicle is returned even if it was dropped from the kept ones.
        """
        kept = await self._kept_of(runtime)
        await self._read_whole(kept, runtime, until)
        return kept.chronicle

    async def _read_whole(
        self, kept: _KeptChronicle, runtime: HistoryRuntime, until: Revision
    ) -> None:
        with runtime.watches.guest(), kept.reading():
            while kept.chronicle.revision < until:
                before = kept.chronicle.revision
                await self._read_on(kept, runtime)
                if kept.chronicle.revision == before or runtime.watches.ended:
                    name = runtime.info.name
                    raise NotFound(
                        f'history "{name}" cannot be read beyond revision '
                        f"{kept.chronicle.revision}: it was deleted, or it is being read again",
                        resource="histories",
                        name=name,
                    )
                await anyio.lowlevel.checkpoint()

    async def _kept_of(self, runtime: HistoryRuntime) -> _KeptChronicle:
        kept = self._kept.recent(runtime.life)
        if kept is not None:
            return kept
        async with self._beginning:
            # Another question may have started a chronicle meanwhile.
            kept = self._kept.get(runtime.life)
            if kept is None:
                kept = self._kept[runtime.life] = await self._begun(runtime)
        return kept

    async def _begun(self, runtime: HistoryRuntime) -> _KeptChronicle:
        """The chronicle that was kept, or one that begins with the first event."""
        beginning = await _beginning(runtime)
        store = _store_of(runtime, self._stretch)
        if store is None:
            return _KeptChronicle(beginning.make(), beginning)
        chronicle, keeping = await store.restored(beginning.make, runtime.views.revision)
        return _KeptChronicle(chronicle, beginning, store, keeping)

    async def _work_out(self, kept: _KeptChronicle, steps: _Steps) -> bool:
        """Work out states over time; False if the chronicle begins anew for it."""
        async with kept.lock:
            store, chronicle = kept.store, kept.chronicle
            if store is not None and not await store.take_changes(chronicle, kept.keeping):
                kept.chronicle = kept.beginning.make()
                kept.keeping = Keeping(length=self._stretch)
                return False
        # Without the lock: further events may be folded between the steps.
        for _ in steps(chronicle):
            await anyio.lowlevel.checkpoint()
        return kept.chronicle is chronicle

    async def _read_on(self, kept: _KeptChronicle, runtime: HistoryRuntime) -> None:
        """Fold as many events as one question may read."""
        log, history = runtime.log, runtime.info.id
        async with kept.lock:
            await self._note_report(kept, runtime)
            chronicle = kept.chronicle
            until = Revision(min(runtime.views.revision, chronicle.revision + self._events_max))
            while chronicle.revision < until:
                after = chronicle.revision
                events = await log.read(history, after=after, until=until, limit=PAGE_MAX)
                if not events:
                    return
                for first in range(0, len(events), TURN_MAX):
                    chronicle.fold(events[first : first + TURN_MAX])
                    await anyio.lowlevel.checkpoint()
                if kept.store is not None:
                    await kept.store.keep(chronicle, kept.keeping, events[-1].hash)

    async def _note_report(self, kept: _KeptChronicle, runtime: HistoryRuntime) -> None:
        """Take in the report of a recording that has grown.

        If the recording lacks other kinds than before, the chronicle begins anew: it judges what
        they could explain.
        """
        if not runtime.info.is_recorded or runtime.views.revision <= kept.beginning.reported:
            return
        reported = (await runtime.log.head(runtime.info.id)).revision
        doubts = await recorded_doubts.doubts_of(runtime.log, runtime.info)
        if uncertainty.lacking(doubts) == kept.beginning.lacking:
            kept.beginning = replace(kept.beginning, doubts=doubts, reported=reported)
            return
        begun = await self._begun(runtime)
        kept.chronicle, kept.beginning = begun.chronicle, begun.beginning
        kept.store, kept.keeping = begun.store, begun.keeping


async def keep_next(
    runtime: HistoryRuntime, pause: Callable[[], Awaitable[None]], stretch: int = STRETCH
) -> Keeping | None:
    """Keep the next stretch of a history's chronicle, if the history has that many events more.

    `pause` is awaited after each page of events. Pages are short while the history grows.
    Returns what is kept; None where nothing can be.
    """
    store = _store_of(runtime, stretch)
    if store is None:
        return None
    begin = (await _beginning(runtime)).make
    head = runtime.views.revision
    newest = await store.newest(begin(), head)
    if newest is not None and head - newest[1].revision < newest[1].length:
        return newest[1]
    chronicle, keeping = await store.restored(begin, head, with_entries=False)
    begun, page = keeping.revision, QUIET_PAGE_MAX
    while keeping.revision == begun and head - begun >= keeping.length:
        after = chronicle.revision
        events = await runtime.log.read(runtime.info.id, after=after, until=head, limit=page)
        if not events:
            break
        for first in range(0, len(events), QUIET_TURN_MAX):
            chronicle.fold(events[first : first + QUIET_TURN_MAX])
            await anyio.lowlevel.checkpoint()
        length = keeping.length
        await store.keep(chronicle, keeping, events[-1].hash)
        if keeping.length > length:
            # Not kept: another server may be further, and what it folds is not folded here, too.
            newest = await store.newest(begin(), head)
            if newest is not None and newest[1].revision > begun:
                return newest[1]
        before = runtime.views.revision
        await pause()
        page = QUIET_PAGE_MAX if runtime.views.revision == before else BUSY_PAGE_MAX
    return keeping


def _store_of(runtime: HistoryRuntime, stretch: int) -> ChronicleStore | None:
    views = runtime.kept_views
    if views is None:
        return None
    return ChronicleStore(views=views, log=runtime.log, info=runtime.info, stretch=stretch)


async def _beginning(runtime: HistoryRuntime) -> _Beginning:
    """The beginning of the chronicle of a history, by the newest report of its recording."""
    info = runtime.info
    reported = (await runtime.log.head(info.id)).revision
    doubts = await recorded_doubts.doubts_of(runtime.log, info)
    switches = await switches_over_time(runtime.log, info)
    lacking = uncertainty.lacking(doubts)
    make = partial(Chronicle, switches, lacking, is_recorded=info.is_recorded)
    return _Beginning(make=make, doubts=doubts, lacking=lacking, reported=reported)
