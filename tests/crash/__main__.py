"""Kills processes by a seed: `python -m tests.crash --kills 200 --seed 1`, or `make crash`.

Seven of ten kills happen inside one process, under virtual time, at any call of a port. The others
kill real processes over a real PostgreSQL: workers, API and projector of a divided cluster, `redra
up` as a whole or the projector beside it, and sometimes PostgreSQL itself. Each story must end like
the story without kills; see `judging`.
"""

import argparse
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path

import anyio

from tests.crash import told_inside, told_outside
from tests.crash.told_inside import Told

INSIDE_PER_STORY = 20
OUTSIDE = 0.3
"""The part of the kills that real processes get."""

TOGETHER = 0.25
"""The part of those that hits `redra up` as a whole."""

DELAY_MILLIS = 4_000
"""How long bindings take in every second story inside: long enough to die between their acts."""

EXACT = ("pods", "claims", "Assumed", "Reserved", "Scheduled", "Evicted", "Completed")
"""What is counted in the log, and must be as often as without kills."""


def check_same(told: Told, plain: Told) -> None:
    """Checks that the kills made no difference. Raises AssertionError."""
    for chapter, (found, wanted) in enumerate(zip(told.states, plain.states, strict=True)):
        assert found == wanted, f"chapter {chapter}: {found} instead of {wanted}"
    for word in EXACT:
        assert told.counted[word] == plain.counted[word], f"{told.counted[word]} {word}"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.crash")
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--outside", type=int, help="how many of them hit real processes")
    chosen = parser.parse_args(arguments)
    outside = int(chosen.kills * OUTSIDE) if chosen.outside is None else chosen.outside
    whole = int(outside * TOGETHER)
    began = time.monotonic()
    killed: Counter[str] = Counter()
    try:
        plains = {delay: told_inside.tell(0, 0, delay) for delay in (None, DELAY_MILLIS)}
        plain = plains[None]
        seed, left = chosen.seed, chosen.kills - outside
        while left > 0:
            delay = None if seed % 2 else DELAY_MILLIS
            told = told_inside.tell(seed, min(left, INSIDE_PER_STORY), delay)
            check_same(told, plains[delay])
            killed.update(f"inside {where.split(' ', 1)[1]}" for where in told.killed)
            left -= len(told.killed)
            seed += 1
        print(
            f"inside: {sum(killed.values())} kills, seeds {chosen.seed} to {seed - 1}", flush=True
        )
        for together, kills in ((True, whole), (False, outside - whole)):
            if kills:
                killed.update(_outside(chosen.seed, kills, plain, together=together))
    except (AssertionError, ExceptionGroup):
        traceback.print_exc()
        print(f"again: python -m tests.crash --kills {chosen.kills} --seed {chosen.seed}")
        return 1
    for where, number in sorted(killed.items()):
        print(f"{number:5} {where}")
    seconds = time.monotonic() - began
    print(f"{sum(killed.values())} kills, every story ended as without them; {seconds:.0f} s")
    return 0


def _outside(seed: int, kills: int, plain: Told, *, together: bool) -> list[str]:
    async def tell(folder: Path) -> told_outside.Toll:
        return await told_outside.tell(folder, seed, kills, plain.states, together=together)

    with tempfile.TemporaryDirectory(prefix="redra-crash-") as folder:
        toll = anyio.run(tell, Path(folder))
    print(f"processes: {len(toll.killed)} kills, {toll.repeats} repeated requests", flush=True)
    return [f"process {where}" for where in toll.killed]


if __name__ == "__main__":
    sys.exit(main())
