"""`redra timeline`: what happened, one line per event that a person would want to know of."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from app.cli import console
from app.cli.console import Output, OutputOption
from app.cli.serving import DataOption
from app.domain.errors import InputError
from app.domain.values import timestamps
from app.domain.values.timestamps import SECOND, Instant

if TYPE_CHECKING:
    from app.analysis.scope import Scope
    from app.bootstrap.stores import Store
    from app.domain.log import HistoryInfo
    from app.domain.log.doubts import Doubt
    from app.ports import EventLog
    from app.settings import Settings

FindingsOption = Annotated[
    bool, typer.Option(help="Judge the history too; a finding stands where it began.")
]


def register(root: typer.Typer) -> None:
    """Add the commands of this module."""
    root.command("timeline")(timeline)


def timeline(
    named: Annotated[str, typer.Argument(metavar="[HISTORY]", help="Name of the history.")] = "",
    history: Annotated[str, typer.Option(help="The same as an option.")] = "",
    namespace: Annotated[
        str,
        typer.Option(
            "--namespace", "-n", help="Just what happened in it, or to what its pods use."
        ),
    ] = "",
    all_namespaces: Annotated[
        bool, typer.Option("--all-namespaces", "-A", help="All namespaces, as without -n.")
    ] = False,
    name: Annotated[str, typer.Option(help="Just what happened to objects of this name.")] = "",
    subject: Annotated[
        str, typer.Option("--object", metavar="KIND/NAME", help="Just what happened to it.")
    ] = "",
    kind: Annotated[
        list[str] | None,
        typer.Option(help="Just these kinds of entries, such as PodScheduled; repeatable."),
    ] = None,
    device: Annotated[
        str, typer.Option(metavar="DRIVER/POOL/NAME", help="Just what has to do with a device.")
    ] = "",
    node: Annotated[str, typer.Option(help="Just what has to do with a node.")] = "",
    since: Annotated[
        str, typer.Option(metavar="MOMENT", help="From a revision, an instant, or 10m ago on.")
    ] = "",
    until: Annotated[
        str, typer.Option(metavar="MOMENT", help="Up to a revision, an instant, or 10m ago.")
    ] = "",
    last: Annotated[int, typer.Option(min=0, help="The last so many entries; 0: all.")] = 0,
    decisions: Annotated[bool, typer.Option(help="Show each decision beside its effects.")] = False,
    findings: FindingsOption = False,
    data: DataOption = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Tell what happened: one line per event that a person would want to know of.

    Moments are revisions (42), instants (2026-01-02T03:04:05Z, 03:04:05) or times before the end
    (10m, 1h30m). Every time that is printed is one. The date is printed where it changes.
    """
    from app.bootstrap import process_settings, stores
    from app.service import recorded_doubts, timelines

    if all_namespaces and namespace:
        raise InputError("-A and -n exclude each other", cure="give one of them")
    settings = process_settings.settings(data=data)
    place = console.history_of(named, history)
    wanted = {"namespace": namespace, "name": name, "device": device, "node": node}

    shows_findings = findings or timelines.FINDING in (kind or [])
    if shows_findings and (any(wanted.values()) or subject):
        raise InputError("--findings are of a whole history", cure="name no object, device or node")

    async def read() -> "tuple[list[dict[str, Any]], tuple[Doubt, ...]]":
        async with stores.open_store(settings) as store:
            info = await stores.find_history(store, place)
            scope = await _scope(store.log, info, wanted, subject, kind or [], (since, until))
            recorded = await recorded_doubts.doubts_of(store.log, info)
            page = settings.projector_batch_max
            rows = await timelines.timeline(store.log, info, page_max=page, scope=scope)
            if shows_findings:
                rows = await _with_findings(store, settings, info, rows, scope)
            return rows, recorded

    rows, recorded = console.run(read)
    shown = [row for row in rows if decisions or row["kind"] != "Decision" or kind]
    _say(shown[-last:] if last else shown, recorded, output)


async def _with_findings(
    store: "Store",
    settings: "Settings",
    info: "HistoryInfo",
    rows: list[dict[str, Any]],
    scope: "Scope",
) -> list[dict[str, Any]]:
    from app.bootstrap.pacing import overseeing
    from app.service.replays import findings

    oversight = await overseeing.oversight_for(store, settings, info)
    page = settings.projector_batch_max
    rows += await findings.rows(store.log, info, oversight, page_max=page, scope=scope)
    return sorted(rows, key=lambda row: row["revision"])


async def _scope(
    log: "EventLog",
    info: "HistoryInfo",
    wanted: dict[str, str],
    subject: str,
    kinds: list[str],
    moments: tuple[str, str],
) -> "Scope":
    """What the options mean. Raises InputError for a kind of object or a moment that is none."""
    from app.analysis.scope import Scope
    from app.service import moments as instants

    group = resource = ""
    if subject:
        group, resource, wanted["name"] = _object(subject)
    since, until = moments
    end = (await log.head(info.id)).time
    first, final = (int(text) if instants.is_revision(text) else 0 for text in moments)
    return Scope(
        since=None if first or not since else instants.parse_instant(since, end),
        until=None if final or not until else instants.parse_instant(until, end),
        first=first,
        final=final,
        kinds=frozenset(kinds),
        group=group,
        resource=resource,
        **wanted,
    )


def _object(text: str) -> tuple[str, str, str]:
    from app.domain.objects import registry

    kind, slash, name = text.partition("/")
    known = registry.find_name(kind)
    if not slash or not name:
        raise InputError(f"{text!r} names nothing", cure="write it as KIND/NAME, as in pod/web")
    if not known:
        raise InputError(f"there is no kind {kind!r}", cure="write it as pod/NAME, claim/NAME, …")
    return known[0].group, known[0].plural, name


def _say(rows: list[dict[str, Any]], recorded: "tuple[Doubt, ...]", output: Output) -> None:
    from app.analysis.recordings import uncertainty

    if output is Output.JSON:
        console.say_json(
            [{**row, "time": timestamps.micro_text(Instant(row["time"]))} for row in rows]
        )
        return
    titles = ["revision", "time", "what", "object", "by", "text"]
    if any(row["doubt"] for row in rows):
        titles.append("unsure")
    cells: list[list[object]] = []
    day = ""
    for row in rows:
        text = _time(Instant(row["time"]))
        date, _, hour = text.partition("T")
        cell = [
            row["revision"],
            hour if date == day else text,
            row["kind"],
            _subject(row),
            row["actor"].removeprefix("system:serviceaccount:kube-system:"),
            row["text"],
            row["doubt"],
        ]
        cells.append(cell[: len(titles)])
        day = date
    console.table(titles, cells)
    for line in uncertainty.lines(recorded):
        console.note(line)


def _time(instant: Instant) -> str:
    """The whole time: what is printed can be given as a moment again."""
    if instant % SECOND:
        return timestamps.micro_text(instant)
    return timestamps.seconds_text(instant)


def _subject(row: dict[str, Any]) -> str:
    place = f"{row['namespace']}/" if row["namespace"] else ""
    return f"{row['resource']} {place}{row['name']}"
