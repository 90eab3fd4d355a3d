"""The head of a history at a moment, for signing."""

from app.domain.errors import ChainBroken, InputError, RevisionTooLarge
from app.domain.log import Head, HistoryInfo, Revision
from app.domain.values.timestamps import Instant
from app.ports import EventLog
from app.service import moments


async def head_at(
    log: EventLog,
    info: HistoryInfo,
    moment: str,
    now: Instant | None = None,
    *,
    option: str = "--at",
) -> Head:
    """The head, or the head at a moment. Raises InputError naming the option.

    Raises ChainBroken when the head row does not match the end of the log.
    """
    head = await log.head(info.id)
    revision = head.revision
    if moment:
        try:
            revision = await moments.find_revision(log, info, moment, now)
        except RevisionTooLarge as problem:
            raise InputError(problem.message, place=option) from problem
        if not revision:
            raise InputError(
                f"history {info.name!r} has no event up to {moment}",
                place=option,
                cure="give a later moment",
            )
    if not revision:
        return head
    last = await log.read(info.id, after=Revision(revision - 1), until=revision, limit=1)
    is_end = revision == head.revision
    if not last or (is_end and last[0].hash != head.hash):
        raise ChainBroken(revision, "the head row is not the end of the log")
    return head if is_end else Head(revision=revision, hash=last[0].hash, time=last[0].stamp.time)
