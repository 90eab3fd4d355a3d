"""Which of several equally good nodes is taken, when it is not the order of upstream's heap.

Parity: controllers.md 4.5 and C17. Later releases are to draw at random; here the draw follows from
the pod's uid, which is in the log, so that it can be repeated.
"""

import hashlib
from collections.abc import Sequence


def drawn(pod_uid: str, names: Sequence[str]) -> str:
    """One of the names, each as likely as the others; the same for the same pod and names."""
    digest = hashlib.sha256(pod_uid.encode()).digest()
    return names[int.from_bytes(digest[:8]) % len(names)]
