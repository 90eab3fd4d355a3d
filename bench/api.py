"""The API from outside: durable creates, gets, lists and watches over HTTP, one server process."""

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench import figures, processes
from bench.folder import temporary_data
from bench.writer import claim

SECONDS = 4.0
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"


class Client:
    """One keep-alive connection with a minimum of HTTP, cheap in comparison with the server."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    @classmethod
    async def connect(cls, port: int) -> "Client":
        """A connection to the server on loopback."""
        return cls(*await asyncio.open_connection("127.0.0.1", port, limit=1 << 26))

    async def request(
        self, method: str, path: str, body: bytes = b"", kind: str = "application/json"
    ) -> tuple[int, bytes]:
        """Sends one request with a content type; returns the status and body of the answer."""
        head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(body)}\r\n"
        self.writer.write(f"{head}Content-Type: {kind}\r\n\r\n".encode() + body)
        lines = (await self.reader.readuntil(b"\r\n\r\n")).split(b"\r\n")
        status = int(lines[0].split()[1])
        length = next(
            (int(line[15:]) for line in lines if line.lower().startswith(b"content-length:")), None
        )
        if length is not None:
            return status, await self.reader.readexactly(length)
        parts: list[bytes] = []
        while size := int((await self.reader.readuntil(b"\r\n")).strip(), 16):
            parts.append(await self.reader.readexactly(size))
            await self.reader.readexactly(2)
        await self.reader.readexactly(2)
        return status, b"".join(parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A running server."""

    process: int
    port: int


def cpu_seconds(process: int) -> float:
    """The CPU time that a process has used so far, without its children."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def run_clients(
    server: Server, what: str, count: int, work: Callable[[Client, int], Awaitable[None]]
) -> int:
    """Repeats `work` with `count` clients for a while; prints one line, returns the repetitions."""
    times: list[float] = []
    before = cpu_seconds(server.process)
    end = time.perf_counter() + SECONDS

    async def one(number: int) -> None:
        client = await Client.connect(server.port)
        turn = 0
        while time.perf_counter() < end:
            started = time.perf_counter()
            await work(client, number * 1_000_000 + turn)
            times.append(time.perf_counter() - started)
            turn += 1
        client.writer.close()

    await asyncio.gather(*(one(number) for number in range(count)))
    times.sort()
    spent = cpu_seconds(server.process) - before
    p50, p99 = times[len(times) // 2] * 1e3, times[len(times) * 99 // 100] * 1e3
    print(
        f"{what:20} {len(times) / SECONDS:7.0f}/s  p50 {p50:7.2f} ms  p99 {p99:7.2f} ms  "
        f"longest {times[-1] * 1e3:7.2f} ms  server {spent / len(times) * 1e6:6.0f} µs CPU each"
    )
    if what == "creates, 1 clients":
        figures.note("api.creates.1_client.p50", p50)
    elif what == "creates, 32 clients":
        figures.note("api.creates.32_clients", len(times) / SECONDS)
        figures.note("api.creates.32_clients.p99", p99)
        figures.note("api.creates.32_clients.cpu", spent / len(times) * 1e6)
    return len(times)


async def measure(server: Server) -> None:
    """All figures against a running server."""
    made = 0
    for clients in (1, 8, 32, 128):

        async def create(client: Client, number: int, clients: int = clients) -> None:
            tree = claim(f"c-{clients}-{number}").tree
            status, body = await client.request("POST", CLAIMS, json.dumps(tree).encode())
            assert status == 201, body

        made += await run_clients(server, f"creates, {clients} clients", clients, create)

    async def get(client: Client, number: int) -> None:
        status, _ = await client.request("GET", f"{CLAIMS}/c-1-0")
        assert status == 200

    await run_clients(server, "gets, 8 clients", 8, get)

    async def list_all(client: Client, number: int) -> None:
        status, _ = await client.request("GET", f"{CLAIMS}?limit=10000")
        assert status == 200

    await run_clients(server, f"lists of {min(made, 10_000)}", 1, list_all)


@contextmanager
def serving(folder: Path) -> Iterator[Server]:
    """A `redra up` on a free port."""
    command = [sys.executable, "-m", "app.cli", "up", "--listen", "127.0.0.1:0"]
    started = time.perf_counter()
    command += ["--data", str(folder)]
    environment = processes.keeps_compiled()
    server = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        line = server.stdout.readline()
        print(f"{'redra up to ready':28} {time.perf_counter() - started:9.2f} s")
        yield Server(process=server.pid, port=int(line.strip().rpartition(":")[2]))
    finally:
        server.terminate()
        server.wait(timeout=30)


def main() -> None:
    """Run the measurement."""
    with temporary_data() as folder:
        with serving(folder):
            pass
        with serving(folder) as server:
            asyncio.run(measure(server))


if __name__ == "__main__":
    main()
