"""Counts function calls for a pod with a claim, without a database: `python -m bench.calls`.

The count includes calls of C functions, from the create of a pod until it runs: the writer of a
server and all controllers, without HTTP, log and projector. Other processes do not change the
figure; the lengths of batches change it by one percent. It approximates processor time, which is
printed as well, for pods that are made before the counting begins. With `--steady` the pods come
and go while half of the devices are held, and are counted until they and their claims are gone.
"""

import argparse
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


async def measure(pods: int, nodes: int, is_steady: bool) -> None:
    """Print processor time and calls a pod, of as many pods each."""
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
        await run("first")
        before = time.process_time()
        await run("second")
        spent = time.process_time() - before
        counter.start()
        await run("third")
        counter.stop()
    print(f"{spent / pods * 1e3:.2f} ms CPU a pod, {counter.calls / pods:.0f} calls a pod")


def main(arguments: Sequence[str] = ()) -> None:
    """Run the measurement."""
    parser = argparse.ArgumentParser(prog="bench.calls", description=__doc__)
    parser.add_argument("--pods", type=int, default=500, help="pods of each round")
    parser.add_argument("--nodes", type=int, default=200, help=f"nodes of {DEVICES} devices")
    parser.add_argument("--steady", action="store_true", help="pods that come and go")
    options = parser.parse_args(arguments)
    if options.steady and options.nodes * DEVICES < 4 * shapes.CHURNING:
        parser.error(f"{options.nodes} nodes have too few devices for pods that come and go")
    if not options.steady and 3 * options.pods > options.nodes * DEVICES:
        parser.error(f"{options.nodes} nodes have too few devices for 3 x {options.pods} pods")
    chosen = (options.pods, options.nodes, options.steady)
    anyio.run(measure, *chosen, backend_options={"use_uvloop": True})


if __name__ == "__main__":
    main(sys.argv[1:])
