"""The pace of a replay: the recorded instants at which a controller may process a key.

In a real control plane milliseconds determine the order of work: workers, rate limits, back-off
with jitter, lagging caches. A replay takes only these instants from the recording; the controllers
here make the decisions. Live histories have no pace: every key is processed as soon as it is ready.
"""

from dataclasses import dataclass, field
from typing import Protocol

from app.domain.log import Event, ObjectKey
from app.domain.values.identifiers import NamespacedName, Uid
from app.domain.values.timestamps import Instant


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptOutcome:
    """The outcome of one attempt to place a pod: a node with devices, or a message.

    `devices` are `request: pool/device` of the claims that it allocates, sorted. `plugins` refused
    the pod. With `moves_others` an attempt without a node evicts pods or frees a claim for the pod.
    Recorded attempts have neither, so they are not compared.
    """

    node: str = ""
    devices: tuple[str, ...] = ()
    message: str = ""
    moves_others: bool = field(default=False, compare=False)
    plugins: frozenset[str] = field(default=frozenset(), compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class NextTry:
    """The next recorded act for a key whose work failed; it came no later than `latest`.

    `begun` is when another process may have taken over since the failure before the last one; that
    process counts no failures of others. None if the process was the same.
    """

    at: Instant
    latest: Instant
    begun: Instant | None = None


class ClaimsCache(Protocol):
    """The differences of the claim controller's cache from the store in a replay."""

    @property
    def tells_looks(self) -> bool:
        """Whether a finished pod is looked at when that was recorded, and only then."""
        ...

    def sees_end_late(self, event: Event) -> bool:
        """Whether the controller sees the end of a pod, which an event shows, a while later."""
        ...

    def claims_max(self, pod: Uid) -> int:
        """The most claims that a finished pod gets for an entry."""
        ...

    def template_seen(self, template: ObjectKey, pod: NamespacedName) -> Instant | None:
        """The instant from which a template is seen for a pod; None if once it was made."""
        ...


class Pace(Protocol):
    """Decides from which instant on a key of a queue may be processed."""

    @property
    def claims_cache(self) -> ClaimsCache:
        """The cache of the claim controller."""
        ...

    def not_before(self, queue: str, key: tuple[str, ...], now: Instant) -> Instant:
        """The instant; one at or before `now` means at once, and counts as processed."""
        ...

    def next_try(
        self, queue: str, key: tuple[str, ...], failures: tuple[Instant, Instant], until: Instant
    ) -> NextTry | None:
        """The next act for a key after its last two `failures`, if one is known before `until`."""
        ...

    def seen_from(self, event: Event) -> Instant:
        """The earliest instant at which a controller can have seen the write of an event.

        A recording may know only that others could see the write by the time of the event. Timers
        that count from the write may have begun before that.
        """
        ...

    def wait_ends(self, pod: str, now: Instant) -> Instant | None:
        """The next end of the wait of a pod (a uid) for its devices; None if unknown.

        The scheduler looks at their conditions at intervals, of which a recording shows no start.
        """
        ...

    def wait_lost(self, pod: str, begun: Instant) -> Instant | None:
        """The end of the process in which a pod (a uid) waits since `begun`; None if unknown.

        Its successor knows nothing of the wait, and tries the pod anew.
        """
        ...

    def forget_wait(self, pod: str) -> None:
        """Notes that the wait that was lost has ended: the next one is of the successor."""
        ...

    def version_seen(self, pod: str, newest: str, now: Instant) -> str:
        """The version of the pod (a uid) that its current attempt saw; usually the newest.

        While a write waits for the rate limit of a client, attempts see the pod before that write.
        """
        ...

    def put_off(self, pod: str, tried: AttemptOutcome, now: Instant) -> Instant | None:
        """The latest instant to try the pod (a uid) again; None when the attempt counts.

        The instant of an attempt is known to within a few milliseconds. While other attempts of
        about the same time are still to come, one of them may have been first.
        """
        ...
