"""`redra rehearse`: the recorded inputs of a history under another release."""

from typing import TYPE_CHECKING, Annotated

import typer

from app.cli import console, exit_codes
from app.cli.arguments import moments
from app.cli.connecting import answering, jobs, reading
from app.cli.connecting.answering import AnswerSource
from app.cli.connecting.reading import ReadingCommand
from app.cli.console import Output, OutputOption, ProgressBar
from app.cli.exit_codes import ExitCode
from app.cli.serving import DataOption, GateOption, QuirkOption

if TYPE_CHECKING:
    from app.bootstrap.asking.servers import AskedServer
    from app.domain.values.json_tree import JsonObject
    from app.settings import Settings


def register(root: typer.Typer) -> None:
    """Add the command of this module."""
    root.command("rehearse", cls=ReadingCommand)(rehearse)


def rehearse(
    history: Annotated[
        str, typer.Argument(metavar="HISTORY[@MOMENT]", help="A history; default moment: its end.")
    ],
    release: Annotated[
        str, typer.Option("--to", metavar="RELEASE", help="The release to rehearse, such as 1.37.")
    ],
    gate: GateOption = None,
    quirk: QuirkOption = None,
    at: moments.AtOption = "",
    data: DataOption = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Rehearse an upgrade: replay the recorded inputs of a history under another release.

    The report lists objects that the other API refuses, fields and API versions that are no longer
    served, decisions and messages that change, known defects that appear and disappear, and results
    that are unsure because of the recording. Differences that also occur without the upgrade are
    not counted. The history's gates and quirks are kept unless --gate or --quirk changes them. The
    exit code is 0 if nothing changes, 1 if something changes, and 2 if nothing could be compared.

    A server that you name does the work in a process of its own.
    """
    from app.analysis.explain import pages
    from app.analysis.rehearse.text import LINES_MAX
    from app.bootstrap import process_settings
    from app.domain.errors import InputError

    settings = process_settings.settings(data=data, gates=gate, quirks=quirk)
    if not release:
        raise InputError("no release is named", place="--to", cure="name one, such as 1.37")
    place = moments.split(history, at)
    server = AnswerSource(data).named_server
    with ProgressBar("rehearsing", has_lines=True) as progress:
        if server is not None:
            shown = _served(server, place, release, (gate, quirk), progress)
        else:
            reading.note_asked("")
            shown = _here(settings, place, release, progress)
    pages.check_json(shown["page"])
    report, is_quiet, is_blind = shown["report"], shown["isQuiet"], shown["isBlind"]
    if not is_quiet:
        exit_codes.conclude(ExitCode.NO)
    elif is_blind:
        exit_codes.conclude(ExitCode.UNUSABLE)
    with reading.rendering():
        if output is Output.JSON:
            console.say_json(report)
        else:
            for line in pages.of_json(shown["page"], console.width(), lines_max=LINES_MAX):
                console.say(line)


def _here(
    settings: "Settings", place: tuple[str, str], release: str, progress: ProgressBar
) -> "JsonObject":
    """The rehearsal of a history of the data folder."""
    from app.bootstrap import garbage_collection, stores
    from app.bootstrap.answers import rehearsals

    garbage_collection.expect_large_heap()
    name, moment = place

    async def run() -> "JsonObject":
        async with stores.open_store(settings) as store:
            pinned = await answering.stored_moments(store, name, moment)
            report = await rehearsals.rehearse(
                store, settings, name, release, pinned.moments[0], progress=progress.show
            )
            return rehearsals.shown(report, pinned.as_of)

    return console.run(run)


def _served(
    server: "AskedServer",
    place: tuple[str, str],
    release: str,
    changes: tuple[list[str] | None, list[str] | None],
    progress: ProgressBar,
) -> "JsonObject":
    """The rehearsal of a server's history, by a job of the server."""
    from app.bootstrap.history_settings import switches

    gate, quirk = (",".join(each or ()) for each in changes)
    wish = {
        "to": release,
        "gates": switches(gate, place="--gate"),
        "quirks": switches(quirk.lower(), place="--quirk"),
    }
    job = jobs.of_history(server, "rehearse", place, wish)
    shown: JsonObject = job.wait(
        lambda now: progress.show(now["doing"], now["revision"], now["until"])
    )
    job.fetch()
    return {**shown, "report": {**job.as_of, **shown["report"]}}
