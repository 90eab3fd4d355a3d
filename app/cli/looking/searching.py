"""`redra find`, and the search for the namespace of an object of which only the name is known."""

from typing import TYPE_CHECKING, Annotated

import typer

from app.cli import console
from app.cli.arguments import moments
from app.cli.connecting import reading
from app.cli.connecting.answering import AnswerSource
from app.cli.connecting.reading import ReadingCommand
from app.cli.console import Output, OutputOption
from app.cli.serving import DataOption
from app.domain.errors import InputError

if TYPE_CHECKING:  # heavy: not needed for the help
    from collections.abc import Sequence

    from app.analysis.search import GoneHit, Hit

TextArgument = Annotated[
    str, typer.Argument(metavar="TEXT", help="NAME, NAMESPACE/NAME or KIND/NAME, or parts of them.")
]


def register(root: typer.Typer) -> None:
    """Add the commands of this module."""
    root.command("find", cls=ReadingCommand)(find)


def find(
    text: TextArgument,
    history: Annotated[str, typer.Option(help=moments.HISTORY_OR_DEFAULT)] = "",
    at: Annotated[str, moments.option(help=moments.AT)] = "",
    data: DataOption = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Find objects by a part of the name, in all namespaces, also deleted ones.

    The lines begin with arguments for `redra why`, the likeliest first. Objects that are gone come
    after the others, with the author of their deletion, and Event objects come last.
    """
    import msgspec

    from app.analysis.search import Hits

    place, at = moments.split(history, at)
    body = AnswerSource(data).ask("find", history=place, at=at, parameters={"q": text})
    hits = msgspec.json.decode(body, type=Hits)
    with reading.rendering():
        if output is Output.JSON:
            console.say_json(msgspec.json.decode(body))
            return
        for one in hits.objects:
            console.say(_line(one))
        for gone in hits.gone:
            console.say(
                f"{_arguments(gone)}  (deleted {gone.time} by {gone.by}, revision {gone.revision})"
            )
        for one in hits.events:
            console.say(_line(one))
        if hits.more:
            console.note("there are more: write more of the name, or KIND/NAME")
        if not hits.items and not hits.gone:
            console.note(f"no object has {text!r} in its name up to revision {hits.revision}")


def namespace_of(source: AnswerSource, *, kind: str, name: str, history: str, at: str) -> str:
    """The only namespace with an object of a kind and name; `ANYWHERE` if none is known.

    Deleted objects count where there is no other. Raises InputError for several.
    """
    import msgspec

    from app.analysis.explain.questions import ANYWHERE
    from app.analysis.search import Hits

    parameters = {"q": f"{kind}/{name}"}
    body = source.ask("find", history=history, at=at, parameters=parameters, is_quiet=True)
    hits = msgspec.json.decode(body, type=Hits)
    names = _namespaces(hits.items, name) or _namespaces(hits.gone, name)
    if len(names) > 1:
        places = ", ".join(f"{kind}/{namespace}/{name}" for namespace in names)
        raise InputError(f"{kind} {name} is in several namespaces: {places}", cure="name one")
    return next(iter(names), ANYWHERE)


def _namespaces(hits: "Sequence[Hit | GoneHit]", name: str) -> list[str]:
    """The namespaces of the objects of exactly this name."""
    return sorted({one.namespace for one in hits if one.name == name})


def _line(one: "Hit") -> str:
    return f"{_arguments(one)}  (revision {one.revision})"


def _arguments(one: "Hit | GoneHit") -> str:
    """The words after `redra why` that name an object."""
    return f"{one.resource}/{one.name}" + (f" -n {one.namespace}" if one.namespace else "")
