"""The cases of `bodies` against a real process: `python -m tests.fuzz live --cases N --seed S`.

Everything that the process in process lacks takes part: the HTTP parser, PostgreSQL, controllers
and emulated kubelets that look at what was stored. Afterwards the process must end well and have
told of no mistake, and a replay of its log must find the chain whole and decide as it did.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import httpx

from tests.acceptance.server_process import ROOT, ServerProcess
from tests.fuzz.bodies import Cases, send_cases
from tests.fuzz.target import Answered, Judge

MEMORY_MAX = 1024 * 1024
"""KiB of memory that the process may have used at its peak."""


class LiveTarget:
    """A server process; `send` judges each answer."""

    def __init__(self, server, client):
        self._server = server
        self._client = client
        self.judge = Judge()

    def send(self, sent):
        """Send one request; watches, which take their time, are left to the other fuzzers."""
        if "watch" in sent.query:
            return None
        headers = {name: value.encode("latin-1", "replace") for name, value in sent.headers.items()}
        try:
            answer = self._client.request(
                sent.method, httpx.URL(path=sent.path, query=sent.query.encode()),
                content=sent.body, headers=headers,
            )  # fmt: skip
        except httpx.TransportError as problem:
            raise AssertionError(f"no answer ({problem!r})\n  sent: {sent}") from problem
        answered = Answered(
            code=answer.status_code, headers=dict(answer.headers), body=answer.content
        )
        self.judge.judge(sent, answered)
        return answered

    def settle(self, name):
        """It serves, says that it is well, and has not grown without bound."""
        health = self._client.get("/readyz").text
        assert health == "ok", health
        self.judge.report(name)
        used = self._server.peak_memory()
        print(f"{name}: the server used {used // 1024} MiB at its peak")
        assert used < MEMORY_MAX


def run(*, cases, seed):
    """Send `cases` cases to one process; raises the first Finding.

    Returns how often each code was answered.
    """
    with tempfile.TemporaryDirectory() as name:
        server = ServerProcess(Path(name))
        server.start()
        try:
            with server.client() as client:
                found = LiveTarget(server, client)
                sending = send_cases(found, Cases(seed))
                for _ in range(cases):
                    next(sending)
                found.settle(f"live, seed {seed}, {cases} cases")
        finally:
            server.end()
        assert "Traceback" not in server.log.read_text(), server.log.read_text()[-8_000:]
        _check_history(server.data)
    return found.judge.codes


def _check_history(data):
    """The chain is whole, our decisions come out again, and the views follow from the log.

    Invariants of claims are not judged: the cases write statuses as no driver would.
    """
    verified, _ = _redra(data, "replay", "default", "--mode", "verify")
    assert verified["chain"]["problem"] == ""
    assert verified["decisions"]["differences"] == verified["effects"]["differences"] == []
    views, code = _redra(data, "rebuild", "default")
    assert code == 0, views


def _redra(data, *words):
    command = [sys.executable, "-m", "app.cli", *words, "--data", str(data), "-o", "json"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode in (0, 1), done.stderr
    return json.loads(done.stdout), done.returncode
