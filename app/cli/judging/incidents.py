"""`redra incidents`, `redra scan`: the gallery of known defects and traps, and its search."""

from typing import TYPE_CHECKING, Annotated
from urllib.parse import quote

import msgspec
import typer

from app.cli import console, exit_codes
from app.cli.arguments import moments
from app.cli.connecting import reading
from app.cli.connecting.answering import AnswerSource
from app.cli.connecting.jobs import ServerJob
from app.cli.connecting.reading import ReadingCommand
from app.cli.console import Output, OutputOption
from app.cli.exit_codes import ExitCode
from app.cli.serving import DataOption
from app.domain.errors import InputError, NotFound
from app.domain.values import counts

if TYPE_CHECKING:
    from app.domain.values.json_tree import JsonObject

LabelsOption = Annotated[
    str,
    typer.Option(
        "--selector",
        "-l",
        metavar="LABELS",
        help="Only where an object has these labels (app=web,tier!=db), or is a claim created for "
        "such a pod.",
    ),
]

_INCIDENTS = "/redra/v1/incidents"
_LISTED = ("name", "kind", "number", "title", "upstream", "fixed", "repair")

group = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Known defects and traps of Dynamic Resource Allocation: list, show, run.",
)


def register(root: typer.Typer) -> None:
    """Add the commands of this module."""
    root.add_typer(group, name="incidents")
    root.command("scan", cls=ReadingCommand)(scan)


@group.command("list", cls=ReadingCommand)
def list_incidents(output: OutputOption = Output.TEXT) -> None:
    """List all incidents.

    For each, the list has whether it is a defect or a trap, the release that repairs it, and a
    title.
    """
    from app.bootstrap.gallery import incident_files

    server = AnswerSource(None).named_server
    if server is None:
        shown = [incident_files.read(name).about() for name in incident_files.names()]
    else:
        shown = [{key: each[key] for key in _LISTED} for each in server.tree(_INCIDENTS)["items"]]
    with reading.rendering():
        if output is Output.JSON:
            console.say_json(shown)
            return
        keys = ("name", "kind", "number", "fixed", "title")
        rows = [[str(each[key]) for key in keys] for each in shown]
        console.table(("name", "kind", "number", "fixed in", "what"), rows)


@group.command("show", cls=ReadingCommand)
def show(name: Annotated[str, typer.Argument(help="An incident.")]) -> None:
    """Tell the story of an incident, with and without the defect."""
    from app.bootstrap.gallery import incident_files

    server = AnswerSource(None).named_server
    if server is None:
        exhibit = incident_files.read(name)
        story, facts = exhibit.story, exhibit.facts()
    else:
        try:
            answer = server.tree(f"{_INCIDENTS}/{quote(name, safe='')}")
        except NotFound as problem:
            raise InputError(problem.message) from problem
        story, facts = answer["story"], (answer["finding"], answer["instead"])
    with reading.rendering():
        console.say(story.rstrip())
        for title, texts in zip(("To be seen", "Repaired"), facts, strict=True):
            console.say()
            console.say(f"{title}:")
            for text in texts:
                console.say(f"  {text}")
        folder = incident_files.folder() / name
        # An incident of a server of another release need not be here.
        if folder.is_dir():
            console.say()
            console.say(f"files: {folder}")


@group.command("run", cls=ReadingCommand)
def run(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="NAME…", help="Incidents; default: all.")
    ] = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Play incidents with the defect and repaired, and check the facts.

    They are played in memory; nothing is stored. The exit code is 1 if a fact is not observed.
    """
    server = AnswerSource(None).named_server
    rows: list[JsonObject]
    if server is None:
        from app.bootstrap.gallery import incident_files, playing

        exhibits = (incident_files.read(name) for name in names or incident_files.names())
        rows = [row for exhibit in exhibits for row in playing.rows(exhibit)]
    else:
        job = ServerJob(server, f"{_INCIDENTS}/run", {"names": names or []})
        rows = job.wait(lambda _: None)
        job.fetch()
    if not all(row["holds"] for row in rows):
        exit_codes.conclude(ExitCode.NO)
    with reading.rendering():
        if output is Output.JSON:
            console.say_json(rows)
        else:
            for row in rows:
                mark = "ok  " if row["holds"] else "FAIL"
                seen = "" if row["holds"] else f" ({row['seen']})"
                console.say(f"{mark}  {row['incident']}  {row['variant']}: {row['fact']}{seen}")


def scan(
    named: Annotated[str, typer.Argument(metavar="[HISTORY]", help=moments.HISTORY)] = "",
    history: Annotated[str, typer.Option(help="The same as the argument HISTORY.")] = "",
    at: Annotated[str, moments.option(help="The moment up to which the history is scanned.")] = "",
    selector: LabelsOption = "",
    data: DataOption = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Show which known defects and traps occur in a history: where, how certain, and the repair.

    The scheduler's attempts are made again with each defect and without it. The exit code is 1 if
    one occurs. `redra incidents show NAME` tells the story of each.
    """
    from app.bootstrap.gallery import incident_files

    place, at = moments.placed(named, history, at)
    answer = msgspec.json.decode(
        AnswerSource(data).ask("scan", history=place, at=at, parameters={"labels": selector})
    )
    rows = [
        (sighting | incident.about(), incident.release)
        for sighting in answer["items"]
        for incident in (incident_files.read(sighting["incident"]).incident,)
    ]
    if rows:
        exit_codes.conclude(ExitCode.NO)
    with reading.rendering():
        if output is Output.JSON:
            console.say_json([row for row, _ in rows])
        else:
            for row, release in rows:
                times = "once" if row["times"] == 1 else f"{row['times']} times"
                console.say(f"{row['incident']} ({row['certainty']}), {times}: {row['title']}")
                console.say(f"  from revision {row['revision']}: {row['message']}")
                console.say(f"  objects: {', '.join(row['objects'])}")
                console.say(f"  {release}; what to do: {row['repair']}")
            if not rows:
                where = f" at objects with the labels {selector}" if selector else ""
                console.say(f"none of the incidents that the scan looks for occurs{where}")
    if left_out := answer["attempts_left_out"]:
        console.note(
            f"{counts.of(left_out, 'attempt')} of the scheduler were not made again: more than "
            "REDRA_SCAN_ATTEMPTS_MAX"
        )
