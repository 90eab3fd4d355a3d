"""Watches from outside: from a write to its last delivery, over HTTP, one server process.

Two shapes: a thousand watchers of one resource while a hundred claims a second are created, and
one watcher under 32 writers that go as fast as they can. The time counts from sending the write to
the arrival of its last line, so it holds the commit too.
"""

import asyncio
import json
import time
from collections.abc import Callable
from typing import cast

from bench import figures
from bench.api import CLAIMS, Client, Server, cpu_seconds, serving
from bench.folder import temporary_data
from bench.writer import claim

WATCHERS = 1_000
RATE = 100
SECONDS = 8.0
WRITERS = 32
MARK = b'"name":"w-'


class Watcher(asyncio.Protocol):
    """One watch, which reports the number of each claim that it receives."""

    def __init__(self, started: asyncio.Semaphore, heard: Callable[[int], None]) -> None:
        self._started = started
        self._heard = heard
        self._rest = b""
        self._is_open = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Ask for the watch from now on."""
        sender = cast(asyncio.Transport, transport)
        head = f"GET {CLAIMS}?watch=true&resourceVersion=0&timeoutSeconds=600 HTTP/1.1\r\n"
        sender.write(f"{head}Host: 127.0.0.1\r\n\r\n".encode())

    def data_received(self, data: bytes) -> None:
        """Find the names in the received data; a name may be cut in two."""
        if not self._is_open:
            self._is_open = True
            self._started.release()
        data = self._rest + data
        at = 0
        while (found := data.find(MARK, at)) >= 0:
            end = data.find(b'"', found + len(MARK))
            if end < 0:
                break
            self._heard(int(data[found + len(MARK) : end]))
            at = end
        self._rest = data[max(at, len(data) - 64) :] if found < 0 else data[found:]


async def open_watchers(server: Server, count: int, heard: Callable[[int], None]) -> None:
    """Connect and wait until each has got its first bytes."""
    started = asyncio.Semaphore(0)
    loop = asyncio.get_running_loop()
    for _ in range(count):
        await loop.create_connection(lambda: Watcher(started, heard), "127.0.0.1", server.port)
    async with asyncio.timeout(60):
        for _ in range(count):
            await started.acquire()


def report(what: str, times: list[float], spent: float) -> tuple[float, float]:
    """Print one line of figures; returns the middle and the 99th percentile, in ms."""
    times.sort()
    p50, p99 = times[len(times) // 2] * 1e3, times[len(times) * 99 // 100] * 1e3
    print(
        f"{what:44} {len(times):7} writes  p50 {p50:7.2f} ms  p99 {p99:7.2f} ms  "
        f"longest {times[-1] * 1e3:7.2f} ms  server {spent:5.2f} CPU seconds"
    )
    return p50, p99


async def measure(
    server: Server, watchers: int, writers: int, rate: float, what: str
) -> tuple[float, float]:
    """Write for a while; the last delivery of a write counts. What `report` returns."""
    sent: dict[int, float] = {}
    last: dict[int, float] = {}
    counts: dict[int, int] = {}

    def heard(number: int) -> None:
        counts[number] = counts.get(number, 0) + 1
        last[number] = time.perf_counter()

    await open_watchers(server, watchers, heard)
    before = cpu_seconds(server.process)
    start = time.perf_counter()
    base = len(what) * 10_000_000

    async def write(lane: int) -> None:
        client = await Client.connect(server.port)
        turn = 0
        while (now := time.perf_counter()) - start < SECONDS:
            due = start + (turn * writers + lane) / rate if rate else now
            await asyncio.sleep(max(0.0, due - now))
            number = base + lane * 100_000 + turn
            body = json.dumps(claim(f"w-{number}").tree).encode()
            sent[number] = time.perf_counter()
            status, answer = await client.request("POST", CLAIMS, body)
            assert status == 201, answer
            turn += 1
        client.writer.close()

    await asyncio.gather(*(write(lane) for lane in range(writers)))
    end = time.perf_counter() + 30
    while any(counts.get(number, 0) < watchers for number in sent):
        assert time.perf_counter() < end, "deliveries are missing"
        await asyncio.sleep(0.05)
    late = [max(0.0, last[number] - then) for number, then in sent.items()]
    return report(what, late, cpu_seconds(server.process) - before)


def main() -> None:
    """Run the measurement."""
    import uvloop

    with temporary_data() as folder, serving(folder) as server:
        what = f"1 watcher, {WRITERS} writers, write to line"
        p50, _ = uvloop.run(measure(server, 1, WRITERS, 0, what))
        figures.note("watching.32_writers.p50", p50)
    # With data of its own: each watch begins with all that there is.
    with temporary_data() as folder, serving(folder) as server:
        what = f"{WATCHERS} watchers, {RATE} writes/s, to the last line"
        _, p99 = uvloop.run(measure(server, WATCHERS, 8, RATE, what))
        figures.note("watching.1000_watchers.p99", p99)


if __name__ == "__main__":
    main()
