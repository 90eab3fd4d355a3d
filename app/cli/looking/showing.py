"""`redra findings`, `redra map`: the answers of the pages with these names, in a terminal."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from app.cli import console, exit_codes
from app.cli.arguments import moments, objects
from app.cli.connecting import answering, reading
from app.cli.connecting.answering import AnswerSource
from app.cli.connecting.reading import ReadingCommand
from app.cli.console import Output, OutputOption
from app.cli.exit_codes import ExitCode
from app.cli.serving import DataOption
from app.domain.errors import InputError, NotFound
from app.domain.values import counts

if TYPE_CHECKING:
    from app.analysis.findings.report import Finding, Findings, Subject
    from app.analysis.map_answers import DeviceMap, MappedPool

HistoryArgument = Annotated[str, typer.Argument(metavar="[HISTORY]", help=moments.HISTORY)]
HistoryOption = Annotated[str, typer.Option(help="The same as the argument HISTORY.")]
AtOption = Annotated[str, moments.option(help=moments.AT)]

LabelsOption = Annotated[
    str,
    typer.Option(
        "--selector", "-l", metavar="LABELS", help="Only pools of nodes with these labels."
    ),
]
DevicesOption = Annotated[
    bool, typer.Option(help="List each device with its holders, as -o wide does.")
]

_SIGNS = {
    "held": "#",
    "free": ".",
    "blocked": "x",
    "tainted": "!",
    "unusable": "?",
    "unpublished": "-",
}
"""The sign for each state of a device."""

_OBJECTS_MAX = 5
"""Objects that are listed with a known defect."""

SHOWN_MAX = 60
"""Devices in one row of signs."""


def register(root: typer.Typer) -> None:
    """Add the commands of this module."""
    root.command("findings", cls=ReadingCommand)(findings)
    root.command("map", cls=ReadingCommand)(device_map)


def findings(
    named: HistoryArgument = "",
    history: HistoryOption = "",
    namespace: Annotated[
        str,
        typer.Option("--namespace", "-n", help="Only findings about objects of this namespace."),
    ] = "",
    all_namespaces: Annotated[
        bool, typer.Option("--all-namespaces", "-A", help="All namespaces (the default).")
    ] = False,
    at: AtOption = "",
    data: DataOption = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """List what is wrong in a history, ranked: waiting pods, stuck claims, pools, invariants.

    Known defects of Kubernetes come after the other findings of the same severity: an error if the
    defect is certain, a warning for behaviour that is as designed, a notice if there may be another
    cause. `redra scan` has the details. Each object stands with the revision at which the finding
    shows in it; the last line of a finding is the command that explains the first of them.
    The exit code is 1 if there is a finding, and 3 if there is none and a server has not read the
    whole log of a long history yet.
    """
    import msgspec

    from app.analysis.findings.report import Findings

    place, at = moments.placed(named, history, at)
    source = AnswerSource(data)
    if all_namespaces and namespace:
        raise InputError("-A and -n cannot be combined", cure="give one of them")
    answer = source.ask_whole("findings", history=place, at=at, parameters={"namespace": namespace})
    shown, whole = msgspec.json.decode(answer, type=Findings), msgspec.json.decode(answer)
    defects, note = whole.get("knownDefects", ()), whole.get("knownDefectsNote", "")
    if shown.items or defects:
        exit_codes.conclude(ExitCode.NO)
    elif not shown.is_complete or note.startswith(answering.UNREAD):
        exit_codes.conclude(ExitCode.IN_PART)
    with reading.rendering():
        if output is Output.JSON:
            console.say_json(whole)
            return
        for line in findings_lines(shown, defects, source.history(place)):
            _say_wrapped(line)
        if note:
            console.note(f"{note}; redra scan {source.history(place)} searches for them")


def _say_wrapped(line: str) -> None:
    """Print a line, wrapped between words where the width is known; what follows is indented."""
    import textwrap

    columns = max(console.known_width(), WIDTH_MIN)
    if len(line) <= columns or not console.known_width():
        console.say(line)
        return
    following = f"{line[: len(line) - len(line.lstrip())]}    "
    for part in textwrap.wrap(
        line,
        columns,
        subsequent_indent=following,
        break_long_words=False,
        break_on_hyphens=False,
    ):
        console.say(part)


WIDTH_MIN = 40
"""The fewest columns to which lines are wrapped."""

MapWords = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[HISTORY] [POOL|KIND/NAME]",
        help="The history; only pools whose name contains this text, or DRIVER/POOL, "
        "node/NAME, device/….",
    ),
]


def device_map(
    words: MapWords = None,
    history: Annotated[str, typer.Option(help=moments.HISTORY_OR_DEFAULT)] = "",
    driver: Annotated[str, typer.Option(help="Only pools of this driver.")] = "",
    node: Annotated[str, typer.Option(help="Only pools of this node.")] = "",
    selector: LabelsOption = "",
    at: AtOption = "",
    devices: DevicesOption = False,
    data: DataOption = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Draw which claims hold which devices: pools by node, a sign for each device, used counters.

    # is held, . free, x impossible because a counter has too little left, ! tainted, ? in a pool
    that cannot be used, - held although the slices in use do not have it. Partitions of one
    physical device stand together.
    """
    import msgspec

    from app.analysis.map_answers import DeviceMap

    history, shown_words = _after_history(words or (), history)
    history, at = moments.split(history, at)
    pool, driver, node = _shown_part(shown_words, driver, node)
    source = AnswerSource(data)

    def ask(place: str = history, labels: str = selector, **wanted: str) -> bytes:
        wanted["labels"] = labels
        return source.ask("map", history=place, at=at, parameters=wanted, is_quiet=True)

    def of_history(place: str) -> bytes | None:
        """The map of the history that the only word names, as in other commands; else None."""
        if history or len(shown_words) != 1 or "/" in place:
            return None
        return ask(place, driver=driver, node=node)

    try:
        answer = ask(driver=driver, pool=pool, node=node)
    except (InputError, NotFound) as problem:
        # For example, the default history does not exist, or has no such driver.
        try:
            whole = of_history(pool) if pool else None
        except InputError as other:
            raise (other if isinstance(problem, InputError) else problem) from None
        if whole is None:
            raise
        answer, pool = whole, ""
    shown = msgspec.json.decode(answer, type=DeviceMap)
    is_filtered = driver or node or selector
    if pool and not shown.pools and not (is_filtered and _pools_of(ask(labels="", pool=pool))):
        whole_map, cure = None, ""
        try:
            whole_map = of_history(pool)
        except InputError as problem:
            cure = problem.cure
        if whole_map is None:
            _refuse_pool(pool, shown.revision, _pools_of(ask(labels="")), cure)
        answer, pool, shown = whole_map, "", msgspec.json.decode(whole_map, type=DeviceMap)
    answering.note_moment(at, answer)
    absent = f"no {'such ' if pool or driver or node else ''}pool"
    if selector:
        absent = f"{absent} of a node with the labels {selector}"
    with reading.rendering():
        if output is Output.JSON:
            console.say_json(msgspec.json.decode(answer))
            return
        for line in map_lines(shown, absent, with_devices=devices or console.is_wide()):
            console.say(line)


_NODES = ("no", "node", "nodes")
_POOLS = ("pool", "pools")
_DEVICES = ("dev", "device", "devices")


def _after_history(words: Sequence[str], history: str) -> tuple[str, list[str]]:
    """The history and the words of the part in `[HISTORY] [POOL|KIND/NAME]`.

    A single word is a pool rather than a history, unless it has a moment.
    """
    first, *rest = words or [""]
    is_kind = first.lower() in (*_NODES, *_POOLS, *_DEVICES)
    is_first = bool(rest) and not is_kind and "/" not in first
    if is_first or (len(words) == 1 and "@" in first and "/" not in first):
        return moments.placed(first, history)[0] if "@" not in first else first, rest
    return history, [*words]


def _shown_part(words: Sequence[str], driver: str, node: str) -> tuple[str, str, str]:
    """The selected pool, driver and node. Raises InputError for a kind that maps do not show."""
    if not words or (len(words) == 1 and "/" not in words[0]):
        return "".join(words), driver, node
    kind, _, name = objects.joined(words).partition("/")
    if kind.lower() in _NODES:
        return "", driver, name
    if kind.lower() in (*_POOLS, *_DEVICES):
        first, slash, rest = name.partition("/")
        pool = rest.rpartition("/")[0] if kind.lower() in _DEVICES else rest
        return pool if slash and pool else name, first if slash and pool else driver, node
    if "." in kind and len(words) == 1:
        # The name of a pool with its driver, as in maps and devices.
        return name, kind, node
    raise InputError(f"the map shows no {kind}", cure=f"redra why {kind}/{name} shows what it has")


def _pools_of(answer: bytes) -> set[str]:
    """The names of the pools in a map."""
    import msgspec

    from app.analysis.map_answers import DeviceMap

    return {one.pool for one in msgspec.json.decode(answer, type=DeviceMap).pools}


def _refuse_pool(pool: str, revision: int, known: set[str], history_cure: str) -> NoReturn:
    """Raise InputError for an unknown pool, with similar names of pools or histories."""
    from app.analysis import scope

    nearest = scope.nearest(pool, sorted(known))
    if not nearest and history_cure.startswith("do you mean"):
        raise InputError(f"there is no pool and no history {pool!r}", cure=history_cure)
    raise InputError(
        f"there is no pool {pool!r} at revision {revision}",
        cure=nearest or "leave it out to see all",
    )


def findings_lines(
    answer: "Findings", defects: Sequence[Mapping[str, Any]], history: str
) -> list[str]:
    """The lines of findings and known defects: severity and sentence, count, revisions, objects."""
    from app.analysis.findings.report import Severity

    lines: list[str] = [answer.note] if answer.note else []
    if not answer.items and not defects:
        nothing = f"nothing is wrong up to revision {answer.revision}"
        return lines or [nothing, *([answer.unseen] if answer.unseen else ())]
    for severity in Severity:
        for item in answer.items:
            if item.severity is severity:
                lines += _finding_lines(item, history)
        for one in defects:
            if one["severity"] == severity.value:
                lines += _defect_lines(one, history)
    if answer.omitted:
        lines.append(f"{counts.of(answer.omitted, 'finding')} of lower severity left out")
    if defects:
        lines.append(f"repairs of known defects: redra scan {history}")
    return lines


def _finding_lines(item: "Finding", history: str) -> list[str]:
    """The lines of a finding; the last is the command that explains its newest object."""
    lines = [f"{item.severity.value}: {item.text}", *(f"  {cause}" for cause in item.causes)]
    facts = [f"{item.count} in all"] if item.count else []
    if item.count and item.present != item.count:
        facts.append(f"{item.present} now" if item.present else "ended")
    if item.first:
        until = f" to {item.last}" if item.last != item.first else ""
        facts.append(f"revision {item.first}{until}")
    if facts:
        lines.append(f"  {', '.join(facts)}")
    if not item.objects:
        return lines
    more = item.count - len(item.objects)
    shown = ", ".join(_subject_text(one) for one in item.objects)
    lines.append(f"  {shown} and {more} more" if more > 0 else f"  {shown}")
    newest = item.objects[0]
    place = f"{newest.name} -n {newest.namespace}" if newest.namespace else newest.name
    ask = f"{newest.resource}/{place} --history {history} --at {newest.revision}"
    return [*lines, f"  redra why {ask}"]


def _subject_text(one: "Subject") -> str:
    name = f"{one.namespace}/{one.name}" if one.namespace else one.name
    return f"{one.resource}/{name} ({one.revision})"


def _defect_lines(one: Mapping[str, Any], history: str) -> list[str]:
    """The lines of a sighted known defect: title, objects, and the commands for details."""
    title, objects = one.get("title", one["incident"]), list(map(_place, one["objects"]))
    shown = ", ".join(f"{resource}/{name}" for resource, name in objects[:_OBJECTS_MAX])
    more = len(objects) - _OBJECTS_MAX
    asks = []
    if objects:
        resource, place = objects[0]
        namespace, slash, name = place.rpartition("/")
        what = f"{resource}/{name} -n {namespace}" if slash else f"{resource}/{name}"
        asks = [f"  redra why {what} --history {history} --at {one['revision']}"]
    return [
        f"{one['severity']}: known defect ({one['certainty']}): {title}",
        f"  {counts.of(one['times'], 'time')}, first at revision {one['revision']}: {shown}"
        + (f" and {more} more" if more > 0 else ""),
        *asks,
        f"  redra incidents show {one['incident']}",
    ]


def _place(named: str) -> tuple[str, str]:
    """Resource and name of an object; reports name it `RESOURCE.GROUP/NAMESPACE/NAME`."""
    resource, _, place = named.partition("/")
    return resource.partition(".")[0], place


def map_lines(answer: "DeviceMap", absent: str, *, with_devices: bool) -> list[str]:
    """The lines of pools, grouped by node; `absent` says what is not published without pools."""
    from app.analysis.recordings import uncertainty

    unsure = uncertainty.lines(answer.doubts)
    if not answer.pools:
        word = "was recorded by" if unsure else "is published at"
        return [f"{absent} {word} revision {answer.revision}", *unsure]
    lines: list[str] = []
    node: str | None = None
    for pool in answer.pools:
        if pool.node != node:
            node = pool.node
            lines.append(f"node {node}" if node else "pools that belong to no single node")
        lines += _pool_lines(pool, with_devices=with_devices)
    if answer.omitted:
        lines.append(f"{counts.of(answer.omitted, 'more pool')}: name a pool, --driver or --node")
    return lines + unsure


def _pool_lines(pool: "MappedPool", *, with_devices: bool) -> list[str]:
    counts: dict[str, int] = {}
    rows: dict[tuple[str, ...], str] = {}
    for device in pool.devices:
        counts[device.state] = counts.get(device.state, 0) + 1
        rows[device.sets] = rows.get(device.sets, "") + _SIGNS[device.state]
    named = (f"{count} {state} ({_SIGNS[state]})" for state, count in counts.items())
    summary = ", ".join(named) or "no devices"
    state = "" if pool.state == "usable" else f" {pool.state}"
    if pool.state == "usable" and pool.problem:
        state = f" generation {pool.generation}"
    state += f": {pool.problem}" if pool.problem else ""
    lines = [f"  {pool.driver}/{pool.pool}{state}  {summary}"]
    for sets, signs in rows.items():
        name = f"{', '.join(sets)}: " if sets and len(rows) > 1 else ""
        for first in range(0, len(signs), SHOWN_MAX):
            lines.append(f"    {name}{signs[first : first + SHOWN_MAX]}")
            name = " " * len(name)
    for counter in pool.counters:
        if counter.share:
            share = f"{counter.used} of {counter.total} used"
            lines.append(f"    counter {counter.set}/{counter.counter}: {share}")
    if with_devices:
        for device in pool.devices:
            notes = [*(f"held by {one}" for one in device.holders)]
            notes += [f"taint {one}" for one in device.taints]
            notes += [f"too little left of {one}" for one in device.lacks]
            lines.append(f"    {device.name}: {'; '.join((device.state, *notes))}")
    return lines
