"""`redra allocate`, `redra cel`: the allocator and its selectors, without a database."""

import re
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from app.cli import console, exit_codes
from app.cli.arguments import moments
from app.cli.console import Output, ProgressBar
from app.cli.exit_codes import ExitCode
from app.cli.serving import DataOption
from app.domain.errors import InputError
from app.domain.values import counts

if TYPE_CHECKING:
    from app.domain.allocation.scenarios import OnAnswer, ScenarioSettings

_FORMS = (Output.TEXT, Output.JSON)

LINE_BYTES_MAX = 64 * 1024 * 1024
_TABLE_HEAD_BYTES = 1_024
"""The part of a line in which a table on one line begins its cases."""


class VariantName(StrEnum):
    """The upstream allocator that is imitated; for `auto`, the feature gates choose it."""

    AUTO = "auto"
    STABLE = "stable"
    INCUBATING = "incubating"
    EXPERIMENTAL = "experimental"


def register(root: typer.Typer) -> None:
    """Add the commands of this module."""
    root.command("allocate")(allocate)
    root.command("cel")(cel)


def allocate(
    scenarios: Annotated[
        Path,
        typer.Argument(
            help="File of JSON lines, each with a name and an input, or a table of cases as "
            "`redra export --as go-allocator-case` writes it; - reads stdin."
        ),
    ],
    results: Annotated[
        Path | None,
        console.file_option("--output-file", "-o", help="The file to write; default: stdout."),
    ] = None,
    allocator: Annotated[
        VariantName, typer.Option(help="Variant of upstream's allocator.")
    ] = VariantName.EXPERIMENTAL,
    quirk: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=on|off",
            help="Switch a defect of upstream (q1 to q20; `redra profiles q6` tells what q6 is); "
            "repeatable.",
        ),
    ] = None,
    explain: Annotated[
        bool,
        typer.Option(help="Add each node's reasons, and the defects of upstream that decided."),
    ] = False,
    check: Annotated[
        bool, typer.Option(help="Check every allocation with the independent checker.")
    ] = False,
) -> None:
    """Run allocation scenarios in the form of the conformance data: one line in, one line out.

    Each case of a table gives a line, which says in `asExpected` whether the answer is that of the
    table. The exit code is 1 if one is not.

    Each answer also has `elapsedMs` (the time of the allocation alone) and `steps`. With --check,
    the exit code is 1 if an allocation breaks a rule that no known quirk explains.
    """
    from app.domain.allocation import Allocation, checking
    from app.domain.allocation import scenarios as running
    from app.domain.allocation.reasons import explanation

    broken = unexpected = 0

    def look(case: checking.Case, answer: Any, shown: dict[str, Any]) -> None:
        nonlocal broken
        if explain:
            shown["reasons"] = explanation.explain(answer).tree()
        if check and isinstance(answer, Allocation):
            findings = checking.check(case, shown["allocations"])
            shown["findings"] = checking.findings_tree(findings)
            broken += sum(not finding.quirk for finding in findings)

    settings = _settings(allocator, quirk or [], look if explain or check else None)

    def answer(written: dict[str, Any]) -> dict[str, Any]:
        nonlocal unexpected
        is_case = "input" not in written and "node" in written
        scenario = running.of_table_case(written, "case") if is_case else written
        shown = running.run(scenario, settings)
        unexpected += is_case and not _as_expected(shown, written.get("expected"))
        if explain and (marks := running.marks_that_matter(scenario, settings)):
            shown["upstreamQuirks"] = marks
        return shown

    _each_line(scenarios, results, answer)
    _conclude(broken, unexpected)


def _settings(
    allocator: VariantName, quirks: list[str], on_answer: "OnAnswer | None"
) -> "ScenarioSettings":
    from app.domain.allocation import AllocatorVariant, Quirks
    from app.domain.allocation import scenarios as running
    from app.domain.devices.cel_selectors import CelCompiler

    return running.ScenarioSettings(
        compiler=CelCompiler(detailed_errors=True),
        quirks=_quirks(Quirks, quirks),
        variant=None if allocator is VariantName.AUTO else AllocatorVariant(allocator.value),
        timer=time.perf_counter,
        on_answer=on_answer,
    )


def _conclude(broken: int, unexpected: int) -> None:
    """Say how many answers are wrong, and set the exit code."""
    if broken:
        console.complain(f"{counts.of(broken, 'finding')} that no known quirk explains")
    if unexpected:
        console.complain(f"{counts.of(unexpected, 'answer')} other than the table expects")
    if broken or unexpected:
        exit_codes.conclude(ExitCode.NO)


def _as_expected(shown: dict[str, Any], expected: Any) -> bool:
    """Add to the answer of a case whether it is that of the table; true where the table has none.

    The allocations are compared but for share IDs, or that the allocator fails.
    """
    if not isinstance(expected, dict):
        return True
    (result,) = shown["results"]
    is_alike = _unshared(expected.get("allocations")) == _unshared(result["allocations"])
    shown["asExpected"] = is_alike and bool(expected.get("error")) == ("error" in result)
    return bool(shown["asExpected"])


def _unshared(allocations: Any) -> bytes:
    """Allocations as JSON with one share ID for all, which are random."""
    text = msgspec.json.encode(allocations or None, order="sorted")
    return re.sub(rb'"shareID":"[^"]*"', b'"shareID":""', text)


def cel(
    expression: Annotated[
        str, typer.Argument(metavar="EXPR|CASES.jsonl", help="An expression, or a file of cases.")
    ],
    slices: Annotated[
        Path | None, typer.Option(help="Manifests with the ResourceSlices to evaluate on.")
    ] = None,
    history: Annotated[str, typer.Option(help="A history with the devices to evaluate on.")] = "",
    at: Annotated[str, moments.option(help="Moment of the history.")] = "",
    second_opinion: Annotated[
        bool,
        typer.Option(
            "--second-opinion", help="Also evaluate with cel-python, and show where it disagrees."
        ),
    ] = False,
    data: DataOption = None,
    output: Annotated[
        str,
        typer.Option(
            "--output", "-o", help="text or json; for a file of cases, the file to write."
        ),
    ] = "text",
) -> None:
    """Evaluate a device selector: the result, the cost and any error for each device.

    Given a file of cases (JSON lines as in the conformance data), the command answers each case on
    one line. The exit code is 1 if the expression does not compile, and 3 if a second opinion
    disagrees.
    """
    from app.domain import cel as language

    judge = _SecondOpinions() if second_opinion else None
    if expression.endswith(".jsonl"):
        if not Path(expression).exists():
            raise InputError("there is no such file", place=expression)
        target = None if output in _FORMS else Path(output)
        _each_line(Path(expression), target, lambda case: _cel_case(case, judge))
        _end_disagreeing(judge)
        return
    if output not in _FORMS:
        raise InputError(
            f"{output!r} is not an output format", place="--output", cure="use text or json"
        )
    devices = _devices(slices, history, at, data)
    try:
        program = language.compile_expression(expression, environment=language.STORED)
    except language.CompileError as problem:
        console.complain(str(problem))
        exit_codes.conclude(ExitCode.NO)
        return
    rows = [_trace_row(program, name, device, judge) for name, device in devices]
    _end_disagreeing(judge)
    if output == Output.JSON:
        console.say_json({"maxCost": program.max_cost, "devices": rows})
    else:
        console.say(f"estimated cost at most {program.max_cost}")
        columns = ["device", "match", "cost", "error", "failed at"]
        keys = ["device", "match", "cost", "error", "failedAt"]
        if judge is not None:
            columns.append("second opinion")
            keys.append("secondOpinion")
        console.table(columns, [tuple(row.get(key) for key in keys) for row in rows])


class _SecondOpinions:
    """Requests second opinions, and counts the disagreements."""

    def __init__(self) -> None:
        from app.bootstrap import opinions

        self._second = opinions.second_opinion()
        self.disagreed = 0

    def row(self, expression: str, device: Any, outcome: Any) -> dict[str, str]:
        """The second opinion about redra's outcome, as part of a row."""
        from app.service.replays import second_opinion

        opinion = second_opinion.ask_about(self._second, expression, device)
        ours = second_opinion.answer_of_outcome(outcome)
        if opinion.answer is None:
            return {"secondOpinion": f"none: {opinion.reason}"}
        if opinion.answer is ours:
            return {"secondOpinion": f"agrees: {opinion.answer.value}"}
        self.disagreed += 1
        return {"secondOpinion": f"DISAGREES: {opinion.answer.value}"}


def _end_disagreeing(judge: _SecondOpinions | None) -> None:
    """Report disagreements of the second opinion and set the exit code."""
    if judge is not None and judge.disagreed:
        console.complain(f"{judge.disagreed} answers with which cel-python disagrees")
        exit_codes.conclude(ExitCode.IN_PART)


def _cel_case(case: dict[str, Any], judge: _SecondOpinions | None) -> dict[str, Any]:
    from app.domain import cel as language

    answer: dict[str, Any] = {"name": case.get("name", "")}
    expression = case.get("expression")
    if not isinstance(expression, str):
        raise InputError("expression is missing or not text")
    try:
        program = language.compile_expression(expression, environment=language.STORED)
    except language.CompileError as problem:
        return answer | {"compileError": str(problem)}
    answer["maxCost"] = program.max_cost
    answers: list[dict[str, Any]] = []
    for device in _case_devices(case):
        outcome = program.evaluate(device)
        row: dict[str, Any] = {"cost": outcome.cost}
        if outcome.error is not None:
            row["error"] = outcome.error
        else:
            row["match"] = outcome.match
        if judge is not None:
            row |= judge.row(expression, device, outcome)
        answers.append(row)
    return answer | {"devices": answers}


def _case_devices(case: dict[str, Any]) -> Iterator[Any]:
    """The devices of a case. Raises InputError naming the first part of a wrong kind."""
    from app.domain import cel as language

    driver = case.get("driver", "")
    if not isinstance(driver, str):
        raise InputError("must be text", place="driver")
    for index, device in enumerate(_of_kind(case.get("devices") or [], list, "devices")):
        place = f"devices[{index}]"
        _of_kind(device, dict, place)
        parts = {
            field: _of_kind(device.get(field) or {}, dict, f"{place}.{field}")
            for field in ("attributes", "capacity")
        }
        for field, values in parts.items():
            for name, value in values.items():
                _of_kind(value, dict, f"{place}.{field}[{name}]")
        yield language.DeviceInput(
            driver=driver,
            attributes=parts["attributes"],
            capacity=parts["capacity"],
            allow_multiple_allocations=device.get("allowMultipleAllocations") is True,
        )


def _of_kind(value: Any, kind: type, place: str) -> Any:
    if not isinstance(value, kind):
        raise InputError("must be a list" if kind is list else "must be an object", place=place)
    return value


def _trace_row(
    program: Any, name: str, device: Any, judge: _SecondOpinions | None
) -> dict[str, Any]:
    from app.domain import cel as language

    traced = language.trace(program, device)
    outcome = traced.outcome
    row: dict[str, Any] = {"device": name, "match": outcome.match, "cost": outcome.cost}
    if outcome.error is not None:
        row["error"] = outcome.error
    if traced.origin is not None:
        row["failedAt"] = f"{traced.origin.line}:{traced.origin.column} {traced.origin.text}"
    if judge is not None:
        row |= judge.row(program.expression, device, outcome)
    row["steps"] = [
        {"text": step.text, "value": step.value, "error": step.error} for step in traced.steps
    ]
    return row


def _devices(
    slices: Path | None, history: str, at: str, data: Path | None
) -> list[tuple[str, Any]]:
    from app.domain.devices.inventory import Inventory

    if slices is None and not history:
        raise InputError("no devices to evaluate on", cure="give --slices FILE or --history NAME")
    if slices is not None:
        from app.bootstrap.manifests import read_documents

        documents = read_documents(slices, as_kubectl=True)
        trees = [item for _, document in documents for item in _objects(document)]
        published = [tree for tree in trees if tree.get("kind") == "ResourceSlice"]
        if not published:
            raise InputError("it holds no ResourceSlice", place=str(slices))
        inventory = Inventory.of_slices(published)
    else:
        from app.bootstrap import histories, process_settings, stores
        from app.bootstrap.answers import relative
        from app.cli.connecting import answering

        settings = process_settings.settings(data=data)
        history, at = moments.split(history, at)

        async def read() -> Inventory:
            async with stores.open_store(settings) as store:
                pinned = await relative.resolved(store, history, at)
                answering.note_meanings(pinned)
                (moment,) = pinned.moments
                return await histories.inventory_at(store, settings, history, moment)

        inventory = console.run(read)
    return [
        ("/".join(device.id), device.cel_input)
        for item in inventory.slices()
        for device in item.devices
    ]


def _objects(document: Any) -> list[dict[str, Any]]:
    if not isinstance(document, dict):
        return []
    items = document.get("items")
    return (
        [item for item in items if isinstance(item, dict)]
        if isinstance(items, list)
        else [document]
    )


def _quirks(kind: Any, switches: list[str]) -> Any:
    from app.domain.allocation.quirks import NOT_SWITCHES, numbers_of

    off: set[str] = set()
    for switch in switches:
        name, _, value = switch.lower().partition("=")
        if value not in ("on", "off"):
            raise InputError(
                f"{switch!r} is not a switch", place="--quirk", cure="write NAME=off or NAME=on"
            )
        if reason := NOT_SWITCHES.get(name):
            raise InputError(f"quirk {name} has no switch: {reason}", place="--quirk")
        try:
            numbers = set(numbers_of(name))
        except KeyError as problem:
            raise InputError(
                f"there is no quirk {name!r}",
                place="--quirk",
                cure="use a number such as q3 or a mark such as counter-leak",
            ) from problem
        # The last switch takes precedence.
        off = off | numbers if value == "off" else off - numbers
    return kind.named(*sorted(off))


def _each_line(
    source: Path, target: Path | None, answer: Callable[[dict[str, Any]], dict[str, Any]]
) -> None:
    """Answer each JSON line.

    Raises InputError with line, column and cause for a bad line, and for a file without any.
    """
    answered: dict[str, Any] | None = None
    with _reading(source) as lines, _writing(target) as out, ProgressBar(source.name) as progress:
        for number, line in enumerate(_table_lines(lines), 1):
            if not line.strip():
                continue
            place = f"{source}:{number}"
            if len(line) > LINE_BYTES_MAX:
                raise InputError(f"the line has more than {LINE_BYTES_MAX} bytes", place=place)
            try:
                scenario = msgspec.json.decode(line)
            except msgspec.DecodeError as problem:
                raise InputError(_json_problem(line, problem), place=place) from problem
            except RecursionError as problem:
                raise InputError("objects are nested too deeply", place=place) from problem
            if not isinstance(scenario, dict):
                raise InputError("a line must hold one JSON object", place=place)
            try:
                answered = answer(scenario)
            except InputError as problem:
                where = f"{place}: {problem.place}" if problem.place else place
                raise InputError(problem.problem, place=where, cure=problem.cure) from problem
            out.write(msgspec.json.encode(answered) + b"\n")
            progress.to(number)
        if answered is None:
            # A pipeline whose first part fails must not pass.
            name = "standard input" if str(source) == "-" else str(source)
            raise InputError("it holds no case", place=name)


def _table_lines(lines: IO[bytes]) -> Iterator[bytes]:
    """The lines; of a table of cases, each case as one."""
    first = next(lines, b"")
    if first.rstrip() == b"{" or b'"cases":' in first[:_TABLE_HEAD_BYTES]:
        whole = first + lines.read(LINE_BYTES_MAX) + lines.readline()
        try:
            table = msgspec.json.decode(whole)
        except (msgspec.DecodeError, RecursionError):
            table = None
        if isinstance(table, dict) and isinstance(table.get("cases"), list):
            yield from (msgspec.json.encode(case) for case in table["cases"])
            return
        yield from whole.splitlines(keepends=True)
    else:
        yield first
    yield from lines


def _json_problem(line: bytes, problem: msgspec.DecodeError) -> str:
    text = str(problem)
    _, _, position = text.rpartition("(byte ")
    if position[:-1].isdigit():
        return f"column {len(line[: int(position[:-1])].decode(errors='replace')) + 1}: {text}"
    if "truncated" in text:
        end = len(line.rstrip().decode(errors="replace")) + 1
        return f"column {end}: the JSON object ends too early"
    return text


@contextmanager
def _reading(source: Path) -> Iterator[IO[bytes]]:
    if str(source) == "-":
        yield sys.stdin.buffer
        return
    try:
        opened = source.open("rb")
    except OSError as problem:
        raise InputError(str(problem.strerror), place=str(source)) from problem
    with opened:
        yield opened


@contextmanager
def _writing(target: Path | None) -> Iterator[IO[bytes]]:
    if target is None or str(target) == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    from app.adapters import whole_files

    # The source may be the same file, and a file with half of the answers looks like a whole one.
    try:
        with whole_files.replacing(target) as partial, partial.open("wb") as opened:
            yield opened
    except OSError as problem:
        raise InputError(str(problem.strerror), place=str(target)) from problem
