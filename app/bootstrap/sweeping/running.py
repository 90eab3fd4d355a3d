"""The run of a sweep: runs the missing cells and keeps each result at once.

Results are kept in the folder of the sweep, one file for each cell. The file is named by the digest
of the cell, the history and the program. A cell that fails is named in the table and is run again
the next time.
"""

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from app.adapters import whole_files
from app.analysis.sweep import measures, plans
from app.analysis.sweep.plans import Cell, SweepPlan
from app.bootstrap.executors import Executor, Task
from app.bootstrap.recordings import PROGRAM
from app.bootstrap.sweeping.tables import FILES
from app.domain.errors import InputError
from app.domain.values.json_tree import JsonObject

CELLS = "cells"

TABLES = "tables.json"
"""The file in that folder that names the cells in the tables."""

ReportCounts = Callable[[int, int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Swept:
    """A finished sweep: its rows in the order of the plan, and how many ran now or failed."""

    rows: list[JsonObject]
    ran: int
    failed: int


def check_tables(plan: SweepPlan, bundles: dict[str, bytes], folder: Path) -> None:
    """Raise InputError when the folder has tables with runs that are not of this plan."""
    there = next((name for name in FILES if (folder / name).exists()), None)
    if there is None:
        return
    try:
        earlier = msgspec.json.decode((folder / CELLS / TABLES).read_bytes(), type=set[str])
    except (OSError, msgspec.DecodeError):
        earlier = {""}
    if not earlier <= set(_names(plan, _digests(bundles)).values()):
        raise InputError(
            "it already exists, with other runs",
            place=str(folder / there),
            cure="name another folder, or overwrite it: --force",
        )


def sweep(
    plan: SweepPlan,
    bundles: dict[str, bytes],
    executor: Executor,
    folder: Path,
    report_counts: ReportCounts,
) -> Swept:
    """Run the cells of a plan that have no result in the folder. Raises InputError."""
    kept = folder / CELLS
    try:
        kept.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise InputError(f"it cannot be made: {problem.strerror}", place=str(kept)) from problem
    for written in (folder, kept):
        whole_files.remove_leftovers(written)
    digests = _digests(bundles)
    every = list(plans.cells(plan))
    names = _names(plan, digests)
    results = {
        number: result
        for number, name in names.items()
        if (result := _kept_result(kept / f"{name}.json")) is not None
    }
    missing = {names[cell.number]: cell for cell in every if cell.number not in results}
    tasks = [
        Task(digest=name, bundle=digests[cell.history], data=cell.to_json())
        for name, cell in missing.items()
    ]
    contents = {digests[name]: content for name, content in bundles.items()}
    problems: dict[str, str] = {}
    fresh: dict[str, JsonObject] = {}
    report_counts(len(results), len(every))
    needed = {task.bundle for task in tasks}
    contents = {digest: content for digest, content in contents.items() if digest in needed}
    for done in executor.map(run_cell, contents, tasks) if tasks else ():
        if done.problem:
            problems[done.task.digest] = done.problem
        else:
            fresh[done.task.digest] = done.result
            _keep(kept / f"{done.task.digest}.json", done.result)
        report_counts(len(results) + len(fresh) + len(problems), len(every))
    _keep(kept / TABLES, sorted(names.values()))
    by_number = results | {number: fresh[name] for number, name in names.items() if name in fresh}
    rows = [_row(cell, by_number, problems.get(names[cell.number], "")) for cell in every]
    return Swept(rows=rows, ran=len(fresh), failed=sum(bool(row["problem"]) for row in rows))


def run_cell(bundle: bytes, data: Any) -> JsonObject:
    """The row of a cell; the task of the workers."""
    # Loaded where it runs, not in a process that only hands cells to workers.
    from app.bootstrap.sweeping import cells

    return cells.run(bundle, data)


def _digests(bundles: dict[str, bytes]) -> dict[str, str]:
    return {name: hashlib.sha256(content).hexdigest() for name, content in bundles.items()}


def _names(plan: SweepPlan, digests: dict[str, str]) -> dict[int, str]:
    """The names under which results are kept, by the number of the cell."""
    return {cell.number: cell.digest(PROGRAM, digests[cell.history]) for cell in plans.cells(plan)}


def _keep(path: Path, result: object) -> None:
    """Write a result; an existing file is always complete."""
    whole_files.write(path, msgspec.json.encode(result, order="sorted"))


def _kept_result(path: Path) -> JsonObject | None:
    """A result that was kept; None if there is none or it is damaged, so that the cell runs."""
    try:
        result = msgspec.json.decode(path.read_bytes())
    except (OSError, msgspec.DecodeError):
        return None
    return result if isinstance(result, dict) and "fates" in result else None


def _row(cell: Cell, results: dict[int, JsonObject], problem: str) -> JsonObject:
    result = results.get(cell.number)
    base = results.get(cell.base)
    row: JsonObject = {"cell": cell.number, **dict(_named(cell)), "problem": problem}
    if result is None:
        return row
    row |= {name: value for name, value in result.items() if name != "fates"}
    row["differing"] = None if base is None else measures.differing(result["fates"], base["fates"])
    return row


def _named(cell: Cell) -> Iterator[tuple[str, object]]:
    yield "history", cell.history
    yield "profile", cell.profile
    yield "gates", _switches(cell.gates)
    yield "quirks", _switches(cell.quirks)
    yield "change", "" if cell.change is None else cell.change.name
    yield "seed", cell.seed


def _switches(switches: dict[str, bool]) -> str:
    return ",".join(f"{name}={str(on).lower()}" for name, on in sorted(switches.items()))
