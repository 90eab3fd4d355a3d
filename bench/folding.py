"""Measures folding a log into all views: `python -m bench.folding [--events N] [--profile]`.

The log is made up: pods with a claim each run through their life on 500 nodes (created, claim
generated, decided, allocated, bound, running, finished, freed, deleted), slices change now and
then. Objects are about 1.5 KB. Making the events is not counted; decoding them is. The second
figure of a run also takes, computes and hashes every changed row each 5,000 events, which is what
the materialising projector does before it writes.
"""

import argparse
import gc
import sys
import time
from collections.abc import Iterator, Sequence
from itertools import islice

import msgspec

from app.domain.log import DECISION, Actor, Event, EventType, ObjectKey, Revision, Stamp
from app.domain.log.pages import Page
from app.domain.log.projection import Projection
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import SECOND, Instant
from app.service.folding import projecting
from bench import figures
from projections import all_projections

PAGE = 5_000
TURN = projecting.FoldingBounds().turn_max
NODES = 500
ALIVE = 2_000
"""Pods that are alive at the same time."""

_START = Instant(1_760_000_000 * SECOND)
_DRA = "resource.k8s.io"
_encode = msgspec.json.Encoder(order="sorted").encode
_USER = Actor(user="alice")
_SCHEDULER = Actor(user="system:kube-scheduler")
_CONTROLLER = Actor(user="system:serviceaccount:kube-system:resource-claim-controller")
DRIVER = Actor(user="system:serviceaccount:dra-driver:dra-driver")


def main(arguments: Sequence[str] = ()) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="bench.folding", description=__doc__)
    parser.add_argument("--events", type=int, default=200_000)
    parser.add_argument("--profile", action="store_true", help="seconds by projection instead")
    options = parser.parse_args(arguments)
    # What the service does at start-up: the trees of one page die young, the views do not.
    gc.freeze()
    gc.set_threshold(100_000, 20, 50)
    if options.profile:
        measure_each(options.events)
        return
    seconds, size = measure_fold(options.events)
    print(
        f"fold into all views: {options.events / seconds:,.0f} events/s "
        f"({seconds / options.events * 1e6:.1f} µs an event of {size:,.0f} bytes)"
    )
    figures.note("folding.event", seconds / options.events * 1e6)
    seconds, rows = measure_rows(options.events)
    figures.note("folding.million_with_rows", seconds / options.events * 1e6)
    print(
        f"fold, take and hash rows: {options.events / seconds:,.0f} events/s "
        f"({rows / options.events:.2f} rows an event)"
    )


def measure_fold(count: int) -> tuple[float, float]:
    """Seconds for folding alone, and the mean size of a body."""
    views = all_projections()
    seconds, size = 0.0, 0
    for page in pages(count):
        size += sum(len(event.body) for event in page)
        started = time.process_time()
        fold(views, page)
        seconds += time.process_time() - started
    return seconds, size / count


def fold(views: Sequence[Projection], events: Sequence[Event]) -> None:
    """Fold as the materialising projector does: in turns, of which each is split once."""
    for part in projecting.parts_of(events, TURN):
        page = Page(part)
        for view in views:
            projecting.fold(view, page)


def measure_each(count: int) -> None:
    """Print the share of the split and of each projection; the first that reads pays for that.

    The second figure of a projection is that of its rows, with their hash.
    """
    views = all_projections()
    seconds = dict.fromkeys(("split", *(view.name for view in views)), 0.0)
    rows = dict.fromkeys(seconds, 0.0)
    for events in pages(count):
        for part in projecting.parts_of(events, TURN):
            page = Page(part)
            started = time.process_time()
            _ = page.splits
            seconds["split"] += time.process_time() - started
            for view in views:
                started = time.process_time()
                projecting.fold(view, page)
                seconds[view.name] += time.process_time() - started
        for view in views:
            started = time.process_time()
            hash_changed(view)
            rows[view.name] += time.process_time() - started
    for name, spent in seconds.items():
        micros, of_rows = spent / count * 1e6, rows[name] / count * 1e6
        print(f"{name:10} {micros:5.2f} µs an event, rows {of_rows:5.2f}")


def measure_rows(count: int) -> tuple[float, int]:
    """Seconds for folding and for taking all changed rows after each page; how many rows."""
    views = all_projections()
    seconds, rows = 0.0, 0
    for page in pages(count):
        started = time.process_time()
        fold(views, page)
        rows += sum(hash_changed(view) for view in views)
        seconds += time.process_time() - started
    return seconds, rows


def hash_changed(view: Projection) -> int:
    """Take the rows that changed, as the projector does, and hash them; how many they are."""
    count = 0
    for table, keys in view.take_changed().items():
        count += len(keys)
        for key in keys:
            view.row(table, key)
    view.state_hash()
    return count


def pages(count: int) -> Iterator[list[Event]]:
    """The first `count` events in pages."""
    events = islice(_cluster(), count)
    while page := list(islice(events, PAGE)):
        yield page


def _cluster() -> Iterator[Event]:
    made = Maker()
    for node in range(NODES):
        yield made.event("ObjectCreated", slice_key(node), slice_tree(node, 0), DRIVER)
    pod = 0
    while True:
        if pod >= ALIVE:
            # First: the device goes to the one that arrives.
            yield from _leave(made, pod - ALIVE)
        yield from arrive(made, pod)
        if pod % 4 == 0:
            node = pod % NODES
            yield made.event("ObjectUpdated", slice_key(node), slice_tree(node, pod), DRIVER)
        pod += 1


def uid_of(key: ObjectKey) -> str:
    """The uid of an object, by its key."""
    return f"00000000-0000-4000-8000-{hash(key) & 0xFFFFFFFFFFFF:012x}"


class Maker:
    """Numbers events and gives them a time: ten events a second."""

    def __init__(self) -> None:
        self.revision = 0

    def event(self, kind: str, key: ObjectKey, tree: JsonObject, actor: Actor) -> Event:
        self.revision += 1
        if "metadata" in tree:
            tree["metadata"]["resourceVersion"] = str(self.revision)
        return Event(
            revision=Revision(self.revision),
            type=EventType(kind),
            key=key,
            uid=uid_of(key),
            body=_encode(tree),
            stamp=Stamp(
                time=Instant(_START + self.revision * SECOND // 10),
                actor=actor,
                verb="update",
                cause=self.revision - 1,
            ),
        )


def arrive(made: Maker, pod: int, *, nodes: int = NODES, devices: int = 4) -> Iterator[Event]:
    """A pod is created, gets a claim and a device, and starts."""
    name, claim = f"job-{pod:07}", f"job-{pod:07}-gpu-x7k2p"
    pod_key = ObjectKey("", "pods", "work", name)
    claim_key = ObjectKey(_DRA, "resourceclaims", "work", claim)
    node = f"node-{pod % nodes:04}"
    yield made.event("ObjectCreated", pod_key, _pod(name), _USER)
    yield made.event("ObjectCreated", claim_key, _claim(claim, name), _CONTROLLER)
    yield made.event("ObjectUpdated", pod_key, _pod(name, claim=claim), _CONTROLLER)
    decision = DECISION._replace(namespace="work", name=name)
    yield made.event("DecisionRecorded", decision, _decision(name, node), _SCHEDULER)
    held = _claim(claim, name, node=node, device=pod // nodes % devices, reserved=True)
    yield made.event("ObjectUpdated", claim_key, held, _SCHEDULER)
    yield made.event("ObjectUpdated", pod_key, _pod(name, claim=claim, node=node), _SCHEDULER)
    event_key = ObjectKey("", "events", "work", f"{name}.18f2a")
    yield made.event("ObjectCreated", event_key, _event_object(name, node), _SCHEDULER)
    running = _pod(name, claim=claim, node=node, phase="Running")
    yield made.event("ObjectUpdated", pod_key, running, Actor(user=f"system:node:{node}"))


def _leave(made: Maker, pod: int) -> Iterator[Event]:
    name, claim = f"job-{pod:07}", f"job-{pod:07}-gpu-x7k2p"
    pod_key = ObjectKey("", "pods", "work", name)
    claim_key = ObjectKey(_DRA, "resourceclaims", "work", claim)
    node = f"node-{pod % NODES:04}"
    kubelet = Actor(user=f"system:node:{node}")
    done = _pod(name, claim=claim, node=node, phase="Succeeded")
    yield made.event("ObjectUpdated", pod_key, done, kubelet)
    yield made.event("ObjectUpdated", claim_key, _claim(claim, name), _CONTROLLER)
    yield made.event("ObjectDeleted", claim_key, _claim(claim, name), _CONTROLLER)
    yield made.event("ObjectDeleted", pod_key, done, kubelet)


def _metadata(name: str, namespace: str = "work") -> JsonObject:
    return {
        "name": name,
        "namespace": namespace,
        "uid": f"11111111-2222-4333-8444-{hash(name) & 0xFFFFFFFFFFFF:012x}",
        "creationTimestamp": "2026-01-02T03:04:05Z",
        "generation": 1,
        "labels": {"app": "trainer", "team": "vision"},
        "managedFields": [
            {
                "manager": "kubectl-client-side-apply",
                "operation": "Update",
                "apiVersion": "v1",
                "time": "2026-01-02T03:04:05Z",
                "fieldsType": "FieldsV1",
                "fieldsV1": {"f:metadata": {"f:labels": {".": {}, "f:app": {}}}, "f:spec": {}},
            }
        ],
    }


def _pod(name: str, *, claim: str = "", node: str = "", phase: str = "Pending") -> JsonObject:
    conditions = [
        {"type": kind, "status": "True", "lastTransitionTime": "2026-01-02T03:04:05Z"}
        for kind in ("PodScheduled", "Initialized", "Ready", "ContainersReady")
    ]
    status: JsonObject = {"phase": phase, "qosClass": "BestEffort"}
    if claim:
        status["resourceClaimStatuses"] = [{"name": "gpu", "resourceClaimName": claim}]
    spec: JsonObject = {
        "containers": [
            {
                "name": "main",
                "image": "registry.example.com/vision/trainer:v1.4.2",
                "imagePullPolicy": "IfNotPresent",
                "command": ["trainer", "--epochs", "10", "--data", "/data/shards"],
                "resources": {"claims": [{"name": "gpu"}]},
                "terminationMessagePath": "/dev/termination-log",
                "terminationMessagePolicy": "File",
            }
        ],
        "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}],
        "restartPolicy": "Never",
        "dnsPolicy": "ClusterFirst",
        "schedulerName": "default-scheduler",
        "terminationGracePeriodSeconds": 30,
        "tolerations": [
            {
                "key": f"node.kubernetes.io/{key}",
                "operator": "Exists",
                "effect": "NoExecute",
                "tolerationSeconds": 300,
            }
            for key in ("not-ready", "unreachable")
        ],
    }
    if node:
        spec["nodeName"] = node
        status["conditions"] = conditions
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": _metadata(name),
        "spec": spec,
        "status": status,
    }


def _claim(
    name: str, pod: str, *, node: str = "", device: int = 0, reserved: bool = False
) -> JsonObject:
    metadata = _metadata(name)
    metadata["annotations"] = {"resource.kubernetes.io/pod-claim-name": "gpu"}
    metadata["ownerReferences"] = [
        {"apiVersion": "v1", "kind": "Pod", "name": pod, "uid": pod, "controller": True}
    ]
    tree: JsonObject = {
        "apiVersion": f"{_DRA}/v1",
        "kind": "ResourceClaim",
        "metadata": metadata,
        "spec": {
            "devices": {
                "requests": [
                    {
                        "name": "gpu",
                        "exactly": {
                            "deviceClassName": "gpu.example.com",
                            "allocationMode": "ExactCount",
                            "count": 1,
                            "selectors": [
                                {"cel": {"expression": "device.attributes['x'].y == 'a100'"}}
                            ],
                        },
                    }
                ]
            }
        },
        "status": {},
    }
    if node:
        metadata["finalizers"] = ["resource.kubernetes.io/delete-protection"]
        result = {
            "request": "gpu",
            "driver": "gpu.example.com",
            "pool": node,
            "device": f"gpu-{device}",
        }
        field = {"key": "metadata.name", "operator": "In", "values": [node]}
        tree["status"]["allocation"] = {
            "allocationTimestamp": "2026-01-02T03:04:05Z",
            "devices": {"results": [result], "config": []},
            "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [field]}]},
        }
    if reserved:
        uid = uid_of(ObjectKey("", "pods", "work", pod))
        tree["status"]["reservedFor"] = [{"resource": "pods", "name": pod, "uid": uid}]
    return tree


def slice_key(node: int) -> ObjectKey:
    """The key of a node's slice."""
    return ObjectKey(_DRA, "resourceslices", "", f"node-{node:04}-gpu.example.com-abcde")


def slice_tree(node: int, change: int, *, devices: int = 4) -> JsonObject:
    """A node's slice after `change` changes."""
    name = f"node-{node:04}"
    listed = [
        {
            "name": f"gpu-{number}",
            "attributes": {
                "uuid": {"string": f"GPU-{node}-{number}"},
                "productName": {"string": "NVIDIA A100-SXM4-80GB"},
                "driverVersion": {"version": "550.54.15"},
                "temperature": {"int": change % 90},
                "mig": {"bool": False},
            },
            "capacity": {"memory": {"value": "80Gi"}},
        }
        for number in range(devices)
    ]
    metadata = _metadata(slice_key(node).name, "")
    metadata["generation"] = change + 1
    return {
        "apiVersion": f"{_DRA}/v1",
        "kind": "ResourceSlice",
        "metadata": metadata,
        "spec": {
            "driver": "gpu.example.com",
            "nodeName": name,
            "pool": {"name": name, "generation": 1, "resourceSliceCount": 1},
            "devices": listed,
        },
    }


def _event_object(pod: str, node: str) -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": _metadata(f"{pod}.18f2a"),
        "involvedObject": {"apiVersion": "v1", "kind": "Pod", "namespace": "work", "name": pod},
        "reason": "Scheduled",
        "message": f"Successfully assigned work/{pod} to {node}",
        "type": "Normal",
        "count": 1,
        "firstTimestamp": "2026-01-02T03:04:05Z",
        "lastTimestamp": "2026-01-02T03:04:05Z",
        "source": {"component": "default-scheduler"},
    }


def _decision(pod: str, node: str) -> JsonObject:
    causes = [
        {"node": f"node-{number:04}", "request": "gpu", "device": "gpu-0", "cause": "in use"}
        for number in range(8)
    ]
    return {
        "controller": "scheduling",
        "resource": "pods",
        "namespace": "work",
        "name": pod,
        "outcome": "Scheduled",
        "inputs": {"attempt": 1, "start": 17},
        "summary": {"message": f"fits on {node}", "nodes": 500, "refused": causes},
        "plan": "sha256:" + "ab" * 32,
        "commands": 4,
    }


if __name__ == "__main__":
    main(sys.argv[1:])
