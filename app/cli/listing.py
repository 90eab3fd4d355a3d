"""`redra histories`, `redra log`: what there is, and every event of it."""

from pathlib import Path
from typing import Annotated, Any

import typer

from app.cli import console, managing
from app.cli.console import Output, OutputOption
from app.cli.serving import DataOption
from app.domain.errors import InputError
from app.domain.log import Event, Revision
from app.domain.log.chain import event_json
from app.domain.values import timestamps


def register(root: typer.Typer) -> None:
    """Add the commands of this module."""
    group = typer.Typer(invoke_without_command=True, callback=histories)
    managing.register(group)
    root.add_typer(group, name="histories")
    root.command("log")(log)


def histories(
    context: typer.Context,
    deleted: Annotated[
        bool, typer.Option("--deleted", help="List what is known of deleted ones.")
    ] = False,
    data: DataOption = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """List the histories of the database; of those that could not be opened, say why.

    The commands create, rename, copy and delete them.
    """
    if context.invoked_subcommand is not None:
        if deleted or data is not None or output is not Output.TEXT:
            raise InputError(
                "options of the list do not go with a command",
                place=f"redra histories {context.invoked_subcommand}",
                cure="put --data after it",
            )
        return
    if deleted:
        _list_deleted(data, output)
        return
    from app.bootstrap import process_settings, stores
    from app.service import brokenness

    settings = process_settings.settings(data=data)

    async def read() -> list[dict[str, object]]:
        async with stores.open_store(settings) as store:
            rows: list[dict[str, object]] = []
            for info in await store.log.histories():
                head = await store.log.head(info.id)
                rows.append(
                    {
                        "name": info.name,
                        "revision": head.revision,
                        "time": timestamps.micro_text(head.time) if head.revision else None,
                        "profile": info.settings.get("profile"),
                        "head": f"sha256:{head.hash.hex()}",
                        "broken": await brokenness.find(store.views, info.id, head.revision),
                    }
                )
            return rows

    rows = console.run(read)
    if output is Output.JSON:
        console.say_json(rows)
        return
    titles = ["name", "revision", "time", "profile"]
    if any(row["broken"] for row in rows):
        titles.append("broken")
    console.table(tuple(titles), [tuple(row[title] for title in titles) for row in rows])


def _list_deleted(data: Path | None, output: Output) -> None:
    from app.bootstrap import managing, process_settings, stores

    settings = process_settings.settings(data=data)

    async def read() -> list[dict[str, Any]]:
        async with stores.open_store(settings) as store:
            return [managing.tombstone_json(each) for each in await store.log.tombstones()]

    rows = console.run(read)
    if output is Output.JSON:
        console.say_json(rows)
        return
    console.table(
        ("name", "revision", "hash", "deleted", "by"),
        [
            (row["name"], row["revision"], row["hash"][:19], row["deleted"], row["deletedBy"])
            for row in rows
        ],
    )


def log(
    named: Annotated[str, typer.Argument(metavar="[HISTORY]", help="Name of the history.")] = "",
    history: Annotated[str, typer.Option(help="The same as an option.")] = "",
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on with what happens next.")
    ] = False,
    after: Annotated[int, typer.Option(min=0, help="Begin after this revision.")] = 0,
    limit: Annotated[int, typer.Option(min=0, help="End after so many events; 0: no limit.")] = 0,
    data: DataOption = None,
) -> None:
    """Print the events of a history as JSON lines."""
    from app.bootstrap import process_settings, stores

    settings = process_settings.settings(data=data)
    place = console.history_of(named, history)

    async def read() -> None:
        printed = 0

        def show(events: list[Event]) -> bool:
            nonlocal printed
            for event in events:
                console.say_json_line(event_json(event))
                printed += 1
                if limit and printed >= limit:
                    return False
            return True

        async with stores.open_store(settings) as store:
            info = await stores.find_history(store, place)
            position = Revision(after)
            async with store.ports.wake_up.listen(info.id) as listener:
                while True:
                    events = await store.log.read(info.id, after=position, limit=5_000)
                    if events:
                        position = events[-1].revision
                        if not show(events):
                            return
                    elif not follow:
                        return
                    else:
                        console.flush()
                        await listener.wait(settings.poll_seconds)

    console.run(read)
