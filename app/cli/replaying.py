"""`redra replay`: fold again, or decide again."""

from collections.abc import Awaitable, Callable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from app.cli import console
from app.cli.console import Output, OutputOption, Progress
from app.cli.serving import DataOption

SHOWN_MAX = 10
"""Differences and violations that are printed; all are counted."""


class Mode(StrEnum):
    """What a replay does."""

    FOLD = "fold"
    VERIFY = "verify"


def register(root: typer.Typer) -> None:
    """Add the commands of this module."""
    root.command("replay")(replay)


def replay(
    sources: Annotated[
        list[str], typer.Argument(metavar="HISTORY|FILE…", help="A history, or files of one.")
    ],
    mode: Annotated[Mode, typer.Option(help="fold: rebuild views; verify: decide again.")] = (
        Mode.FOLD
    ),
    to: Annotated[str, typer.Option(help="Up to this revision or instant.")] = "",
    profile: Annotated[
        str | None, typer.Option(help="Kubernetes version that a recording is of.")
    ] = None,
    data: DataOption = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Rebuild a history's views, or verify it: chain, invariants, every decision made again.

    Files are read into memory and need no database. Exit code 1 when the history does not agree
    with itself.
    """
    from app.bootstrap import choices, replays, stores

    settings = choices.settings(data=data, profile=profile)
    files = tuple(Path(source) for source in sources if Path(source).exists())

    async def run(work: Callable[[Any, str], Awaitable[Any]]) -> Any:
        if len(files) == len(sources):
            store = stores.memory_store()
            return await work(store, await replays.load_files(store, settings, files))
        async with stores.open_store(settings) as store:
            return await work(store, sources[0])

    with Progress("replaying") as progress:

        def tell(_doing: str, revision: int, until: int) -> None:
            progress.to(revision, until)

        if mode is Mode.FOLD:
            folded = console.run(
                lambda: run(lambda store, name: replays.fold(store, settings, name, to, tell))
            )
            _print_fold(folded.to_json(), output)
            return
        verified = console.run(
            lambda: run(lambda store, name: replays.verify(store, settings, name, to, tell))
        )
    if output is Output.JSON:
        console.say_json(verified.to_json())
    else:
        _print_verify(verified.to_json())
    if not verified.agrees:
        raise typer.Exit(1)


def _print_fold(report: Mapping[str, Any], output: Output) -> None:
    if output is Output.JSON:
        console.say_json(report)
        return
    console.say(f"history {report['history']} at revision {report['revision']}, {report['time']}")
    for name in ("objects", "pools", "claims", "pods", "decisions"):
        counts = ", ".join(f"{count} {what}" for what, count in sorted(report[name].items()))
        console.say(f"{name}: {counts or 'none'}")
    console.say(f"devices: {report['devices']}")
    console.table(("view", "state hash"), sorted(report["stateHashes"].items()))


def _print_verify(report: Mapping[str, Any]) -> None:
    chain = report["chain"]
    console.say(f"history {report['history']}: {report['events']} events")
    console.say(f"chain: {chain['problem'] or 'whole, head ' + str(chain['head'])[:19]}")
    invariants = report["invariants"]
    console.say(
        f"invariants: checked {invariants['checks']} times, {invariants['violations']} violations"
    )
    for found in invariants["examples"][:SHOWN_MAX]:
        span = f"revisions {found['firstRevision']}-{found['lastRevision']}"
        note = " (transient)" if found["transient"] else ""
        console.say(f"  {found['rule']}, {span}{note}: {found['message']}")
    for name in ("decisions", "effects", "allocations"):
        _print_compared(name, report[name])
    console.say("everything agrees" if report["agrees"] else "it does NOT agree")


def _print_compared(name: str, compared: Mapping[str, Any]) -> None:
    counts = ", ".join(f"{count} {verdict}" for verdict, count in compared["counts"].items())
    console.say(f"{name}: {counts or 'none'}")
    for reason, count in compared.get("reasons", {}).items():
        console.say(f"  not comparable, {count}: {reason}")
    for found in compared["differences"][:SHOWN_MAX]:
        console.say(
            f"  revision {found['revision']}, {found['subject']}, {found['path']}: recorded "
            f"{found['recorded']!r}, again {found['again']!r}"
        )
