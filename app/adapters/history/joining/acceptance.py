"""Writes that a recording shows as accepted, and that no server accepts.

A request that names the version or the uid that it changes is refused for any other. A pod is
bound once. One version belongs to one write. An object is created once. What is removed is written
and removed no more.
Parity: api.md 5, controllers.md 4.6, 6.4.
"""

import msgspec

from app.adapters.history import times
from app.adapters.history.joining import contradictions, fixed_parts
from app.adapters.history.joining.fixed_parts import Parts
from app.adapters.history.joining.spool import Row
from app.domain.log.records import (
    BoundEffect,
    Contradiction,
    Loss,
    Op,
    Quality,
    Record,
    comparable_version,
)
from app.domain.values.timestamps import Instant

_CHANGES = frozenset({"update", "patch"})
_WRITES = frozenset({"create", *_CHANGES})


class Acceptance:
    """Follows the writes of a recording in the order of their versions."""

    def __init__(self) -> None:
        self._last: dict[tuple[str, str], tuple[str, Record]] = {}
        self._bound: dict[str, Record] = {}
        self._removed: dict[str, tuple[str, Record]] = {}

    def forget(self) -> None:
        """Forgets everything: a restored store counts anew, and its pods may be unbound."""
        self._last.clear()
        self._bound.clear()
        self._removed.clear()

    def remove(self, row: Row) -> None:
        """Notes a recorded removal with a version of its own."""
        if row.own and row.record.uid:
            self._removed[row.record.uid] = (
                row.own,
                msgspec.structs.replace(row.record, effect=None),
            )

    def written_when_gone(self, row: Row) -> Contradiction | None:
        """The contradiction of a write about an object that was removed before, by their versions.

        A line with an earlier version is one that came late.
        """
        record = row.record
        removed_at, removal = self._removed.get(record.uid, ("", record))
        is_stored = record.actor is not None and record.verb in _CHANGES
        if not (is_stored and record.object_quality is Quality.FULL and row.own):
            return None
        is_later = removed_at and row.own > removed_at
        return contradictions.of_removed(removal, record) if is_later else None

    def contradiction(self, row: Row, known: Record | None, own: str) -> Contradiction | None:
        """The contradiction of a write, if there is one.

        `own` is the version of the `known` state, or the last one before it: versions only rise. It
        is empty where none is known.
        """
        record = row.record
        shared = self._shares_version(row)
        if shared is not None:
            return contradictions.of_version(shared, record)
        if record.meant and record.uid and record.meant != record.uid and record.op is not Op.ADDED:
            return contradictions.of_meant(known or record, record)
        upon = comparable_version(record.upon)
        is_older = known is not None and own and row.own > own > upon and upon
        if known is not None and is_older and not _may_be_first_half(known, record):
            return contradictions.of_precondition(known, record)
        if isinstance(record.effect, BoundEffect) and record.uid:
            first = self._bound.setdefault(record.uid, record)
            is_named = Loss.IMMUTABLE in record.losses  # for its node
            if first is not record and not is_named and first.request_id != record.request_id:
                return contradictions.of_binding(first, record)
        return None

    def _shares_version(self, row: Row) -> Record | None:
        """The write of another object of the kind that has the same version.

        Kinds may have stores of their own, each of which counts for itself.
        """
        record = row.record
        is_write = record.op in (Op.ADDED, Op.MODIFIED) and record.verb in _WRITES
        if not (is_write and row.own and record.object_quality is Quality.FULL):
            return None
        place = record.group, record.resource
        own, last = self._last.get(place, ("", record))
        self._last[place] = row.own, record
        return last if own == row.own and last.key != record.key else None


def removed_twice(first: Record, record: Record) -> Contradiction | None:
    """The contradiction of the second of two removals of an object in one version, if there is one.

    Lines of one time are copies of one line, even if a collector gave each an id of its own.
    """
    is_asked = first.op is record.op is Op.DELETED and first.verb == record.verb == "delete"
    is_other = first.request_id != record.request_id and first.observed_at != record.observed_at
    return contradictions.of_removed(first, record) if is_asked and is_other else None


def made_anew(before: Record, created: Instant | None, record: Record) -> Contradiction | None:
    """The contradiction of a state with another creation time than the last one, if there is one.

    The server sets that time once. A state that does not show one is only a part of it.
    """
    shown = times.creation(record.object or {})
    is_other = created is not None and shown is not None and shown != created
    return contradictions.of_creation(before, record) if is_other else None


def changed(before: Record, fixed: Parts, record: Record) -> Contradiction | None:
    """The contradiction of a state with another value of a part that no write changes.

    A state that contradicts another one already says nothing of its neighbours.
    """
    if {Loss.CONTRADICTED, Loss.IMMUTABLE}.intersection(before.losses + record.losses):
        return None
    may_be_earlier = record.op is Op.DELETED and not _shows_its_own_state(before, record)
    path = fixed_parts.changed(fixed, fixed_parts.of(record), may_be_earlier=may_be_earlier)
    return contradictions.of_fixed(before, record, path) if path else None


def _may_be_first_half(known: Record, record: Record) -> bool:
    """Whether a removal may have made the known state itself, as the first of its two versions.

    Only a watch shows that one. Parity: controllers.md 5.2.
    """
    return record.op is Op.DELETED and known.actor is None


def _shows_its_own_state(before: Record, removal: Record) -> bool:
    """Whether the answer to a removal shows the object as the removal found it.

    So does that to a request for one object, where it has a later version than the state before.
    One for a collection lists the objects as they were found, and older servers answer with the
    version before. Parity: history-formats.md 4.3.
    """
    known, own = (comparable_version(each.resource_version) for each in (before, removal))
    is_of_one = removal.verb == "delete" and removal.object_quality is Quality.FULL
    return is_of_one and "" < known < own
