"""A real server process that can be ended, killed and started again at the same address."""

import json
import re
import shutil
import signal
import subprocess
import threading
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import httpx

from tests.patience import PATIENCE_SECONDS
from tests.prepared_data import prepare
from tests.redra_process import RedraProcess


class ServerProcess:
    """`redra up` with a folder of its own. The port stays the same over restarts.

    `options` are more of its options; `environment` is set beside the one of the tests. `command`
    is another one that serves. Without `REDRA_PROJECTOR` no view tables are written: only tests of
    those read them.
    """

    command = ("up",)

    def __init__(self, folder, *options, **environment):
        self.folder = folder
        self.options = options
        waits = {"REDRA_PAGE_WAIT_SECONDS": "60"}
        self.environment = {"REDRA_PROJECTOR": "off"} | waits | environment
        self.data = folder / "data"
        self.log = folder / "redra.log"
        self.kubeconfig = self.data / "kubeconfig"
        self.url = ""
        self.serves = threading.Event()
        self.port = 0
        self._process = None

    def start(self):
        """Start and wait until it serves."""
        if "REDRA_DATABASE_URL" not in self.environment:
            prepare(self.data)
        words = [*self.command, "--data", self.data, "--listen", f"127.0.0.1:{self.port}"]
        with self.log.open("a") as errors:
            self._process = RedraProcess(
                [*words, *self.options], environment=self.environment, stderr=errors
            )
        line = self._process.stdout.readline()
        found = re.search(r"https?://127\.0\.0\.1:(\d+)", line)
        assert found, (line, self.log.read_text())
        self.url, self.port = found.group(), int(found.group(1))
        self.serves.set()

    def end(self, how=signal.SIGTERM):
        """End it; with SIGTERM it must end well."""
        process, self._process = self._process, None
        if process is None:
            return
        self.serves.clear()
        process.send_signal(how)
        try:
            process.communicate(timeout=PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
        assert how is signal.SIGKILL or process.returncode == 0, self.log.read_text()

    def wait_exit(self):
        """Wait until the process ends without a signal; returns its exit code."""
        process, self._process = self._process, None
        self.serves.clear()
        process.communicate(timeout=PATIENCE_SECONDS)
        return process.returncode

    def restart(self, how=signal.SIGTERM):
        """End it and start it again."""
        self.end(how)
        self.start()

    @property
    def pid(self):
        """The process, while it runs."""
        return self._process.pid

    def peak_memory(self):
        """KiB that the process has used at most, its database not counted; 0 where nobody says."""
        status = Path("/proc", str(self._process.pid), "status")
        found = re.search(r"VmHWM:\s+(\d+)", status.read_text() if status.exists() else "")
        return int(found.group(1)) if found else 0

    def client(self, **options):
        """A plain HTTP client."""
        options = {"verify": _authorities()} | options
        return httpx.Client(base_url=self.url, timeout=PATIENCE_SECONDS, **options)


@cache
def _authorities():
    """The certificates of the known authorities, whose reading takes more than twelve requests."""
    return httpx.create_ssl_context()


@contextmanager
def server_process(folder, *namespaces):
    """A running server with these namespaces; what it wrote to its log is checked at the end."""
    server = ServerProcess(folder)
    try:
        server.start()
        with server.client() as client:
            for name in ("default", *namespaces):
                made = client.post("/api/v1/namespaces", json={"metadata": {"name": name}})
                assert made.status_code in (201, 409), made.text
                wait_for_own_objects(client, name)
        yield server
    finally:
        server.end()
        shutil.rmtree(server.data, ignore_errors=True)
    assert "Traceback" not in server.log.read_text(), server.log.read_text()


class Following:
    """The lines of a watch, decoded, as they come over one connection."""

    def __init__(self, answer):
        self.answer = answer
        self._lines = answer.iter_lines()

    def __iter__(self):
        return self

    def __next__(self):
        return json.loads(next(self._lines))

    def take(self, count):
        """The next lines."""
        return [next(self) for _ in range(count)]


def wait_for_own_objects(client, namespace):
    """Return when the controllers have made what every namespace holds.

    A test that lists or watches all ConfigMaps of a new namespace meets them at any time else.
    """
    for resource, name in (("configmaps", "kube-root-ca.crt"), ("serviceaccounts", "default")):
        path = f"/api/v1/namespaces/{namespace}/{resource}"
        with following(client, path, fieldSelector=f"metadata.name={name}") as events:
            assert next(events)["type"] == "ADDED"


@contextmanager
def following(client, path, **parameters):
    """A watch over plain HTTP; leaving the block breaks the connection."""
    parameters = {"watch": "true"} | parameters
    with client.stream("GET", path, params=parameters) as answer:
        assert answer.status_code == 200, answer.read()
        yield Following(answer)
