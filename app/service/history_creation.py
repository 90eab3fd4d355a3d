"""The making of histories: their names, and that each is made as a whole, or not at all.

An import or a copy takes a while and may fail in the middle. Until the history is complete it has a
name that no user can give and is in no list. Then it gets its own name in one step. When making it
fails, it is deleted. A history that a killed process leaves behind occupies no user's name and is
removed by the next deletion of unfinished histories.
"""

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial

import anyio
import msgspec

from app.domain.errors import AlreadyExists, InputError, LogError, Rejected
from app.domain.log import Actor, HistoryInfo, chain
from app.domain.log.event import UNFINISHED
from app.domain.objects import first_objects
from app.domain.objects.write.commands import Command
from app.domain.values.json_tree import JsonObject
from app.ports import EventLog, RuntimePorts
from app.service.runtime import HistoryRuntime

ATTEMPTS_MAX = 1_000
"""The most histories of one name that may be in the making or unfinished."""

BY = "a failed creation, import, copy or fork"
"""The author of the deletion, in tombstones of histories that were never finished."""

CLEAN_SECONDS = 60.0
"""The longest time for removing a history that failed."""

NAME_LENGTH_MAX = 63
"""The most characters of the name of a history."""

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


def check_name(name: str) -> str:
    """Check that the name can name a history: DNS labels, joined by dots. Raises InputError."""
    if len(name) > NAME_LENGTH_MAX or _NAME.fullmatch(name) is None:
        raise InputError(
            f"{name!r} is not a valid name of a history",
            cure=f"use up to {NAME_LENGTH_MAX} lower-case letters, digits, '-' and '.'; at the "
            "beginning, at the end and beside each '.' stands a letter or digit",
        )
    return name


@asynccontextmanager
async def unfinished(
    log: EventLog, name: str, make: Callable[[str], Awaitable[HistoryInfo]]
) -> AsyncIterator[HistoryInfo]:
    """A history that gets its `name` at the end of the block, and is deleted if the block fails.

    `make` makes it under the temporary name that it is given, and raises AlreadyExists when another
    unfinished history has that name. Raises InputError when `name` is in use at the end.
    """
    info: HistoryInfo | None = None
    for number in range(1, ATTEMPTS_MAX + 1):
        try:
            info = await make(f"{UNFINISHED}{name}{UNFINISHED}{number}")
            break
        except AlreadyExists:
            continue
    if info is None:
        raise InputError(
            f"{ATTEMPTS_MAX} histories of the name {name!r} are unfinished",
            cure="remove them with `redra histories delete --unfinished --yes`",
        )
    try:
        yield msgspec.structs.replace(info, name=name)
        await log.rename_history(info.id, name)
    except BaseException as problem:
        with anyio.move_on_after(CLEAN_SECONDS, shield=True):
            # The name is free even if the deletion fails; the first problem is the one to report.
            with suppress(LogError, Rejected):
                await log.delete_history(info.id, at=info.created, by=BY)
        if isinstance(problem, AlreadyExists):
            raise InputError(
                f"the history {name!r} already exists", cure="choose another name"
            ) from problem
        raise


async def make_empty(
    ports: RuntimePorts, name: str, *, seed: int, settings: JsonObject
) -> HistoryInfo:
    """Make a history without objects. Raises AlreadyExists."""
    created = ports.clock.now()
    hash_ = chain.genesis(seed=seed, settings=settings, created=created)
    return await ports.log.create_history(
        name, seed=seed, settings=settings, created=created, hash=hash_
    )


async def make_cluster(
    ports: RuntimePorts,
    name: str,
    runtime_of: Callable[[HistoryInfo], HistoryRuntime],
    *,
    seed: int,
    settings: JsonObject,
) -> None:
    """Make a history with the first objects of a cluster. Raises AlreadyExists, InputError."""
    chosen = first_objects.cluster_settings(settings)
    try:
        make = partial(make_empty, ports, seed=seed, settings=chosen)
        async with unfinished(ports.log, name, make) as info:
            runtime = runtime_of(info)
            first = first_objects.commands(runtime.rules.services)
            await write(runtime, lambda _: first, actor=first_objects.SERVER)
    except InputError as problem:
        cause = problem.__cause__
        raise cause if isinstance(cause, AlreadyExists) else problem from None


async def write(
    runtime: HistoryRuntime,
    commands: Callable[[HistoryRuntime], Sequence[Command]],
    *,
    actor: Actor,
) -> None:
    """Write to a history that is not served yet, through a runtime that is not running.

    `commands` gets the runtime when it has read the history. Raises InputError, Rejected, LogError.
    """
    problem: Exception | None = None
    async with runtime.running():
        try:
            await runtime.submit_all(commands(runtime), actor=actor)
        except (InputError, Rejected, LogError) as refusal:
            # Raised below: leaving a task group would wrap it.
            problem = refusal
    if problem is not None:
        raise problem
