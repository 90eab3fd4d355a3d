"""Runs `redra replay` on an altered log and says what it answered."""

import gzip
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.adversary.catalogue import (
    AGREES,
    FAILS,
    NOT_BLAMED,
    NOT_PASSED,
    PART,
    PROFILES,
    REFUSED_OR_NOT_BLAMED,
    REFUSED_OR_NOT_PASSED,
    SAME,
    SOAK,
    Alteration,
)
from tests.adversary.log import Log
from tests.command_line import redra
from tests.kept import Kept
from tests.run_folder import made_once
from tests.shared_data import shared_path

_VERDICTS = {0: AGREES, 3: PART, 1: FAILS}

REFUSED = "refused"
_REFUSED = 2
_PLACE = re.compile(r"\.jsonl(?:\.gz)?:\d+")
"""A refusal is one only with the line that it is about."""

SOAK_LINES = 1000
"""So much of the long recording is decided again; the whole takes half a minute a run."""


@dataclass(frozen=True)
class Answer:
    """The answer of redra about a log."""

    code: int
    text: str
    body: dict[str, Any]

    @property
    def verdict(self) -> str:
        """The verdict that the exit code stands for."""
        if self.code == _REFUSED and _PLACE.search(self.text):
            return REFUSED
        if not self.body:
            return f"exit code {self.code}, no answer: {self.text[:200]}"
        return _VERDICTS.get(self.code, f"exit code {self.code}: {self.text[:200]}")


_LOGS: Kept[str, Log] = Kept()


def recording(name: str) -> Log:
    """A recording as it is; not to be changed."""
    if name not in _LOGS:
        _LOGS[name] = Log.read(shared_path("histories", name, "audit.jsonl.gz"))
    return _LOGS[name]


def altered(name: str, alteration: Alteration | None, *, mode: str) -> bytes:
    """The file that an alteration makes of a recording."""
    log = recording(name).copy()
    if name == SOAK and mode == "decide":
        log.cut(SOAK_LINES)
    if alteration is None:
        return log.text().encode()
    made = alteration.change(log)
    if made is None:
        made = log.text()
    return made if isinstance(made, bytes) else made.encode()


def ask(path: Path, name: str, mode: str, *switches: str) -> Answer:
    """What redra answers about a file, with the release of the recording that it was made of.

    `switches` name another release and more gates.
    """
    release = () if "--profile" in switches else ("--profile", PROFILES.get(name, "1.36"))
    code, out, error = redra(
        *("replay", path, "--mode", mode, *release, *switches),
        *("--gate", "DRADeviceTaintRules=true", "-o", "json"),
    )
    try:
        body = json.loads(out)
    except ValueError:
        body = {}
    return Answer(code, error or out, body)


def run(name: str, alteration: Alteration | None, mode: str, folder: Path) -> Answer:
    """Makes the altered file in the folder and asks redra about it."""
    data = altered(name, alteration, mode=mode)
    packed = data[:2] == gzip.compress(b"")[:2]
    title = alteration.name if alteration else "unaltered"
    suffix = "jsonl.gz" if packed else "jsonl"
    path = folder / f"{name}.{title}.{mode}.{suffix}"
    path.write_bytes(data)
    return ask(path, name, mode)


def baseline(name: str, mode: str, folder: Path) -> str:
    """The verdict about a recording as it is, asked for once in a run of the tests."""

    def decide(made: Path) -> None:
        made.write_text(run(name, None, mode, folder).verdict)

    return made_once(f"verdict-{mode}-{name}", decide).read_text()


def satisfied(expected: str, got: str, name: str, mode: str, folder: Path) -> bool:
    """True when the answer is the one that was fixed before."""
    if expected == SAME:
        return got == baseline(name, mode, folder)
    if expected == NOT_BLAMED:
        return got in (AGREES, PART)
    if expected == NOT_PASSED:
        return got in (FAILS, PART)
    if expected == REFUSED_OR_NOT_BLAMED:
        return got in (REFUSED, AGREES, PART)
    if expected == REFUSED_OR_NOT_PASSED:
        return got in (REFUSED, FAILS, PART)
    return expected == got


def summary(answer: Answer, mode: str) -> str:
    """One line: the broken rules, or the first differences with their classes."""
    if mode == "verify":
        rules = answer.body.get("invariants", {}).get("examples", [])
        named = sorted({f"{one.get('rule')} ({one.get('kind')})" for one in rules})
        allocations = answer.body.get("allocations", {})
        counts = allocations.get("counts", {})
        different = counts.get("different", 0)
        missing = counts.get("not comparable", 0)
        return f"{answer.body.get('outcome')}: {', '.join(named)}; {different} allocations" + (
            f", {missing} not comparable" if missing else ""
        )
    shown = [
        f"{one['aspect']} of {one['subject']}: {one['class']} ({one.get('detail')})"
        for one in answer.body.get("differences", [])
    ]
    shown.sort(key=lambda text: "unexplained" not in text)
    return f"{answer.body.get('outcome')}: " + "; ".join(shown[:4])
