"""Histories as wholes, at the command line: made, renamed, copied, deleted."""

from collections.abc import Callable

from app.bootstrap import history_settings
from app.bootstrap.histories import open_histories
from app.bootstrap.stores import Store, find_history, find_revision
from app.domain.errors import AlreadyExists, InputError
from app.domain.log import HistoryInfo, Tombstone
from app.domain.values import timestamps
from app.domain.values.json_tree import JsonObject
from app.service import copying, importing
from app.service.histories import check_name
from app.settings import Settings

BY = "redra histories delete"
"""Who deleted, in tombstones of this program's commands."""


async def create(store: Store, settings: Settings, name: str) -> None:
    """Make a history as a new cluster, with the settings' profile. Raises InputError."""
    await importing.check_name_is_free(store.log, name)
    async with open_histories(store, settings) as histories:
        await histories.create_cluster(name, settings=history_settings.history_settings(settings))


async def rename(store: Store, name: str, new_name: str) -> None:
    """Give a history another name. Raises InputError."""
    info = await find_history(store, name)
    try:
        await store.log.rename_history(info.id, check_name(new_name))
    except AlreadyExists as problem:
        raise InputError(str(problem), cure="choose another name") from problem


async def copy(
    store: Store, name: str, new_name: str, moment: str, progress: Callable[[int, int], None]
) -> int:
    """Copy a history up to a moment (empty: all of it); returns the number of events."""
    info = await find_history(store, name)
    await importing.check_name_is_free(store.log, new_name)
    until = await find_revision(store, info, moment, option="--to")
    await copying.copy_history(store.log, info, new_name, until=until, progress=progress)
    return until


async def find(store: Store, names: tuple[str, ...], *, unfinished: bool) -> list[HistoryInfo]:
    """The histories of these names, and those that are unfinished. Raises InputError."""
    named = [await find_history(store, name) for name in dict.fromkeys(names)]
    return [*named, *(await store.log.unfinished() if unfinished else [])]


async def delete(store: Store, infos: list[HistoryInfo]) -> list[Tombstone]:
    """Delete histories, one after the other."""
    return [
        await store.log.delete_history(info.id, at=store.ports.clock.now(), by=BY) for info in infos
    ]


def tombstone_json(tombstone: Tombstone) -> JsonObject:
    """A tombstone for people and programs."""
    return {
        "name": tombstone.name,
        "revision": tombstone.revision,
        "hash": f"sha256:{tombstone.hash.hex()}",
        "time": timestamps.micro_text(tombstone.time) if tombstone.revision else None,
        "created": timestamps.micro_text(tombstone.created),
        "deleted": timestamps.micro_text(tombstone.deleted),
        "deletedBy": tombstone.deleted_by,
    }
