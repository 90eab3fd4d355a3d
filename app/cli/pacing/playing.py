"""`redra serve-replay`: a recorded history, served as if it happened now."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from app.cli import console, exit_codes
from app.cli.arguments import moments
from app.cli.exit_codes import ExitCode
from app.cli.serving import DataOption

UntilEndOption = Annotated[
    bool,
    typer.Option(
        "--until-end",
        help="Stop the server at the end of the replay, with exit code 1 if it met conflicts.",
    ),
]


def register(root: typer.Typer) -> None:
    """Add the command of this module."""
    root.command("serve-replay")(serve_replay)


def serve_replay(
    history: Annotated[str, typer.Argument(help=moments.HISTORY)],
    speed: Annotated[
        str,
        typer.Option(help="1x, 10x, any number, max, or step to wait for a key or request."),
    ] = "1x",
    begin: Annotated[
        str,
        moments.option(
            "--from", "--since", help="The moment to begin at [default: the first objects]."
        ),
    ] = "",
    end: Annotated[
        str, moments.option("--to", "--until", help="The moment to stop at [default: the end].")
    ] = "",
    shift_times: Annotated[
        bool,
        typer.Option(
            "--shift-times", help="Shift the times in objects to the time at which they are shown."
        ),
    ] = False,
    until_end: UntilEndOption = False,
    listen: Annotated[
        str | None, typer.Option(help="Address and port of the API [default: 127.0.0.1:8080].")
    ] = None,
    data: DataOption = None,
) -> None:
    """Serve a history at /h/HISTORY~paced/ as if it happened now, for controllers under test.

    Lists and watches show the moving moment. Writes of clients change what is served. A recorded
    event that can then not be shown as it was is a conflict, which is printed and stored in the
    log. Keys of the terminal and /redra/v1/histories/HISTORY~paced/replay change the pace and move
    to other moments. A move backwards ends watches with 410, so that clients list again. If you
    play the history again, the replay restarts in the same history HISTORY~paced; `redra histories
    delete` removes it. No controllers run.
    """
    from app.bootstrap import process_settings, serving
    from app.bootstrap.pacing.replay_request import ReplayWanted
    from app.service.pacing import pace, stage

    history, end = moments.split(history, end)
    ends: list[int | None] = []
    wanted = ReplayWanted(
        history=history,
        speed=pace.parse_speed(speed),
        begin=begin,
        end=end,
        shifts=shift_times,
        ends=until_end,
        has_keys=sys.stdin.isatty(),
        on_end=ends.append,
    )
    settings = process_settings.settings(listen=listen, data=data)
    name = stage.name_of(history)

    def announce(url: str, own_kubeconfig: Path) -> None:
        console.say(f"redra plays {history} at {url}/h/{name}/")
        console.say(f"pages for a browser: {url}/ui/h/{name}/timeline")
        console.say(
            f"try: kubectl --kubeconfig {own_kubeconfig} --server {url}/h/{name} get pods -A -w"
        )
        console.flush()

    async def serve() -> None:
        await serving.serve(
            settings, workers=False, ready=announce, note=console.note, replay=wanted
        )

    console.run(serve)
    exit_codes.conclude(_exit_code(ends))


def _exit_code(ends: list[int | None]) -> ExitCode:
    """The exit code for the conflicts at the end of a replay; None if it could not go on."""
    if None in ends:
        return ExitCode.NO_ANSWER
    return ExitCode.NO if any(ends) else ExitCode.DONE
