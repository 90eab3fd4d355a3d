"""Executors of tasks: this process, or Dask.

A task is a function of the program, the bytes of a bundle, and plain data; only these are sent. A
task that runs twice gives the same result. When a Dask worker dies, only its running tasks are
lost, and they are given to other workers.
"""

import multiprocessing
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from multiprocessing import forkserver
from typing import Any, Protocol, TypeAlias
from urllib.parse import urlsplit

from app.domain.errors import InputError

Function: TypeAlias = Callable[[Any, Any], Any]


CONNECT_SECONDS = 10
START_SECONDS = 300
"""The longest wait for the first worker, which may be starting on a busy machine."""
SWITCH_SECONDS = 0.0005
"""The longest turn of a thread while another one waits, used while local workers run."""
LOST_MAX = 3
"""The most times that bundles are sent again after all workers that held them have died."""

_TOPIC = "redra"
_LOCAL: dict[str, object] = {
    # Status pages would be open to every user of the machine.
    **{f"distributed.{part}.http.routes": [] for part in ("scheduler", "worker")},
    # Nobody sees the profile that each worker takes of itself a hundred times a second.
    "distributed.worker.profile.enabled": False,
    # Nor the times for which each loop was late, measured fifty times a second.
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.system-monitor.interval": "5s",
    # Every worker reads the bundle for every task: a copy that is dropped is fetched again.
    "distributed.scheduler.active-memory-manager.start": False,
}
"""The settings of a cluster of local workers."""

_SAFE_PATH = "PYTHONSAFEPATH"
_LOADED = "distributed.nanny"
"""The module of Dask that a worker process loads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A task: the digest that identifies its result, the bundle that it reads, and its data."""

    digest: str
    bundle: str
    data: Any


OnMessage: TypeAlias = Callable[[Task, Any], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """A task that has ended, with its result, or with its problem as text."""

    task: Task
    result: Any = None
    problem: str = ""


class Executor(Protocol):
    """Runs tasks, in any order, `width` of them at once."""

    @property
    def width(self) -> int: ...

    def map(
        self,
        function: Function,
        bundles: Mapping[str, bytes],
        tasks: Sequence[Task],
        on_message: OnMessage | None = None,
    ) -> Iterator[Done]:
        """Run tasks and yield each as it ends; `bundles` maps digests to contents.

        A bundle that was sent before may be missing. `on_message` is called, in a separate thread,
        with the messages that tasks send with `send_message`.
        """
        ...


def run_here(function: Function, content: Any, task: Task) -> Done:
    """Run a task in this process; a failed task does not stop the others."""
    try:
        return Done(task=task, result=function(content, task.data))
    except Exception as problem:
        return Done(task=task, problem=_words(problem))


class InlineExecutor:
    """Runs tasks one after the other in this process."""

    width = 1

    def __init__(self) -> None:
        self._bundles: dict[str, bytes] = {}

    def map(
        self,
        function: Function,
        bundles: Mapping[str, bytes],
        tasks: Sequence[Task],
        on_message: OnMessage | None = None,
    ) -> Iterator[Done]:
        """Run tasks and yield each as it ends, in order."""
        self._bundles |= bundles
        for task in tasks:
            yield run_here(function, self._bundles[task.bundle], task)


class DaskExecutor:
    """Runs tasks on the workers of a Dask scheduler. Bundles are sent to each worker once."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._contents: dict[str, bytes] = {}
        self._sent: dict[str, Any] = {}

    @property
    def width(self) -> int:
        """The present number of workers."""
        return len(self._client.nthreads())

    def map(
        self,
        function: Function,
        bundles: Mapping[str, bytes],
        tasks: Sequence[Task],
        on_message: OnMessage | None = None,
    ) -> Iterator[Done]:
        """Run tasks and yield each as it ends. Raises InputError when there is no worker."""
        self._contents |= bundles
        if on_message is None:
            yield from self._mapped(function, tasks)
            return
        by_digest = {task.digest: task for task in tasks}

        def hear(event: tuple[float, tuple[str, Any]]) -> None:
            digest, message = event[1]
            # Other programs may use the same scheduler.
            if digest in by_digest:
                on_message(by_digest[digest], message)

        self._client.subscribe_topic(_TOPIC, hear)
        try:
            yield from self._mapped(function, tasks)
        finally:
            self._client.unsubscribe_topic(_TOPIC)

    def _mapped(self, function: Function, tasks: Sequence[Task]) -> Iterator[Done]:
        import distributed

        as_completed: Any = distributed.as_completed
        for _ in range(LOST_MAX + 1):
            self._send({task.bundle for task in tasks})
            futures = {self._submit(function, task): task for task in tasks}
            lost: list[Task] = []
            for future in as_completed(list(futures), loop=self._client.loop, raise_errors=False):
                task = futures.pop(future)
                done = _done(future, task)
                if done is None:
                    lost.append(task)
                else:
                    yield done
                future.release()
            if not lost:
                return
            tasks = lost
            self._sent.clear()
        for task in tasks:
            yield Done(task=task, problem=f"its workers died {LOST_MAX + 1} times")

    def _send(self, digests: set[str]) -> None:
        unsent = digests - self._sent.keys()
        if unsent:
            self._wait()
        for digest in unsent:
            content = self._contents[digest]
            self._sent[digest] = self._client.scatter(content, broadcast=True, hash=False)

    def _wait(self) -> None:
        """Wait for a worker, longer than Dask's own limit, the timeout of a connection."""
        try:
            self._client.wait_for_workers(1, timeout=START_SECONDS)
        except TimeoutError as problem:
            raise InputError(
                f"no worker has started within {START_SECONDS} seconds",
                place="workers",
                cure="use fewer processes, or none beside this one",
            ) from problem

    def _submit(self, function: Function, task: Task) -> Any:
        sent = self._sent[task.bundle]
        return self._client.submit(function, sent, task.data, key=task.digest, pure=True)


def _done(future: Any, task: Task) -> Done | None:
    """The result of a task; None when it was cancelled because no living worker had the bundle."""
    try:
        if future.cancelled():
            return None
        if problem := future.exception():
            return Done(task=task, problem=_words(problem))
        return Done(task=task, result=future.result())
    except CancelledError:  # its worker died after the task had ended
        return None


def send_message(message: Any) -> None:
    """Send a progress message of a task to its caller; does nothing outside of workers."""
    if _Sender.by is not None:
        _Sender.by(message)
        return
    dask: Any = sys.modules.get("distributed")
    if dask is None:
        return
    try:
        worker = dask.get_worker()
    except ValueError:
        return
    worker.log_event(_TOPIC, (worker.get_current_task(), message))


class _Sender:
    """The function with which a worker process sends messages; None in other processes."""

    by: Callable[[Any], None] | None = None


def send_messages_by(send: Callable[[Any], None]) -> None:
    """Send the messages of tasks that run in this process with `send` from now on."""
    _Sender.by = send


def is_installed() -> bool:
    """Whether Dask is installed, without loading it."""
    return find_spec("distributed") is not None


def check_installed(option: str) -> None:
    """Raise InputError when Dask is not installed."""
    if not is_installed():
        cure = "pip install '.[cluster]' in the folder of redra's source"
        raise InputError("Dask is not installed", place=option, cure=cure)


def check_workers(workers: int, scheduler: str) -> None:
    """Raise InputError for workers that cannot be opened, before a long history is read for them.

    Whether a Dask scheduler answers is found out by `opened`; here, whether anybody listens there.
    """
    if workers and scheduler:
        raise InputError("--workers and --scheduler cannot be combined", place="--scheduler")
    if workers or scheduler:
        check_installed("--scheduler" if scheduler else "--workers")
    if scheduler:
        with _refused(scheduler):
            _check_listening(scheduler)


def load_ahead(modules: Sequence[str]) -> None:
    """Load modules for the local workers of this process in another process, from now on.

    Workers are forks of it: each has the modules at once, and they are loaded while this process
    does its own work. On other systems than Linux, and after the first call, nothing is done.
    """
    if sys.platform == "linux":
        multiprocessing.get_context("forkserver").set_forkserver_preload([_LOADED, *modules])
        with _installed_modules_only():
            forkserver.ensure_running()


@contextmanager
def _installed_modules_only() -> Iterator[None]:
    """Let interpreters that are started in the block import nothing from the present folder.

    The forkserver would load a folder `app` that happens to be there in place of redra's.
    """
    before = os.environ.get(_SAFE_PATH)
    os.environ[_SAFE_PATH] = "1"
    try:
        yield
    finally:
        del os.environ[_SAFE_PATH]
        if before is not None:
            os.environ[_SAFE_PATH] = before


class OnDemand:
    """The workers of a command; local ones are started when they are first needed.

    `modules` are loaded for them.
    """

    def __init__(
        self, workers: int, scheduler: str, stack: ExitStack, modules: Sequence[str] = ()
    ) -> None:
        self._workers = workers
        self._modules = modules
        self._scheduler = scheduler
        self._stack = stack
        self._executor: Executor | None = None

    @property
    def is_open(self) -> bool:
        """Whether the workers have been needed so far."""
        return self._executor is not None

    @property
    def width(self) -> int:
        """The number of workers, now or once they are started."""
        if self._executor is None and not self._scheduler:
            return max(self._workers, 1)
        return self.executor.width

    @property
    def executor(self) -> Executor:
        """The executor; it is opened on first use. Raises InputError."""
        if self._executor is None:
            if self._workers:
                load_ahead(self._modules)
            self._executor = self._stack.enter_context(opened(self._workers, self._scheduler))
        return self._executor


@contextmanager
def on_demand(workers: int, scheduler: str, modules: Sequence[str] = ()) -> Iterator[OnDemand]:
    """Like `opened`, but local workers start when they are first needed. Raises InputError.

    `modules` are loaded for local workers. Settings that cannot make workers are refused at once,
    as is a scheduler that does not answer.
    """
    with ExitStack() as stack:
        there = OnDemand(workers, scheduler, stack, modules)
        check_workers(workers, scheduler)
        if scheduler:
            _ = there.executor
        yield there


@contextmanager
def opened(workers: int, scheduler: str, *, waits: bool = True) -> Iterator[Executor]:
    """Open this process, `workers` local processes, or a scheduler's address as an executor.

    Without `waits`, local workers may still be starting; tasks wait for them. Raises InputError.

    Local workers listen on the loopback interface only, and serve this process alone: a client that
    can connect runs code as their user, so connections need a certificate made for this cluster.
    """
    if not workers and not scheduler:
        yield InlineExecutor()
        return
    check_workers(workers, scheduler)
    if workers:
        load_ahead(())
    import distributed
    from dask import config

    # Dask's classes have no types.
    dask: Any = distributed
    configuration: Any = config
    if scheduler:
        with closing(_connected(dask.Client, scheduler)) as client:
            _wait_for_worker(client, scheduler)
            yield DaskExecutor(client)
        return
    with ExitStack() as stack:
        stack.enter_context(configuration.set(_LOCAL | _starts()))
        stack.enter_context(_often_switching())
        with _interrupted_afterwards():
            cluster = stack.enter_context(
                dask.LocalCluster(
                    n_workers=workers if waits else 0,
                    threads_per_worker=1,
                    processes=True,
                    host="127.0.0.1",
                    protocol="tls://",
                    security=dask.Security.temporary(),
                    # Any free port: two clusters may run at once, and each serves HTTP.
                    dashboard_address="127.0.0.1:0",
                    silence_logs=50,
                    # Otherwise a worker that holds more than its share of the memory is ended.
                    memory_limit=0,
                )
            )
            client = stack.enter_context(closing(dask.Client(cluster, set_as_default=False)))
        if not waits:
            cluster.scale(workers)
        yield DaskExecutor(client)


def _starts() -> dict[str, object]:
    """The setting of Dask that says how worker processes are started."""
    is_loaded = sys.platform == "linux"
    return {"distributed.worker.multiprocessing-method": "forkserver" if is_loaded else "spawn"}


@contextmanager
def _interrupted_afterwards() -> Iterator[None]:
    """Let an interrupt from the terminal wait for the end of a block, which takes seconds.

    Dask cannot close a cluster whose workers are still starting, and prints tracebacks.
    """
    before = signal.getsignal(signal.SIGINT)
    if not callable(before) or threading.current_thread() is not threading.main_thread():
        yield
        return
    signals: list[int] = []

    def wait(number: int, _frame: object) -> None:
        signals.append(number)

    signal.signal(signal.SIGINT, wait)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if signals:
        before(signals[0], None)


@contextmanager
def _often_switching() -> Iterator[None]:
    """Let threads take turns often; the thread of Dask needs many short turns beside computation.

    With Python's own interval each of these turns waits 5 ms for a thread that computes.
    """
    before = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_SECONDS)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def _check_listening(address: str) -> None:
    """Raise OSError or ValueError when no server listens at the address.

    A Dask client that cannot connect is left half-made, and logs errors when it is collected.
    """
    parts = urlsplit(address)
    if parts.scheme in ("tcp", "tls"):
        place = (parts.hostname or "", parts.port or 0)
        socket.create_connection(place, timeout=CONNECT_SECONDS).close()
    elif not parts.scheme or not parts.netloc:
        raise ValueError(address)


def _connected(client: Any, address: str) -> Any:
    with _refused(address):
        return client(address, timeout=CONNECT_SECONDS, set_as_default=False)


@contextmanager
def _refused(address: str) -> Iterator[None]:
    """Raise InputError where the address cannot be used."""
    try:
        yield
    # A TypeError means that there is no certificate for an address with TLS.
    except (OSError, TimeoutError, ValueError, TypeError) as problem:
        raise InputError(
            f"no scheduler answers at {address!r}",
            place="--scheduler",
            cure="write tcp://HOST:PORT, as `dask scheduler` prints it",
        ) from problem


def _wait_for_worker(client: Any, address: str) -> None:
    try:
        client.wait_for_workers(1, timeout=CONNECT_SECONDS)
    except TimeoutError as problem:
        raise InputError(
            f"the scheduler at {address!r} has no worker",
            place="--scheduler",
            cure="start one: `dask worker` with the scheduler's address",
        ) from problem


def _words(problem: BaseException) -> str:
    text = str(problem).strip()
    if type(problem).__name__ == "KilledWorker":
        return "each worker that ran it died, perhaps for lack of memory"
    return text if isinstance(problem, InputError) else f"{type(problem).__name__}: {text}"
