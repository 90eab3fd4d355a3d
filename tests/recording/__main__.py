"""Kills a cluster and its recorder, as processes, while clients write behind a bad network.

    python -m tests.recording [--seeds 4] [--first 0] [--kills 10]

Of each seed two stories: in one the network loses lines, too. Prints what the judge says of each.
"""

import argparse
import tempfile
from functools import partial
from pathlib import Path

import anyio

from tests.recording import killing


def main() -> int:
    """Run the stories; 1 if the recording of one is wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.recording")
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--kills", type=int, default=10)
    arguments = parser.parse_args()
    failed = 0
    for seed in range(arguments.first, arguments.first + arguments.seeds):
        for loses in (False, True):
            with tempfile.TemporaryDirectory(prefix="redra-kills-") as folder:
                live = partial(killing.live, kills=arguments.kills, loses=loses)
                verdict = anyio.run(live, Path(folder), seed)
            wrong = verdict.wrong
            if not loses:
                wrong = [*wrong, *verdict.gaps, *verdict.unseen]
            failed += bool(wrong)
            print(
                f"seed {seed}{', lossy' if loses else ''}: {verdict.shown} events, "
                f"{len(verdict.gaps)} gaps, {verdict.missing} missing, of which "
                f"{len(verdict.unseen)} nobody can notice, {verdict.late} late; "
                f"{'WRONG' if wrong else 'right'}",
                *wrong[:10],
                sep="\n  ",
                flush=True,
            )
    return bool(failed)


if __name__ == "__main__":
    raise SystemExit(main())
