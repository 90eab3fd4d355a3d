"""`redra fork`: a history that continues another from a moment."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from app.cli import console
from app.cli.arguments import moments, objects
from app.cli.connecting import answering, reading
from app.cli.connecting.answering import AnswerSource
from app.cli.connecting.reading import ServedCommand
from app.cli.console import Output, OutputOption, ProgressBar
from app.cli.serving import DataOption, GateOption, QuirkOption
from app.domain.errors import (
    Conflict,
    Forbidden,
    InputError,
    NotFound,
    Rejected,
    Unauthorized,
)
from app.domain.values import counts

if TYPE_CHECKING:  # heavy: not needed for a command that a server answers
    from app.analysis.edits import Edit
    from app.bootstrap.asking.servers import AskedServer
    from app.domain.values.json_tree import JsonObject
    from app.service.forking import ForkSwitches
    from app.settings import Settings


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
        help="Patch an object in the fork, as `kubectl patch -p` does; a patch in JSON may be a "
        "word of its own; repeatable.",
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


class _ForkCommand(ServedCommand):
    """Also reads `--patch KIND/NAME PATCH`, with the patch as a word of its own."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the words of the command; a patch is joined to the name of its object."""
        words = list(args)
        for number in range(len(words) - 3, -1, -1):
            option, name, body = words[number : number + 3]
            if option == "--patch" and "=" not in name and body.lstrip().startswith("{"):
                words[number + 1 : number + 3] = [f"{name}={body}"]
        return super().parse_args(ctx, words)


def register(root: typer.Typer) -> None:
    """Add the command of this module."""
    root.command("fork", cls=_ForkCommand)(fork)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wanted:
    """The fork that the options describe; with `is_recorded` inputs continue, up to `until`."""

    source: str
    moment: str
    history: str
    switches: "ForkSwitches"
    edits: Sequence["Edit"]
    is_recorded: bool
    until: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Made:
    """A finished fork; `lines` are those of its report for people."""

    revision: int
    events: int
    notes: Sequence[str]
    report: "JsonObject | None"
    lines: Sequence[str]
    as_of: dict[str, str]


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
    source, and lists inputs that no longer apply. A server that you name forks its own histories.
    """
    from app.bootstrap import managing

    _check_until(until, inputs)
    name, moment = moments.split(source, at)
    answers = AnswerSource(data)
    deletions = [objects.placed(objects.joined([one]), namespace) for one in delete or ()]
    patches = _placed(patch or (), namespace)
    wanted = _Wanted(
        source=name,
        moment=moment,
        history=history,
        switches=managing.read_switches(profile, gate or [], quirk or []),
        edits=managing.read_edits(answers.settings, apply or [], deletions, patches),
        is_recorded=inputs is InputTreatment.RECORDED,
        until=until,
    )
    server = answers.named_server
    made = _made(answers.settings, wanted) if server is None else _served(server, wanted)
    with reading.rendering():
        _say(wanted, made, output)


def _made(settings: "Settings", wanted: _Wanted) -> _Made:
    """The fork of a history of the data folder. Raises InputError."""
    from app.bootstrap import garbage_collection, managing, stores

    if wanted.is_recorded:
        garbage_collection.expect_large_heap()

    async def run() -> _Made:
        async with stores.open_store(settings) as store:
            pinned = await answering.stored_moments(
                store, wanted.source, wanted.moment, wanted.until
            )
            first, last = pinned.moments
            made = await managing.fork(
                store,
                settings,
                wanted.source,
                wanted.history,
                first,
                switches=wanted.switches,
                edits=wanted.edits,
                until=last if wanted.is_recorded else None,
                progress=progress.show,
            )
            return _Made(
                revision=made.revision,
                events=made.changes,
                notes=made.notes,
                report=None if made.report is None else made.report.to_json(),
                lines=() if made.report is None else list(made.report.lines()),
                as_of=pinned.as_of,
            )

    with ProgressBar("deciding again") as progress:
        return console.run(run)


def _served(server: "AskedServer", wanted: _Wanted) -> _Made:
    """The fork of a history of a server. Raises InputError, Rejected, ServerUnreachable."""
    pinned = answering.served_moments(server, wanted.source, wanted.moment, wanted.until)
    first, last = pinned.moments
    body = {
        "name": wanted.history,
        "at": first,
        "profile": wanted.switches.profile,
        "gates": {**wanted.switches.gates},
        "quirks": {**wanted.switches.quirks},
        **_edits(wanted.edits),
        "inputs": (InputTreatment.RECORDED if wanted.is_recorded else InputTreatment.NONE).value,
        "until": last,
    }
    try:
        facts = server.fork(wanted.source, body)
    except (Unauthorized, Forbidden):
        raise
    except KeyboardInterrupt:
        console.note("interrupted: the server finishes the fork all the same")
        raise
    except Rejected as refusal:
        raise _meant(refusal, wanted, first) from refusal
    revision = facts["parent_revision"]
    return _Made(
        revision=revision,
        events=facts["revision"] - revision - 1,
        notes=facts["notes"],
        report=facts["report"],
        lines=facts["text"],
        as_of=pinned.as_of,
    )


def _meant(refusal: Rejected, wanted: _Wanted, moment: str) -> InputError:
    """The error of a refused request, with the option or the moment that the server means."""
    field, mark, problem = refusal.message.partition("until: ")
    if mark and not field:
        return InputError(problem, place="--until")
    if isinstance(refusal, NotFound) and refusal.resource == "revisions":
        return InputError(refusal.message, place=f"{wanted.source}@{moment}")
    if isinstance(refusal, Conflict) and refusal.resource == "histories":
        return InputError(
            f"the history {wanted.history!r} already exists", cure="choose another name"
        )
    return InputError(refusal.message)


def _edits(edits: Sequence["Edit"]) -> "JsonObject":
    """The edits as fields of a request, which has one patch for each object."""
    from app.analysis.edits import Apply, DeleteEdit, PatchEdit

    patches = [edit for edit in edits if isinstance(edit, PatchEdit)]
    names = [edit.name for edit in patches]
    for name in names:
        if names.count(name) > 1:
            raise InputError(
                "a server makes one patch of an object",
                place=f"--patch {name}",
                cure="join the patches of this object",
            )
    return {
        "delete": [edit.name for edit in edits if isinstance(edit, DeleteEdit)],
        "patch": {edit.name: edit.body for edit in patches},
        "apply": [edit.tree for edit in edits if isinstance(edit, Apply)],
    }


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


def _say(wanted: _Wanted, made: _Made, output: Output) -> None:
    history, source = wanted.history, wanted.source
    if output is Output.JSON:
        body = {"history": history, "source": source, "revision": made.revision}
        notes_body = {"events": made.events, "notes": list(made.notes)}
        answer = {**made.as_of, **body, **notes_body, **(made.report or {})}
        console.say_json(answer, history)
        return
    console.say(
        f"history {history} continues after revision {made.revision} of history {source}"
        + (f", with {counts.of(made.events, 'more event')}" if made.events else "")
    )
    for line in (*made.notes, *made.lines):
        console.say(line)
