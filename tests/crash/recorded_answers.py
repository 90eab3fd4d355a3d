"""Clients that record each answer, while the server, PostgreSQL and their own requests die.

The judge knows the recorded answers and the stored log, and nothing else. Every answered write is
the event of its revision, with the answered content; where an answer came before another request
was sent, the log has both in this order; a write without an answer is stored once or not at all,
and nothing else is stored. Every head that the server signed is one of the log.
"""

import random
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import httpx
import msgspec

from app.adapters.postgres.database import open_database
from app.adapters.postgres.log import PostgresLog
from app.adapters.postgres.server import EmbeddedServer
from app.domain.log import Event, Revision
from app.domain.values.json_tree import JsonObject
from tests.command_line import redra
from tests.crash.stack import Stack
from tests.patience import PATIENCE_SECONDS

PLACE = "/api/v1/namespaces/default/configmaps"
NAMES = ("a", "b", "c")
CLIENTS = 4
PATCH = {"content-type": "application/merge-patch+json"}
GIVEN_UP_SECONDS = (0.0005, 0.002, 0.01)
"""After which some clients go away without an answer."""


@dataclass(kw_only=True)
class Asked:
    """One write: when it was sent and answered, in steps of one counter, and what was answered.

    `mark` is a text that no other write has. Without an answer `code` is 0.
    """

    verb: str
    name: str
    mark: str
    sent: int
    answered: int = 0
    code: int = 0
    revision: int = 0
    content: JsonObject = field(default_factory=dict)


@dataclass(kw_only=True)
class Record:
    """All that clients know."""

    steps: int = 0
    writes: list[Asked] = field(default_factory=list)
    heads: list[JsonObject] = field(default_factory=list)
    killed: list[str] = field(default_factory=list)
    grown: anyio.Event = field(default_factory=anyio.Event)

    def step(self) -> int:
        """The number of the next thing that a client does or hears."""
        self.steps += 1
        self.grown.set()
        self.grown = anyio.Event()
        return self.steps

    async def wait(self) -> None:
        """Wait for the next one."""
        await self.grown.wait()


async def live(folder: Path, seed: int, kills: int) -> Record:
    """Clients write until so many kills are done; then what they know is judged.

    Raises AssertionError.
    """
    record, draw = Record(), random.Random(seed)
    async with EmbeddedServer(folder / "postgres") as server:
        stack = Stack(folder, server, together=True)
        try:
            await stack.start()
            async with anyio.create_task_group() as tasks:
                for number in range(CLIENTS):
                    of_one = random.Random(f"{seed} {number}")
                    tasks.start_soon(_write, stack.url, f"{seed}-{number}", of_one, record)
                tasks.start_soon(_sign, stack.url, record)
                await _kill(stack, draw, record, kills)
                tasks.cancel_scope.cancel()
            stack.programs["up"].check_log()
            async with open_database(server.url) as database:
                log = PostgresLog(database)
                info = await log.find_history("default")
                assert info is not None
                events = await log.read(info.id, after=Revision(0), limit=1_000_000)
            check_answers(record, events)
            await anyio.to_thread.run_sync(_verify, stack, record)
        finally:
            stack.stop()
    return record


async def _kill(stack: Stack, draw: random.Random, record: Record, kills: int) -> None:
    """Kill the server or PostgreSQL, each after a drawn number of answers since the last time."""
    for number in range(kills):
        wanted = _answered(record) + draw.randrange(1, 60)
        with anyio.fail_after(PATIENCE_SECONDS):
            while _answered(record) < wanted:
                await record.wait()
        await anyio.sleep(draw.random() * 0.02)  # waits: the kill falls anywhere between answers
        victim = "postgres" if number % 2 else "up"
        record.killed.append(victim)
        if victim == "postgres":
            await anyio.to_thread.run_sync(stack.kill_postgres)
        else:
            await anyio.to_thread.run_sync(stack.kill, "up")
            await anyio.to_thread.run_sync(stack.restart, "up")
    wanted = _answered(record) + 20
    with anyio.fail_after(PATIENCE_SECONDS):
        while _answered(record) < wanted or not record.heads:
            await record.wait()


def _answered(record: Record) -> int:
    return sum(0 < write.code < 500 for write in record.writes)


async def _write(url: str, client_name: str, draw: random.Random, record: Record) -> None:
    async with httpx.AsyncClient(base_url=url, timeout=15) as client:
        for number in range(1_000_000):
            asked = Asked(
                verb=draw.choice(("create", "create", "patch", "patch", "patch", "delete")),
                name=draw.choice(NAMES), mark=f"{client_name}-{number}", sent=record.step(),
            )  # fmt: skip
            record.writes.append(asked)
            seconds = draw.choice(GIVEN_UP_SECONDS) if draw.random() < 0.1 else 15
            try:
                with anyio.move_on_after(seconds):
                    answer = await _send(client, asked)
                    asked.answered, asked.code = record.step(), answer.status_code
                    if answer.status_code < 300:
                        asked.content = answer.json()
                        # The answer to a deletion is a Status.
                        said = asked.content["metadata"].get("resourceVersion", "0")
                        asked.revision = int(said)
            except httpx.TransportError:
                await anyio.sleep(0.02)  # waits: for another process
            if asked.code >= 500:
                await anyio.sleep(0.02)  # waits: for another process


async def _send(client: httpx.AsyncClient, asked: Asked) -> httpx.Response:
    tree = {"data": {"mark": asked.mark}}
    path = f"{PLACE}/{asked.name}"
    match asked.verb:
        case "create":
            whole = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": asked.name}}
            return await client.post(PLACE, json=whole | tree)
        case "patch":
            return await client.patch(path, content=msgspec.json.encode(tree), headers=PATCH)
    # The mark of a deletion is its user agent, which the log keeps.
    return await client.delete(path, headers={"user-agent": asked.mark})


async def _sign(url: str, record: Record) -> None:
    """Have the head signed again and again."""
    async with httpx.AsyncClient(base_url=url, timeout=15) as client:
        while True:
            try:
                answer = await client.get("/redra/v1/histories/default/head")
                if answer.status_code == 200:
                    record.heads.append(answer.json())
                    record.step()
            except httpx.TransportError:
                pass
            await anyio.sleep(0.1)  # waits: some heads are enough


def check_answers(record: Record, events: list[Event]) -> None:
    """Compare what clients know with the stored log. Raises AssertionError."""
    by_revision = {event.revision: event for event in events}
    revisions: dict[str, list[int]] = {}
    for event in events:
        if mark := mark_of(event):
            revisions.setdefault(mark, []).append(event.revision)
    for write in record.writes:
        said = f"{write.verb} {write.name} {write.mark}, answered {write.code}"
        places = revisions.get(write.mark, [])
        if 200 <= write.code < 300:
            assert len(places) == 1, f"{said}: stored {len(places)} times"
            assert write.revision in (0, places[0]), f"{said}: {write.revision} at {places[0]}"
            event = by_revision[Revision(places[0])]
            assert event.key.name == write.name, said
            if write.verb != "delete":
                assert event.object["data"] == write.content["data"] == {"mark": write.mark}, said
                assert write.revision == places[0], said
        elif 0 < write.code < 500:
            assert not places, f"{said}: refused, and stored"
        else:
            assert len(places) <= 1, f"{said}: stored {len(places)} times"
    assert set(revisions) <= {write.mark for write in record.writes}, "stored, and never asked for"
    _check_order(record, revisions)
    for head in record.heads:
        event = by_revision[Revision(head["revision"])]
        assert head["hash"].removeprefix("sha256:") == event.hash.hex(), "a head of no stored event"


def mark_of(event: Event) -> str:
    """The mark of the write that an event came from; empty for the events of others."""
    if event.key.resource != "configmaps" or event.key.name not in NAMES:
        return ""
    if event.type == "ObjectDeleted":
        return event.stamp.actor.agent
    return str(event.object["data"]["mark"])


def _check_order(record: Record, revisions: dict[str, list[int]]) -> None:
    """A write that was sent after another one had been answered comes after it in the log."""
    stored = [write for write in record.writes if write.mark in revisions]
    by_answer = sorted(
        (write for write in stored if 200 <= write.code < 300), key=lambda write: write.answered
    )
    place, highest = 0, 0
    for write in sorted(stored, key=lambda write: write.sent):
        while place < len(by_answer) and by_answer[place].answered < write.sent:
            highest = max(highest, revisions[by_answer[place].mark][0])
            place += 1
        revision = revisions[write.mark][0]
        assert revision > highest, f"{write.mark} is before what was answered before it"


def _verify(stack: Stack, record: Record) -> None:
    """The history is verified, with the first, the last and a middle one of its signed heads."""
    heads = record.heads
    for place in {0, len(heads) // 2, len(heads) - 1}:
        file = stack.folder / f"head-{place}.json"
        file.write_bytes(msgspec.json.encode(heads[place]))
        code, out, error = redra(
            "verify", "default", "--head", file, "-o", "json",
            data=stack.folder / "data", REDRA_DATABASE_URL=stack.database,
        )  # fmt: skip
        assert code == 0, f"{out}\n{error}"
        verdicts = [head["verdict"] for head in msgspec.json.decode(out)["chain"]["signedHeads"]]
        assert verdicts == ["agrees"], out
