"""CPU time of a create through the API without sockets and database: `python -m bench.requests`.

What is counted is everything that the server's process does for a create: HTTP, deciding, sealing,
folding, controllers, the answer. Requests come from connections without a wire, the log is in
memory and takes as long as a disk does, so that batches are as large as they are in life. Like
`bench.cpu` it says the same on a busy machine and on an idle one, as far as anything does.

It also says how much the process works from the moment in which an append is stored until it sends
an answer (the middle one), for 32 clients and for one.
"""

import asyncio
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

import uvicorn
import uvloop
from uvicorn.server import ServerState

from app.adapters import schemas
from app.adapters.telemetry import Telemetry
from app.api.application import create_app
from app.api.server.connections import ConnectionBounds, connection_class
from app.bootstrap import garbage_collection
from app.bootstrap.answers.limits import api_limits
from app.bootstrap.histories import default_history, open_histories
from app.bootstrap.process_settings import settings
from app.bootstrap.serving import supervise
from app.bootstrap.stores import memory_store
from app.domain.log import Event, Head, HistoryId, LeaseToken
from app.ports import EventLog
from bench import figures
from bench.api import CLAIMS
from bench.cpu import turn_seconds
from bench.writer import claim

CLIENTS = 32
CREATES = 2_000
ALONE = 200
"""Creates of a round with one client."""

ROUNDS = 6
DISK_SECONDS = 0.003
"""How long an append takes, as with a disk."""

BODY = json.dumps(claim("NAME").tree)


class SlowLog:
    """A log that takes its time to store. `stored` is the CPU time of the last append's end."""

    def __init__(self, log: EventLog) -> None:
        self._log = log
        self.stored = 0.0

    def __getattr__(self, name: str) -> object:
        return getattr(self._log, name)

    async def append(
        self,
        history: HistoryId,
        *,
        expected: Head,
        events: Sequence[Event],
        leases: Sequence[LeaseToken] = (),
    ) -> Head:
        """Append after a while."""
        await asyncio.sleep(DISK_SECONDS)
        head = await self._log.append(history, expected=expected, events=events, leases=leases)
        self.stored = time.process_time()
        return head


class Lane(asyncio.Transport):
    """A client that sends its next create when the last one was answered, and the wire to it."""

    def __init__(self, number: int, make: Callable[[], asyncio.Protocol]) -> None:
        super().__init__()
        self.number = number
        self.turn = 0
        self.answered: Callable[[Lane], None] = lambda _: None
        self.connection = make()
        self.connection.connection_made(self)

    def send(self) -> None:
        """Send one create."""
        self.turn += 1
        body = BODY.replace("NAME", f"c-{self.number}-{self.turn}").encode()
        head = f"POST {CLAIMS} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        head += f"Content-Length: {len(body)}\r\n\r\n"
        self.connection.data_received(head.encode() + body)

    def write(self, data: object) -> None:
        """An answer, in one piece."""
        assert isinstance(data, bytes), type(data)
        assert data.startswith(b"HTTP/1.1 201 "), data
        self.answered(self)

    def get_extra_info(self, name: str, default: object = None) -> object:
        """Nothing is known of the other side."""
        return default

    def close(self) -> None:
        """Lanes stay open, also those that are idle for long."""

    def is_closing(self) -> bool:
        """It never ends."""
        return False


async def run(lanes: Sequence[Lane], count: int, log: SlowLog) -> tuple[float, float]:
    """CPU microseconds for each of so many creates; those of the middle one until its answer."""
    loop = asyncio.get_running_loop()
    left = count
    ended = asyncio.Event()
    answered: list[float] = []

    def go_on(lane: Lane) -> None:
        nonlocal left
        left -= 1
        answered.append(time.process_time() - log.stored)
        if left >= len(lanes):
            loop.call_soon(lane.send)
        elif not left:
            ended.set()

    started = time.process_time()
    for lane in lanes:
        lane.answered = go_on
        lane.send()
    await ended.wait()
    spent = time.process_time() - started
    return spent / count * 1e6, statistics.median(answered) * 1e6


async def measure() -> None:
    """Print the least and the middle of some rounds."""
    garbage_collection.expect_large_heap()
    store = memory_store()
    slow = SlowLog(store.log)
    store = replace(store, ports=replace(store.ports, log=slow))  # type: ignore[arg-type]  # hands on
    telemetry = Telemetry()
    async with AsyncExitStack() as stack:
        chosen = settings(data=Path(stack.enter_context(tempfile.TemporaryDirectory())))
        histories = await stack.enter_async_context(open_histories(store, chosen))
        supervise(histories, store, chosen, with_projector=False, meter=telemetry)
        await default_history(histories, chosen)
        config = uvicorn.Config(
            create_app(histories, schemas=schemas.load, meter=telemetry, limits=api_limits(chosen)),
            http=connection_class(ConnectionBounds()),
            loop="none",
            ws="none",
            lifespan="off",
            access_log=False,
            log_config=None,
            proxy_headers=False,
        )
        config.load()
        state = ServerState()

        def make() -> asyncio.Protocol:
            made = config.http_protocol_class(config=config, server_state=state, app_state={})
            assert isinstance(made, asyncio.Protocol)
            return made

        lanes = [Lane(number, make) for number in range(CLIENTS)]
        await run(lanes, CREATES, slow)
        garbage_collection.keep_loaded()
        rounds: list[tuple[float, float]] = []
        waited: list[float] = []
        for _ in range(ROUNDS):
            turn = turn_seconds()
            spent, to_answer = await run(lanes, CREATES, slow)
            waited.append(to_answer)
            rounds.append((spent / (turn + turn_seconds()) * 2 / 1e6, spent))
        rounds.sort()
        figures.note("requests.create", rounds[ROUNDS // 2][1])
        for what, (turns, spent) in (("least", rounds[0]), ("middle", rounds[ROUNDS // 2])):
            print(f"{what:8} {spent:7.1f} µs CPU a create, as {turns:6.0f} turns of a loop")
        alone = [(await run(lanes[:1], ALONE, slow))[1] for _ in range(ROUNDS)]
        for count, found in ((CLIENTS, waited), (1, alone)):
            middle = statistics.median(found)
            print(f"{middle:7.1f} µs CPU from the append to the answer, clients: {count}")


def main() -> None:
    """Run the measurement."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(measure())


if __name__ == "__main__":
    main()
