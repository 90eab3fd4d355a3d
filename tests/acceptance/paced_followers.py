"""Plays a recording at a pace to real clients, and measures when each of them hears of its pods.

    python -m tests.acceptance.paced_followers RECORDING --speed 100x [--stretch 20] [--kopf]

Clients: `kubectl get -w`, the informer of the official client, the watchers of kubernetes-asyncio,
lightkube and kr8s, and with `--kopf` an operator that writes. `--stretch` plays the audit log of
the recording with times that many times as far apart: a machine serves only so many changes a
second. Printed for each client: whether it ends in the shown state, its pace (recorded time by real
time and speed, from the first to the last pod that came or went), and how late each was against
the first.
"""

import argparse
import asyncio
import contextlib
import gzip
import json
import os
import subprocess
import tempfile
import threading
import time
from datetime import datetime
from pathlib import Path

import kr8s
import yaml

from tests.acceptance import test_paced_replay as paced
from tests.prepared_data import prepare
from tests.redra_process import RedraProcess

BEGUN_SECONDS = 8
"""Time in which every client begins to follow."""

HEARD_SECONDS = 3
"""Time after the end in which every client hears of the last events."""

CHANGES = ("ADDED", "DELETED")


def instant(text):
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


def stretched(recording, factor, folder):
    """The audit log of a recording with its times apart; other files would contradict them."""
    (log,) = Path(recording).glob("audit*")
    opened = gzip.open if log.suffix == ".gz" else open
    with opened(log, "rt") as file:
        events = [json.loads(line) for line in file]
    names = ("requestReceivedTimestamp", "stageTimestamp")
    first = min(instant(event[names[0]]) for event in events)
    for event in events:
        begun, ended = (instant(event[name]) for name in names)
        moved = first + factor * (begun - first)
        times = (moved, moved + (ended - begun))
        event |= {
            name: at.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
            for name, at in zip(names, times, strict=True)
        }
    folder.mkdir()
    (folder / "audit.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events))
    return folder


def due_times(data):
    """When each pod came and went in the recording, in seconds."""
    text, _ = RedraProcess(["log", "night", "--data", data]).communicate(timeout=300)
    due = {}
    for line in text.splitlines():
        event = json.loads(line)
        kind = {"ObjectCreated": "ADDED", "ObjectDeleted": "DELETED"}.get(event["type"])
        place, stamp = event["payload"], event["stamp"]
        if kind and place["resource"] == "pods" and stamp["verb"] != "baseline":
            due.setdefault((kind, place["name"]), instant(stamp["time"]).timestamp())
    return due


class TimedFollowers(paced.Followers):
    """All clients that follow by a watch, what they believe, and when they heard of each pod."""

    def __init__(self, url, folder):
        self.heard = {}
        self._folder = folder
        super().__init__(url)
        self.believed |= {"kubectl": {}, "kr8s": {}}
        line = [str(paced.BIN / "kubectl"), "--server", url, "get", "pods", "-A", "-w"]
        line += ["--output-watch-events", "-o"]
        line += ["jsonpath={.type} {.object.metadata.name} {.object.status.phase}{'\\n'}"]
        self.kubectl = subprocess.Popen(
            line, stdout=subprocess.PIPE, text=True, env=os.environ | {"KUBECONFIG": os.devnull}
        )
        for work in (self._run_kubectl, self._run_kr8s):
            threading.Thread(target=work, daemon=True).start()

    def note(self, who, kind, name):
        if kind in CHANGES:
            self.heard.setdefault(who, {}).setdefault((kind, name), time.time())

    def forget(self):
        """Leave out what was heard while the clients began."""
        for times in [*self.heard.values()]:
            times.clear()

    def _fold(self, who, kind, pod):
        self.note(who, kind, pod.metadata.name)
        super()._fold(who, kind, pod)

    def _take(self, who, kind, name, phase):
        self.note(who, kind, name)
        if kind == "DELETED":
            self.believed[who].pop(name, None)
        else:
            self.believed[who][name] = phase

    def _run_kubectl(self):
        for line in self.kubectl.stdout:
            kind, name, *phase = line.split()
            self._take("kubectl", kind, name, next(iter(phase), None))

    def _run_kr8s(self):
        asyncio.run(self._follow_kr8s())

    async def _follow_kr8s(self):
        path = self._folder / "kubeconfig-kr8s"
        path.write_text(yaml.safe_dump(paced.kubeconfig(self.url)))
        api = await kr8s.asyncio.api(kubeconfig=str(path))
        while not self.stopped.is_set():
            # A watch that the server ends is begun again.
            with contextlib.suppress(Exception):
                async for kind, pod in api.watch("pods", namespace=kr8s.ALL):
                    phase = pod.raw.get("status", {}).get("phase")
                    self._take("kr8s", kind, pod.name, phase)


def play(server, url, folder, speed, *, with_kopf):
    """Play the recording; the followers, the state, and who believes what was shown."""
    followers = TimedFollowers(url, folder)
    with contextlib.ExitStack() as stack:
        informer = stack.enter_context(paced.informer_of(url))
        for kind in CHANGES:
            informer.add_event_handler(
                kind, lambda pod, kind=kind: followers.note("informer", kind, pod.metadata.name)
            )
        operator = None
        if with_kopf:
            (folder / "operator").mkdir()
            operator = stack.enter_context(paced.operator_of(url, folder / "operator"))
        time.sleep(BEGUN_SECONDS)  # waits: for clients in threads and processes of their own
        followers.forget()
        server.order(speed=speed, paused=False)
        state = server.wait_end()
        time.sleep(HEARD_SECONDS)  # waits: for clients in threads and processes of their own
        shown = {name: pod["status"].get("phase") for name, pod in server.pods().items()}
        believed = dict(followers.believed)
        believed["informer"] = {
            pod.metadata.name: pod.status.phase for pod in informer.cache.list()
        }
        if operator is not None:
            believed["kopf"] = operator()
    followers.stopped.set()
    followers.kubectl.kill()
    return followers, state, {who: pods == shown for who, pods in believed.items()}


def report(followers, due, factor):
    for who, times in sorted(followers.heard.items()):
        keys = sorted((key for key in times if key in due), key=due.get)
        if len(keys) < 2:
            print(f"{who}: heard of {len(keys)} pods that came or went")
            continue
        first, last = keys[0], keys[-1]
        span, took = due[last] - due[first], times[last] - times[first]
        late = [times[key] - times[first] - (due[key] - due[first]) / factor for key in keys]
        print(
            f"{who:10} {len(keys)} events, {span:.1f} s of the recording in {took:.2f} s: pace "
            f"{span / took / factor:.3f}; against the first {1000 * min(late):.0f} to "
            f"{1000 * max(late):.0f} ms"
        )


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.acceptance.paced_followers")
    parser.add_argument("recording", type=Path)
    parser.add_argument("--speed", default="10x")
    parser.add_argument("--stretch", type=int, default=1)
    parser.add_argument("--kopf", action="store_true")
    words = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="redra-paced-"))
    recording = words.recording
    if words.stretch > 1:
        recording = stretched(recording, words.stretch, folder / "recording")
    server = paced.ReplayProcess(folder)
    prepare(server.data)
    paced.redra(server.data, "import", str(recording), "--history", "night", "--keep-going")
    due = due_times(server.data)
    server.start()
    try:
        played = play(server, server.paced, folder, words.speed, with_kopf=words.kopf)
        followers, state, ends = played
        print(f"{state['conflicts']} conflicts; ends in the shown state: {ends}")
        report(followers, due, float(words.speed.removesuffix("x")))
    finally:
        server.end()
    # Threads of clients may still wait for the server.
    os._exit(0 if all(ends.values()) else 1)


if __name__ == "__main__":
    main()
