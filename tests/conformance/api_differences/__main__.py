"""Replays the recorded differences and prints their verdicts.

python -m tests.conformance.api_differences [FILE…] [--show] [--only KEY]
"""

import argparse
import sys
from collections import Counter
from pathlib import Path

import anyio

from tests.conformance.api_differences.judging import FILES, Judgement, Verdict, judge, load_entries
from tests.shared_data import shared_path


def main() -> None:
    """Prints the counts by file, and the titles of open and stale differences."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--show", action="store_true", help="print what is lacking")
    parser.add_argument("--listed", action="store_true", help="print listed ones too")
    options = parser.parse_args()
    files = options.files or [shared_path("api-differences", name) for name in FILES]
    entries = load_entries()
    for path in files:
        judgements = anyio.run(judge, path.read_text(encoding="utf-8"), entries.get(path.name, {}))
        _print(path.name, judgements, show=options.show, listed=options.listed)


def _print(name: str, judgements: list[Judgement], *, show: bool, listed: bool) -> None:
    for judgement in judgements:
        hidden = {Verdict.GONE} if listed else {Verdict.GONE, Verdict.LISTED}
        if judgement.verdict in hidden:
            continue
        block = judgement.block
        head = f"{judgement.verdict} {block.key} {judgement.row}"
        sys.stdout.write(f"{head.rstrip()} {block.title[:300]}\n")
        if show:
            sys.stdout.write(f"{judgement.lacks}\n\n")
    counts = Counter(judgement.verdict for judgement in judgements)
    told = ", ".join(f"{counts[verdict]} {verdict}" for verdict in Verdict)
    sys.stdout.write(f"{name}: {told}\n")


if __name__ == "__main__":
    main()
