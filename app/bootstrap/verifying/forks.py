"""Tasks that run in forks of this process, on Linux.

A fork begins with everything that this process has loaded, and shares its memory until one of the
two writes to it: it starts within milliseconds and is sent nothing. It answers through a pipe. When
it dies or hangs, its task is given to another fork. When it computes too long without sending
anything, its task fails: another fork would compute the same. When this process dies, so do its
forks. Tasks for which the system allows no fork, for want of processes, memory or files, run in
this process.

A fork may be made before its task is known, and prepare itself meanwhile as its messages say.

Forks are made by the main thread, before it computes: a thread that holds a lock while another one
forks leaves that lock closed in the fork. Only the forks that replace dead ones are made beside it.
"""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from app.bootstrap import executors
from app.bootstrap.executors import LOST_MAX, Done, Function, OnMessage, Task

_TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100
"""The ticks of the system in one second of processor time."""

ARE_POSSIBLE = sys.platform == "linux"
"""Whether a process that has loaded libraries of the system can be forked safely."""


SILENCE_SECONDS = 120.0
"""The time after which a fork that sends nothing and uses no processor counts as hung."""

STEP_SECONDS = 1_800.0
"""The processor time that a fork may use between two messages; one that uses more loops."""

_LOOKS = 4
"""The number of looks after which a fork counts as hung.

Looks are counted because a command that is suspended for a while does not look meanwhile.
"""


@dataclass(slots=True, kw_only=True, eq=False)
class _Fork:
    """A running fork: its task, its end of the pipe, and how many forks died with this task.

    `idle` counts the looks since which it has used no processor time beyond `used`. `before` is the
    processor time at the first look after its last message.
    """

    task: Task
    receive: Connection
    end: Callable[[], None]
    pid: int
    died: int = 0
    used: int = -1
    idle: int = 0
    before: int | None = None

    def looks_hung(self) -> bool:
        """Note the processor time that it has used; true when it has long used none."""
        used = _processor_time(self.pid)
        self.idle = self.idle + 1 if used == self.used else 0
        self.used = used
        if self.before is None:
            self.before = used
        return self.idle >= _LOOKS

    def loops(self, seconds: float) -> bool:
        """Whether it has used more processor time than this since its last message."""
        spent = self.used - (self.used if self.before is None else self.before)
        return spent > seconds * _TICKS


@dataclass(slots=True, kw_only=True, eq=False)
class _Early:
    """A fork that has no task yet: both directions of its pipe, and how to end it."""

    connection: Connection
    end: Callable[[], None]
    pid: int


Early: TypeAlias = Callable[[int, Iterator[Any]], Any]
"""The work of a fork that begins early: from its number and the messages that it gets, the result
of a task, which the last message describes."""


class _TaskResult(NamedTuple):
    """The last message of a fork: the result of its task, or its problem as text."""

    result: Any
    problem: str


@dataclass(slots=True, kw_only=True, eq=False)
class Forks:
    """Forks that run one task each, all at once, over the same content."""

    function: Function
    content: Any
    silence_seconds: float = SILENCE_SECONDS
    step_seconds: float = STEP_SECONDS
    _running: list[_Fork] = field(default_factory=list)
    _early: dict[int, _Early] = field(default_factory=dict)
    _left: list[Task] = field(default_factory=list)
    """The tasks for which no fork could be made."""
    _is_closed: bool = False
    _changing: threading.Lock = field(default_factory=threading.Lock)
    """Held while forks are replaced or ended, so that none starts after the end."""

    def begin(self, work: Early, numbers: Sequence[int]) -> None:
        """Start forks whose tasks are not known yet, as far as the system allows."""
        for number in numbers:
            try:
                self._early[number] = self._begun(work, number)
            except OSError:
                return

    def send_early(self, message: Any) -> None:
        """Send a message to the forks that have no task yet. It must be short: nobody may wait."""
        for number in [*self._early]:
            self._send(number, message)

    def end_early(self) -> None:
        """End the forks that have no task."""
        for fork in self._early.values():
            fork.end()
        self._early.clear()

    def start(self, tasks: Sequence[Task], begun: Mapping[int, tuple[int, Any]] = {}) -> None:
        """Start a fork for each task, as far as the system allows.

        By the place of a task, `begun` says which fork has begun early for it, and its message.
        """
        for place, task in enumerate(tasks):
            number, message = begun.get(place, (0, None))
            early = self._send(number, message)
            if early is not None:
                del self._early[number]
                connection, end, pid = early.connection, early.end, early.pid
                fork = _Fork(task=task, receive=connection, end=end, pid=pid, died=0)
                self._running.append(fork)
                continue
            try:
                self._running.append(self._forked(task))
            except OSError:
                self._left.append(task)
        self.end_early()

    def results(self, on_message: OnMessage) -> Iterator[Done]:
        """Yield the tasks as they end; `on_message` gets what `executors.send_message` sends."""
        while self._running and not self._is_closed:
            pipes = [fork.receive for fork in self._running]
            ready = set(wait(pipes, self.silence_seconds / _LOOKS))
            for fork in [*self._running]:
                if fork.receive in ready:
                    done = self._received(fork, on_message)
                elif not ready and fork.looks_hung():
                    done = self._replaced(fork)
                elif not ready and fork.loops(self.step_seconds):
                    done = Done(task=fork.task, problem=_looping(self.step_seconds))
                else:
                    continue
                if done is not None:
                    self._running.remove(fork)
                    fork.end()
                    yield done
        while self._left and not self._is_closed:
            yield executors.run_here(self.function, self.content, self._left.pop())

    def close(self) -> None:
        """End the forks that still run."""
        with self._changing:
            self._is_closed = True
            self.end_early()
            for fork in self._running:
                fork.end()

    def _received(self, fork: _Fork, on_message: OnMessage) -> Done | None:
        """Take the next message of a fork; returns the end of its task."""
        fork.before = None
        try:
            message = fork.receive.recv()
        except (EOFError, OSError):
            return self._replaced(fork)
        if isinstance(message, _TaskResult):
            return Done(task=fork.task, result=message.result, problem=message.problem)
        on_message(fork.task, message)
        return None

    def _replaced(self, fork: _Fork) -> Done | None:
        """Start another fork in the place of a dead one, unless too many have died."""
        with self._changing:
            if fork.died == LOST_MAX or self._is_closed:
                problem = f"its workers died or hung {fork.died + 1} times"
                return Done(task=fork.task, problem=problem)
            fork.end()
            place = self._running.index(fork)
            try:
                self._running[place] = self._forked(fork.task, died=fork.died + 1)
            except OSError as refusal:
                text = f"its worker died, and the system allows no other: {refusal.strerror}"
                return Done(task=fork.task, problem=text)
        return None

    def _send(self, number: int, message: Any) -> _Early | None:
        """Send a message to a fork that has no task yet; None when there is none."""
        fork = self._early.get(number)
        if fork is not None:
            try:
                fork.connection.send(message)
            except OSError:
                # It has died. A fork that is made for the task does all of it.
                del self._early[number]
                fork.end()
                return None
        return fork

    def _begun(self, work: Early, number: int) -> _Early:
        """Start a fork without a task. Raises OSError when the system does not allow one more."""

        def run(receive: Connection, send: Connection) -> None:
            def messages() -> Iterator[Any]:
                while True:
                    try:
                        yield send.recv()
                    except (EOFError, OSError):
                        os._exit(1)  # The command has died, and nobody waits for the answer.

            nothing = Task(digest="", bundle="", data=None)
            self._run(lambda _content, _data: work(number, messages()), nothing, receive, send)

        connection, end, pid = _started(run, is_duplex=True)
        return _Early(connection=connection, end=end, pid=pid)

    def _forked(self, task: Task, *, died: int = 0) -> _Fork:
        """Start a fork. Raises OSError when the system does not allow one more."""
        receive, end, pid = _started(partial(self._run, self.function, task), is_duplex=False)
        return _Fork(task=task, receive=receive, end=end, pid=pid, died=died)

    def _run(self, function: Function, task: Task, receive: Connection, send: Connection) -> None:
        """Run the task, in the fork."""
        # Signals of the terminal are for the command, which ends its forks.
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        # The command's own handler would do nothing here.
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        receive.close()
        threading.Thread(target=_end_with_parent, daemon=True).start()

        def send_back(message: Any) -> None:
            try:
                send.send(message)
            except OSError:
                # The command has died, and nobody waits for the answer.
                os._exit(1)

        executors.send_messages_by(send_back)
        done = executors.run_here(function, self.content, task)
        # The task is known there, and may be large.
        send_back(_TaskResult(done.result, done.problem))


def _started(
    run: Callable[[Connection, Connection], None], *, is_duplex: bool
) -> tuple[Connection, Callable[[], None], int]:
    """Start a fork that runs this with the two ends of its pipe.

    Returns the end of this process, how to end the fork, and its number. Raises OSError.
    """
    context = get_context("fork")
    receive, send = context.Pipe(duplex=is_duplex)
    process = context.Process(target=run, args=(receive, send), daemon=True)
    try:
        process.start()
    except OSError:
        receive.close()
        raise
    finally:
        # Only the fork may hold this end: the pipe ends with it.
        send.close()

    def end() -> None:
        process.kill()
        process.join()
        receive.close()

    assert process.pid is not None, "it was started"
    return receive, end, process.pid


def _looping(seconds: float) -> str:
    return (
        f"its worker computed for {seconds:g} s of processor time without finishing a step, so it "
        "seems to loop; REDRA_WORKER_STEP_SECONDS allows more"
    )


def _processor_time(pid: int) -> int:
    """The processor time of a process in ticks of the system; 0 when it has just ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return 0
    # The name before may contain blanks and brackets.
    numbers = fields.rpartition(")")[2].split()
    return int(numbers[11]) + int(numbers[12])


def _end_with_parent() -> None:
    """End this fork when the process that has made it has died.

    Each fork also holds the ends of those made before it, so they end one after the other, from the
    last to the first.
    """
    parent = parent_process()
    assert parent is not None, "this is a fork"
    parent.join()
    os._exit(1)
