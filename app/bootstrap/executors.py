"""Who runs tasks: this process, or Dask.

A task is a function of the program, the bytes of a bundle, and plain data. What travels is that;
a task that runs twice gives the same. With Dask a worker that dies loses only what it ran: its
tasks are given to others.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from app.domain.errors import InputError

Function: TypeAlias = Callable[[bytes, Any], Any]

CONNECT_SECONDS = 10
RETRIES = 3
"""How often a task is given out again whose worker died."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A task: the digest by which its result is known, the bundle that it reads, and its data."""

    digest: str
    bundle: str
    data: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """A task that ended: with its result, or with the problem in words."""

    task: Task
    result: Any = None
    problem: str = ""


class Executor(Protocol):
    """Runs tasks, in any order."""

    def map(
        self, function: Function, bundles: Mapping[str, bytes], tasks: Sequence[Task]
    ) -> Iterator[Done]:
        """Each task as it ends; `bundles` are by digest."""
        ...


class InlineExecutor:
    """One task after the other, in this process."""

    def map(
        self, function: Function, bundles: Mapping[str, bytes], tasks: Sequence[Task]
    ) -> Iterator[Done]:
        """Each task as it ends, in order."""
        for task in tasks:
            try:
                yield Done(task=task, result=function(bundles[task.bundle], task.data))
            except Exception as problem:  # one that fails does not stop the others
                yield Done(task=task, problem=_words(problem))


class DaskExecutor:
    """The workers of a Dask scheduler. Bundles are sent to each worker once."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def map(
        self, function: Function, bundles: Mapping[str, bytes], tasks: Sequence[Task]
    ) -> Iterator[Done]:
        """Each task as it ends."""
        import distributed

        as_completed: Any = distributed.as_completed
        sent = {
            digest: self._client.scatter(content, broadcast=True, hash=False)
            for digest, content in bundles.items()
        }
        futures = {
            self._client.submit(
                function, sent[task.bundle], task.data, key=task.digest, retries=RETRIES, pure=True
            ): task
            for task in tasks
        }
        for future in as_completed(list(futures), raise_errors=False):
            task = futures.pop(future)
            problem = future.exception()
            if problem is None:
                yield Done(task=task, result=future.result())
            else:
                yield Done(task=task, problem=_words(problem))
            future.release()


@contextmanager
def opened(workers: int, scheduler: str) -> Iterator[Executor]:
    """This process, `workers` local processes, or the scheduler at an address. Raises InputError.

    Local workers listen on the loopback interface only.
    """
    if not workers and not scheduler:
        yield InlineExecutor()
        return
    if workers and scheduler:
        raise InputError("a cluster is made or used, not both", place="--scheduler")
    try:
        import distributed
    except ImportError as problem:
        raise InputError(
            "Dask is not installed", place="--workers", cure="pip install 'redra[cluster]'"
        ) from problem
    # Its classes have no types.
    dask: Any = distributed
    if scheduler:
        with _client(dask.Client, scheduler) as client:
            yield DaskExecutor(client)
        return
    with (
        dask.LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            processes=True,
            host="127.0.0.1",
            dashboard_address=None,
            silence_logs=50,
        ) as cluster,
        dask.Client(cluster) as client,
    ):
        yield DaskExecutor(client)


@contextmanager
def _client(client: Any, address: str) -> Iterator[Any]:
    try:
        connected = client(address, timeout=CONNECT_SECONDS)
    except (OSError, TimeoutError, ValueError) as problem:
        raise InputError(
            f"no scheduler answers at {address!r}",
            place="--scheduler",
            cure="write tcp://HOST:PORT, as `dask scheduler` says it",
        ) from problem
    with connected:
        yield connected


def _words(problem: BaseException) -> str:
    text = str(problem).strip()
    return text if isinstance(problem, InputError) else f"{type(problem).__name__}: {text}"
