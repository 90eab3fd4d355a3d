"""`redra up`, `redra work`, `redra project`: the long-running processes."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from app.cli import console
from app.domain.errors import InputError

DataOption = Annotated[
    Path | None,
    typer.Option(
        "--data",
        metavar="<path>",
        help="Folder of the embedded server [default: .redra, REDRA_DATA].",
    ),
]

GateOption = Annotated[
    list[str] | None,
    typer.Option("--gate", metavar="NAME=true|false", help="Switch a feature gate; repeatable."),
]
KubeconfigOption = Annotated[
    str,
    typer.Option(
        "--kubeconfig",
        help="Kubeconfig of the clusters to record [default: KUBECONFIG, ~/.kube/config].",
    ),
]
AttachOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="HISTORY[=CONTEXT]",
        help="Record a real cluster into this history and serve it; repeatable.",
    ),
]
CompactOption = Annotated[
    bool | None,
    typer.Option(
        "--compact-like-etcd",
        help="Answer 410 for old revisions, as etcd does after compaction, to test clients.",
    ),
]
QuirkOption = Annotated[
    list[str] | None,
    typer.Option(
        "--quirk",
        metavar="NAME=on|off",
        help="Switch a quirk, a behaviour of upstream that looks like a defect (c1 to c24, q1 to "
        "q20, r1 to r8; `redra profiles c15` tells what c15 is); repeatable.",
    ),
]


NewProfileOption = Annotated[
    str | None,
    typer.Option(
        help="Kubernetes version that a new default history imitates; an existing one keeps its "
        "own."
    ),
]
WithoutOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME,…",
        help="Controllers not to run, in all histories, because real ones take their place.",
    ),
]

WatchOverOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="HISTORY",
        help="Judge this history while it grows, as `redra watch-over` does; repeatable.",
    ),
]


def register(root: typer.Typer) -> None:
    """Add the commands of this module."""
    root.command("up")(up)
    root.command("work")(work)
    root.command("project")(project)


def up(
    listen: Annotated[
        str | None, typer.Option(help="Address and port of the API [default: 127.0.0.1:8080].")
    ] = None,
    data: DataOption = None,
    workers: Annotated[bool, typer.Option(help="Run the controllers in this process.")] = True,
    without: WithoutOption = None,
    profile: NewProfileOption = None,
    gate: GateOption = None,
    quirk: QuirkOption = None,
    tls: Annotated[
        bool | None,
        typer.Option("--tls", help="Serve TLS, with certificates of a CA in DIR/pki."),
    ] = None,
    authorization: Annotated[
        str | None,
        typer.Option(help="open, or rbac for role objects [default: open on loopback, else rbac]."),
    ] = None,
    policy: Annotated[
        Path | None, typer.Option(help="File with rules for users and groups, instead of roles.")
    ] = None,
    compact: CompactOption = None,
    attach: AttachOption = None,
    kubeconfig: KubeconfigOption = "",
    watch_over: WatchOverOption = None,
) -> None:
    """Serve the embedded database, migrations, API and controllers in one process.

    The command prints the URL when it is ready, and writes DIR/kubeconfig; a second server on the
    same data writes DIR/kubeconfig-PORT. SIGTERM and SIGINT stop it cleanly. An address other than
    loopback needs --tls; docs/how-to/secure.md explains who has access then. An attached cluster is
    recorded as with `redra record` and served live at /h/HISTORY/; nothing in it is changed.
    """
    from app.bootstrap import history_settings, process_settings, serving
    from app.bootstrap.recording import recording_request

    settings = process_settings.settings(
        listen=listen,
        data=data,
        profile=profile,
        gates=gate,
        quirks=quirk,
        tls=tls,
        authorization=authorization,
        policy=policy,
        compact=compact,
    )
    # Unknown ones are refused before a data folder is made.
    history_settings.history_settings(settings)
    if kubeconfig and not attach:
        raise InputError(
            "it is that of clusters to record", place="--kubeconfig", cure="add --attach HISTORY"
        )
    attached = recording_request.wanted_of(attach or (), kubeconfig)

    if not settings.tls and (settings.authorization == "rbac" or settings.policy_file):
        console.note("redra: kubectl sends no credentials without TLS; add --tls to use it")

    async def serve() -> None:
        await serving.serve(
            settings,
            workers=workers,
            ready=_announce,
            note=console.note,
            attached=attached,
            without=_names(without or ()),
            watched=tuple(watch_over or ()),
        )

    console.run(serve)


def _announce(url: str, own_kubeconfig: Path) -> None:
    """Say where the server can be reached."""
    console.say(f"redra serves at {url}")
    console.say(f"pages for a browser: {url}/ui/")
    console.say(f"try: kubectl --kubeconfig {own_kubeconfig} get resourceslices")
    console.flush()


def _names(texts: Sequence[str]) -> list[str]:
    """The names in texts of names separated by commas."""
    return [name.strip() for text in texts for name in text.split(",")]


def work(
    only: Annotated[
        list[str] | None, typer.Option(help="Run only this controller; repeatable.")
    ] = None,
    history: Annotated[
        list[str] | None, typer.Option(help="Run controllers only for this history; repeatable.")
    ] = None,
    data: DataOption = None,
) -> None:
    """Run controllers beside an API server, on the same database.

    Each controller of a history has one leader; when it ends, a second process takes over.
    """
    from app.bootstrap import process_settings, serving

    settings = process_settings.settings(data=data)

    async def run() -> None:
        await serving.work(
            settings,
            only=tuple(only or ()),
            names=tuple(history or ()),
            ready=lambda text: console.note(text),
        )

    console.run(run)


def project(
    history: Annotated[
        list[str] | None, typer.Option(help="Only this history; repeatable.")
    ] = None,
    data: DataOption = None,
    until_input_ends: Annotated[
        bool, typer.Option(hidden=True, help="Stop when standard input ends, not by a signal.")
    ] = False,
) -> None:
    """Keep the view tables, which SQL users read, beside an API server on the same database.

    `redra up` starts such a process by itself, unless REDRA_PROJECTOR says otherwise.
    """
    from app.bootstrap import process_settings, projecting

    settings = process_settings.settings(data=data)

    async def run() -> None:
        await projecting.project(
            settings,
            names=tuple(history or ()),
            until_input_ends=until_input_ends,
            ready=lambda text: None if until_input_ends else console.note(text),
        )

    console.run(run)
