"""`redra minimise`: the smallest history that still satisfies a predicate."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from app.cli import console
from app.cli.arguments import moments
from app.cli.connecting import answering, jobs, reading
from app.cli.connecting import sources as inputs
from app.cli.connecting.answering import AnswerSource
from app.cli.connecting.reading import ReadingCommand
from app.cli.console import ForceOption, LongOutputOption, Output
from app.cli.serving import DataOption, GateOption, QuirkOption
from app.domain.errors import InputError
from app.domain.values import counts

if TYPE_CHECKING:
    from app.analysis.minimise.predicates import Predicate
    from app.bootstrap.asking.servers import AskedServer
    from app.bootstrap.minimising.searching import State
    from app.bootstrap.minimising.sources import Source
    from app.domain.values.json_tree import JsonObject
    from app.settings import Settings


SourceArgument = Annotated[
    str, typer.Argument(metavar="HISTORY[@MOMENT]|FILE", help="A history, or a recording.")
]

KeepOption = Annotated[
    str,
    typer.Option(
        metavar="PREDICATE",
        help="The fact that the history must still show: `violation [RULE]`, `unschedulable [POD] "
        "[because TEXT]`, `evicted [POD] [because TEXT]`, `differs profile=A,B|quirk=Q|gate=G "
        "[CLASS]`, `difference [CLASS]` (of a decide replay), or `command WORD…`, whose exit "
        "code is 0 for the bundle {}. Without `because`, the kinds of causes in the message "
        "and the main cause of the decision are kept.",
    ),
]


SecondsOption = Annotated[
    float | None,
    typer.Option(
        min=1, help="Stop after this many seconds, and write the smallest history so far."
    ),
]

WorkersOption = Annotated[
    int, typer.Option(min=0, max=256, help="Number of local processes that try candidates (Dask).")
]

SchedulerOption = Annotated[
    str, typer.Option(metavar="tcp://HOST:PORT", help="Try candidates on an existing Dask cluster.")
]


def register(root: typer.Typer) -> None:
    """Add the command of this module."""
    root.command("minimise", cls=ReadingCommand)(minimise)


def minimise(
    source: SourceArgument,
    keep: KeepOption,
    file: Annotated[Path, console.file_option("--output-file", "-o", help="The bundle to write.")],
    profile: Annotated[
        str | None,
        typer.Option(help="Kubernetes version whose rules decide; default: the history's."),
    ] = None,
    gate: GateOption = None,
    quirk: QuirkOption = None,
    force: ForceOption = False,
    seconds: SecondsOption = None,
    workers: WorkersOption = 0,
    scheduler: SchedulerOption = "",
    at: moments.AtOption = "",
    data: DataOption = None,
    output: LongOutputOption = Output.TEXT,
) -> None:
    """Remove from a history everything that it does not need to show a given fact.

    The command removes objects together with what depends on them, then single writes, controllers,
    times, fields, list items and devices. It removes only inputs from outside: controllers decide
    each candidate again, under virtual time. If a recording shows the fact only as it was recorded,
    the recorded decisions are kept, and perhaps not their cause. Whatever --keep does not specify
    (the rule, the kind of cause, the class) is taken from the whole history.

    The result does not depend on the number of workers. If you interrupt the command, nothing is
    written; the same command then continues from there. A server that you name does the work in a
    process of its own, and nothing continues there after an interrupt.
    """
    from app.analysis.minimise import predicates
    from app.bootstrap import executors, garbage_collection, process_settings, stores
    from app.bootstrap.history_settings import switches
    from app.bootstrap.minimising import sources

    predicate = predicates.parse(keep, "--keep")
    settings = process_settings.settings(data=data, profile=profile, gates=gate, quirks=quirk)
    _check_output(file, force=force)
    server = AnswerSource(data).named_server
    if server is not None and jobs.is_history(source, server):
        jobs.refuse_workers(workers, scheduler)
        wish = {
            "keep": keep,
            "profile": profile or "",
            "gates": switches(",".join(gate or ()), place="--gate"),
            "quirks": switches(",".join(quirk or ()).lower(), place="--quirk"),
            "seconds": seconds,
            "name": jobs.file_name(file.stem, "small"),
        }
        _show(_served(server, moments.split(source, at), wish, file), file, output)
        return
    executors.check_workers(workers, scheduler)
    reading.note_asked("")
    garbage_collection.expect_large_heap()
    paths = inputs.files((source,), settings)

    async def read() -> "tuple[Source, dict[str, str]]":
        if paths:
            return await sources.read_files(settings, paths, profile), {}
        name, moment = moments.split(source, at)
        async with stores.open_store(settings) as store:
            pinned = await answering.stored_moments(store, name, moment)
            until = pinned.moments[0]
            return await sources.read(store, settings, name, until, profile), pinned.as_of

    done = _searched(console.run(read), settings, predicate, file, seconds, (workers, scheduler))
    _show(done, file, output, "; run it again without --seconds to continue")


def _check_output(file: Path, *, force: bool) -> None:
    """Raise InputError for a bundle that cannot be written, or what was tried beside it."""
    if not file.parent.is_dir():
        raise InputError("there is no such folder", place=str(file.parent))
    console.check_free(file, force=force)
    if file.exists() and not file.is_file():
        raise InputError(
            "it is no file, and what was tried is kept beside it",
            place=str(file),
            cure="name a new file",
        )


def _searched(
    read: "tuple[Source, dict[str, str]]",
    settings: "Settings",
    predicate: "Predicate",
    file: Path,
    seconds: float | None,
    workers: tuple[int, str],
) -> "JsonObject":
    """The result of a search here, whose bundle is written, with the meaning of the moment."""
    from app.bootstrap import executors
    from app.bootstrap.minimising import searching
    from app.bootstrap.minimising.sharing import SharedJudges

    history, as_of = read
    try:
        with executors.on_demand(*workers, ["app.bootstrap.minimising.sharing"]) as there:
            done = searching.minimise(
                history,
                settings,
                predicate,
                file,
                name=file.stem,
                seconds=seconds,
                judges_of=lambda judge: SharedJudges(judge, there),
                report_progress=_ProgressLines(history.events).show,
            )
    except KeyboardInterrupt:
        console.note("interrupted: nothing is written; the same command continues from here")
        raise
    return {**as_of, **done.to_json()}


def _served(
    server: "AskedServer", place: tuple[str, str], wish: "JsonObject", file: Path
) -> "JsonObject":
    """The result of a server's search, whose bundle is written."""
    from app.adapters import whole_files
    from app.bootstrap.minimising.searching import State

    job = jobs.of_history(server, "minimise", place, wish)
    lines: list[_ProgressLines] = []

    def show(progress: "JsonObject") -> None:
        events = progress["events"]
        if not lines:
            lines.append(_ProgressLines(events))
        if len(progress) > 1:
            lines[0].show(State(**{name: progress[name] for name in progress if name != "events"}))

    try:
        result: JsonObject = job.wait(show)
    except KeyboardInterrupt:
        console.note("interrupted: nothing is written, and the server's job is cancelled")
        raise
    (content,) = job.fetch().values()
    with reading.rendering():
        whole_files.write(file, content)
    return {**job.as_of, **result}


class _ProgressLines:
    """The progress on standard error: a line for each change of the state."""

    def __init__(self, events: int) -> None:
        self._last = ""
        console.note(f"{counts.of(events, 'event')}; running the whole history")

    def show(self, state: "State") -> None:
        line = (
            f"{state.doing or 'guessing'}: {counts.of(state.steps, 'input')}, "
            f"{counts.of(state.objects, 'object')}, {counts.of(state.devices, 'device')}"
        )
        if line != self._last:
            console.note(f"{line} ({state.trials} tried, {state.remembered} remembered)")
        self._last = line


def _show(done: "JsonObject", file: Path, output: Output, more: str = "") -> None:
    """Print the result, as `Minimised.to_json` gives it; `more` is the way to go on."""
    with reading.rendering():
        if output is Output.JSON:
            console.say_json(done | {"file": str(file)})
        else:
            _print(done, file, more)


def _print(done: "JsonObject", file: Path, more: str) -> None:
    console.say(
        f"{file}: {counts.of(done['events'], 'event')} of {done['eventsBefore']}, from "
        f"{counts.of(done['inputs'], 'input')} about {counts.of(done['objects'], 'object')} with "
        f"{counts.of(done['devices'], 'device')}"
    )
    console.say(f"shows {done['predicate']}: {done['sighting']}")
    if done["predicate"].split()[0] == "difference":
        console.say("kept as recorded: it is a difference from what was recorded")
    elif done["decisions"] == "recorded":
        console.say(
            "kept as recorded: when redra's controllers decide again, the history does not show "
            "it; what is left shows that it was written, and need not show why"
        )
    elif done["decisionsBefore"] == "recorded":
        console.say(
            "decided by redra's controllers: what is left shows it then too, the whole history "
            "only as recorded"
        )
    elif done["isRecording"]:
        console.say(
            "decided by redra's controllers: the recording shows it when they decide it again; "
            "what is left has none of the recorded decisions"
        )
    alike = done["represented"]
    tried = f"; of up to {alike} that are alike, three were tried" if alike else ""
    console.say(
        f"no single part can be left out{tried}"
        if done["minimal"]
        else f"not minimal: the time ran out{more}"
    )
    console.say(f"tried {counts.of(done['trials'], 'history')} in {done['seconds']:.0f} s")
