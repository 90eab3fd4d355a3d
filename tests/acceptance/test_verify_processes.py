"""Verification by several real processes: the same report, errors told, nothing left behind."""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from app.adapters.event_spool import EventSpool
from app.adapters.history.formats.bundle import BundleWriter
from app.analysis.verify.parts import Division, Part
from app.analysis.verify.reallocate import AllocationIndex
from app.bootstrap import child_processes, verifying_process
from app.bootstrap.deciders import deciders_of
from app.bootstrap.verifying_process import Job
from app.bootstrap.verifying_processes import PartProcesses
from app.domain.log import Event, HistoryInfo, Revision
from app.service import exporting
from app.service.replays import verifying
from app.service.replays.replaying import ReplayBounds
from app.service.replays.verifying import Sharing, VerifyReport
from tests.unit.service.test_replaying import history_of, story

ANYWHERE = Division(start=0, fold=0, worth_percent=100, apart=1)
"""Other processes cost nothing, so that the shortest history is divided."""

BYTES_MAX = 1_000_000_000
BOUNDS = ReplayBounds(page_max=50)


@pytest.fixture(scope="module")
def events() -> list[Event]:
    return story().line.events


async def verify(
    events: list[Event],
    count: int,
    *,
    bytes_max: int = BYTES_MAX,
    reached: Callable[[], None] = lambda: None,
) -> VerifyReport:
    """The report of up to so many processes; `reached` is called when one of them has got on."""
    log, info = await history_of(events)
    with PartProcesses(info, count=count, bytes_max=bytes_max) as processes:
        return await verifying.verify(
            log,
            info,
            until=events[-1].revision,
            deciders=deciders_of(info),
            bounds=BOUNDS,
            sharing=Sharing(processes=processes, division=ANYWHERE),
            progress=lambda doing, *_: reached() if "again" in doing else None,
        )


def processes_of_ours() -> list[int]:
    """The processes for parts that this one has started and that run."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
        except (OSError, ValueError):
            continue
        if b"app.bootstrap.verifying_process" in words and parent == os.getpid():
            found.append(int(folder.name))
    return found


async def test_several_processes_find_what_one_finds(events: list[Event]) -> None:
    alone = await verify(events, 1)
    seen: set[int] = set()
    together = await verify(events, 3, reached=lambda: seen.update(processes_of_ours()))
    assert len(seen) == 2, "two others took part"
    assert together.to_json() == alone.to_json()
    assert together.agrees
    assert not processes_of_ours()


async def wait_for_processes(count: int) -> list[int]:
    """The processes as soon as all have been started; they load for much longer."""
    with anyio.fail_after(60):
        while len(found := processes_of_ours()) < count:  # noqa: ASYNC110 see below
            await anyio.sleep(0.01)  # waits: for processes that tell nobody of their start
    return found


async def test_the_end_of_a_process_is_told(events: list[Event]) -> None:
    async def kill() -> None:
        for process in await wait_for_processes(1):
            os.kill(process, signal.SIGKILL)

    async def verify_while_killed() -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(kill)
            await verify(events, 2)

    with pytest.raises(BaseExceptionGroup) as caught:
        await verify_while_killed()
    told = str(caught.value.exceptions[0].exceptions[0])
    assert told.startswith("--processes: the process for revisions")
    assert "ended with status -9; use fewer processes" in told
    assert not processes_of_ours()


async def test_who_stops_waiting_leaves_no_process_behind(events: list[Event]) -> None:
    async def stop() -> None:
        await wait_for_processes(2)
        tasks.cancel_scope.cancel()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(stop)
        await verify(events, 3)
    assert tasks.cancel_scope.cancelled_caught
    assert not processes_of_ours()


@pytest.mark.parametrize("bytes_max", [1, 20_000])
async def test_beyond_the_bound_of_kept_events_one_process_does_all(
    events: list[Event], bytes_max: int
) -> None:
    seen: set[int] = set()
    report = await verify(
        events, 3, bytes_max=bytes_max, reached=lambda: seen.update(processes_of_ours())
    )
    assert report.agrees
    assert not seen


async def test_without_room_for_events_one_process_does_all(
    events: list[Event], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", "/nowhere")
    seen: set[int] = set()
    report = await verify(events, 3, reached=lambda: seen.update(processes_of_ours()))
    assert report.agrees
    assert not seen


def job_of(events: list[Event], spool: EventSpool) -> bytes:
    """The job to verify everything."""
    until = events[-1].revision
    part = Part(
        after=Revision(0),
        until=until,
        is_last=True,
        ends=True,
        observers={},
        deciders=frozenset(),
        index=AllocationIndex(),
    )
    info = HistoryInfo(id=1, name="h")
    job = Job.of(info, part, spool=spool.descriptor)
    return verifying_process.job_bytes(job)


@pytest.mark.parametrize("told", ["nothing", "half a job", "a job"])
def test_a_process_ends_with_its_input(events: list[Event], told: str) -> None:
    """Whoever asked is gone: nothing is verified for nobody."""
    spool = EventSpool()
    for _ in range(20):
        spool.add(events)
    job = job_of(events, spool)
    given = {"nothing": b"", "half a job": job[: len(job) // 2], "a job": job}[told]
    done = subprocess.run(
        child_processes.program("app.bootstrap.verifying_process"),
        input=given,
        capture_output=True,
        pass_fds=(spool.descriptor,),
        timeout=60,
    )
    spool.close()
    assert b"decisions" not in done.stdout, "no answer"
    assert not done.stderr


def test_a_process_with_a_mistake_says_so(events: list[Event]) -> None:
    spool = EventSpool()
    job = job_of(events, spool)
    os.write(spool.descriptor, (100).to_bytes(8, "big") + b"too short")
    process = subprocess.Popen(
        child_processes.program("app.bootstrap.verifying_process"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        pass_fds=(spool.descriptor,),
    )
    assert process.stdin is not None
    assert process.stderr is not None
    process.stdin.write(job)
    process.stdin.flush()
    assert process.wait(timeout=60) == 1
    assert b"the spool of events ends within a frame" in process.stderr.read()
    for stream in (process.stdin, process.stdout, process.stderr):
        stream.close()
    spool.close()


async def bundle(events: list[Event], path: Path) -> Path:
    """The history as a file."""
    log, info = await history_of(events)
    await exporting.export_history(
        log, info, BundleWriter(path), program="test", file=path.name, progress=lambda *_: None
    )
    return path


def redra(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "app.cli", *arguments], capture_output=True, text=True, timeout=100
    )


async def test_the_command_takes_a_number_of_processes(events: list[Event], tmp_path: Path) -> None:
    file = str(await bundle(events, tmp_path / "history.zip"))
    answers = [
        redra("replay", file, "--mode", "verify", "-o", "json", "--processes", number)
        for number in ("1", "4")
    ]
    assert [answer.returncode for answer in answers] == [0, 0]
    assert answers[0].stdout == answers[1].stdout
    for arguments, told in (
        (("--processes", "2"), "--processes: it is about verify replays"),
        (("--mode", "verify", "--processes", "0"), "Invalid value for '--processes'"),
    ):
        refused = redra("replay", file, *arguments)
        assert refused.returncode == 2
        assert told in refused.stderr
