"""Runs the story against real processes over HTTP while they are killed one after the other."""

import random
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import httpx

from app.adapters.memory import MemoryViewStore
from app.adapters.postgres.database import Database, open_database
from app.adapters.postgres.log import PostgresLog
from app.adapters.postgres.server import EmbeddedServer
from app.adapters.postgres.views import PostgresViewStore
from app.bootstrap.histories import views_of
from app.bootstrap.stores import view_tables
from app.domain.controllers import registry
from app.domain.errors import LogUnavailable
from app.domain.log import Event, HistoryInfo, Revision
from app.domain.objects import profile as profiles
from app.domain.values.json_tree import JsonObject
from app.service.folding.projecting import FoldingBounds, Projector
from tests.crash import deciding_again, judging, story
from tests.crash.stack import GROUPS, PROJECTOR, Stack
from tests.crash.story import Act
from tests.patience import PATIENCE_SECONDS

GATE_SECONDS = 2.0
"""How long a gate waits for somebody to come; then the process is killed where it is."""

UNANSWERED_MAX = 2
"""How many kills in a row may keep the client from any answer: nobody gets on who always dies."""

POSTGRES_EVERY = 12
"""One kill in so many hits the postmaster."""

KINDS = (
    ("v1", "pods"),
    ("v1", "namespaces"),
    ("resource.k8s.io/v1", "resourceclaims"),
    ("apps/v1", "deployments"),
    ("batch/v1", "jobs"),
)


@dataclass(slots=True, kw_only=True)
class Toll:
    """The kills and their places, and the number of requests that the client repeated."""

    wanted: int
    killed: list[str] = field(default_factory=list)
    repeats: int = 0
    unanswered: int = 0

    @property
    def is_paid(self) -> bool:
        """True when the wanted number of processes was killed."""
        return len(self.killed) >= self.wanted


async def tell(
    folder: Path, seed: int, kills: int, expected: list[JsonObject], *, together: bool
) -> Toll:
    """Runs stories one after the other until all kills are done. Raises AssertionError."""
    toll = Toll(wanted=kills)
    async with EmbeddedServer(folder / "postgres") as server:
        stack = Stack(folder, server, together=together)
        try:
            await stack.start()
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_kill, stack, random.Random(seed), toll)
                await _tell_stories(stack, seed, toll, expected)
            await check(stack.database)
            for program in stack.programs.values():
                program.check_log()
        finally:
            stack.stop()
    return toll


async def _tell_stories(stack: Stack, seed: int, toll: Toll, expected: list[JsonObject]) -> None:
    for act in story.fleet():
        await send(stack, act, toll)
    number = 0
    while number == 0 or not toll.is_paid:
        await _tell_once(stack, f"s{seed}-{number}", toll, expected)
        number += 1


async def _tell_once(stack: Stack, home: str, toll: Toll, expected: list[JsonObject]) -> None:
    chapters = [*story.chapters(home), story.last_acts(home)]
    for chapter, state in zip(chapters, expected[1:], strict=True):
        for act in chapter:
            await send(stack, act, toll)
        await wait_state(stack, home, state, toll)


async def send(stack: Stack, act: Act, toll: Toll) -> None:
    """Repeats a write until it has a final answer."""
    path = path_of(act.version, act.resource, act.namespace)
    end = time.monotonic() + PATIENCE_SECONDS
    async with httpx.AsyncClient(base_url=stack.url, timeout=15) as client:
        while time.monotonic() < end:
            try:
                answer = await _send_once(client, act, path)
            except httpx.TransportError:
                toll.repeats += 1
                await anyio.sleep(0.05)  # waits: for another process
                continue
            reason = "" if answer.status_code < 300 else answer.json().get("reason")
            if reason in ("", "AlreadyExists", "NotFound"):
                toll.unanswered = 0
                return
            assert answer.status_code >= 500, answer.text
            toll.repeats += 1
            await anyio.sleep(0.05)  # waits: for another process
    raise AssertionError(f"{act.verb} {act.resource}/{act.name} was not answered")


async def _send_once(client: httpx.AsyncClient, act: Act, path: str) -> httpx.Response:
    match act.verb:
        case "create":
            return await client.post(path, json=act.body)
        case "delete":
            # Without a word a Job leaves its pods behind.
            background = {"propagationPolicy": "Background"}
            return await client.delete(f"{path}/{act.name}", params=background)
        case _:
            kind = {"content-type": "application/merge-patch+json"}
            return await client.patch(f"{path}/{act.name}", json=act.body, headers=kind)


async def wait_state(stack: Stack, home: str, expected: JsonObject, toll: Toll) -> None:
    """Waits until two reads in a row give the expected state."""
    end = time.monotonic() + PATIENCE_SECONDS
    found: JsonObject = {}
    same = 0
    while time.monotonic() < end:
        try:
            found = story.final_state(home, await _objects(stack))
            toll.unanswered = 0
        except httpx.TransportError:
            found = {}
        same = same + 1 if found == expected else 0
        if same == 2:
            return
        await anyio.sleep(0.1)  # waits: for another process
    raise AssertionError(f"{home} did not come to the state\n{expected}\nbut to\n{found}")


async def _objects(stack: Stack) -> list[JsonObject]:
    kinds = {"pods": "Pod", "namespaces": "Namespace", "resourceclaims": "ResourceClaim"}
    kinds |= {"deployments": "Deployment", "jobs": "Job"}
    found: list[JsonObject] = []
    async with httpx.AsyncClient(base_url=stack.url, timeout=15) as client:
        for version, resource in KINDS:
            answer = await client.get(path_of(version, resource, ""))
            if answer.status_code != 200:
                raise httpx.ReadError(answer.text)
            found += [{"kind": kinds[resource], **item} for item in answer.json()["items"]]
    return found


def path_of(version: str, resource: str, namespace: str) -> str:
    """The API path of a resource."""
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    return f"{root}/namespaces/{namespace}/{resource}" if namespace else f"{root}/{resource}"


async def _kill(stack: Stack, draw: random.Random, toll: Toll) -> None:
    """Kills one process after the other, at named points of its appends, and starts it again.

    Other processes are killed while it starts, so several may be down at once.
    """
    starting: set[str] = set()
    async with anyio.create_task_group() as starts:
        while not toll.is_paid:
            if len(toll.killed) % POSTGRES_EVERY == POSTGRES_EVERY - 1:
                await anyio.to_thread.run_sync(stack.kill_postgres)
                toll.killed.append("postgres")
                await anyio.sleep(draw.random())  # waits: for another process
                continue
            names = [name for name in victims_of(stack) if name not in starting]
            if not names or toll.unanswered >= UNANSWERED_MAX:
                await anyio.sleep(0.05)  # waits: for another process
                continue
            name, stage = draw.choice(names), draw.choice(["append", "commit", "commit"])
            where = await _kill_at_gate(stack, name, stage)
            if not where:
                await anyio.sleep(0.1)  # waits: for another process
                continue
            toll.killed.append(f"{name} {where}")
            toll.unanswered += name in ("up", "api")
            if name in stack.programs:
                starting.add(name)
                starts.start_soon(_start_again, stack, name, starting)


def victims_of(stack: Stack) -> list[str]:
    """The names of processes to draw from, repeated by weight."""
    if stack.together:
        return ["up", "up", PROJECTOR]
    return ["scheduling", "scheduling", *GROUPS, "api", PROJECTOR]


async def _start_again(stack: Stack, name: str, starting: set[str]) -> None:
    await anyio.to_thread.run_sync(stack.restart, name)
    starting.discard(name)


async def _kill_at_gate(stack: Stack, name: str, stage: str) -> str:
    """Kills a process at a gate; returns the place, or an empty text when that failed. Raises
    AssertionError when a commit was lost, or when an uncommitted append was stored.
    """
    gate = await stack.hold_gate(name, stage)
    if gate is None:
        return ""
    try:
        is_stopped = await gate.wait_stopped(GATE_SECONDS)
        is_killed = await anyio.to_thread.run_sync(stack.kill, name)
        if is_stopped and stage == "append":
            await gate.forsake()
        await gate.open()
        if is_killed and is_stopped and name != PROJECTOR:
            head = await gate.wait_left()
            if stage == "commit":
                assert head > gate.head, "a commit was lost with the one who waited for it"
            elif stack.together:
                assert head == gate.head, "an append was stored that had not been committed"
    finally:
        await gate.close()
    if not is_killed:
        return ""
    return stage if is_stopped else "anywhere"


async def events_in(database: str) -> list[Event]:
    """The whole log of the default history."""
    async with open_database(database) as opened:
        _, events = await _history_in(opened)
        return events


async def _history_in(opened: Database) -> tuple[HistoryInfo, list[Event]]:
    log = PostgresLog(opened)
    info = await log.find_history("default")
    assert info is not None
    found: list[Event] = []
    while page := await log.read(info.id, after=Revision(len(found)), limit=5_000):
        found += page
    return info, found


async def check(database: str) -> Counter[str]:
    """Checks the log and the view tables, read from the database."""
    end = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            async with open_database(database) as opened:
                info, events = await _history_in(opened)
                await _check_tables(opened, info)
            break
        except LogUnavailable:
            assert time.monotonic() < end, "the database did not come back"
            await anyio.sleep(0.2)  # waits: for another process
    profile = profiles.from_settings(info.settings)
    counted = judging.check_log(events)
    deciding_again.check_decisions(events, profile, registry.options_from(info.settings))
    return counted


async def _check_tables(opened: Database, info: HistoryInfo) -> None:
    """Waits until the view tables equal those of a projector that was never killed."""
    log, tables = PostgresLog(opened), view_tables()
    stored, fresh = PostgresViewStore(opened, view_tables), MemoryViewStore(tables)
    bounds = FoldingBounds()
    make = views_of(info.settings)
    projector = Projector(log=log, views=fresh, history=info.id, make=make, bounds=bounds)
    await projector.open()
    end = time.monotonic() + PATIENCE_SECONDS
    names = [table.name for found in tables.values() for table in found]
    while True:
        await projector.catch_up()
        differing = [
            name
            for name in names
            if await stored.rows(info.id, name) != await fresh.rows(info.id, name)
        ]
        if not differing:
            return
        assert time.monotonic() < end, f"tables stay behind or differ: {differing}"
        await anyio.sleep(0.3)  # waits: for another process
