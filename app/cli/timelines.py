"""`redra timeline`: the notable events of a history, one line each."""

from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from app.cli import console
from app.cli.arguments import moments, objects
from app.cli.arguments.objects import AuthorOption, WordsArgument
from app.cli.connecting import answering, reading
from app.cli.connecting.answering import AnswerSource
from app.cli.connecting.reading import ReadingCommand
from app.cli.console import Output, OutputOption
from app.cli.serving import DataOption
from app.domain.errors import InputError, ServerUnreachable
from app.domain.log import records
from app.domain.log.doubts import Doubt

if TYPE_CHECKING:
    from app.analysis.scope import Scope
    from app.bootstrap.stores import Store
    from app.domain.log import HistoryInfo
    from app.settings import Settings

FindingsOption = Annotated[
    bool, typer.Option(help="Include findings, each at the revision where it began.")
]


FollowOption = Annotated[
    bool,
    typer.Option(
        "--follow",
        "-f",
        "--watch",
        "-w",
        help="Continue with new entries; JSON is printed as lines.",
    ),
]
LabelsOption = Annotated[
    str,
    typer.Option(
        "--selector",
        "-l",
        metavar="LABELS",
        help="Only objects with these labels (app=web,tier!=db), and claims created for such pods.",
    ),
]

SinceOption = Annotated[
    str, moments.option("--since", "--from", help="Only entries from this moment on.")
]
UntilOption = Annotated[str, moments.option("--until", "--to", "--at", help="Up to this moment.")]

_PARTS = ("namespace", "name", "object", "device", "node", "actor", "labels")
"""The parameters that select a part of a history by its objects or authors."""

_COLUMNS = ("revision", "time", "resource", "namespace", "name", "actor", "text", "doubt")
_WIDTH_MAX = 48
"""The widest column of the table. Longer names are those of a few objects of every cluster."""

_KUBE_SYSTEM = "system:serviceaccount:kube-system:"
_FINDING = "Finding"
"""The kind of rows for findings.

It is repeated here, because the module that defines it is heavy.
"""


def register(root: typer.Typer) -> None:
    """Add the commands of this module."""
    root.command("timeline", cls=ReadingCommand)(timeline)


def timeline(
    words: WordsArgument = None,
    history: Annotated[str, typer.Option(help="The same as the argument HISTORY.")] = "",
    namespace: Annotated[
        str,
        typer.Option(
            "--namespace",
            "-n",
            help="Only entries of this namespace, or about objects that its pods use.",
        ),
    ] = "",
    all_namespaces: Annotated[
        bool, typer.Option("--all-namespaces", "-A", help="All namespaces (the default).")
    ] = False,
    name: Annotated[str, typer.Option(help="Only entries about objects of this name.")] = "",
    subject: Annotated[
        str, typer.Option("--object", metavar=objects.METAVAR, help="The same as KIND/NAME.")
    ] = "",
    kind: Annotated[
        list[str] | None,
        typer.Option(help="Only these kinds of entries, such as PodScheduled; repeatable."),
    ] = None,
    device: Annotated[
        str, typer.Option(metavar="DRIVER/POOL/NAME", help="Only entries that concern this device.")
    ] = "",
    node: Annotated[str, typer.Option(help="Only entries that concern this node.")] = "",
    author: AuthorOption = "",
    selector: LabelsOption = "",
    since: SinceOption = "",
    until: UntilOption = "",
    follow: FollowOption = False,
    last: Annotated[int, typer.Option(min=0, help="Number of latest entries to show; 0: all.")] = 0,
    decisions: Annotated[bool, typer.Option(help="Show each decision beside its effects.")] = False,
    findings: FindingsOption = False,
    data: DataOption = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Show what happened: one line for each notable event.

    Moments are revisions (42), instants (2026-01-02T03:04:05Z, 03:04:05) or durations before
    now (10m, 1h30m), in a recording or fork before its last event. Every printed time is a moment.
    The date is printed where it changes.
    """
    if all_namespaces and namespace:
        raise InputError("-A and -n cannot be combined", cure="give one of them")
    named, about = objects.after_history(words or ())
    if about and subject:
        raise InputError("the object is named twice", place="--object", cure="name it once")
    about = about or [subject] if subject or about else []
    place, until = moments.placed(named, history, until)
    source = AnswerSource(data)
    wanted = {
        "namespace": namespace,
        "name": name,
        "object": objects.joined(about) if about else "",
        "kinds": ",".join(kind or ()),
        "device": device,
        "node": node,
        "actor": author,
        "labels": selector,
        "since": since,
        "until": until,
        "decisions": "true" if decisions else "",
    }
    printer = TimelinePrinter(output, is_followed=follow)
    if findings or _FINDING in (kind or ()):
        _check_findings(source, wanted, is_followed=follow)
        _print_here(source, source.history(place), wanted, last, printer, with_findings=True)
    else:
        _print_timeline(source, place, wanted, last, printer)


def _check_findings(source: AnswerSource, wanted: dict[str, str], *, is_followed: bool) -> None:
    """Raise InputError for findings of a part of a history, of a followed one, or of a server."""
    if any(wanted[part] for part in _PARTS):
        raise InputError(
            "--findings applies to a whole history",
            cure="name no object, device, node, author or labels",
        )
    if is_followed:
        raise InputError("findings cannot be followed", cure="use redra watch-over")
    source.refuse_server("a timeline with findings")


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


def _print_timeline(
    source: AnswerSource, named: str, wanted: dict[str, str], last: int, printer: "TimelinePrinter"
) -> None:
    """Print the timeline from a server or the data folder, and follow it if requested."""
    parameters = {**wanted, "last": str(last) if last else ""}
    if printer.is_followed:
        parameters["follow"] = "true"
    lines = source.lines("entries", history=named, parameters=parameters)
    if lines is None:
        _print_here(source, source.history(named), wanted, last, printer)
        return
    first = [msgspec.json.decode(line) for line in islice(lines, 1)]
    if not first:
        raise ServerUnreachable("the server's answer is empty")
    head = first[0]
    printer.begin(msgspec.convert(head["doubts"], tuple[Doubt, ...]))
    rows: list[dict[str, Any]] = []
    for row in map(_row, lines):
        if "kind" not in row:
            break
        rows.append(row)
    else:
        raise ServerUnreachable("the server's answer is incomplete")
    nothing = "" if rows else _nothing(wanted, row)
    with reading.rendering():
        printer.print_rows(rows, nothing)
    for line in lines:
        row = _row(line)
        with reading.rendering():
            printer.print_rows([row])
    with reading.rendering():
        printer.end()


def _nothing(wanted: dict[str, str], extent: dict[str, Any]) -> str:
    """The sentence that no entry matches, with the requested part and that of the history."""
    parts = (("since", wanted["since"]), ("until", wanted["until"]))
    text = "no entry matches" + "".join(f" {word} {moment}" for word, moment in parts if moment)
    if not extent["revision"]:
        return f"{text}: the history has no events"
    if "began" not in extent:  # A server of an earlier version.
        return text
    began, ended = (extent[name].replace(".000000Z", "Z") for name in ("began", "ended"))
    return f"{text}: the history goes from revision 1 ({began}) to {extent['revision']} ({ended})"


def _row(line: bytes) -> dict[str, Any]:
    """A row of a server's answer. Raises LookupError where a column is missing."""
    row: dict[str, Any] = msgspec.json.decode(line)
    if "kind" in row:
        _ = [row[name] for name in _COLUMNS]
    return row


def _print_here(
    source: AnswerSource,
    name: str,
    wanted: dict[str, str],
    last: int,
    printer: "TimelinePrinter",
    *,
    with_findings: bool = False,
) -> None:
    """Print the timeline from the data folder, and follow it if requested."""
    from app.bootstrap import stores
    from app.bootstrap.answers import relative
    from app.service import recorded_doubts
    from app.service.timelines import (
        TimelineReader,
        TimelineRequest,
        check_until,
        of_last,
        scope_of,
        shown,
    )

    unpinned = TimelineRequest(
        namespace=wanted["namespace"],
        name=wanted["name"],
        subject=wanted["object"],
        kinds=frozenset(wanted["kinds"].split(",") if wanted["kinds"] else ()),
        device=wanted["device"],
        node=wanted["node"],
        author=wanted["actor"],
        labels=wanted["labels"],
        since=wanted["since"],
        until=wanted["until"],
        decisions=bool(wanted["decisions"]),
    )

    async def read() -> None:
        async with stores.open_store(source.settings) as store:
            info = await stores.find_history(store, name)
            pinned = await relative.resolved(store, name, wanted["since"], wanted["until"])
            answering.note_meanings(pinned)
            since, until = pinned.moments
            request = replace(unpinned, since=since, until=until)
            scope = await scope_of(store.log, info, request)
            if not printer.is_followed:
                await check_until(store.log, info, request)
            page = source.settings.projector_batch_max
            if not with_findings:
                scope = await of_last(
                    *(store.log, info, scope, last),
                    page_max=page,
                    seen=lambda rows: shown(rows, request),
                )
            reader = TimelineReader(store.log, info, scope, page_max=page)
            async with store.ports.wake_up.listen(info.id) as listener:
                rows = await reader.read()
                if with_findings:
                    rows = await _with_findings(store, source.settings, info, rows, scope)
                rows = shown(rows, request)
                if not printer.is_followed:
                    await reader.check()
                printer.begin(await recorded_doubts.doubts_of(store.log, info))
                read_part = msgspec.structs.asdict(reader.extent)
                printer.print_rows(rows[-last:], _nothing(wanted, read_part))
                while printer.is_followed and not reader.is_over:
                    await listener.wait(source.settings.poll_seconds)
                    printer.print_rows(shown(await reader.read(), request))
        printer.end()

    console.run(read)


class TimelinePrinter:
    """Prints rows as they arrive: a table whose column widths fit the first rows.

    A cell of more than _WIDTH_MAX characters shifts the rest of its own line, and no other line.
    JSON is one document, or one line per row if the history is followed.
    """

    def __init__(self, output: Output, *, is_followed: bool) -> None:
        self.is_followed = is_followed
        self._output = output
        self._doubts: tuple[Doubt, ...] = ()
        self._titles: list[str] = []
        self._widths: list[int] = []
        self._day = ""

    def begin(self, doubts: "tuple[Doubt, ...]") -> None:
        """Set the doubts about the recording, which `end` prints."""
        self._doubts = doubts

    def print_rows(self, rows: list[dict[str, Any]], nothing: str = "") -> None:
        """Print rows; instead of a table without rows, which is complete, the text `nothing`.

        A followed history may have them later: then the text is a note, and the table begins.
        """
        if nothing and not rows and self.is_followed:
            console.note(f"{nothing}; waiting for entries that match")
        if self._output is Output.JSON:
            if not self.is_followed:
                console.say_json(rows)
                return
            for row in rows:
                console.say_json_line(row)
        elif nothing and not rows and not self.is_followed:
            console.say(nothing)
        else:
            self._table(rows)
        if self.is_followed:
            console.flush()

    def end(self) -> None:
        """Print the doubts about the recording."""
        if self._output is Output.TEXT:
            from app.analysis.recordings import uncertainty

            for line in uncertainty.lines(self._doubts):
                console.note(line)

    def _table(self, rows: list[dict[str, Any]]) -> None:
        is_first = not self._titles
        if is_first:
            self._titles = ["revision", "time", "what", "object", "by", "text"]
            if any(row["doubt"] for row in rows) or (self.is_followed and self._doubts):
                self._titles.append("unsure")
            if console.is_wide():
                self._titles.append("because")
        cells = [self._cells(row) for row in rows]
        shown = [[title.upper() for title in self._titles], *cells] if is_first else cells
        if is_first:
            sizes = ([len(line[i]) for line in shown] for i in range(len(self._titles)))
            self._widths = [max(size for size in each if size <= _WIDTH_MAX) for each in sizes]
        for line in shown:
            console.say(console.columns(line, self._widths))

    def _cells(self, row: dict[str, Any]) -> list[str]:
        text = row["time"].replace(".000000Z", "Z")
        date, _, hour = text.partition("T")
        is_same_day, self._day = date == self._day, date
        actor = records.shown_author(row["actor"], row["kind"])
        cells = {
            "revision": str(row["revision"]),
            "time": hour if is_same_day else text,
            "what": row["kind"],
            "object": _subject(row),
            "by": actor if console.is_wide() else actor.removeprefix(_KUBE_SYSTEM),
            "text": row["text"],
            "unsure": row["doubt"],
            "because": f"{row['because']} ({row['cause']})" if row.get("because") else "",
        }
        return [cells[title] for title in self._titles]


def _subject(row: dict[str, Any]) -> str:
    place = f"{row['namespace']}/" if row["namespace"] else ""
    return f"{row['resource']} {place}{row['name']}"
