"""`redra sweep`: a matrix of runs over histories or fleets, as a table and plots."""

from pathlib import Path
from typing import Annotated

import typer

from app.cli import console, exit_codes
from app.cli.console import ForceOption, LongOutputOption, Output, ProgressBar
from app.cli.exit_codes import ExitCode
from app.cli.serving import DataOption
from app.domain.errors import InputError
from app.domain.values import counts


def register(root: typer.Typer) -> None:
    """Add the command of this module."""
    root.command("sweep")(sweep)


def sweep(
    plan: Annotated[Path, typer.Argument(help="The plan, a YAML file.")],
    folder: Annotated[
        Path,
        console.file_option("--output-folder", "-o", help="Folder for results and tables."),
    ],
    workers: Annotated[
        int, typer.Option(min=0, max=256, help="Number of local processes for the runs (Dask).")
    ] = 0,
    scheduler: Annotated[
        str, typer.Option(metavar="tcp://HOST:PORT", help="Run on an existing Dask cluster.")
    ] = "",
    force: ForceOption = False,
    data: DataOption = None,
    output: LongOutputOption = Output.TEXT,
) -> None:
    """Run histories or fleets under releases, gates, quirks, changes and orders of arrival.

    Each run decides again from the inputs from outside. A table (table.csv, index.html, and
    table.parquet with redra[cluster]) has for each run: the number of pods that were placed, wait
    or were evicted; the duration of bindings; the largest claim of each class that still fits;
    counters that no device can use; and the number of pods whose outcome differs from the base. A
    finished run is not repeated. A run that fails does not stop the others, and the exit code is
    then 1.
    """
    from app.analysis.sweep import plans
    from app.bootstrap import executors, garbage_collection, process_settings
    from app.bootstrap.manifests import read_documents
    from app.bootstrap.sweeping import histories, running, tables

    settings = process_settings.settings(data=data)
    documents = read_documents(plan)
    if len(documents) != 1:
        raise InputError("it must hold one mapping", place=str(plan))
    wanted = plans.parse(documents[0][1], str(plan))
    garbage_collection.expect_large_heap()

    async def read() -> dict[str, bytes]:
        return await histories.bundles(wanted, settings, plan.parent)

    bundles = console.run(read)
    if not force:
        running.check_tables(wanted, bundles, folder)
    with executors.opened(workers, scheduler) as executor, ProgressBar("sweeping") as progress:
        swept = running.sweep(wanted, bundles, executor, folder, progress.to)
    files = tables.write(swept.rows, folder, f"Sweep {plan.stem}")
    if output is Output.JSON:
        console.say_json({"rows": swept.rows, "ran": swept.ran, "failed": swept.failed})
    else:
        shown = ("history", "profile", "gates", "quirks", "change", "seed")
        measured = ("placed", "waiting", "evicted", "boundMean", "stranded", "differing", "problem")
        rows = [{**row, "stranded": tables.stranded_text(row)} for row in swept.rows]
        console.table(
            (*shown, *measured),
            [[row.get(name, "") for name in (*shown, *measured)] for row in rows],
        )
        console.say()
        console.say(
            f"{counts.of(len(swept.rows), 'run')}, {swept.ran} of them now: {folder}/{files[1]}"
        )
    if swept.failed:
        console.note(f"{counts.of(swept.failed, 'run')} failed; the same command tries them again")
        exit_codes.conclude(ExitCode.NO)
