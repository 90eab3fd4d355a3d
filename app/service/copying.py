"""Copies of histories: the same events, stamps and hashes under another name."""

from collections.abc import Callable
from functools import partial

import msgspec
from anyio import lowlevel

from app.domain.errors import ChainBroken
from app.domain.log import HistoryInfo, Revision, chain
from app.domain.log.event import EVENTS_PAGE
from app.ports import EventLog
from app.service import history_creation, moments

WITHIN = (
    "revision {named} is in the middle of a write of a controller; the copy ends after it, "
    "at revision {end}"
)


async def copy_history(
    log: EventLog,
    source: HistoryInfo,
    name: str,
    *,
    until: Revision,
    progress: Callable[[int, int], None] | None = None,
) -> HistoryInfo:
    """Make the history `name` from the events of another one, up to `until`.

    The copy ends where the write ends that `until` is part of: a server goes on from its end, and a
    decision whose effects were left out would be verified as one without effects. The revision is
    its `parent_revision`.

    Settings, seed, creation time and the signed heads up to `until` are those that the source had
    then, because they are part of the chain. The chain is checked on the way. Raises ChainBroken,
    and InputError when the name is taken; no copy is left then.
    """
    until = await moments.end_of_write(log, source, until)
    source = await moments.history_at(log, source, until)
    page = await log.read(source.id, after=Revision(0), limit=EVENTS_PAGE, until=until)
    hash_ = chain.beginning_of(source, page[0]) if page else chain.genesis_of(source)
    make = partial(
        log.create_history,
        seed=source.seed,
        settings=source.settings,
        created=source.created,
        hash=hash_,
        parent=source.id,
        parent_revision=until,
        beginning=source.beginning,
    )
    async with history_creation.unfinished(log, name, make) as made:
        head = await log.head(made.id)
        while page:
            hash_ = chain.check_chain(page, after=head.revision, hash=hash_)
            head = await log.append(made.id, expected=head, events=page)
            if progress is not None:
                progress(head.revision, until)
            await lowlevel.checkpoint()
            page = await log.read(source.id, after=head.revision, limit=EVENTS_PAGE, until=until)
        if head.revision < until:
            raise ChainBroken(head.revision + 1, "it is missing")
        heads = [each for each in await log.kept_heads(source.id) if each.revision <= until]
        if heads:
            await log.keep_heads(made.id, heads)
    return msgspec.structs.replace(made, name=name)
