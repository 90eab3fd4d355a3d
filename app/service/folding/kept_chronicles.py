"""Chronicles that are kept in stretches of the log, and go on from there in a later program.

A stretch is written once and never again: its entries, its changes of states over time, and the
state after its last event. The newest state names the stretches. Each has the hash of its last
event, so that none of another log is used. Programs that judge otherwise have places of their own:
two that serve one database do not disturb each other.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from importlib import resources
from importlib.resources.abc import Traversable
from itertools import pairwise

import anyio.to_thread

from app.analysis.chronicle import Chronicle
from app.analysis.keeping import forms
from app.analysis.keeping.graphs import UnknownForm
from app.domain.errors import LogError, NotFound
from app.domain.log import HistoryId, HistoryInfo, Revision
from app.ports import EventLog, ViewStore
from app.service.folding import snapshots

STATE, ENTRIES, CHANGES = "chronicle", "chronicle-entries", "chronicle-changes"
"""The views as which states, entries and changes are kept; their version is that of the program."""

_NAMES = STATE, ENTRIES, CHANGES

PROGRAMS = ("chronicle-programs", 1)
"""The view, with its version, as which the programs that keep a chronicle are kept."""

PROGRAMS_MAX = 2
"""The programs of which a history keeps a chronicle, as long as an upgrade and a way back need."""

STRETCH = 20_000
"""The events of a stretch: what a first question folds at most, some 0.7 s of processor time."""

BYTES_FOR_AN_EVENT = 64
"""The bytes of a state for which an event more comes into a stretch.

Writing the state of a large cluster takes about half as long as folding the stretch then.
"""

_VERSION_MAX = 2**31 - 1
_DIGITS = len(str(_VERSION_MAX))

_JUDGES = ("app.domain", "app.analysis", "projections")
"""The packages on which it depends what a chronicle holds."""

Stretches = Sequence[tuple[Revision, bytes]]
"""The last revision of each stretch, with the hash of its event."""


@dataclass(slots=True)
class Keeping:
    """The kept part of a chronicle.

    `stretches` are all that are kept, `begun_with` is the number of those from which it was begun.
    The next one ends after `length` events at the earliest.
    """

    stretches: list[tuple[Revision, bytes]] = field(default_factory=list)
    begun_with: int = 0
    length: int = 0
    is_new: bool = True

    @property
    def revision(self) -> Revision:
        """The last revision that is kept."""
        return self.stretches[-1][0] if self.stretches else Revision(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChronicleStore:
    """The place where the chronicle of a history is kept; a fork goes on from that of its parent.

    A stretch has at least `stretch` events.
    """

    views: ViewStore
    log: EventLog
    info: HistoryInfo
    stretch: int = STRETCH

    async def newest(
        self, chronicle: Chronicle, until: Revision
    ) -> tuple[forms.KeptState, Keeping] | None:
        """The newest state from which a chronicle that has folded nothing can go on."""
        kept = await snapshots.load_of_line(
            self.views,
            self.log,
            self.info,
            place(STATE),
            until=until,
            is_usable=lambda each: _state_of(chronicle, each[0], each[2]) is not None,
        )
        state = None if kept is None else _state_of(chronicle, kept[0], kept[2])
        if state is None:
            return None
        stretches = [*state.stretches]
        return state, Keeping(stretches, len(stretches), self._length(state), is_new=False)

    async def restored(
        self, begin: Callable[[], Chronicle], until: Revision, *, with_entries: bool = True
    ) -> tuple[Chronicle, Keeping]:
        """The chronicle that goes on from the newest state, or begins if none can be used.

        One without entries serves to keep further stretches only.
        """
        chronicle = begin()
        newest = await self.newest(chronicle, until)
        if newest is None:
            return chronicle, Keeping(length=self.stretch)
        state, keeping = newest
        parts = await self.parts(ENTRIES, state.stretches) if with_entries else []
        if parts is None:
            return chronicle, Keeping(length=self.stretch)

        def go_on() -> None:
            entries = [forms.entries_of(each) for each in parts] if with_entries else None
            chronicle.go_on_from(state, entries)

        try:
            await anyio.to_thread.run_sync(go_on)
        except UnknownForm:
            return begin(), Keeping(length=self.stretch)
        return chronicle, keeping

    async def take_changes(self, chronicle: Chronicle, keeping: Keeping) -> bool:
        """Give a chronicle the changes of the stretches from which it was begun, if it lacks them.

        False if they are not there any more. Nothing else folds the chronicle meanwhile.
        """
        if not chronicle.lacks_changes:
            return True
        stretches = keeping.stretches[: keeping.begun_with]
        parts = await self.parts(CHANGES, stretches)
        if parts is None:
            return False
        begins = [Revision(0), *(revision for revision, _ in stretches)]

        def give() -> bool:
            changes = [forms.changes_of(each) for each in parts]
            if [each.after for each in changes] != begins[:-1]:
                return False
            chronicle.take_changes(changes)
            return True

        try:
            return await anyio.to_thread.run_sync(give)
        except UnknownForm:
            return False

    async def keep(self, chronicle: Chronicle, keeping: Keeping, last: bytes) -> None:
        """Keep the stretch that ends with an event of this hash, if it is long enough.

        Nothing else folds the chronicle meanwhile; what cannot be kept now is kept later.
        """
        if chronicle.revision - keeping.revision < keeping.length or not chronicle.can_be_kept:
            return
        stretches = [*keeping.stretches, (chronicle.revision, last)]
        try:
            stretch, state = await anyio.to_thread.run_sync(
                lambda: (chronicle.stretch(), chronicle.state(stretches))
            )
            if not await self._is_last(chronicle, keeping):
                keeping.length += self.stretch
                return
            await self._save(ENTRIES, chronicle.revision, last, forms.dump(stretch.entries))
            await self._save(CHANGES, chronicle.revision, last, forms.dump(stretch.changes))
            await self._save(STATE, chronicle.revision, last, forms.dump(state))
        except (LogError, NotFound, UnknownForm, RuntimeError):
            # RuntimeError: a question has changed what is worked out once while it was written.
            keeping.length += self.stretch
            return
        chronicle.note_kept(stretch)
        keeping.stretches = stretches
        keeping.length = self._length(state)

    def _length(self, state: forms.KeptState) -> int:
        """The events of the next stretch at least."""
        return max(self.stretch, state.watch_bytes // BYTES_FOR_AN_EVENT)

    async def _is_last(self, chronicle: Chronicle, keeping: Keeping) -> bool:
        """Whether nobody else has kept another stretch; what cannot be used is removed."""
        newest = await snapshots.load(
            self.views, self.log, self.info.id, place(STATE), until=chronicle.revision
        )
        if newest is not None and _state_of(chronicle, newest[0], newest[2]) is not None:
            return not keeping.is_new and newest[0] == keeping.revision
        if not keeping.is_new and keeping.revision > self.info.parent_revision:
            return False
        await remove(self.views, self.info.id)
        await self._note_program()
        keeping.is_new = False
        return True

    async def _note_program(self) -> None:
        """Note that this program keeps the chronicle, and remove that of those not listed then.

        Of two that begin at once only one may be listed; the other one is removed later.
        """
        stored = await self.views.load_snapshot(self.info.id, *PROGRAMS, until=Revision(0))
        others = [each for each in _programs(stored) if each != _version()]
        programs = (_version(), *others[: PROGRAMS_MAX - 1])
        for name in _NAMES:
            for version in await self.views.kept_versions(self.info.id, name):
                if version not in programs:
                    await self.views.clear(self.info.id, name, version)
        encoded = " ".join(map(str, programs)).encode()
        await self.views.save_snapshot(self.info.id, *PROGRAMS, Revision(0), encoded)

    async def _save(self, name: str, revision: Revision, last: bytes, data: bytes) -> None:
        marked = (_program() + b"\n", data)
        await snapshots.keep(self.views, self.info.id, place(name), revision, last, marked)

    async def parts(self, name: str, stretches: Stretches) -> list[bytes] | None:
        """A part of each stretch; None if one is missing, altered or of another program."""
        line = [self.info, *await snapshots.parents_of(self.log, self.info)]
        parts = []
        for revision, last in stretches:
            for history in line:
                kept = await snapshots.load_exact(
                    self.views, history.id, place(name), revision, last
                )
                part = None if kept is None else _of_this_program(kept)
                if part is not None:
                    parts.append(part)
                    break
            else:
                return None
        return parts


def _state_of(chronicle: Chronicle, revision: Revision, data: bytes) -> forms.KeptState | None:
    """The state that was kept at a revision, if the chronicle can go on from it."""
    encoded = _of_this_program(data)
    if encoded is None:
        return None
    try:
        state = forms.state_of(encoded)
    except UnknownForm:
        return None
    # The last stretch ends where the state is kept: an audit begins there, as a server does.
    ends = [end for end, _ in state.stretches]
    is_whole = ends[-1:] == [revision] and all(one < two for one, two in pairwise(ends))
    return state if is_whole and chronicle.fits(state, revision) else None


def _of_this_program(data: bytes) -> bytes | None:
    """The bytes that were kept, unless code that judges otherwise has kept them."""
    program, _, encoded = data.partition(b"\n")
    return encoded if program == _program() else None


async def remove(views: ViewStore, history: HistoryId) -> None:
    """Remove what this program keeps of the chronicle of a history."""
    for name in _NAMES:
        await views.clear(history, *place(name))


def place(name: str) -> tuple[str, int]:
    """The view of a name as which this program keeps something, with its version."""
    return name, _version()


def _version() -> int:
    """The version of all that this program keeps, from the digest of its code."""
    return int.from_bytes(sha256(_program()).digest()[:4]) & _VERSION_MAX


def _programs(stored: tuple[Revision, bytes] | None) -> list[int]:
    """The versions of programs that keep a chronicle, the latest that began first."""
    numbers = b"" if stored is None else stored[1]
    texts = [each for each in numbers.split() if each.isdigit() and len(each) <= _DIGITS]
    return [version for version in map(int, texts) if version <= _VERSION_MAX]


@cache
def _program() -> bytes:
    """A digest of the code that judges: what other code has kept is not gone on from."""
    digest = sha256()
    for package in _JUDGES:
        for path, content in sorted(_sources(resources.files(package), package)):
            digest.update(path.encode() + sha256(content).digest())
    return digest.hexdigest().encode()


def _sources(folder: Traversable, path: str) -> list[tuple[str, bytes]]:
    sources = []
    for each in folder.iterdir():
        inner = f"{path}/{each.name}"
        if each.is_dir():
            sources += _sources(each, inner)
        elif each.name.endswith(".py"):
            sources.append((inner, each.read_bytes()))
    return sources
