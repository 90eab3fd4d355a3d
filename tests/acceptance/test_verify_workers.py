"""Verification by several real processes: the same report, though they die; nothing left behind."""

import errno
import itertools
import mmap
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import anyio
import dask
import pytest

from app.adapters import packed_events
from app.adapters.history.formats.bundle import BundleWriter
from app.adapters.memory import MemoryViewStore
from app.adapters.shared_events import SharedBytes, SharedEvents
from app.analysis.verify.parts import Division, PartFindings, PartVerifier, VerifiedPart
from app.bootstrap import executors
from app.bootstrap.deciders import deciders_of
from app.bootstrap.executors import LOST_MAX, Task
from app.bootstrap.histories import views_of
from app.bootstrap.stores import view_tables
from app.bootstrap.verifying import folding_ahead, forks, part_workers
from app.bootstrap.verifying.folding_ahead import AheadBounds
from app.bootstrap.verifying.forks import Forks
from app.bootstrap.verifying.part_workers import PartWorkers
from app.cli import main
from app.domain.controllers import registry
from app.domain.errors import InputError
from app.domain.log import Event
from app.ports import ViewStore
from app.service import exporting
from app.service.folding.projecting import FoldingBounds, Projector
from app.service.replays import verifying
from app.service.replays.integrity import Attestation
from app.service.replays.replaying import ReplayBounds
from app.service.replays.verifying import Sharing, VerifyReport
from tests import draws
from tests.cluster import Cluster
from tests.command_line import redra
from tests.patience import PATIENCE_SECONDS
from tests.redra_process import forked_dask_workers
from tests.unit.service.test_replaying import history_of, story

ANYWHERE = Division(load=0, start=0, fold=0, worth_percent=100, apart=1)
"""Other processes cost nothing, so that the shortest history is divided."""

EVERYBODY = registry.DECIDING | {"claims"}
"""The controllers that decide in the story."""

BYTES_MAX = 1_000_000_000
BOUNDS = ReplayBounds(page_max=50)


@pytest.fixture(scope="module")
def events() -> list[Event]:
    return story().line.events


async def verify(
    events: list[Event],
    count: int = 1,
    *,
    scheduler: str = "",
    bytes_max: int = BYTES_MAX,
    kept_bytes_max: int = BYTES_MAX,
    expected: int = 0,
    bounds: AheadBounds = AheadBounds(events_min=1),
    views: ViewStore | None = None,
    reached: Callable[[int], None] = lambda _: None,
) -> VerifyReport:
    """The report of up to so many processes; `reached` hears how many events are done.

    They are told that so many events are `expected`.
    """
    log, info = await history_of(events)
    with PartWorkers(
        info,
        count=count,
        bytes_max=bytes_max,
        scheduler=scheduler,
        events=expected,
        bounds=bounds,
    ) as workers:
        return await verifying.verify(
            log,
            info,
            until=events[-1].revision,
            deciders=deciders_of(info),
            bounds=replace(BOUNDS, kept_bytes_max=kept_bytes_max),
            sharing=Sharing(workers=workers, division=ANYWHERE),
            attestation=Attestation(views=views),
            progress=lambda doing, revision, _: reached(revision) if "again" in doing else None,
        )


_OTHERS: set[int] = set()
"""Processes of the same kinds that run already, such as that which forks the commands of shells."""


@pytest.fixture(autouse=True)
def others() -> Iterator[None]:
    _OTHERS.update(workers_of_ours())
    yield
    _OTHERS.clear()


def workers_of_ours() -> list[int]:
    """The worker processes that this one has started or forked since a test began, and that run."""
    workers = []
    ours = Path("/proc/self/cmdline").read_bytes()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            command = (folder / "cmdline").read_bytes()
            parent = parent_of(int(folder.name))
            is_fork = b"forkserver" in (folder.parent / str(parent) / "cmdline").read_bytes()
            is_ours_forked = is_fork and parent_of(parent) == os.getpid()
        except (OSError, ValueError):
            continue
        is_worker = command == ours or command.startswith(b"dask worker")
        if (is_worker and parent == os.getpid()) or is_ours_forked:
            workers.append(int(folder.name))
    return [worker for worker in workers if worker not in _OTHERS]


def parent_of(number: int) -> int:
    """The process that a process is a child of. Raises OSError when there is none."""
    return int(Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[1])


def names_in(folder: Path) -> set[str]:
    """The names of the files of a folder."""
    return {path.name for path in folder.iterdir()}


@pytest.fixture
def local_cluster() -> Iterator[Any]:
    """Two worker processes of a scheduler that a command may be given the address of."""
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
            silence_logs=50,
            memory_limit=0,
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


@draws.in_turn("ways")
@pytest.mark.parametrize("can_fork", [True, False])
async def test_several_processes_find_what_one_finds(
    events: list[Event], can_fork: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "verify_part" if can_fork else "verify_part_elsewhere"
    verify_part = getattr(part_workers, name)

    def verify_noted(content: bytes, data: Any) -> PartFindings:
        (tmp_path / str(os.getpid())).touch()
        until = time.monotonic() + PATIENCE_SECONDS
        # A worker that is slow to begin gets its part, however fast the other one is.
        while len(names_in(tmp_path) - {own}) < 2 and os.getpid() != int(own):
            assert time.monotonic() < until, "one process does all parts"
            time.sleep(0.01)  # waits: for the other worker process
        return verify_part(content, data)

    own = str(os.getpid())
    monkeypatch.setattr(forks, "ARE_POSSIBLE", can_fork)
    monkeypatch.setattr(part_workers, name, verify_noted)
    alone = await verify(events)
    with forked_dask_workers():
        together = await verify(events, 3)
    assert len(names_in(tmp_path) - {own}) == 2
    assert together.to_json() == alone.to_json()
    assert together.agrees
    assert not workers_of_ours()


@draws.in_turn("ends")
async def test_worker_that_is_killed_in_the_middle_changes_nothing(
    events: list[Event], local_cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packed_events, "FRAME_MAX", 1)
    alone = await verify(events)
    pids = list(local_cluster.run(os.getpid).values())
    killed: list[int] = []

    def kill(done: int) -> None:
        # This process does the first part, less than half of all.
        if not killed and done > len(events) * 0.6:
            killed.append(pids[0])
            os.kill(pids[0], signal.SIGKILL)

    address = local_cluster.scheduler.address
    together = await verify(events, scheduler=address, reached=kill)
    assert killed
    assert together.to_json() == alone.to_json()
    assert pids[0] not in workers_of_ours()


@draws.in_turn("ends")
async def test_forks_that_die_change_nothing(
    events: list[Event], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    verify_part = part_workers.verify_part

    def verify_the_second_time(content: bytes, data: Any) -> PartFindings:
        kill_the_first_time(str(tmp_path).encode(), data[0])
        return verify_part(content, data)

    monkeypatch.setattr(part_workers, "verify_part", verify_the_second_time)
    alone = await verify(events)
    together = await verify(events, 3)
    assert names_in(tmp_path) == {"died-0", "died-1"}
    assert together.to_json() == alone.to_json()
    assert not workers_of_ours()


@draws.in_turn("ways")
@pytest.mark.parametrize(
    ("share", "following", "dies", "forks_max", "begun_count"),
    [
        (0.5, EVERYBODY, False, 3, 2),
        (0.5, EVERYBODY, False, 1, 1),
        (0.5, EVERYBODY, True, 3, 2),
        (0.5, frozenset(), False, 3, 0),
        (9, EVERYBODY, False, 3, 0),
    ],
    ids=["fits", "one", "dies", "lacks controllers", "is too far"],
)
async def test_forks_that_fold_ahead_find_what_one_process_finds(
    events: list[Event],
    share: float,
    following: frozenset[str],
    dies: bool,
    forks_max: int,
    begun_count: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where they cannot go on with a part, or die with it, other forks verify it."""

    def begin(self: PartVerifier, part: VerifiedPart) -> None:
        (tmp_path / f"from-{part.after}").touch()
        if dies:
            os.kill(os.getpid(), signal.SIGKILL)
        begun(self, part)

    begun = PartVerifier.begin
    monkeypatch.setattr(PartVerifier, "begin", begin)
    monkeypatch.setattr(folding_ahead, "USUAL", following)
    alone = await verify(events)
    bounds = AheadBounds(events_min=1, forks_max=forks_max)
    together = await verify(events, 3, expected=int(share * len(events)), bounds=bounds)
    assert len(names_in(tmp_path)) == begun_count
    assert together.to_json() == alone.to_json()
    assert not workers_of_ours()


@pytest.mark.parametrize(
    ("bounds", "goes_ahead"),
    [
        (AheadBounds(events_min=100, forks_max=1), True),
        (AheadBounds(events_min=101, forks_max=1), False),
        (AheadBounds(events_min=100, forks_max=0), False),
    ],
)
async def test_bounds_say_whether_forks_fold_ahead(
    events: list[Event], bounds: AheadBounds, goes_ahead: bool
) -> None:
    _, info = await history_of(events[:1])
    workers = PartWorkers(info, count=2, bytes_max=BYTES_MAX, events=100, bounds=bounds)
    assert (workers.division == part_workers.AHEAD) is goes_ahead


async def test_without_memory_for_shared_events_forks_begin_late(
    events: list[Event], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Full(SharedEvents):
        def put(self, content: bytes) -> SharedBytes:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(folding_ahead, "SharedEvents", Full)
    alone = await verify(events)
    assert await verify(events, 3, expected=len(events)) == alone
    assert not workers_of_ours()


def kill_the_first_time(folder: bytes, data: int) -> int:
    """Kills its process, unless another has died here before."""
    mark = Path(folder.decode()) / f"died-{data}"
    if not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return data


async def test_parts_for_which_no_fork_can_be_made_are_verified_here(
    events: list[Event], monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = await verify(events)
    allow_forks(monkeypatch, 1)
    together = await verify(events, 4)
    assert together.to_json() == alone.to_json()
    assert not workers_of_ours()


def test_dead_fork_that_cannot_be_replaced_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    allow_forks(monkeypatch, 1)
    running = Forks(function=kill, content=b"")
    running.start([Task(digest="t", bundle="b", data=0)])
    (ended,) = running.results(lambda *_: None)
    assert ended.problem.startswith("its worker died, and the system allows no other: ")


def test_fork_that_hangs_is_replaced_and_told_about() -> None:
    def hang(*_: object) -> None:
        os.kill(os.getpid(), signal.SIGSTOP)

    running = Forks(function=hang, content=b"", silence_seconds=0.2)
    running.start([Task(digest="t", bundle="b", data=0)])
    (ended,) = running.results(lambda *_: None)
    assert ended.problem == f"its workers died or hung {LOST_MAX + 1} times"
    assert not workers_of_ours()


def test_fork_that_works_in_silence_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    is_over = mmap.mmap(-1, 1)

    def work(*_: object) -> int:
        while not is_over[0]:
            pass
        return os.getpid()

    def finish(pid: int) -> None:
        is_over.write(b"1")
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)

    look_after_work(monkeypatch, 3 * forks._LOOKS, finish)
    running = Forks(function=work, content=b"", silence_seconds=0.01)
    running.start([Task(digest="t", bundle="b", data=0)])
    (pid,) = [fork.pid for fork in running._running]
    (ended,) = running.results(lambda *_: None)
    assert (ended.problem, ended.result) == ("", pid)


def test_fork_that_loops_fails_its_task_with_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    def loop(*_: object) -> None:
        while True:
            pass

    look_after_work(monkeypatch, 100, lambda _: pytest.fail("its step has no bound"))
    running = Forks(function=loop, content=b"", silence_seconds=0.01, step_seconds=0.2)
    running.start([Task(digest="t", bundle="b", data=0)])
    (ended,) = running.results(lambda *_: None)
    assert "computed for 0.2 s of processor time without finishing a step" in ended.problem
    assert "REDRA_WORKER_STEP_SECONDS" in ended.problem
    assert not workers_of_ours()


def look_after_work(
    monkeypatch: pytest.MonkeyPatch, count: int, at_last: Callable[[int], None]
) -> None:
    """Has each of so many looks wait until the fork has worked, and the last one do this besides.

    So no look of a busy machine comes before the fork could work.
    """
    processor_time, used, left = forks._processor_time, 0, count

    def look(pid: int) -> int:
        nonlocal used, left
        before, patience = used, time.monotonic() + PATIENCE_SECONDS
        while (used := processor_time(pid)) == before and left > 0:
            assert time.monotonic() < patience, "the fork does nothing"
            time.sleep(0.002)  # waits: for the processor time of the fork
        left -= 1
        if left == 0:
            at_last(pid)
        return used

    monkeypatch.setattr(forks, "_processor_time", look)


def allow_forks(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    """Lets the system make so many forks, and refuse more."""
    fork, made = os.fork, itertools.count(1)

    def bounded() -> int:
        if next(made) > count:
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        return fork()

    monkeypatch.setattr(os, "fork", bounded)


def test_forks_end_with_the_process_that_has_made_them() -> None:
    receive, send = get_context("fork").Pipe(duplex=False)

    def command() -> None:
        def work(_: bytes, __: object) -> None:
            send.send_bytes(b"runs")
            signal.pause()

        Forks(function=work, content=b"").start(
            [Task(digest=f"t{n}", bundle="b", data=n) for n in range(3)]
        )
        signal.pause()

    killed = get_context("fork").Process(target=command)
    killed.start()
    send.close()
    assert [receive.recv_bytes() for _ in range(3)] == [b"runs"] * 3
    killed.kill()
    killed.join()
    # The pipe ends with the last process that holds its other end.
    assert receive.poll(PATIENCE_SECONDS)
    with pytest.raises(EOFError):
        receive.recv_bytes()


@pytest.fixture
def given_up_at_once() -> Iterator[None]:
    """Dask gives a task up that killed one worker, not four: each is a process that starts."""
    # The workers' block loads the defaults. The end of a change made before would take them away.
    with forked_dask_workers(), dask.config.set({"distributed.scheduler.allowed-failures": 0}):
        yield


def kill(_: bytes, __: object) -> None:
    """Kills its process."""
    os.kill(os.getpid(), signal.SIGKILL)


def fail(folder: bytes, _: object) -> None:
    """Fails, and leaves a line for each time that it did."""
    with (Path(folder.decode()) / "failures").open("a") as file:
        file.write("failed\n")
    raise InputError("it is wrong", place="here")


@draws.in_turn("ends")
def test_only_worker_may_die_with_all_that_was_sent(tmp_path: Path) -> None:
    tasks = [Task(digest=f"t{n}", bundle="b", data=n) for n in range(2)]
    with forked_dask_workers(), executors.opened(1, "") as executor:
        bundles = {"b": str(tmp_path).encode()}
        ended = [*executor.map(kill_the_first_time, bundles, tasks)]
    # They come as they are done.
    assert sorted((each.result, each.problem) for each in ended) == [(0, ""), (1, "")]


@draws.in_turn("ends")
def test_task_that_kills_every_worker_is_given_up(given_up_at_once: None) -> None:
    with executors.opened(1, "") as executor:
        (ended,) = executor.map(kill, {"b": b""}, [Task(digest="t", bundle="b", data=0)])
    assert "died" in ended.problem


def test_task_that_fails_is_not_run_again(tmp_path: Path) -> None:
    tasks = [Task(digest="t", bundle="b", data=0)]
    with forked_dask_workers(), executors.opened(1, "") as executor:
        (ended,) = executor.map(fail, {"b": str(tmp_path).encode()}, tasks)
    assert ended.problem == "here: it is wrong"
    assert (tmp_path / "failures").read_text() == "failed\n"


async def test_worker_that_cannot_do_it_is_told(
    events: list[Event], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(part_workers, "verify_part", kill)
    with pytest.raises(BaseExceptionGroup) as caught:
        await verify(events, 2)
    problem: BaseException = caught.value
    while isinstance(problem, BaseExceptionGroup):
        (problem,) = problem.exceptions
    assert str(problem).startswith("--processes: revisions ")
    assert "died" in str(problem)
    assert str(problem).endswith("use fewer processes, or 1, which needs the least memory")
    assert not workers_of_ours()


async def test_who_stops_waiting_leaves_no_process_behind(
    events: list[Event], monkeypatch: pytest.MonkeyPatch
) -> None:
    def wait(_: bytes, __: object) -> None:
        signal.pause()

    monkeypatch.setattr(part_workers, "verify_part", wait)

    async def stop() -> None:
        with anyio.fail_after(PATIENCE_SECONDS):
            while len(workers_of_ours()) < 2:  # noqa: ASYNC110 workers tell nobody of their start
                await anyio.sleep(0.01)  # waits: for processes that tell nobody of their start
        tasks.cancel_scope.cancel()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(stop)
        await verify(events, 3)
    assert tasks.cancel_scope.cancelled_caught
    assert not workers_of_ours()


@pytest.mark.parametrize("bytes_max", [1, 2_000])
async def test_beyond_the_bound_of_kept_events_one_process_does_all(
    events: list[Event], bytes_max: int
) -> None:
    seen: set[int] = set()
    report = await verify(
        events,
        3,
        bytes_max=bytes_max,
        kept_bytes_max=0,
        reached=lambda _: seen.update(workers_of_ours()),
    )
    assert report.agrees
    assert not seen


@pytest.mark.parametrize("kept_bytes_max", [0, 20_000])
async def test_events_beyond_those_that_are_kept_are_read_again(
    events: list[Event], kept_bytes_max: int
) -> None:
    assert sum(len(event.body) for event in events) > kept_bytes_max
    alone = await verify(events)
    for count in (1, 3):
        assert await verify(events, count, kept_bytes_max=kept_bytes_max) == alone


@pytest.mark.parametrize("kept_bytes_max", [0, BYTES_MAX])
async def test_kept_views_are_audited_beside_the_parts(
    events: list[Event], kept_bytes_max: int
) -> None:
    log, info = await history_of(events)
    views, make = MemoryViewStore(view_tables()), views_of(info.settings)
    projector = Projector(log=log, views=views, history=info.id, make=make, bounds=FoldingBounds())
    await projector.open()
    await projector.catch_up()
    whole = await verify(events)
    for count in (1, 2):
        assert whole == await verify(events, count, kept_bytes_max=kept_bytes_max, views=views)
    (claims,) = (view for view in make() if view.name == "claims")
    head = events[-1].revision
    assert await views.write(
        *(info.id, claims.name, claims.version),
        after=head,
        revision=head,
        state_hash="sha256:00",
        upserts={},
        deletes={},
    )
    altered = await verify(events, kept_bytes_max=kept_bytes_max, views=views)
    assert "view claims" in altered.chain.problem
    assert altered == await verify(events, 2, kept_bytes_max=kept_bytes_max, views=views)


async def test_fork_goes_on_with_what_it_folded_where_views_are_audited_beside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The audit makes the first part shorter, so forks fold less ahead."""
    cluster = Cluster()
    cluster.device_class()
    cluster.node("n1")
    cluster.slice("n1", 12)
    cluster.template()
    for number in range(12):
        cluster.pod(f"p{number}", template="gpu")
        cluster.wait(2)
    events = cluster.line.events

    def begin(self: PartVerifier, part: VerifiedPart) -> None:
        (tmp_path / f"from-{part.after}").touch()
        begun(self, part)

    begun = PartVerifier.begin
    monkeypatch.setattr(PartVerifier, "begin", begin)
    monkeypatch.setattr(folding_ahead, "USUAL", EVERYBODY)
    log, info = await history_of(events)
    views, make = MemoryViewStore(view_tables()), views_of(info.settings)
    projector = Projector(log=log, views=views, history=info.id, make=make, bounds=FoldingBounds())
    await projector.open()
    await projector.catch_up()
    together = await verify(events, 2, expected=len(events), views=views)
    assert together == await verify(events, views=views)
    assert len(names_in(tmp_path)) == 1


@pytest.fixture(scope="module")
def bundle(events: list[Event], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The history as a file."""
    path = tmp_path_factory.mktemp("verify") / "history.zip"

    async def write() -> None:
        log, info = await history_of(events)
        await exporting.export_history(
            log, info, BundleWriter(path), program="test", file=path.name, progress=lambda *_: None
        )

    anyio.run(write)
    return path


@draws.in_turn("ways")
def test_command_takes_a_number_of_processes_or_a_cluster(
    bundle: Path, local_cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verifying.Sharing, "__init__", _divided_anywhere(verifying.Sharing))
    address = local_cluster.scheduler.address
    answers = [
        redra("replay", bundle, "--mode", "verify", "-o", "json", *words)
        for words in (("--processes", 1), ("--processes", 3), ("--scheduler", address))
    ]
    assert [code for code, *_ in answers] == [0, 0, 0]
    assert len({out for _, out, _ in answers}) == 1
    assert redra("verify", bundle, "-o", "json", "--scheduler", address)[:2] == answers[0][:2]


@draws.in_turn("ways")
def test_command_runs_without_standard_streams(
    bundle: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run() -> None:
        for number, name in enumerate(("stdin", "stdout", "stderr")):
            os.close(number)
            setattr(sys, name, None)
        main()

    monkeypatch.setattr(verifying.Sharing, "__init__", _divided_anywhere(verifying.Sharing))
    monkeypatch.setattr(sys, "argv", ["redra", "verify", str(bundle), "--processes", "3"])
    command = get_context("fork").Process(target=run)
    command.start()
    command.join()
    assert command.exitcode == 0


def _divided_anywhere(sharing: type[Sharing]) -> Callable[..., None]:
    begin = sharing.__init__

    def init(self: Sharing, **options: Any) -> None:
        begin(self, **{**options, "division": ANYWHERE})

    return init


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--processes", "2"), "--processes: it applies to verify replays"),
        (("--scheduler", "tcp://127.0.0.1:1"), "--scheduler: it applies to verify replays"),
        (("--mode", "verify", "--processes", "0"), "Invalid value for '--processes'"),
        (("--mode", "verify", "--scheduler", "tcp://127.0.0.1:1"), "no scheduler answers"),
        (
            ("--mode", "verify", "--scheduler", "tcp://127.0.0.1:1", "--processes", "2"),
            "--processes and --scheduler cannot be combined",
        ),
    ],
)
def test_options_that_do_not_fit_are_refused(
    bundle: Path, words: tuple[str, ...], said: str
) -> None:
    code, out, error = redra("replay", bundle, *words)
    assert (code, out) == (2, "")
    assert said in error


def test_without_forks_and_dask_one_process_verifies_and_more_are_refused(
    bundle: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(executors, "find_spec", lambda _: None)
    assert redra("verify", bundle, "--processes", 2)[0] == 0
    monkeypatch.setattr(forks, "ARE_POSSIBLE", False)
    assert redra("verify", bundle)[0] == 0
    for words in (("--processes", "2"), ("--scheduler", "tcp://127.0.0.1:1")):
        code, out, error = redra("verify", bundle, *words)
        assert (code, out) == (2, "")
        cure = "pip install '.[cluster]' in the folder of redra's source"
        assert error == f"redra: {words[0]}: Dask is not installed; {cure}\n"
