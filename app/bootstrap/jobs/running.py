"""The process of a job, as its server sees it: started with bundles, followed, and ended.

The process makes a folder, into which the server writes the histories as bundles; it gets no
address of the database. Its standard input stays open as long as the server lives; when it ends,
the process removes the folder and ends.
"""

import shutil
import subprocess
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, cast

import anyio
import anyio.from_thread
import anyio.to_thread
import msgspec
from anyio.streams.buffered import BufferedByteReceiveStream

from app.adapters import private_folders
from app.adapters.head_keys import open_head_key
from app.adapters.history.formats.bundle import BundleWriter
from app.bootstrap import child_processes
from app.bootstrap.jobs.file_names import ANSWER, FOLDER
from app.bootstrap.recordings import PROGRAM
from app.domain.errors import InputError
from app.domain.log import Head
from app.domain.log.heads import SignedHead
from app.domain.values.json_tree import JsonObject
from app.ports import EventLog
from app.service import exporting
from app.service.answering.jobs import JobOutcome, JobSource, JobWish
from app.settings import PREFIX, Settings

MODULE = "app.bootstrap.jobs.process"
_LINE_BYTES_MAX = 1024 * 1024


async def work(
    settings: Settings, log: EventLog, wish: JobWish, report_progress: Callable[[JsonObject], None]
) -> JobOutcome:
    """Do the work of a job in a process. Raises InputError, ChainBroken, LogError.

    However it ends, the process has ended then and its folder is removed.
    """
    outcome = None
    with anyio.move_on_after(settings.job_seconds_max):
        outcome = await _work(settings, log, wish, report_progress)
    if outcome is None:
        raise InputError(
            f"it took longer than {settings.job_seconds_max:g} seconds",
            cure="ask for less, or raise REDRA_JOB_SECONDS_MAX",
        )
    return outcome


async def _work(
    settings: Settings, log: EventLog, wish: JobWish, report_progress: Callable[[JsonObject], None]
) -> JobOutcome:
    process = await anyio.open_process(
        child_processes.program(MODULE),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=None,
        env=_environment(settings),
        start_new_session=True,
    )
    folder: Path | None = None
    holds = ExitStack()
    try:
        assert process.stdin is not None, "asked for above"
        assert process.stdout is not None, "asked for above"
        lines = BufferedByteReceiveStream(process.stdout)
        first = await _next(lines)
        if first is not None:
            folder = Path(first[FOLDER])
            holds.enter_context(private_folders.held(folder))
            await _export_all(settings, log, wish, folder)
            await process.stdin.send(msgspec.json.encode(_order(settings, wish)) + b"\n")
        while (progress := await _next(lines)) is not None:
            report_progress(progress)
        status = await process.wait()
        return await anyio.to_thread.run_sync(_outcome, settings, folder, status)
    finally:
        with anyio.CancelScope(shield=True):
            # At the end of its input it removes the folder itself, even if its name is unread.
            await child_processes.end(process)
            if folder is not None:
                await anyio.to_thread.run_sync(partial(shutil.rmtree, folder, ignore_errors=True))
            holds.close()


def _order(settings: Settings, wish: JobWish) -> JsonObject:
    return {
        "kind": wish.kind.value,
        "parameters": wish.parameters,
        "names": [source.name for source in wish.sources],
        "bytes_max": settings.job_bytes_max,
    }


async def _next(lines: BufferedByteReceiveStream) -> JsonObject | None:
    """The next line that the process writes; None when it writes no more."""
    try:
        line = await lines.receive_until(b"\n", _LINE_BYTES_MAX)
    except (anyio.IncompleteRead, anyio.EndOfStream, anyio.BrokenResourceError):
        return None
    tree: JsonObject = msgspec.json.decode(line)
    return tree


async def _export_all(settings: Settings, log: EventLog, wish: JobWish, folder: Path) -> None:
    for number, source in enumerate(wish.sources):
        path = folder / f"{number}.zip"
        sign = open_head_key(settings.data).sign if source.file else None
        await anyio.to_thread.run_sync(_export, _LogInThread(log), source, path, sign)


class _LogInThread:
    """A log whose methods wait for those of the log of another thread's event loop."""

    def __init__(self, log: EventLog) -> None:
        self._log = log

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._log, name)

        async def call(*arguments: Any, **options: Any) -> Any:
            anyio.from_thread.check_cancelled()
            return anyio.from_thread.run(partial(method, *arguments, **options))

        return call


def _export(
    log: _LogInThread, source: JobSource, path: Path, sign: Callable[[str, Head], SignedHead] | None
) -> None:
    """Write a history as a bundle without the keys of its Secrets, in a thread."""
    export = partial(
        exporting.export_history,
        cast(EventLog, log),
        source.info,
        BundleWriter(path),
        program=PROGRAM,
        file=source.file or path.name,
        sign=sign,
        until=source.until,
    )
    anyio.run(export)


def _environment(settings: Settings) -> dict[str, str]:
    """The environment for the process: the given settings, without the database and tokens."""
    named = settings.environment()
    private = ("database", "reader", "server")
    chosen = {f"{PREFIX}{name.upper()}" for name in settings.given if not name.startswith(private)}
    return {
        name: value
        for name, value in named.items()
        if not name.startswith(PREFIX) or name in chosen
    }


def _outcome(settings: Settings, folder: Path | None, status: int) -> JobOutcome:
    """The answer that the process has left in its folder. Raises InputError."""
    try:
        assert folder is not None, "the process told it"
        answer = msgspec.json.decode((folder / ANSWER).read_bytes())
    except (AssertionError, OSError, msgspec.DecodeError) as problem:
        raise InputError(
            f"its process ended with status {status}, perhaps for lack of memory",
            cure="ask for less, or raise REDRA_JOB_BYTES_MAX",
        ) from problem
    if refusal := answer.get("problem"):
        raise InputError(refusal["message"], place=refusal["place"], cure=refusal["cure"])
    paths = {name: folder / path for name, path in answer["files"].items()}
    size = sum(path.stat().st_size for path in (folder / ANSWER, *paths.values()))
    if size > settings.job_result_bytes_max:
        raise InputError(
            f"its result has {size} bytes, more than {settings.job_result_bytes_max}",
            cure="ask for less, or raise REDRA_JOB_RESULT_BYTES_MAX",
        )
    files = {name: path.read_bytes() for name, path in paths.items()}
    return JobOutcome(result=answer["result"], files=files)
