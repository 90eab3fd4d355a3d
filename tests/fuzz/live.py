"""The cases of `bodies` and `requests` against real processes: `python -m tests.fuzz live …`.

Everything that the process in process lacks takes part: the HTTP parser, PostgreSQL, controllers
and emulated kubelets that look at what was stored. Afterwards the process must end well and have
told of no mistake, and a replay of its log must find the chain whole and decide as it did.
"""

import json
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from urllib.parse import quote

import httpx

from tests.acceptance.server_process import ServerProcess
from tests.fuzz import bodies, requests
from tests.fuzz.target import Answered, Judge
from tests.redra_process import ROOT

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
        if "watch" in sent.query or "follow" in sent.query or not _can_be_sent(sent):
            return None
        headers = {name: value.encode("latin-1", "replace") for name, value in sent.headers.items()}
        headers.pop("content-length", None)
        # A path that is escaped already stays as it is.
        target = quote(sent.path, safe="/%@:;").encode() + b"?" + sent.query.encode()
        url = self._client.base_url.copy_with(raw_path=target)
        try:
            answer = self._client.request(sent.method, url, content=sent.body, headers=headers)
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


CASES = {"bodies": bodies.Cases, "requests": requests.Cases}


def run(*, cases, seed):
    """Send `cases` cases of both fuzzers, each to a process of its own; raises the first Finding.

    Returns how often each code was answered.
    """
    codes = Counter()
    for name in CASES:
        codes += run_one(name, cases=(cases + 1) // 2, seed=seed)
    return codes


def run_one(name, *, cases, seed):
    """Send `cases` cases of one fuzzer to one process."""
    with tempfile.TemporaryDirectory() as folder:
        server = ServerProcess(Path(folder))
        server.start()
        try:
            with server.client() as client:
                found = LiveTarget(server, client)
                sending = bodies.send_cases(found, CASES[name](seed))
                for _ in range(cases):
                    next(sending)
                found.settle(f"live {name}, seed {seed}, {cases} cases")
        finally:
            server.end()
        assert "Traceback" not in server.log.read_text(), server.log.read_text()[-8_000:]
        _check_history(server.data)
    return found.judge.codes


def _can_be_sent(sent):
    """Whether an HTTP client takes it: what the parser refuses is for the tests of connections."""
    return sent.method.isupper() and all(
        value.isprintable() and value == value.strip() for value in sent.headers.values()
    )


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
