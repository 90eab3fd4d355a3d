"""`python -m tests.adversary --out FOLDER`: a table of what redra says of altered recordings."""

import argparse
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from tests.adversary import all_alterations
from tests.adversary.catalogue import ALL, Alteration
from tests.adversary.log import NotFound
from tests.adversary.opened import OPEN
from tests.adversary.running import run, satisfied, summary

MODES = ("verify", "decide")


def rows(only: str, modes: tuple[str, ...]) -> Iterator[tuple[str, Alteration, str]]:
    """The recordings, alterations and modes whose text contains all of the words."""
    for one in all_alterations().values():
        for name in one.recordings:
            for mode in modes:
                expected = getattr(one, mode)
                text = f"{one.family} {one.name} {name} {mode}"
                if expected and all(word in text for word in only.split()):
                    yield name, one, mode


def main() -> int:
    """Runs the rows, prints one line for each and a count; 1 when one is not as expected."""
    parser = argparse.ArgumentParser(prog="python -m tests.adversary", description=__doc__)
    parser.add_argument("--out", type=Path, help="folder of the altered logs and results.jsonl")
    parser.add_argument("--only", default="", help="words: family, alteration, recording, mode")
    parser.add_argument("--mode", choices=MODES)
    parser.add_argument("--resume", action="store_true", help="skip rows that the folder has")
    parser.add_argument("--list", action="store_true", help="list the alterations with reasons")
    given = parser.parse_args()
    chosen = list(rows(given.only, (given.mode,) if given.mode else MODES))
    if given.list:
        for one in dict.fromkeys(one for _, one, _ in chosen):
            print(f"{one.family:10} {one.name}: {one.why}")
            print(f"{'':10} on {', '.join(one.recordings)}: {one.verify} / {one.decide}")
        return 0
    if given.out is None:
        parser.error("--out is missing")
    given.out.mkdir(parents=True, exist_ok=True)
    wrong = 0
    if given.resume and (given.out / "results.jsonl").exists():
        done = [json.loads(row) for row in (given.out / "results.jsonl").open()]
        known = {(row["recording"], row["alteration"], row["mode"]) for row in done}
        chosen = [row for row in chosen if (row[0], row[1].name, row[2]) not in known]
    with (given.out / "results.jsonl").open("a") as results:
        for name, one, mode in chosen:
            wrong += not _row(name, one, mode, given.out, results)
    print(f"{len(chosen)} rows, {wrong} not as expected ({len(ALL)} recordings)")
    return int(wrong > 0)


def _row(name: str, one: Alteration, mode: str, folder: Path, results: TextIO) -> bool:
    expected = getattr(one, mode)
    start = time.process_time()
    try:
        answer = run(name, one, mode, folder)
        got, said = answer.verdict, summary(answer, mode)
    except NotFound as missing:
        got, said = f"no such place: {missing}", ""
    right = satisfied(expected, got, name, mode, folder)
    opened = OPEN.get((name, one.name, mode))
    mark = "ok" if right else ("open" if opened == got else "WRONG")
    took = time.process_time() - start
    print(f"{mark:5} {name:22} {mode:6} {one.name}: {expected} -> {got} [{took:.1f} s]", flush=True)
    if not right:
        print(f"      {said}", flush=True)
    row = {
        "recording": name,
        "alteration": one.name,
        "family": one.family,
        "mode": mode,
        "expected": expected,
        "got": got,
        "right": right,
        "said": said,
    }
    results.write(json.dumps(row) + "\n")
    return right


if __name__ == "__main__":
    raise SystemExit(main())
