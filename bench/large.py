"""Measures a server of a large cluster: `python -m bench.large [--pods N] [--data DIR]`.

5,000 nodes of 11 devices; 50,000 pods that run, each with a claim for one device. The history is
copied (`bench.copies`). `redra up` opens it first without and then with kept states; each time
until it listens, until a new pod has run, and until it rests. Then all pods are listed, and pods
come and go at a rate. `--data` is a folder to keep: a history that it has is used again.
"""

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio

from bench import copies, figures
from bench.api import Client, Server
from bench.attached import created, up
from bench.cluster import pod
from bench.folder import temporary_data
from bench.processes import Memory, Usage, forget_peak, memory, usage
from bench.recording import NOW, megabytes

PODS = "/api/v1/namespaces/default/pods"
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
NODES, PODS_RUNNING, RATE = 5_000, 50_000, 10.0
"""The size of the cluster, and the pods a second, that the figures of results are about."""

PATIENCE_SECONDS = 400.0
CALM_SECONDS = 3.0
"""A server that used less than CALM_SHARE of a core for that long has done what a start brings."""

CALM_SHARE = 0.1
LOOK_SECONDS = 0.5
"""The pause between two looks at a pod, which cost the server processor time."""

PAGE = 500


@dataclass(slots=True)
class Spent:
    """Seconds by the clock and of processors since a moment, of the server and its children."""

    server: Server
    began: float
    before: Usage

    @classmethod
    def of(cls, server: Server) -> "Spent":
        """From now on."""
        return cls(server, time.perf_counter(), usage(server.process))

    def tell(self, what: str, remark: str = "") -> Usage:
        """One line."""
        used = usage(self.server.process).since(self.before)
        print(
            f"{what:44} {time.perf_counter() - self.began:7.1f} s; CPU s {used.main:6.2f} + "
            f"projector {used.projector:6.2f} + database {used.database:6.2f}{remark}",
            flush=True,
        )
        return used


@contextmanager
def started(folder: Path, what: str, costs: dict[str, float] | None = None) -> Iterator[Server]:
    """A `redra up` on the folder, timed until it listens, until it places a pod, and until rest.

    The processor seconds of the main process until either are put into `costs`.
    """
    began = time.perf_counter()
    costs = {} if costs is None else costs
    with up(folder) as server:
        spent = Spent(server, began, Usage(main=0, projector=0, database=0))
        costs[LISTENS] = spent.tell(f"{what}: listens").main
        asyncio.run(_run_one(server, f"first-{time.time_ns()}"))
        costs[PLACES] = spent.tell(f"{what}: a new pod has run and gone").main
        _rest(server)
        spent.tell(f"{what}: at rest", f"; {_words(memory(server.process))}")
        yield server


LISTENS, PLACES = "listens, s CPU", "a pod has run and gone, s CPU"
"""The names of what a start costs."""

COLD, WARM = "without kept states", "with kept states"


def _words(resident: Memory) -> str:
    return f"MiB {resident.main} + {resident.projector} + {resident.database} = {resident.total}"


def _rest(server: Server) -> None:
    """Wait until the processes of the server do next to nothing."""
    end = time.perf_counter() + PATIENCE_SECONDS
    while time.perf_counter() < end:
        before = usage(server.process)
        time.sleep(CALM_SECONDS)
        used = usage(server.process).since(before)
        if used.main + used.projector + used.database < CALM_SHARE * CALM_SECONDS:
            return
    raise SystemExit("the server does not come to rest")


async def _until(client: Client, path: str, is_so: Callable[[int, bytes], bool]) -> None:
    """Ask again and again until the answer is what is waited for."""
    end = time.perf_counter() + PATIENCE_SECONDS
    while time.perf_counter() < end:
        if is_so(*await client.request("GET", path)):
            return
        await asyncio.sleep(LOOK_SECONDS)
    raise SystemExit(f"{path}: what is waited for does not come")


async def _run_one(server: Server, name: str) -> None:
    """Create a pod, wait until it runs, delete it, wait until it is gone."""
    client = await Client.connect(server.port)
    await created(client, PODS, json.dumps(pod(name).tree).encode())
    await _until(client, f"{PODS}/{name}", lambda _, body: b'"phase":"Running"' in body)
    await client.request("DELETE", f"{PODS}/{name}", NOW)
    await _until(client, f"{PODS}/{name}", lambda status, _: status == 404)
    client.writer.close()


async def _read(server: Server, page: int) -> tuple[int, int, float]:
    """List all pods, with so many in an answer: their number, the bytes, the slowest answer."""
    client = await Client.connect(server.port)
    count, read, token, slowest = 0, 0, "", 0.0
    while True:
        query = f"?limit={page}&continue={token}" if page else ""
        asked = time.perf_counter()
        status, body = await client.request("GET", f"{PODS}{query}")
        slowest = max(slowest, time.perf_counter() - asked)
        assert status == 200, body
        listed = json.loads(body)
        count, read = count + len(listed["items"]), read + len(body)
        token = listed["metadata"].get("continue", "")
        if not token:
            client.writer.close()
            return count, read, slowest


def _list(server: Server, size: int) -> None:
    """List all pods at once, and in pages."""
    for what, page in (("all pods in one answer", 0), (f"all pods, {PAGE} a page", PAGE)):
        for turn in ("first", "again"):
            forget_peak(server.process)
            resident, spent = memory(server.process).main, Spent.of(server)
            count, read, slowest = asyncio.run(_read(server, page))
            assert count == size, count
            peak = megabytes(server.process) - resident
            spent.tell(
                f"{what}, {turn}",
                f"; {read >> 20} MiB, highest memory {peak} MiB above {resident}, "
                f"slowest answer {slowest * 1e3:.0f} ms",
            )


async def _churn(server: Server, rate: float, seconds: float) -> float:
    """Pods come and go at a rate; what share of a core all processes use, in percent."""
    spent = Spent.of(server)
    waited: list[float] = []

    async def one(number: int) -> None:
        await asyncio.sleep(max(0.0, spent.began + number / rate - time.perf_counter()))
        began = time.perf_counter()
        await _run_one(server, f"churn-{time.time_ns()}-{number}")
        waited.append(time.perf_counter() - began)

    await asyncio.gather(*(one(number) for number in range(round(rate * seconds))))
    took = time.perf_counter() - spent.began
    waited.sort()
    used = spent.tell(
        f"{len(waited)} pods came and went, {len(waited) / took:.1f}/s",
        f"; p50 {waited[len(waited) // 2]:.2f} s, p99 {waited[len(waited) * 99 // 100]:.2f} s",
    )
    share = used.main / took
    whole = (used.main + used.projector + used.database) / took
    print(f"of a core: {100 * share:.1f} % main, {100 * whole:.1f} % in all")
    return 100 * whole


def main(arguments: Sequence[str] = ()) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="bench.large", description=__doc__)
    parser.add_argument("--nodes", type=int, default=NODES)
    parser.add_argument("--devices", type=int, default=11)
    parser.add_argument("--pods", type=int, default=PODS_RUNNING)
    parser.add_argument("--rate", type=float, default=RATE)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--data", type=Path, help="a folder to keep, or one that was kept")
    options = parser.parse_args(arguments)
    with temporary_data() as temporary:
        folder = options.data or temporary
        if not folder.exists():
            size = copies.Size(nodes=options.nodes, devices=options.devices, pods=options.pods)
            began = time.perf_counter()
            count = anyio.run(copies.write, folder, size)
            print(f"{count} events written in {time.perf_counter() - began:.0f} s", flush=True)
            with started(folder, COLD):
                pass
        costs: dict[str, float] = {}
        with started(folder, WARM, costs) as server:
            _list(server, options.pods)
            share = asyncio.run(_churn(server, options.rate, options.seconds))
            if (options.nodes, options.pods) == (NODES, PODS_RUNNING):
                figures.note("large.start", costs[PLACES])
                if options.rate == RATE:
                    figures.note("large.churn", share)
            _rest(server)
            print(f"at the end: {_words(memory(server.process))}")


if __name__ == "__main__":
    main(sys.argv[1:])
