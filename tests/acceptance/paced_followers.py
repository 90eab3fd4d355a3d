"""Plays a recording at a pace to real clients, and measures when each of them hears of its pods.

    python -m tests.acceptance.paced_followers RECORDING --speed 100x [--stretch 20] [--kopf]
        [--client kubectl]…

Clients: `kubectl get -w`, the informer of the official client, the watchers of kubernetes-asyncio,
lightkube and kr8s, and with `--kopf` an operator that writes. Each is a process of its own.
`--client` chooses some of them, `--stretch` plays the audit log of the recording with times that
many times as far apart: a machine serves only so many changes a second. Printed for each client:
whether it ends in the shown state, its pace (recorded time by real time and speed, from the first
to the last pod that came or went), how late each was against the first, and the processor time that
it used while the recording was played; the same time of the server, also by delivered change.
"""

import argparse
import contextlib
import gzip
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from datetime import datetime
from pathlib import Path

from tests.acceptance import paced_clients
from tests.acceptance import test_paced_replay as paced
from tests.patience import PATIENCE_SECONDS
from tests.prepared_data import prepare
from tests.redra_process import ROOT, RedraProcess

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


def processor_seconds(process):
    """The processor time that a process has used."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Follower:
    """A client in a process of its own: what it heard and when, and what it believes at the end."""

    def __init__(self, line, **environment):
        self.heard = {}
        self.changes = 0
        self.believed = {}
        self.begun = threading.Event()
        self._process = subprocess.Popen(
            line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT,
            env=os.environ | environment,
        )  # fmt: skip
        self.pid = self._process.pid
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def note(self, kind, name, at):
        self.changes += 1
        if kind in CHANGES:
            self.heard.setdefault((kind, name), at)

    def forget(self):
        """Leave out what was heard while the clients began."""
        self.heard.clear()
        self.changes = 0

    def end(self):
        """End the client; what it believes is complete then."""
        self._process.stdin.close()
        self._reader.join(HEARD_SECONDS)
        self._process.kill()
        self._process.wait()

    def _read(self):
        for line in self._process.stdout:
            change = json.loads(line)
            if "believed" in change:
                self.believed = change["believed"]
            elif "begun" in change:
                self.begun.set()
            else:
                self.note(change["kind"], change["name"], change["at"])


class Kubectl(Follower):
    """`kubectl get -w`; it writes no times, so a line counts when it is read."""

    def __init__(self, url):
        line = [str(paced.BIN / "kubectl"), "--server", url, "get", "pods", "-A", "-w"]
        line += ["--output-watch-events", "-o"]
        line += ["jsonpath={.type} {.object.metadata.name} {.object.status.phase}{'\\n'}"]
        super().__init__(line, KUBECONFIG=os.devnull)
        self.begun.set()

    def _read(self):
        for line in self._process.stdout:
            kind, name, *phase = line.split()
            self.note(kind, name, time.time())
            if kind == "DELETED":
                self.believed.pop(name, None)
            else:
                self.believed[name] = next(iter(phase), None)


def follower_of(client, url):
    if client == "kubectl":
        return Kubectl(url)
    return Follower([sys.executable, "-m", "tests.acceptance.paced_clients", client, url])


def play(server, url, folder, speed, *, clients, with_kopf):
    """Play the recording; the followers, the state, who believes it, and all processor times."""
    followers = {client: follower_of(client, url) for client in clients}
    with contextlib.ExitStack() as stack:
        for follower in followers.values():
            stack.callback(follower.end)
        operator = None
        if with_kopf:
            (folder / "operator").mkdir()
            operator = stack.enter_context(paced.operator_of(url, folder / "operator"))
        for follower in followers.values():
            assert follower.begun.wait(PATIENCE_SECONDS), "a client does not begin"
        time.sleep(BEGUN_SECONDS)  # waits: for clients in processes of their own
        processes = {client: follower.pid for client, follower in followers.items()}
        processes |= {"server": server.pid} | ({"kopf": operator.pid} if operator else {})
        for follower in followers.values():
            follower.forget()
        before = {who: processor_seconds(process) for who, process in processes.items()}
        server.order(speed=speed, paused=False)
        state = server.wait_end()
        time.sleep(HEARD_SECONDS)  # waits: for clients in processes of their own
        used = {who: processor_seconds(processes[who]) - before[who] for who in processes}
        shown = {name: pod["status"].get("phase") for name, pod in server.pods().items()}
        believed = {} if operator is None else {"kopf": operator.believed()}
    believed |= {client: follower.believed for client, follower in followers.items()}
    return followers, state, {who: pods == shown for who, pods in believed.items()}, used


def report(followers, due, factor, used):
    for who, follower in sorted(followers.items()):
        times = follower.heard
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
            f"{1000 * max(late):.0f} ms; {used[who]:.2f} s of processor time"
        )
    changes = sum(follower.changes for follower in followers.values())
    others = {who: seconds for who, seconds in used.items() if who not in followers}
    print("; ".join(f"{who} {seconds:.2f} s of processor time" for who, seconds in others.items()))
    if changes:
        each = used["server"] / changes * 1e6
        print(f"{changes} changes delivered to these clients, {each:.0f} µs of the server each")


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.acceptance.paced_followers")
    parser.add_argument("recording", type=Path)
    parser.add_argument("--speed", default="10x")
    parser.add_argument("--stretch", type=int, default=1)
    parser.add_argument("--kopf", action="store_true")
    every = ("kubectl", *paced_clients.CLIENTS)
    parser.add_argument("--client", choices=every, action="append")
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
    clients = words.client or every
    try:
        played = play(
            server, server.paced, folder, words.speed, clients=clients, with_kopf=words.kopf
        )
        followers, state, ends, used = played
        print(f"{state['conflicts']} conflicts; ends in the shown state: {ends}")
        late = 1000 * state["late_seconds_max"]
        print(f"the server was at most {late:.0f} ms late; what clients hear later waits for them")
        report(followers, due, float(words.speed.removesuffix("x")), used)
    finally:
        server.end()
    sys.exit(0 if all(ends.values()) else 1)


if __name__ == "__main__":
    main()
