"""`redra head`, `redra verify`: signed heads, and the verification of histories."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from app.cli import console, replaying
from app.cli.arguments import moments
from app.cli.connecting import answering, reading
from app.cli.connecting.answering import AnswerSource
from app.cli.connecting.reading import ReadingCommand
from app.cli.console import ForceOption, Output, OutputOption
from app.cli.pacing import watching
from app.cli.replaying import (
    HeadKeyOption,
    HeadOption,
    Mode,
    ProcessesOption,
    SchedulerOption,
    SourcesArgument,
)
from app.cli.serving import DataOption
from app.domain.errors import InputError

if TYPE_CHECKING:
    from app.bootstrap.asking.servers import AskedServer
    from app.domain.log.heads import SignedHead


def register(root: typer.Typer) -> None:
    """Add the commands of this module."""
    root.command("head", cls=ReadingCommand)(head)
    root.command("verify")(verify)


def head(
    named: Annotated[str, typer.Argument(metavar="[HISTORY]", help=moments.HISTORY)] = "",
    history: Annotated[str, typer.Option(help="The same as the argument HISTORY.")] = "",
    to: Annotated[str, moments.option("--to", "--at", help="The head at this moment.")] = "",
    file: Annotated[
        Path | None, console.file_option("--output-file", "-o", help="Write it to this file.")
    ] = None,
    force: ForceOption = False,
    public_key: Annotated[
        bool, typer.Option("--public-key", help="Print the public key as PEM instead.")
    ] = False,
    data: DataOption = None,
) -> None:
    """Print the signed head of a history: its revision and hash, signed with the data folder's key.

    Keep it where users with write access to the database cannot change it. `redra verify --head
    FILE` then detects a log that was cut short or rewritten.
    """
    from app.adapters import whole_files

    source = AnswerSource(data)
    if public_key:
        from app.bootstrap import heads

        source.refuse_server("the public key")
        console.say(heads.own_key(source.settings).public_pem.rstrip())
        return
    if file is not None:
        console.check_free(file, force=force)
    name, moment = moments.placed(named, history, to)
    signed = _signed(source, name, moment)
    if file is None:
        with reading.rendering():
            console.say_json(signed.to_json())
        return
    try:
        whole_files.write(file, signed.covered_and_signed())
    except OSError as problem:
        raise InputError(f"it cannot be written: {problem.strerror}", place=str(file)) from problem
    console.say(f"{file}: head of {signed.history} at revision {signed.revision}")


def _signed(source: AnswerSource, history: str, to: str) -> "SignedHead":
    """The head, signed with the key of the server or of the data folder."""
    from app.bootstrap.asking.queries import ServedQuery
    from app.domain.log import heads as signed_heads

    name = source.history(history)

    def here() -> "SignedHead":
        from app.bootstrap import heads, stores
        from app.bootstrap.answers import relative

        async def sign() -> "SignedHead":
            async with stores.open_store(source.settings) as store:
                pinned = await relative.resolved(store, name, to)
                answering.note_meanings(pinned)
                return await heads.sign(store, source.settings, name, pinned.moments[0])

        return console.run(sign)

    def of_server(server: "AskedServer") -> "SignedHead":
        pinned = source.resolved(server, name, source.moment(to, history))
        query = ServedQuery(history=name, part="head", at=pinned.moments[0])
        (signed,) = signed_heads.from_text(server.ask(query))
        return signed

    return source.answer(of_server, here)


def verify(
    sources: SourcesArgument,
    head: HeadOption = None,
    head_key: HeadKeyOption = None,
    to: Annotated[str, moments.option("--to", "--at", help="Up to this moment.")] = "",
    processes: ProcessesOption = None,
    scheduler: SchedulerOption = None,
    live: Annotated[
        bool,
        typer.Option("--live", help="Continue with new events, as `redra watch-over` does."),
    ] = False,
    data: DataOption = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Verify a history: its chain, its invariants, every decision. Exit code 1 if it fails.

    The same as `redra replay --mode verify`, which has more options. With --live, the same as
    `redra watch-over`: each allocation of a scheduler is judged when it is stored, and each finding
    is one line. An allocation that breaks no rule where redra would choose other devices is named
    so: it fails a verification, and with --live the exit code is 3.
    """
    if live:
        if len(sources) != 1 or head is not None or processes is not None or scheduler:
            raise InputError(
                "--live judges one growing history",
                cure="name one history, and leave out --head, --processes and --scheduler",
            )
        watching.judge(sources[0], to, end_option="--to", data=data, output=output)
        return
    replaying.replay(
        sources,
        mode=Mode.VERIFY,
        to=to,
        head=head,
        head_key=head_key,
        processes=processes,
        scheduler=scheduler,
        data=data,
        output=output,
    )
