"""Measures a server of a long history of a small cluster: `python -m bench.long [--events N]`.

Pods with a claim came and went on 100 nodes, 100 of them run; what is there is the same at each
length. Each length has twice the events of the one before. `redra up` opens the history first
without and then with kept states; printed are processor seconds until it listens and until a new
pod has run and gone, what `why` takes about a pod that came and went first, about one that runs,
about that one five events earlier, and when its device is withdrawn, and the memory of the server
and its projector, each with the exponent of its growth: 0 is flat. `--data` is a folder to keep:
histories that it has are used again.
"""

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import anyio

from bench import copies, figures, growth, large
from bench.api import Client, Server
from bench.folder import temporary_data
from bench.processes import memory, usage

NODES, DEVICES, PODS = 100, 8, 100

EVENTS_OF_LIFE = 19
"""The events of a pod that comes and goes, roughly: the length of a history is counted."""

FIRST_POD, RUNNING_POD, FIRST_NODE = "gone-0000000", "pod-00000", "node-0000"

_SLICES = "/apis/resource.k8s.io/v1/resourceslices"

ASKED_LENGTH = 10_000_000
"""The events of the history that the figure in `anchors.json` is about."""


def _lengths(events: int, points: int) -> list[int]:
    return [events >> turn for turn in reversed(range(points))]


async def _why(server: Server, name: str, *, earlier: int = 0) -> float:
    """The processor seconds of the server and its database for one question about a pod.

    It is about the moment that many events `earlier`.
    """
    client = await Client.connect(server.port)
    path = f"/redra/v1/histories/default/why?kind=pod&namespace=default&name={name}"
    if earlier:
        status, body = await client.request("GET", path)
        path += f"&at={json.loads(body)['revision'] - earlier}"
    before = usage(server.process)
    status, body = await client.request("GET", path)
    assert status == 200, body
    client.writer.close()
    spent = usage(server.process).since(before)
    return spent.main + spent.database


async def _withdraw(server: Server) -> None:
    """Delete the slice with the devices of `FIRST_NODE`, on which `RUNNING_POD` is."""
    client = await Client.connect(server.port)
    status, body = await client.request("GET", _SLICES)
    assert status == 200, body
    for one in json.loads(body)["items"]:
        if one["spec"].get("nodeName") == FIRST_NODE:
            path = f"{_SLICES}/{one['metadata']['name']}"
            status, body = await client.request("DELETE", path)
            assert status == 200, body
    client.writer.close()


def _measure(folder: Path, length: int) -> tuple[int, dict[str, float]]:
    """The number of events of a history, and what it costs to open and ask it."""
    if not folder.exists():
        gone = length // EVENTS_OF_LIFE
        size = copies.Size(nodes=NODES, devices=DEVICES, pods=PODS, gone=gone)
        began = time.process_time()
        count = anyio.run(copies.write, folder, size)
        print(f"{count:,} events written in {time.process_time() - began:.0f} s CPU", flush=True)
        with large.started(folder, f"{count:,}, {large.COLD}"):
            pass
    costs: dict[str, float] = {}
    with large.started(folder, f"{length:,}, {large.WARM}", costs) as server:
        costs["why of the first pod, s CPU"] = asyncio.run(_why(server, FIRST_POD))
        costs["why of a pod, s CPU"] = asyncio.run(_why(server, RUNNING_POD))
        costs["why of a pod earlier, s CPU"] = asyncio.run(_why(server, RUNNING_POD, earlier=5))
        asyncio.run(_withdraw(server))
        costs["why without its device, s CPU"] = asyncio.run(_why(server, RUNNING_POD))
        resident = memory(server.process)
        costs["MiB main"] = resident.main
        costs["MiB projector"] = resident.projector
    return length, costs


def main(arguments: Sequence[str] = ()) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="bench.long", description=__doc__)
    parser.add_argument("--events", type=int, default=ASKED_LENGTH)
    parser.add_argument("--points", type=int, default=3, help="lengths, each half the next one")
    parser.add_argument("--data", type=Path, help="a folder to keep, or one that was kept")
    options = parser.parse_args(arguments)
    points: dict[str, list[tuple[int, float]]] = {}
    with temporary_data() as temporary:
        folder = options.data or temporary
        for length in _lengths(options.events, options.points):
            size, costs = _measure(folder / f"{length}", length)
            for what, cost in costs.items():
                points.setdefault(what, []).append((size, cost))
    for what, measured in points.items():
        shown = ", ".join(f"{size:,}: {cost:.3g}" for size, cost in measured)
        print(f"{what:32} exponent {growth.exponent(measured):5.2f}   {shown}", flush=True)
    if options.events >= ASKED_LENGTH:
        figures.note("long.start", points[large.LISTENS][-1][1])


if __name__ == "__main__":
    main(sys.argv[1:])
