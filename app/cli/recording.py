"""`redra record`: continuous recording of a real cluster into a history."""

from typing import Annotated

import typer

from app.cli import console
from app.cli.serving import DataOption, GateOption, KubeconfigOption, QuirkOption
from app.domain.errors import InputError


def register(root: typer.Typer) -> None:
    """Add the commands of this module."""
    root.command("record")(record)


def record(
    history: Annotated[str, typer.Option(help="Name of the history, new or recorded before.")] = "",
    kubeconfig: KubeconfigOption = "",
    context: Annotated[
        str, typer.Option(help="Context of the kubeconfig [default: the current one].")
    ] = "",
    namespace: Annotated[
        str, typer.Option("--namespace", "-n", help="Record objects of just this namespace.")
    ] = "",
    include: Annotated[
        list[str] | None,
        typer.Option(metavar="KIND", help="Record this kind too, as secrets; may be repeated."),
    ] = None,
    without: Annotated[
        list[str] | None,
        typer.Option(metavar="KIND", help="Leave this kind out, as events; may be repeated."),
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Take what exists now, and end.")] = False,
    rbac: Annotated[
        bool, typer.Option("--rbac", help="Print the ClusterRole that recording needs, and end.")
    ] = False,
    profile: Annotated[
        str | None,
        typer.Option(help="Kubernetes version of the cluster; default: as it says."),
    ] = None,
    gate: GateOption = None,
    quirk: QuirkOption = None,
    data: DataOption = None,
) -> None:
    """Record a real cluster: its devices, pods, nodes and what the scheduler looks at beside them.

    Lists what exists, then watches until it is stopped (SIGTERM, SIGINT). The same command goes on
    later where it ended. What may be missing is an event of the history (GapObserved), and answers
    say so. Nothing in the cluster is ever changed. Secrets and ConfigMaps are read only with
    --include.
    """
    from app.bootstrap import process_settings
    from app.bootstrap.recording import process, recorders
    from app.bootstrap.recording.wanted import Wanted

    wanted = Wanted(
        history=history,
        kubeconfig=kubeconfig,
        context=context,
        namespace=namespace,
        include=tuple(include or ()),
        without=tuple(without or ()),
    )
    if rbac:
        console.say_yaml(recorders.cluster_role(wanted))
        return
    if not history:
        raise InputError("a history is needed", place="--history", cure="name a new one")
    settings = process_settings.settings(data=data, profile=profile, gates=gate, quirks=quirk)

    def say(text: str) -> None:
        console.say(text)
        console.flush()

    async def run() -> None:
        await process.record(settings, wanted, is_once=once, say=say, note=console.note)

    console.run(run)
