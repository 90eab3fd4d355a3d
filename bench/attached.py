"""Measures the delay until `why` knows about a change in an attached cluster.

    python -m bench.attached [--rate 100] [--seconds 20] [--nodes 20]

One `redra up` acts as the cluster, another is attached to it. While `--rate` writes a second
(changed claims, waiting pods) go to the cluster, a waiting pod is created every tenth of a second,
and its reasons are requested until the attached history knows it. The time counts from sending the
write to receiving the reasons. Both servers and the clients share the machine.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from bench import figures, processes
from bench.api import CLAIMS, Client, Server, cpu_seconds
from bench.folder import temporary_data
from bench.watching import report

NAMESPACE = "/api/v1/namespaces/default"
WHY = "/redra/v1/histories/prod/why?kind=pod&namespace=default&name="
PROBES_PER_SECOND = 10
OBJECTS = 50
WRITERS = 8
ASKERS = 10
PATIENCE = 60.0


@contextmanager
def up(folder: Path, *options: str) -> Iterator[Server]:
    """A `redra up` on a free port."""
    command = [sys.executable, "-m", "app.cli", "up", "--listen", "127.0.0.1:0", *options]
    command += ["--data", str(folder)]
    environment = processes.keeps_compiled()
    server = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        line = server.stdout.readline()
        yield Server(process=server.pid, port=int(line.strip().rpartition(":")[2]))
    finally:
        server.terminate()
        server.wait(timeout=120)


def pod(name: str) -> bytes:
    """A pod that no node takes."""
    container = {"name": "c", "image": "i"}
    spec = {"nodeSelector": {"disk": "none"}, "containers": [container]}
    tree = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
    return json.dumps(tree).encode()


def claim(number: int) -> bytes:
    """An unused claim."""
    exactly = {"deviceClassName": "none.example.com"}
    return json.dumps(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {"name": f"m{number}"},
            "spec": {"devices": {"requests": [{"name": "r", "exactly": exactly}]}},
        }
    ).encode()


async def created(client: Client, path: str, body: bytes) -> None:
    """Creates an object, which may already exist."""
    status, answer = await client.request("POST", path, body)
    assert status in (201, 409), answer


async def prepare(cluster: Server, nodes: int) -> None:
    """The namespace and the nodes of the cluster."""
    client = await Client.connect(cluster.port)
    metadata = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}
    await created(client, "/api/v1/namespaces", json.dumps(metadata).encode())
    for number in range(nodes):
        tree = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": f"n{number}"}}
        await created(client, "/api/v1/nodes", json.dumps(tree).encode())
    for number in range(OBJECTS):
        await created(client, CLAIMS, claim(number))
    client.writer.close()


async def known(client: Client, name: str) -> bool:
    """Whether the attached history has the reasons of a pod."""
    status, answer = await client.request("GET", f"{WHY}{name}")
    assert status in (200, 404), answer
    return status == 200


async def length(cluster: Server) -> int:
    """The revision of the played cluster: controllers write in addition to the planned writes."""
    client = await Client.connect(cluster.port)
    _, answer = await client.request("GET", "/redra/v1/histories/default")
    client.writer.close()
    return int(json.loads(answer)["revision"])


async def measure(cluster: Server, attached: Server, rate: int, seconds: float) -> float:
    """Writes for a while and asks meanwhile; returns the 99th percentile in ms."""
    writes = 0
    late: list[float] = []
    first = await length(cluster)
    start = time.perf_counter()
    before = cpu_seconds(attached.process), cpu_seconds(cluster.process)

    async def write(lane: int) -> None:
        nonlocal writes
        client = await Client.connect(cluster.port)
        turn = lane
        while (now := time.perf_counter()) - start < seconds:
            due = start + turn / (rate - PROBES_PER_SECOND)
            await asyncio.sleep(max(0.0, due - now))
            turn += WRITERS
            writes += 1
            changed = {"metadata": {"annotations": {"turn": str(writes)}}}
            path = f"{CLAIMS}/m{writes % OBJECTS}"
            status, answer = await client.request(
                "PATCH", path, json.dumps(changed).encode(), "application/merge-patch+json"
            )
            assert status == 200, answer
        client.writer.close()

    async def probe(lane: int) -> None:
        source = await Client.connect(cluster.port)
        asking = await Client.connect(attached.port)
        turn = lane
        while (due := start + turn / PROBES_PER_SECOND) - start < seconds:
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            name = f"p-{turn}"
            sent = time.perf_counter()
            await created(source, f"{NAMESPACE}/pods", pod(name))
            while not await known(asking, name):
                assert time.perf_counter() < sent + PATIENCE, f"{name} is not known"
                await asyncio.sleep(0.01)
            late.append(time.perf_counter() - sent)
            turn += ASKERS
        source.writer.close()
        asking.writer.close()

    await asyncio.gather(
        *(write(lane) for lane in range(WRITERS)), *(probe(lane) for lane in range(ASKERS))
    )
    took = time.perf_counter() - start
    revision = await length(cluster)
    spent = cpu_seconds(attached.process) - before[0]
    print(f"{'writes of this client a second':44} {(writes + len(late)) / took:7.1f}")
    print(f"{'processor time of the cluster that is played':44} "
          f"{(cpu_seconds(cluster.process) - before[1]) / took:7.2f} of a core")  # fmt: skip
    print(f"{'events of the cluster a second':44} {(revision - first) / took:7.1f}")
    _, p99 = report(f"why on an attached cluster, {rate} writes/s", late, spent)
    return p99


async def run(cluster: Server, attached: Server, arguments: argparse.Namespace) -> float:
    """Wait for the attached history, then measure."""
    client = await Client.connect(attached.port)
    end = time.perf_counter() + PATIENCE
    while (await client.request("GET", f"/h/prod{NAMESPACE}/pods"))[0] != 200:
        assert time.perf_counter() < end, "the cluster is not attached"
        await asyncio.sleep(0.1)
    client.writer.close()
    return await measure(cluster, attached, arguments.rate, arguments.seconds)


def main(words: Sequence[str] = ()) -> None:
    """Run the measurement."""
    import uvloop

    parser = argparse.ArgumentParser(prog="python -m bench.attached")
    parser.add_argument("--rate", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--nodes", type=int, default=20)
    arguments = parser.parse_args(words)
    with temporary_data() as folder, up(folder) as cluster:
        asyncio.run(prepare(cluster, arguments.nodes))
        kubeconfig = str(folder / "kubeconfig")
        os.environ.pop("KUBECONFIG", None)
        with (
            temporary_data() as own,
            up(own, "--attach", "prod", "--kubeconfig", kubeconfig) as attached,
        ):
            figures.note("attached.why.p99", uvloop.run(run(cluster, attached, arguments)))


if __name__ == "__main__":
    main(sys.argv[1:])
