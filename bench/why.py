"""Measures the cost of an expensive `why`: `python -m bench.why [--nodes N] [--devices N]`.

A pod waits that no node can take: each of 500 nodes has 128 devices, some allocated, some tainted,
the others not selected. The question is asked over HTTP in this process, as JSON and as a page,
with and without what would help. As in `redra up`, the templates of the pages are compiled before
and the collector of garbage is set. Printed are how long the history takes to open, the median and
first time and processor time of each question, the size and the lines of the text.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Iterator, Sequence

import anyio
import httpx
import msgspec

from app.analysis.explain import pages
from app.analysis.explain.reasons import Reason
from app.bootstrap import garbage_collection
from app.domain.log import Actor, Event, EventType, ObjectKey, Revision, Stamp
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import SECOND, Instant
from app.settings import Settings
from app.web import frame
from bench import figures
from bench.recorded import recorded_history

TURNS = 7
NAME = "wide"
GROUP = "resource.k8s.io"
DRIVER = "gpu.example.com"
START = Instant(1_760_000_000 * SECOND)


def main(arguments: Sequence[str] = ()) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="bench.why", description=__doc__)
    parser.add_argument("--nodes", type=int, default=500)
    parser.add_argument("--devices", type=int, default=128)
    options = parser.parse_args(arguments)
    # As `redra up` does before it answers.
    for _ in frame.compile_templates():
        pass
    garbage_collection.expect_large_heap()
    garbage_collection.look_once()
    anyio.run(measure, options.nodes, options.devices)


async def measure(nodes: int, devices: int) -> None:
    """Fill a history and ask."""
    patient = Settings(page_wait_seconds=60.0)
    async with recorded_history(NAME, [list(_events(nodes, devices))], patient) as recorded:
        await _ask(recorded.client)


async def _ask(client: httpx.AsyncClient) -> None:
    began, used = time.perf_counter(), time.process_time()
    await client.get(f"/h/{NAME}/version")
    print(
        f"opened in {(time.perf_counter() - began) * 1000:.1f} ms "
        f"(processor {(time.process_time() - used) * 1000:.1f})"
    )
    question = "why?kind=pod&namespace=default&name=large"
    slowest = 0.0
    for name, address in (
        ("JSON", f"/redra/v1/histories/{NAME}/{question}"),
        ("page", f"/ui/h/{NAME}/{question}"),
        ("JSON, what would help", f"/redra/v1/histories/{NAME}/{question}&help=true"),
        ("page, what would help", f"/ui/h/{NAME}/{question}&help=true"),
    ):
        seconds, processor = [], []
        for _ in range(TURNS):
            began, used = time.perf_counter(), time.process_time()
            answer = await client.get(address)
            seconds.append(time.perf_counter() - began)
            processor.append(time.process_time() - used)
            assert answer.status_code == 200, answer.text
        median = statistics.median(seconds)
        if "help" not in name:
            slowest = max(slowest, median)
        lines = ""
        if name == "JSON":
            reason = Reason.from_json(answer.json()["reasons"])
            text = pages.page("why", reason.children)
            lines = f", {len(text)} lines"
        print(
            f"{median * 1000:8.1f} ms (first {seconds[0] * 1000:8.1f}, "
            f"processor {statistics.median(processor) * 1000:8.1f}, "
            f"of the first {processor[0] * 1000:8.1f}) "
            f"{len(answer.content) / 1000:8.1f} kB{lines}  {name}"
        )
    figures.note("why.worst", slowest * 1000)


def _events(nodes: int, devices: int) -> Iterator[Event]:
    for number, (resource, tree) in enumerate(_objects(nodes, devices), start=1):
        meta = tree["metadata"]
        group = GROUP if resource not in ("pods", "nodes", "namespaces") else ""
        meta |= {"uid": f"00000000-0000-4000-8000-{number:012x}", "resourceVersion": str(number)}
        yield Event(
            revision=Revision(number),
            type=EventType.OBJECT_CREATED,
            key=ObjectKey(group, resource, meta.get("namespace", ""), meta["name"]),
            uid=meta["uid"],
            body=msgspec.json.encode(tree, order="sorted"),
            stamp=Stamp(
                time=Instant(START + number), actor=Actor(user="bench"), verb="create", cause=0
            ),
        )


def _objects(nodes: int, devices: int) -> Iterator[tuple[str, JsonObject]]:
    selector = {"cel": {"expression": f"device.driver == '{DRIVER}'"}}
    yield "deviceclasses", _tree("gpu", spec={"selectors": [selector]})
    for node in range(nodes):
        name = f"node-{node:04}"
        room = {"cpu": "64", "memory": "512Gi", "pods": "200"}
        status = {"allocatable": room, "conditions": [{"type": "Ready", "status": "True"}]}
        yield "nodes", _tree(name, spec={}, status=status)
        pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
        own = [_device(number) for number in range(devices)]
        spec = {"driver": DRIVER, "nodeName": name, "pool": pool, "devices": own}
        yield "resourceslices", _tree(f"{name}-gpus", spec=spec)
        held = [
            {"request": "all", "driver": DRIVER, "pool": name, "device": f"gpu-{number}"}
            for number in range(min(devices, 32))
        ]
        request = {"name": "all", "exactly": {"deviceClassName": "gpu", "allocationMode": "All"}}
        yield (
            "resourceclaims",
            _tree(
                f"held-{node}",
                namespace="default",
                spec={"devices": {"requests": [request]}},
                status={"allocation": {"devices": {"results": held}}},
            ),
        )
    memory = f"device.capacity['{DRIVER}'].memory.compareTo(quantity('80Gi')) >= 0"
    exactly = {
        "deviceClassName": "gpu",
        "allocationMode": "ExactCount",
        "count": 4,
        "selectors": [{"cel": {"expression": memory}}],
    }
    wanted = {"requests": [{"name": "gpus", "exactly": exactly}]}
    yield "resourceclaims", _tree("large", namespace="default", spec={"devices": wanted})
    spec = {
        "containers": [{"name": "main", "image": "example.com/train:1"}],
        "resourceClaims": [{"name": "gpus", "resourceClaimName": "large"}],
        "schedulerName": "default-scheduler",
    }
    yield "pods", _tree("large", namespace="default", spec=spec, status={"phase": "Pending"})


def _device(number: int) -> JsonObject:
    memory = "80Gi" if number < 64 else "40Gi"
    device: JsonObject = {
        "name": f"gpu-{number}",
        "attributes": {"index": {"int": number}},
        "capacity": {"memory": {"value": memory}},
    }
    if 32 <= number < 64:
        device["taints"] = [{"key": "example.com/repair", "effect": "NoSchedule"}]
    return device


def _tree(name: str, *, namespace: str = "", **parts: JsonObject) -> JsonObject:
    metadata = {"name": name, "creationTimestamp": "2026-01-02T03:04:05Z"}
    return {"metadata": {**metadata, **({"namespace": namespace} if namespace else {})}, **parts}


if __name__ == "__main__":
    main(sys.argv[1:])
