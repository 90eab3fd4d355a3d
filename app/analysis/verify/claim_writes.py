"""Writes of claims by upstream's controllers: reservations, and the identifiers of shares.

Two rules follow from how upstream's scheduler and claim controller write `status.reservedFor`,
not from the API's words, so the invariants do not have them:

- The scheduler reserves a claim for one pod in one update, and appends its reference at the end.
  Parity: controllers.md 3.7.
- The claim controller reserves it for one pod in the same way, or removes references of pods that
  ended; the others keep their order. Parity: controllers.md 2.3.

A user may write any order, and a second scheduler as well: only the writes of these two are judged,
and only updates that follow the state before them. An update names the version that it changes, so
a line that is missing in between is known as a gap. The form of a share's identifier follows from
validation. Parity: objects.md 2.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import msgspec
from msgspec import Raw

from app.analysis.verify.invariants import Moment, Violation, ViolationKind
from app.domain.log import Event, EventType, ObjectKey
from app.domain.log.raw_parts import RawClaim
from app.domain.values import api_resources
from app.domain.values.identifiers import Uid

RULES: Mapping[str, str] = {
    "reservation-appended": "The scheduler and the claim controller reserve a claim for one "
    "consumer in a write, at the end, and keep the others in their order.",
    "share-has-uuid": "The identifier of a share is a UUID in lower case.",
}
"""All rules by name, each as a sentence that holds of a sound history."""

_SCHEDULER = "system:kube-scheduler"
_CLAIM_CONTROLLERS = (
    "system:serviceaccount:kube-system:resource-claim-controller",
    "system:kube-controller-manager",
)
_WRITERS = frozenset((_SCHEDULER, *_CLAIM_CONTROLLERS))
_UUID = re.compile("[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class _Consumer(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """An entry of `status.reservedFor`."""

    api_group: str = ""
    resource: str = ""
    name: str = ""
    uid: str = ""


class _Result(msgspec.Struct, frozen=True, gc=False):
    """The identifier of the share that a result gives, if any."""

    share_id: str = msgspec.field(default="", name="shareID")


class _WrittenDevices(msgspec.Struct, frozen=True, gc=False):
    results: tuple[_Result, ...] = ()


class _WrittenAllocation(msgspec.Struct, frozen=True, gc=False):
    devices: _WrittenDevices = _WrittenDevices()


_consumers = msgspec.json.Decoder(tuple[_Consumer, ...]).decode
_allocation = msgspec.json.Decoder(_WrittenAllocation).decode


@dataclass(slots=True)
class _Known:
    """The last state of a claim; `is_whole` when it was recorded itself, with all its parts."""

    uid: Uid
    raw_reserved: Raw
    raw_allocation: Raw
    reserved: tuple[_Consumer, ...]
    is_whole: bool
    open: dict[str, Violation] = field(default_factory=dict)


@dataclass(slots=True)
class ClaimWriteWatch:
    """Follows the events of one history in order, from the first one on."""

    _claims: dict[ObjectKey, _Known] = field(default_factory=dict)
    _ended: list[Violation] = field(default_factory=list)

    def take(self, event: Event, claim: RawClaim | None) -> None:
        """Follow one event: the write or deletion of a claim, with its parts, or a gap."""
        key = event.key
        if event.type is EventType.GAP_OBSERVED:
            self._take_gap(key)
        elif key[:2] == api_resources.RESOURCE_CLAIMS and event.is_about_object:
            known = self._claims.get(key)
            if known is not None and (claim is None or known.uid != event.uid):
                self._end(known, event, *RULES)
                known = None
            if claim is None:
                self._claims.pop(key, None)
            else:
                self._take_claim(event, claim, known)

    def violations(self) -> list[Violation]:
        """The violations so far, in the order in which they began."""
        still = [each for known in self._claims.values() for each in known.open.values()]
        return sorted([*self._ended, *still], key=lambda each: each.begin.revision)

    def _take_gap(self, key: ObjectKey) -> None:
        """Forget that the state of a claim, or of all, is the one before the next write."""
        if key.name:
            known = self._claims.get(key._replace(group=api_resources.RESOURCE_CLAIMS[0]))
            if known is not None and key.resource == api_resources.RESOURCE_CLAIMS[1]:
                known.is_whole = False
        elif key.resource in ("", api_resources.RESOURCE_CLAIMS[1]) or key.group == "redra":
            for known in self._claims.values():
                known.is_whole = False

    def _take_claim(self, event: Event, claim: RawClaim, known: _Known | None) -> None:
        status, origin = claim.status, event.stamp.origin
        is_whole = origin is None or not origin.losses
        if known is None:
            known = _Known(event.uid, Raw(), Raw(), (), is_whole=False)
            self._claims[event.key] = known
        if status.reserved_for != known.raw_reserved:
            before = known.reserved
            known.raw_reserved = status.reserved_for.copy()
            known.reserved = _read_consumers(status.reserved_for)
            is_judged = is_whole and known.is_whole and _is_by_version(event)
            if not known.reserved:
                self._end(known, event, "reservation-appended")
            elif is_judged and (problem := _problem(before, known.reserved)):
                self._begin(known, event, "reservation-appended", problem)
        if status.allocation != known.raw_allocation:
            known.raw_allocation = status.allocation.copy()
            self._end(known, event, "share-has-uuid")
            if is_whole and b'"shareID"' in bytes(status.allocation):
                for share in _odd_shares(status.allocation):
                    message = f"the identifier of a share is {share!r}, which is no UUID"
                    self._begin(known, event, "share-has-uuid", message)
        known.is_whole = is_whole

    def _begin(self, known: _Known, event: Event, rule: str, message: str) -> None:
        known.open.setdefault(
            rule,
            Violation(
                rule=rule,
                kind=ViolationKind.BROKEN,
                objects=(event.key,),
                message=message,
                begin=_moment(event),
                end=None,
            ),
        )

    def _end(self, known: _Known, event: Event, *rules: str) -> None:
        for rule in rules:
            violation = known.open.pop(rule, None)
            if violation is not None:
                self._ended.append(replace(violation, end=_moment(event)))


def _is_by_version(event: Event) -> bool:
    """Whether one of the two wrote, upon a state whose version is known.

    A patch names no version, so that a missing line before it would not be noticed.
    """
    if event.type is not EventType.OBJECT_UPDATED or event.stamp.actor.user not in _WRITERS:
        return False
    return event.stamp.origin is None or event.stamp.verb == "update"


def _problem(before: tuple[_Consumer, ...], after: tuple[_Consumer, ...]) -> str:
    """The change of a claim's reservations that neither of them makes; empty for others."""
    added = [each for each in after if each not in before]
    kept = [each for each in before if each in after]
    if len(added) > 1:
        return f"one write reserved the claim for {len(added)} consumers"
    if added and len(kept) < len(before):
        return "one write added a reservation and removed another one"
    if list(after) != [*kept, *added]:
        return "the reservations of the claim are not in the order in which they were made"
    return ""


def _read_consumers(part: Raw) -> tuple[_Consumer, ...]:
    """The entries; none where they cannot be read, which the invariants name."""
    try:
        return _consumers(part) if part else ()
    except msgspec.ValidationError:
        return ()


def _odd_shares(part: Raw) -> Iterator[str]:
    try:
        results = _allocation(part).devices.results
    except msgspec.ValidationError:
        return
    for result in results:
        if result.share_id and not _UUID.fullmatch(result.share_id):
            yield result.share_id


def _moment(event: Event) -> Moment:
    return Moment(revision=event.revision, time=event.stamp.time)
