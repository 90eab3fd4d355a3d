"""`redra demo`: the main use case from an empty folder, with a check of every step."""

import json
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from app.bootstrap import child_processes
from app.cli import console, exit_codes
from app.cli.exit_codes import ExitCode
from app.domain.errors import InputError
from app.domain.values import condition_types
from app.domain.values.fields import core, meta

FILES = (
    "01-nodes.yaml", "02-classes.yaml", "03-gpu-slices.yaml", "04-tpu-slices.yaml",
    "05-templates.yaml", "06-pods.yaml", "07-more-pods.yaml", "08-taint-rule.yaml",
)  # fmt: skip
"""The manifests of the example cluster, in the order in which they are applied."""

PATHS = {
    "Namespace": "/api/v1/namespaces",
    "Node": "/api/v1/nodes",
    "Pod": "/api/v1/namespaces/{namespace}/pods",
    "DeviceClass": "/apis/resource.k8s.io/v1/deviceclasses",
    "ResourceSlice": "/apis/resource.k8s.io/v1/resourceslices",
    "DeviceTaintRule": "/apis/resource.k8s.io/v1/devicetaintrules",
    "ResourceClaimTemplate": (
        "/apis/resource.k8s.io/v1/namespaces/{namespace}/resourceclaimtemplates"
    ),
}


class DemoFailed(Exception):
    """A step does not have the expected result."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoServer:
    """A running `redra up`: its URL, its folder, and for how long it is waited for."""

    url: str
    data: Path
    seconds: float

    def request(self, method: str, path: str, body: object = None) -> Any:
        """One request with JSON both ways."""
        import urllib.error
        import urllib.request

        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(  # noqa: S310 - always our own loopback URL
            self.url + path,
            data=data,
            method=method,
            headers={"Content-Type": "application/json", "Accept": "application/json"},
        )
        try:
            with urllib.request.urlopen(  # noqa: S310 - as above
                request, timeout=self.seconds
            ) as answer:
                return json.loads(answer.read())
        except urllib.error.HTTPError as refusal:
            text = refusal.read().decode(errors="replace")
            raise DemoFailed(f"{method} {path} was refused: {text}") from refusal
        except OSError as problem:
            raise DemoFailed(f"{method} {path} was not answered: {problem}") from problem


def register(root: typer.Typer) -> None:
    """Add the commands of this module."""
    root.command("demo")(demo)


def demo(
    examples: Annotated[
        Path, typer.Option(help="Folder with the manifests of the example cluster.")
    ] = Path("examples/cluster"),
) -> None:
    """Run the main job: make a cluster, fill it, taint it, explain it, export, import, verify.

    The command creates everything in a temporary folder and removes it at the end. The exit code is
    1 if any step disagrees.
    """
    from app.bootstrap import process_settings

    if missing := [name for name in FILES if not (examples / name).is_file()]:
        raise InputError(
            "the example manifests are missing",
            place=str(examples / missing[0] if examples.is_dir() else examples),
            cure="run the command in a clone of the repository",
        )
    seconds = process_settings.settings().demo_seconds
    started = time.monotonic()
    try:
        import tempfile

        with tempfile.TemporaryDirectory(prefix="redra-demo-") as folder:
            _run(Path(folder), examples, seconds)
    except DemoFailed as failure:
        console.complain(f"the demo failed: {failure}")
        exit_codes.conclude(ExitCode.NO)
        return
    console.say(f"\nAll steps agree ({time.monotonic() - started:.0f} s).")


def _run(folder: Path, examples: Path, seconds: float) -> None:
    data = folder / "data"
    *cluster, pods_file, more_pods, rule = FILES
    with _serving(data, seconds) as server:
        _heading("A cluster from nothing")
        for name in cluster:
            _apply(server, examples / name)
        _heading("Pods arrive until some cannot be scheduled")
        _apply(server, examples / pods_file)
        _apply(server, examples / more_pods)
        pods = _wait(server, "every pod is scheduled or unschedulable", _is_settled)
        bound, pending = _split(pods)
        console.say(f"{len(bound)} pods are scheduled, {len(pending)} wait: {', '.join(pending)}")
        _check(bool(bound) and bool(pending), "some pods are scheduled and some are not")
        _heading("The GPUs of a node are taken out of service")
        _apply(server, examples / rule)
        after = _wait(
            server, "tainted pods are evicted", lambda now: len(_split(now)[0]) < len(bound)
        )
        evicted = sorted(set(bound) - set(_split(after)[0]))
        console.say(f"evicted: {', '.join(evicted)}")
        _heading("What happened")
        _redra("timeline", "default", "--data", str(data), "--last", "30")
        _heading(f"Why does {pending[0]} wait?")
        _redra("why", f"pod/{pending[0]}", "-n", "lab", "--data", str(data))
        _heading(f"Why was {evicted[0]} evicted?")
        _redra("why", f"pod/{evicted[0]}", "-n", "lab", "--data", str(data))
    _heading("Export, import, verify")
    bundle = str(folder / "demo.zip")
    _redra("export", "default", "--data", str(data), "-o", bundle)
    _redra("import", bundle, "--history", "copy", "--data", str(data))
    _redra("replay", "copy", "--mode", "verify", "--data", str(data))
    _heading("Drop every view and fold again")
    _redra("rebuild", "default", "--data", str(data))
    hashes = [_hashes(data, history) for history in ("default", "copy")]
    _check(hashes[0] == hashes[1], "both histories have the same state hashes")
    console.say("the imported copy has the same state hashes")


@contextmanager
def _serving(data: Path, seconds: float) -> Iterator[DemoServer]:
    command = child_processes.command("up", "--listen", "127.0.0.1:0", "--data", str(data))
    process = subprocess.Popen(  # noqa: S603 - our own program
        command, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        if "redra serves at " not in line:
            raise DemoFailed("`redra up` ended before it served")
        console.say(line.strip())
        yield DemoServer(url=line.split()[-1], data=data, seconds=seconds)
        process.terminate()
        try:
            code = process.wait(timeout=seconds)
        except subprocess.TimeoutExpired as late:
            raise DemoFailed(f"after {seconds:g} s `redra up` has not stopped") from late
        _check(code == 0, f"`redra up` stops cleanly (exit code {code})")
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()


def _apply(server: DemoServer, path: Path) -> None:
    import yaml

    for document in yaml.load_all(path.read_text(), Loader=yaml.CSafeLoader):
        kind = document["kind"]
        place = PATHS[kind].format(namespace=meta.namespace(document))
        server.request("POST", place, document)
        console.say(f"{kind} {document['metadata']['name']} created")


def _wait(
    server: DemoServer, what: str, is_done: Callable[[list[dict[str, Any]]], bool]
) -> list[dict[str, Any]]:
    deadline = time.monotonic() + server.seconds
    while time.monotonic() < deadline:
        pods: list[dict[str, Any]] = server.request("GET", "/api/v1/namespaces/lab/pods")["items"]
        if is_done(pods):
            return pods
        time.sleep(0.1)
    raise DemoFailed(f"after {server.seconds:g} s this is still not true: {what}")


def _is_settled(pods: list[dict[str, Any]]) -> bool:
    return all(
        core.node_name(pod) or meta.condition(pod, condition_types.POD_SCHEDULED) is not None
        for pod in pods
    )


def _split(pods: list[dict[str, Any]]) -> tuple[list[str], list[str]]:
    bound = [pod["metadata"]["name"] for pod in pods if core.node_name(pod)]
    waiting = [pod["metadata"]["name"] for pod in pods if pod["metadata"]["name"] not in bound]
    return sorted(bound), sorted(waiting)


def _redra(*arguments: str) -> str:
    console.say(f"$ redra {' '.join(arguments)}")
    done = subprocess.run(  # noqa: S603 - our own program
        child_processes.command(*arguments), stdout=subprocess.PIPE, text=True
    )
    console.say(done.stdout.rstrip())
    _check(done.returncode == 0, f"`redra {arguments[0]}` ends with 0, not {done.returncode}")
    return done.stdout


def _hashes(data: Path, history: str) -> dict[str, str]:
    done = subprocess.run(  # noqa: S603 - our own program
        child_processes.command("rebuild", history, "--data", str(data), "-o", "json"),
        stdout=subprocess.PIPE,
        text=True,
    )
    _check(done.returncode == 0, f"rebuilding {history} gives the same views")
    return {row["projection"]: row["after"] for row in json.loads(done.stdout)}


def _check(holds: bool, claim: str) -> None:
    if not holds:
        raise DemoFailed(f"this is not true: {claim}")


def _heading(text: str) -> None:
    console.say(f"\n== {text}")
