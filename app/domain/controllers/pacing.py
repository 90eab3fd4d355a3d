"""When a controller may look at a key: the pace that a replay takes from a recording.

In a real control plane milliseconds decide who comes first: workers, rate limits, back-off with
jitter, caches that lag behind. A replay takes these instants, and nothing else, from what it
replays; what is decided then is decided here. Live histories have no pace: every key is looked at
as soon as it is ready.
"""

from dataclasses import dataclass
from typing import Protocol

from app.domain.values.timestamps import Instant


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """What one attempt to place a pod came to: a node with devices, or a message.

    `devices` are `request: pool/device` of the claims that it allocates, sorted.
    """

    node: str = ""
    devices: tuple[str, ...] = ()
    message: str = ""


class Pace(Protocol):
    """Says from which instant on a key of a queue may be looked at."""

    def not_before(self, queue: str, key: tuple[str, ...], now: Instant) -> Instant:
        """The instant; at or before `now` means at once, and counts as looked at."""
        ...

    def version_seen(self, pod: str, now: Instant) -> str:
        """The version of the pod (a uid) that its present attempt saw; empty: the newest.

        Where writes wait for the rate limit of a client, attempts see the pod as it was before.
        """
        ...

    def put_off(self, pod: str, tried: Tried, now: Instant) -> Instant | None:
        """When to try the pod (a uid) again at the latest; None: the attempt counts.

        The instant of an attempt is known up to a few milliseconds. While others that were made at
        about the same time are still to come, one of them may have been first.
        """
        ...
