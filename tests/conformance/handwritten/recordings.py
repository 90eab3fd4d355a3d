"""Recordings written by hand: the log of a control plane according to the specification.

Each write is stated one by one, in the order and with the distances of controllers.md 2.3, 3.5 to
3.10 and 4.6, as an audit line with request and answer like those of a 1.36 API server. Nothing here
uses redra's decisions; names, uids and ids of shares are random, as in a real cluster.
"""

import json
import random
import uuid
from copy import deepcopy
from pathlib import Path

from app.domain.values import timestamps

START = timestamps.parse("2026-11-21T08:00:00.25Z")
ADMIN, ALICE = "kubernetes-admin", "alice"
DRIVER = "system:serviceaccount:dra-driver:dra-driver"
SCHEDULER = "system:kube-scheduler"
CLAIMS = "system:serviceaccount:kube-system:resource-claim-controller"
COLLECTOR = "system:serviceaccount:kube-system:generic-garbage-collector"
EVICTION = "system:serviceaccount:kube-system:device-taint-eviction-controller"
NODES = "system:serviceaccount:kube-system:node-controller"
FINALIZER = "resource.kubernetes.io/delete-protection"
SUFFIX = "bcdfghjklmnpqrstvwxz2456789"
GROUPS = {
    "Pod": ("", "pods"),
    "Node": ("", "nodes"),
    "Namespace": ("", "namespaces"),
    "Event": ("events.k8s.io", "events"),
    "DeviceClass": ("resource.k8s.io", "deviceclasses"),
    "ResourceSlice": ("resource.k8s.io", "resourceslices"),
    "ResourceClaim": ("resource.k8s.io", "resourceclaims"),
    "ResourceClaimTemplate": ("resource.k8s.io", "resourceclaimtemplates"),
    "DeviceTaintRule": ("resource.k8s.io", "devicetaintrules"),
}
CLUSTER_WIDE = frozenset(("Node", "Namespace", "DeviceClass", "ResourceSlice", "DeviceTaintRule"))
ALPHA_OR_BETA = {"DeviceTaintRule": "v1beta2"}
"""The versions of kinds of `resource.k8s.io` that are not in v1."""
NAMESPACE = "work"


class Recorder:
    """A store and its audit log; every call is one request, answered some milliseconds later."""

    def __init__(self, seed: str) -> None:
        self._chance = random.Random(seed)
        self._now = START
        self._revision = 100
        self.lines: list[dict] = []
        self.objects: dict[tuple[str, str], dict] = {}
        self._said: dict[tuple[str, str, str], str] = {}
        self._begin()

    # time

    def wait(self, seconds: float) -> None:
        """Advances the time."""
        self._now += int(seconds * 1_000_000)

    @property
    def seconds(self) -> str:
        """The present time in whole seconds."""
        return timestamps.seconds_text(self._now)

    def after(self, seconds: int) -> str:
        """The time so many seconds later, in whole seconds."""
        return timestamps.seconds_text(self._now + seconds * 1_000_000)

    @property
    def now(self) -> float:
        """Seconds since the start."""
        return (self._now - START) / 1_000_000

    # objects

    def get(self, kind: str, name: str) -> dict:
        """A copy of an object, to be changed and written back."""
        return deepcopy(self.objects[kind, name])

    def create(self, user: str, kind: str, name: str = "", **tree: object) -> str:
        """A create; without a name, `generateName` in the metadata gets a random ending."""
        group = GROUPS[kind][0]
        version = "v1"
        if group == "resource.k8s.io":
            version = f"{group}/{ALPHA_OR_BETA.get(kind, 'v1')}"
        metadata = {**tree.pop("metadata", {})}
        if not name:
            ending = "".join(self._chance.choice(SUFFIX) for _ in range(5))
            name = metadata["generateName"] + ending
        metadata |= {"name": name, "uid": self.uuid(), "creationTimestamp": self.seconds}
        if kind not in CLUSTER_WIDE:
            metadata.setdefault("namespace", NAMESPACE)
        if kind in ("Pod", "ResourceSlice", "DeviceClass", "DeviceTaintRule"):
            metadata["generation"] = 1
        if group == "events.k8s.io" and user == SCHEDULER:
            version = "events.k8s.io/v1"
        stored = {"kind": kind, "apiVersion": version, "metadata": metadata, **tree}
        self._store(stored)
        self._line(user, "create", stored, code=201)
        return name

    def update(self, user: str, tree: dict, subresource: str = "", verb: str = "update") -> None:
        """An update (or patch) after which the object is `tree`."""
        self._store(tree)
        self._line(user, verb, tree, subresource=subresource)

    def delete(self, user: str, kind: str, name: str) -> None:
        """A delete that removes the object immediately."""
        tree = self.objects.pop((kind, name))
        self._revision += 1
        tree["metadata"]["resourceVersion"] = str(self._revision)
        self._line(user, "delete", tree)

    def claim_status(self, user: str, name: str, **status: object) -> None:
        """An UpdateStatus of a claim; parts that are None go."""
        tree = self.get("ResourceClaim", name)
        held = {**tree.get("status", {}), **status}
        tree["status"] = {part: value for part, value in held.items() if value is not None}
        self.update(user, tree, "status")

    def finalizer(self, user: str, name: str, *, there: bool) -> None:
        """The update that adds or removes the finalizer of a claim."""
        tree = self.get("ResourceClaim", name)
        tree["metadata"].pop("finalizers", None)
        if there:
            tree["metadata"]["finalizers"] = [FINALIZER]
        self.update(user, tree)

    def pod_status(self, user: str, name: str, condition: dict | None = None, **parts) -> None:
        """A patch of a pod's status; parts that are None go."""
        tree = self.get("Pod", name)
        status = {**tree["status"], **parts}
        status = {part: value for part, value in status.items() if value is not None}
        if condition is not None:
            others = [c for c in status.get("conditions", ()) if c["type"] != condition["type"]]
            held = [c for c in status.get("conditions", ()) if c["type"] == condition["type"]]
            since = self.seconds
            if held and held[0]["status"] == condition["status"]:
                since = held[0]["lastTransitionTime"]
            full = {"lastProbeTime": None, "lastTransitionTime": since, **condition}
            status["conditions"] = [*others, full]
        tree["status"] = status
        self.update(user, tree, "status", "patch")

    # what users and drivers do

    def node(self, name: str, **allocatable: str) -> None:
        amounts = {"cpu": "8", "memory": "32Gi", "pods": "110", **allocatable}
        self.create(
            ADMIN,
            "Node",
            name,
            metadata={"labels": {"kubernetes.io/hostname": name}},
            spec={},
            status={
                "allocatable": amounts,
                "capacity": amounts,
                "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
            },
        )
        uid = self.objects["Node", name]["metadata"]["uid"]
        self.create(
            NODES,
            "Event",
            f"{name}.{self._now * 1000:016x}",
            metadata={"namespace": "default"},
            involvedObject={"kind": "Node", "name": name, "uid": uid, "apiVersion": "v1"},
            reason="RegisteredNode",
            message=f"Node {name} event: Registered Node {name} in Controller",
            source={"component": "node-controller"},
            reportingComponent="node-controller",
            firstTimestamp=self.seconds,
            lastTimestamp=self.seconds,
            count=1,
            type="Normal",
        )

    def device_class(self, name: str, expression: str, **spec: object) -> None:
        selectors = [{"cel": {"expression": expression}}]
        self.create(ADMIN, "DeviceClass", name, spec={"selectors": selectors, **spec})

    def slice(self, name: str, driver: str, pool: dict, devices: list, **spec: object) -> None:
        held = {"driver": driver, "pool": pool, "devices": devices, **spec}
        self.create(DRIVER, "ResourceSlice", name, spec=held)

    def pod(self, name: str, *, requests: dict | None = None, **spec: object) -> None:
        resources = {"requests": requests, "limits": requests} if requests else {}
        container = {
            "name": "main",
            "image": "busybox:1",
            "resources": resources,
            "imagePullPolicy": "IfNotPresent",
            "terminationMessagePath": "/dev/termination-log",
            "terminationMessagePolicy": "File",
        }
        tolerations = [
            {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": "NoExecute"}
            | {"tolerationSeconds": 300}
            for key in ("not-ready", "unreachable")
        ]
        defaults = {
            "containers": [container],
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 5,
            "dnsPolicy": "ClusterFirst",
            "securityContext": {},
            "schedulerName": "default-scheduler",
            "tolerations": tolerations,
            "priority": 0,
            "enableServiceLinks": True,
            "preemptionPolicy": "PreemptLowerPriority",
        }
        whole = {**defaults, **spec}
        asked = {
            name for each in whole["containers"] for name in each["resources"].get("limits", ())
        }
        quality = "Burstable" if asked & {"cpu", "memory"} else "BestEffort"
        status = {"phase": "Pending", "qosClass": quality}
        self.create(ALICE, "Pod", name, spec=whole, status=status)

    def claim(self, name: str, **spec: object) -> None:
        self.create(ALICE, "ResourceClaim", name, spec={"devices": spec}, status={})

    # what controllers do

    def make_claim(self, pod: str, entry: str, template: str) -> str:
        """The claim controller makes a claim from a template and names it in the pod."""
        self.wait(0.008)
        spec = self.get("ResourceClaimTemplate", template)["spec"]["spec"]
        name = self.create(
            CLAIMS,
            "ResourceClaim",
            metadata={
                "generateName": f"{pod}-{entry}-",
                "annotations": {"resource.kubernetes.io/pod-claim-name": entry},
                "ownerReferences": [self.owner(pod)],
            },
            spec=spec,
            status={},
        )
        self.wait(0.007)
        statuses = self.get("Pod", pod)["status"].get("resourceClaimStatuses", [])
        statuses = [*statuses, {"name": entry, "resourceClaimName": name}]
        self.pod_status(CLAIMS, pod, resourceClaimStatuses=statuses)
        return name

    def owner(self, pod: str) -> dict:
        uid = self.objects["Pod", pod]["metadata"]["uid"]
        return {"apiVersion": "v1", "kind": "Pod", "name": pod, "uid": uid, "controller": True}

    def nominate(self, pod: str, node: str) -> None:
        self.wait(0.006)
        self.pod_status(SCHEDULER, pod, nominatedNodeName=node)

    def reserve(self, pod: str, claim: str, allocation: dict | None = None) -> None:
        """PreBind for one claim: the finalizer, then allocation and reservation."""
        tree = self.get("ResourceClaim", claim)
        if allocation is not None and not tree["metadata"].get("finalizers"):
            self.wait(0.008)
            self.finalizer(SCHEDULER, claim, there=True)
        self.wait(0.008)
        status = self.get("ResourceClaim", claim)["status"]
        if allocation is not None:
            status["allocation"] = {**allocation, "allocationTimestamp": self.seconds}
        uid = self.objects["Pod", pod]["metadata"]["uid"]
        mine = {"resource": "pods", "name": pod, "uid": uid}
        status["reservedFor"] = [*status.get("reservedFor", ()), mine]
        self.claim_status(SCHEDULER, claim, **status)

    def unreserve(self, pod: str, claim: str) -> None:
        """The strategic patch that removes a reservation."""
        uid = self.objects["Pod", pod]["metadata"]["uid"]
        tree = self.get("ResourceClaim", claim)
        left = [each for each in tree["status"]["reservedFor"] if each["uid"] != uid]
        tree["status"].pop("reservedFor")
        if left:
            tree["status"]["reservedFor"] = left
        self.update(SCHEDULER, tree, "status", "patch")

    def bind(self, pod: str, node: str) -> None:
        """The binding, answered with a Status, and the Event about it."""
        self.wait(0.005)
        tree = self.get("Pod", pod)
        tree["spec"]["nodeName"] = node
        tree["status"].pop("nominatedNodeName", None)
        others = [c for c in tree["status"].get("conditions", ()) if c["type"] != "PodScheduled"]
        condition = {"type": "PodScheduled", "status": "True", "lastProbeTime": None}
        condition["lastTransitionTime"] = self.seconds
        tree["status"]["conditions"] = [*others, condition]
        self._store(tree)
        metadata = {"name": pod, "namespace": NAMESPACE, "uid": tree["metadata"]["uid"]}
        line = self._line(SCHEDULER, "create", tree, subresource="binding", code=201)
        line["requestObject"] = {
            "kind": "Binding",
            "apiVersion": "v1",
            "metadata": metadata,
            "target": {"kind": "Node", "name": node},
        }
        line["responseObject"] = {"kind": "Status", "apiVersion": "v1", "status": "Success"}
        self.say(pod, "Normal", "Scheduled", "Binding", assigned(pod, node))

    def say(self, pod: str, kind: str, reason: str, action: str, note: str) -> None:
        """An Event of the scheduler."""
        held = self.objects["Pod", pod]["metadata"]
        when = self._now
        self.wait(0.002)
        said = (pod, reason, held["resourceVersion"])
        if name := self._said.get(said):
            # One event by controllers.md 4.3; only the first repetition is written.
            tree = self.get("Event", name)
            if "series" not in tree:
                seen = {"count": 2, "lastObservedTime": timestamps.micro_text(when)}
                self.update(SCHEDULER, {**tree, "series": seen}, verb="patch")
            return
        self._said[said] = self.create(
            SCHEDULER,
            "Event",
            f"{pod}.{when * 1000 + self._chance.randrange(1000):016x}",
            eventTime=timestamps.micro_text(when),
            reportingController="default-scheduler",
            reportingInstance="default-scheduler-host",
            action=action,
            reason=reason,
            regarding={
                "kind": "Pod",
                "namespace": NAMESPACE,
                "name": pod,
                "uid": held["uid"],
                "apiVersion": "v1",
                "resourceVersion": held["resourceVersion"],
            },
            note=note,
            type=kind,
            deprecatedSource={},
        )

    def fail(self, pod: str, message: str, reason: str = "Unschedulable", **parts) -> None:
        """A failed attempt: Event, and the condition when it is another."""
        tree = self.get("Pod", pod)
        condition = {"type": "PodScheduled", "status": "False", "reason": reason}
        condition |= {"message": message, "observedGeneration": 1}
        held = tree["status"].get("conditions", ())
        is_new = not any(condition.items() <= each.items() for each in held)
        if tree["status"].get("nominatedNodeName"):
            parts["nominatedNodeName"] = None
        self.say(pod, "Warning", "FailedScheduling", "Scheduling", message)
        if is_new or parts:
            self.wait(0.002)
            self.pod_status(SCHEDULER, pod, condition, **parts)

    def start(self, pod: str) -> None:
        """The status that a kubelet reports for a bound pod."""
        self.wait(0.4)
        node = self.objects["Pod", pod]["spec"]["nodeName"]
        self.pod_status(f"system:node:{node}", pod, phase="Running", startTime=self.seconds)

    def finish(self, pod: str, *claims: str, generated: bool = True) -> None:
        """A kubelet ends a pod; the claim controller releases its claims."""
        node = self.objects["Pod", pod]["spec"]["nodeName"]
        self.pod_status(f"system:node:{node}", pod, phase="Succeeded")
        for claim in claims:
            self.wait(0.01)
            self.claim_status(CLAIMS, claim, reservedFor=None, allocation=None, devices=None)
            self.wait(0.012)
            self.finalizer(CLAIMS, claim, there=False)
            if generated:
                self.wait(0.012)
                self.delete(CLAIMS, "ResourceClaim", claim)

    def uuid(self) -> str:
        return str(uuid.UUID(int=self._chance.getrandbits(128), version=4))

    def write(self, path: Path) -> Path:
        """Writes the log to a file."""
        path.write_text("".join(json.dumps(line) + "\n" for line in self.lines))
        return path

    def _begin(self) -> None:
        for name in ("default", NAMESPACE):
            spec = {"finalizers": ["kubernetes"]}
            self.create(ADMIN, "Namespace", name, spec=spec, status={"phase": "Active"})

    def _store(self, tree: dict) -> None:
        self._revision += 1
        tree["metadata"]["resourceVersion"] = str(self._revision)
        self.objects[tree["kind"], tree["metadata"]["name"]] = tree

    def _line(
        self, user: str, verb: str, tree: dict, *, subresource: str = "", code: int = 200
    ) -> dict:
        group, resource = GROUPS[tree["kind"]]
        if "/" not in tree["apiVersion"]:
            group = ""
        metadata = tree["metadata"]
        answered = self._now + self._chance.randrange(2500, 3500)
        version = tree["apiVersion"].rpartition("/")[2]
        parts = ["/apis", group, version] if group else ["/api/v1"]
        if "namespace" in metadata:
            parts += ["namespaces", metadata["namespace"]]
        parts += [resource, metadata["name"], subresource]
        line = {
            "kind": "Event",
            "apiVersion": "audit.k8s.io/v1",
            "level": "RequestResponse",
            "auditID": self.uuid(),
            "stage": "ResponseComplete",
            "requestURI": "/".join(part for part in parts if part),
            "verb": verb,
            "user": {"username": user, "groups": ["system:authenticated"]},
            "userAgent": "client/v1.36.2",
            "objectRef": {
                "resource": resource,
                "namespace": metadata.get("namespace", ""),
                "name": metadata["name"],
                "apiGroup": group,
                "apiVersion": version,
                "subresource": subresource,
            },
            "responseStatus": {"metadata": {}, "code": code},
            "responseObject": deepcopy(tree),
            "requestReceivedTimestamp": timestamps.micro_text(self._now),
            "stageTimestamp": timestamps.micro_text(answered),
        }
        self._now = answered
        self.lines.append(line)
        return line


def assigned(pod: str, node: str) -> str:
    return f"Successfully assigned {NAMESPACE}/{pod} to {node}"


def unfit(nodes: int, reasons: str, after: str = "still not schedulable", said: str = "") -> str:
    """The message of an attempt that found no node."""
    helpless = said or f"{nodes} Preemption is not helpful for scheduling"
    return (
        f"0/{nodes} nodes are available: {reasons}. {after}, "
        f"preemption: 0/{nodes} nodes are available: {helpless}."
    )


def result(request: str, driver: str, pool: str, device: str, **more: object) -> dict:
    return {"request": request, "driver": driver, "pool": pool, "device": device, **more}


def allocation(node: str, *results: dict) -> dict:
    """An allocation that can be used on one node."""
    fields = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    return {
        "devices": {"results": list(results)},
        "nodeSelector": {"nodeSelectorTerms": [fields]},
    }


def exactly(name: str, class_name: str, **more: object) -> dict:
    """A request for one device, with the defaults that the API server fills in."""
    inside = {"deviceClassName": class_name, "allocationMode": "ExactCount", "count": 1, **more}
    return {"name": name, "exactly": inside}


def pool(name: str, generation: int = 1, count: int = 1) -> dict:
    return {"name": name, "generation": generation, "resourceSliceCount": count}
