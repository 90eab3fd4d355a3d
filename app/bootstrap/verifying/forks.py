"""Tasks that run in forks of this process, on Linux.

A fork begins with everything that this process has loaded, and shares its memory until one of the
two writes to it: it starts within milliseconds and is sent nothing. It answers through a pipe. When
it dies, its task is given to another fork. When this process dies, so do its forks. Tasks for which
the system allows no fork, for want of processes, memory or files, run in this process.

Forks are made by the main thread, before it computes: a thread that holds a lock while another one
forks leaves that lock closed in the fork. Only the forks that replace dead ones are made beside it.
"""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection, wait
from typing import Any

from app.bootstrap import executors
from app.bootstrap.executors import LOST_MAX, Done, Function, Heard, Task

ARE_POSSIBLE = sys.platform == "linux"
"""Whether a process that has loaded libraries of the system can be forked safely."""


@dataclass(slots=True, kw_only=True, eq=False)
class _Fork:
    """A running fork: its task, its end of the pipe, and how many forks died with this task."""

    task: Task
    receive: Connection
    end: Callable[[], None]
    died: int = 0


@dataclass(slots=True, kw_only=True, eq=False)
class Forks:
    """Forks that run one task each, all at once, over the same content."""

    function: Function
    content: bytes
    _running: list[_Fork] = field(default_factory=list)
    _left: list[Task] = field(default_factory=list)
    """The tasks for which no fork could be made."""
    _is_closed: bool = False
    _changing: threading.Lock = field(default_factory=threading.Lock)
    """Held while forks are replaced or ended, so that none starts after the end."""

    def start(self, tasks: Sequence[Task]) -> None:
        """Start a fork for each task, as far as the system allows."""
        for task in tasks:
            try:
                self._running.append(self._forked(task))
            except OSError:
                self._left.append(task)

    def results(self, heard: Heard) -> Iterator[Done]:
        """Yield the tasks as they end; `heard` gets the messages that they send with `tell`."""
        while self._running and not self._is_closed:
            ready = set(wait([fork.receive for fork in self._running]))
            for fork in [fork for fork in self._running if fork.receive in ready]:
                done = self._heard(fork, heard)
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
            for fork in self._running:
                fork.end()

    def _heard(self, fork: _Fork, heard: Heard) -> Done | None:
        """Take the next message of a fork; returns the end of its task."""
        try:
            message = fork.receive.recv()
        except (EOFError, OSError):
            return self._replaced(fork)
        if isinstance(message, Done):
            return message
        heard(fork.task, message)
        return None

    def _replaced(self, fork: _Fork) -> Done | None:
        """Start another fork in the place of a dead one, unless too many have died."""
        with self._changing:
            if fork.died == LOST_MAX or self._is_closed:
                return Done(task=fork.task, problem=f"its workers died {fork.died + 1} times")
            fork.end()
            place = self._running.index(fork)
            try:
                self._running[place] = self._forked(fork.task, died=fork.died + 1)
            except OSError as problem:
                text = f"its worker died, and the system allows no other: {problem.strerror}"
                return Done(task=fork.task, problem=text)
        return None

    def _forked(self, task: Task, *, died: int = 0) -> _Fork:
        """Start a fork. Raises OSError when the system does not allow one more."""
        context = get_context("fork")
        receive, send = context.Pipe(duplex=False)
        process = context.Process(target=self._run, args=(task, receive, send), daemon=True)
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

        return _Fork(task=task, receive=receive, end=end, died=died)

    def _run(self, task: Task, receive: Connection, send: Connection) -> None:
        """Run the task, in the fork."""
        # Signals of the terminal are for the command, which ends its forks.
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        # The command's own handler would do nothing here.
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        receive.close()
        threading.Thread(target=_end_with_parent, daemon=True).start()

        def told(message: Any) -> None:
            try:
                send.send(message)
            except OSError:
                # The command has died, and nobody waits for the answer.
                os._exit(1)

        executors.tell_by(told)
        told(executors.run_here(self.function, self.content, task))


def _end_with_parent() -> None:
    """End this fork when the process that has made it has died.

    Each fork also holds the ends of those made before it, so they end one after the other, from the
    last to the first.
    """
    parent = parent_process()
    assert parent is not None, "this is a fork"
    parent.join()
    os._exit(1)
