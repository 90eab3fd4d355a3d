"""`redra export`: a history as a bundle, a test, manifests, or a format of other tools."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from app.cli import console
from app.cli.arguments import moments
from app.cli.connecting import answering, jobs, reading
from app.cli.connecting import sources as inputs
from app.cli.connecting.answering import AnswerSource
from app.cli.connecting.reading import ReadingCommand
from app.cli.console import ForceOption, ProgressBar
from app.cli.serving import DataOption
from app.domain.errors import InputError
from app.domain.values import counts

if TYPE_CHECKING:
    from app.bootstrap.asking.servers import AskedServer
    from app.bootstrap.minimising.sources import Source
    from app.domain.values.json_tree import JsonObject
    from app.settings import Settings


class ExportFormat(StrEnum):
    """The format of an export."""

    BUNDLE = "bundle"
    PYTEST = "pytest"
    MANIFESTS = "manifests"
    CASE = "go-allocator-case"
    AUDIT = "audit"
    WATCH = "watch"
    OBJECTS = "objects"
    K8SHARK = "k8shark"


_FOR_TOOLS = (ExportFormat.AUDIT, ExportFormat.WATCH, ExportFormat.OBJECTS, ExportFormat.K8SHARK)
_FOLDERS = (ExportFormat.MANIFESTS, ExportFormat.WATCH)


class Expect(StrEnum):
    """The expectation that a test asserts."""

    RECORDED = "recorded"
    REPAIRED = "repaired"


ExpectOption = Annotated[
    Expect,
    typer.Option(
        help="recorded: the decisions of the history's release; repaired: those of the first "
        "release that repairs the known defect of the history, or, if no release does, those "
        "with the defect switched off. The test then fails until the defect is repaired."
    ),
]

SecretsOption = Annotated[
    bool,
    typer.Option(
        "--with-secrets",
        help="Include the key of the history's Secrets: anyone who has the bundle can read them.",
    ),
]

FormOption = Annotated[
    ExportFormat,
    typer.Option(
        "--as",
        help="bundle: all events with their hashes; pytest: a test that decides the outside inputs "
        "again; manifests: a new folder with numbered files and a script for kubectl; "
        "go-allocator-case: one allocation in the form of upstream's test tables; audit: "
        "lines of an audit log; watch: a folder with a watch stream for each resource; "
        "objects: a List of the objects at the moment; k8shark: a capture.",
    ),
]

RedactOption = Annotated[
    bool,
    typer.Option(
        "--redact",
        help="Replace names, namespaces, values of labels and texts of attributes, keeping their "
        "order; refused if that changes a decision. A bundle, or a file for other tools, then "
        "holds the inputs from outside and the decisions that redra's controllers make from "
        "them.",
    ),
]

NeverOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="PREDICATE",
        help="What a test asserts not to happen (as for `redra minimise --keep`); default: the "
        "violated invariants; if there are none, the test asserts the outcome of each pod. "
        "Repeatable.",
    ),
]


_FORMS = {
    "--never": "pytest",
    "--pod": "go-allocator-case",
    "--expect": "pytest",
}
"""The format that an option needs, for options that do not apply to bundles."""


def register(root: typer.Typer) -> None:
    """Add the command of this module."""
    root.command("export", cls=ReadingCommand)(export)


def export(
    history: Annotated[
        str,
        typer.Argument(
            metavar="HISTORY[@MOMENT]|FILE",
            help="A history; for pytest, manifests, a case and --redact, also a recording.",
        ),
    ],
    file: Annotated[
        Path, console.file_option("--output-file", "-o", help="The file or folder to write.")
    ],
    form: FormOption = ExportFormat.BUNDLE,
    redact: RedactOption = False,
    never: NeverOption = None,
    expect: ExpectOption = Expect.RECORDED,
    pod: Annotated[
        str,
        typer.Option(
            help="For a case, the pod to take the allocation from; default: the last one."
        ),
    ] = "",
    with_secrets: SecretsOption = False,
    force: ForceOption = False,
    data: DataOption = None,
) -> None:
    """Write a history as a bundle: events with their hashes, settings, reports. Or hand it on.

    The forms audit, watch, objects and k8shark hold less than a bundle; redra can import them too.
    They and a bundle of a moment end with a whole write of a controller.

    A test, manifests and a case hold the inputs from outside; the controllers that run them make
    the decisions. `redra minimise` makes a history small before you export it. A server that you
    name does the work in a process of its own; it hands out no keys of Secrets.
    """
    from app.bootstrap import process_settings

    settings = process_settings.settings(data=data)
    flags = {
        "--redact": redact,
        "--with-secrets": with_secrets,
        "--expect": expect is not Expect.RECORDED,
    }
    _check(form, flags, never, pod)
    if form not in _FOLDERS:
        console.check_free(file, force=force)
    elif file.exists():
        raise InputError("it already exists", place=str(file), cure="name a new folder")
    wish: JsonObject = {
        "form": form.value,
        "redact": redact,
        "never": never or [],
        "pod": pod,
        "expect": expect.value,
    }
    server = AnswerSource(data).named_server
    if server is not None and jobs.is_history(history, server):
        if with_secrets:
            raise InputError(
                "a server hands out no keys of Secrets",
                place="--with-secrets",
                cure="run the command on the machine that has the data",
            )
        written = _served(server, history, wish, file)
    else:
        reading.note_asked("")
        written = _here(history, file, settings, wish, with_secrets=with_secrets)
    with reading.rendering():
        _show(written, file, form, moments.split(history)[0])


def _check(form: ExportFormat, flags: dict[str, bool], never: list[str] | None, pod: str) -> None:
    """Raise InputError for options that do not apply to the format."""
    wrong = {
        "--with-secrets": flags["--with-secrets"] and form is not ExportFormat.BUNDLE,
        "--never": bool(never) and form is not ExportFormat.PYTEST,
        "--pod": bool(pod) and form is not ExportFormat.CASE,
        "--expect": flags["--expect"] and form is not ExportFormat.PYTEST,
    }
    if flags["--with-secrets"] and flags["--redact"]:
        raise InputError(
            "it cannot be combined with --redact, which leaves Secrets out", place="--with-secrets"
        )
    for option, is_wrong in wrong.items():
        if is_wrong and form is ExportFormat.BUNDLE:
            raise InputError(
                "it does not apply to bundles", place=option, cure=f"add --as {_FORMS[option]}"
            )
        if is_wrong:
            raise InputError(f"it cannot be combined with --as {form.value}", place=option)
    if never:
        from app.analysis.minimise import predicates

        for words in never:
            predicates.parse(words, "--never")


def _here(
    history: str, file: Path, settings: "Settings", wish: "JsonObject", *, with_secrets: bool
) -> "JsonObject":
    """Export a history of the data folder, or a recording; returns what was written."""
    from app.bootstrap import recordings, stores
    from app.bootstrap.handover import exporting

    form = ExportFormat(wish["form"])
    if form not in (ExportFormat.BUNDLE, *_FOR_TOOLS):
        source, name = _source(history, settings)
        wanted = exporting.ExportRequest(
            form=exporting.ExportForm(form.value),
            redact=wish["redact"],
            never=tuple(wish["never"]),
            pod=wish["pod"],
            expect=exporting.Expectation(wish["expect"]),
        )
        name = exporting.WITHOUT_NAME if wanted.redact else name
        return {"handedOver": exporting.export(source, wanted, file, name).to_json()}
    tool = None if form is ExportFormat.BUNDLE else recordings.ToolForm(form.value)
    if wish["redact"]:
        source, _ = _source(history, settings)
        done, written = console.run(lambda: exporting.export_redacted(source, file, tool))
        return {"handedOver": done.to_json(), "written": written, "name": exporting.WITHOUT_NAME}
    if inputs.files((history,), settings):
        raise InputError(
            f"without --redact, {form.value} is written of a stored history, and this is a file",
            place=history,
            cure="import it first (redra import), and export the history",
        )
    name, moment = moments.split(history)

    async def run() -> "JsonObject":
        async with stores.open_store(settings) as store:
            (until,) = (await answering.stored_moments(store, name, moment)).moments
            with ProgressBar(f"exporting {history}") as progress:
                if tool is not None:
                    return await recordings.export_for_tools(
                        store, name, until, tool, file, progress.to
                    )
                events = await recordings.export_history(
                    store, settings, name, until, file, progress.to, with_secrets=with_secrets
                )
                return {"events": events}

    return {"written": console.run(run)}


def _served(server: "AskedServer", history: str, wish: "JsonObject", file: Path) -> "JsonObject":
    """Export a history of a server, by a job of the server; returns what was written."""
    from app.adapters import packed_folders, whole_files
    from app.settings import Settings

    name = jobs.file_name(file.name, "")
    job = jobs.of_history(server, "export", moments.split(history), {**wish, "name": name})
    with ProgressBar(f"exporting {history}") as progress:
        written: JsonObject = job.wait(lambda now: progress.to(now["done"], now["total"]))
    (content,) = job.fetch().values()
    try:
        if ExportFormat(wish["form"]) in _FOLDERS:
            packed_folders.unpack(content, file, bytes_max=Settings().import_bytes_max)
        else:
            whole_files.write(file, content)
    except OSError as problem:
        raise InputError(f"it cannot be written: {problem.strerror}", place=str(file)) from problem
    return written


def _show(written: "JsonObject", file: Path, form: ExportFormat, name: str) -> None:
    """Say what was exported, as `Exported.to_json` and the writers give it."""
    done = written.get("handedOver")
    if done is not None:
        _say_handed_over(done, file)
    amounts = written.get("written")
    if amounts is None:
        for predicate in written["handedOver"]["unasserted"]:
            console.note(
                f"{predicate}: the history shows it as it is recorded, and not as redra's "
                "controllers decide it, so the test does not assert it"
            )
        for text in written["handedOver"]["asserts"]:
            console.say(f"the test asserts {text}")
    elif form is not ExportFormat.BUNDLE:
        _say_written(amounts, file, form, written.get("name", name))
    elif done is not None:
        console.say(f"{file}: {counts.of(amounts['events'], 'event')}")
    else:
        console.say(f"{file}: {counts.of(amounts['events'], 'event')} of history {name}")


def _say_written(written: "JsonObject", file: Path, form: ExportFormat, name: str) -> None:
    left_out = written.pop("leftOut", 0)
    amounts = ", ".join(counts.of(count, noun.removesuffix("s")) for noun, count in written.items())
    console.say(f"{file}: {amounts} of history {name}")
    if left_out:
        console.note(
            f"{counts.of(left_out, 'event')} left out, because {form.value} cannot express "
            "them: decisions, notes of the recording, first steps of removals"
        )


def _source(history: str, settings: "Settings") -> tuple["Source", str]:
    """The source of a history, or of a recording in files, and its name."""
    from app.bootstrap import garbage_collection, stores
    from app.bootstrap.minimising import sources

    garbage_collection.expect_large_heap()
    paths = inputs.files((history,), settings)

    async def read() -> "Source":
        if paths:
            return await sources.read_files(settings, paths, None)
        name, moment = moments.split(history)
        async with stores.open_store(settings) as store:
            (until,) = (await answering.stored_moments(store, name, moment)).moments
            return await sources.read(store, settings, name, until, None)

    return console.run(read), Path(history).stem if paths else history.partition("@")[0]


def _say_handed_over(done: "JsonObject", file: Path) -> None:
    # A write of an object and its status is two manifests, a deletion none; one file is the script.
    manifests = done["files"] - 1
    files = f" in {counts.of(manifests, 'manifest')} and run.sh" if manifests else ""
    console.say(
        f"{file}: {counts.of(done['inputs'], 'write')} from outside{files}, "
        f"{counts.of(done['decisions'], 'decision')}"
    )
    if done["isRedacted"]:
        console.say(
            f"{counts.of(done['names'], 'name')} replaced; decided again, every decision is the "
            "same"
        )
    if done["leftOut"]:
        shown = ", ".join(f"{name} {count}" for name, count in sorted(done["leftOut"].items()))
        console.say(f"left out, because no decision reads them (writes): {shown}")
