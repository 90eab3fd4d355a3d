"""A cluster in memory for tests: builders with defaults, virtual time, all controllers.

A test shows only what matters to it; everything else has a default here.
"""

from collections.abc import Sequence
from dataclasses import replace

from msgspec import structs

from app.adapters.uids import DerivedUids
from app.analysis.verify.compare import ComparisonCounts
from app.analysis.verify.redecide import DecisionChecker
from app.analysis.views import LiveViews, compiler_of, features_of
from app.bootstrap.rules import rules_for
from app.domain.controllers import reconcilers
from app.domain.controllers.plan import Reconciler
from app.domain.controllers.registry import ControllerOptions
from app.domain.log import Actor, Event, EventType, ObjectKey
from app.domain.objects import registry
from app.domain.objects.profile import Profile
from app.domain.objects.write.commands import (
    CreateObject,
    DeleteObject,
    PatchObject,
    PatchType,
    UpdateObject,
)
from app.domain.values import json_tree, timestamps
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import SECOND, Instant
from app.service.replays.reconciling import ReconcileBounds, ReplayTimeline
from projections.last_events import PackedEvent

USER = Actor(user="alice", groups=("system:masters",), agent="kubectl/test")
T0 = timestamps.parse("2026-01-02T03:00:00Z")
DRIVER = "gpu.example.com"


class Cluster:
    """A cluster in memory. `settle` runs the controllers until they rest, `wait` advances time."""

    def __init__(
        self,
        profile: Profile = Profile(),
        options: ControllerOptions = ControllerOptions(),
        seed: int = 1,
        *,
        kubelet: bool = False,
        bounds: ReconcileBounds = ReconcileBounds(),
        namespaces: Sequence[str] = ("default",),
        node_ttl: bool = False,
    ) -> None:
        """With `kubelet`, bound pods start by themselves; without it tests act as the kubelet.

        Without `node_ttl`, the controller that annotates nodes is off; no other one depends on it.
        """
        self.profile = profile
        if not node_ttl:
            options = replace(options, off=options.off | {"node-ttl"})
        if not kubelet:
            options = replace(options, off=options.off | {"kubelet"})
        self._options = options
        self.controllers = self.fresh_controllers()
        self.line = ReplayTimeline(
            rules=rules_for(profile),
            uids=DerivedUids(seed),
            controllers=self.controllers,
            start=T0,
            bounds=bounds,
        )
        for name in namespaces:
            self.create("v1", "Namespace", name)

    def fresh_controllers(self) -> tuple[Reconciler, ...]:
        """All controllers, before they fold any event."""
        features = features_of(self.profile)
        return reconcilers.controllers(
            self.profile, features, compiler_of(self.profile), self._options
        )

    def restart(self) -> None:
        """Replaces the controllers by new ones that fold the log from its start."""
        self.line.controllers = self.fresh_controllers()
        for event in self.line.events:
            for controller in self.line.controllers:
                controller.fold(event, self.line.views)

    def begin_from_kept(self) -> None:
        """Replaces the views by those of a new process, which begins with compressed objects."""
        keeping, begun = (LiveViews(self.profile, plain_max=0) for _ in range(2))
        keeping.load_objects(self.line.views.objects.dump())
        b"".join(keeping.objects.dump_parts())  # compresses what nobody has read
        begun.load_objects(b"".join(keeping.objects.dump_parts()))
        held = [
            each for place in begun.objects.resources() for _, each in begun.objects.kept(*place)
        ]
        assert all(isinstance(each, PackedEvent) for each in held)
        self.line.views = begun

    def stop(self, name: str = "") -> None:
        """Ends a controller, or all; what they held in memory is lost."""
        left = (each for each in self.line.controllers if name and each.name != name)
        self.controllers = self.line.controllers = tuple(left)

    def start(self) -> None:
        """Starts those that were ended, which get the existing objects as a list, as of now."""
        running = {each.name: each for each in self.line.controllers}
        fresh = self.fresh_controllers()
        self.controllers = [running.get(each.name, each) for each in fresh]
        self.line.controllers = self.controllers
        last = {event.key: event for event in self.line.events if event.is_about_object}
        for event in sorted(last.values(), key=lambda each: each.revision):
            if event.type is not EventType.OBJECT_DELETED:
                stamp = structs.replace(event.stamp, time=self.line.now)
                listed = structs.replace(event, stamp=stamp)
                for controller in self.controllers:
                    if controller.name not in running:
                        controller.fold(listed, self.line.views)

    # what exists

    def get(self, resource: str, name: str, namespace: str = "default") -> JsonObject | None:
        scope = namespace if resource in _NAMESPACED else ""
        return self.line.views.objects.get(ObjectKey(group_of(resource), resource, scope, name))

    def must(self, resource: str, name: str, namespace: str = "default") -> JsonObject:
        found = self.get(resource, name, namespace)
        assert found is not None, f"{resource}/{name} does not exist"
        return found

    def names(self, resource: str) -> list[str]:
        return [key.name for key in self.line.views.objects.keys(group_of(resource), resource)]

    def pod_condition(self, name: str, kind: str = "PodScheduled") -> JsonObject | None:
        for condition in json_tree.objects(self.must("pods", name), "status", "conditions"):
            if condition["type"] == kind:
                return condition
        return None

    def messages(self, about: str = "") -> list[str]:
        """The messages of Event objects, oldest first."""
        found = []
        for event in self.line.events:
            if event.key.resource == "events" and event.type == "ObjectCreated":
                tree = event.object
                if not about or tree["involvedObject"]["name"] == about:
                    found.append(tree["message"])
        return found

    def decisions(self, controller: str = "") -> list[tuple[str, str]]:
        """The (name, outcome) pairs of recorded decisions."""
        return [
            (event.object["name"], event.object["outcome"])
            for event in self.line.events
            if event.type == "DecisionRecorded"
            and (not controller or event.object["controller"] == controller)
        ]

    def devices_of(self, claim: str) -> list[str]:
        results = json_tree.objects(
            self.must("resourceclaims", claim), "status", "allocation", "devices", "results"
        )
        return [f"{found['pool']}/{found['device']}" for found in results]

    def claim_of(self, pod: str, entry: str = "gpu") -> str:
        for status in json_tree.objects(self.must("pods", pod), "status", "resourceClaimStatuses"):
            if status["name"] == entry:
                return str(status["resourceClaimName"])
        raise AssertionError(f"pod {pod} has no claim for {entry}")

    # what happens

    def settle(self) -> "Cluster":
        self.line.settle()
        return self

    def wait(self, seconds: float) -> "Cluster":
        self.line.advance(Instant(self.line.now + int(seconds * SECOND)))
        return self

    @property
    def seconds(self) -> float:
        """The seconds since the start of the cluster."""
        return (self.line.now - T0) / SECOND

    def create(self, version: str, kind: str, name: str, **tree: object) -> JsonObject:
        return self.apply({"apiVersion": version, "kind": kind, "metadata": {"name": name}, **tree})

    def apply(self, tree: JsonObject) -> JsonObject:
        """Creates an object from a manifest."""
        group, _slash, version = tree["apiVersion"].rpartition("/")
        resource = _RESOURCES[tree["kind"]]
        metadata = tree.setdefault("metadata", {})
        if resource in _NAMESPACED:
            metadata.setdefault("namespace", "default")
        key = ObjectKey(group, resource, metadata.get("namespace", ""), metadata.get("name", ""))
        outcome = self.line.submit(CreateObject(key=key, version=version, tree=tree), actor=USER)
        assert outcome.tree is not None
        return outcome.tree

    def delete(self, resource: str, name: str, namespace: str = "default", **options) -> None:
        self.line.submit(DeleteObject(key=_key(resource, name, namespace), **options), actor=USER)

    def patch(
        self,
        resource: str,
        name: str,
        body: JsonObject,
        *,
        subresource: str = "",
        namespace: str = "default",
    ) -> None:
        command = PatchObject(
            key=_key(resource, name, namespace),
            version="v1",
            type=PatchType.MERGE,
            body=body,
            subresource=subresource,
        )
        self.line.submit(command, actor=USER)

    def update(self, resource: str, tree: JsonObject, subresource: str = "") -> None:
        metadata = tree["metadata"]
        key = _key(resource, metadata["name"], metadata.get("namespace", "default"))
        command = UpdateObject(key=key, version="v1", tree=tree, subresource=subresource)
        self.line.submit(command, actor=USER)

    # builders

    def node(self, name: str = "n1", pods: int = 110, cpu: str = "32", **labels: str) -> None:
        self.apply(
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {
                    "name": name,
                    "labels": {"kubernetes.io/hostname": name, **_dotted(labels)},
                },
                "status": {
                    "allocatable": {"cpu": cpu, "memory": "64Gi", "pods": str(pods)},
                    "capacity": {"cpu": cpu, "memory": "64Gi", "pods": str(pods)},
                    "conditions": [{"type": "Ready", "status": "True"}],
                },
            }
        )

    def device_class(self, name: str = "gpu", selector: str = "") -> None:
        selectors = [{"cel": {"expression": selector}}] if selector else []
        self.create("resource.k8s.io/v1", "DeviceClass", name, spec={"selectors": selectors})

    def slice(
        self,
        node: str = "n1",
        devices: int | list[JsonObject] = 2,
        name: str = "",
        generation: int = 1,
        pool: str = "",
        **spec: object,
    ) -> JsonObject:
        if isinstance(devices, int):
            devices = [{"name": f"gpu-{index}"} for index in range(devices)]
        return self.create(
            "resource.k8s.io/v1",
            "ResourceSlice",
            name or f"{node}-slice",
            spec={
                "driver": DRIVER,
                "nodeName": node,
                "pool": {"name": pool or node, "generation": generation, "resourceSliceCount": 1},
                "devices": devices,
                **spec,
            },
        )

    def template(self, name: str = "gpu", **request: object) -> None:
        self.create(
            "resource.k8s.io/v1",
            "ResourceClaimTemplate",
            name,
            spec={"spec": claim_spec(**request)},
        )

    def claim(self, name: str = "claim", **request: object) -> None:
        self.create("resource.k8s.io/v1", "ResourceClaim", name, spec=claim_spec(**request))

    def pod(
        self,
        name: str = "pod",
        *,
        template: str = "",
        claim: str = "",
        namespace: str = "default",
        requests: JsonObject | None = None,
        **spec: object,
    ) -> JsonObject:
        container: JsonObject = {"name": "main", "image": "busybox:1"}
        if requests:
            limits = {name: amount for name, amount in requests.items() if "/" in name}
            container["resources"] = {"requests": requests} | ({"limits": limits} if limits else {})
        body: JsonObject = {"containers": [container], **spec}
        if template:
            body["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": template}]
        elif claim:
            body["resourceClaims"] = [{"name": "gpu", "resourceClaimName": claim}]
        return self.apply(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": name, "namespace": namespace},
                "spec": body,
            }
        )

    def finish(self, name: str, phase: str = "Succeeded") -> None:
        self.patch("pods", name, {"status": {"phase": phase}}, subresource="status")

    def kill(self, name: str) -> None:
        """Deletes a pod without a grace period, as a kubelet does when a pod has terminated."""
        self.delete("pods", name, grace_seconds=0)

    def rule(
        self,
        name: str = "rule",
        effect: str = "NoExecute",
        selector: JsonObject | None = None,
        **taint: object,
    ) -> None:
        self.create(
            _rules_version(self.profile),
            "DeviceTaintRule",
            name,
            spec={
                "deviceSelector": {"driver": DRIVER} if selector is None else selector,
                "taint": {"key": "example.com/bad", "effect": effect, **taint},
            },
        )

    def rule_condition(self, name: str = "rule") -> tuple[str, str, str]:
        for condition in json_tree.objects(
            self.must("devicetaintrules", name), "status", "conditions"
        ):
            return condition["status"], condition["reason"], condition["message"]
        raise AssertionError(f"rule {name} has no condition")


def _rules_version(profile: Profile) -> str:
    """The newest version of DeviceTaintRules that a release serves, or `v1` where there is none."""
    (kind,) = (each for each in registry.KINDS if each.kind == "DeviceTaintRule")
    served = [version for _, version in registry.served_versions(kind, profile)]
    return f"resource.k8s.io/{next(iter(served), 'v1')}"


def claim_spec(class_name: str = "gpu", count: int = 1, **more: object) -> JsonObject:
    """The spec of a claim with one request named `gpu`."""
    exactly: JsonObject = {"deviceClassName": class_name, **more}
    if more.get("allocationMode") != "All":
        exactly["count"] = count
    return {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}


def check_decisions(cluster: Cluster) -> tuple[ComparisonCounts, ComparisonCounts]:
    """Folds the log of a cluster again, and makes every decision and its effects again."""
    views = LiveViews(cluster.profile)
    checker = DecisionChecker(cluster.fresh_controllers(), views, cluster.line.rules)
    observers: dict[int, list[Event]] = {}
    for event in cluster.line.events:
        if event.type == "DecisionRecorded":
            observers.setdefault(event.stamp.observed, []).append(event)
    for event in cluster.line.events:
        checker.decide_again(observers.pop(views.revision, ()))
        checker.before(event)
        views.fold(event)
        checker.after(event)
    assert not observers, "every observed revision is in the log"
    return checker.result(is_whole=True)


def writes(events: list[Event]) -> list[str]:
    """The texts `verb resource/name` of all events except decisions."""
    found = []
    for event in events:
        if event.type == "DecisionRecorded":
            continue
        found.append(f"{event.stamp.verb} {event.key.resource}/{event.key.name}")
    return found


_RESOURCES = {
    "Pod": "pods",
    "Event": "events",
    "Service": "services",
    "ServiceAccount": "serviceaccounts",
    "PersistentVolume": "persistentvolumes",
    "PersistentVolumeClaim": "persistentvolumeclaims",
    "StorageClass": "storageclasses",
    "PriorityClass": "priorityclasses",
    "RuntimeClass": "runtimeclasses",
    "PodDisruptionBudget": "poddisruptionbudgets",
    "Node": "nodes",
    "Namespace": "namespaces",
    "DeviceClass": "deviceclasses",
    "ResourceClaim": "resourceclaims",
    "ResourceClaimTemplate": "resourceclaimtemplates",
    "ResourceSlice": "resourceslices",
    "DeviceTaintRule": "devicetaintrules",
    "ValidatingAdmissionPolicy": "validatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": "validatingadmissionpolicybindings",
    "Deployment": "deployments",
    "ReplicaSet": "replicasets",
    "StatefulSet": "statefulsets",
    "DaemonSet": "daemonsets",
    "CronJob": "cronjobs",
    "Job": "jobs",
    "Lease": "leases",
    "ResourceQuota": "resourcequotas",
    "ResourcePoolStatusRequest": "resourcepoolstatusrequests",
    "ResourceSlicePatch": "resourceslicepatches",
    "ClusterRole": "clusterroles",
    "ClusterRoleBinding": "clusterrolebindings",
}
_GROUPS = {
    "validatingadmissionpolicies": "admissionregistration.k8s.io",
    "validatingadmissionpolicybindings": "admissionregistration.k8s.io",
    "deviceclasses": "resource.k8s.io",
    "resourceclaims": "resource.k8s.io",
    "resourceclaimtemplates": "resource.k8s.io",
    "resourceslices": "resource.k8s.io",
    "devicetaintrules": "resource.k8s.io",
    "resourcepoolstatusrequests": "resource.k8s.io",
    "resourceslicepatches": "resource.k8s.io",
    "deployments": "apps",
    "replicasets": "apps",
    "statefulsets": "apps",
    "daemonsets": "apps",
    "cronjobs": "batch",
    "jobs": "batch",
    "priorityclasses": "scheduling.k8s.io",
    "runtimeclasses": "node.k8s.io",
    "poddisruptionbudgets": "policy",
    "leases": "coordination.k8s.io",
    "storageclasses": "storage.k8s.io",
    "clusterroles": "rbac.authorization.k8s.io",
    "clusterrolebindings": "rbac.authorization.k8s.io",
}
_NAMESPACED = frozenset(
    {
        "pods",
        "services",
        "serviceaccounts",
        "persistentvolumeclaims",
        "resourceclaims",
        "resourceclaimtemplates",
        "events",
        "deployments",
        "replicasets",
        "statefulsets",
        "daemonsets",
        "cronjobs",
        "jobs",
        "resourcequotas",
        "poddisruptionbudgets",
        "leases",
    }
)


def group_of(resource: str) -> str:
    """The API group of a resource; empty for the core group."""
    return _GROUPS.get(resource, "")


def _key(resource: str, name: str, namespace: str) -> ObjectKey:
    scope = namespace if resource in _NAMESPACED else ""
    return ObjectKey(group_of(resource), resource, scope, name)


def _dotted(labels: dict[str, str]) -> dict[str, str]:
    return {name.replace("__", "/").replace("_", "."): value for name, value in labels.items()}
