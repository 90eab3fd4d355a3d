"""What the service needs from the world, as contracts.

Adapters fill these (`adapters/postgres`, `adapters/memory`, `adapters/clock`, `adapters/history`);
one contract suite under `tests/contracts` runs against each filling. Times are instants in
microseconds UTC; all waiting has a bound that the caller gives.
"""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from app.domain.log import (
    Beginning,
    Event,
    Head,
    HistoryId,
    HistoryInfo,
    LeaseToken,
    ObjectKey,
    Revision,
    Tombstone,
)
from app.domain.log.event import GENESIS
from app.domain.log.heads import SignedHead
from app.domain.log.sightings import ClusterIdentity, ListPage, ObjectVersion, ServedKind, Sighting
from app.domain.log.upcasting import StoredRow
from app.domain.objects.webhook_targets import Target
from app.domain.values.json_tree import JsonObject, JsonView
from app.domain.values.timestamps import Instant


class EventLog(Protocol):
    """The append-only log of many histories.

    Revisions of a history have no gaps and never change. What `append` returned is durable. Every
    method raises LogUnavailable when the store cannot be reached, WrongDatabase when it is not
    ours.
    """

    async def create_history(
        self,
        name: str,
        *,
        seed: int,
        settings: JsonObject,
        created: Instant,
        parent: HistoryId | None = None,
        parent_revision: Revision = Revision(0),
        hash: bytes = GENESIS,
        beginning: Beginning | None = None,
    ) -> HistoryInfo:
        """Make an empty history. Raises AlreadyExists when the name is taken.

        `hash` is what its first event follows: `chain.genesis` of the settings, or `GENESIS` when
        these are not to be in the chain. With `beginning` it is that of these.
        """
        ...

    async def fork_history(
        self,
        name: str,
        *,
        parent: HistoryInfo,
        end: Head,
        seed: int,
        settings: JsonObject,
        created: Instant,
    ) -> HistoryInfo:
        """Make a history that goes on after the event of `parent` at `end`, in one short step.

        Up to there it reads the parent's events, which are not copied; `end` is the revision, hash
        and clock of the last of them. The parent cannot be deleted while the fork exists. Raises
        AlreadyExists, NotFound.
        """
        ...

    async def histories(self) -> list[HistoryInfo]:
        """All histories, sorted by name, but for those that are still being made."""
        ...

    async def unfinished(self) -> list[HistoryInfo]:
        """The histories that are still being made, or were left so; sorted by name."""
        ...

    async def rename_history(self, history: HistoryId, name: str) -> None:
        """Give a history another name. Raises AlreadyExists when it is taken, NotFound."""
        ...

    async def delete_history(self, history: HistoryId, *, at: Instant, by: str) -> Tombstone:
        """Remove a history with everything that belongs to it, in one step; a tombstone stays.

        Who appends to it meanwhile or later gets NotFound, as does who asks for its head. Raises
        NotFound, and Conflict while it has forks.
        """
        ...

    async def tombstones(self) -> list[Tombstone]:
        """The deleted histories in the order of deletion, but for those never finished."""
        ...

    async def find_history(self, name: str) -> HistoryInfo | None:
        """The history of that name."""
        ...

    async def head(self, history: HistoryId) -> Head:
        """The end of the history as committed."""
        ...

    async def keep_heads(self, history: HistoryId, heads: Sequence[SignedHead]) -> None:
        """Keep heads that others signed; one of a revision and key that is there is passed over."""
        ...

    async def kept_heads(self, history: HistoryId) -> list[SignedHead]:
        """The signed heads of a history, sorted by revision and key."""
        ...

    async def append(
        self,
        history: HistoryId,
        *,
        expected: Head,
        events: Sequence[Event],
        leases: Sequence[LeaseToken] = (),
    ) -> Head:
        """Append sealed events at `expected.revision + 1` in one durable step, or none of them.

        Raises HeadMoved when the history is at another revision, StaleLease when one of the leases
        was taken over. After LogUnavailable the outcome is unknown: read the head to learn it.
        """
        ...

    async def read(
        self, history: HistoryId, *, after: Revision, limit: int, until: Revision | None = None
    ) -> list[Event]:
        """Up to `limit` events with a revision above `after` (and not above `until`), in order."""
        ...

    async def read_stored(
        self, history: HistoryId, *, after: Revision, limit: int, until: Revision | None = None
    ) -> list[StoredRow]:
        """The same as they are kept, also those that cannot be understood; for verification."""
        ...

    async def read_object(
        self, history: HistoryId, key: ObjectKey, *, until: Revision, limit: int
    ) -> list[Event]:
        """The newest events of one key up to `until`, newest first."""
        ...

    async def keys(
        self, history: HistoryId, kind: tuple[str, str], *, until: Revision, limit: int, name: str
    ) -> list[ObjectKey]:
        """The keys of a kind (group, resource) that events up to `until` are about, sorted.

        Those of one name alone, unless it is empty.
        """
        ...

    async def objects_at(
        self,
        history: HistoryId,
        revision: Revision,
        *,
        group: str | None = None,
        resource: str | None = None,
        after: ObjectKey | None = None,
        limit: int,
    ) -> list[Event]:
        """The last event of each object that existed at `revision`, sorted by key, keyset-paged.

        Only events about objects; deleted ones are left out. None means any group or resource.
        """
        ...

    async def revision_at(self, history: HistoryId, instant: Instant) -> Revision:
        """The last revision before which nothing later than `instant` stands; 0 when there is none.

        An event that was recorded late, with an earlier time than its predecessors, counts with
        theirs: what is shown of an instant never holds anything from after it.
        """
        ...


class WakeUp(Protocol):
    """A hint that a history grew. Hints may be lost or repeated; callers poll as well."""

    def listen(self, history: HistoryId) -> AbstractAsyncContextManager["Listener"]:
        """Hints from the moment of entering until leaving."""
        ...


class Listener(Protocol):
    """One subscription to the hints of one history."""

    @property
    def named(self) -> Revision:
        """The highest revision that the hints before the last `wait` named; 0: look yourself."""
        ...

    async def wait(self, timeout_seconds: float) -> bool:
        """True when a hint came since the last call, False when the time was up."""
        ...


class Leases(Protocol):
    """Leadership with a term. A lease that is not renewed in time may be taken by another."""

    async def acquire(
        self, history: HistoryId, name: str, holder: str, *, seconds: float
    ) -> LeaseToken | None:
        """Take the lease when it is free, expired or ours; None when another holds it.

        Each change of holder gives a higher epoch.
        """
        ...

    async def renew(self, history: HistoryId, token: LeaseToken, *, seconds: float) -> bool:
        """Prolong; False when it was taken over."""
        ...

    async def release(self, history: HistoryId, token: LeaseToken) -> None:
        """Give the lease back, so that another holder need not wait for its end."""
        ...


class Checkpoint(Protocol):
    """How far a materialised projection has come."""

    @property
    def projection(self) -> str: ...
    @property
    def version(self) -> int: ...
    @property
    def revision(self) -> Revision: ...
    @property
    def state_hash(self) -> str: ...


class ViewStore(Protocol):
    """Materialised views: rows and checkpoints, written in one step."""

    async def checkpoint(
        self, history: HistoryId, projection: str, version: int
    ) -> Checkpoint | None:
        """The checkpoint of this version of a projection."""
        ...

    async def checkpoints(self, history: HistoryId) -> Sequence[Checkpoint]:
        """All checkpoints of a history, sorted by projection and version."""
        ...

    async def write(
        self,
        history: HistoryId,
        projection: str,
        version: int,
        *,
        after: Revision,
        revision: Revision,
        state_hash: str,
        upserts: Mapping[str, Sequence[Mapping[str, object]]],
        deletes: Mapping[str, Sequence[tuple[object, ...]]],
    ) -> bool:
        """Write changed rows (by table) and advance the checkpoint from `after` to `revision`.

        Returns False, having written nothing, when the checkpoint is not at `after`.
        """
        ...

    async def clear(self, history: HistoryId, projection: str, version: int) -> None:
        """Remove the rows and the checkpoint of one projection."""
        ...

    async def rows(self, history: HistoryId, table: str) -> list[dict[str, object]]:
        """All rows of one view table, sorted by key; for checks and tests."""
        ...

    async def save_snapshot(
        self, history: HistoryId, projection: str, version: int, revision: Revision, state: bytes
    ) -> None:
        """Keep a folded state, to start from later."""
        ...

    async def load_snapshot(
        self, history: HistoryId, projection: str, version: int, *, until: Revision
    ) -> tuple[Revision, bytes] | None:
        """The newest kept state that is not after `until`."""
        ...


class Clock(Protocol):
    """Where time comes from. Never goes backwards within one clock."""

    def now(self) -> Instant:
        """The present instant."""
        ...

    def steady(self) -> int:
        """Microseconds since some moment, at the pace of time, however the clock is set."""
        ...

    async def wait_until(self, instant: Instant) -> None:
        """Return at or after `instant`; a virtual clock returns when it has been advanced."""
        ...


class UidSource(Protocol):
    """Where fresh identities come from."""

    def uid(self) -> str:
        """A new uid: 36 characters, lower case, RFC 4122."""
        ...


class ClusterSource(Protocol):
    """A real cluster. It is read only: there is no method that could change anything.

    Each method raises Unauthorized, Forbidden, NotFound (the kind is not served), TooManyRequests,
    Expired (the version is compacted), RevisionTooLarge (it is still to come) or
    ClusterUnreachable.
    """

    @property
    def name(self) -> str:
        """What the source is called in events and messages."""
        ...

    @property
    def clock_offset(self) -> int:
        """Microseconds that the server's clock is ahead of ours; 0 where it may be none."""
        ...

    @property
    def clock_spread(self) -> int:
        """Microseconds that `clock_offset` may be off."""
        ...

    async def identity(self) -> ClusterIdentity:
        """Which cluster answers."""
        ...

    async def kinds(self) -> tuple[list[ServedKind], list[str]]:
        """The chosen kinds that are served, and the names of those that are not."""
        ...

    async def list_page(
        self, kind: ServedKind, *, limit: int, version: str = "", token: str = ""
    ) -> ListPage:
        """A page of all objects of a kind, as of exactly `version` or of now; `token` goes on."""
        ...

    async def versions_page(
        self, kind: ServedKind, *, limit: int, version: str, token: str = ""
    ) -> tuple[list[ObjectVersion], str]:
        """A page of what exists at exactly a version, without content; the next page's token."""
        ...

    def watch(
        self, kind: ServedKind, *, after: str, seconds: int
    ) -> AbstractAsyncContextManager[AsyncIterator[Sighting]]:
        """The changes of a kind after a version, until the server ends it or `seconds` are over."""
        ...


class WebhookCaller(Protocol):
    """Calls admission webhooks."""

    async def call(self, target: Target, body: bytes, *, seconds: int) -> bytes:
        """The body of the answer. Raises WebhookFailed with the reason in words."""
        ...


class Meter(Protocol):
    """Counters, gauges and histograms under their Prometheus names."""

    def count(self, name: str, amount: float = 1.0, /, **labels: str) -> None:
        """Add to a counter."""
        ...

    def gauge(self, name: str, value: float, /, **labels: str) -> None:
        """Set a gauge."""
        ...

    def counter(self, name: str, /, **labels: str) -> Callable[[], None]:
        """What adds one to a counter, for who does it often."""
        ...

    def observer(self, name: str, /, **labels: str) -> Callable[[float], None]:
        """What puts values into a histogram, for who does it often."""
        ...

    def observe(self, name: str, seconds: float, /, **labels: str) -> None:
        """Put a value into a histogram."""
        ...


class Match(StrEnum):
    """What an expression says of a device."""

    MATCH = "match"
    NO_MATCH = "no match"
    ERROR = "error"


@dataclass(frozen=True, slots=True, kw_only=True)
class Opinion:
    """The answer of another evaluator; None with the `reason` why it cannot answer."""

    answer: Match | None
    reason: str = ""


class SecondOpinion(Protocol):
    """Another evaluator of device selectors, which shares no code with `domain.cel`."""

    @property
    def name(self) -> str:
        """What it is, for messages."""
        ...

    def ask(
        self,
        expression: str,
        *,
        driver: str,
        attributes: JsonView,
        capacity: JsonView,
        allow_multiple_allocations: bool,
    ) -> Opinion:
        """What the expression says of a device, whose parts are those of the API object.

        Never raises: what goes wrong is the reason for having no answer.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimePorts:
    """The filled ports that a runtime works with.

    `views` is None when nothing is materialised, `webhooks` when none are called.
    """

    log: EventLog
    wake_up: WakeUp
    clock: Clock
    uids: UidSource
    views: ViewStore | None = None
    webhooks: WebhookCaller | None = None
