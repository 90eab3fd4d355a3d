"""The ports: what the service needs from the outside world, as protocols with their contracts.

`adapters` implements these protocols; suites under `tests/contracts` run against all stores. Times
are instants in microseconds UTC. Every wait has a bound that the caller gives.
"""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from app.domain.log import (
    ChainStart,
    Event,
    Head,
    HistoryId,
    HistoryInfo,
    LeaseToken,
    ObjectKey,
    Revision,
    Tombstone,
)
from app.domain.log.event import GENESIS, KeyFilter, LoggedChange
from app.domain.log.heads import SignedHead
from app.domain.log.recorded_cluster import (
    ClusterIdentity,
    ListPage,
    ObjectVersion,
    ServedKind,
    WatchItem,
)
from app.domain.log.upcasting import StoredRow
from app.domain.objects.webhook_targets import WebhookTarget
from app.domain.values.identifiers import Uid
from app.domain.values.json_tree import JsonObject, JsonView
from app.domain.values.timestamps import Instant


class EventLog(Protocol):
    """The append-only log of many histories.

    Revisions of a history have no gaps and never change. An append is durable when `append`
    returns. Every method raises LogUnavailable when the store cannot be reached, and WrongDatabase
    when the database is not one of redra's.
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
        beginning: ChainStart | None = None,
    ) -> HistoryInfo:
        """Make an empty history. Raises AlreadyExists when the name is taken.

        `hash` is the hash that the first event follows: `chain.genesis` of the settings or of the
        values in `beginning`, or `GENESIS` when neither is part of the chain.
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
        """Make a history that continues after the event of `parent` at `end`, in one short step.

        Up to `end` the fork reads the parent's events, which are not copied. `end` holds the
        revision, hash and clock of the last event that both share. The parent cannot be deleted
        while the fork exists. Raises AlreadyExists, NotFound.
        """
        ...

    async def histories(self) -> list[HistoryInfo]:
        """All histories, sorted by name, without those that are still being made."""
        ...

    async def unfinished(self) -> list[HistoryInfo]:
        """The histories that are still being made or were never finished, sorted by name."""
        ...

    async def rename_history(self, history: HistoryId, name: str) -> None:
        """Give a history another name. Raises AlreadyExists when it is taken, NotFound."""
        ...

    async def delete_history(self, history: HistoryId, *, at: Instant, by: str) -> Tombstone:
        """Remove a history with everything that belongs to it, in one step; a tombstone stays.

        Appending to the history and reading its head raise NotFound from then on, also for callers
        that began before. Raises NotFound, and Conflict while the history has forks or is being
        deleted by another caller.
        """
        ...

    async def tombstones(self) -> list[Tombstone]:
        """The deleted histories in the order of deletion, without the never finished ones."""
        ...

    async def find_history(self, name: str) -> HistoryInfo | None:
        """The history with that name; None when there is none."""
        ...

    async def head(self, history: HistoryId) -> Head:
        """The head of the history, as committed."""
        ...

    async def keep_heads(self, history: HistoryId, heads: Sequence[SignedHead]) -> None:
        """Keep heads that others signed; a head with a known revision and key is skipped."""
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

    async def changes(
        self, history: HistoryId, *, after: Revision, limit: int, until: Revision | None = None
    ) -> list[LoggedChange]:
        """Like `read`, but without what the events contain, which takes most of the time."""
        ...

    async def read_stored(
        self, history: HistoryId, *, after: Revision, limit: int, until: Revision | None = None
    ) -> list[StoredRow]:
        """Rows as stored, for verification. Up to 0: those below the history's own first event."""
        ...

    async def read_object(
        self, history: HistoryId, *keys: ObjectKey, until: Revision, limit: int
    ) -> list[Event]:
        """The newest events of each key up to `until`: key by key, of each the newest first."""
        ...

    async def keys(
        self,
        history: HistoryId,
        wanted: KeyFilter,
        *,
        until: Revision,
        limit: int,
        newest_first: bool = False,
    ) -> list[ObjectKey]:
        """The first wanted keys that occur in events up to `until`, sorted.

        With `newest_first` those with the latest of these events, the latest first.
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

        Only events about objects count, and no deleted objects. None means any group or resource.
        """
        ...

    async def creations(self, history: HistoryId, last: Sequence[Event]) -> list[Revision]:
        """The first revisions of lives, each given by an event: no deletion or other uid since."""
        ...

    async def revision_at(self, history: HistoryId, instant: Instant) -> Revision:
        """The last revision up to which no event is later than `instant`; 0 when there is none.

        An event that was recorded late, with an earlier time than its predecessors, counts with
        theirs: the state that is shown for an instant never holds anything later than it.
        """
        ...


class WakeUp(Protocol):
    """A hint that a history grew. Hints may be lost or repeated; callers poll as well."""

    def listen(self, history: HistoryId) -> AbstractAsyncContextManager["Listener"]:
        """Open a listener, which receives hints from entering until leaving the context."""
        ...


class Listener(Protocol):
    """One subscription to the hints of one history."""

    @property
    def named(self) -> Revision:
        """The highest revision in the hints before the last `wait`; 0: read the log's head."""
        ...

    async def wait(self, timeout_seconds: float) -> bool:
        """True when a hint came since the last call, False after the timeout."""
        ...


class Leases(Protocol):
    """Leadership with a term. A lease that is not renewed in time may be taken by another."""

    async def acquire(
        self, history: HistoryId, name: str, holder: str, *, seconds: float
    ) -> LeaseToken | None:
        """Take a free, expired or own lease, a new holder with a higher epoch; None otherwise."""
        ...

    async def renew(self, history: HistoryId, token: LeaseToken, *, seconds: float) -> bool:
        """Prolong the lease; False when another holder took it over."""
        ...

    async def release(self, history: HistoryId, token: LeaseToken) -> None:
        """Give the lease back, so that another holder need not wait until it expires."""
        ...

    async def holders(self, history: HistoryId) -> Mapping[str, str]:
        """The holders of the leases that have not expired, by the names of the leases."""
        ...


class Checkpoint(Protocol):
    """The position up to which a materialised projection is written."""

    @property
    def projection(self) -> str: ...
    @property
    def version(self) -> int: ...
    @property
    def revision(self) -> Revision: ...
    @property
    def state_hash(self) -> str: ...


ALL_ROWS = 2**62
"""A limit above the number of rows of any view."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRows:
    """The hash of the stored rows of one projection, and its checkpoint at the same moment.

    `hash` is None when there are more than the caller's limit. `count` is the number of rows, or a
    number above the limit.
    """

    checkpoint: Checkpoint | None
    hash: str | None
    count: int


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

        Returns False, having written nothing, when the checkpoint is not at `after`. Raises
        NotFound when the history was deleted and nothing was written before.
        """
        ...

    async def clear(self, history: HistoryId, projection: str, version: int) -> None:
        """Remove the rows and the checkpoint of one projection."""
        ...

    async def rows(self, history: HistoryId, table: str) -> list[dict[str, object]]:
        """All rows of one view table, sorted by key; for checks and tests."""
        ...

    async def hash_rows(
        self, history: HistoryId, projection: str, version: int, *, rows_max: int
    ) -> StoredRows:
        """The hash of all stored rows of a projection, with the checkpoint of this version."""
        ...

    async def save_snapshot(
        self, history: HistoryId, projection: str, version: int, revision: Revision, state: bytes
    ) -> None:
        """Keep a folded state, to start from later. Raises NotFound for a deleted history."""
        ...

    async def load_snapshot(
        self, history: HistoryId, projection: str, version: int, *, until: Revision
    ) -> tuple[Revision, bytes] | None:
        """The newest kept state that is not after `until`."""
        ...

    async def kept_versions(self, history: HistoryId, projection: str) -> Sequence[int]:
        """The versions of a projection of which states are kept, sorted."""
        ...


class Clock(Protocol):
    """A source of time. It never goes backwards within one clock."""

    def now(self) -> Instant:
        """The present instant."""

    def wall(self) -> Instant:
        """The present instant as the machine has it, which may go backwards."""

    def steady(self) -> int:
        """Microseconds since an arbitrary moment; not affected when the system clock is set."""

    async def wait_until(self, instant: Instant) -> None:
        """Wait until `instant` or later."""


class UidSource(Protocol):
    """A source of new uids."""

    def uid(self) -> Uid:
        """A new uid: 36 characters, lower case, RFC 4122."""
        ...


class ClusterSource(Protocol):
    """A real cluster, read only: no method can change anything.

    Each method raises Unauthorized, Forbidden, NotFound (the kind is not served), TooManyRequests,
    Expired (the resource version is compacted), RevisionTooLarge (the resource version is in the
    future) or ClusterUnreachable.
    """

    @property
    def name(self) -> str:
        """The name of the source in events and messages."""
        ...

    @property
    def clock_offset(self) -> int:
        """Microseconds that the server's clock is ahead of ours; 0 when the clocks may agree."""
        ...

    @property
    def clock_spread(self) -> int:
        """The uncertainty of `clock_offset`, in microseconds."""
        ...

    async def identity(self) -> ClusterIdentity:
        """The identity of the cluster that answers."""
        ...

    async def kinds(self) -> tuple[list[ServedKind], list[str]]:
        """The chosen kinds that are served, and the names of those that are not."""
        ...

    async def list_page(
        self, kind: ServedKind, *, limit: int, version: str = "", token: str = ""
    ) -> ListPage:
        """A page of the objects of a kind, at exactly `version` or now; `token` continues."""
        ...

    async def versions_page(
        self, kind: ServedKind, *, limit: int, version: str, token: str = ""
    ) -> tuple[list[ObjectVersion], str]:
        """A page of the objects at exactly a version, without content; the next page's token."""
        ...

    def watch(
        self, kind: ServedKind, *, after: str, seconds: int
    ) -> AbstractAsyncContextManager[AsyncIterator[WatchItem]]:
        """The changes of a kind after a version, until the server stops or `seconds` pass."""
        ...


class WebhookCaller(Protocol):
    """Calls admission webhooks."""

    async def call(self, target: WebhookTarget, body: bytes, *, seconds: int) -> bytes:
        """The body of the webhook's answer. Raises WebhookFailed with the reason as text."""
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
        """A bound increment function of a counter, for hot paths."""
        ...

    def observer(self, name: str, /, **labels: str) -> Callable[[float], None]:
        """A bound observe function of a histogram, for hot paths."""
        ...

    def observe(self, name: str, seconds: float, /, **labels: str) -> None:
        """Record a value in a histogram."""
        ...


class Match(StrEnum):
    """The result of an expression for a device."""

    MATCH = "match"
    NO_MATCH = "no match"
    ERROR = "error"


@dataclass(frozen=True, slots=True, kw_only=True)
class Opinion:
    """The answer of another evaluator; None with the `reason` when it cannot answer."""

    answer: Match | None
    reason: str = ""


class SecondOpinion(Protocol):
    """Another evaluator of device selectors, which shares no code with `domain.cel`."""

    @property
    def name(self) -> str:
        """The name of the evaluator, for messages."""
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
        """Evaluate the expression for a device, given by the parts of the API object.

        Never raises: a failure is the reason of an opinion without an answer.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimePorts:
    """The implementations of a runtime's ports; None where no views or webhooks are used."""

    log: EventLog
    wake_up: WakeUp
    clock: Clock
    uids: UidSource
    views: ViewStore | None = None
    webhooks: WebhookCaller | None = None
