"""The process that writes the view tables beside a server: it keeps up, comes back, and goes."""

import os
import signal
import time
from contextlib import suppress
from pathlib import Path

import asyncpg
import pytest

from app.adapters.postgres.server import running_url
from tests import draws
from tests.acceptance.server_process import ServerProcess
from tests.patience import PATIENCE_SECONDS

pytestmark = [
    draws.modules_in_turn("deliveries"),
    pytest.mark.slow,
    # Only Linux tells there which processes a server has started.
    pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="children are read in /proc"),
]


def projectors(parent: int) -> list[int]:
    """The processes that write view tables for a server."""
    found = []
    for status in Path("/proc").glob("[0-9]*/status"):
        with suppress(OSError):
            process = int(status.parent.name)
            is_ours = f"\nPPid:\t{parent}\n" in status.read_text()
            if is_ours and b"project" in (status.parent / "cmdline").read_bytes().split(b"\0"):
                found.append(process)
    return found


def until(ask, what: str):
    """The first true answer."""
    end = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < end:
        if answer := ask():
            return answer
        time.sleep(0.05)  # waits: for a process that says nothing
    raise AssertionError(f"{what} did not happen")


async def rows_reach(url: str, names: set[str]) -> None:
    """Wait until the table of claims holds exactly these."""
    connection = await asyncpg.connect(url)
    try:
        end = time.monotonic() + PATIENCE_SECONDS
        found: set[str] = set()
        while time.monotonic() < end:
            rows = await connection.fetch("SELECT name FROM view_claims")
            found = {row["name"] for row in rows}
            if found == names:
                return
            await connection.fetch("SELECT pg_sleep(0.05)")  # waits: for another process's rows
        raise AssertionError(f"the table holds {found}")
    finally:
        await connection.close()


def create_claim(server: ServerProcess, name: str) -> None:
    """A claim through the API."""
    request = {"name": "r", "exactly": {"deviceClassName": "c"}}
    with server.client() as client:
        made = client.post(
            "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims",
            json={"metadata": {"name": name}, "spec": {"devices": {"requests": [request]}}},
        )
        assert made.status_code == 201, made.text


async def test_tables_are_written_by_a_process_that_comes_back(tmp_path):
    server = ServerProcess(tmp_path, REDRA_PROJECTOR="process")
    server.start()
    try:
        url = running_url(server.data / "postgres")
        create_claim(server, "one")
        await rows_reach(url, {"one"})
        (first,) = until(lambda: projectors(server.pid), "a projector")
        assert os.getpriority(os.PRIO_PROCESS, first) > os.getpriority(os.PRIO_PROCESS, server.pid)
        os.kill(first, signal.SIGKILL)
        create_claim(server, "two")
        await rows_reach(url, {"one", "two"})
        assert projectors(server.pid) != [first]
    finally:
        server.end()
    assert "ended with status -9" in server.log.read_text()


def test_projector_ends_with_a_server_that_was_killed(tmp_path):
    server = ServerProcess(tmp_path, REDRA_PROJECTOR="process")
    server.start()
    (projector,) = until(lambda: projectors(server.pid), "a projector")
    server.end(signal.SIGKILL)
    until(lambda: not alive(projector), "its end")


def alive(process: int) -> bool:
    """False for one that is gone or only waits to be asked how it ended."""
    try:
        status = Path(f"/proc/{process}/status").read_text()
    except OSError:
        return False
    return "\nState:\tZ" not in status
