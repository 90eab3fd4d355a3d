"""Detection of missing stretches of an audit log, from later lines that imply unrecorded writes.

A request names the version that it changes, an object the second of its creation, and a pod with a
node or a deletionTimestamp was bound or deleted before. Each of these can imply one write, between
two versions, that is not in the log. A single one is a lost line. When such writes of several
objects lie between the same versions, a stretch is missing, and any object may have changed in it,
even if no later line implies it.

Example: a request changes version 40 of a claim, which no line shows; the adjacent lines have
versions 31 and 55. A pod that was created in that second is first seen at version 60. The writes
between 31 and 55 are unknown, for every object. Parity: history-formats.md 4.5.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from app.adapters.history import times
from app.adapters.history.joining.spool import Spool
from app.adapters.history.reading import Notes
from app.domain.log.records import (
    BoundEffect,
    Loss,
    Op,
    Quality,
    Record,
    TerminatingEffect,
    TimeQuality,
    comparable_version,
)
from app.domain.values import api_groups, timestamps
from app.domain.values.fields import core, dra, meta

_JUDGED = (f"{api_groups.RESOURCE}\0", "\0pods\0", "\0nodes\0")
"""Prefixes of the keys checked for unrecorded writes: no policy omits their creators."""

_VERSIONED = f"{api_groups.RESOURCE}\0"
_PODS = "\0pods\0"
_CLAIMS = f"{api_groups.RESOURCE}\0resourceclaims\0"
_NAMESPACES = "\0namespaces\0"


class _Missing(NamedTuple):
    """An unrecorded write, after the version `after` and before the version `before`."""

    before: str
    after: str
    key: str
    row: int


@dataclass(slots=True)
class _Epoch:
    """The answered writes between two restores: their versions in order, and their times."""

    versions: list[str] = field(default_factory=list)
    answered: list[tuple[int, str]] = field(default_factory=list)
    namespaces: set[str] = field(default_factory=set)
    begun: int | None = None

    def version_by(self, time: int) -> str:
        """The highest version answered before a time. Call `settle` first."""
        index = bisect_left(self.answered, (time, ""))
        return self.answered[index - 1][1] if index else ""

    def settle(self) -> None:
        """Sort the responses by time, and give each the highest version answered by then."""
        self.answered.sort()
        highest = ""
        for index, (time, version) in enumerate(self.answered):
            highest = max(highest, version)
            self.answered[index] = time, highest


def note(spool: Spool, notes: Notes) -> None:
    """Add a gap of all kinds for each missing stretch of the log."""
    epochs = _epochs(spool)
    _note_beginning(spool, epochs, notes)
    missing: dict[int, list[_Missing]] = {}
    for epoch, one in _changed_upon_unseen(spool, epochs):
        missing.setdefault(epoch, []).append(one)
    for epoch, one in _made_unseen(spool, epochs):
        missing.setdefault(epoch, []).append(one)
    for epoch, one in _allocated_unseen(spool):
        if epoch in epochs:
            missing.setdefault(epoch, []).append(one)
    if not missing:
        return
    for epoch, one in _done_to_pods_unseen(spool):
        if epoch in missing:
            missing[epoch].append(one)
    for epoch, writes in missing.items():
        for stretch in _stretches(writes):
            _put(spool, epoch, epochs[epoch], stretch, notes)


def _epochs(spool: Spool) -> dict[int, _Epoch]:
    epochs: dict[int, _Epoch] = {}
    rows = spool.database.execute(
        "SELECT epoch, own, key, asked, time FROM record WHERE own <> '' AND actor AND exact "
        "AND time IS NOT NULL AND op IN ('ADDED', 'MODIFIED', 'DELETED') ORDER BY epoch, own"
    )
    for number, own, key, received, time in rows:
        epoch = epochs.setdefault(number, _Epoch())
        epoch.namespaces.add(key.split("\0")[2])
        epoch.versions.append(own)
        epoch.answered.append((time, own))
        came = time if received is None else received
        epoch.begun = came if epoch.begun is None else min(epoch.begun, came)
    for epoch in epochs.values():
        epoch.settle()
    return epochs


def _note_beginning(spool: Spool, epochs: dict[int, _Epoch], notes: Notes) -> None:
    """Add a gap if the log began late: it creates namespaces, but also writes in others."""
    rows = spool.database.execute(
        "SELECT key, op FROM record WHERE key >= ? AND key < ?", _range(_NAMESPACES)
    ).fetchall()
    if not epochs or not any(op == "ADDED" for _, op in rows):
        return
    first = min(epochs)
    known = {key.split("\0")[3] for key, _ in rows} | {""}
    unknown = sorted(epochs[first].namespaces - known)
    if not unknown:
        return
    message = (
        f"the log began late: an object is written in namespace {unknown[0]}, whose creation "
        "the log does not have, so any object may have existed before"
    )
    notes.add(message)
    witness = spool.row(_first_row(spool)).record
    beginning = Record(
        source=witness.source,
        position=witness.position,
        op=Op.GAP,
        object_quality=Quality.IDENTITY,
        order_key=(first, "", 1, *witness.order_key[3:]),
        losses=(Loss.NO_BASELINE,),
        message=message,
    )
    spool.put(beginning)
    for name in unknown:
        tree = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        namespace = msgspec.structs.replace(
            beginning,
            op=Op.BASELINE,
            version="v1",
            resource="namespaces",
            kind="Namespace",
            name=name,
            object={**tree, "status": {"phase": "Active"}},
            losses=(Loss.NO_UID, Loss.SYNTHETIC_CREATE),
            message="",
        )
        spool.put(namespace)


def _first_row(spool: Spool) -> int:
    (row,) = spool.database.execute("SELECT min(row) FROM record").fetchone()
    return int(row)


def _changed_upon_unseen(spool: Spool, epochs: dict[int, _Epoch]) -> Iterator[tuple[int, _Missing]]:
    """Unrecorded writes of versions that a later request names, each at its version."""
    rows = spool.database.execute(
        "SELECT row, epoch, key, own, actor, head FROM record WHERE own <> '' "
        "AND op IN ('ADDED', 'MODIFIED', 'DELETED', 'BASELINE') "
        "AND key >= ? AND key < ? ORDER BY epoch, key, own",
        _range(_VERSIONED),
    )
    last: tuple[int, str, str] = (-1, "", "")
    for row, number, key, own, actor, head in rows:
        known = last[2] if last[:2] == (number, key) else ""
        last = number, key, own
        epoch = epochs.get(number)
        if not actor or epoch is None:
            continue
        record = spool.record_in(head)
        if record.is_deletion_request:
            continue
        upon = comparable_version(record.upon)
        if known < upon < own:
            place = bisect_right(epoch.versions, upon)
            if 0 < place < len(epoch.versions):
                after, before = epoch.versions[place - 1], epoch.versions[place]
                yield number, _Missing(before, after, key, row)


def _made_unseen(spool: Spool, epochs: dict[int, _Epoch]) -> Iterator[tuple[int, _Missing]]:
    """Unrecorded creations since the log began: objects first seen in a change or deletion."""
    rows = spool.database.execute(
        "SELECT row, epoch, key, version, op, actor, body, min(version || ' ' || sub) FROM record "
        "WHERE op IN ('ADDED', 'MODIFIED', 'DELETED', 'BASELINE') GROUP BY epoch, key, uid "
        "ORDER BY epoch, version"
    )
    for row, number, key, version, op, actor, body, _ in rows:
        epoch = epochs.get(number)
        is_judged = key.startswith(_JUDGED)
        if epoch is None or not (actor and is_judged) or op not in ("MODIFIED", "DELETED"):
            continue
        made = times.creation(spool.tree_in(body) or {})
        if made is None or epoch.begun is None or made <= epoch.begun + times.CLOCK_SKEW:
            continue
        after = epoch.version_by(made)
        if after and after < version:
            yield number, _Missing(_before(epoch, made, version), after, key, row)


def _before(epoch: _Epoch, made: int, seen: str) -> str:
    """A version certainly assigned after a creation, whose time is known to the second."""
    latest = made + timestamps.SECOND + times.CLOCK_SKEW
    place = bisect_left(epoch.answered, (latest, ""))
    return min([seen, *(version for _, version in epoch.answered[place : place + 1])])


def _allocated_unseen(spool: Spool) -> Iterator[tuple[int, _Missing]]:
    """Unrecorded allocations and deallocations of claims, which only their deletions show."""
    rows = spool.database.execute(
        "SELECT row, epoch, key, uid, own, head, body FROM record WHERE key >= ? AND key < ? "
        "AND actor AND op IN ('ADDED', 'MODIFIED', 'DELETED') ORDER BY epoch, key, version, sub",
        _range(_CLAIMS),
    )
    of = (-1, "", "")
    last, was_allocated = "", False
    for row, epoch, key, uid, own, head, body in rows:
        record = spool.record_in(head)
        claim = epoch, key, uid or (of[2] if of[:2] == (epoch, key) else "")
        if claim != of:
            of, last = claim, ""
        is_whole = own and record.effect is None and record.object_quality is Quality.FULL
        tree = spool.tree_in(body) if is_whole else None
        if tree is None:
            last = ""  # what it did is not known
            continue
        is_allocated = dra.allocation(tree) is not None
        if last and record.verb == "delete" and is_allocated is not was_allocated:
            yield epoch, _Missing(own, last, key, row)
        last, was_allocated = own, is_allocated


def _done_to_pods_unseen(spool: Spool) -> Iterator[tuple[int, _Missing]]:
    """Unrecorded bindings and deletions of pods, which only later states show."""
    rows = spool.database.execute(
        "SELECT row, epoch, key, uid, own, head, body FROM record WHERE key >= ? AND key < ? "
        "AND actor AND op IN ('ADDED', 'MODIFIED', 'DELETED') ORDER BY epoch, key, version, sub",
        _range(_PODS),
    )
    of = (-1, "", "")
    last, is_bound, is_ending = "", False, False
    for row, epoch, key, uid, own, head, body in rows:
        record = spool.record_in(head)
        # A request may omit the uid.
        pod = epoch, key, uid or (of[2] if of[:2] == (epoch, key) else "")
        if pod != of:
            of, last, is_bound, is_ending = pod, "", False, False
        is_bound |= isinstance(record.effect, BoundEffect)
        is_ending |= isinstance(record.effect, TerminatingEffect) or record.verb.startswith(
            "delete"
        )
        tree = spool.tree_in(body) if own and record.effect is None else None
        if tree is None:
            continue
        has_node, has_end = bool(core.node_name(tree)), bool(meta.deletion_timestamp(tree))
        if last and ((has_node and not is_bound) or (has_end and not is_ending)):
            yield epoch, _Missing(own, last, key, row)
        last, is_bound, is_ending = own, is_bound or has_node, is_ending or has_end


def _range(prefix: str) -> tuple[str, str]:
    """The range of keys with a prefix: inclusive start and exclusive end."""
    return prefix, prefix[:-1] + "\1"


def _stretches(missing: Sequence[_Missing]) -> Iterator[list[_Missing]]:
    """Groups of unrecorded writes of several objects that may lie between the same two versions."""
    left = sorted(missing)
    while left:
        first = left[0]
        together = [one for one in left if one.after < first.before]
        left = [one for one in left if one.after >= first.before]
        if len({one.key for one in together}) > 1:
            yield together


def _put(spool: Spool, number: int, epoch: _Epoch, stretch: list[_Missing], notes: Notes) -> None:
    """Add gaps for the versions of a missing stretch, in which any object may have changed.

    Recorded changes between these versions may precede the missing writes, so a gap is added at
    both ends.
    """
    after = max(one.after for one in stretch)
    before = min(one.before for one in stretch)
    witness = spool.row(min(stretch).row).record
    keys = {one.key for one in stretch}
    message = (
        f"a stretch of the log is missing: later lines show that {len(keys)} objects were "
        "written by no line of the log, so other objects may have been written, too"
    )
    notes.count("stretches that are missing in the log, in which any object may have changed")
    last = epoch.versions[bisect_left(epoch.versions, before) - 1]
    for version in dict.fromkeys((after, last)):
        record = Record(
            source=witness.source,
            position=witness.position,
            op=Op.GAP,
            object_quality=Quality.IDENTITY,
            time_quality=TimeQuality.NONE,
            order_key=(number, version, 1, *witness.order_key[3:]),
            losses=(Loss.GAP,),
            message=message,
        )
        spool.put(record)
