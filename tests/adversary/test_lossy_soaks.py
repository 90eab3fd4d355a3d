"""A soak that lost one line, of a kind that allocations rest on: none of it may be called wrong.

Each pool of a soak is one slice, which its driver rewrites while claims have devices of it.
"""

import json
import random
from pathlib import Path

import pytest

from tests import draws
from tests.adversary.catalogue import AGREES, FAILS, PART
from tests.adversary.log import Json, Log
from tests.adversary.running import ask, summary
from tests.conformance.soak_recordings import Load, record
from tests.run_folder import made_once

LOAD = Load(seed=81102, seconds=40, pods=60, nodes=5)
SLICE, ALLOCATION = "resourceslices create", "resourceclaims/status update"
SORTS = (SLICE, ALLOCATION, "resourceslices update", "resourceclaims update")
DECIDED = SORTS[:3]
"""Without the update that gives a claim its finalizer, `decide` still accuses the log."""


def soak() -> Log:
    """The soak without a loss."""
    folder = made_once("lossy-soak", make)
    lines = (folder / "audit.jsonl").read_text().splitlines()
    return Log([json.loads(line) for line in lines])


def make(folder: Path) -> None:
    folder.mkdir()
    record(folder, LOAD)


def sort_of(line: Json) -> str:
    """The kind and verb of a request."""
    about = line["objectRef"]
    part = f"/{about['subresource']}" if about["subresource"] else ""
    return f"{about['resource']}{part} {line['verb']}"


def drawn(log: Log, sort: str, seed: int) -> int:
    """The position of a line of a sort that is followed by others of its object."""
    names = [line["objectRef"].get("name") for line in log.lines]
    found = [
        number
        for number, line in enumerate(log.lines)
        if sort_of(line) == sort
        and line["responseStatus"]["code"] < 300
        and names[number] in names[number + 1 :]
    ]
    return random.Random(f"{sort} {seed}").choice(found)


def without(sort: str, seed: int) -> tuple[Log, Json]:
    """The soak without a line of a sort, and that line."""
    log = soak()
    return log, log.lines.pop(drawn(log, sort, seed))


@draws.in_turn("rows of ways")
@pytest.mark.parametrize(
    ("sort", "mode"),
    [(sort, "verify") for sort in SORTS] + [draws.repeated(sort, "decide") for sort in DECIDED],
)
def test_honest_soak_without_one_line_is_not_accused(sort: str, mode: str, tmp_path: Path) -> None:
    for seed in draws.seeds(1):
        log, line = without(sort, seed)
        path = tmp_path / f"{seed}.jsonl"
        path.write_text(log.text())
        answer = ask(path, "", mode)
        assert answer.verdict in (AGREES, PART), f"{line['objectRef']}: {summary(answer, mode)}"


@draws.in_turn("rows of wrongs")
@pytest.mark.parametrize("sort", [SLICE, ALLOCATION])
def test_device_that_never_was_is_wrong_beside_a_lost_line(sort: str, tmp_path: Path) -> None:
    """A claim has a device that the shown slice of another node than the lost line is of lacks."""
    log, lost = without(sort, 0)
    pools = {each["pool"] for each in results(lost)} | {lost["objectRef"]["name"][: len("node-00")]}
    chosen = next(
        line["objectRef"]["name"]
        for line in log.lines
        if sort_of(line) == ALLOCATION
        and results(line)
        and not pools & {each["pool"] for each in results(line)}
    )
    for line in log.lines:
        if line["objectRef"].get("name") == chosen:
            for each in results(line):
                each["device"] = "gpu-9"
    path = tmp_path / "audit.jsonl"
    path.write_text(log.text())
    answer = ask(path, "", "verify")
    assert answer.verdict == FAILS, summary(answer, "verify")


def results(line: Json) -> list[Json]:
    """The devices of the claim that a line shows."""
    status = (line.get("responseObject") or {}).get("status") or {}
    return status.get("allocation", {}).get("devices", {}).get("results", [])
