"""The output of commands: answers to standard output, messages to standard error."""

import _thread
import gc
import io
import os
import signal
import sys
import threading
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from enum import StrEnum
from pathlib import Path
from types import FrameType
from typing import Annotated, Any, TextIO, TypeVar

import msgspec
import typer

from app.domain.errors import InputError, RedraError
from app.domain.values.texts.visible_text import on_one_line, visible, visible_json


class Output(StrEnum):
    """The output formats of every answer, as in kubectl.

    `yaml` and `name` are derived from `json`, and `wide` from `text`, so commands handle only
    `text` and `json`.
    """

    TEXT = "text"
    JSON = "json"
    YAML = "yaml"
    NAME = "name"
    WIDE = "wide"


STEP_SECONDS = 0.5
"""The time that an interrupt leaves to a step of the work which cannot be cancelled."""

_form: ContextVar[Output] = ContextVar("form", default=Output.TEXT)


def _chosen(form: Output) -> Output:
    """The format that the command produces for the requested one."""
    _form.set(form)
    return Output.JSON if form in (Output.YAML, Output.NAME) else Output.TEXT if is_wide() else form


def _chosen_without_names(form: Output) -> Output:
    """As `_chosen`. Raises InputError for names, before the command changes or writes anything."""
    if form is Output.NAME:
        raise InputError("this answer has no names", place="-o name", cure="use json")
    return _chosen(form)


def forget_form() -> None:
    """Reset the format at the start of a command."""
    _form.set(Output.TEXT)


def is_wide() -> bool:
    """True if additional columns are requested."""
    return _form.get() is Output.WIDE


ForceOption = Annotated[bool, typer.Option("--force", help="Overwrite an existing file or folder.")]

OutputOption = Annotated[
    Output, typer.Option("--output", "-o", help="Output format.", callback=_chosen)
]
NamelessOutputOption = Annotated[
    Output, typer.Option("--output", "-o", help="Output format.", callback=_chosen_without_names)
]
"""The format option of commands that change something, and whose answer names no object."""

LongOutputOption = Annotated[
    Output, typer.Option("--output", help="Output format.", callback=_chosen_without_names)
]
"""The same for commands whose -o is the file to write."""


def file_option(*names: str, help: str) -> Any:
    """The option -o of a command that writes a file; in other commands -o is the format."""
    return typer.Option(*names, help=help, callback=_no_form)


def _no_form(file: Path | None) -> Path | None:
    """The file. Raises InputError for the name of a format."""
    if str(file) in {*Output}:
        raise InputError(
            f"-o is the file to write here, and {str(file)!r} is an output format",
            cure="use another file name; the output format is --output, if the command has one",
        )
    return file


Answer = TypeVar("Answer")

_UNICODE = ("utf-8", "utf8")


LOADED_MAX = 300_000
"""New containers between two scans of the garbage collector while a command loads its modules.

The largest command makes some 200,000, and none of them is garbage.
"""

_THRESHOLDS = gc.get_threshold()


def begin_loading() -> None:
    """Do not look for garbage while modules are loaded: looking takes a seventh of that time."""
    gc.set_threshold(LOADED_MAX)


def end_loading() -> None:
    """Look for garbage as before, but not among what has been loaded.

    Nothing changes unless `begin_loading` was called and the command has set no thresholds itself.
    """
    if gc.get_threshold()[0] == LOADED_MAX:
        gc.freeze()
        gc.set_threshold(*_THRESHOLDS)


def prepare() -> None:
    """Let standard output and standard error accept any text.

    Output to programs is UTF-8 in every locale; a terminal shows a replacement for a character that
    its encoding lacks.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.encoding.lower() not in _UNICODE:
            if stream.isatty():
                stream.reconfigure(errors="replace")
            else:
                stream.reconfigure(encoding="utf-8")


def check_free(path: Path, *, force: bool) -> None:
    """Raise InputError for an output that would overwrite a file without `force`, or a folder."""
    if str(path) == "-":
        raise InputError("it is no file", place="-o -", cure="name a file, or /dev/stdout")
    if path.is_dir():
        raise InputError("it is a folder", place=str(path), cure="name a new file")
    if path.is_file() and not force:
        raise InputError(
            "it already exists", place=str(path), cure="name another, or overwrite it: --force"
        )


def say(text: str = "", style: str = "") -> None:
    """Print one line, with acting characters escaped; `style` is a terminal style.

    The content of histories is untrusted, and must not control the terminal.
    """
    line = visible(text)
    _put((styled(line, style) if style else line) + "\n")


class Unwritten(RedraError):
    """Standard output cannot be written, as on a full disk."""

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
    """Flush standard output, for readers of a command that continues."""
    sys.stdout.flush()


def say_json(value: Any, name: str = "") -> None:
    """Print the answer as indented JSON with sorted keys, or as YAML or names if requested.

    If `name` is given, it is the only name: that of what the command made.
    """
    if name and _form.get() is Output.NAME:
        say(name)
        return
    text = msgspec.json.encode(value, order="sorted")
    if _say_otherwise(text):
        return
    say_encoded(msgspec.json.format(text, indent=2))


def say_yaml(value: Any) -> None:
    """Print a value as YAML, for kubectl."""
    from app.domain.objects.schema import encode_yaml

    say(encode_yaml.encode_yaml(value).rstrip())


def say_yaml_documents(values: Sequence[Any]) -> None:
    """Print values as YAML documents, for kubectl."""
    for number, value in enumerate(values):
        if number:
            say("---")
        say_yaml(value)


def say_json_line(value: Any) -> None:
    """Print one JSON document on one line, or as YAML or names if requested."""
    text = msgspec.json.encode(value)
    if not _say_otherwise(text, mark="---"):
        say_encoded(text)


def _say_otherwise(text: bytes, mark: str = "") -> bool:
    """Print a document as YAML (after `mark`) or names; False if neither is requested."""
    if _form.get() is Output.YAML:
        if mark:
            say(mark)
        say_yaml(msgspec.json.decode(text))
    elif _form.get() is Output.NAME:
        for name in names_in(msgspec.json.decode(text)):
            say(name)
    else:
        return False
    return True


def say_encoded(document: bytes) -> None:
    """Print a JSON document as it is, with acting characters in strings as JSON escapes."""
    _put(visible_json(document.decode()) + "\n")


def note(text: str) -> None:
    """Print a note about the work to standard error."""
    _write_line(visible(text))


def complain(text: str) -> None:
    """Print the reason why the command ends without an answer, as one sentence."""
    _write_line(f"redra: {visible(text)}")


def _write_line(line: str) -> None:
    """Write to standard error. Work and exit code do not depend on whether anything takes it."""
    try:
        sys.stderr.write(line + "\n")
        sys.stderr.flush()
    except OSError:
        silence(sys.stderr)


def table(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a table as kubectl does: upper-case headings, three spaces between columns.

    Each row is one line: line ends and tabs are escaped, as kubectl does.
    """
    lines = [[on_one_line(str(heading).upper()) for heading in headings]]
    lines += [["" if cell is None else on_one_line(str(cell)) for cell in row] for row in rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(headings))]
    for line in lines:
        say(columns(line, widths))


def columns(line: Sequence[str], widths: Sequence[int]) -> str:
    """One line of a table."""
    padded = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
    return "   ".join(padded).rstrip()


HEAD = "1"
"""The style of the head of an answer: bold, as a terminal code."""


def styled(text: str, style: str) -> str:
    """The text in a style, if standard output is a terminal and NO_COLOR is not set."""
    if not sys.stdout.isatty():
        return text
    from app.settings import colours_wanted

    if not colours_wanted():
        return text
    return f"\x1b[{style}m{text}\x1b[0m"


def width() -> int:
    """The columns of the terminal, or COLUMNS; 100 if neither is known."""
    return known_width() or 100


def known_width() -> int:
    """The columns of the terminal, or COLUMNS; 0 if neither is known."""
    import shutil

    return shutil.get_terminal_size((0, 0)).columns


def is_unread() -> bool:
    """True if standard output is a pipe whose reader is gone."""
    import select

    poll = select.poll()
    poll.register(sys.stdout.fileno(), select.POLLOUT)
    return any(state & (select.POLLERR | select.POLLHUP) for _, state in poll.poll(0))


def silence(stream: TextIO | None = None) -> None:
    """Redirect a stream without a reader to /dev/null; by default standard output."""
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, (stream or sys.stdout).fileno())
    os.close(devnull)


def run(work: Callable[[], Awaitable[Answer]]) -> Answer:
    """Run async work on the fast event loop.

    A group with one exception is raised as that exception.
    """
    import anyio

    end_loading()
    answers: list[Answer] = []

    async def answer() -> None:
        with _interrupted_amid_steps():
            # When a run ends, asyncio formats the task with its result, which may be a report.
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


@contextmanager
def _interrupted_amid_steps() -> Iterator[None]:
    """Let Ctrl-C end a step that keeps the event loop for long, such as the reading of a log.

    An event loop cancels its work when the step is over. If that takes longer than STEP_SECONDS,
    the interrupt is raised in the step, and the work is not cancelled besides: what it has opened
    is closed as after any error.
    """
    import asyncio

    cancel = signal.getsignal(signal.SIGINT)
    if not callable(cancel) or threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()
    is_over = threading.Event()
    timers: list[threading.Timer] = []

    def end_step() -> None:
        if not is_over.is_set():
            is_over.set()
            cancel(signal.SIGINT, None)

    def repeat() -> None:
        if not is_over.is_set():
            _thread.interrupt_main()

    def interrupt(number: int, frame: FrameType | None) -> None:
        if is_over.is_set():
            cancel(number, frame)
        elif timers:
            is_over.set()
            raise KeyboardInterrupt
        else:
            loop.call_soon_threadsafe(end_step)
            timers.append(threading.Timer(STEP_SECONDS, repeat))
            timers[0].daemon = True
            timers[0].start()

    signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        is_over.set()
        for timer in timers:
            timer.cancel()
        if signal.getsignal(signal.SIGINT) is interrupt:
            signal.signal(signal.SIGINT, cancel)


class ProgressBar:
    """A progress bar on standard error; silent if that is not a terminal.

    With `has_lines`, each new thing that is done is then said in a line of its own.
    """

    def __init__(self, label: str, total: int | None = None, *, has_lines: bool = False) -> None:
        self._label = label
        self._total = total
        self._has_lines = has_lines
        self._doing = ""
        self._done = 0
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> "ProgressBar":
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import Progress

            self._bar = Progress(console=Console(stderr=True), transient=True)
            self._bar.start()
            self._task = self._bar.add_task(self._label, total=self._total)
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def to(self, done: int, total: int | None = None) -> None:
        """Update the amount of completed work."""
        self._done = done
        if self._bar is not None:
            self._bar.update(self._task, completed=done, total=total or self._total)

    def show(self, doing: str, revision: int, until: int) -> None:
        """Update what is done and the completed revisions, with the arguments of replays."""
        if doing != self._doing:
            if self._bar is not None:
                self._bar.update(self._task, description=f"{self._label}: {doing}")
            elif self._has_lines:
                note(f"{self._label}: {doing}")
        self._doing = doing
        self.to(revision, until)


_LISTS = ("items", "objects", "pools", "entries", "rows", "effects", "pods", "roots")
"""The fields of answers that hold lists, the outer ones first."""

_PLAIN = ("incident", "device")
"""The fields that hold the name of something other than an object."""


def names_in(answer: Any) -> list[str]:
    """The names in an answer, each once, in order.

    Raises InputError for an answer without names.
    """
    names = list(dict.fromkeys(_names(answer)))
    if not names and not _is_empty(answer):
        raise InputError("this answer has no names", place="-o", cure="use json")
    return names


def _is_empty(answer: Any) -> bool:
    """True if a list in the answer is empty."""
    if isinstance(answer, list):
        return not answer
    return isinstance(answer, dict) and any(answer.get(part) == [] for part in _LISTS)


def _names(answer: Any) -> Iterator[str]:
    if isinstance(answer, list):
        for item in answer:
            yield from _names(item)
    elif isinstance(answer, dict):
        lists = [answer[part] for part in _LISTS if isinstance(answer.get(part), list)]
        if name := _name(answer):
            yield name
        elif lists:
            for part in lists:
                yield from _names(part)
        elif isinstance(answer.get("name"), str) and answer["name"]:
            yield answer["name"]


def _name(row: dict[str, Any]) -> str:
    """The name of the subject of a row; empty without one."""
    resource, name = row.get("resource"), row.get("name")
    if isinstance(resource, str) and resource and isinstance(name, str) and name:
        from app.domain.objects import registry

        group = row.get("group")
        kinds = [kind for kind in registry.named(resource) if group in (None, kind.group)]
        noun = kinds[0].singular if kinds else f"{resource}.{group}" if group else resource
        place = row.get("namespace")
        return f"{noun}/{place}/{name}" if place else f"{noun}/{name}"
    if isinstance(subject := row.get("subject"), str) and subject:
        return "/".join(subject.split(" "))
    if isinstance(row.get("pool"), str) and isinstance(row.get("driver"), str):
        return f"pool/{row['driver']}/{row['pool']}"
    return next((row[part] for part in _PLAIN if isinstance(row.get(part), str) and row[part]), "")
