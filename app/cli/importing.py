"""`redra import`: histories from recordings."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from app.cli import console
from app.cli.arguments import moments
from app.cli.console import Output, OutputOption, ProgressBar
from app.cli.serving import DataOption, GateOption, QuirkOption
from app.domain.errors import InputError
from app.domain.values import counts, timestamps

if TYPE_CHECKING:
    from app.bootstrap.recordings import Imported, RecordingFiles
    from app.settings import Settings

FormatOption = Annotated[
    str,
    typer.Option(
        help="auto, or the format of files whose content does not show it: audit, watch, dump, "
        "bundle, kwok, kshrk, khi, simkube, simulator-record, simulator-export, "
        "scheduler-snapshot, scheduler-log, etcd or kine."
    ),
]


def register(root: typer.Typer) -> None:
    """Add the command of this module."""
    root.command("import")(import_history)


def import_history(
    sources: Annotated[
        list[Path], typer.Argument(metavar="SOURCE…", help="Files or folders of one cluster.")
    ],
    history: Annotated[str, typer.Option(help="Name of the new history.")],
    format: FormatOption = "auto",
    at: Annotated[
        str, moments.option(help="The time of an object dump: an instant, or 10m before now.")
    ] = "",
    unwrap: Annotated[
        str, typer.Option(help="The field that holds the audit event in a cloud export.")
    ] = "",
    secrets: Annotated[
        bool, typer.Option(help="Import the data of Secrets and ConfigMaps too.")
    ] = False,
    keep_going: Annotated[
        bool, typer.Option(help="Leave out unreadable parts, and list them.")
    ] = False,
    profile: Annotated[
        str | None,
        typer.Option(help="Kubernetes version of the cluster; default: the recorded one."),
    ] = None,
    gate: GateOption = None,
    quirk: QuirkOption = None,
    data: DataOption = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Import a recording as a history: audit logs, watch streams, object dumps, support bundles.

    Formats are detected by content; docs/reference/formats.md lists them. Several sources of the
    same cluster are joined. Folders and archives are opened, documents in texts are read one by
    one, and files of no known format are listed. Without --keep-going, a damaged line of a named
    log or a named manifest that no server would accept stops the import. The command ends with a
    fidelity report: what the history holds, what is missing, and which answers are unsure because
    of that.
    """
    from app.bootstrap import history_settings, process_settings, recordings

    settings = process_settings.settings(data=data, profile=profile, gates=gate, quirks=quirk)
    history_settings.check_new(history, settings)
    for source in sources:
        if not source.exists():
            raise InputError("there is no such file", place=str(source))
    wanted = recordings.RecordingFiles(
        paths=tuple(sources),
        format=format,
        at=at,
        unwrap=unwrap,
        with_secrets=secrets,
        keep_going=keep_going,
    )

    imported = console.run(partial(_imported, settings, wanted, history))
    if output is Output.JSON:
        console.say_json(imported.to_json(), imported.name)
        return
    _print(imported)


async def _imported(settings: "Settings", wanted: "RecordingFiles", history: str) -> "Imported":
    """The imported history. An interrupt is said, unless the history has just been finished."""
    from asyncio import CancelledError

    from app.bootstrap import recordings, stores

    async with stores.open_store(settings, make=True) as store:
        with ProgressBar(f"importing {history}") as progress:
            try:
                return await recordings.import_history(
                    store, settings, wanted, history, progress.to
                )
            except (CancelledError, KeyboardInterrupt):
                if await store.log.find_history(history) is None:
                    console.note(f"interrupted: history {history} is not made")
                raise


def _print(imported: "Imported") -> None:
    imitated = f", imitates {imported.profile}" if imported.profile else ""
    console.say(f"history {imported.name}: {counts.of(imported.events, 'event')}{imitated}")
    report = imported.report
    if report is None:
        _note(imported.notes)
        for head in imported.signed:
            console.say(f"signed head at revision {head.revision}: {head.key}")
        if not imported.signed:
            console.note(
                "note: the bundle has no signed head, which would prove that it is complete"
            )
        return
    if (known := report.times_known) is not None:
        first, last = map(timestamps.seconds_text, known)
        console.say(f"from {first} to {last}")
    for verdict in report.verdicts:
        reasons = "; ".join(verdict.reasons)
        console.say(f"{verdict.question} {verdict.word}" + (f": {reasons}" if reasons else ""))
    rows = imported.table()
    console.say()
    console.table(rows[0], rows[1:])
    console.say()
    console.say(f"to see what is wrong in it: redra findings {imported.name}")
    console.flush()
    for place, problem in report.refusals:
        console.note(f"lost: {place}: {problem}")
    _note(imported.notes)
    _note(report.notes)
    for place, reason in report.left_out:
        console.note(f"left out: {place}: {reason}")


def _note(notes: Sequence[str]) -> None:
    for note in notes:
        console.note(f"note: {note}")
