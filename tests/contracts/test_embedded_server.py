"""The embedded server, with real processes: starts, stops, crashes, identities, refusals."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import anyio
import asyncpg
import pytest

from app.adapters.postgres import binaries, server_folder
from app.adapters.postgres.server import EmbeddedServer, ServerBounds, running_url
from app.domain.errors import InputError, LogUnavailable
from tests import draws
from tests.conftest import say
from tests.shared_data import REPOSITORY

pytestmark = pytest.mark.database

SOON = 30.0
"""Bound for what happens at once on a busy machine."""

IS_ROOT = os.geteuid() == 0
needs_root = pytest.mark.skipif(not IS_ROOT, reason="only root may become another user")


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that other users can reach too (pytest's own are closed to them), in memory when
    there is room: each of these tests makes 40 MB of files."""
    memory = Path("/dev/shm")
    has_room = memory.is_dir() and shutil.disk_usage(memory).free > 1 << 30
    place = Path(tempfile.mkdtemp(prefix="redra-test-", dir=memory if has_room else None))
    place.chmod(0o755)
    yield place / "server"
    shutil.rmtree(place)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of a database that was made, used and ended once for all tests."""
    with EmbeddedServer(tmp_path_factory.mktemp("made") / "server") as server:
        assert ask(maintenance(server), "SELECT 1") == 1
        return server.data


@pytest.fixture
def made(folder: Path, files: Path) -> None:
    """The folder holds a database already: to make one takes longer than to start it."""
    folder.mkdir(mode=0o700)
    shutil.copytree(files, folder / "data")


def postmaster(server: EmbeddedServer) -> int:
    pid = server_folder.postmaster(server.data)
    assert pid is not None
    return pid


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def wait_until(claim: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + SOON
    while not claim():
        assert time.monotonic() < deadline, f"still not: {what}"
        time.sleep(0.005)  # waits: for another process


def ask(url: str, question: str) -> object:
    async def answer() -> object:
        connection = await asyncpg.connect(url)
        try:
            return await connection.fetchval(question)
        finally:
            await connection.close()

    return anyio.run(answer)


async def copy_in(url: str, rows: list[tuple[str, str]]) -> None:
    """Copy rows into the table `rows`."""
    connection = await asyncpg.connect(url)
    try:
        await connection.copy_records_to_table("rows", records=rows)
    finally:
        await connection.close()


def maintenance(server: EmbeddedServer) -> str:
    return server.url.replace("/redra?", "/postgres?")


@draws.in_turn("ways")
async def test_server_is_private_and_safe(folder: Path):
    async with EmbeddedServer(folder) as server:
        connection = await asyncpg.connect(server.url)
        for name, value in (
            ("fsync", "on"),
            ("synchronous_commit", "on"),
            ("listen_addresses", ""),
        ):
            assert await connection.fetchval(f"SHOW {name}") == value
        assert await connection.fetchval("SELECT current_database()") == "redra"
        await connection.close()
        for place in (folder, folder / "data", folder / "run"):
            assert place.stat().st_mode & 0o077 == 0


@draws.in_turn("ways")
@pytest.mark.usefixtures("made")
def test_stop_leaves_no_process_and_the_data(folder: Path):
    with EmbeddedServer(folder) as server:
        anyio.run(say, maintenance(server), "CREATE TABLE kept AS SELECT 7 AS number")
        pids = [postmaster(server), server.guardian_pid]
    assert not any(is_alive(pid) for pid in pids)
    assert running_url(folder) is None
    with EmbeddedServer(folder) as server:
        assert ask(maintenance(server), "SELECT number FROM kept") == 7


@draws.in_turn("ways")
def test_two_run_side_by_side(folder: Path):
    with EmbeddedServer(folder / "one") as one, EmbeddedServer(folder / "two") as two:
        question = "SELECT setting FROM pg_settings WHERE name = 'data_directory'"
        assert ask(maintenance(one), question) == str(one.data)
        assert ask(maintenance(two), question) == str(two.data)


@draws.in_turn("ways")
@pytest.mark.usefixtures("made")
def test_other_commands_find_the_running_server(folder: Path):
    assert running_url(folder) is None
    with EmbeddedServer(folder) as server:
        assert running_url(folder) == server.url


@pytest.mark.usefixtures("made")
def test_second_owner_is_refused_and_told_who_is_first(folder: Path):
    with EmbeddedServer(folder) as server:
        with pytest.raises(InputError, match=f"in use by process {os.getpid()}; stop it first"):
            EmbeddedServer(folder).start()
        assert ask(maintenance(server), "SELECT 1") == 1


@pytest.mark.usefixtures("made")
def test_killed_postmaster_is_started_again_with_what_was_committed(folder: Path):
    with EmbeddedServer(folder) as server:
        anyio.run(say, maintenance(server), "CREATE TABLE kept AS SELECT 7 AS number")
        old = postmaster(server)
        os.kill(old, signal.SIGKILL)
        wait_until(
            lambda: (
                server_folder.postmaster(server.data) not in (None, old)
                and server_folder.is_ready(server.data)
            ),
            "ready again",
        )
        assert ask(maintenance(server), "SELECT number FROM kept") == 7


@pytest.mark.usefixtures("made")
def test_killed_guardian_takes_the_server_with_it(folder: Path):
    server = EmbeddedServer(folder)
    server.start()
    pid = postmaster(server)
    os.kill(server.guardian_pid or 0, signal.SIGKILL)
    wait_until(lambda: not is_alive(pid), "the server has ended")
    server.stop()
    with EmbeddedServer(folder):
        pass


@draws.in_turn("ends")
@pytest.mark.usefixtures("made")
def test_killed_owner_leaves_no_orphan_and_the_folder_free(folder: Path):
    owner, guardian = started_owner(folder)
    pid = server_folder.postmaster(folder / "data")
    assert pid is not None
    owner.kill()
    owner.communicate()
    # Starting at once waits for the end of the old server instead of failing.
    with EmbeddedServer(folder) as server:
        assert postmaster(server) != pid
        assert not is_alive(guardian)
        assert not is_alive(pid)


@draws.in_turn("ends")
@pytest.mark.usefixtures("made")
def test_everything_killed_at_once_can_be_started_again(folder: Path):
    owner, guardian = started_owner(folder)
    pid = server_folder.postmaster(folder / "data")
    assert pid is not None
    # Neither may act when it sees another one end: the server would remove its file.
    for each in (owner.pid, guardian):
        os.kill(each, signal.SIGSTOP)
    for victim in (pid, guardian):
        os.kill(victim, signal.SIGKILL)
    owner.kill()
    owner.communicate()
    assert (folder / "data" / "postmaster.pid").exists()
    with EmbeddedServer(folder) as server:
        assert ask(maintenance(server), "SELECT 1") == 1


@pytest.mark.usefixtures("made")
def test_folder_of_a_living_owner_is_refused_across_processes(folder: Path):
    owner, _ = started_owner(folder)
    try:
        with pytest.raises(InputError, match=f"in use by process {owner.pid}"):
            EmbeddedServer(folder).start()
    finally:
        owner.kill()
        owner.communicate()
    with EmbeddedServer(folder):
        pass


def started_owner(folder: Path) -> tuple[subprocess.Popen[str], int]:
    owner = subprocess.Popen(
        [sys.executable, "-m", "tests.contracts.owner", str(folder)],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert owner.stdout is not None
    word, guardian = owner.stdout.readline().split()
    assert word == "ready"
    return owner, int(guardian)


@pytest.mark.usefixtures("made")
def test_pid_file_that_names_a_stranger_does_not_matter(folder: Path):
    with EmbeddedServer(folder) as server:
        text = (server.data / "postmaster.pid").read_text().splitlines()
    (server.data / "postmaster.pid").write_text("\n".join([str(os.getpid()), *text[1:]]) + "\n")
    (server.data / "postmaster.pid").chmod(0o600)
    with EmbeddedServer(folder):
        pass


@draws.in_turn("ways")
def test_half_made_data_is_made_anew(folder: Path):
    (folder / "data.new" / "base").mkdir(parents=True)
    (folder / "data.new" / "PG_VERSION").write_text("18\n")
    with EmbeddedServer(folder) as server:
        assert ask(maintenance(server), "SELECT 1") == 1


@draws.in_turn("ways")
def test_long_path_gets_a_socket_elsewhere_that_is_removed(folder: Path):
    long = folder / ("x" * 120)
    with EmbeddedServer(long) as server:
        assert ask(maintenance(server), "SELECT 1") == 1
        socket = Path(server.url.partition("host=")[2].replace("%2F", "/"))
        assert long not in socket.parents
        assert socket.stat().st_mode & 0o077 == 0
        assert running_url(long) == server.url
    assert not socket.exists()


def test_socket_folder_prepared_by_somebody_else_is_not_used(folder: Path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(folder.parent))
    monkeypatch.setattr(tempfile, "tempdir", None)
    long = folder / ("x" * 120)
    identity = binaries.identities()[0]
    long.mkdir(parents=True)
    expected = server_folder.make_socket_folder(long, identity)
    expected.chmod(0o777)
    assert server_folder.make_socket_folder(long, identity) != expected


def test_missing_programs_are_named_with_the_cure(folder: Path, tmp_path: Path):
    with pytest.raises(LogUnavailable, match=r"no programs of PostgreSQL 15 or newer .*pixeltable"):
        EmbeddedServer(folder, programs=tmp_path).start()


def test_data_of_another_major_version_is_named(folder: Path):
    (folder / "data").mkdir(parents=True)
    (folder / "data" / "PG_VERSION").write_text("9.6\n")
    with pytest.raises(LogUnavailable, match=r"no programs of PostgreSQL 9 \(which made"):
        EmbeddedServer(folder).start()


@pytest.mark.usefixtures("made")
def test_server_that_cannot_start_is_quoted(folder: Path):
    with EmbeddedServer(folder) as server:
        pass
    (server.data / "global" / "pg_control").unlink()
    with pytest.raises(LogUnavailable, match=r"ended while starting: .*pg_control"):
        EmbeddedServer(folder).start()


@pytest.mark.usefixtures("made")
def test_data_that_others_may_read_is_named_with_the_mode_it_needs(folder: Path):
    (folder / "data").chmod(0o755)
    with pytest.raises(LogUnavailable, match=rf"chmod 0700 {folder / 'data'}"):
        EmbeddedServer(folder).start()


@pytest.mark.usefixtures("made")
def test_log_of_the_server_has_causes_of_failed_statements_and_no_values(folder: Path):
    rows = "CREATE TABLE rows (name text PRIMARY KEY, body text CHECK (body <> 'hidden-1'))"
    failing = [
        "INSERT INTO rows VALUES ('hidden-2', 'hidden-1')",
        "INSERT INTO rows VALUES ('hidden-3', ''), ('hidden-3', '')",
        "DO $$ BEGIN EXECUTE 'INSERT INTO rows VALUES (''hidden-4'', ''hidden-1'')'; END $$",
    ]
    with EmbeddedServer(folder) as server:
        anyio.run(say, maintenance(server), rows)
        for statement in failing:
            with pytest.raises(asyncpg.IntegrityConstraintViolationError):
                anyio.run(say, maintenance(server), statement)
        with pytest.raises(asyncpg.IntegrityConstraintViolationError):
            anyio.run(copy_in, maintenance(server), [("hidden-5", "hidden-1")])
        log = server.log_path.read_text()
    assert log.count("violates check constraint") == 3
    assert log.count("violates unique constraint") == 1
    assert "hidden" not in log


def test_folder_that_cannot_be_made_is_named(tmp_path: Path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"cannot be made.*choose another with --data"):
        EmbeddedServer(tmp_path / "file" / "below").start()


@draws.in_turn("ways")
@pytest.mark.parametrize("version", [15, 16, 17])
def test_other_major_versions_serve_too(folder: Path, version: int):
    found = binaries.find(version=version)
    if not found:
        pytest.skip(f"no programs of PostgreSQL {version} are installed here")
    with EmbeddedServer(folder, programs=found[0].folder) as server:
        assert str(ask(maintenance(server), "SHOW server_version")).startswith(f"{version}")
    with EmbeddedServer(folder) as server:
        assert server.binaries is not None
        assert server.binaries.version == version


@draws.in_turn("wrongs")
@needs_root
def test_root_runs_in_a_namespace_then_as_another_user_then_back(folder: Path):
    for kind in ("namespace", "user", "namespace"):
        try:
            with EmbeddedServer(folder, kinds=(kind,)) as server:
                assert server.identity is not None
                assert ask(maintenance(server), "SELECT 1") == 1
                owner = 0 if kind == "namespace" else server.identity.uid
                assert (server.data / "PG_VERSION").stat().st_uid == owner
                status = Path(f"/proc/{postmaster(server)}/status").read_text()
                assert f"Uid:\t{owner}\t" in status
        except LogUnavailable as problem:
            if kind == "namespace" and "user namespace" in str(problem):
                pytest.skip(f"user namespaces are closed here: {problem}")
            raise


@needs_root
def test_folder_that_another_user_cannot_reach_is_named(folder: Path):
    folder.parent.chmod(0o700)
    with pytest.raises(LogUnavailable, match=r"as postgres: cannot enter|as nobody: cannot enter"):
        EmbeddedServer(folder, kinds=("user",)).start()
    assert folder.parent.stat().st_mode & 0o777 == 0o700


@draws.in_turn("ways")
@needs_root
def test_ordinary_user_runs_it_as_itself(folder: Path):
    folder.mkdir()
    os.chown(folder, 65534, 65534)
    script = (
        "import sys, asyncio, asyncpg; from pathlib import Path\n"
        "from app.adapters.postgres.server import EmbeddedServer\n"
        "async def main():\n"
        "    async with EmbeddedServer(Path(sys.argv[1])) as server:\n"
        "        connection = await asyncpg.connect(server.url)\n"
        "        print(server.identity.kind, await connection.fetchval('SELECT 7'))\n"
        "        await connection.close()\n"
        "asyncio.run(main())\n"
    )
    answer = as_nobody(interpreter_of_nobody(), "-c", script, str(folder))
    assert (answer.stdout, answer.stderr) == ("same 7\n", "")


def interpreter_of_nobody() -> str:
    """A Python of this version that another user can run with the packages of this one."""
    name = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for found in (sys.executable, shutil.which(name, path="/usr/local/bin:/usr/bin")):
        if found is not None and as_nobody(found, "-c", "import asyncpg, app").returncode == 0:
            return found
    pytest.skip("no interpreter with these packages lies where another user can enter")


def as_nobody(*command: str) -> subprocess.CompletedProcess[str]:
    program = shutil.which("setpriv")
    if program is None:
        pytest.skip("setpriv is not installed")
    packages = [path for path in sys.path if "site-packages" in path]
    return subprocess.run(
        [program, "--reuid=65534", "--regid=65534", "--clear-groups", "env", *command],
        capture_output=True,
        text=True,
        timeout=SOON,
        cwd="/",
        env={
            "PATH": os.environ["PATH"],
            "HOME": "/nonexistent",
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONPATH": os.pathsep.join([str(REPOSITORY), *packages]),
        },
    )


@draws.in_turn("wrongs")
@needs_root
def test_full_disk_is_named_and_the_log_goes_on_when_there_is_space(folder: Path):
    folder.mkdir()
    program = shutil.which("unshare")
    if program is None:
        pytest.skip("unshare is not installed")
    # A file system of 220 MB in a mount namespace of its own, gone with the process.
    mounted = f"mount -t tmpfs -o size=220m tmpfs '{folder}' 2>&1 || exit 9; "
    script = f"{mounted} exec '{sys.executable}' -m tests.contracts.full_disk '{folder}'"
    answer = subprocess.run(
        [program, "--mount", "sh", "-c", script], capture_output=True, text=True, timeout=100
    )
    if answer.returncode == 9 or "unshare" in answer.stderr:
        pytest.skip(f"nothing can be mounted here: {answer.stdout}{answer.stderr}")
    refused, recovered = answer.stdout.splitlines()
    assert refused.startswith("refused: the disk of the database is full")
    assert recovered == "recovered: True"
    assert answer.stderr == ""


@draws.in_turn("wrongs")
@pytest.mark.usefixtures("made")
def test_quick_bounds_end_a_server_that_is_never_ready(folder: Path, tmp_path: Path):
    found = binaries.find()[0]
    with EmbeddedServer(folder):
        pass
    fake = tmp_path / "bin"
    fake.mkdir()
    (fake / "initdb").symlink_to(found.folder / "initdb")
    (fake / "postgres").write_text(
        f'#!/bin/sh\n[ "$1" = --version ] && {{ echo "postgres (PostgreSQL) {found.version}.0"; '
        "exit 0; }\nexec sleep 60\n"
    )
    (fake / "postgres").chmod(0o755)
    tmp_path.chmod(0o755)
    bounds = ServerBounds(start_seconds=0.3)
    with pytest.raises(LogUnavailable, match=r"not ready after 0\.3 s"):
        EmbeddedServer(folder, programs=fake, bounds=bounds).start()
    with EmbeddedServer(folder) as server:
        assert ask(maintenance(server), "SELECT 1") == 1
