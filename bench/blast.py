"""Measures the cost of a blast radius: `python -m bench.blast [--nodes N] [--pods N]`.

The cluster has nodes with eight devices each, and pods with their own claims. The questions are a
rule on one pool, a rule on the whole driver, and a class that no longer matches any device. Only
freezing the views blocks the event loop; the rest runs in a thread.
"""

import argparse
import sys
import time
from collections.abc import Sequence

from app.analysis.blast import compare
from app.analysis.blast import world as blasting_world
from app.analysis.blast.compare import Put
from app.analysis.views import LiveViews
from app.bootstrap.rules import rules_for
from app.domain.log import (
    Actor,
    Event,
    EventType,
    HistoryId,
    HistoryInfo,
    ObjectKey,
    Revision,
    Stamp,
)
from app.domain.log.chain import canonical_json
from app.domain.objects.profile import Profile
from app.domain.values import timestamps
from app.domain.values.json_tree import JsonObject

GROUP = "resource.k8s.io"
DRIVER = "gpu.example.com"
DEVICES = 8
NAMESPACES = 20
NOW = timestamps.parse("2026-01-02T03:00:00Z")
_STAMP = Stamp(time=NOW, actor=Actor(user="bench"), verb="create")


class Filled:
    """Views of a cluster that is filled in directly, without writes."""

    def __init__(self) -> None:
        self.views = LiveViews(Profile())
        self._revision = 0

    def put(self, kind: str, key: ObjectKey, **tree: object) -> None:
        self._revision += 1
        uid = f"{key.resource}-{key.name}"
        metadata = {"name": key.name, "uid": uid, "resourceVersion": str(self._revision)}
        if key.namespace:
            metadata["namespace"] = key.namespace
        version = f"{key.group}/v1" if key.group else "v1"
        whole: JsonObject = {"apiVersion": version, "kind": kind, "metadata": metadata, **tree}
        self.views.fold(
            Event(
                revision=Revision(self._revision),
                type=EventType.OBJECT_CREATED,
                key=key,
                uid=uid,
                body=canonical_json(whole),
                stamp=_STAMP,
            )
        )


def filled(nodes: int, pods: int) -> LiveViews:
    """The cluster: every pod holds one device."""
    world = Filled()
    selectors = [{"cel": {"expression": f"device.driver == '{DRIVER}'"}}]
    key = ObjectKey(GROUP, "deviceclasses", "", "gpu")
    world.put("DeviceClass", key, spec={"selectors": selectors})
    for number in range(nodes):
        name = f"node-{number:05}"
        spec = {
            "driver": DRIVER,
            "nodeName": name,
            "pool": {"name": name, "generation": 1, "resourceSliceCount": 1},
            "devices": [
                {"name": f"gpu-{index}", "capacity": {"memory": {"value": "80Gi"}}}
                for index in range(DEVICES)
            ],
        }
        world.put("ResourceSlice", ObjectKey(GROUP, "resourceslices", "", name), spec=spec)
    for number in range(pods):
        put_pod(world, number, f"node-{number // DEVICES % nodes:05}")
    return world.views


def put_pod(world: Filled, number: int, node: str) -> None:
    """A running pod with its claim."""
    namespace, pod, claim = f"team-{number % NAMESPACES}", f"pod-{number}", f"claim-{number}"
    world.put(
        "Pod",
        ObjectKey("", "pods", namespace, pod),
        spec={
            "nodeName": node,
            "resourceClaims": [{"name": "gpu", "resourceClaimName": claim}],
            "containers": [{"name": "main", "image": "busybox:1"}],
        },
        status={"phase": "Running"},
    )
    exactly = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}
    result = {"request": "gpu", "driver": DRIVER, "pool": node, "device": f"gpu-{number % DEVICES}"}
    world.put(
        "ResourceClaim",
        ObjectKey(GROUP, "resourceclaims", namespace, claim),
        spec={"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}},
        status={
            "allocation": {"devices": {"results": [result]}},
            "reservedFor": [{"resource": "pods", "name": pod, "uid": f"pods-{pod}"}],
        },
    )


def proposal(kind: str, name: str, spec: JsonObject) -> Put:
    """An object as a user would apply it."""
    metadata = {"name": name}
    tree = {"apiVersion": f"{GROUP}/v1", "kind": kind, "metadata": metadata, "spec": spec}
    return Put(tree=tree)


def rule(**selector: str) -> Put:
    """A rule that evicts from the devices it selects."""
    taint = {"key": "example.com/bad", "effect": "NoExecute"}
    selected = {"driver": DRIVER, **selector}
    return proposal("DeviceTaintRule", "rule", {"deviceSelector": selected, "taint": taint})


def main(arguments: Sequence[str] = ()) -> None:
    """Asks the three questions and prints the CPU seconds of each."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--nodes", type=int, default=1_000)
    parser.add_argument("--pods", type=int, default=8_000)
    chosen, _ = parser.parse_known_args()
    views = filled(chosen.nodes, chosen.pods)
    rules = rules_for(Profile())
    info = HistoryInfo(id=HistoryId(1), name="bench")
    print(f"{chosen.nodes} nodes, {chosen.pods} pods with a claim each")
    nothing = {"selectors": [{"cel": {"expression": "false"}}]}
    for name, change in (
        ("rule on one pool", rule(pool="node-00001")),
        ("rule on the driver", rule()),
        ("class that matches nothing", proposal("DeviceClass", "gpu", nothing)),
    ):
        started = time.process_time()
        frozen = blasting_world.freeze(views, info, rules, NOW)
        between = time.process_time()
        found = compare.blast(frozen, [change])
        ended = time.process_time()
        print(
            f"{name}: frozen in {(between - started) * 1e3:.0f} ms, answered in "
            f"{ended - between:.2f} s, {found.totals['pods_evicted']} pods evicted, "
            f"{found.totals['claims']} claims concerned"
        )


if __name__ == "__main__":
    main(sys.argv[1:])
