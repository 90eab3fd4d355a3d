"""The reservations of claims that a scheduler writes before it binds their pod.

A binding is answered without a version, so its time alone places it among the writes of other
objects. A scheduler binds a pod after it has reserved the claims, and each of its requests may be
answered by another server. So a binding that is dated before a reservation, by no more than clocks
differ, came after it, or was made too early: the log does not tell which. It is placed where it is
right, and marked. Parity: controllers.md 3.7.
"""

from dataclasses import dataclass

import msgspec

from app.adapters.history import times
from app.adapters.history.joining.spool import Spool
from app.domain.log.records import Loss, Record, join_losses
from app.domain.values import api_resources
from app.domain.values.fields import dra
from app.domain.values.timestamps import Instant


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reservation:
    """The first write by a user that reserves a claim for a pod."""

    version: str
    answered: int


class Reservations:
    """The first reservations by user, epoch and uid of the pod; a user's are read when needed."""

    def __init__(self, spool: Spool) -> None:
        self._spool = spool
        self._by_user: dict[str, dict[tuple[int, str], list[_Reservation]]] = {}

    def after(self, binding: Record, version: str, following: str | None) -> _Reservation | None:
        """The last reservation behind a binding at `version` that may have come before it.

        `following` is the pod's next version, if it is known: the binding is older. None when the
        binding was answered too long before some reservation.
        """
        answered, actor = binding.observed_at, binding.actor
        if answered is None or actor is None:
            return None
        if actor.user not in self._by_user:
            self._by_user[actor.user] = self._read(actor.user)
        later = [
            each
            for each in self._by_user[actor.user].get((binding.order_key[0], binding.uid), ())
            if version < each.version and (following is None or each.version < following)
        ]
        if not later or max(each.answered for each in later) - answered >= times.CLOCK_SKEW:
            return None
        return max(later, key=lambda each: each.version)

    def _read(self, user: str) -> dict[tuple[int, str], list[_Reservation]]:
        kind = "\0".join(api_resources.RESOURCE_CLAIMS)
        cursor = self._spool.database.execute(
            "SELECT epoch, key, own, time, body FROM record WHERE key > ? AND key < ? "
            "AND own <> '' AND exact AND time IS NOT NULL AND who = ? AND op = 'MODIFIED' "
            "ORDER BY epoch, key, own",
            (f"{kind}\0", f"{kind}\1", user),
        )
        known: set[tuple[int, str, str]] = set()
        reservations: dict[tuple[int, str], list[_Reservation]] = {}
        for epoch, key, own, answered, body in cursor:
            for consumer in dra.consumers(self._spool.tree_in(body) or {}):
                if (epoch, key, consumer.uid) not in known:
                    known.add((epoch, key, consumer.uid))
                    reservations.setdefault((epoch, consumer.uid), []).append(
                        _Reservation(version=own, answered=answered)
                    )
        return reservations


def moved_after(binding: Record, reservation: _Reservation) -> Record:
    """The binding, dated as if the clock of its server showed what that of the other one does."""
    requested, answered = binding.asked_at, binding.observed_at
    if answered is None:
        return binding
    offset = reservation.answered - (answered if requested is None else requested)
    return msgspec.structs.replace(
        binding,
        observed_at=Instant(answered + offset),
        asked_at=None if requested is None else Instant(requested + offset),
        losses=join_losses(binding.losses, (Loss.CLOCKS_DIFFER,)),
    )
