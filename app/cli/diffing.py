"""`redra diff`: the different decisions of two histories, and where the difference begins."""

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from app.cli import console, exit_codes
from app.cli.arguments import moments
from app.cli.connecting import answering, reading
from app.cli.connecting.answering import AnswerSource
from app.cli.connecting.reading import ReadingCommand
from app.cli.console import Output, OutputOption, ProgressBar
from app.cli.exit_codes import ExitCode
from app.cli.serving import DataOption, GateOption, QuirkOption
from app.domain.errors import InputError
from app.domain.values.json_tree import JsonObject
from app.domain.values.moments import Resolved

if TYPE_CHECKING:  # heavy: not needed for answers of a server
    from app.bootstrap.asking.servers import AskedServer


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
    owns = [moments.split(side)[1] for side in (a, b)]
    if at and all(owns):
        raise InputError(
            "both histories have a moment of their own", place="--at", cure="leave it out"
        )
    source = AnswerSource(data)
    is_text = output is not Output.JSON
    if again:
        changes = {"profile": profile, "gates": gate, "quirks": quirk}
        body = _again(source, data, (a, at), (by, within), changes, as_page=is_text)
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
    texts = _moments_of(a, b, at)

    def here() -> JsonObject:
        from app.bootstrap import garbage_collection, stores
        from app.bootstrap.answers import differences, relative
        from app.service import diffing

        garbage_collection.expect_large_heap()

        async def work() -> JsonObject:
            async with stores.open_store(source.settings) as store:
                chosen = diffing.ComparisonAspect(by.value)
                pinned = []
                for side, moments_of in zip((a, b), texts, strict=True):
                    name = side.partition("@")[0]
                    pinned.append(await relative.resolved(store, name, *moments_of))
                    answering.note_meanings(pinned[-1])
                left, right, last = _placed((a, b), pinned)
                report = await differences.diff(
                    store, source.settings, left, right, last, chosen, within
                )
                shown = differences.shown(report, as_page=as_page)
                return {**_as_of(pinned), **shown}

        with ProgressBar("comparing"):
            return console.run(work)

    def of_server(server: "AskedServer") -> JsonObject:
        names = [side.partition("@")[0] for side in (a, b)]
        pinned = [
            source.resolved(server, name, *moments_of)
            for name, moments_of in zip(names, texts, strict=True)
        ]
        left, right, last = _placed((a, b), pinned)
        name, _, moment = left.partition("@")
        other, _, other_moment = right.partition("@")
        query = ServedQuery(
            history=name,
            part="diff",
            at=moment or last,
            parameters={
                "with": other,
                "withAt": other_moment or ((last or "end") if moment else ""),
                "by": by.value,
                "within": str(within),
                "page": "true" if as_page else "",
            },
        )
        return {**_as_of(pinned), **_decoded(server.ask(query))}

    return source.answer(of_server, here)


def _moments_of(a: str, b: str, at: str) -> tuple[tuple[str, str], tuple[str, str]]:
    """The moments that count from the end of each side: its own one, and the common one.

    The common moment is that of A, or of B where A has its own.
    """
    (_, own), (_, other) = moments.split(a), moments.split(b)
    return (own, "" if own else at), (other, at if own else "")


def _placed(sides: tuple[str, str], pinned: Sequence[Resolved]) -> tuple[str, str, str]:
    """The sides with their own moments, and the common moment, all in absolute form."""
    places = [
        f"{side.partition('@')[0]}@{each.moments[0]}" if each.moments[0] else side
        for side, each in zip(sides, pinned, strict=True)
    ]
    return places[0], places[1], pinned[0].moments[1] or pinned[1].moments[1]


def _as_of(pinned: Sequence[Resolved]) -> JsonObject:
    """The field that says which instants the relative moments of the sides name."""
    meanings = tuple(dict.fromkeys(meaning for each in pinned for meaning in each.meanings))
    return dict(Resolved(moments=(), meanings=meanings).as_of)


def _decoded(answer: bytes) -> JsonObject:
    tree: JsonObject = msgspec.json.decode(answer)
    return tree


def _again(
    source: AnswerSource,
    data: Path | None,
    side: tuple[str, str],
    how: tuple[AspectName, float],
    changes: dict[str, Any],
    *,
    as_page: bool,
) -> JsonObject:
    """The comparison of a history with itself decided again, here or by a server that is named."""
    if (server := source.named_server) is not None:
        return _again_of(source, server, side, how, changes, as_page=as_page)
    from app.bootstrap import garbage_collection, process_settings, stores
    from app.bootstrap.answers import differences, relative
    from app.service import diffing

    settings = process_settings.settings(data=data, **changes)
    garbage_collection.expect_large_heap()
    a, at = side
    by, within = how

    async def run() -> JsonObject:
        async with stores.open_store(settings) as store:
            pinned = await relative.resolved(store, a, at)
            answering.note_meanings(pinned)
            report = await differences.diff_again(
                store,
                settings,
                a,
                pinned.moments[0],
                diffing.ComparisonAspect(by.value),
                within,
                changes["profile"],
                progress=progress.show,
            )
            return {**pinned.as_of, **differences.shown(report, as_page=as_page)}

    with ProgressBar("deciding again") as progress:
        return console.run(run)


def _again_of(
    source: AnswerSource,
    server: "AskedServer",
    side: tuple[str, str],
    how: tuple[AspectName, float],
    changes: dict[str, Any],
    *,
    as_page: bool,
) -> JsonObject:
    """The same from a server."""
    from app.bootstrap.asking.queries import ServedQuery

    name, own = moments.split(side[0])
    resolved = source.resolved(server, name, own or side[1])
    query = ServedQuery(
        history=name,
        part="again",
        at=resolved.moments[0],
        parameters={
            "profile": changes["profile"] or "",
            "gate": ",".join(changes["gates"] or ()),
            "quirk": ",".join(changes["quirks"] or ()),
            "by": how[0].value,
            "within": str(how[1]),
            "page": "true" if as_page else "",
        },
    )
    return {**resolved.as_of, **_decoded(server.ask(query))}
