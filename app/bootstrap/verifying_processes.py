"""The processes that verify parts of a history beside this one.

Each is started anew rather than forked, so that it shares neither loop nor connections with this
one, reads the events from a file without a name, and ends with this one, however that ends.
"""

import os
import subprocess
from collections.abc import AsyncIterable, Callable, Sequence
from contextlib import suppress

import anyio
from anyio.abc import Process

from app.adapters.event_spool import EventSpool
from app.analysis.verify.parts import Part, PartFound
from app.bootstrap import child_processes, verifying_process
from app.bootstrap.verifying_process import Job
from app.domain.errors import InputError
from app.domain.log import Event, HistoryInfo, Revision

OPTION = "--processes"


def usable() -> int:
    """How many processors this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class PartProcesses:
    """Starts a process for each part. A context manager: leaving lets the kept events go.

    At most `bytes_max` of events are kept aside, as long as there is room for them; otherwise this
    process verifies the history alone.
    """

    def __init__(self, history: HistoryInfo, *, count: int, bytes_max: int) -> None:
        self._history = history
        self._count = count
        self._bytes_max = bytes_max
        self._spool: EventSpool | None = None

    def __enter__(self) -> "PartProcesses":
        return self

    def __exit__(self, *_: object) -> None:
        if self._spool is not None:
            self._spool.close()

    @property
    def count(self) -> int:
        """In how many parts the history may be divided."""
        return self._count

    def keep(self, events: Sequence[Event]) -> None:
        """Keep the events for the processes to come."""
        if self._count == 1:
            return
        try:
            self._spool = self._spool or EventSpool()
            self._spool.add(events)
            has_room = self._spool.size <= self._bytes_max
        except OSError:
            has_room = False
        if not has_room:
            self._count = 1
            if self._spool is not None:
                self._spool.close()

    async def verify(self, part: Part, reached: Callable[[Revision], None]) -> PartFound:
        """Verify a part in a process of its own.

        Raises InputError when that ended without an answer.
        """
        assert self._spool is not None, "the events have been kept"
        descriptor = self._spool.descriptor
        job = Job.of(
            self._history,
            part,
            spool=descriptor,
        )
        # Not to be interrupted in between: a process that is half started would be left behind.
        with anyio.CancelScope(shield=True):
            process = await anyio.open_process(
                child_processes.program("app.bootstrap.verifying_process"),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=None,
                # Ctrl-C is for this process, which ends that one.
                start_new_session=True,
                pass_fds=(descriptor,),
            )
        try:
            answer = await _answer(process, verifying_process.job_bytes(job), reached)
            status = await process.wait()
        finally:
            with anyio.CancelScope(shield=True):
                await child_processes.end(process)
        if answer is None:
            raise InputError(
                f"the process for revisions {part.after + 1} to {part.until} ended with status "
                f"{status}",
                place=OPTION,
                cure="use fewer processes, or 1, which needs the least memory",
            )
        return answer


async def _answer(
    process: Process, job: bytes, reached: Callable[[Revision], None]
) -> PartFound | None:
    """Give the job and hear what comes of it; None when the process ends before."""
    assert process.stdin is not None, "it was started with a pipe"
    assert process.stdout is not None, "it was started with a pipe"
    with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
        await process.stdin.send(job)
    async for line in _lines(process.stdout):
        message = verifying_process.found_in(line)
        if isinstance(message, PartFound):
            return message
        reached(message)
    return None


async def _lines(chunks: AsyncIterable[bytes]) -> AsyncIterable[bytes]:
    """Whole lines; what follows the last line break is left out."""
    parts: list[bytes] = []
    async for chunk in chunks:
        *ended, rest = chunk.split(b"\n")
        for piece in ended:
            yield b"".join((*parts, piece))
            parts.clear()
        parts.append(rest)
