"""Local worker processes serve the process that started them, and nobody else on the machine."""

import io
import multiprocessing
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from multiprocessing import forkserver
from pathlib import Path
from typing import Any
from unittest import mock

import distributed
import pytest
from distributed import Security
from distributed.comm import connect

import app
from app.bootstrap import executors
from app.domain.errors import InputError
from tests import draws
from tests.redra_process import forked_dask_workers


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """What a command with `--workers 1` starts."""
    with forked_dask_workers(), executors.opened(1, "") as executor:
        yield executor._client.cluster  # type: ignore[attr-defined]  # the port of Dask's own is no part of the protocol


@pytest.mark.parametrize("scheme", ["tcp", "tls"])
async def test_client_without_the_certificate_of_the_cluster_is_not_let_in(
    cluster: Any, scheme: str
) -> None:
    address = f"{scheme}://{cluster.scheduler_address.rpartition('/')[2]}"
    stranger = Security.temporary().get_connection_args("client") if scheme == "tls" else {}
    with pytest.raises(OSError):
        await connect(address, timeout=3, **stranger)


def test_every_process_wants_a_certificate(cluster: Any) -> None:
    nannies = cluster.workers.values()
    addresses = [cluster.scheduler_address]
    addresses += [place for nanny in nannies for place in (nanny.address, nanny.worker_address)]
    assert len(addresses) == 3
    assert all(address.startswith("tls://127.0.0.1:") for address in addresses)


def test_pages_about_the_work_are_not_served(cluster: Any) -> None:
    port = cluster.scheduler.http_server.port
    for path in ("/json/identity.json", "/info/main/workers.html", "/metrics"):
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10)


@pytest.mark.skipif(sys.platform != "linux", reason="a fork is safe there only")
def test_worker_is_a_fork_of_the_process_that_has_loaded_its_modules(cluster: Any) -> None:
    """Loading them in each worker takes longer than many a run."""
    (worker,) = cluster.workers.values()
    forkserver.ensure_running()  # it runs, so that this only says where
    context = multiprocessing.get_context("forkserver")
    is_seen = context.Event()
    parent = context.Process(target=is_seen.wait)
    parent.start()
    try:
        assert _parent_of(worker.pid) == _parent_of(parent.pid) != os.getpid()
    finally:
        is_seen.set()
        parent.join()


ASKING = """\
import multiprocessing, runpy
from app.bootstrap import executors

if __name__ == "__main__":
    executors._LOADED = "json"
    executors.load_ahead(["app.bootstrap.executors"])
    context = multiprocessing.get_context("forkserver")
    worker = context.Process(target=runpy.run_path, args=("shown.py",))
    worker.start()
    worker.join()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="workers are no forks elsewhere")
def test_workers_do_not_load_a_package_of_the_folder_they_start_in(tmp_path: Path) -> None:
    """Many a folder has an `app`, and the process of forks would look there first."""
    for folder, file, text in (
        ("command", "asking.py", ASKING),
        ("work", "shown.py", "import sys; print(sys.modules['app'].__file__)"),
        ("work/app", "__init__.py", "print('loaded')"),
    ):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / file).write_text(text)
    command = [sys.executable, str(tmp_path / "command/asking.py")]
    done = subprocess.run(
        command, cwd=tmp_path / "work", capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == (f"{app.__file__}\n", "")


def _parent_of(pid: int | None) -> int:
    fields = Path(f"/proc/{pid}/stat").read_text()
    return int(fields.rpartition(")")[2].split()[1])


def _itself(content: bytes, data: Any) -> Any:
    return content, data


TASK = executors.Task(digest="one", bundle="digest", data=1)


@draws.in_turn("ways")
def test_tasks_wait_for_workers_that_start_slowly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Longer than a connection may take, after which Dask itself gives up.

    The workers start when the executor waits for them, so that none is there before.
    """
    scale = distributed.LocalCluster.scale
    starts: list[Callable[[], object]] = []
    monkeypatch.setattr(
        distributed.LocalCluster, "scale", lambda *words: starts.append(partial(scale, *words))
    )
    with forked_dask_workers(), executors.opened(1, "", waits=False) as executor:
        client = executor._client  # type: ignore[attr-defined]  # Dask's own bound is no part of the protocol
        wait = client.wait_for_workers

        def start_and_wait(*words: object, **options: object) -> None:
            monkeypatch.undo()
            starts.pop()()
            wait(*words, **options)

        monkeypatch.setattr(client, "wait_for_workers", start_and_wait)
        # Only here: the end of a client is bounded by its double.
        with mock.patch.object(client, "_timeout", 0.01):
            (done,) = executor.map(_itself, {"digest": b"content"}, [TASK])
    assert done.result == (b"content", 1)
    assert not starts


def test_workers_that_do_not_start_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(distributed.LocalCluster, "scale", lambda *_: None)
    monkeypatch.setattr(executors, "START_SECONDS", 0.01)
    with (
        forked_dask_workers(),
        executors.opened(1, "", waits=False) as executor,
        pytest.raises(InputError, match=r"no worker has started within 0\.01 seconds"),
    ):
        list(executor.map(_itself, {"digest": b"content"}, [TASK]))


def test_interrupt_waits_until_workers_can_be_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A command that is interrupted while its workers start ends without a traceback of Dask."""
    steps: list[str] = []

    @contextmanager
    def start(*_: object, **__: object) -> Iterator[None]:
        os.kill(os.getpid(), signal.SIGINT)
        steps.append("started")
        try:
            yield
        finally:
            steps.append("closed")

    monkeypatch.setattr(distributed, "LocalCluster", start)
    monkeypatch.setattr(distributed, "Client", lambda *_, **__: io.BytesIO())
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt), executors.opened(1, ""):
            steps.append("used")
    finally:
        signal.signal(signal.SIGINT, before)
    assert steps == ["started", "closed"]
