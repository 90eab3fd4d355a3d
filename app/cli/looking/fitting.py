"""`redra fit`, `redra capacity`: the remaining capacity, now and over time."""

from pathlib import Path
from typing import Annotated, Any

import typer

from app.cli import console
from app.cli.arguments import moments, objects
from app.cli.connecting import reading
from app.cli.connecting.answering import AnswerSource
from app.cli.connecting.reading import ReadingCommand
from app.cli.console import Output, OutputOption
from app.cli.looking.showing import AtOption, HistoryArgument, HistoryOption
from app.cli.serving import DataOption
from app.domain.errors import InputError


def register(root: typer.Typer) -> None:
    """Add the commands of this module."""
    root.command("fit", cls=ReadingCommand)(fit)
    root.command("capacity", cls=ReadingCommand)(capacity)


def fit(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[HISTORY] [KIND/NAME]", help="The history; a device class or a claim template."
        ),
    ] = None,
    file: Annotated[
        list[Path] | None,
        typer.Option(
            "--file",
            "-f",
            help="A claim, template, pod or workload, YAML or JSON; - reads stdin.",
        ),
    ] = None,
    class_name: Annotated[
        str, typer.Option("--class", metavar="CLASS", help="Claims for devices of this class.")
    ] = "",
    count: Annotated[
        int, typer.Option(min=1, help="Devices of the class in each claim, with --class.")
    ] = 1,
    template: Annotated[
        str, typer.Option(metavar="NAME", help="Claims of this ResourceClaimTemplate.")
    ] = "",
    namespace: Annotated[
        str,
        typer.Option("--namespace", "-n", help="Namespace of the template, or of the copies."),
    ] = "",
    history: HistoryOption = "",
    at: AtOption = "",
    data: DataOption = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Show how many more copies of a claim or pod fit, on which nodes, and what limits them first.

    Copies are placed one after another, as the scheduler would place them. Without -f, --class and
    --template, every class and every template is tried. Nothing is written.
    """
    import msgspec

    from app.analysis.capacity import text
    from app.analysis.capacity.answers import FitAnswer

    named, about = objects.after_history(words or ())
    if about:
        if class_name or template:
            raise InputError("the class or template is named twice", cure="name it once")
        class_name, template, namespace = _subject(objects.joined(about), namespace)
    if sum(map(bool, (file, class_name, template))) > 1:
        raise InputError("-f, --class and --template cannot be combined", cure="give one of them")
    if count > 1 and not class_name:
        raise InputError("--count needs --class", cure="name a class, or leave --count out")
    place, at = moments.placed(named, history, at)

    parameters = {"class": class_name, "template": template, "namespace": namespace}
    if count > 1:
        parameters["count"] = str(count)

    source = AnswerSource(data)
    if file:
        answer = _of_files(source, file, place, at, namespace)
    else:
        answer = source.ask("fit", history=place, at=at, parameters=parameters)
    shown = msgspec.json.decode(answer, type=FitAnswer)
    with reading.rendering():
        if output is Output.JSON:
            console.say_json(msgspec.json.decode(answer))
            return
        for line in text.fit_lines(shown):
            console.say(line)


def capacity(
    named: HistoryArgument = "",
    history: HistoryOption = "",
    at: AtOption = "",
    data: DataOption = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Show the largest claim of each class that fits, and stranded counters, over time.

    Moments are sampled at equal distances of the log. A counter is stranded if some of it is left
    that no device outside claims can draw, whether it is tainted or not.
    """
    import msgspec

    from app.analysis.capacity import text
    from app.analysis.capacity.answers import CapacityCourse

    place, at = moments.placed(named, history, at)
    source = AnswerSource(data)
    course = _course(source, place, at)
    missing = course["missing"] + 1
    while 0 < course["missing"] < missing:
        # A server computes some of the moments per request.
        missing = course["missing"]
        course = _course(source, place, at)
    shown = msgspec.convert(course, CapacityCourse)
    with reading.rendering():
        if output is Output.JSON:
            console.say_json(course)
            return
        for line in text.capacity_lines(shown):
            console.say(line)


def _course(source: AnswerSource, history: str, at: str) -> dict[str, Any]:
    """The answer with the moments that are computed so far."""
    import msgspec

    body: dict[str, Any] = msgspec.json.decode(source.ask("capacity", history=history, at=at))
    return body


def _subject(text: str, namespace: str) -> tuple[str, str, str]:
    """The class, template and namespace of `KIND/NAME`; class or template is empty."""
    from app.domain.objects import registry
    from app.domain.values import api_resources

    word, _, name = text.partition("/")
    for kind in registry.named(word):
        if (kind.group, kind.plural) == api_resources.DEVICE_CLASSES:
            return name, "", namespace
        if (kind.group, kind.plural) == api_resources.RESOURCE_CLAIM_TEMPLATES:
            place, _, short = name.rpartition("/")
            return "", short, place or namespace
    if name and not registry.named(word):
        # The first of two words without a slash was meant as the history.
        raise InputError(
            f"{name!r} may be a class or a template",
            cure=f"write class/{name} or template/{name}, and {word} before it if it is a history",
        )
    raise InputError(
        f"{text!r} is neither a class nor a template",
        cure="name a DeviceClass or a template, or use -f FILE",
    )


def _of_files(
    source: AnswerSource, files: list[Path], history: str, at: str, namespace: str
) -> bytes:
    """The answer for the objects in files. Raises InputError with file and line."""
    from app.bootstrap import manifests

    limits = manifests.limits_of(source.settings)
    documents = [
        document
        for one in files
        for document in manifests.read_documents(
            one, limits, cure="raise REDRA_BLAST_BYTES_MAX", as_kubectl=True
        )
    ]
    body = {"objects": [tree for _, tree in documents]}
    parameters = {"namespace": namespace}
    try:
        return source.ask("fit", history=history, at=at, parameters=parameters, body=body)
    except InputError as problem:
        raise InputError(_at_its_place(str(problem), documents)) from problem


def _at_its_place(text: str, documents: "list[tuple[str, Any]]") -> str:
    """The text of an error, with the number of an object replaced by file and line."""
    for number, (place, _) in enumerate(documents):
        text = text.replace(f"objects[{number}]:", f"{place}:")
    return text
