"""The rows of one change from several sources, joined into one."""

from collections.abc import Iterable, Iterator
from itertools import groupby

import msgspec

from app.adapters.history.joining.spool import Row
from app.domain.log import ObjectKey
from app.domain.log.records import Loss, Op, Quality, TimeQuality

_replace = msgspec.structs.replace
_FILLED = frozenset({Loss.NO_ACTOR, Loss.COLLAPSED, Loss.NO_MANAGED_FIELDS, Loss.NO_TIME})
"""Losses that another source can compensate: the actor and time, intermediate steps, the whole
object."""

_QUALITIES = tuple(Quality)
_TIMES = tuple(TimeQuality)


def groups(rows: Iterable[Row]) -> Iterator[list[Row]]:
    """The rows of each change, from one or several sources, in order."""
    for _, together in groupby(rows, key=_together):
        yield from _by_key(list(together))


def merged(rows: list[Row]) -> Row:
    """The joined row of one change: the best object, the best time, and the actor if known."""
    if len(rows) == 1:
        return rows[0]
    best = min(rows, key=_object_rank)
    with_actor = next((row for row in rows if row.has_actor), None)
    timed = min((row.record for row in rows), key=lambda item: _TIMES.index(item.time_quality))
    record = _replace(
        best.record,
        op=_joined_op(rows),
        resource_version=max(row.record.resource_version for row in rows),
        observed_at=timed.observed_at,
        time_quality=timed.time_quality,
    )
    if with_actor is not None:
        losses = tuple(loss for loss in record.losses if loss not in _FILLED)
        record = _replace(
            record,
            actor=with_actor.record.actor,
            verb=with_actor.record.verb,
            request_id=with_actor.record.request_id,
            subresource=with_actor.record.subresource,
            losses=losses,
        )
    return Row(
        best.row,
        best.epoch,
        best.version,
        best.sub,
        best.own,
        record.op.value,
        with_actor is not None,
        record,
        best.body,
    )


def _together(row: Row) -> object:
    """The group of a row: rows of one version may belong to one change, all others are separate."""
    if row.sub == 0 and row.own and row.op not in ("GAP", "CONTEXT"):
        return row.epoch, row.own
    return row.row


def _by_key(rows: list[Row]) -> list[list[Row]]:
    if len(rows) == 1:
        return [rows]
    by_key: dict[tuple[ObjectKey, str], list[Row]] = {}
    named: dict[ObjectKey, str] = {}
    for row in rows:
        if row.record.uid:
            named.setdefault(row.record.key, row.record.uid)
    for row in rows:
        # A request may omit the uid; it concerns the object of that version.
        uid = row.record.uid or named.get(row.record.key, "")
        by_key.setdefault((row.record.key, uid), []).append(row)
    return list(by_key.values())


def _object_rank(row: Row) -> tuple[bool, bool, bool, int, int]:
    record = row.record
    return (
        row.body is None or record.effect is not None,
        Loss.NO_MANAGED_FIELDS in record.losses,
        record.is_typed,
        _QUALITIES.index(record.object_quality),
        _TIMES.index(record.time_quality),
    )


def _joined_op(rows: list[Row]) -> Op:
    ops = {row.record.op for row in rows}
    if Op.DELETED in ops:
        return Op.DELETED
    if any(row.has_actor and row.record.op is Op.ADDED for row in rows):
        return Op.ADDED
    for op in (Op.MODIFIED, Op.ADDED):
        if op in ops:
            return op
    return Op.BASELINE
