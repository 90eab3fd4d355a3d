"""The cases of `bodies` and `requests` against real processes: `python -m tests.fuzz live …`.

Unlike the application in process, a real process has the HTTP parser, PostgreSQL, controllers and
emulated kubelets that read the stored objects. Afterwards the process must end in order and report
no internal error, and a replay of its log must find a complete chain and the same decisions.
"""

import json
import tempfile
from collections import Counter
from pathlib import Path
from urllib.parse import quote

import httpx

from tests.acceptance.server_process import ServerProcess
from tests.command_line import database_running, redra
from tests.fuzz import bodies, requests
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
        """Sends one request, unless it is a watch, which the other fuzzers cover."""
        if "watch" in sent.query or "follow" in sent.query or not _can_be_sent(sent):
            return None
        headers = {name: value.encode("latin-1", "replace") for name, value in sent.headers.items()}
        headers.pop("content-length", None)
        # An escaped path is not escaped again.
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
        """Checks that the server is ready and that its peak memory is within the bound."""
        health = self._client.get("/readyz").text
        assert health == "ok", health
        self.judge.report(name)
        used = self._server.peak_memory()
        print(f"{name}: the server used {used // 1024} MiB at its peak")
        assert used < MEMORY_MAX


CASES = {"bodies": bodies.Cases, "requests": requests.Cases}


def run(*, cases, seed):
    """Sends `cases` cases of both fuzzers, each to its own process; raises the first Finding.

    Returns the number of answers by code.
    """
    codes = Counter()
    for name in CASES:
        codes += run_one(name, cases=(cases + 1) // 2, seed=seed)
    return codes


def run_one(name, *, cases, seed):
    """Sends `cases` cases of one fuzzer to one process."""
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
    """True when an HTTP client can send the request; tests of connections cover the others."""
    return sent.method.isupper() and all(
        value.isprintable() and value == value.strip() for value in sent.headers.values()
    )


def _check_history(data):
    """Checks that the chain is complete, and that decisions and views follow from the log.

    Invariants of claims are not checked: the cases write statuses that no driver would write.
    """
    with database_running(data):
        verified, _ = _redra(data, "replay", "default", "--mode", "verify")
        views, code = _redra(data, "rebuild", "default")
    assert verified["chain"]["problem"] == ""
    assert verified["decisions"]["differences"] == verified["effects"]["differences"] == []
    assert code == 0, views


def _redra(data, *words):
    code, text, problem = redra(*words, "-o", "json", data=data)
    assert code in (0, 1), problem
    return json.loads(text), code
