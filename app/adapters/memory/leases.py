"""Leases in memory, timed by a given clock."""

from app.adapters.memory.store import Lease, MemoryStore
from app.domain.errors import NotFound
from app.domain.log import Head, HistoryId, LeaseToken
from app.domain.values.timestamps import SECOND, Instant
from app.ports import Clock


class MemoryLeases:
    """Leases in the same store as the log, so that appends see take-overs at once."""

    def __init__(self, store: MemoryStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def acquire(
        self, history: HistoryId, name: str, holder: str, *, seconds: float
    ) -> LeaseToken | None:
        """Take the lease when it is free, expired or ours; None when another holder has it."""
        held = self._store.history(history)
        now = self._clock.now()
        lease = held.leases.get(name)
        if lease is None or (lease.token.holder != holder and lease.until <= now):
            head = held.head
            epoch = head.epoch + 1
            held.head = Head(revision=head.revision, epoch=epoch, hash=head.hash, time=head.time)
            token = LeaseToken(name=name, epoch=epoch, holder=holder)
        elif lease.token.holder == holder:
            token = lease.token
        else:
            return None
        held.leases[name] = Lease(token=token, until=_end(now, seconds))
        return token

    async def renew(self, history: HistoryId, token: LeaseToken, *, seconds: float) -> bool:
        """Prolong the lease; False when it was taken over or released."""
        lease = self._store.history(history).leases.get(token.name)
        if lease is None or lease.token.epoch != token.epoch:
            return False
        lease.until = _end(self._clock.now(), seconds)
        return True

    async def release(self, history: HistoryId, token: LeaseToken) -> None:
        """Release the lease; nothing happens when it was taken over or the history is deleted."""
        try:
            leases = self._store.history(history).leases
        except NotFound:
            return
        lease = leases.get(token.name)
        if lease is not None and lease.token.epoch == token.epoch:
            del leases[token.name]

    async def holders(self, history: HistoryId) -> dict[str, str]:
        """The holders of the leases that have not expired."""
        now = self._clock.now()
        leases = self._store.history(history).leases
        return {name: lease.token.holder for name, lease in leases.items() if lease.until > now}


def _end(now: Instant, seconds: float) -> Instant:
    return Instant(now + round(seconds * SECOND))
