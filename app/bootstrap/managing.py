"""Management of histories for the command line.

Histories are made, renamed, copied, forked and deleted, and their controllers are switched.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from app.adapters.history import documents
from app.adapters.history.limits import ImportLimits
from app.adapters.running import notice
from app.analysis import edits
from app.analysis.diff.forks import ForkReport
from app.analysis.edits import Edit
from app.bootstrap import history_settings, manifests
from app.bootstrap.answers import differences
from app.bootstrap.histories import open_histories
from app.bootstrap.stores import Store, find_history, find_inside
from app.domain.controllers import registry, switching
from app.domain.errors import AlreadyExists, InputError, Rejected
from app.domain.log import Actor, HistoryInfo, Revision, Tombstone
from app.domain.objects.access.rules import AUTHENTICATED, MASTERS
from app.domain.objects.write.commands import PatchObject, PatchType
from app.domain.values import timestamps
from app.domain.values.json_tree import JsonObject
from app.service import copying, importing
from app.service.forking import ForkRequest, ForkSwitches
from app.service.histories import DEFAULT_HISTORY
from app.service.history_creation import check_name
from app.service.replays.replaying import Progress, silent
from app.settings import Settings

FORKER = Actor(user="redra-admin", groups=(MASTERS, AUTHENTICATED), agent="redra fork")
"""The actor of edits in a fork that is made at the command line."""

SWITCHER = Actor(user=FORKER.user, groups=FORKER.groups, agent="redra controllers")

BY = "redra histories delete"
"""The author of the deletion, in tombstones of this program's commands."""


async def create(store: Store, settings: Settings, name: str) -> None:
    """Make a history as a new cluster, with the settings' profile. Raises InputError."""
    await importing.check_name_is_free(store.log, name, place="")
    async with open_histories(store, settings) as histories:
        await histories.create_cluster(name, settings=history_settings.history_settings(settings))


async def rename(store: Store, settings: Settings, name: str, new_name: str) -> None:
    """Give a history another name. Raises InputError."""
    info = await find_history(store, name)
    await _check_not_at_root(store, settings, info)
    try:
        await store.log.rename_history(info.id, check_name(new_name))
    except AlreadyExists as problem:
        raise InputError(str(problem), cure="choose another name") from problem


async def copy(
    store: Store, name: str, new_name: str, moment: str, progress: Callable[[int, int], None]
) -> tuple[Revision, Revision]:
    """Copy a history up to a moment (empty: all of it); returns the revision and the copy's end."""
    info = await find_history(store, name)
    await importing.check_name_is_free(store.log, new_name, place="")
    until = await find_inside(store, info, moment, option="--to")
    made = await copying.copy_history(store.log, info, new_name, until=until, progress=progress)
    return until, made.parent_revision


@dataclass(frozen=True, slots=True, kw_only=True)
class Fork:
    """A finished fork: the last revision of its source, and the number of its further events.

    `report` holds the results of recorded inputs, if they continue in it; `notes` say what its
    settings make of its edits.
    """

    revision: int
    changes: int
    report: ForkReport | None = None
    notes: tuple[str, ...] = ()


async def fork(
    store: Store,
    settings: Settings,
    name: str,
    new_name: str,
    moment: str,
    *,
    switches: ForkSwitches,
    edits: Sequence[Edit],
    until: str | None = None,
    progress: Progress = silent,
) -> Fork:
    """Fork a history at a moment (empty: its end). Raises InputError, also for refused edits.

    With `until`, recorded inputs continue in the fork up to that moment (empty: to the end).
    """
    info = await find_history(store, name)
    await importing.check_name_is_free(store.log, new_name, place="")
    await find_inside(store, info, moment, option=f"{name}@{moment}")
    last = None if until is None else await find_inside(store, info, until, option="--until")
    wanted = ForkRequest(switches=switches, edits=edits, until=last)
    async with open_histories(store, settings) as histories:
        try:
            made = await histories.fork(
                name, new_name, moment, wanted=wanted, actor=FORKER, progress=progress
            )
        except Rejected as problem:
            raise InputError(problem.message) from problem
        head = await histories.head(made.info)
    report = await differences.report_of_fork(store, settings, info, made)
    until_parent = made.info.parent_revision
    return Fork(
        revision=until_parent,
        changes=head.revision - until_parent - 1,
        report=report,
        notes=made.notes,
    )


def read_switches(profile: str | None, gates: Sequence[str], quirks: Sequence[str]) -> ForkSwitches:
    """The switches in command-line options. Raises InputError."""
    return ForkSwitches(
        profile=profile or "",
        gates=history_settings.switches(",".join(gates), place="--gate"),
        quirks=history_settings.switches(",".join(quirks).lower(), place="--quirk"),
    )


def read_edits(
    settings: Settings, files: Sequence[Path], deletions: Sequence[str], patches: Sequence[str]
) -> list[Edit]:
    """The edits: deletions, patches and the objects of files, in this order. Raises InputError."""
    limits = manifests.limits_of(settings)
    made: list[Edit] = [edits.DeleteEdit(name=name) for name in deletions]
    made += [_patch(text, limits) for text in patches]
    for file in files:
        trees = manifests.read_documents(
            file, limits, cure="raise REDRA_BLAST_BYTES_MAX", as_kubectl=True
        )
        if not trees:
            raise InputError("it holds no object", place=str(file))
        made += edits.read_manifests(trees)
    return made


def _patch(text: str, limits: ImportLimits) -> edits.PatchEdit:
    """The patch in an option: `KIND/NAME=` and YAML or JSON."""
    name, equals, body = text.partition("=")
    place = f"--patch {name}"
    trees = [tree for _, tree in documents.parse(body.encode(), place, limits)] if equals else []
    if len(trees) != 1 or not isinstance(trees[0], dict):
        raise InputError("there is no patch", place=place, cure="write KIND/NAME='{\"spec\": …}'")
    return edits.PatchEdit(name=name, body=trees[0])


async def _check_not_at_root(store: Store, settings: Settings, info: HistoryInfo) -> None:
    """Raise InputError for the history at `/` while a server shows it, as the server does.

    The server of the data folder posts a notice. One elsewhere, on the same database, holds leases
    of the history, unless its controllers do not run.
    """
    if info.name != DEFAULT_HISTORY:
        return
    server = notice.read(settings.data, database=settings.database_url)
    holders = await store.leases.holders(info.id)
    if server is not None or holders:
        at = server.url if server is not None else min(holders.values())
        raise InputError(
            f'history "{info.name}" is served at / and stays while a server runs',
            cure=f"stop the server ({at}), or copy the history",
        )


async def find(
    store: Store, settings: Settings, names: tuple[str, ...], *, unfinished: bool
) -> list[HistoryInfo]:
    """The histories to delete: with these names, and with `unfinished` all unfinished ones.

    Raises InputError.
    """
    named = [await find_history(store, name) for name in dict.fromkeys(names)]
    for info in named:
        await _check_not_at_root(store, settings, info)
    return [*named, *(await store.log.unfinished() if unfinished else [])]


async def delete(store: Store, infos: list[HistoryInfo]) -> list[Tombstone]:
    """Delete histories, one after the other."""
    return [
        await store.log.delete_history(info.id, at=store.ports.clock.now(), by=BY) for info in infos
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerState:
    """A controller of a history: its switch, and the process that runs it now, empty for none."""

    name: str
    state: str
    run_by: str


def check_controllers(words: Mapping[str, bool]) -> Mapping[str, bool]:
    """The switches, unchanged. Raises InputError for a name that is not a controller."""
    for name in words:
        if name not in registry.NAMES:
            raise InputError(
                f"there is no controller {name!r}", cure=f"choose from {', '.join(registry.NAMES)}"
            )
    return words


async def switch(
    store: Store, settings: Settings, name: str, words: Mapping[str, bool]
) -> list[ControllerState]:
    """Switch controllers; returns the state of each. Raises InputError for a recording."""
    info = await find_history(store, name)
    if words and info.is_recorded:
        raise InputError(
            f"no controller runs on {name}, which is a recording",
            cure=f"fork it: `redra fork {name} --history NEW`",
        )
    async with open_histories(store, settings) as histories:
        runtime = await histories.open(name)
        if words:
            before = switching.switched_off(runtime.views.objects)
            off = {each for each in {*before, *words} if not words.get(each, each not in before)}
            patch = PatchObject(
                key=switching.KUBE_SYSTEM,
                version="v1",
                type=PatchType.MERGE,
                body=switching.annotation_patch(off),
            )
            await runtime.submit(patch, actor=SWITCHER, verb="patch")
        states = switching.states(info, runtime.views.objects)
    holders = await store.leases.holders(info.id)
    return [
        ControllerState(name=name, state=state, run_by=holders.get(name, ""))
        for name, state in states
    ]


def tombstone_json(tombstone: Tombstone) -> JsonObject:
    """The JSON form of a tombstone."""
    return {
        "name": tombstone.name,
        "revision": tombstone.revision,
        "hash": f"sha256:{tombstone.hash.hex()}",
        "time": timestamps.micro_text(tombstone.time) if tombstone.revision else None,
        "created": timestamps.micro_text(tombstone.created),
        "deleted": timestamps.micro_text(tombstone.deleted),
        "deletedBy": tombstone.deleted_by,
    }
