"""A real server process and the real kubectl."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from tests.prepared_data import prepare
from tests.redra_process import RedraProcess

BIN = Path(sys.executable).parent
JSON = {"Content-Type": "application/json"}


@dataclass
class Result:
    """What a command said."""

    code: int
    out: str
    err: str

    @property
    def said(self):
        return self.out + self.err


@dataclass
class Cluster:
    """A server and a kubectl that has nothing but its own folder."""

    url: str
    kubeconfig: Path
    folder: Path
    namespace: str = "default"

    def kubectl(self, *words, code=0, stdin="", namespace=None, context="", editor="", seconds=60):
        """Run kubectl to its end and check its exit code; None takes any."""
        line = self._line(*words, namespace=namespace, context=context)
        done = subprocess.run(
            line,
            env=self.environment() | {"EDITOR": editor},
            input=stdin,
            capture_output=True,
            text=True,
            timeout=seconds,
        )
        result = Result(done.returncode, done.stdout, done.stderr)
        if code is not None:
            assert result.code == code, f"{' '.join(words)}\n{result.said}"
        return result

    def json(self, *words, **options):
        """What `-o json` says."""
        return json.loads(self.kubectl(*words, "-o", "json", **options).out)

    def create(self, text, *words, **options):
        """`create -f -`."""
        return self.kubectl("create", "-f", "-", *words, stdin=text, **options)

    def apply(self, text, *words, **options):
        """`apply -f -`."""
        return self.kubectl("apply", "-f", "-", *words, stdin=text, **options)

    def make_namespace(self, name):
        """A namespace for a test, made without kubectl: a thirtieth of the work."""
        body = json.dumps({"metadata": {"name": name}}).encode()
        request = Request(f"{self.url}/api/v1/namespaces", body, JSON)
        try:
            urlopen(request).close()
        except HTTPError as refusal:
            if refusal.code != HTTPStatus.CONFLICT:
                raise

    @contextmanager
    def running(self, *words, namespace=None):
        """A kubectl that goes on; its lines are read from `stdout`."""
        process = subprocess.Popen(
            self._line(*words, namespace=namespace), env=self.environment(), text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        try:
            yield process
        finally:
            process.kill()
            process.communicate()

    def within(self, namespace):
        """The same cluster with another namespace as the default."""
        return Cluster(self.url, self.kubeconfig, self.folder, namespace)

    def _line(self, *words, namespace, context=""):
        namespace = self.namespace if namespace is None else namespace
        line = [str(BIN / "kubectl"), "--cache-dir", str(self.folder / "cache")]
        line += ["--context", context] if context else []
        line += ["--namespace", namespace] if namespace else []
        return [*line, *words]

    def environment(self):
        """The variables of its kubectl."""
        return {
            "HOME": str(self.folder),
            "KUBECONFIG": str(self.kubeconfig),
            "PATH": os.environ["PATH"],
            # It ends before its memory matters; a fifth of its work was looking for garbage.
            "GOGC": "off",
        }


@contextmanager
def cluster(folder, **settings):
    """`redra up` in a folder of its own, ended with the block; `settings` by their variables.

    Without REDRA_PROJECTOR it writes no view tables: no client of the API reads those.
    """
    if not (BIN / "kubectl").exists():
        pytest.fail("kubectl is missing: run `make install`, it is in the lock")
    data = folder / "data"
    prepare(data)
    errors = (folder / "redra.log").open("w")
    process = RedraProcess(
        ["up", "--listen", "127.0.0.1:0", "--data", data],
        environment={"REDRA_PROJECTOR": "off"} | settings,
        stderr=errors,
    )
    try:
        line = process.stdout.readline()
        found = re.search(r"http://\S+", line)
        assert found, (line, (folder / "redra.log").read_text())
        found_cluster = Cluster(found.group(), data / "kubeconfig", folder)
        for namespace in ("default", "kube-system"):
            found_cluster.make_namespace(namespace)
        yield found_cluster
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.communicate(timeout=30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
        errors.close()
        shutil.rmtree(data, ignore_errors=True)
