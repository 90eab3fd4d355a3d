"""`redra sweep`: a matrix of runs over histories or fleets, as a table and plots."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from app.cli import console, exit_codes
from app.cli.connecting import jobs, reading
from app.cli.connecting.answering import AnswerSource
from app.cli.connecting.jobs import ServerJob
from app.cli.connecting.reading import ReadingCommand
from app.cli.console import ForceOption, LongOutputOption, Output, ProgressBar
from app.cli.exit_codes import ExitCode
from app.cli.serving import DataOption
from app.domain.errors import InputError, NotFound
from app.domain.values import counts

if TYPE_CHECKING:
    from app.analysis.sweep.plans import SweepPlan
    from app.bootstrap.asking.servers import AskedServer
    from app.domain.values.json_tree import JsonObject


def register(root: typer.Typer) -> None:
    """Add the command of this module."""
    root.command("sweep", cls=ReadingCommand)(sweep)


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
    then 1. A server that you name runs plans of its histories and of fleets in one process, and
    keeps no finished runs.
    """
    from app.bootstrap import executors

    if workers and not scheduler and executors.is_installed():
        executors.load_ahead(["app.bootstrap.sweeping.running", "app.bootstrap.sweeping.cells"])
    from app.analysis.sweep import plans
    from app.bootstrap import garbage_collection, process_settings
    from app.bootstrap.manifests import read_documents
    from app.bootstrap.sweeping import histories, running, tables

    settings = process_settings.settings(data=data)
    documents = read_documents(plan)
    if len(documents) != 1:
        raise InputError("it must hold one mapping", place=str(plan))
    wanted = plans.parse(documents[0][1], str(plan))
    server = AnswerSource(data).named_server
    if server is not None and all(
        jobs.is_history(name, server, plan.parent) for name in wanted.histories
    ):
        jobs.refuse_workers(workers, scheduler)
        if not force:
            _check_free(folder)
        _show(_served(server, wanted, documents[0][1], plan, folder), folder, output)
        return
    executors.check_workers(workers, scheduler)
    reading.note_asked("")
    garbage_collection.expect_large_heap()

    async def read() -> dict[str, bytes]:
        return await histories.bundles(wanted, settings, plan.parent)

    bundles = console.run(read)
    if not force:
        running.check_tables(wanted, bundles, folder)
    with executors.opened(workers, scheduler) as executor, ProgressBar("sweeping") as progress:
        swept = running.sweep(wanted, bundles, executor, folder, progress.to)
    tables.write(swept.rows, folder, f"Sweep {plan.stem}")
    _show({"rows": swept.rows, "ran": swept.ran, "failed": swept.failed}, folder, output)


def _check_free(folder: Path) -> None:
    """Raise InputError when the folder has tables, of which a server knows no runs."""
    from app.bootstrap.sweeping.tables import FILES

    for name in FILES:
        console.check_free(folder / name, force=False)


def _served(
    server: "AskedServer", wanted: "SweepPlan", tree: "JsonObject", plan: Path, folder: Path
) -> "JsonObject":
    """The result of a server's runs, whose tables are written."""
    from app.adapters import whole_files
    from app.bootstrap.manifests import read_documents

    files = dict.fromkeys(file for fleet in wanted.fleets for file in fleet.apply)
    manifests = {
        file: [document for _, document in read_documents(plan.parent / file)] for file in files
    }
    body = {"plan": tree, "manifests": manifests, "name": plan.stem}
    names = [name.partition("@")[0] for name in wanted.histories]
    try:
        job = ServerJob(server, "/redra/v1/sweep", body, *names)
    except NotFound as problem:
        raise InputError(problem.message) from problem
    with ProgressBar("sweeping") as progress:
        result: JsonObject = job.wait(lambda now: progress.to(now["done"], now["total"]))
    contents = job.fetch()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in contents.items():
            whole_files.write(folder / Path(name).name, content)
    except OSError as problem:
        raise InputError(
            f"it cannot be written: {problem.strerror}", place=str(folder)
        ) from problem
    return result


def _show(swept: "JsonObject", folder: Path, output: Output) -> None:
    """Print the table, and set the exit code."""
    from app.analysis.sweep import columns
    from app.bootstrap.sweeping import tables

    if swept["failed"]:
        exit_codes.conclude(ExitCode.NO)
    with reading.rendering():
        if output is Output.JSON:
            console.say_json(swept)
        else:
            rows = swept["rows"]
            bases = columns.bases(rows)
            numbers = [f"{row['cell']}{' (base)' * (row['cell'] in bases)}" for row in rows]
            console.table(
                [columns.worded(name) for name in ("cell", *columns.BRIEF)],
                [
                    [number, *columns.brief(row).values()]
                    for number, row in zip(numbers, rows, strict=True)
                ],
            )
            console.say()
            console.say(
                f"{counts.of(len(rows), 'run')}, {swept['ran']} of them now: "
                f"{folder}/{tables.FILES[1]}"
            )
    if swept["failed"]:
        failed = counts.of(swept["failed"], "run")
        console.note(f"{failed} failed; the same command tries them again")
