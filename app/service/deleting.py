"""The deletion of a history by its name, and the error for one that was deleted before."""

from app.domain.errors import NotFound
from app.domain.log import Tombstone
from app.domain.values import timestamps
from app.domain.values.timestamps import Instant
from app.ports import EventLog


async def delete(log: EventLog, name: str, *, at: Instant, by: str) -> Tombstone:
    """Delete the history of a name. Raises Conflict, and NotFound that names a tombstone."""
    info = await log.find_history(name)
    if info is None:
        raise await _not_found(log, name)
    try:
        return await log.delete_history(info.id, at=at, by=by)
    except NotFound as problem:
        raise await _not_found(log, name) from problem


async def _not_found(log: EventLog, name: str) -> NotFound:
    former = [each for each in await log.tombstones() if each.name == name]
    text = f'history "{name}" not found'
    if former:
        time = timestamps.micro_text(former[-1].deleted)
        text = f'history "{name}" was deleted at {time} by {former[-1].deleted_by}'
    return NotFound(text, resource="histories", name=name)
