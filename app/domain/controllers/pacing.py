"""The pace of a replay: the recorded instants at which a controller may process a key.

In a real control plane milliseconds determine the order of work: workers, rate limits, back-off
with jitter, lagging caches. A replay takes only these instants from the recording; the controllers
here make the decisions. Live histories have no pace: every key is processed as soon as it is ready.
"""

from dataclasses import dataclass, field
from typing import Protocol

from app.domain.values.timestamps import Instant


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptOutcome:
    """The outcome of one attempt to place a pod: a node with devices, or a message.

    `devices` are `request: pool/device` of the claims that it allocates, sorted. With
    `moves_others` an attempt without a node evicts pods or frees a claim for the pod; recorded
    attempts do not have it, so it is not compared.
    """

    node: str = ""
    devices: tuple[str, ...] = ()
    message: str = ""
    moves_others: bool = field(default=False, compare=False)


class Pace(Protocol):
    """Decides from which instant on a key of a queue may be processed."""

    def not_before(self, queue: str, key: tuple[str, ...], now: Instant) -> Instant:
        """The instant; one at or before `now` means at once, and counts as processed."""
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
