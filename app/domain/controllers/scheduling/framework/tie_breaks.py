"""The choice among equally good nodes by the pod's uid, in place of upstream's heap order.

Parity: controllers.md 4.5 and C17. Later releases are to draw at random; here the choice derives
from the pod's uid, which is in the log, so that it can be repeated.
"""

import hashlib
from collections.abc import Sequence


def drawn(pod_uid: str, names: Sequence[str]) -> str:
    """Chooses one of the names with equal probability; equal arguments give the same name."""
    digest = hashlib.sha256(pod_uid.encode()).digest()
    return names[int.from_bytes(digest[:8]) % len(names)]
