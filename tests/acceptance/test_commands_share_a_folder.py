"""Commands at the same time on one data folder, each a process of its own, without a server."""

import os
import re
import signal
import socket
import time
from pathlib import Path

import httpx
import pytest

from app.adapters.postgres import server_folder
from app.adapters.postgres.server import EmbeddedServer, ServerBounds
from tests import draws
from tests.acceptance.server_process import ServerProcess
from tests.command_line import ROOT, redra
from tests.patience import PATIENCE_SECONDS
from tests.prepared_data import prepare
from tests.redra_process import RedraProcess

RECORDING = ROOT / "examples" / "recordings" / "maintenance"

pytestmark = pytest.mark.database


def begin(data: Path, *words: str) -> RedraProcess:
    return RedraProcess([*words, "--data", data])


def ended(process: RedraProcess) -> tuple[int | None, str]:
    out, error = process.communicate(timeout=120)
    return process.returncode, error or ("" if out else "it said nothing")


@draws.in_turn("ways")
def test_commands_wait_for_each_other(tmp_path: Path) -> None:
    data = tmp_path / "data"
    prepare(data, recorded=True)
    for _ in draws.seeds(1):
        # The first to come runs the database; it ends while others use it.
        together = [
            begin(data, "histories"),
            begin(data, "why", "pod/n-3", "-n", "taints", "--history", "prod", "--at", "369"),
            begin(data, "timeline", "prod"),
        ]
        assert [ended(process) for process in together] == [(0, "")] * 3


@draws.in_turn("ways")
def test_commands_wait_while_the_database_is_made(tmp_path: Path) -> None:
    data = tmp_path / "data"
    together = [begin(data, "import", str(RECORDING), "--history", name) for name in ("one", "two")]
    said = [process.communicate(timeout=240) for process in together]
    assert [process.returncode for process in together] == [0, 0], said
    code, out, _ = redra("histories", data=data)
    assert code == 0
    assert out.split().count("one") == out.split().count("two") == 1


@draws.in_turn("ways")
def test_server_that_begins_to_stop_says_so_while_it_ends_its_requests(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path)
    server.start()
    folder = server.data / "postgres"
    begun = b"POST /api/v1/namespaces HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n{"
    with socket.create_connection(("127.0.0.1", server.port)) as client:
        client.sendall(begun)
        assert server_folder.owner_stays(folder)
        os.kill(server.pid, signal.SIGTERM)
        deadline = time.monotonic() + PATIENCE_SECONDS
        while server_folder.owner_stays(folder) and time.monotonic() < deadline:
            time.sleep(0.01)  # waits: for the signal
        is_running = server_folder.running_url(folder) is not None
    server.wait_exit()
    assert is_running


@draws.in_turn("ways")
@pytest.mark.parametrize("stays", [False, True], ids=["a command", "a server that stops"])
def test_server_does_not_share_the_database_of_a_process_that_ends_soon(
    tmp_path: Path, stays: bool
) -> None:
    server = ServerProcess(tmp_path)
    prepare(server.data)
    command = EmbeddedServer(server.data / "postgres", stays=stays)
    command.start()
    command.leave()
    try:
        starting = begin(server.data, "up", "--listen", "127.0.0.1:0")
        assert starting.stderr is not None
        assert "waiting: the folder is in use by process" in starting.stderr.readline()
    finally:
        command.stop()
    assert starting.stdout is not None
    assert "redra serves at" in starting.stdout.readline()
    assert server_folder.owner_stays(server.data / "postgres")
    starting.terminate()
    starting.communicate(timeout=30)
    assert starting.returncode == 0


@draws.in_turn("ways")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL], ids=["stopped", "killed"])
def test_server_runs_the_database_on_when_its_owner_ends(tmp_path: Path, number: int) -> None:
    owner = ServerProcess(tmp_path)
    prepare(owner.data)
    owner.start()
    folder = owner.data / "postgres"
    other = begin(owner.data, "up", "--listen", "127.0.0.1:0")
    try:
        assert other.stdout is not None
        url = re.search(r"redra serves at (\S+)", other.stdout.readline())
        assert url is not None
        os.kill(owner.pid, number)
        owner.wait_exit()
        made = {"metadata": {"name": "after"}}
        deadline = time.monotonic() + PATIENCE_SECONDS
        with httpx.Client(base_url=url[1], timeout=PATIENCE_SECONDS) as client:
            while True:
                answer = client.post("/api/v1/namespaces", json=made)
                if answer.status_code != 503 or time.monotonic() > deadline:
                    break
                time.sleep(0.1)  # waits: for a process that tells nobody
            assert answer.status_code == 201, answer.text
            assert client.get("/api/v1/namespaces/after").status_code == 200
        assert server_folder.owner_stays(folder)
    finally:
        other.terminate()
        other.communicate(timeout=PATIENCE_SECONDS)
    assert other.returncode == 0
    assert server_folder.running_url(folder) is None


@draws.in_turn("ways")
def test_owner_waits_for_users_a_bounded_time(tmp_path: Path) -> None:
    prepare(tmp_path)
    folder = tmp_path / "postgres"
    server = EmbeddedServer(folder, bounds=ServerBounds(users_seconds=0.2))
    server.start()
    users = server_folder.use(folder)
    assert users is not None
    server.stop()
    assert server_folder.running_url(folder) is None
    os.close(users)


def test_folder_that_stays_in_use_is_refused_in_the_end(tmp_path: Path) -> None:
    folder = tmp_path / "postgres"
    folder.mkdir(parents=True)
    lock = server_folder.take_lock(folder, 0)
    server_folder.note_owner(folder, folder / "run")
    try:
        code, out, error = redra("histories", data=tmp_path, REDRA_FOLDER_WAIT_SECONDS="0.2")
    finally:
        os.close(lock)
    assert (code, out) == (2, "")
    assert f"the folder is in use by process {os.getpid()}" in error
