"""`redra why`: the reasons for a state, as a tree that fits the terminal."""

from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from app.cli import console
from app.cli.arguments import moments, objects
from app.cli.connecting import reading
from app.cli.connecting.answering import AnswerSource
from app.cli.connecting.reading import ReadingCommand
from app.cli.console import Output, OutputOption
from app.cli.looking import searching
from app.cli.serving import DataOption
from app.domain.errors import InputError
from app.domain.values.json_tree import JsonObject

if TYPE_CHECKING:  # heavy: not needed for the help
    from app.analysis.explain.reasons import Reason
    from app.domain.log.doubts import Doubt


def register(root: typer.Typer) -> None:
    """Add the commands of this module."""
    root.command("why", cls=ReadingCommand)(why)


def why(
    subject: Annotated[
        list[str],
        typer.Argument(
            metavar=objects.METAVAR,
            help="pod/x, pod/NAMESPACE/x, device/DRIVER/POOL/NAME, …; also KIND NAME, and short "
            "names of kinds.",
        ),
    ],
    namespace: Annotated[
        str,
        typer.Option("--namespace", "-n", help="Namespace of the object [default: default]."),
    ] = "",
    all_namespaces: Annotated[
        bool,
        typer.Option("--all-namespaces", "-A", help="Look for the object in all namespaces."),
    ] = False,
    history: Annotated[str, typer.Option(help=moments.HISTORY_OR_DEFAULT)] = "",
    at: Annotated[str, moments.option(help=moments.AT)] = "",
    node: Annotated[str, typer.Option(help="Explain only this node.")] = "",
    what_would_help: Annotated[
        bool,
        typer.Option(
            help="Search for the smallest changes that would let the pod run; each is proved."
        ),
    ] = False,
    data: DataOption = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Explain the state of an object: node by node, request by request, device by device."""
    kind, _, name = objects.joined(subject).partition("/")
    if all_namespaces and namespace:
        raise InputError("-A and -n cannot be combined", cure="give one of them")
    history, at = moments.split(history, at)
    source = AnswerSource(data)
    if all_namespaces and "/" not in name:
        of_name = {"kind": kind, "name": name, "history": history, "at": at}
        namespace = searching.namespace_of(source, **of_name)
    parameters = {
        "kind": kind,
        "namespace": namespace or "default",
        "name": name,
        "node": node,
        "help": "true" if what_would_help else "",
    }
    body = source.ask("why", history=history, at=at, parameters=parameters)
    answer = msgspec.json.decode(body)
    shown = parts(answer)
    with reading.rendering():
        if output is Output.JSON:
            console.say_json(answer)
            return
        for number, line in enumerate(page(*shown, console.width())):
            console.say(line, console.HEAD if number == 0 else "")


def parts(answer: JsonObject) -> "tuple[str, tuple[Doubt, ...], tuple[Reason, ...]]":
    """The head, doubts and reasons of an answer."""
    from app.analysis.explain.reasons import Reason
    from app.domain.log.doubts import Doubt
    from app.domain.objects import registry

    text = f", {answer['text']}" if answer["text"] else ""
    head = f"{registry.titled(answer['subject'])}: {answer['outcome']}{text}"
    doubts = msgspec.convert(answer["doubts"], tuple[Doubt, ...])
    return head, doubts, Reason.from_json(answer["reasons"]).children


def page(
    head: str, doubts: "tuple[Doubt, ...]", reasons: "tuple[Reason, ...]", width: int
) -> list[str]:
    """The lines of the answer."""
    from app.analysis.explain import pages
    from app.analysis.recordings import uncertainty

    return pages.page(head, reasons, notes=uncertainty.lines(doubts), width=width)
