"""The pauses of schedulers in which another process of the same name may have taken over.

A process that takes over knows nothing of what the one before it had chosen, and chooses anew.
Nothing but a pause shows that it may have come to that. What shows that it did not is the Lease of
the leader election: it names its holder and counts how often that changed. If both are the same
before a pause and after it, the process is, too. That holds only for a holder whose name ends with
an id of its own, as that of kube-scheduler does: a process that has the name of its host alone
takes its Lease up again after a restart.
"""

import re
from typing import NamedTuple

from msgspec import Raw, Struct

from app.domain.controllers.kubelet.annotations import LEASE_NAMESPACE
from app.domain.log import Event, EventType, ObjectKey
from app.domain.log.raw_parts import ABSENT, splitter
from app.domain.values import api_resources
from app.domain.values.timestamps import SECOND, Instant

HANDED_OVER = 2 * SECOND
"""Another process may have taken over from one that paused for so long.

A scheduler that is ended in order gives back its lease. The others ask for it with this interval,
the retryPeriod of the leader election.
"""

_OWN_ID = re.compile(rb'[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"\Z')
"""The end of the name of a holder that is one process: a uid."""


class _HeldSpec(Struct, frozen=True, gc=False, rename="camel"):
    holder_identity: Raw = ABSENT
    lease_transitions: Raw = ABSENT


class _HeldLease(Struct, frozen=True, gc=False):
    """The part of a Lease that says who holds it."""

    spec: _HeldSpec = _HeldSpec()


_held = splitter(_HeldLease)


class _Term(NamedTuple):
    """The lines of a Lease in a row that show the same holder, from the first one to the last."""

    holder: tuple[str, bytes, bytes]
    first: Instant
    last: Instant


class _Pause(NamedTuple):
    """The writes of a user before a pause and after it: their numbers, and when they were made."""

    before: int
    after: int
    begin: Instant
    end: Instant


class Handovers:
    """The pauses and the Leases of users, while a log is read whose events are numbered."""

    def __init__(self) -> None:
        self._wrote: dict[str, tuple[int, Instant]] = {}
        self._pauses: dict[str, list[_Pause]] = {}
        self._terms: dict[str, dict[ObjectKey, list[_Term]]] = {}

    def note_write(self, user: str, number: int, at: Instant) -> None:
        """Notes a write of a user that is no renewal of its Lease."""
        before, then = self._wrote.get(user, (number, at))
        if at - then >= HANDED_OVER:
            self._pauses.setdefault(user, []).append(_Pause(before, number, then, at))
        self._wrote[user] = number, max(at, then)

    def note_lease(self, event: Event, at: Instant) -> None:
        """Notes who holds a Lease, if the event is about one of a leader election."""
        key = event.key
        if key[:2] != api_resources.LEASES or key.namespace == LEASE_NAMESPACE:
            return
        holder = (event.uid, b"", b"")
        if event.type is not EventType.OBJECT_DELETED and b'"holderIdentity"' in event.body:
            spec = _held(event.body).spec
            name = bytes(spec.holder_identity)
            if _OWN_ID.search(name) is not None:
                holder = (event.uid, name, bytes(spec.lease_transitions))
        terms = self._terms.setdefault(event.stamp.actor.user, {}).setdefault(key, [])
        if terms and terms[-1].holder == holder:
            terms[-1] = terms[-1]._replace(last=at)
        else:
            terms.append(_Term(holder, at, at))

    def may_lie_between(self, user: str, first: int, last: int) -> bool:
        """Whether another process may have taken over between two writes of a user."""
        return any(
            first <= pause.before
            and pause.after <= last
            and not self.is_one_process(user, pause.begin, pause.end)
            for pause in self._pauses.get(user, ())
        )

    def is_one_process(self, user: str, begin: Instant, end: Instant) -> bool:
        """Whether each Lease that the user had before a pause shows that it has it after that."""
        held = [terms for terms in self._terms.get(user, {}).values() if terms[0].first < begin]
        return bool(held) and all(
            any(term.holder[1] and term.first < begin and end < term.last for term in terms)
            for terms in held
        )

    def is_led(self, user: str, begin: Instant, end: Instant) -> bool:
        """Whether a Lease of the user shows that a process had it at some time between these."""
        return begin <= end and any(
            term.holder[1] and term.first <= end and begin <= term.last
            for terms in self._terms.get(user, {}).values()
            for term in terms
        )
