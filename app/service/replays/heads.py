"""The head of a history at a moment, for signing."""

import msgspec

from app.domain.errors import ChainBroken, InputError, RevisionTooLarge
from app.domain.log import Head, HistoryInfo, Revision
from app.domain.values.timestamps import Instant
from app.ports import EventLog
from app.service import broken_histories, moments


async def head_at(
    log: EventLog,
    info: HistoryInfo,
    moment: str,
    now: Instant | None = None,
    *,
    option: str = "--at",
) -> Head:
    """The head, or the head at a moment. Raises InputError naming the option.

    Raises ChainBroken when the head row does not match the end of the log, and HistoryBroken when
    there is none.
    """
    head = await broken_histories.head_of(log, info)
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
    last = await log.read_stored(
        info.id, after=Revision(max(revision - 1, 0)), until=Revision(max(revision, 1)), limit=1
    )
    if revision == head.revision:
        await broken_histories.check_nothing_after(log, info.id, head)
    if not last and not revision:
        return head
    if not last or revision < 1:
        raise ChainBroken(revision, broken_histories.NOT_THE_END)
    end = Head(revision=revision, hash=last[0].event.hash, time=last[0].clock or Instant(0))
    if revision == head.revision and end != msgspec.structs.replace(head, epoch=end.epoch):
        raise ChainBroken(revision, broken_histories.NOT_THE_END)
    return end
