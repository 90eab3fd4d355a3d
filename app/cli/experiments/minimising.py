"""`redra minimise`: the smallest history that still satisfies a predicate."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from app.cli import console
from app.cli.arguments import moments
from app.cli.connecting import sources as inputs
from app.cli.console import ForceOption, LongOutputOption, Output
from app.cli.serving import DataOption, GateOption, QuirkOption
from app.domain.errors import InputError
from app.domain.values import counts

if TYPE_CHECKING:
    from app.bootstrap.minimising.searching import Minimised, State
    from app.bootstrap.minimising.sources import Source


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
    root.command("minimise")(minimise)


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
    written; the same command then continues from there.
    """
    from app.analysis.minimise import predicates
    from app.bootstrap import executors, garbage_collection, process_settings, stores
    from app.bootstrap.minimising import searching, sources
    from app.bootstrap.minimising.sharing import SharedJudges

    predicate = predicates.parse(keep)
    settings = process_settings.settings(data=data, profile=profile, gates=gate, quirks=quirk)
    if not file.parent.is_dir():
        raise InputError("there is no such folder", place=str(file.parent))
    console.check_free(file, force=force)
    garbage_collection.expect_large_heap()

    paths = inputs.files((source,), settings)

    async def read() -> "Source":
        if paths:
            return await sources.read_files(settings, paths, profile)
        name, moment = moments.split(source, at)
        async with stores.open_store(settings) as store:
            return await sources.read(store, settings, name, moment, profile)

    history = console.run(read)
    try:
        with executors.on_demand(workers, scheduler) as there:
            done = searching.minimise(
                history,
                settings,
                predicate,
                file,
                name=file.stem,
                seconds=seconds,
                judges_of=lambda judge: SharedJudges(judge, there),
                tell=_ProgressLines(history.events).tell,
            )
    except KeyboardInterrupt:
        console.note("interrupted: nothing is written; the same command continues from here")
        raise
    if output is Output.JSON:
        console.say_json(done.to_json() | {"file": str(file)})
    else:
        _print(done, file)


class _ProgressLines:
    """The progress on standard error: a line for each change of the state."""

    def __init__(self, events: int) -> None:
        self._last = ""
        console.note(f"{counts.of(events, 'event')}; running the whole history")

    def tell(self, state: "State") -> None:
        line = (
            f"{state.doing or 'guessing'}: {counts.of(state.steps, 'input')}, "
            f"{counts.of(state.objects, 'object')}, {counts.of(state.devices, 'device')}"
        )
        if line != self._last:
            console.note(f"{line} ({state.trials} tried, {state.remembered} remembered)")
        self._last = line


def _print(done: "Minimised", file: Path) -> None:
    console.say(
        f"{file}: {counts.of(done.events, 'event')} of {done.events_before}, from "
        f"{counts.of(done.inputs, 'input')} about {counts.of(done.objects, 'object')} with "
        f"{counts.of(done.devices, 'device')}"
    )
    console.say(f"shows {done.predicate}: {done.sighting}")
    if done.is_difference:
        console.say("kept as recorded: it is a difference from what was recorded")
    elif done.is_recorded:
        console.say(
            "kept as recorded: when redra's controllers decide again, the history does not show "
            "it; what is left shows that it was written, and need not show why"
        )
    elif done.was_recorded:
        console.say(
            "decided by redra's controllers: what is left shows it then too, the whole history "
            "only as recorded"
        )
    console.say(
        "no single part can be left out"
        if done.is_minimal
        else "not minimal: the time ran out; run it again without --seconds to continue"
    )
    console.say(f"tried {counts.of(done.trials, 'history')} in {done.seconds:.0f} s")
