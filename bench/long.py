"""Measures a server of a long history of a small cluster: `python -m bench.long [--events N]`.

Pods with a claim came and went on 100 nodes, 100 of them run; what is there is the same at each
length. Each length has twice the events of the one before. The events are copied (`bench.copies`),
and the objects are kept every 50,000 events, as a server does that is never idle. `redra up` opens
the history from there. Printed are processor seconds until it listens and until a new pod has run
and gone, of questions about the beginning, the middle and the end (`QUESTIONS`), of a fork, and of
a verification of the first events; and the memory of the server. Each is shown with the exponent of
its growth: 0 is flat.

`--cold` opens the history first without kept states, `--whole` also asks what reads the whole log,
and `--no-chronicle` leaves the first question for findings to fold it.
`--data` is a folder to keep: histories that it has are used again.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import anyio

from bench import copies, figures, growth, large
from bench.api import Client, Server
from bench.folder import temporary_data
from bench.processes import keeps_compiled, memory, usage

NODES, DEVICES, PODS = 100, 8, 100

EVENTS_OF_LIFE = 19
"""The events of a pod that comes and goes, roughly: the length of a history is counted."""

FIRST_POD, RUNNING_POD, FIRST_NODE = "gone-0000000", "pod-00000", "node-0000"

ROOT = "/redra/v1/histories/default"

WINDOW = 300
"""Revisions of a part of the timeline."""

VERIFIED = 5_000
"""Events of the stretch that is verified."""

_SLICES = "/apis/resource.k8s.io/v1/resourceslices"

ASKED_LENGTH = 10_000_000
"""The events of the history that the figure in `anchors.json` is about."""


def _lengths(events: int, points: int) -> list[int]:
    return [events >> turn for turn in reversed(range(points))]


@dataclass(frozen=True, slots=True)
class Question:
    """A question to the server of a history: the path below it, with numbers to fill in."""

    what: str
    path: str


_POD = "why?kind=pod&namespace=default&name="

QUESTIONS = (
    Question("findings", "findings"),
    Question("timeline page", "timeline"),
    Question("map", "map"),
    Question("lanes", "lanes"),
    Question("pace", "pace"),
    Question("capacity", "capacity"),
    Question("why of the first pod", f"{_POD}{FIRST_POD}"),
    Question("why of a pod of the middle", f"{_POD}{{middle_pod}}"),
    Question("why of a pod that runs", f"{_POD}{RUNNING_POD}"),
    Question("the same five events earlier", f"{_POD}{RUNNING_POD}&at={{earlier}}"),
    Question("why of a pod at the middle", f"{_POD}{{middle_pod}}&at={{middle}}"),
    Question("why of no pod", f"{_POD}never"),
    Question("timeline, last 20", "entries?last=20"),
    Question("timeline, last 300 revisions", "entries?since={late}"),
    Question("timeline, 300 of the middle", "entries?since={middle}&until={after_middle}"),
    Question("map of the middle", "map?at={middle}"),
    Question(
        "a pod of the middle, its changes", "object?kind=pod&namespace=default&name={middle_pod}"
    ),
    Question("attempts of that pod", "attempts?kind=pod&namespace=default&name={middle_pod}"),
    Question("timeline of that pod", "entries?object=pod/{middle_pod}"),
)

WHOLE = (Question("timeline of what never was", "entries?object=pod/never"),)
"""Questions for which the whole log is read."""

WITHDRAWN = Question("why without its device", f"{_POD}{RUNNING_POD}")


async def _ask(server: Server, question: Question, numbers: Mapping[str, object]) -> float:
    """The processor seconds of the server and its database for one question."""
    client = await Client.connect(server.port)
    path = f"{ROOT}/{question.path.format(**numbers)}"
    began, before = time.perf_counter(), usage(server.process)
    status, body = await client.request("GET", path)
    took, spent = time.perf_counter() - began, usage(server.process).since(before)
    client.writer.close()
    assert status in (200, 400, 404), (path, status, body)
    print(
        f"  {question.what:34} {took:6.2f} s; CPU s {spent.main:5.2f} + database "
        f"{spent.database:5.2f}; {len(body):,} bytes",
        flush=True,
    )
    return spent.main + spent.database


async def _fork(server: Server, at: int) -> float:
    """The processor seconds of a fork at a revision."""
    client = await Client.connect(server.port)
    body = json.dumps({"name": f"fork-{time.time_ns()}", "at": str(at)}).encode()
    began, before = time.perf_counter(), usage(server.process)
    status, answer = await client.request("POST", f"{ROOT}/fork", body)
    took, spent = time.perf_counter() - began, usage(server.process).since(before)
    client.writer.close()
    assert status == 201, answer
    print(f"  fork at the middle: {took:.2f} s; CPU s {spent.main:.2f} + {spent.database:.2f}")
    return spent.main + spent.database


def _verify(folder: Path) -> float:
    """The processor seconds of a verification of the first events, in a process of its own."""
    command = [sys.executable, "-m", "app.cli", "verify", f"default@{VERIFIED}"]
    before = os.times()
    command += ["--processes", "1", "--data", str(folder)]
    environment = keeps_compiled()
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True)
    assert "chain: whole" in done.stdout, done.stdout
    after = os.times()
    spent = after.children_user + after.children_system
    spent -= before.children_user + before.children_system
    print(f"  verification of {VERIFIED:,} events: CPU s {spent:.2f}")
    return spent


async def _length(server: Server) -> int:
    client = await Client.connect(server.port)
    status, body = await client.request("GET", ROOT)
    assert status == 200, body
    client.writer.close()
    length = json.loads(body)["revision"]
    assert isinstance(length, int)
    return length


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


def _measure(
    folder: Path, length: int, *, cold: bool, whole: bool, with_chronicle: bool
) -> tuple[int, dict[str, float]]:
    """The number of events of a history, and what it costs to open and ask it."""
    gone = length // EVENTS_OF_LIFE
    if not folder.exists():
        size = copies.Size(nodes=NODES, devices=DEVICES, pods=PODS, gone=gone)
        began, clock = time.process_time(), time.perf_counter()
        count = anyio.run(partial(copies.write, folder, size, with_chronicle=with_chronicle))
        spent, took = time.process_time() - began, time.perf_counter() - clock
        print(f"{count:,} events written in {spent:.0f} s CPU, {took:.0f} s", flush=True)
    if cold:
        with large.started(folder, f"{length:,}, {large.COLD}"):
            pass
    costs: dict[str, float] = {}
    with large.started(folder, f"{length:,}, {large.WARM}", costs) as server:
        end = asyncio.run(_length(server))
        middle = end // 2
        numbers: dict[str, object] = {
            "middle": middle,
            "after_middle": middle + WINDOW,
            "late": end - WINDOW,
            "earlier": end - 5,
            "middle_pod": f"gone-{gone // 2 - 1:07}",
        }
        for question in (*QUESTIONS, *(WHOLE if whole else ())):
            costs[question.what] = asyncio.run(_ask(server, question, numbers))
        print(f"  MiB of the main process: {memory(server.process).main}", flush=True)
        costs["fork at the middle"] = asyncio.run(_fork(server, middle))
        asyncio.run(_withdraw(server))
        costs[WITHDRAWN.what] = asyncio.run(_ask(server, WITHDRAWN, numbers))
        resident = memory(server.process)
        costs["MiB main"] = resident.main
        costs["MiB projector"] = resident.projector
        costs["verification of the first events"] = _verify(folder)
    return length, costs


def main(arguments: Sequence[str] = ()) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="bench.long", description=__doc__)
    parser.add_argument("--events", type=int, default=ASKED_LENGTH)
    parser.add_argument("--points", type=int, default=3, help="lengths, each half the next one")
    parser.add_argument("--cold", action="store_true", help="first without kept states")
    parser.add_argument("--whole", action="store_true", help="ask what reads the whole log, too")
    parser.add_argument(
        "--no-chronicle", action="store_true", help="write histories without their chronicle"
    )
    parser.add_argument("--data", type=Path, help="a folder to keep, or one that was kept")
    options = parser.parse_args(arguments)
    points: dict[str, list[tuple[int, float]]] = {}
    with temporary_data() as temporary:
        folder = options.data or temporary
        for length in _lengths(options.events, options.points):
            size, costs = _measure(
                folder / f"{length}",
                length,
                cold=options.cold,
                whole=options.whole,
                with_chronicle=not options.no_chronicle,
            )
            for what, cost in costs.items():
                points.setdefault(what, []).append((size, cost))
    for what, measured in points.items():
        shown = ", ".join(f"{size:,}: {cost:.3g}" for size, cost in measured)
        print(f"{what:32} exponent {growth.exponent(measured):5.2f}   {shown}", flush=True)
    if options.events >= ASKED_LENGTH:
        figures.note("long.start", points[large.LISTENS][-1][1])


if __name__ == "__main__":
    main(sys.argv[1:])
