"""`redra serve-replay` as a process: clients that follow end with what was recorded."""

import asyncio
import contextlib
import json
import os
import pty
import signal
import subprocess
import sys
import threading
import time
from functools import cached_property

import aiohttp
import httpx2
import lightkube
import pytest
import yaml
from kubernetes import client as k8s
from kubernetes.informer import SharedInformer
from kubernetes_asyncio import client as aio
from kubernetes_asyncio import watch as aio_watch
from lightkube.config.kubeconfig import KubeConfig
from lightkube.resources.core_v1 import Pod

from tests import draws
from tests.acceptance.kubectl_cluster import BIN
from tests.acceptance.server_process import ServerProcess
from tests.patience import PATIENCE_SECONDS
from tests.prepared_data import prepare
from tests.redra_process import ROOT, RedraProcess
from tests.redra_program import shared_program

pytestmark = [pytest.mark.database, pytest.mark.slow]

RECORDING = ROOT / "examples" / "recordings" / "maintenance"
REPLAY = "/redra/v1/histories/night~paced/replay"
PODS = "/api/v1/pods"


class ReplayProcess(ServerProcess):
    """A server that plays the recording, standing still until it is told to go."""

    command = ("serve-replay", "night", "--speed", "step")

    @cached_property
    def asking(self):
        """A client for all questions: a new one takes fifteen times the work of a question."""
        return self.client()

    def end(self, how=signal.SIGTERM):
        """End it, and the connections to it."""
        self.__dict__.pop("asking", self.client()).close()
        super().end(how)

    @property
    def paced(self):
        """Where the replay is served."""
        return f"{self.url}/h/night~paced"

    def order(self, **order):
        """Change the pace; returns how the replay stands."""
        answer = self.asking.post(REPLAY, json=order)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def wait_end(self):
        """Return once everything has been shown; each look is a request."""
        end = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < end:
            state = self.asking.get(REPLAY).json()
            if state["state"] == "ended":
                return state
            time.sleep(0.02)  # waits: a replay tells nobody that it has ended
        raise AssertionError(state)

    def pods(self, history="night~paced"):
        """The pods of a history by name, without what a replay cannot have in common."""
        items = self.asking.get(f"/h/{history}{PODS}").json()["items"]
        return {item["metadata"]["name"]: without_version(item) for item in items}


def kubeconfig(url):
    """What lightkube wants to know of a server that asks nobody who they are."""
    return {
        "clusters": [{"name": "c", "cluster": {"server": url}}],
        "users": [{"name": "u", "user": {}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }


def without_version(tree):
    return {**tree, "metadata": {**tree["metadata"], "resourceVersion": ""}}


def redra(data, *words):
    process = RedraProcess([*words, "--data", data])
    text, errors = process.communicate(timeout=120)
    assert process.returncode == 0, f"{text}{errors}"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("paced")
    process = ReplayProcess(folder)
    prepare(process.data)
    redra(process.data, "import", str(RECORDING), "--history", "night", "--keep-going")
    process.start()
    yield process
    process.end()


OPERATOR = """
import json, os, sys
import kopf

phases = {}
"The phase of every pod, as the events said it."

@kopf.on.event("", "v1", "pods")
def follow(type, name, namespace, status, **_):
    if type == "DELETED":
        phases.pop(name, None)
    else:
        phases[name] = status.get("phase")
    with open("believed.new", "w") as file:
        json.dump(phases, file)
    os.replace("believed.new", "believed.json")

@kopf.on.create("", "v1", "pods")
def handle(patch, **_):
    patch.metadata.annotations["example.com/handled"] = "yes"
"""


class Operator:
    """A running operator, and the folder in which it writes what it believes."""

    def __init__(self, folder, process):
        self._path = folder / "believed.json"
        self.pid = process.pid

    def believed(self):
        return json.loads(self._path.read_text()) if self._path.exists() else {}


@contextlib.contextmanager
def operator_of(url, folder):
    """An operator of kopf that handles all pods of a cluster."""
    (folder / "kubeconfig").write_text(yaml.safe_dump(kubeconfig(url)))
    (folder / "handlers.py").write_text(OPERATOR)
    with (folder / "kopf.log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "kopf", "run", "handlers.py", "-A", "--standalone"],
            cwd=folder, stdout=log, stderr=log,
            env={"KUBECONFIG": str(folder / "kubeconfig"), "HOME": str(folder)},
        )  # fmt: skip
    try:
        yield Operator(folder, process)
    finally:
        process.terminate()
        process.wait(timeout=20)


class Followers:
    """What each client believes there is, followed in a thread of its own until it is stopped."""

    def __init__(self, url, clients=("asyncio", "lightkube")):
        self.url = url
        self.believed = {client: {} for client in clients}
        self.stopped = threading.Event()
        works = {"asyncio": self._run_asyncio, "lightkube": self._run_lightkube}
        self._threads = [threading.Thread(target=works[client], daemon=True) for client in clients]
        for thread in self._threads:
            thread.start()

    def _run_asyncio(self):
        # The server ends before the threads do.
        with contextlib.suppress(aiohttp.ClientError):
            asyncio.run(self._follow_asyncio())

    async def _follow_asyncio(self):
        async with aio.ApiClient(aio.Configuration(host=self.url)) as connection:
            core = aio.CoreV1Api(connection)
            while not self.stopped.is_set():
                listed = await core.list_pod_for_all_namespaces()
                names = {pod.metadata.name: pod.status.phase for pod in listed.items}
                self.believed["asyncio"] = names
                # A watch that is told 410 ends with an error: it lists anew.
                with contextlib.suppress(aio.ApiException):
                    await self._watch_asyncio(core, listed.metadata.resource_version)

    async def _watch_asyncio(self, core, version):
        async with aio_watch.Watch().stream(
            core.list_pod_for_all_namespaces, resource_version=version, timeout_seconds=2
        ) as stream:
            async for event in stream:
                self._fold("asyncio", event["type"], event["object"])

    def _run_lightkube(self):
        client = lightkube.Client(config=KubeConfig.from_dict(kubeconfig(self.url)))
        with contextlib.suppress(httpx2.HTTPError):
            while not self.stopped.is_set():
                # Told 410, it lists anew.
                with contextlib.suppress(lightkube.ApiError):
                    self._follow_lightkube(client)

    def _follow_lightkube(self, client):
        listed = client.list(Pod, namespace="*")
        self.believed["lightkube"] = {pod.metadata.name: pod.status.phase for pod in listed}
        version = listed.resourceVersion
        watched = client.watch(Pod, namespace="*", resource_version=version, server_timeout=2)
        for kind, pod in watched:
            if self.stopped.is_set():
                return
            self._fold("lightkube", kind, pod)

    def _fold(self, who, kind, pod):
        if kind == "DELETED":
            self.believed[who].pop(pod.metadata.name, None)
        else:
            self.believed[who][pod.metadata.name] = pod.status.phase


@contextlib.contextmanager
def informer_of(url):
    """The informer of the official client."""
    core = k8s.CoreV1Api(k8s.ApiClient(k8s.Configuration(host=url)))
    informer = SharedInformer(core.list_pod_for_all_namespaces)
    informer.start()
    try:
        yield informer
    finally:
        informer.stop()


def wait_equal(wanted, *believers):
    """Return once all believe what is wanted; they hear of it by themselves."""
    end = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < end:
        if all(believer() == wanted for believer in believers):
            return
        time.sleep(0.05)  # waits: for clients in threads of their own
    raise AssertionError([(believer(), wanted) for believer in believers])


@draws.in_turn("ways")
def test_clients_end_with_what_was_recorded_though_the_replay_was_moved_back(server):
    recorded = server.pods("night")
    wanted = {name: pod["status"]["phase"] for name, pod in recorded.items()}
    assert wanted
    followers = Followers(server.paced)
    with informer_of(server.paced) as informer:
        server.order(speed="20x", paused=False)
        server.order(seek="10")
        server.order(speed="max")
        state = server.wait_end()
        assert state["conflicts"] == 0
        assert server.pods() == recorded

        def cached():
            return {pod.metadata.name: pod.status.phase for pod in informer.cache.list()}

        wait_equal(
            wanted,
            cached,
            lambda: followers.believed["asyncio"],
            lambda: followers.believed["lightkube"],
        )
    followers.stopped.set()


@draws.in_turn("ways")
def test_operator_ends_with_what_was_recorded_and_its_marks(server, tmp_path):
    """What it writes lies over the recording: no conflict, and nothing of the recording is lost."""
    recorded = server.pods("night")
    wanted = {name: pod["status"]["phase"] for name, pod in recorded.items()}
    server.order(paused=True)
    server.order(seek="1")
    with operator_of(server.paced, tmp_path) as operator:
        server.order(speed="10x", paused=False)
        state = server.wait_end()
        wait_equal(wanted, operator.believed)

        def marks():
            return {
                name: pod["metadata"].get("annotations", {}).get("example.com/handled")
                for name, pod in server.pods().items()
            }

        wait_equal(dict.fromkeys(wanted, "yes"), marks)
    assert state["conflicts"] == 0
    shown = {name: pod["spec"] for name, pod in server.pods().items()}
    assert shown == {name: pod["spec"] for name, pod in recorded.items()}


def kubectl_line(server, *words):
    return [str(BIN / "kubectl"), "--server", server.paced, *words]


def kubectl(server, folder, *words, stdin="", code=0):
    """What kubectl prints; of what it refuses, the error."""
    ended = subprocess.run(
        kubectl_line(server, "--cache-dir", folder, "-n", "taints", *words), input=stdin,
        env=os.environ | {"KUBECONFIG": os.devnull}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ended.returncode == code, ended.stderr
    return ended.stdout + ended.stderr


@contextlib.contextmanager
def kubectl_watching(server):
    """The process of `kubectl get pods -w`, which prints the type and the name of each event."""
    line = kubectl_line(server, "get", "pods", "-A", "-w", "--output-watch-events", "--no-headers")
    line += ["-o", "jsonpath={.type} {.object.metadata.name}{'\\n'}"]
    environment = os.environ | {"KUBECONFIG": os.devnull}
    process = subprocess.Popen(line, stdout=subprocess.PIPE, text=True, env=environment)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


@draws.in_turn(
    "ways",
    each_day="api/test_paced_replays.py::"
    "test_orders_move_the_replay_and_the_answer_says_where_it_stands",
)
def test_kubectl_watch_sees_every_pod_come_and_go(server):
    server.order(paused=True)
    server.order(seek="1")
    pods = server.pods("night")
    # A kubectl that begins late lists the marker after all others.
    there, marker = set(), "zz-marks-the-end"
    last = max(pod["metadata"]["namespace"] for pod in pods.values())
    with kubectl_watching(server) as watching:
        server.order(speed="max", paused=False)
        server.wait_end()
        body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": marker}}
        body["spec"] = {"containers": [{"name": "c", "image": "i"}]}
        made = server.asking.post(f"{server.paced}/api/v1/namespaces/{last}/pods", json=body)
        assert made.status_code == 201, made.text
        for event in watching.stdout:
            kind, name = event.split()
            if name == marker:
                break
            (there.discard if kind == "DELETED" else there.add)(name)
    assert there == set(pods)


BEFORE, AFTER = 62, 189
"""Revisions of the recording: five pods wait, and the last event of the second of them."""


def wait_revision(server, revision):
    end = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < end:
        if server.asking.get(REPLAY).json()["revision"] >= revision:
            return
        time.sleep(0.02)  # waits: a replay tells nobody how far it is
    raise AssertionError(revision)


@draws.in_turn("ways")
def test_writes_of_kubectl_lie_over_the_recording_until_it_is_moved_back(server, tmp_path):
    """What becomes of each write stood here before it was tried."""
    server.order(paused=True)
    server.order(seek=str(BEFORE - 2))
    stale = kubectl(server, tmp_path, "get", "pod", "plain-1", "-o", "json")
    server.order(seek=str(BEFORE))
    before = server.pods()
    refused = kubectl(server, tmp_path, "replace", "-f", "-", stdin=stale, code=1)
    assert "the object has been modified" in refused
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "more-1"}}
    pod["spec"] = {"containers": [{"name": "c", "image": "i"}]}
    kubectl(server, tmp_path, "create", "-f", "-", stdin=json.dumps(pod))
    kubectl(server, tmp_path, "label", "pod", "any-0", "mine=yes")
    kubectl(server, tmp_path, "delete", "pod", "tolerate-0", "--grace-period=0", "--force")
    merge = ("--type=merge", "-p")
    failed = '{"status": {"phase": "Failed"}}'
    kubectl(server, tmp_path, "patch", "pod", "plain-2", "--subresource=status", *merge, failed)
    kept = '{"metadata": {"finalizers": ["example.com/keep"]}}'
    kubectl(server, tmp_path, "patch", "pod", "tol12-0", *merge, kept)
    with kubectl_watching(server) as watching:
        assert watching.stdout.readline().startswith("ADDED ")
        server.order(speed="10x", paused=False)
        wait_revision(server, AFTER)
        state = server.order(paused=True)
        pods = server.pods()
        assert not {"any-0", "plain-2", "tolerate-0"} & pods.keys()
        assert pods["more-1"]["metadata"]["uid"] not in {
            pod["metadata"]["uid"] for pod in before.values()
        }
        assert pods["tol12-0"]["metadata"]["finalizers"] == ["example.com/keep"]
        assert pods["tol12-0"]["metadata"]["deletionTimestamp"]
        said = {
            (conflict["object"], conflict["conflict"]) for conflict in state["latest_conflicts"]
        }
        assert said == {
            ("pods/taints/more-1", "other-object"),
            ("pods/taints/tolerate-0", "deleted-here"),
            ("pods/taints/plain-2", "fields"),
            ("pods/taints/tol12-0", "held"),
        }
        free = '{"metadata": {"finalizers": null}}'
        kubectl(server, tmp_path, "patch", "pod", "tol12-0", *merge, free)
        assert "tol12-0" not in server.pods()
        server.order(seek=str(BEFORE))
        assert server.pods() == before
        seen = [line.split() for line in watching.stdout]
        assert ["DELETED", "any-0"] in seen
        assert ["DELETED", "plain-2"] in seen
        assert ["DELETED", "tol12-0"] in seen
        assert seen[-1] == ["ERROR"], "a client that watches is told to list anew"


@draws.in_turn("ends")
def test_replay_that_was_stopped_says_how_to_go_on(server, tmp_path):
    redra(server.data, "fork", "night", "--history", "stopped")
    process = ReplayProcess(tmp_path)
    process.data = server.data
    process.command = ("serve-replay", "stopped", "--speed", "step")
    replay = "/redra/v1/histories/stopped~paced/replay"
    pods = "/h/stopped~paced" + PODS
    process.start()
    try:
        with process.client() as client:
            stood = client.post(replay, json={"seek": "40"}).json()
            shown = client.get(pods).json()["items"]
        process.end(signal.SIGINT)
        said = process.log.read_text().splitlines()[-1]
        assert said == (
            f"stopped at revision {stood['revision']} of {stood['end_revision']}: `redra "
            f"serve-replay stopped --from {stood['revision']}` goes on from there, without what "
            "clients wrote"
        )
        process.command = (*process.command, "--from", str(stood["revision"]))
        process.start()
        with process.client() as client:
            assert client.get(replay).json()["revision"] == stood["revision"]
            again = client.get(pods).json()["items"]
            assert [without_version(pod) for pod in again] == list(map(without_version, shown))
            after = client.post(replay, json={"step": {}}).json()
            assert after["revision"] == stood["revision"] + 1
    finally:
        process.end()


def test_replay_with_conflicts_ends_with_exit_code_1(server, tmp_path):
    redra(server.data, "fork", "night", "--history", "judged")
    process = ReplayProcess(tmp_path)
    process.data = server.data
    process.command = ("serve-replay", "judged", "--speed", "step", "--until-end")
    process.start()
    try:
        with process.client() as client:
            replay = "/redra/v1/histories/judged~paced/replay"
            assert client.post(replay, json={"seek": str(BEFORE)}).status_code == 200
            pod, *_ = client.get("/h/judged~paced" + PODS).json()["items"]
            place = f"/h/judged~paced/api/v1/namespaces/{pod['metadata']['namespace']}/pods"
            gone = client.delete(f"{place}/{pod['metadata']['name']}?gracePeriodSeconds=0")
            assert gone.status_code == 200
            watch = client.stream("GET", place, params={"watch": "1"}, timeout=PATIENCE_SECONDS)
            with watch as watching, process.client() as other:
                other.post(replay, json={"speed": "max", "paused": False})
                # A watch that is cut off raises an error here.
                seen = [json.loads(line)["type"] for line in watching.iter_lines()]
        assert "DELETED" in seen
        assert process.wait_exit() == 1
        said = process.log.read_text()
        assert "clients deleted the object" in said
        assert "Traceback" not in said
    finally:
        process.end()


@draws.in_turn("ways")
def test_keys_of_the_terminal_change_the_pace(server):
    controller, terminal = pty.openpty()
    redra(server.data, "fork", "night", "--history", "keys")
    process = subprocess.Popen(
        [shared_program(), "serve-replay", "keys", "--speed", "step",
         "--listen", "127.0.0.1:0", "--data", str(server.data)],
        stdin=terminal, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, cwd=ROOT,
    )  # fmt: skip
    os.close(terminal)
    try:
        said = iter(process.stderr.readline, "")
        assert any(line.startswith("keys: ") for line in said)
        for keys, words in (
            (b"n", " paused, 1x, "),
            (b"m ", " running, max, "),
            (b"", "the replay has ended"),
            (b"\x1b[D", " conflicts"),
        ):
            os.write(controller, keys)
            assert any(words in line for line in said), words
        os.write(controller, b"q")
        assert process.wait(30) == 0
    finally:
        process.kill()
        process.communicate()
        os.close(controller)
