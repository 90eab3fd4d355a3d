"""Measures the cost of pages of a long history: `python -m bench.pages [--events N]`.

The history is the one of `bench.folding`: pods with a claim each run through their life on 500
nodes. It is read first, in as many questions as that takes; then each page is asked for several
times over HTTP in this process. Printed are the first part of the reading, the median time and
processor time of each page (of client and server), its function calls when it was asked for before,
and its size before compression; in brackets how long the first answer took, the slowest one, and
all of them until the page was complete, and the longest step: the processor time during which no
other request could be answered. Calls do not depend on what else the machine does: compare
those of histories of different lengths.
"""

import argparse
import cProfile
import pstats
import statistics
import sys
import time
from collections.abc import Sequence

import anyio
import httpx

from app.bootstrap import garbage_collection
from app.web import frame
from bench import figures, folding
from bench.recorded import recorded_history

TURNS = 5
NAME = "long"
PULSE_SECONDS = 0.002
LOOK_AGAIN_SECONDS = 0.4
"""The time after which a browser asks again for a page that is not complete."""

SHOWN = (200, 202, 413)
"""The statuses of pages: complete or in part, not ready, and refused as too long."""

PARTS = (
    "",
    "lanes",
    "map",
    "pace",
    "timeline",
    "timeline?kind=PodScheduled",
    "timeline?text=nothing-says-this",
    "find?q=job-1",
    "scan",
    "why?kind=pod&namespace={namespace}&name={pod}",
    "object?kind=pod&namespace={namespace}&name={pod}",
    "attempts?kind=pod&namespace={namespace}&name={pod}",
    "lanes?namespace={namespace}&name={pod}",
    "capacity",
    "blast",
    "compare",
    "again",
    "rehearsal",
    "jobs",
    "behaviours",
)
"""What is asked for; a pod that is there takes the place of the names in braces."""


def main(arguments: Sequence[str] = ()) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="bench.pages", description=__doc__)
    parser.add_argument("--events", type=int, default=1_000_000)
    options = parser.parse_args(arguments)
    # As `redra up` does before it answers.
    for _ in frame.compile_templates():
        pass
    garbage_collection.expect_large_heap()
    garbage_collection.look_once()
    garbage_collection.keep_loaded()
    anyio.run(measure, options.events)


async def measure(count: int) -> None:
    """Fill a history and ask for its pages."""
    async with recorded_history(NAME, folding.pages(count)) as recorded:
        await _ask(recorded.client, recorded.last)


async def _ask(client: httpx.AsyncClient, revision: int) -> None:
    started = time.perf_counter()
    await client.get(f"/redra/v1/histories/{NAME}")
    await client.get(f"/h/{NAME}/version")
    print(f"history of {revision:,} events opened in {time.perf_counter() - started:.1f} s")
    first, questions = 0.0, 0
    started = time.perf_counter()
    while True:
        answer = await client.get(f"/redra/v1/histories/{NAME}/timeline?limit=1")
        questions += 1
        first = first or time.perf_counter() - started
        assert answer.status_code == 200, answer.text
        if answer.json()["examined"] >= revision:
            break
    whole = time.perf_counter() - started
    print(f"read in {questions} questions and {whole:.1f} s, the first took {first * 1000:,.0f} ms")
    figures.note("pages.reading_part", first * 1000)
    times: dict[str, float] = {}
    hits = (await client.get(f"/redra/v1/histories/{NAME}/find?q=pod/job")).json()["items"]
    names = {"namespace": hits[0]["namespace"], "pod": hits[0]["name"]}
    for part in (part.format(**names) for part in PARTS):
        for moment in ("", f"@{revision - 1_000}"):
            address = f"/ui/h/{NAME}{moment}/{part}"
            first = await _first(client, address)
            seconds, spent = [], []
            for _ in range(TURNS):
                began, worked = time.perf_counter(), time.process_time()
                page = await client.get(address)
                seconds.append(time.perf_counter() - began)
                spent.append(time.process_time() - worked)
                assert page.status_code in SHOWN, page.text
            times[address] = statistics.median(seconds)
            print(
                f"{times[address] * 1000:7.1f} ms {statistics.median(spent) * 1000:6.1f} ms CPU "
                f"{await _calls(client, address):9,} calls {len(page.content) / 1000:6.1f} kB  "
                f"{first}  {address}"
            )
    figures.note("pages.slowest", max(times.values()) * 1000)


class _Pulse:
    """Notes the longest processor time between two turns of a task of its own."""

    longest = 0.0

    async def beat(self) -> None:
        """Note until it is cancelled."""
        while True:
            began = time.thread_time()
            await anyio.sleep(PULSE_SECONDS)
            self.longest = max(self.longest, time.thread_time() - began)


async def _first(client: httpx.AsyncClient, address: str) -> str:
    """What `_complete` says, with the longest step meanwhile."""
    pulse = _Pulse()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(pulse.beat)
        waits = await _complete(client, address)
        tasks.cancel_scope.cancel()
    return f"({waits}; longest step {pulse.longest * 1000:5.1f} CPU)"


async def _complete(client: httpx.AsyncClient, address: str) -> str:
    """Ask until the page is complete, as a browser does; how long the answers and that took."""
    started, worked = time.perf_counter(), time.process_time()
    waits: list[tuple[float, float]] = []
    while True:
        began, spent = time.perf_counter(), time.process_time()
        page = await client.get(address)
        waits.append((time.perf_counter() - began, time.process_time() - spent))
        assert page.status_code in SHOWN, page.text
        if "data-again" not in page.text:
            whole, cpu = time.perf_counter() - started, time.process_time() - worked
            slowest, busiest = (max(times) for times in zip(*waits, strict=True))
            return (
                f"first {waits[0][0] * 1000:6.1f} ms, {waits[0][1] * 1000:5.1f} CPU; "
                f"slowest of {len(waits)} {slowest * 1000:6.1f}, {busiest * 1000:5.1f} CPU; "
                f"complete after {whole * 1000:8.1f}, {cpu * 1000:7.1f} CPU"
            )
        await anyio.sleep(LOOK_AGAIN_SECONDS)


async def _calls(client: httpx.AsyncClient, address: str) -> int:
    """The function calls for one answer, of client and server."""
    profile = cProfile.Profile()
    profile.enable()
    await client.get(address)
    profile.disable()
    calls: int = pstats.Stats(profile).total_calls  # type: ignore[attr-defined]  # no stub has it
    return calls


if __name__ == "__main__":
    main(sys.argv[1:])
