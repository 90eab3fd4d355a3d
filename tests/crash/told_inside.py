"""Runs the story in process with kills, for the comparison with the run without them."""

from collections import Counter
from dataclasses import dataclass

import anyio

from app.domain.controllers import registry
from app.domain.errors import AlreadyExists, NotFound
from app.domain.log import Event, ObjectKey
from app.domain.objects.write.commands import (
    Command,
    CreateObject,
    DeleteObject,
    PatchObject,
    PatchType,
    Propagation,
)
from app.domain.values.json_tree import JsonObject
from tests.crash import deciding_again, inside, judging, story, virtual_loop
from tests.crash.story import Act

HOME = "home"


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """The result of a run: the states after its chapters, which must not depend on kills, and the
    counts of the log.
    """

    states: list[JsonObject]
    counted: Counter[str]
    killed: tuple[str, ...]
    repeats: int
    log: tuple[Event, ...]


def tell(seed: int, kills: int, delay_millis: int | None = None) -> Told:
    """Runs one story, in which bindings may take time. Raises AssertionError for a broken rule."""
    told = virtual_loop.run(_tell(seed, kills, delay_millis))
    assert isinstance(told, Told)
    return told


async def _tell(seed: int, kills: int, delay_millis: int | None) -> Told:
    world, processes = await inside.begin(seed, kills, delay_millis)
    client = inside.Client(processes[0])
    states: list[JsonObject] = []
    async with anyio.create_task_group() as tasks:
        for process in processes:
            tasks.start_soon(process.keep_alive)
        chapters = [story.fleet(), *story.chapters(HOME), story.last_acts(HOME)]
        for chapter in chapters:
            for act in chapter:
                await client.send(_command(act), expected=(AlreadyExists, NotFound))
            await client.wait_rest(world)
            runtime, _ = await processes[0].wait_runtime()
            states.append(story.final_state(HOME, inside.objects_of(runtime)))
        tasks.cancel_scope.cancel()
    assert world.ended == [], world.ended
    events = inside.events_of(world)
    counted = judging.check_log(events)
    assert world.info is not None
    options = registry.options_from(world.info.settings)
    deciding_again.check_decisions(events, inside.PROFILE, options)
    assert await inside.check_tables(world) == []
    return Told(
        states=states,
        counted=counted,
        killed=tuple(world.killed),
        repeats=client.repeats,
        log=tuple(events),
    )


def _command(act: Act) -> Command:
    group, _, version = act.version.rpartition("/")
    key = ObjectKey(group, act.resource, act.namespace, act.name)
    match act.verb:
        case "create":
            assert act.body is not None
            return CreateObject(key=key, version=version, tree=act.body)
        case "delete":
            # Without a word a Job leaves its pods behind.
            return DeleteObject(key=key, version=version, propagation=Propagation.BACKGROUND)
        case _:
            return PatchObject(key=key, version=version, type=PatchType.MERGE, body=act.body)
