"""Detection of an audit log that leaves out the statuses of pods.

A policy names the subresources that it records. A log with bindings of pods and without any request
to `pods/status`, successful or refused, is one that leaves those out, unless no kubelet and no
controller ever wrote one. So each pod has a gap after its creation: what it became is not known.
Parity: history-formats.md 4.5.
"""

import msgspec

from app.adapters.history.joining.spool import Spool
from app.adapters.history.reading import Notes
from app.domain.log.records import BoundEffect, Loss, Op, Quality, TimeQuality
from app.domain.values import api_resources

_PODS = "\0".join(api_resources.PODS) + "\0"
_RANGE = (_PODS, _PODS[:-1] + "\1")
"""The range of the keys of pods: inclusive start and exclusive end."""

_SHOWN = "SELECT 1 FROM record WHERE key >= ? AND key < ? AND op = 'MODIFIED' AND NOT actor LIMIT 1"
_WRITTEN = "SELECT head FROM record WHERE key >= ? AND key < ? AND op = 'MODIFIED' AND actor"
_MADE = "SELECT head FROM record WHERE key >= ? AND key < ? AND op = 'ADDED' AND actor"


def note(spool: Spool, notes: Notes) -> None:
    """Add a gap of each pod after its creation if the log has no statuses of pods."""
    named = {sub for resource, sub in spool.subresources if resource == "pods"}
    if "binding" not in named or "status" in named or not _binds(spool):
        return
    if spool.database.execute(_SHOWN, _RANGE).fetchone() is not None:
        return  # another source has them
    made = spool.database.execute(_MADE, _RANGE).fetchall()
    if not made:
        return
    notes.add(
        "the log has bindings of pods and no request to pods/status: what became of its "
        f"{len(made)} pods is not known, unless nobody wrote their statuses"
    )
    for (head,) in made:
        record = spool.record_in(head)
        epoch, version, _, *place = record.order_key
        spool.put(
            msgspec.structs.replace(
                record,
                op=Op.GAP,
                object=None,
                object_quality=Quality.IDENTITY,
                time_quality=TimeQuality.NONE,
                order_key=(epoch, version, 1, *place),
                losses=(Loss.GAP,),
                resource_version="",
                actor=None,
                verb="",
                request_id="",
                message="the log leaves out the statuses of pods",
            )
        )


def _binds(spool: Spool) -> bool:
    """Whether a request of the log binds a pod."""
    rows = spool.database.execute(_WRITTEN, _RANGE)
    return any(isinstance(spool.record_in(head).effect, BoundEffect) for (head,) in rows)
