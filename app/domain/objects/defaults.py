"""Values that the API fills in on every write, before it compares or validates anything.

Works in place on a pruned tree in the storage version, which the caller owns. Parity: objects.md
11, controllers.md 6.3, api-surface.md 5. `now` is the time of the write.
"""

from collections.abc import Callable, Iterable
from typing import Any

from app.domain.objects import pod_defaults, services, stored_data, stored_defaults
from app.domain.objects.custom import definition_rules
from app.domain.objects.registry import Kind
from app.domain.values import json_tree, timestamps
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import Instant

NAME_LABEL = "kubernetes.io/metadata.name"


def apply(kind: Kind, tree: JsonObject, *, now: Instant, from_beta: bool = False) -> None:
    """Fill in the defaults of `kind`.

    `from_beta`: the client wrote v1beta1, whose main requests get defaults only when they name
    a class.
    """
    if kind.custom is not None:
        return
    if kind.kind == "ResourceClaim":
        _default_claim(tree, from_beta=from_beta)
    elif kind.kind == "ResourceClaimTemplate":
        _default_claim(tree["spec"], from_beta=from_beta) if "spec" in tree else None
    elif kind.kind in ("ResourceSlice", "DeviceTaintRule"):
        _default_taints(kind, tree, now)
    else:
        place = (kind.group, kind.kind)
        setter = _BY_KIND.get(place) or stored_defaults.BY_KIND.get(place)
        if setter is not None:
            setter(tree)


def _default_claim(tree: JsonObject, *, from_beta: bool) -> None:
    for request in json_tree.objects(tree, "spec", "devices", "requests"):
        exactly = request.get("exactly")
        if isinstance(exactly, dict) and (not from_beta or exactly.get("deviceClassName")):
            _default_request(exactly)
        for alternative in request.get("firstAvailable") or ():
            _default_request(alternative)
    for result in json_tree.objects(tree, "status", "allocation", "devices", "results"):
        _default_tolerations(result)


def _default_request(request: JsonObject) -> None:
    mode = request.setdefault("allocationMode", "ExactCount")
    if mode == "ExactCount" and not request.get("count"):
        request["count"] = 1
    _default_tolerations(request)


def _default_tolerations(holder: JsonObject) -> None:
    for toleration in holder.get("tolerations") or ():
        if not toleration.get("operator"):
            toleration["operator"] = "Equal"


def _default_taints(kind: Kind, tree: JsonObject, now: Instant) -> None:
    spec = tree.get("spec")
    if not spec:
        return
    if kind.kind == "DeviceTaintRule":
        taints: Iterable[Any] = [spec["taint"]] if isinstance(spec.get("taint"), dict) else ()
    else:
        taints = (
            taint
            for device in spec.get("devices") or ()
            if "taints" in device
            for taint in device["taints"]
        )
    text = ""
    for taint in taints:
        if not taint.get("timeAdded"):
            text = text or timestamps.seconds_text(now)
            taint["timeAdded"] = text


def _default_pool_report(tree: JsonObject) -> None:
    if "spec" in tree:
        tree["spec"].setdefault("limit", 100)


def _default_namespace(tree: JsonObject) -> None:
    metadata = tree.setdefault("metadata", {})
    if metadata.get("name"):
        metadata.setdefault("labels", {})[NAME_LABEL] = metadata["name"]


def _default_node(tree: JsonObject) -> None:
    status = tree.get("status")
    if status and "capacity" in status and "allocatable" not in status:
        status["allocatable"] = dict(status["capacity"])


_ROLLING = {"maxSurge": "25%", "maxUnavailable": "25%"}


def _default_deployment(tree: JsonObject) -> None:
    spec = _template_holder(tree)
    spec.setdefault("replicas", 1)
    spec.setdefault("revisionHistoryLimit", 10)
    spec.setdefault("progressDeadlineSeconds", 600)
    strategy = spec.setdefault("strategy", {})
    if strategy.setdefault("type", "RollingUpdate") == "RollingUpdate":
        strategy["rollingUpdate"] = _ROLLING | strategy.get("rollingUpdate", {})


def _default_replica_set(tree: JsonObject) -> None:
    _template_holder(tree).setdefault("replicas", 1)


def _default_stateful_set(tree: JsonObject) -> None:
    spec = _template_holder(tree)
    spec.setdefault("podManagementPolicy", "OrderedReady")
    spec.setdefault("replicas", 1)
    spec.setdefault("revisionHistoryLimit", 10)
    strategy = spec.setdefault("updateStrategy", {})
    if strategy.setdefault("type", "RollingUpdate") == "RollingUpdate":
        strategy["rollingUpdate"] = {"partition": 0} | strategy.get("rollingUpdate", {})
    policy = spec.setdefault("persistentVolumeClaimRetentionPolicy", {})
    policy.setdefault("whenDeleted", "Retain")
    policy.setdefault("whenScaled", "Retain")


def _default_daemon_set(tree: JsonObject) -> None:
    spec = _template_holder(tree)
    spec.setdefault("revisionHistoryLimit", 10)
    strategy = spec.setdefault("updateStrategy", {})
    if strategy.setdefault("type", "RollingUpdate") == "RollingUpdate":
        rolling = {"maxSurge": 0, "maxUnavailable": 1}
        strategy["rollingUpdate"] = rolling | strategy.get("rollingUpdate", {})


def _default_job(tree: JsonObject) -> None:
    spec = _template_holder(tree)
    if "completions" not in spec and "parallelism" not in spec:
        spec["completions"] = 1
    spec.setdefault("parallelism", 1)
    spec.setdefault("backoffLimit", 6)
    spec.setdefault("completionMode", "NonIndexed")
    spec.setdefault("suspend", False)
    spec.setdefault("podReplacementPolicy", "TerminatingOrFailed")


def _default_cron_job(tree: JsonObject) -> None:
    spec = tree.setdefault("spec", {})
    spec.setdefault("concurrencyPolicy", "Allow")
    spec.setdefault("suspend", False)
    spec.setdefault("successfulJobsHistoryLimit", 3)
    spec.setdefault("failedJobsHistoryLimit", 1)


def _template_holder(tree: JsonObject) -> JsonObject:
    spec: JsonObject = tree.setdefault("spec", {})
    template = spec.get("template")
    if isinstance(template, dict) and isinstance(template.get("spec"), dict):
        pod_defaults.default_spec(template["spec"])
    return spec


def _default_pod(tree: JsonObject) -> None:
    spec = tree.setdefault("spec", {})
    pod_defaults.default_spec(spec)
    # Only of pods themselves, not of templates (recorded: 1.36).
    spec.setdefault("enableServiceLinks", True)


def _default_pod_template(tree: JsonObject) -> None:
    spec = json_tree.get(tree, "template", "spec")
    if isinstance(spec, dict):
        pod_defaults.default_spec(spec)


def _default_priority_class(tree: JsonObject) -> None:
    tree.setdefault("preemptionPolicy", "PreemptLowerPriority")


def _default_volume_claim(tree: JsonObject) -> None:
    tree.setdefault("spec", {}).setdefault("volumeMode", "Filesystem")
    tree.setdefault("status", {}).setdefault("phase", "Pending")


_BY_KIND: dict[tuple[str, str], Callable[[JsonObject], None]] = {
    ("", "ConfigMap"): stored_data.fill_config_map,
    ("", "Namespace"): _default_namespace,
    ("", "Node"): _default_node,
    ("", "PersistentVolumeClaim"): _default_volume_claim,
    ("", "Pod"): _default_pod,
    ("", "PodTemplate"): _default_pod_template,
    ("", "Secret"): stored_data.fill_secret,
    ("", "Service"): services.fill,
    ("apiextensions.k8s.io", "CustomResourceDefinition"): definition_rules.fill,
    ("apps", "DaemonSet"): _default_daemon_set,
    ("apps", "Deployment"): _default_deployment,
    ("apps", "ReplicaSet"): _default_replica_set,
    ("apps", "StatefulSet"): _default_stateful_set,
    ("batch", "CronJob"): _default_cron_job,
    ("batch", "Job"): _default_job,
    ("resource.k8s.io", "ResourcePoolStatusRequest"): _default_pool_report,
    ("scheduling.k8s.io", "PriorityClass"): _default_priority_class,
}
