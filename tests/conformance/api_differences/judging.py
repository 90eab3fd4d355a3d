"""The verdict on each block: gone, listed with a row of the documented behaviours, or open."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher, unified_diff
from enum import StrEnum
from pathlib import Path
from typing import Any

from tests.conformance.api_differences.blocks import Block, Hunk, read
from tests.conformance.api_differences.replaying import is_cut, masked, replay

FILES = ("d1.txt", "d2.txt", "d3.txt")
DATA = Path(__file__).resolve().parent.parent / "data" / "api-differences.json"
SHOWN_LINES_MAX = 40
BEHAVIOURS = Path(__file__).resolve().parents[3] / "docs" / "reference" / "behaviours.md"


class Verdict(StrEnum):
    """The verdict on a difference."""

    GONE = "gone"
    LISTED = "listed"
    OPEN = "open"
    STALE = "stale"
    """Listed, and no longer there, or no longer as the entry says."""


@dataclass(frozen=True)
class Judgement:
    """The verdict on a block, its explaining row, and the missing parts of the real answer."""

    block: Block
    verdict: Verdict
    row: str
    lacks: str


def load_entries() -> dict[str, dict[str, Any]]:
    """Loads the known facts about blocks, by file and key."""
    entries: dict[str, dict[str, Any]] = json.loads(DATA.read_text(encoding="utf-8"))
    return entries


def documented_rows() -> set[str]:
    """The numbers of the rows in docs/reference/behaviours.md."""
    text = BEHAVIOURS.read_text(encoding="utf-8")
    return set(re.findall(r"(?m)^\| ([A-Z]\d+) \|", text))


async def judge(text: str, entries: dict[str, Any]) -> list[Judgement]:
    """The verdicts on the blocks of a file, in their order."""
    blocks = [block for block in read(text) if block.method]
    rows = documented_rows()
    judgements = []
    for block in blocks:
        entry = entries.get(block.key, {})
        judgements.append(await _judgement(block, blocks, entry, rows))
    return judgements


async def _judgement(
    block: Block, blocks: Sequence[Block], entry: dict[str, Any], rows: set[str]
) -> Judgement:
    row = entry.get("row", "")
    if row and row not in rows:
        return Judgement(block, Verdict.STALE, row, "no such row is documented")
    if not block.method or (
        is_cut(block) and not entry.get("rest") and not block.body.endswith("}}")
    ):
        reason = "no request" if not block.method else "the body is cut"
        return Judgement(block, Verdict.LISTED if row else Verdict.OPEN, row, reason)
    try:
        answer = await replay(block, blocks, entry)
    except TimeoutError:
        return Judgement(block, Verdict.OPEN, row, "no answer")
    lacks = missing(block.hunks, answer)
    if not row:
        return Judgement(block, Verdict.OPEN if lacks else Verdict.GONE, row, lacks)
    shown = [part for part in entry.get("ours", ()) if part not in answer]
    if not lacks or shown:
        reason = f"our answer lacks {shown}\n{answer}" if shown else "the difference is gone"
        return Judgement(block, Verdict.STALE, row, reason)
    return Judgement(block, Verdict.LISTED, row, lacks)


def missing(hunks: Sequence[Hunk], answer: str) -> str:
    """The parts of the real answer that redra's answer lacks, each as a difference."""
    lines = [masked(line) for line in answer.rstrip("\n").split("\n")]
    parts = []
    for hunk in hunks:
        wanted = [masked(line) for line in hunk.real]
        width = len(wanted)
        if any(lines[at : at + width] == wanted for at in range(len(lines) - width + 1)):
            continue
        parts.append(_difference(wanted, _nearest(wanted, lines)))
    return "\n".join(parts)


def _difference(wanted: list[str], lines: list[str]) -> str:
    difference = list(unified_diff(wanted, lines, lineterm="", n=1))[2:]
    if len(difference) > SHOWN_LINES_MAX:
        difference[SHOWN_LINES_MAX:] = [f"… {len(difference) - SHOWN_LINES_MAX} more lines"]
    return "\n".join(difference)


def _nearest(wanted: list[str], lines: list[str]) -> list[str]:
    """The lines of redra's answer that are most similar to the wanted ones, for display."""
    blocks = SequenceMatcher(None, lines, wanted, autojunk=False).get_matching_blocks()
    matching = [block for block in blocks if block.size]
    if not matching:
        return lines[:40]
    begin = max(0, matching[0].a - matching[0].b)
    end = matching[-1].a + matching[-1].size + len(wanted) - matching[-1].b - matching[-1].size
    return lines[begin:end]
