"""`redra diff`: the different decisions of two histories, and where the difference begins."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from app.cli import console, exit_codes
from app.cli.arguments import moments
from app.cli.connecting import reading
from app.cli.connecting.answering import AnswerSource
from app.cli.connecting.reading import ReadingCommand
from app.cli.console import Output, OutputOption, ProgressBar
from app.cli.exit_codes import ExitCode
from app.cli.serving import DataOption, GateOption, QuirkOption
from app.domain.errors import InputError
from app.domain.values.json_tree import JsonObject


class AspectName(StrEnum):
    """The subject of a comparison."""

    DECISIONS = "decisions"
    OBJECTS = "objects"
    OUTCOMES = "outcomes"


AgainOption = Annotated[
    bool,
    typer.Option(
        help="Compare A with itself decided again: inputs from outside are kept, and the "
        "controllers decide the rest, as in a decide replay. --profile, --gate and --quirk "
        "change the rules of the controllers."
    ),
]

ByOption = Annotated[
    AspectName,
    typer.Option(
        help="decisions: each pod, with causes; outcomes: the node of each pod at the end; "
        "objects: the objects at the end."
    ),
]


def register(root: typer.Typer) -> None:
    """Add the command of this module."""
    root.command("diff", cls=ReadingCommand)(diff)


def diff(
    a: Annotated[str, typer.Argument(metavar="A[@MOMENT]", help="A history, up to its end.")],
    b: Annotated[
        str, typer.Argument(metavar="B[@MOMENT]", help="The history to compare it with.")
    ] = "",
    again: AgainOption = False,
    profile: Annotated[
        str | None, typer.Option(help="With --again, the Kubernetes version whose rules decide.")
    ] = None,
    gate: GateOption = None,
    quirk: QuirkOption = None,
    at: Annotated[
        str,
        moments.option(
            help="Compare up to this moment, for a revision the instant of A's; default: the "
            "earlier end."
        ),
    ] = "",
    by: ByOption = AspectName.DECISIONS,
    within: Annotated[
        float,
        typer.Option(
            min=0,
            help="Seconds by which a decision may be earlier or later and still count as the same.",
        ),
    ] = 1.0,
    data: DataOption = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Compare two histories decision by decision: a fork and its parent, two recordings, two forks.

    Root causes come first: different settings, and different inputs from outside. Under each cause
    are the pods that it affects (moved, newly unschedulable, newly placed, evicted, spared, earlier
    or later), with the node or device for which the reasons of the two sides first differ, and
    under these the differences that follow from them. The exit code is 0 if nothing differs, and 1
    otherwise.
    """
    if bool(b) is again or (not again and (profile or gate or quirk)):
        raise InputError(
            "A is compared with another history, or with itself decided again (with --profile, "
            "--gate and --quirk)",
            cure="name B, or add --again",
        )
    for side in (a, b):
        moments.split(side)
    source = AnswerSource(data)
    is_text = output is not Output.JSON
    if again:
        source.refuse_server("a history decided again")
        changes = {"profile": profile, "gates": gate, "quirks": quirk}
        body = _again(data, (a, at), (by, within), changes, as_page=is_text)
    else:
        body = _compared(source, (a, b, at), (by, within), as_page=is_text)
    from app.analysis.explain import pages

    if is_text:
        pages.check_json(body)
    if body["outcome"] != "same":
        exit_codes.conclude(ExitCode.NO)
    with reading.rendering():
        if is_text:
            for line in pages.of_json(body, console.width(), lines_max=pages.COMPARED_LINES_MAX):
                console.say(line)
        else:
            console.say_json(body)


def _compared(
    source: AnswerSource,
    sides: tuple[str, str, str],
    how: tuple[AspectName, float],
    *,
    as_page: bool,
) -> JsonObject:
    """The comparison of two histories, from a server or from this process."""
    from app.bootstrap.asking.queries import ServedQuery

    a, b, at = sides
    by, within = how

    def here() -> JsonObject:
        from app.bootstrap import garbage_collection, stores
        from app.bootstrap.answers import differences
        from app.service import diffing

        garbage_collection.expect_large_heap()

        async def work() -> JsonObject:
            async with stores.open_store(source.settings) as store:
                chosen = diffing.ComparisonAspect(by.value)
                report = await differences.diff(store, source.settings, a, b, at, chosen, within)
                return differences.shown(report, as_page=as_page)

        with ProgressBar("comparing"):
            return console.run(work)

    name, _, moment = a.partition("@")
    other, _, other_moment = b.partition("@")
    query = ServedQuery(
        history=name,
        part="diff",
        at=moment or at,
        parameters={
            "with": other,
            "withAt": other_moment or ((at or "end") if moment else ""),
            "by": by.value,
            "within": str(within),
            "page": "true" if as_page else "",
        },
    )
    return source.answer(lambda server: _decoded(server.ask(query)), here)


def _decoded(answer: bytes) -> JsonObject:
    tree: JsonObject = msgspec.json.decode(answer)
    return tree


def _again(
    data: Path | None,
    side: tuple[str, str],
    how: tuple[AspectName, float],
    changes: dict[str, Any],
    *,
    as_page: bool,
) -> JsonObject:
    """The comparison of a history with itself decided again, from this process."""
    from app.bootstrap import garbage_collection, process_settings, stores
    from app.bootstrap.answers import differences
    from app.service import diffing

    settings = process_settings.settings(data=data, **changes)
    garbage_collection.expect_large_heap()
    a, at = side
    by, within = how

    async def run() -> JsonObject:
        async with stores.open_store(settings) as store:
            report = await differences.diff_again(
                store,
                settings,
                a,
                at,
                diffing.ComparisonAspect(by.value),
                within,
                changes["profile"],
                progress=progress.tell,
            )
            return differences.shown(report, as_page=as_page)

    with ProgressBar("deciding again") as progress:
        return console.run(run)
