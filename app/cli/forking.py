"""`redra fork`: a history that continues another from a moment."""

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from app.cli import console
from app.cli.arguments import moments, objects
from app.cli.connecting import answering
from app.cli.console import Output, OutputOption, ProgressBar
from app.cli.serving import DataOption, GateOption, QuirkOption
from app.domain.errors import InputError
from app.domain.values import counts

if TYPE_CHECKING:
    from app.bootstrap import managing


class InputTreatment(StrEnum):
    """The treatment of the recorded inputs after the moment."""

    NONE = "none"
    RECORDED = "recorded"


ApplyOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--apply",
        "-f",
        metavar="FILE",
        help="Apply the objects of a file in the fork; - reads stdin; repeatable.",
    ),
]

DeleteOption = Annotated[
    list[str] | None,
    typer.Option(metavar="KIND/[NAMESPACE/]NAME", help="Delete an object in the fork; repeatable."),
]

PatchOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="KIND/[NAMESPACE/]NAME=PATCH",
        help="Patch an object in the fork, as `kubectl patch -p` does; repeatable.",
    ),
]

InputsOption = Annotated[
    InputTreatment,
    typer.Option(
        help="none (default): a live cluster from that moment on; recorded: the later writes of "
        "users, drivers and kubelets are applied to the changed objects, under virtual time."
    ),
]

UntilOption = Annotated[
    str,
    moments.option(
        "--until",
        "--to",
        help="With --inputs recorded, the last moment whose inputs are applied; default: the end.",
    ),
]


def register(root: typer.Typer) -> None:
    """Add the command of this module."""
    root.command("fork")(fork)


def fork(
    source: Annotated[
        str,
        typer.Argument(
            metavar="HISTORY[@MOMENT]", help="The moment where the fork begins; default: the end."
        ),
    ],
    history: Annotated[str, typer.Option(help="Name of the fork.")],
    profile: Annotated[
        str | None, typer.Option(help="Kubernetes version that the fork imitates.")
    ] = None,
    gate: GateOption = None,
    quirk: QuirkOption = None,
    apply: ApplyOption = None,
    delete: DeleteOption = None,
    patch: PatchOption = None,
    namespace: Annotated[
        str, typer.Option("--namespace", "-n", help="Namespace of the objects to delete and patch.")
    ] = "",
    inputs: InputsOption = InputTreatment.NONE,
    until: UntilOption = "",
    at: moments.AtOption = "",
    data: DataOption = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Create a history that continues from a moment of another, at once and without copying it.

    The fork is a cluster of its own: `redra up` serves it at /h/NAME/, and its controllers decide
    by its own profile, gates and quirks. Its time continues from the time of that moment. The
    source never changes, and it cannot be deleted while the fork exists. Deletions are made first,
    then patches; then files are applied. If one of them is refused, no fork is created.

    With --inputs recorded, the fork holds what would have happened: the controllers decide again
    while the recorded inputs arrive at their instants. The command reports differences from the
    source, and lists inputs that no longer apply.
    """
    from app.bootstrap import garbage_collection, managing, process_settings, stores

    settings = process_settings.settings(data=data)
    deletions = [objects.placed(objects.joined([one]), namespace) for one in delete or ()]
    edits = managing.read_edits(settings, apply or [], deletions, _placed(patch or (), namespace))
    switches = managing.read_switches(profile, gate or [], quirk or [])
    name, moment = moments.split(source, at)
    _check_until(until, inputs)
    is_recorded = inputs is InputTreatment.RECORDED
    if is_recorded:
        garbage_collection.expect_large_heap()

    async def run() -> tuple[managing.Fork, dict[str, str]]:
        async with stores.open_store(settings) as store:
            pinned = await answering.stored_moments(store, name, moment, until)
            first, last = pinned.moments
            made = await managing.fork(
                store,
                settings,
                name,
                history,
                first,
                switches=switches,
                edits=edits,
                until=last if is_recorded else None,
                progress=progress.tell,
            )
            return made, pinned.as_of

    with ProgressBar("deciding again") as progress:
        made, as_of = console.run(run)
    _say(history, name, made, output, as_of)


def _check_until(until: str, inputs: InputTreatment) -> None:
    """Raise InputError for an end of recorded inputs where there are none."""
    if until and inputs is InputTreatment.NONE:
        raise InputError(
            "--until applies to recorded inputs, and the fork has none",
            cure="add --inputs recorded",
        )


def _placed(patches: Sequence[str], namespace: str) -> list[str]:
    """The patches, with their objects in the form `KIND/[NAMESPACE/]NAME`."""
    made: list[str] = []
    for text in patches:
        name, equals, body = text.partition("=")
        made.append(f"{objects.placed(objects.joined([name]), namespace)}{equals}{body}")
    return made


def _say(
    history: str, source: str, made: "managing.Fork", output: Output, as_of: dict[str, str]
) -> None:
    report = made.report
    if output is Output.JSON:
        body = {"history": history, "source": source, "revision": made.revision}
        inputs_body = {} if report is None else report.to_json()
        notes_body = {"events": made.changes, "notes": list(made.notes)}
        console.say_json({**as_of, **body, **notes_body, **inputs_body})
        return
    console.say(
        f"history {history} continues after revision {made.revision} of history {source}"
        + (f", with {counts.of(made.changes, 'more event')}" if made.changes else "")
    )
    for note in made.notes:
        console.say(note)
    for line in report.lines() if report is not None else ():
        console.say(line)
