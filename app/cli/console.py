"""How commands write: text or JSON to standard output, the rest to standard error."""

import io
import os
import re
import sys
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextvars import ContextVar
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, TextIO, TypeVar

import msgspec
import typer

from app.domain.errors import InputError, RedraError


class Output(StrEnum):
    """The forms of every answer, as kubectl has them.

    `yaml` and `name` are made of what `json` would be, `wide` is text: commands know the first two.
    """

    TEXT = "text"
    JSON = "json"
    YAML = "yaml"
    NAME = "name"
    WIDE = "wide"


_form: ContextVar[Output] = ContextVar("form", default=Output.TEXT)


def _chosen(form: Output) -> Output:
    """What the command has to give for the form that is wanted."""
    _form.set(form)
    return Output.JSON if form in (Output.YAML, Output.NAME) else Output.TEXT if is_wide() else form


def forget_form() -> None:
    """Begin a command for which no form is chosen yet."""
    _form.set(Output.TEXT)


def is_wide() -> bool:
    """Whether columns are wanted that are left out otherwise."""
    return _form.get() is Output.WIDE


ForceOption = Annotated[bool, typer.Option("--force", help="Write over what is there already.")]

OutputOption = Annotated[
    Output, typer.Option("--output", "-o", help="Form of the answer.", callback=_chosen)
]
LongOutputOption = Annotated[
    Output, typer.Option("--output", help="Form of the answer.", callback=_chosen)
]
"""Of commands whose -o is the file to write."""


def file_option(*names: str, help: str) -> Any:
    """The option -o of a command that writes a file, where others have the form of their answer."""
    return typer.Option(*names, help=help, callback=_no_form)


def _no_form(file: Path | None) -> Path | None:
    """Raises InputError for a form in the place of a file's name."""
    if str(file) in {*Output}:
        raise InputError(
            f"-o is the file to write here, and {str(file)!r} is a form of answers",
            cure="name the file otherwise; the form is --output, where the command has one",
        )
    return file


Answer = TypeVar("Answer")

_UNICODE = ("utf-8", "utf8")

_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
"""What a terminal obeys instead of showing it, but for line ends and tabs."""


def prepare() -> None:
    """Make standard output and standard error take any text.

    For programs it is UTF-8 whatever the locale says; a terminal that lacks a sign shows another.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.encoding.lower() not in _UNICODE:
            if stream.isatty():
                stream.reconfigure(errors="replace")
            else:
                stream.reconfigure(encoding="utf-8")


def check_free(path: Path, *, force: bool) -> None:
    """Raises InputError for an output that would take the place of another file or folder."""
    if path.is_dir():
        raise InputError("it is a folder", place=str(path), cure="name a new file")
    if path.is_file() and not force:
        raise InputError(
            "it is there already", place=str(path), cure="name another, or overwrite it: --force"
        )


def visible(text: str) -> str:
    """The text with its control characters spelt out, as in `\\x1b[2J`; line ends and tabs stay.

    What histories hold was written by anyone: nothing of it is a command to the terminal.
    """
    return _CONTROLS.sub(lambda match: f"\\x{ord(match[0]):02x}", text)


def say(text: str = "", style: str = "") -> None:
    """One line of the answer, its control characters spelt out; `style` is one of terminals."""
    line = visible(text)
    _put((styled(line, style) if style else line) + "\n")


class Unwritten(RedraError):
    """Standard output takes no more, as on a full disk."""

    def __init__(self, problem: OSError) -> None:
        super().__init__(f"the answer cannot be written: {problem.strerror}")


def _put(text: str) -> None:
    """Write a part of the answer. Raises BrokenPipeError, Unwritten."""
    try:
        sys.stdout.write(text)
    except BrokenPipeError:
        raise
    except OSError as problem:
        silence()
        raise Unwritten(problem) from problem


def flush() -> None:
    """Let those see what was said who read it while the command goes on."""
    sys.stdout.flush()


def say_json(value: Any) -> None:
    """The answer as JSON, indented, keys sorted; or as YAML, or the names in it."""
    text = msgspec.json.encode(value, order="sorted")
    if _say_otherwise(text):
        return
    say_encoded(msgspec.json.format(text, indent=2))


def say_yaml(value: Any) -> None:
    """A value as YAML, for kubectl."""
    import yaml

    say(yaml.safe_dump(value, sort_keys=False).rstrip())


def say_json_line(value: Any) -> None:
    """One JSON document on one line; or one of YAML, or the names in it."""
    text = msgspec.json.encode(value)
    if not _say_otherwise(text, mark="---"):
        say_encoded(text)


def _say_otherwise(text: bytes, mark: str = "") -> bool:
    """Say a document in another form, if one is chosen; YAML with a mark before it."""
    if _form.get() is Output.YAML:
        if mark:
            say(mark)
        say_yaml(msgspec.json.decode(text))
    elif _form.get() is Output.NAME:
        from app.cli.arguments import naming

        for name in naming.names_in(msgspec.json.decode(text)):
            say(name)
    else:
        return False
    return True


def say_encoded(document: bytes) -> None:
    """A JSON document as it is; controls that JSON allows in strings are escaped as JSON has it."""
    text = _CONTROLS.sub(lambda match: f"\\u{ord(match[0]):04x}", document.decode())
    _put(text + "\n")


def note(text: str) -> None:
    """Something about the work rather than its answer."""
    _tell(visible(text))


def complain(text: str) -> None:
    """Why the command ends without its answer: one sentence."""
    _tell(f"redra: {visible(text)}")


def _tell(line: str) -> None:
    """The work goes on, and its exit code stays, when nobody reads what is said about it."""
    try:
        sys.stderr.write(line + "\n")
        sys.stderr.flush()
    except BrokenPipeError:
        silence(sys.stderr)


def table(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Columns as kubectl prints them: upper-case headings, three blanks between."""
    lines = [[str(heading).upper() for heading in headings]]
    lines += [["" if cell is None else visible(str(cell)) for cell in row] for row in rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(headings))]
    for line in lines:
        say(columns(line, widths))


def columns(line: Sequence[str], widths: Sequence[int]) -> str:
    """One line of a table."""
    padded = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
    return "   ".join(padded).rstrip()


HEAD = "1"
"""The head of an answer, in bold; as terminals number it."""


def styled(text: str, style: str) -> str:
    """The text in a style where standard output is a terminal and NO_COLOR is not set."""
    if not sys.stdout.isatty():
        return text
    from app.settings import colours_wanted

    if not colours_wanted():
        return text
    return f"\x1b[{style}m{text}\x1b[0m"


def width() -> int:
    """Columns of the terminal; 100 where standard output is none."""
    import shutil

    return shutil.get_terminal_size((100, 24)).columns if sys.stdout.isatty() else 100


def is_unread() -> bool:
    """Whether standard output is a pipe whose reader is gone."""
    import select

    poll = select.poll()
    poll.register(sys.stdout.fileno(), select.POLLOUT)
    return any(state & (select.POLLERR | select.POLLHUP) for _, state in poll.poll(0))


def silence(stream: TextIO | None = None) -> None:
    """Stop writing to a stream that nobody reads any more; standard output when none is given."""
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, (stream or sys.stdout).fileno())
    os.close(devnull)


def run(work: Callable[[], Awaitable[Answer]]) -> Answer:
    """Run async work to its end on the fast event loop; of a group with one problem, raise that."""
    import anyio

    answers: list[Answer] = []

    async def answer() -> None:
        # When a run ends, asyncio spells out the task with its result, which may be a whole report.
        answers.append(await work())

    try:
        anyio.run(answer, backend_options={"use_uvloop": sys.platform != "win32"})
        return answers[0]
    except BaseExceptionGroup as group:
        problem: BaseException = group
        while isinstance(problem, BaseExceptionGroup) and len(problem.exceptions) == 1:
            problem = problem.exceptions[0]
        if problem is group:
            raise
        raise problem from problem.__cause__


class Progress:
    """A bar on standard error for long work; silent when that is not a terminal."""

    def __init__(self, label: str, total: int | None = None) -> None:
        self._label = label
        self._total = total
        self._done = 0
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> "Progress":
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import Progress as Bar

            self._bar = Bar(console=Console(stderr=True), transient=True)
            self._bar.start()
            self._task = self._bar.add_task(self._label, total=self._total)
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def to(self, done: int, total: int | None = None) -> None:
        """So much is done."""
        self._done = done
        if self._bar is not None:
            self._bar.update(self._task, completed=done, total=total or self._total)

    def tell(self, _doing: str, revision: int, until: int) -> None:
        """So many revisions are done, as replays say it."""
        self.to(revision, until)
