"""Real processes over a real embedded PostgreSQL, to be killed at named points.

`Stack` has its own server, an API process without controllers and worker processes for groups of
controllers. A gate in the database (a trigger that takes an advisory lock) stops the appending
process in the middle of an append, or in its commit, and there it is killed. After a kill in the
middle nothing is stored, because its connection ends too; after a kill in the commit everything is
stored, and no caller has an answer.
"""

import os
import re
import signal
import subprocess
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import asyncpg
import httpx

from app.adapters.postgres import migrating
from app.adapters.postgres.server import EmbeddedServer
from tests.patience import PATIENCE_SECONDS
from tests.redra_process import RedraProcess

LOCK = 4711

STARTS_MAX = 20
"""How often a process is started while the database says that it is starting too."""

STARTING = ("the database server is starting or stopping", "no database server answers")
"""What a process says, and ends, when it finds no database."""

GONE_SECONDS = PATIENCE_SECONDS
"""How long the child of a killed process may take to end."""

GROUPS: dict[str, tuple[str, ...]] = {
    "scheduling": ("scheduling",),
    "claims": ("claims", "volume-protection", "garbage", "namespaces", "pod-gc"),
    "eviction": ("eviction", "rule-status", "node-lifecycle", "node-ttl"),
    "running": (
        *("kubelet", "deployments", "replica-sets", "stateful-sets", "daemon-sets", "jobs"),
        *("quotas", "pool-status", "slice-patches", "disruption"),
        *("event-expiry", "service-accounts", "root-ca", "cluster-roles", "api-services"),
    ),
}
"""Which controllers run together in a worker process."""

WRITERS: dict[str, str] = {
    "scheduling": "system:kube-scheduler",
    "claims": "system:serviceaccount:kube-system:resource-claim-controller",
    "eviction": "system:serviceaccount:kube-system:device-taint-eviction-controller",
    "running": "system:node:redra",
    "api": "",
    "up": "*",
    "projector": "projector",
}
"""Under which name a process writes, for the gate; the API writes under its clients' names, `up`
under all. The projector writes no events: its gate is at the checkpoints."""

PROJECTOR = "projector"

GATE = f"""
CREATE TABLE IF NOT EXISTS crash_gate (writer text, stage text);
CREATE OR REPLACE FUNCTION crash_gate() RETURNS trigger LANGUAGE plpgsql AS $body$
BEGIN
  IF EXISTS (SELECT 1 FROM crash_gate WHERE stage = TG_ARGV[0] AND CASE writer
             WHEN '*' THEN TRUE
             WHEN '' THEN NEW.stamp->'actor'->>'user' NOT LIKE 'system:%'
                       OR NEW.stamp->'actor'->>'user' = 'system:anonymous'
             ELSE NEW.stamp->'actor'->>'user' = writer END) THEN
    PERFORM pg_advisory_xact_lock_shared({LOCK});
  END IF;
  RETURN NULL;
END $body$;
CREATE OR REPLACE FUNCTION crash_gate_views() RETURNS trigger LANGUAGE plpgsql AS $body$
BEGIN
  IF EXISTS (SELECT 1 FROM crash_gate WHERE stage = TG_ARGV[0] AND writer = '{PROJECTOR}') THEN
    PERFORM pg_advisory_xact_lock_shared({LOCK});
  END IF;
  RETURN NULL;
END $body$;
CREATE TRIGGER crash_append AFTER INSERT OR UPDATE ON checkpoints
  FOR EACH ROW EXECUTE FUNCTION crash_gate_views('append');
CREATE CONSTRAINT TRIGGER crash_commit AFTER INSERT OR UPDATE ON checkpoints
  DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION crash_gate_views('commit');
CREATE TRIGGER crash_append AFTER INSERT ON log_events
  FOR EACH ROW EXECUTE FUNCTION crash_gate('append');
CREATE CONSTRAINT TRIGGER crash_commit AFTER INSERT ON log_events DEFERRABLE INITIALLY DEFERRED
  FOR EACH ROW EXECUTE FUNCTION crash_gate('commit');
"""


class Program:
    """One process of ours that can be started again."""

    def __init__(self, name: str, command: list[str], log: Path, env: dict[str, str]) -> None:
        self.name = name
        self.command = command
        self._log = log
        self._env = env
        self._process: RedraProcess | None = None
        self._drains: threading.Thread | None = None
        self.first_line = ""

    def start(self) -> None:
        """Starts the process; `wait_ready` waits for its first line."""
        with self._log.open("a") as errors:
            self._process = RedraProcess(
                self.command,
                environment=self._env,
                stderr=errors if self.name in ("api", "up") else subprocess.STDOUT,
            )

    def wait_ready(self) -> str:
        """Waits for the first line of output; later lines are read and dropped."""
        assert self._process is not None
        self.first_line = self._process.stdout.readline()
        is_ready = self.first_line and not self.first_line.startswith("redra: ")
        said = self.first_line or self._log.read_text()[-2000:]
        assert is_ready, f"{self.name} did not start: {said}"
        drain = threading.Thread(target=self._drain, args=(self._process.stdout,), daemon=True)
        drain.start()
        self._drains = drain
        return self.first_line

    @property
    def pid(self) -> int:
        """The number of the process."""
        assert self._process is not None
        return self._process.pid

    def projectors(self) -> list[int]:
        """The projector processes that it has started."""
        return projectors_of(self.pid) if self._process is not None else []

    def _drain(self, lines: IO[str]) -> None:
        with self._log.open("a") as log:
            for line in lines:
                log.write(line)
                log.flush()

    def check_log(self) -> None:
        """Checks that its log contains no traceback."""
        text = self._log.read_text() if self._log.exists() else ""
        assert "Traceback" not in text, text[-4000:]

    def kill(self, how: signal.Signals = signal.SIGKILL) -> None:
        """Kills the process, and waits until it is gone."""
        process, self._process = self._process, None
        drains, self._drains = self._drains, None
        if process is not None:
            process.send_signal(how)
            process.wait(30)
            if drains is not None:
                drains.join(30)
            process.stdout.close()


def projectors_of(parent: int) -> list[int]:
    """The projector processes of a server."""
    found = []
    for status in Path("/proc").glob("[0-9]*/status"):
        with suppress(OSError):
            is_child = f"\nPPid:\t{parent}\n" in status.read_text()
            if is_child and b"project" in (status.parent / "cmdline").read_bytes().split(b"\0"):
                found.append(int(status.parent.name))
    return found


def wait_gone(process: int) -> None:
    """Waits for the end of a process that is not our child. Raises AssertionError."""
    end = time.monotonic() + GONE_SECONDS
    while time.monotonic() < end:
        try:
            if "\nState:\tZ" in Path(f"/proc/{process}/status").read_text():
                return
        except OSError:
            return
        time.sleep(0.05)  # waits: for a process that says nothing
    raise AssertionError(f"process {process} outlived the one that had started it")


@dataclass(slots=True, kw_only=True)
class Gate:
    """A closed gate, which stops an appending process. `head` is the revision before its append."""

    connection: asyncpg.Connection
    head: int
    stopped: int = 0

    async def wait_stopped(self, seconds: float) -> bool:
        """Waits for a process to stop at the gate; False when none does."""
        question = (
            "SELECT pid FROM pg_stat_activity WHERE datname = current_database() "
            "AND wait_event_type = 'Lock' AND wait_event = 'advisory'"
        )
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if found := await self.connection.fetchval(question):
                self.stopped = found
                # Others wait for it: what is stored now is what was stored before it.
                self.head = await _head(self.connection)
                return True
            await self.connection.fetchval("SELECT pg_sleep(0.02)")
        return False

    async def open(self) -> None:
        """Opens the gate for the stopped process and all later ones.

        Rows are deleted, not truncated: the stopped process has read them, and a truncation would
        cause a deadlock that aborts its commit.
        """
        await self.connection.execute("DELETE FROM crash_gate")
        await self.connection.execute(f"SELECT pg_advisory_unlock({LOCK})")

    async def forsake(self) -> None:
        """Ends the server's side of the stopped process, which rolls its transaction back.

        Killing the client is not enough: a running statement continues to its commit.
        """
        await self.connection.execute("SELECT pg_terminate_backend($1)", self.stopped)

    async def wait_left(self) -> int:
        """Waits for the end of the stopped process's connection in the server; returns the head."""
        question = "SELECT count(*) FROM pg_stat_activity WHERE pid = $1"
        end = time.monotonic() + GONE_SECONDS
        while await self.connection.fetchval(question, self.stopped):
            assert time.monotonic() < end, "the server goes on for a client that is gone"
            await self.connection.fetchval("SELECT pg_sleep(0.02)")
        return await _head(self.connection)

    async def close(self) -> None:
        """Closes the connection to the database."""
        await self.connection.close()


async def _head(connection: asyncpg.Connection) -> int:
    return int(await connection.fetchval("SELECT COALESCE(max(revision), 0) FROM log_events"))


class Stack:
    """The API and the workers over a running server; one process (`up`) if they are `together`."""

    def __init__(self, folder: Path, server: EmbeddedServer, *, together: bool) -> None:
        self.together = together
        self.folder = folder
        self.url = ""
        self.database = server.url
        self.programs: dict[str, Program] = {}

    async def start(self) -> None:
        """Migrates the database, adds the gate and starts all processes."""
        await migrating.migrate(self.database)
        connection = await asyncpg.connect(self.database)
        await connection.execute(GATE)
        await connection.close()
        env = {
            **os.environ,
            "REDRA_DATABASE_URL": self.database,
            "REDRA_DATA": str(self.folder / "data"),
            "REDRA_LEASE_SECONDS": "2",
            "REDRA_POLL_SECONDS": "0.5",
            "REDRA_SNAPSHOT_EVERY": "200",
            "REDRA_BIND_DELAY_MILLIS": "0" if self.together else "300",
        }
        (self.folder / "data").mkdir()
        listen = "127.0.0.1:0"
        name, options = ("up", ["up"]) if self.together else ("api", ["up", "--no-workers"])
        api = self._add(name, [*options, "--listen", listen], env)
        api.start()
        found = re.search(r"http://127\.0\.0\.1:(\d+)", api.wait_ready())
        assert found is not None, api.first_line
        self.url = found.group()
        api.command[-1] = f"127.0.0.1:{found.group(1)}"
        groups = {} if self.together else GROUPS
        for name, controllers in groups.items():
            only = [part for controller in controllers for part in ("--only", controller)]
            self._add(name, ["work", *only], env).start()
        if not self.together:
            self._add(PROJECTOR, ["project"], env).start()
        for program in self.programs.values():
            if program is not api:
                program.wait_ready()

    def _add(self, name: str, command: list[str], env: dict[str, str]) -> Program:
        log = self.folder / f"{name}.log"
        program = self.programs[name] = Program(name, command, log, env)
        return program

    def restart(self, name: str) -> None:
        """Starts a killed process again, and once more if the database is still starting.

        In that case the process reports it and ends, and a supervisor would start it again.
        """
        program = self.programs[name]
        for left in reversed(range(STARTS_MAX)):
            program.start()
            try:
                program.wait_ready()
                return
            except AssertionError as problem:
                if not left or not any(said in str(problem) for said in STARTING):
                    raise
                program.kill()

    async def hold_gate(self, writer: str, stage: str) -> Gate | None:
        """Stops the next append of a process, in its middle or in its commit.

        None when the database is not available.
        """
        try:
            connection = await asyncpg.connect(self.database)
        except (OSError, asyncpg.PostgresError):
            return None
        try:
            await connection.execute(f"SELECT pg_advisory_lock({LOCK})")
            row = (WRITERS[writer], stage)
            await connection.execute("INSERT INTO crash_gate VALUES ($1, $2)", *row)
            return Gate(connection=connection, head=await _head(connection))
        except (OSError, asyncpg.PostgresError):
            connection.terminate()
            return None

    def kill(self, name: str) -> bool:
        """Sends SIGKILL; False when the process did not run. Its child processes must end too."""
        if name not in self.programs:
            children = self.programs["up"].projectors()
            for child in children:
                os.kill(child, signal.SIGKILL)
            return bool(children)
        program = self.programs[name]
        children = program.projectors()
        program.kill()
        for child in children:
            wait_gone(child)
        return True

    def kill_postgres(self) -> None:
        """Sends SIGKILL to the postmaster; its guardian starts it again."""
        pid = int((self.folder / "postgres" / "data" / "postmaster.pid").read_text().split()[0])
        os.kill(pid, signal.SIGKILL)

    def stop(self) -> None:
        """Ends all started processes."""
        for program in self.programs.values():
            program.kill()

    def client(self) -> httpx.Client:
        """A plain HTTP client."""
        return httpx.Client(base_url=self.url, timeout=20)
