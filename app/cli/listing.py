"""`redra histories`, `redra log`: the list of histories, and the events of one."""

from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from app.cli import console, managing
from app.cli.arguments import moments, objects
from app.cli.arguments.objects import AuthorOption, WordsArgument
from app.cli.connecting import answering, reading
from app.cli.connecting.answering import AnswerSource
from app.cli.connecting.reading import ReadingCommand, ReadingGroup
from app.cli.console import Output, OutputOption
from app.cli.serving import DataOption
from app.domain.errors import HistoryBroken, InputError, NotFound
from app.domain.log import Event, Head, ObjectKey, Revision, records
from app.domain.log.chain import event_json
from app.domain.log.event import EVENTS_PAGE
from app.domain.values import timestamps
from app.domain.values.json_tree import JsonView

if TYPE_CHECKING:  # heavy: not needed for answers of a server
    from app.bootstrap.asking.servers import AskedServer


def register(root: typer.Typer) -> None:
    """Add the commands of this module."""
    group = typer.Typer(cls=ReadingGroup, invoke_without_command=True, callback=histories)
    managing.register(group)
    root.add_typer(group, name="histories")
    root.command("log", cls=ReadingCommand)(log)


def histories(
    context: typer.Context,
    deleted: Annotated[bool, typer.Option("--deleted", help="List deleted histories.")] = False,
    data: DataOption = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """List the histories of the database, and the reason for each that could not be opened.

    The commands create, rename, copy and delete histories.
    """
    if context.invoked_subcommand is not None:
        if deleted or data is not None or output is not Output.TEXT:
            raise InputError(
                "options of the list cannot be combined with a command",
                place=f"redra histories {context.invoked_subcommand}",
                cure="put --data after it",
            )
        return
    if deleted:
        _list_deleted(data, output)
        return
    source = AnswerSource(data)
    rows = source.answer(_rows_of_server, lambda: _rows(source))
    with reading.rendering():
        if output is Output.JSON:
            console.say_json(rows)
            return
        titles = ["name", "revision", "time", "profile", *(["head"] if console.is_wide() else [])]
        if any(row["broken"] for row in rows):
            titles.append("broken")
        console.table(tuple(titles), [tuple(row[title] for title in titles) for row in rows])


def _rows_of_server(server: "AskedServer") -> list[dict[str, object]]:
    """The rows of a server's histories."""
    return [
        {
            "name": one["name"],
            "revision": one["revision"],
            "time": one["time"] or None,
            "profile": one["profile"],
            "head": f"sha256:{one['hash']}",
            "broken": one["broken"],
        }
        for one in server.histories()
    ]


def _rows(source: AnswerSource) -> list[dict[str, object]]:
    """The rows of the histories in the data folder."""
    from app.bootstrap import stores
    from app.service import broken_histories

    async def read() -> list[dict[str, object]]:
        async with stores.open_store(source.settings) as store:
            rows: list[dict[str, object]] = []
            for info in await store.log.histories():
                try:
                    head = await broken_histories.head_of(store.log, info)
                    broken = await broken_histories.find(store.views, info.id, head.revision)
                except NotFound:
                    continue
                except HistoryBroken as problem:
                    head, broken = Head(), problem.cause
                rows.append(
                    {
                        "name": info.name,
                        "revision": head.revision,
                        "time": timestamps.micro_text(head.time) if head.revision else None,
                        "profile": info.settings.get("profile"),
                        "head": f"sha256:{head.hash.hex()}",
                        "broken": broken,
                    }
                )
            return rows

    return console.run(read)


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
    words: WordsArgument = None,
    history: Annotated[str, typer.Option(help="The same as the argument HISTORY.")] = "",
    namespace: Annotated[
        str, typer.Option("--namespace", "-n", help="Only events of this namespace.")
    ] = "",
    selector: Annotated[
        str,
        typer.Option(
            "--selector",
            "-l",
            metavar="LABELS",
            help="Just events in which the object has these labels (app=web,tier!=db).",
        ),
    ] = "",
    follow: Annotated[
        bool, typer.Option("--follow", "-f", "--watch", "-w", help="Continue with new events.")
    ] = False,
    after: Annotated[
        str, moments.option("--after", "--since", help="Begin after this moment.")
    ] = "0",
    first: Annotated[str, moments.option("--from", help="Begin with this moment.")] = "",
    until: Annotated[
        str, moments.option("--until", "--to", "--at", help="Up to this moment.")
    ] = "",
    author: AuthorOption = "",
    limit: Annotated[int, typer.Option(min=0, help="Maximum number of events; 0: no limit.")] = 0,
    data: DataOption = None,
) -> None:
    """Print the events of a history as JSON lines: all of them, or those of one object.

    The events of an object are those that created, changed and deleted it; -n is its namespace. For
    a name that does not occur, the error suggests the nearest one.
    """
    if first and after != "0":
        raise InputError(
            "--from and --after cannot be combined", place="--from", cure=f"leave out {after}"
        )
    named, about = objects.after_history(words or ())
    name, until = moments.placed(named, history, until)
    if follow and until:
        raise InputError(
            "--follow and an end cannot be combined", place="--follow", cure=f"leave out {until}"
        )
    source = AnswerSource(data)
    wanted = objects.ObjectFilter(
        objects.joined(about) if about else "", namespace, selector, author
    )
    page = LogPart(after=after, first=first, until=until, limit=limit, is_followed=follow)
    printed = _print_served(source, name, page, wanted)
    if printed is None:
        printed = _print_stored(source, source.history(name), page, wanted)
    if not printed and not wanted.takes_all and not follow:
        # A name that occurs only outside the requested part has an empty answer.
        wanted.check_known(*_names(source, name))


def _print_served(
    source: AnswerSource, name: str, page: "LogPart", wanted: objects.ObjectFilter
) -> int | None:
    """Print the events from a server and return their number; None without a server."""
    parameters = {
        "form": "bundle",
        **({"from": page.first} if page.first else {"after": page.after}),
        "limit": str(page.limit) if page.limit and wanted.takes_all else "",
        **({"follow": "true"} if page.is_followed else {}),
    }
    lines = source.lines("events", history=name, at=page.until, parameters=parameters)
    if lines is None:
        return None
    printed = 0
    shown = (line for line in lines if wanted.takes_all or wanted.takes_event(*_event_of(line)))
    for line in islice(shown, page.limit or None):
        with reading.rendering():
            console.say_encoded(line)
            printed += 1
            if page.is_followed:
                console.flush()
    return printed


def _names(source: AnswerSource, name: str) -> tuple[set[ObjectKey], set[str]]:
    """The keys of all objects that occur in a log, and the authors of its events."""
    lines = source.lines("events", history=name, parameters={"form": "bundle"})
    if lines is not None:
        events = [_event_of(line) for line in lines]
        return {key for key, _, _ in events}, {author for _, _, author in events}
    from app.bootstrap import stores

    async def read() -> tuple[set[ObjectKey], set[str]]:
        keys: set[ObjectKey] = set()
        authors: set[str] = set()
        async with stores.open_store(source.settings) as store:
            info = await stores.find_history(store, source.history(name))
            position = Revision(0)
            while page := await store.log.read(info.id, after=position, limit=EVENTS_PAGE):
                keys |= {event.key for event in page}
                authors |= {_author(event) for event in page}
                position = page[-1].revision
        return keys, authors

    return console.run(read)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogPart:
    """The requested part of a log: after a moment, up to a moment, a number of events (0: all).

    With `first` it begins with that moment. A followed log continues with new events.
    """

    after: str
    first: str
    until: str
    limit: int
    is_followed: bool


def _event_of(line: bytes) -> tuple[ObjectKey, JsonView, str]:
    """The key, the object and the author of the event on a line."""
    event = msgspec.json.decode(line)
    payload = event["payload"]
    key = ObjectKey(*(payload[part] for part in ("group", "resource", "namespace", "name")))
    author = records.shown_author(event["stamp"]["actor"]["user"], event["type"])
    return key, payload["object"], author


def _author(event: Event) -> str:
    return records.shown_author(event.stamp.actor.user, event.type.value)


def _print_stored(
    source: AnswerSource, name: str, page: LogPart, wanted: objects.ObjectFilter
) -> int:
    """Print the events from the data folder and return their number."""
    from app.bootstrap import stores
    from app.bootstrap.answers import relative

    async def read() -> int:
        printed = 0

        def show(events: list[Event]) -> bool:
            nonlocal printed
            for event in events:
                if not wanted.takes_event(event.key, event.object, _author(event)):
                    continue
                console.say_json_line(event_json(event))
                printed += 1
                if page.limit and printed >= page.limit:
                    return False
            return True

        async with stores.open_store(source.settings) as store:
            info = await stores.find_history(store, name)
            pinned = await relative.resolved(store, name, page.first or page.after, page.until)
            answering.note_meanings(pinned)
            begin, last = pinned.moments
            find = stores.find_beginning if page.first else stores.find_position
            position = await find(store, info, begin)
            until = (
                await stores.find_revision(store, info, last, option="--until") if last else None
            )
            async with store.ports.wake_up.listen(info.id) as listener:
                while True:
                    events = await store.log.read(
                        info.id, after=position, limit=EVENTS_PAGE, until=until
                    )
                    if events:
                        position = events[-1].revision
                        if not show(events):
                            return printed
                    elif not page.is_followed:
                        return printed
                    else:
                        console.flush()
                        await listener.wait(source.settings.poll_seconds)

    return console.run(read)
