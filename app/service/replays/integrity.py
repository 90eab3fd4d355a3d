"""Integrity: the check that the stored log is the one that was written.

Every row is checked as stored, before its content is interpreted: its hash, the form of its stamp,
the time columns beside it, its place. At the end the last event is compared with the head row. The
result is a list of problems, each with the revision at which it was seen.

A chain alone cannot reveal a log whose events, hashes and head were all rewritten, or a log that
was cut together with its head. A signed head kept elsewhere reveals both.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

import msgspec

from app.domain.errors import ChainBroken, NotFound, WrongDatabase
from app.domain.log import (
    Event,
    EventType,
    Head,
    HistoryId,
    HistoryInfo,
    Revision,
    Stamp,
    chain,
    forks,
    upcasting,
)
from app.domain.log.event import FORMAT_VERSION, GENESIS
from app.domain.log.heads import SignedHead
from app.domain.log.upcasting import StoredEvent, StoredRow
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import Instant
from app.ports import EventLog, ViewStore

PROBLEMS_MAX = 100
"""The most problems that a report names; all are counted."""

_AGREES, _DIFFERS, _NOT_REACHED = "agrees", "differs", "not reached"
_FIRST = Revision(-(2**62))
_TYPES = frozenset(str(known) for known in EventType)


class SettingsProof(StrEnum):
    """Whether the chain begins with the settings of the history."""

    ANCHORED = "anchored"
    UNANCHORED = "unanchored"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Integrity:
    """The result of checking the stored log. `problems` are sentences, in the order of the log.

    `settings` are unanchored in a history that was created by a redra that did not hash them, and
    unknown when the first event cannot tell. `signed` has one entry for each signed head: its
    revision and key, whether the key is trusted, and whether the log `agrees`, `differs`, or was
    `not reached` there.
    """

    head: str
    settings: SettingsProof
    signed: tuple[Mapping[str, object], ...] = ()
    problems: tuple[str, ...] = ()
    problems_count: int = 0

    @property
    def problem(self) -> str:
        """The first problem; empty when there is none."""
        return self.problems[0] if self.problems else ""

    def to_json(self) -> JsonObject:
        """The JSON form for reports."""
        return {
            "problem": self.problem,
            "problems": list(self.problems),
            "problemsCount": self.problems_count,
            "head": self.head,
            "settings": self.settings.value,
            "signedHeads": [dict(head) for head in self.signed],
        }


FORK_PROBLEM = "the history is marked as a fork, but not of which history: its row was changed"

NO_FORK_PROBLEM = "it begins a fork, and the history is none: the event or the history was changed"

RECORDING_PROBLEM = (
    "an import begins the history, and its settings do not say that it is a recording: they were "
    "changed"
)

COPY_PROBLEM = (
    "the history is marked as a copy of history {name} up to revision {revision}, whose events are "
    "not the same up to there: its row was changed"
)


FORGED_HEAD = (
    "the signature of the head kept for revision {revision} is wrong: the head was changed"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Attestation:
    """Proof for a log from outside it.

    `heads` are signed heads besides those kept with the log; heads of `trusted` keys are proof.
    `is_signed` says whether the signature of a kept head fits it: who writes the database can
    change one. `views` holds kept states of objects, with which a server begins; they are compared
    too.
    """

    heads: Sequence[SignedHead] = ()
    is_signed: Callable[[SignedHead], bool] = lambda _: True
    trusted: frozenset[str] = frozenset()
    views: ViewStore | None = None


@dataclass(slots=True)
class IntegrityCheck:
    """Checks the rows of one history in order, from the first one on.

    `trusted` are the public keys whose heads are proof here. `readable_until` is the last revision
    before an event that no reader can understand; None while there is no such event.
    """

    info: HistoryInfo
    signed: Sequence[SignedHead] = ()
    trusted: frozenset[str] = frozenset()
    settings: SettingsProof = SettingsProof.UNKNOWN
    readable_until: Revision | None = None
    revision: Revision = Revision(0)
    hash: bytes = GENESIS
    _wanted: frozenset[Revision] = frozenset()
    _time: Instant = Instant(0)
    _begun: bool = False
    _forked: StoredEvent | None = None
    _before_fork: bytes = GENESIS
    _signed: dict[Revision, bytes] = field(default_factory=dict)
    _problems: list[str] = field(default_factory=list)
    _count: int = 0

    def __post_init__(self) -> None:
        """Note the revisions that signed heads name."""
        self._wanted = frozenset(head.revision for head in self.signed)

    def take(self, row: StoredRow) -> Event | None:
        """Check one row.

        Returns its event; None from the first event on that cannot be understood. Raises
        WrongDatabase for an intact event of a newer program.
        """
        stored = row.event
        stamp: Stamp | None = None
        try:
            stamp = upcasting.stamp_of(stored)
        except ChainBroken as unreadable:
            problem = self._place_problem(stored) or unreadable.detail
        else:
            problem = self._content_problem(stored, stamp)
        if problem:
            self._note(str(ChainBroken(stored.revision, problem)))
        if self.readable_until is None and not _is_readable(stored, is_sound=not problem):
            self.readable_until = self.revision
        if stamp is not None:
            self._check_times(row, stamp.time)
        if stored.type == EventType.HISTORY_FORKED:
            self._forked, self._before_fork = stored, self.hash
        if stored.revision in self._wanted:
            self._signed[stored.revision] = stored.hash
        self.hash, self.revision, self._begun = stored.hash, stored.revision, True
        if self.readable_until is not None:
            return None
        return upcasting.from_stored(stored, stamp=stamp)

    def note(self, problem: str) -> None:
        """Add a problem found outside the rows of the log."""
        self._note(problem)

    def end(self, head: Head, *, last: StoredRow | None, outside: Sequence[StoredRow]) -> None:
        """Compare the log with the head row.

        `last` is the event at the head's revision. `outside` are events at revisions that the
        history cannot have.
        """
        if not head.revision and not outside:
            self._check_empty(head)
        elif head.revision and last is None:
            self._note(
                f"the head is at revision {head.revision}, where there is no event: the log was "
                "cut short"
            )
        elif last is not None and last.event.hash != head.hash:
            self._note(f"the head's hash is not that of the event at revision {head.revision}")
        elif self.revision == head.revision and head.time != self._time:
            self._note(chain.HEAD_TIME_PROBLEM)
        if self.info.is_fork and (self.info.beginning is None or self.info.parent is None):
            self._note(FORK_PROBLEM)
        if self.info.beginning is None:
            if self._forked is not None:
                self._note(_at(self._forked, NO_FORK_PROBLEM))
        elif self.revision == head.revision or self._is_past_fork:
            self._check_fork()
        for signed in self.signed:
            self._compare(signed, head)
        for row in outside:
            where = f"the head is at revision {head.revision}"
            if 0 < row.event.revision <= head.revision:
                where = f"the fork's own events begin after revision {self.info.parent_revision}"
            self._note(f"there is an event at revision {row.event.revision}, and {where}")

    def result(self) -> Integrity:
        """The result so far."""
        return Integrity(
            head=f"sha256:{self.hash.hex()}",
            settings=self.settings,
            signed=tuple(
                {
                    "revision": head.revision,
                    "key": head.key,
                    "trusted": head.key in self.trusted,
                    "verdict": self._verdict(head),
                }
                for head in self.signed
            ),
            problems=tuple(self._problems),
            problems_count=self._count,
        )

    @property
    def _is_past_fork(self) -> bool:
        """Whether the event that begins the fork must have been read; unknown for a copy."""
        return self.info.is_fork and self.revision > self.info.parent_revision

    def _check_fork(self) -> None:
        """Check that the event that begins a fork holds the fork's settings."""
        forked = self._forked
        if forked is None:
            self._note("no event records the fork of the history and its settings")
            return
        try:
            tree = msgspec.json.decode(forked.object)
        except msgspec.DecodeError:
            return
        before = Revision(forked.revision - 1)
        if problem := forks.problem_of(self.info, tree, before, self._before_fork):
            self._note(_at(forked, problem))

    def _compare(self, signed: SignedHead, head: Head) -> None:
        """Add a problem if the log does not contain a signed head."""
        if signed.revision > head.revision:
            self._note(
                f"a signed head is at revision {signed.revision}, the log ends at {head.revision}: "
                "it was cut short"
            )
        elif self._verdict(signed) == _DIFFERS:
            self._note(
                f"the log has another hash at revision {signed.revision} than the signed "
                "head: it was rewritten"
            )

    def _verdict(self, signed: SignedHead) -> str:
        if not signed.revision:
            beginnings = (chain.genesis_of(self.info), GENESIS)
            return _AGREES if any(map(signed.names, beginnings)) else _DIFFERS
        if signed.revision > self.revision:
            return _NOT_REACHED
        return _AGREES if signed.names(self._signed.get(signed.revision, b"")) else _DIFFERS

    def _place_problem(self, stored: StoredEvent) -> str:
        """The problem with a row's place; empty when there is none."""
        if stored.revision == self.revision + 1:
            return ""
        if stored.revision <= self.revision:
            return f"it stands after revision {self.revision}"
        return f"revision {self.revision + 1} is missing before it"

    def _content_problem(self, stored: StoredEvent, stamp: Stamp) -> str:
        """The problem with a row's place or content; empty when there is none."""
        if misplaced := self._place_problem(stored):
            return misplaced
        try:
            if self._begun:
                fits = upcasting.hash_of(stored, stamp, self.hash) == stored.hash
                return "" if fits else chain.CONTENT_PROBLEM
            return self._beginning_problem(stored, stamp)
        except ChainBroken as problem:
            return problem.detail

    def _beginning_problem(self, stored: StoredEvent, stamp: Stamp) -> str:
        """Determine from the first event whether the settings are in the chain."""
        for beginning, settings in (
            (chain.genesis_of(self.info), SettingsProof.ANCHORED),
            (GENESIS, SettingsProof.UNANCHORED),
        ):
            if upcasting.hash_of(stored, stamp, beginning) == stored.hash:
                self.settings = settings
                if self._is_hidden_recording(stored):
                    return RECORDING_PROBLEM
                return ""
        return chain.BEGINNING_PROBLEM

    def _is_hidden_recording(self, first: StoredEvent) -> bool:
        """Whether an import begins a history that could be written to.

        Imports said so in the settings before any chain began with its settings.
        """
        return (
            self.settings is SettingsProof.ANCHORED
            and first.type == EventType.HISTORY_IMPORTED
            and self.info.begun.settings.get("recorded") is not True
        )

    def _check_empty(self, head: Head) -> None:
        if head.hash == chain.genesis_of(self.info):
            self.settings = SettingsProof.ANCHORED
        elif head.hash == GENESIS:
            self.settings = SettingsProof.UNANCHORED
        else:
            self._note("the history is empty, and its head does not follow from its settings")

    def _check_times(self, row: StoredRow, time: Instant) -> None:
        """Check that the time columns equal the stamp's time, and that time does not fall."""
        stored = row.event
        if row.time != time:
            self._note(_at(stored, "its column time is not the time of its stamp"))
        if time < self._time:
            self._note(_at(stored, "its time is before that of an event before it"))
        self._time = max(self._time, time)
        if row.clock != self._time:
            self._note(_at(stored, "its column clock is not the greatest time so far"))

    def _note(self, problem: str) -> None:
        self._count += 1
        if len(self._problems) < PROBLEMS_MAX:
            self._problems.append(problem)


async def check_end(check: IntegrityCheck, log: EventLog) -> None:
    """Compare the rows that were read with the head row; later appends are no problem."""
    history = check.info.id
    try:
        head = await log.head(history)
    except NotFound:
        check.note("the history has no head: its row was deleted")
        return
    last = await log.read_stored(
        history, after=Revision(head.revision - 1), until=head.revision, limit=1
    )
    before = await log.read_stored(history, after=_FIRST, until=Revision(0), limit=1)
    beyond = await log.read_stored(history, after=head.revision, limit=1)
    if beyond and (await log.head(history)).revision > head.revision:
        beyond = []
    check.end(head, last=last[0] if head.revision and last else None, outside=[*before, *beyond])
    await _check_copy(check, log)


async def _check_copy(check: IntegrityCheck, log: EventLog) -> None:
    """Compare a copy with its source where the copy ends; no hash covers where that is.

    Up to there both have the same events. The next events of both must differ, because each was
    written separately: equal ones would mean that the copy extends further.
    """
    info = check.info
    source = next((each for each in await log.histories() if each.id == info.parent), None)
    if info.is_fork or source is None:
        return
    until = info.parent_revision
    ours, theirs = [await _hashes_from(log, each, until) for each in (info.id, source.id)]
    is_same = until == 0 or (until in ours and ours[until] == theirs.get(until))
    following = Revision(until + 1)
    if until < 0 or not is_same or (following in ours and ours[following] == theirs.get(following)):
        check.note(COPY_PROBLEM.format(name=source.name, revision=until))


async def _hashes_from(log: EventLog, history: HistoryId, revision: Revision) -> dict[int, bytes]:
    """The stored hashes at a revision and at the next one."""
    after = Revision(max(revision, 1) - 1)
    rows = await log.read_stored(history, after=after, limit=2)
    return {row.event.revision: row.event.hash for row in rows}


def _at(stored: StoredEvent, problem: str) -> str:
    return f"revision {stored.revision}: {problem}"


def _is_readable(stored: StoredEvent, *, is_sound: bool) -> bool:
    """Whether an event can be folded: of a known type, with a stamp, about a JSON object.

    Raises WrongDatabase for an event that fits the chain and is of a newer program.
    """
    if is_sound:
        if stored.type not in _TYPES or stored.format > FORMAT_VERSION:
            upcasting.from_stored(stored)
        return True
    try:
        upcasting.from_stored(stored)
        msgspec.json.decode(stored.object, type=dict)
    except (ChainBroken, WrongDatabase, msgspec.DecodeError, RecursionError):
        return False
    return True
