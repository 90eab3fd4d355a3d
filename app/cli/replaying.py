"""`redra replay`: folds a history again, verifies it, or decides it again."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from app.cli import console, exit_codes
from app.cli.arguments import moments
from app.cli.connecting import sources as inputs
from app.cli.console import Output, OutputOption, ProgressBar
from app.cli.exit_codes import ExitCode
from app.cli.judging import differences
from app.cli.serving import DataOption, GateOption, QuirkOption
from app.domain.errors import InputError
from app.domain.log import records
from app.domain.values import counts

SHOWN_MAX = 10
"""Differences and violations that are printed; all are counted."""

STATUSES = {
    "verified": ExitCode.DONE,
    "verified in part": ExitCode.IN_PART,
    "failed": ExitCode.NO,
    "agrees": ExitCode.DONE,
    "agrees apart from proved classes": ExitCode.IN_PART,
    "agrees in part": ExitCode.IN_PART,
    "unexplained differences": ExitCode.NO,
    "impossible states or times": ExitCode.NO,
}
"""Exit codes by the outcome of a verification, and of a decide replay."""


class Mode(StrEnum):
    """The mode of a replay."""

    FOLD = "fold"
    VERIFY = "verify"
    DECIDE = "decide"


class PaceName(StrEnum):
    """The times at which controllers act in a decide replay."""

    RECORDED = "recorded"
    VIRTUAL = "virtual"


SourcesArgument = Annotated[
    list[str],
    typer.Argument(metavar="HISTORY[@MOMENT]|FILE…", help="A history, or files of a recording."),
]

ModeOption = Annotated[
    Mode,
    typer.Option(
        help="fold: rebuild views; verify: make every decision again from the views it was made "
        "from; decide: keep the inputs from outside and let the controllers decide the rest "
        "again."
    ),
]

PaceOption = Annotated[
    PaceName | None,
    typer.Option(
        help="With decide, the times at which controllers act. recorded (default): the times of "
        "the recording; virtual: as soon as there is work, and bindings take no time."
    ),
]

ProcessesOption = Annotated[
    int | None,
    typer.Option(
        min=1,
        max=64,
        help="With verify, the number of processes that share the work of a long history; "
        "default: the number of processors (REDRA_VERIFY_PROCESSES). Each holds the history's "
        "objects.",
    ),
]

SchedulerOption = Annotated[
    str | None,
    typer.Option(
        metavar="tcp://HOST:PORT",
        help="With verify, share the work of a long history with an existing Dask cluster "
        "(REDRA_VERIFY_SCHEDULER).",
    ),
]


HeadOption = Annotated[
    Path | None,
    typer.Option(
        help="With verify, compare with the signed head in this file, which `redra head` printed."
    ),
]

HeadKeyOption = Annotated[
    list[str] | None,
    typer.Option(
        help="A trusted public key for the signed head, besides that of the data folder: ed25519:… "
        "or a PEM file. Repeatable."
    ),
]

SecondOpinionOption = Annotated[
    bool,
    typer.Option(
        "--second-opinion",
        help="With verify, also evaluate every selector on every device of the history with "
        "cel-python; if it disagrees or cannot answer, the outcome is verified in part.",
    ),
]


def register(root: typer.Typer) -> None:
    """Add the commands of this module."""
    root.command("replay")(replay)


def replay(
    sources: SourcesArgument,
    mode: ModeOption = Mode.FOLD,
    to: Annotated[str, moments.option("--to", "--at", help="Up to this moment.")] = "",
    profile: Annotated[
        str | None,
        typer.Option(help="Kubernetes version whose rules decide; default: the history's."),
    ] = None,
    gate: GateOption = None,
    quirk: QuirkOption = None,
    pace: PaceOption = None,
    processes: ProcessesOption = None,
    scheduler: SchedulerOption = None,
    head: HeadOption = None,
    head_key: HeadKeyOption = None,
    second_opinion: SecondOpinionOption = False,
    data: DataOption = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Rebuild the views of a history, verify it, or decide it again from its inputs from outside.

    A source is the name of a history, or HISTORY@MOMENT for its state at a moment. Any other
    source, and always ./NAME, is a file or folder, which is read into memory without a database.
    For verify, the exit code is 0 if everything was compared and agrees, 1 if something fails (a
    broken chain, a violated invariant, a decision, effect or allocation with another result), and 3
    if what was compared agrees but something could not be compared. For decide, it is 0 if nothing
    differs, 1 if a difference is unexplained, and 3 otherwise: a run proves the class of each
    difference, or the difference is not comparable.
    """
    from app.bootstrap import executors, garbage_collection, heads, process_settings, replays

    _check_mode(mode, [Mode.DECIDE], pace=pace)
    _check_mode(mode, [Mode.DECIDE, Mode.VERIFY], profile=profile, gate=gate, quirk=quirk)
    _check_mode(mode, [Mode.VERIFY], processes=processes, scheduler=scheduler, head=head)
    _check_mode(mode, [Mode.VERIFY], head_key=head_key, second_opinion=second_opinion)
    settings = process_settings.settings(
        data=data,
        profile=profile,
        gates=gate,
        quirks=quirk,
        verify_processes=processes,
        verify_scheduler=_scheduler(scheduler, processes),
    )
    if mode is Mode.VERIFY:
        executors.check_workers(0, settings.verify_scheduler)
    garbage_collection.expect_large_heap()
    files = inputs.files(sources, settings)
    name, to = (sources[0], to) if files else moments.split(sources[0], to)
    signed = [] if head is None else heads.read(settings, head, head_key or ())
    trusted = heads.trusted(settings, head_key or ())
    second = _second_opinion() if second_opinion else None
    chosen = (pace or PaceName.RECORDED).value
    with ProgressBar("replaying") as progress:

        def advance(_doing: str, revision: int, until: int) -> None:
            progress.to(revision, until)

        async def work(store: Any, name: str, to: str) -> Any:
            match mode:
                case Mode.FOLD:
                    return await replays.fold(store, settings, name, to, advance)
                case Mode.DECIDE:
                    return await replays.decide(store, settings, name, to, advance, chosen, profile)
                case Mode.VERIFY:
                    return await replays.verify(
                        store, settings, name, to, advance, profile, signed, trusted, second
                    )

        report, as_of = console.run(lambda: _with_history(work, settings, (name, to), files))
    _print(mode, {**as_of, **report.to_json()}, output)


async def _with_history(
    work: Callable[[Any, str, str], Awaitable[Any]],
    settings: Any,
    place: tuple[str, str],
    files: tuple[Path, ...],
) -> tuple[Any, dict[str, str]]:
    """Run the work on a history of the store up to a moment, or on files in memory.

    Returns the result, and the field that says what a relative moment names.
    """
    from app.bootstrap import replays, stores
    from app.bootstrap.answers import relative
    from app.cli.connecting import answering

    async def run(store: Any, name: str) -> tuple[Any, dict[str, str]]:
        pinned = await relative.resolved(store, name, place[1])
        answering.note_meanings(pinned)
        return await work(store, name, pinned.moments[0]), pinned.as_of

    if files:
        store = stores.memory_store()
        return await run(store, await replays.load_files(store, settings, files))
    async with stores.open_store(settings) as store:
        return await run(store, place[0])


def _scheduler(scheduler: str | None, processes: int | None) -> str | None:
    """The Dask scheduler to use; a number of processes overrides that of the environment."""
    if processes is None:
        return scheduler
    if scheduler is not None:
        raise InputError("--processes and --scheduler cannot be combined", place="--scheduler")
    return ""


def _second_opinion() -> Any:
    """The second opinion. It is loaded here, because nothing else needs cel-python."""
    from app.bootstrap import opinions

    return opinions.second_opinion()


def _check_mode(mode: Mode, modes: Sequence[Mode], **options: object) -> None:
    """Raise InputError for options that apply to other modes."""
    for option, value in options.items():
        if value and mode not in modes:
            raise InputError(
                f"it applies to {' and '.join(modes)} replays, and the mode is {mode.value}",
                place=f"--{option.replace('_', '-')}",
                cure=f"add {' or '.join(f'--mode {each}' for each in modes)}",
            )


def _print(mode: Mode, tree: Mapping[str, Any], output: Output) -> None:
    """Print a report and set the exit code for its outcome."""
    if mode is not Mode.FOLD:
        exit_codes.conclude(STATUSES[tree["outcome"]])
    match mode:
        case Mode.FOLD:
            _print_fold(tree, output)
        case Mode.VERIFY:
            _print_verify(tree, output)
        case Mode.DECIDE:
            _print_decide(tree, output)


def _print_fold(report: Mapping[str, Any], output: Output) -> None:
    if output is Output.JSON:
        console.say_json(report)
        return
    console.say(f"history {report['history']} at revision {report['revision']}, {report['time']}")
    for name in ("objects", "pools", "claims", "pods", "decisions"):
        counts = ", ".join(f"{count} {what}" for what, count in sorted(report[name].items()))
        console.say(f"{name}: {counts or 'none'}")
    console.say(f"devices: {report['devices']}")
    console.table(("view", "state hash"), sorted(report["stateHashes"].items()))


def _print_verify(report: Mapping[str, Any], output: Output) -> None:
    if output is Output.JSON:
        console.say_json(report)
        return
    console.say(f"history {report['history']}: {counts.of(report['events'], 'event')}")
    _print_chain(report["chain"])
    _print_invariants(report["invariants"])
    for name in ("decisions", "effects", "allocations"):
        _print_compared(name, report[name])
    _print_opinion(report["secondOpinion"])
    _print_doubts(report)
    if report["judgedAfter"]:
        console.say(
            f"judged here: events after revision {report['judgedAfter']}, at which the "
            "history was forked; earlier events are judged with the history that it was "
            "forked from"
        )
    if report["notJudged"]:
        console.say(
            f"not judged here: {', '.join(report['notJudged'])}; --mode decide decides them again"
        )
    console.say(_conclusion(report))


_CONCLUSIONS = {
    "verified": "verified: everything that is judged was compared and agrees",
    "verified in part": "verified in part: what could be compared agrees, and something could not",
    "failed": "FAILED: it does not agree",
}


def _conclusion(report: Mapping[str, Any]) -> str:
    opinion = report["secondOpinion"]
    if report["outcome"] == "verified in part" and opinion and opinion["disagreed"]:
        return "verified in part: the second opinion disagrees about what selectors say"
    is_verified = report["outcome"] == "verified"
    if is_verified and any(doubt["affects"] == "order" for doubt in report["doubts"]):
        return f"{_CONCLUSIONS['verified']}; the order of some changes is not known"
    return _CONCLUSIONS[report["outcome"]]


def _print_invariants(invariants: Mapping[str, Any]) -> None:
    kinds = ", ".join(f"{count} {kind}" for kind, count in invariants["kinds"].items() if count)
    console.say(
        f"invariants: {counts.of(invariants['violations'], 'violation')}{kinds and f' ({kinds})'}"
    )
    for violation in invariants["examples"][:SHOWN_MAX]:
        begin, end = violation["from"], violation["until"]
        until = f"until revision {end['revision']}, {end['time']}" if end else "to the end"
        console.say(f"  {violation['rule']} ({violation['kind']}): {violation['message']}")
        console.say(f"    from revision {begin['revision']}, {begin['time']}, {until}")
        console.say(f"    {', '.join(violation['objects'])}")
        if violation["doubt"]:
            console.say(f"    unsure: {violation['doubt']}")


def _print_opinion(opinion: Mapping[str, Any] | None) -> None:
    if opinion is None:
        return
    by = opinion["by"]
    console.say(
        f"second opinion by {by}: {counts.of(opinion['expressions'], 'expression')}, "
        f"{counts.of(opinion['devices'], 'device')}, {opinion['agreed']} agree, "
        f"{opinion['disagreed']} disagree"
    )
    for each in opinion["disagreements"][:SHOWN_MAX]:
        console.say(f"  device {each['device']}: {differences.side(each['expression'])}")
        error = f" ({each['error']})" if each["error"] else ""
        console.say(f"    redra: {each['redra']}{error}, {by}: {each['second']}")
    for reason, count in opinion["unsaid"].items():
        console.say(f"  no second opinion, {count}: {reason}")
    if opinion["unasked"]:
        console.say(
            f"  not asked, {opinion['unasked']}: beyond the bound "
            "(REDRA_SECOND_OPINION_EVALUATIONS_MAX)"
        )


_SETTINGS = {
    "anchored": "settings: as at the beginning of the chain",
    "unanchored": "settings: not in the chain, which an older version of redra began",
    "unknown": "settings: unknown whether they are those of the chain's beginning",
}


def _print_chain(chain: Mapping[str, Any]) -> None:
    if not chain["problemsCount"]:
        console.say(f"chain: whole, head {str(chain['head'])[:19]}")
    else:
        console.say(f"chain: {counts.of(chain['problemsCount'], 'problem')}")
    for problem in chain["problems"][:SHOWN_MAX]:
        console.say(f"  {problem}")
    console.say(_SETTINGS[chain["settings"]])
    for head in chain["signedHeads"]:
        if head["trusted"]:
            console.say(
                f"signed head at revision {head['revision']} by {head['key']}: {head['verdict']}"
            )
        else:
            console.say(
                f"signed head at revision {head['revision']} by {head['key']}: proves "
                "nothing, because the key is not trusted (--head-key)"
            )
    if not any(head["trusted"] for head in chain["signedHeads"]):
        console.say(
            "signed head: none given, so a log that was cut together with its head is not detected"
        )


def _print_doubts(report: Mapping[str, Any]) -> None:
    from app.analysis.recordings import uncertainty
    from app.domain.log.doubts import Doubt

    doubts = msgspec.convert(report["doubts"], list[Doubt])
    for line in (*uncertainty.lines(doubts), *uncertainty.order_lines(doubts)):
        console.say(line)


_TREATMENTS = {
    "decided again": "decided again",
    "outside": "taken as inputs (from users, drivers, kubelets and others)",
    "controller that is not emulated": "taken from controllers that are not emulated",
}
"""The treatments of recorded writes in words, in their order; others follow as they are."""


def recorded_writes_text(inputs: Mapping[str, int]) -> str:
    """The sentence about the treatment of recorded writes in a decide replay."""
    order = [what for what in (*_TREATMENTS, *inputs) if what in inputs]
    parts = [f"{inputs[what]} {_TREATMENTS.get(what, what)}" for what in dict.fromkeys(order)]
    return f"recorded writes: {', '.join(parts)}"


def _print_decide(report: Mapping[str, Any], output: Output) -> None:
    if output is Output.JSON:
        console.say_json(report)
        return
    console.say(f"history {report['history']} at revision {report['revision']}")
    console.say(recorded_writes_text(report["inputs"]))
    ties = report["tiesTakenFromTheRecording"]
    console.say(f"choices among equal nodes taken from the recording: {ties}")
    rows = []
    for aspect, counted in report["aspects"].items():
        classes = ", ".join(f"{count} {why}" for why, count in counted["classes"].items())
        rows.append((aspect, str(counted["same"]), str(counted["different"]), classes))
    console.table(("ASPECT", "SAME", "DIFFERENT", "WHY"), rows)
    for controller, users in report["writtenBy"].items():
        console.say(f"counted as writes of {controller}: those of {_tallied(users)}")
    for why, count in report["notComparable"].items():
        console.say(f"not comparable, {count}: {why}")
    for why, count in report["notDone"].items():
        console.say(f"not done here, {count}: {why}")
    for claim, problem in report["violations"].items():
        console.say(f"violation, {claim}: {problem}")
    gravest = [
        difference for difference in report["differences"] if difference["class"] == "unexplained"
    ]
    shown = (gravest or report["differences"])[:SHOWN_MAX]
    for counted in shown:
        detail = f" ({counted['detail']})" if counted["detail"] else ""
        users = ", ".join(map(records.named_author, counted["users"]))
        besides = f" (others who wrote to it: {users})" if users else ""
        console.say(f"{counted['aspect']}, {counted['subject']}: {counted['class']}{detail}")
        recorded, again = differences.sides(counted["recorded"], counted["again"])
        console.say(f"  recorded:      {recorded}")
        console.say(f"  decided again: {again}{besides}")
    if len(report["differences"]) > len(shown):
        console.say("all differences with both sides: -o json")
    _print_doubts(report)
    console.say(f"{report['outcome']} (runs to prove classes: {report['runsToProveClasses']})")


def _print_compared(name: str, compared: Mapping[str, Any]) -> None:
    counts = ", ".join(
        f"{count} {verdict}" for verdict, count in compared["counts"].items() if count
    )
    console.say(f"{name}: {counts or 'none'}")
    if authors := _tallied(compared["authors"]):
        console.say(f"  written by {authors}")
    for reason, authors in compared["notComparable"].items():
        for author, count in authors.items():
            by = records.named_author(author)
            console.say(f"  not comparable, {count} by {by}: {reason}")
    for difference in compared["differences"][:SHOWN_MAX]:
        console.say(
            f"  revision {difference['revision']}, {difference['subject']}, {difference['path']}: "
            f"recorded {differences.side(difference['recorded'])}, "
            f"decided again {differences.side(difference['again'])}"
        )
        if difference["judgement"]:
            console.say(f"    {difference['judgement']}")
    if any(each["kind"] == "other choice" for each in compared["differences"]):
        console.say(
            "  another release, gate or quirk may make those choices: --mode decide tries which one"
        )


def _tallied(users: Mapping[str, int]) -> str:
    """The users with their numbers of writes, the most active first."""
    order = sorted(users, key=lambda user: (-users[user], user))
    return ", ".join(
        f"{records.named_author(user) or 'nobody named'} ({users[user]})" for user in order
    )
