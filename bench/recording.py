"""Measures `redra record` on a large cluster: memory, time and requests.

    python -m bench.recording [--nodes 5000] [--pods 50000] [--rate 50] [--seconds 60]

One `redra up` without controllers acts as the cluster; it is filled with nodes and placed pods.
First the cluster is recorded with `--once`. Then the recording goes on while pods change, `--rate`
times a second: of ten changes eight set a label, one creates a pod and one deletes it again. The
memory is the resident memory of the recorder alone, without the database that it writes to; it is
shown from time to time, with the processor time since the line before.
"""

import argparse
import asyncio
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from bench.api import Client, Server, cpu_seconds
from bench.attached import created, up
from bench.folder import temporary_data
from bench.processes import keeps_compiled

CREATORS = 16
PODS = "/api/v1/namespaces/default/pods"
NOW = json.dumps({"gracePeriodSeconds": 0}).encode()
LINES = 6
"""The lines about the memory while pods change."""
_PEAK = re.compile(r"VmHWM:\s+(\d+) kB")
_PRESENT = re.compile(r"VmRSS:\s+(\d+) kB")
_LISTED = re.compile(r'verb="(?P<verb>LIST|WATCH|GET)".*\} (?P<count>[\d.]+)$')


def node(number: int) -> bytes:
    """A node that is ready and has a size."""
    amounts = {"cpu": "64", "memory": "256Gi", "pods": "110"}
    tree = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": f"n{number}", "labels": {"kubernetes.io/hostname": f"n{number}"}},
        "status": {
            "allocatable": amounts,
            "capacity": amounts,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }
    return json.dumps(tree).encode()


def pod(number: int, nodes: int) -> bytes:
    """A placed pod with some environment, as workloads have it."""
    env = [{"name": f"SERVICE_{at}_ADDRESS", "value": f"service-{at}.shop:80"} for at in range(12)]
    resources = {"requests": {"cpu": "100m", "memory": "128Mi"}}
    tree = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"p{number}", "labels": {"app": f"a{number % 500}"}},
        "spec": {
            "nodeName": f"n{number % nodes}",
            "containers": [{"name": "c", "image": "i", "env": env, "resources": resources}],
        },
    }
    return json.dumps(tree).encode()


async def fill(cluster: Server, nodes: int, pods: int) -> None:
    """The nodes and pods of the cluster."""

    async def create(lane: int, path: str, count: int, body: Callable[[int], bytes]) -> None:
        client = await Client.connect(cluster.port)
        for number in range(lane, count, CREATORS):
            await created(client, path, body(number))
        client.writer.close()

    async def all_of(path: str, count: int, body: Callable[[int], bytes]) -> None:
        await asyncio.gather(*(create(lane, path, count, body) for lane in range(CREATORS)))

    await all_of("/api/v1/nodes", nodes, node)
    await all_of(PODS, pods, lambda number: pod(number, nodes))


async def change(cluster: Server, pods: int, rate: float, seconds: float) -> tuple[int, int]:
    """Changes pods at a rate; returns the number of changes, and of those that were put off."""
    client = await Client.connect(cluster.port)
    begin, number, refused = time.perf_counter(), 0, 0
    while (due := begin + number / rate) < begin + seconds:
        await asyncio.sleep(max(0.0, due - time.perf_counter()))
        round_, step = divmod(number, 10)
        status = 0
        while status in (0, 503):
            match step:
                case 8:
                    path, method, body = PODS, "POST", pod(pods + round_, 1)
                case 9:
                    path, method, body = f"{PODS}/p{pods + round_}", "DELETE", NOW
                case _:
                    path, method = f"{PODS}/p{number % pods}", "PATCH"
                    body = json.dumps({"metadata": {"labels": {"turn": str(number)}}}).encode()
            kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
            status, answer = await client.request(method, path, body, kind)
            assert status in (200, 201, 503), answer
            if status == 503:
                refused += 1
                await asyncio.sleep(1)
        number += 1
    client.writer.close()
    return number, refused


def megabytes(process: int, of: "re.Pattern[str]" = _PEAK) -> int:
    """The highest resident memory of a process so far, in MiB; 0 for one that has ended."""
    try:
        match = of.search(Path(f"/proc/{process}/status").read_text())
    except OSError:
        return 0
    return 0 if match is None else int(match[1]) >> 10


def record(kubeconfig: str, folder: Path, *options: str) -> "subprocess.Popen[str]":
    """A recorder of the cluster."""
    command = [sys.executable, "-m", "app.cli", "record", "--history", "prod", "--data"]
    return subprocess.Popen(
        [*command, str(folder), "--kubeconfig", kubeconfig, *options],
        env=keeps_compiled(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def watched(recorder: "subprocess.Popen[str]", is_over: Callable[[], bool]) -> tuple[int, float]:
    """The highest memory and the CPU time of a recorder, until something is over."""
    peak, spent = 0, 0.0
    while not is_over():
        peak = max(peak, megabytes(recorder.pid))
        try:
            spent = cpu_seconds(recorder.pid)
        except OSError:
            break
        time.sleep(0.2)
    return peak, spent


async def changed(
    cluster: Server, recorder: int, pods: int, rate: float, seconds: float
) -> tuple[int, int]:
    """The numbers of `change`, while memory and processor time of the recorder are shown."""

    async def show() -> None:
        began, spent = time.perf_counter(), cpu_seconds(recorder)
        while True:
            await asyncio.sleep(seconds / LINES)
            now, used = time.perf_counter(), cpu_seconds(recorder)
            share = 100 * (used - spent) / (now - began)
            memory = megabytes(recorder, _PRESENT)
            print(f"{'memory and processor while pods change':44} {memory:7} MiB {share:5.1f} %")
            began, spent = now, used

    showing = asyncio.create_task(show())
    try:
        return await change(cluster, pods, rate, seconds)
    finally:
        showing.cancel()


async def requests(cluster: Server) -> dict[str, int]:
    """How many lists and watches the cluster has answered so far."""
    client = await Client.connect(cluster.port)
    _, answer = await client.request("GET", "/metrics")
    client.writer.close()
    counts: dict[str, int] = {}
    for line in answer.decode().splitlines():
        if line.startswith("apiserver_request_total") and (match := _LISTED.search(line)):
            counts[match["verb"]] = counts.get(match["verb"], 0) + int(float(match["count"]))
    return counts


def main(words: Sequence[str] = ()) -> None:
    """Run the measurement."""
    parser = argparse.ArgumentParser(prog="python -m bench.recording")
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods", type=int, default=50_000)
    parser.add_argument("--rate", type=float, default=50.0)
    parser.add_argument("--seconds", type=float, default=60.0)
    arguments = parser.parse_args(words)
    os.environ.pop("KUBECONFIG", None)
    with temporary_data() as folder, up(folder, "--no-workers") as cluster:
        began = time.perf_counter()
        asyncio.run(fill(cluster, arguments.nodes, arguments.pods))
        print(f"{'filled in':44} {time.perf_counter() - began:7.1f} s", flush=True)
        kubeconfig = str(folder / "kubeconfig")
        with temporary_data() as own:
            before = asyncio.run(requests(cluster))
            began = time.perf_counter()
            once = record(kubeconfig, own, "--once")
            peak, spent = watched(once, lambda: once.poll() is not None)
            print(f"{'recorded once in':44} {time.perf_counter() - began:7.1f} s")
            print(f"{'processor time of the recorder':44} {spent:7.1f} s")
            print(f"{'highest memory of the recorder':44} {peak:7} MiB", flush=True)
            assert once.stdout is not None
            print(once.stdout.read())
            assert once.returncode == 0
            after = asyncio.run(requests(cluster))
            print({verb: after[verb] - before.get(verb, 0) for verb in after})
            goes_on = record(kubeconfig, own)
            try:
                end = time.perf_counter() + 30
                peak, spent = watched(goes_on, lambda: time.perf_counter() > end)
                print(f"{'highest memory until it goes on':44} {peak:7} MiB")
                print(f"{'processor time until it goes on':44} {spent:7.1f} s", flush=True)
                made, refused = asyncio.run(
                    changed(cluster, goes_on.pid, arguments.pods, arguments.rate, arguments.seconds)
                )
                end = time.perf_counter() + 10
                peak, spent = watched(goes_on, lambda: time.perf_counter() > end)
            finally:
                goes_on.terminate()
                output, _ = goes_on.communicate(timeout=120)
            print(f"{'changes, and those that the cluster put off':44} {made:7} {refused:7}")
            print(f"{'highest memory while it goes on':44} {peak:7} MiB")
            print(f"{'processor time of the recorder that goes on':44} {spent:7.1f} s")
            print(output)


if __name__ == "__main__":
    main(sys.argv[1:])
