"""Counts function calls for a pod with a claim, without a database: `python -m bench.calls`.

The count includes calls of C functions, from the create of a pod until it runs: the writer of a
server and all controllers, without HTTP, log and projector. Other processes do not change the
figure; the lengths of batches change it by one percent. It approximates processor time, which is
printed as well, for pods that are made before the counting begins. With `--steady` the pods come
and go while half of the devices are held, and are counted until they and their claims are gone.

With `--rounds N` nothing is counted: N rounds of as many pods each are timed, and the least round,
the lower quarter and the median are printed. Where other processes slow some rounds down, the
lower quarter of several runs in turns tells two states apart better than one long round does.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Sequence
from types import FrameType

import anyio

from bench import cluster, shapes
from bench.cluster import DEVICES


class Counter:
    """Counts calls between `start` and `stop`."""

    def __init__(self) -> None:
        self.calls = 0

    def start(self) -> None:
        """Count from now on."""
        sys.setprofile(self._note)

    def stop(self) -> None:
        """Count no longer."""
        sys.setprofile(None)

    def _note(self, frame: FrameType, event: str, argument: object) -> None:
        if event in ("call", "c_call"):
            self.calls += 1


async def measure(pods: int, nodes: int, is_steady: bool, rounds: int) -> None:
    """Print processor time and calls a pod, of as many pods each, or the times of the rounds."""
    counter = Counter()
    async with cluster.history_in_memory() as made:

        async def run(prefix: str) -> None:
            if is_steady:
                await shapes.churn(made, pods, "")
            else:
                await shapes.arrive(made, shapes.template_pods(prefix, pods), "")

        await cluster.prepare(made, nodes)
        if is_steady:
            await shapes.arrive(made, shapes.template_pods("held", nodes * DEVICES // 2), "")

        async def timed(prefix: str) -> float:
            before = time.process_time()
            await run(prefix)
            return (time.process_time() - before) / pods * 1e3

        await run("first")
        if rounds:
            print(spread([await timed(f"round-{number}") for number in range(rounds)]))
            return
        spent = await timed("second")
        counter.start()
        await run("third")
        counter.stop()
    print(f"{spent:.2f} ms CPU a pod, {counter.calls / pods:.0f} calls a pod")


def spread(times: Sequence[float]) -> str:
    """The least, the lower quarter and the median of some milliseconds."""
    quarter, middle, _ = statistics.quantiles(times, n=4, method="inclusive")
    return (
        f"ms CPU a pod of {len(times)} rounds: least {min(times):.2f}, lower quarter "
        f"{quarter:.2f}, median {middle:.2f}"
    )


def main(arguments: Sequence[str] = ()) -> None:
    """Run the measurement."""
    parser = argparse.ArgumentParser(prog="bench.calls", description=__doc__)
    parser.add_argument("--pods", type=int, default=500, help="pods of each round")
    parser.add_argument("--nodes", type=int, default=200, help=f"nodes of {DEVICES} devices")
    parser.add_argument("--steady", action="store_true", help="pods that come and go")
    parser.add_argument("--rounds", type=int, default=0, help="rounds to time; none are counted")
    options = parser.parse_args(arguments)
    if options.rounds < 0 or options.rounds == 1:
        parser.error("--rounds takes 2 or more")
    made_for = 1 + (options.rounds or 2)
    if options.steady and options.nodes * DEVICES < 4 * shapes.CHURNING:
        parser.error(f"{options.nodes} nodes have too few devices for pods that come and go")
    if not options.steady and made_for * options.pods > options.nodes * DEVICES:
        parser.error(
            f"{options.nodes} nodes have too few devices for {made_for} x {options.pods} pods"
        )
    chosen = (options.pods, options.nodes, options.steady, options.rounds)
    anyio.run(measure, *chosen, backend_options={"use_uvloop": True})


if __name__ == "__main__":
    main(sys.argv[1:])
