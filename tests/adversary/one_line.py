"""Honest logs that lost one line: nothing of what is left may be called wrong.

`python -m tests.adversary.one_line RECORDING --from 0 --every 5` leaves out each fifth write of a
recording, one at a time, lets `decide` judge what is left, and counts the logs that are accused.
"""

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.adversary.catalogue import FAILS, NOT_BLAMED
from tests.adversary.log import Json, Log
from tests.adversary.running import Answer, ask, recording, satisfied, summary

_READS = ("get", "list", "watch")
_UNJUDGED = ("events", "leases")
"""Kinds of which no decision depends on a single line."""


def positions(name: str) -> list[int]:
    """Where the writes of a recording are, whether they were accepted or not."""
    return [
        number
        for number, line in enumerate(recording(name).lines)
        if line["verb"] not in _READS and line["objectRef"].get("resource") not in _UNJUDGED
    ]


def without(name: str, number: int) -> tuple[Log, Json]:
    """A recording without the line at a position, and that line."""
    log = recording(name).copy()
    return log, log.lines.pop(number)


def judged(name: str, log: Log, folder: Path) -> Answer:
    """What `decide` answers about a log."""
    path = folder / "audit.jsonl"
    path.write_text(log.text())
    return ask(path, name, "decide")


def is_accused(name: str, answer: Answer, folder: Path) -> bool:
    """Whether an honest log is called wrong, or gets no answer."""
    return not satisfied(NOT_BLAMED, answer.verdict, name, "decide", folder)


def main(given: Sequence[str] | None = None) -> int:
    """Prints each accused log and a count; 1 when there is one."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.adversary.one_line", description=__doc__.split("\n")[0]
    )
    parser.add_argument("recording")
    parser.add_argument("--from", dest="start", type=int, default=0)
    parser.add_argument("--every", type=int, default=5)
    options = parser.parse_args(given)
    name = options.recording
    chosen = positions(name)[options.start :: options.every]
    accused = 0
    with tempfile.TemporaryDirectory() as folder:
        for number in chosen:
            log, line = without(name, number)
            answer = judged(name, log, Path(folder))
            if is_accused(name, answer, Path(folder)):
                accused += 1
                about = line["objectRef"]
                what = f"{line['verb']} {about['resource']} {about.get('name', '')}"
                print(f"{number} {what}: {summary(answer, 'decide')}"[:300], flush=True)
    verdict = FAILS if accused else NOT_BLAMED
    print(f"{name}: {len(chosen)} logs without one line, {accused} accused ({verdict})")
    return int(accused > 0)


if __name__ == "__main__":
    raise SystemExit(main())
