"""Real processes over a real embedded PostgreSQL, to be killed at named points.

`Stack` has its own server, an API process without controllers and worker processes for groups of
controllers. A gate in the database (a trigger that takes an advisory lock) stops the process that
appends in the middle of an append, or in its commit: there it is killed. In the middle means that
nothing was stored; in the commit means that all of it is, and that nobody was told.
"""

import os
import re
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import asyncpg
import httpx

from app.adapters.postgres import schema
from app.adapters.postgres.server import EmbeddedServer

ROOT = Path(__file__).resolve().parent.parent.parent
LOCK = 4711

GROUPS: dict[str, tuple[str, ...]] = {
    "scheduling": ("scheduling",),
    "claims": ("claims", "garbage", "namespaces", "pod-gc"),
    "eviction": ("eviction", "rule-status", "node-lifecycle"),
    "running": (
        *("kubelet", "deployments", "replica-sets", "stateful-sets", "daemon-sets", "jobs"),
        *("quotas", "pool-status", "slice-patches"),
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
}
"""Under which name a process writes, for the gate; the API writes under its clients' names, `up`
under all."""

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
        self._process: subprocess.Popen[str] | None = None
        self.first_line = ""

    def start(self) -> None:
        """Start; `wait_ready` tells when it has said its first line."""
        with self._log.open("a") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "app.cli", *self.command],
                cwd=ROOT,
                stdout=subprocess.PIPE,
                stderr=errors if self.name in ("api", "up") else subprocess.STDOUT,
                text=True,
                env=self._env,
            )

    def wait_ready(self) -> str:
        """The first line that it says; what follows is read and dropped."""
        assert self._process is not None
        assert self._process.stdout is not None
        self.first_line = self._process.stdout.readline()
        assert self.first_line, f"{self.name} did not start: {self._log.read_text()[-2000:]}"
        threading.Thread(target=self._drain, args=(self._process.stdout,), daemon=True).start()
        return self.first_line

    @property
    def is_running(self) -> bool:
        """Whether it lives."""
        return self._process is not None and self._process.poll() is None

    def _drain(self, lines: IO[str]) -> None:
        with self._log.open("a") as log:
            for line in lines:
                log.write(line)
                log.flush()

    def check_log(self) -> None:
        """What it has written to its log holds no mistake of ours."""
        text = self._log.read_text() if self._log.exists() else ""
        assert "Traceback" not in text, text[-4000:]

    def kill(self, how: signal.Signals = signal.SIGKILL) -> None:
        """End it without a word, and wait until it is gone."""
        process, self._process = self._process, None
        if process is not None:
            process.send_signal(how)
            process.wait(30)


@dataclass(slots=True, kw_only=True)
class Gate:
    """A held gate: whoever comes to it stands still."""

    connection: asyncpg.Connection

    async def wait_stopped(self, seconds: float) -> bool:
        """True as soon as a process stands at the gate; False when nobody came."""
        question = (
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
            "AND wait_event_type = 'Lock' AND wait_event = 'advisory'"
        )
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if await self.connection.fetchval(question):
                return True
            await self.connection.fetchval("SELECT pg_sleep(0.02)")
        return False

    async def open(self) -> None:
        """Let pass whoever stands there, and all after."""
        await self.connection.execute("TRUNCATE crash_gate")
        await self.connection.execute(f"SELECT pg_advisory_unlock({LOCK})")
        await self.connection.close()


class Stack:
    """The API and the workers over a running server; one process (`up`) if they are `together`."""

    def __init__(self, folder: Path, server: EmbeddedServer, *, together: bool) -> None:
        self.together = together
        self.folder = folder
        self.url = ""
        self.database = server.url
        self.programs: dict[str, Program] = {}

    async def start(self) -> None:
        """Everything from nothing."""
        await schema.migrate(self.database)
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
        for name in groups:
            self.programs[name].wait_ready()

    def _add(self, name: str, command: list[str], env: dict[str, str]) -> Program:
        log = self.folder / f"{name}.log"
        program = self.programs[name] = Program(name, command, log, env)
        return program

    def restart(self, name: str) -> None:
        """Start a killed process again."""
        program = self.programs[name]
        program.start()
        program.wait_ready()

    async def hold_gate(self, writer: str, stage: str) -> Gate:
        """Stop the next append of that process, in its middle or in its commit."""
        connection = await asyncpg.connect(self.database)
        await connection.execute(f"SELECT pg_advisory_lock({LOCK})")
        await connection.execute("INSERT INTO crash_gate VALUES ($1, $2)", WRITERS[writer], stage)
        return Gate(connection=connection)

    def kill_postgres(self) -> None:
        """SIGKILL to the postmaster; its guardian starts it again."""
        pid = int((self.folder / "postgres" / "data" / "postmaster.pid").read_text().split()[0])
        os.kill(pid, signal.SIGKILL)

    def stop(self) -> None:
        """End all processes of ours."""
        for program in self.programs.values():
            program.kill()

    def client(self) -> httpx.Client:
        """A plain HTTP client."""
        return httpx.Client(base_url=self.url, timeout=20)
