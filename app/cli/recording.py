"""`redra record`: continuous recording of a real cluster into a history."""

from typing import Annotated

import typer

from app.cli import console, exit_codes
from app.cli.exit_codes import ExitCode
from app.cli.serving import DataOption, GateOption, KubeconfigOption, QuirkOption
from app.domain.errors import InputError


def register(root: typer.Typer) -> None:
    """Add the commands of this module."""
    root.command("record")(record)


def record(
    history: Annotated[
        str, typer.Option(help="Name of the history, a new or a recorded one.")
    ] = "",
    kubeconfig: KubeconfigOption = "",
    context: Annotated[
        str, typer.Option(help="Context of the kubeconfig [default: the current one].")
    ] = "",
    namespace: Annotated[
        str, typer.Option("--namespace", "-n", help="Record only objects of this namespace.")
    ] = "",
    include: Annotated[
        list[str] | None,
        typer.Option(metavar="KIND", help="Record this kind too, such as secrets; repeatable."),
    ] = None,
    without: Annotated[
        list[str] | None,
        typer.Option(metavar="KIND", help="Leave this kind out, such as events; repeatable."),
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Record what exists now, and stop.")] = False,
    rbac: Annotated[
        bool, typer.Option("--rbac", help="Print the roles that recording needs, and stop.")
    ] = False,
    profile: Annotated[
        str | None,
        typer.Option(help="Kubernetes version of the cluster; default: the version it reports."),
    ] = None,
    gate: GateOption = None,
    quirk: QuirkOption = None,
    data: DataOption = None,
) -> None:
    """Record a real cluster: its devices, pods, nodes and the other objects the scheduler reads.

    The command lists what exists, then watches until it is stopped (SIGTERM, SIGINT). Run the same
    command later to continue. A gap in which changes may be missing is an event of the history
    (GapObserved), and answers mention it. Nothing in the cluster is ever changed. Secrets and
    ConfigMaps are read only with --include.
    """
    from app.bootstrap import process_settings
    from app.bootstrap.recording import process, recorders
    from app.bootstrap.recording.recording_request import Wanted

    wanted = Wanted(
        history=history,
        kubeconfig=kubeconfig,
        context=context,
        namespace=namespace,
        include=tuple(include or ()),
        without=tuple(without or ()),
    )
    if rbac:
        console.say_yaml_documents(recorders.roles(wanted))
        return
    if not history:
        raise InputError(
            "the name of a history is missing", place="--history", cure="name a new one"
        )
    settings = process_settings.settings(data=data, profile=profile, gates=gate, quirks=quirk)

    def say(text: str) -> None:
        console.say(text)
        console.flush()

    async def run() -> bool:
        return await process.record(settings, wanted, is_once=once, say=say, note=console.note)

    if not console.run(run):
        exit_codes.conclude(ExitCode.INTERRUPTED)
