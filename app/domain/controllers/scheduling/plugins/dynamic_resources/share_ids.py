"""Ids of device shares, derived from the pod and its claims.

Upstream draws them at random; with derived ids, a repeated decision is equal byte for byte.
"""

import hashlib
from collections.abc import Callable, Sequence
from uuid import UUID

from app.domain.values.identifiers import Uid


def derived(pod_uid: Uid, claim_uids: Sequence[str]) -> Callable[[], str]:
    """A source of ids for one attempt of a pod on its unallocated claims."""
    seed = "/".join((pod_uid, *claim_uids))
    count = 0

    def draw() -> str:
        nonlocal count
        count += 1
        digest = hashlib.sha256(f"{seed}#{count}".encode()).digest()
        return str(UUID(bytes=digest[:16], version=4))

    return draw
