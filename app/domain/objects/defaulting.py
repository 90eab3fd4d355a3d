"""Defaults: values that the API sets on every write, before it compares or validates anything.

Changes a pruned tree in the storage version in place; the caller owns it. Parity: objects.md
11, controllers.md 6.3, api.md 5. `now` is the time of the write.
"""

from collections.abc import Callable, Iterable
from typing import Any

from app.domain.objects.custom import definition_rules
from app.domain.objects.kinds import pod_defaults, services, stored_data, stored_defaults, workloads
from app.domain.objects.registry import Kind
from app.domain.objects.review import defaults as review_defaults
from app.domain.values import api_groups, json_tree, timestamps
from app.domain.values.fields import dra
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import Instant

BACKOFF_MAX = 2**31 - 1
"""The default backoffLimit of a Job in which each index has its own limit."""
NAME_LABEL = "kubernetes.io/metadata.name"


def apply(kind: Kind, tree: JsonObject, *, now: Instant, from_beta: bool = False) -> None:
    """Sets the defaults of `kind`.

    `from_beta` is true when the client wrote v1beta1. A main request in v1beta1 gets defaults only
    if it names a class.
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
        setter = (
            _BY_KIND.get(place)
            or stored_defaults.BY_KIND.get(place)
            or review_defaults.BY_KIND.get(place)
        )
        if setter is not None:
            setter(tree)


def _default_claim(tree: JsonObject, *, from_beta: bool) -> None:
    for request in dra.request_trees(tree):
        exactly = request.get("exactly")
        if isinstance(exactly, dict) and (not from_beta or exactly.get("deviceClassName")):
            _default_request(exactly)
        for alternative in request.get("firstAvailable") or ():
            _default_request(alternative)
    for result in dra.result_trees(tree):
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
    if "spec" in tree:
        _agree(tree["spec"], "podCIDR", "podCIDRs", "")


def _agree(holder: JsonObject, one: str, several: str, inside: str) -> None:
    """Makes a field equal to the first item of its list, or the reverse; the field wins.

    `inside` names the field of a list item that holds the value; empty when the item is the value.
    """
    single, items = holder.get(one), holder.get(several)
    first = items[0] if items else None
    if inside and first is not None:
        first = first.get(inside)
    if single and single != first:
        holder[several] = [{inside: single} if inside else single]
    elif first and not single:
        holder[one] = first


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
    for claim in json_tree.objects(spec, "volumeClaimTemplates"):
        claim.setdefault("apiVersion", "v1")
        claim.setdefault("kind", "PersistentVolumeClaim")
        stored_defaults.fill_volume_claim(claim)
    policy = spec.setdefault("persistentVolumeClaimRetentionPolicy", {})
    policy.setdefault("whenDeleted", "Retain")
    policy.setdefault("whenScaled", "Retain")


def _default_daemon_set(tree: JsonObject) -> None:
    # The value is set later; the annotation is added here so that the writer becomes its manager.
    annotations = tree.setdefault("metadata", {}).setdefault("annotations", {})
    annotations.setdefault(workloads.TEMPLATE_GENERATION, "0")
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
    spec.setdefault("backoffLimit", BACKOFF_MAX if "backoffLimitPerIndex" in spec else 6)
    spec.setdefault("completionMode", "NonIndexed")
    spec.setdefault("manualSelector", False)
    spec.setdefault("suspend", False)
    has_policy = "podFailurePolicy" in spec
    spec.setdefault("podReplacementPolicy", "Failed" if has_policy else "TerminatingOrFailed")
    for rule in json_tree.objects(spec, "podFailurePolicy", "rules"):
        for pattern in json_tree.objects(rule, "onPodConditions"):
            pattern.setdefault("status", "True")


def _default_cron_job(tree: JsonObject) -> None:
    spec = tree.setdefault("spec", {})
    spec.setdefault("concurrencyPolicy", "Allow")
    spec.setdefault("suspend", False)
    spec.setdefault("successfulJobsHistoryLimit", 3)
    spec.setdefault("failedJobsHistoryLimit", 1)
    template = spec.get("jobTemplate")
    if isinstance(template, dict):
        # Only the pod template: the defaults of a Job are set when the Job is created.
        _template_holder(template)


def _default_replication_controller(tree: JsonObject) -> None:
    spec = _template_holder(tree)
    spec.setdefault("replicas", 1)
    labels = json_tree.labels(spec, "template", "metadata", "labels")
    if labels:
        if not spec.get("selector"):
            spec["selector"] = dict(labels)
        metadata = tree.setdefault("metadata", {})
        if not metadata.get("labels"):
            metadata["labels"] = dict(labels)


def _template_holder(tree: JsonObject) -> JsonObject:
    spec: JsonObject = tree.setdefault("spec", {})
    template = spec.get("template")
    if isinstance(template, dict) and isinstance(template.get("spec"), dict):
        pod_defaults.default_spec(template["spec"])
    return spec


def _default_pod(tree: JsonObject) -> None:
    spec = tree.setdefault("spec", {})
    pod_defaults.default_spec(spec)
    # Requests get defaults in pods only, not in pod templates (recorded: 1.36).
    pod_defaults.default_requests(spec)
    pod_defaults.default_whole_requests(spec)
    spec.setdefault("enableServiceLinks", True)
    if "status" in tree:
        _agree(tree["status"], "podIP", "podIPs", "ip")


def _default_pod_template(tree: JsonObject) -> None:
    spec = json_tree.get(tree, "template", "spec")
    if isinstance(spec, dict):
        pod_defaults.default_spec(spec)


def _default_priority_class(tree: JsonObject) -> None:
    tree.setdefault("preemptionPolicy", "PreemptLowerPriority")


_BY_KIND: dict[tuple[str, str], Callable[[JsonObject], None]] = {
    ("", "ConfigMap"): stored_data.fill_config_map,
    ("", "Namespace"): _default_namespace,
    ("", "Node"): _default_node,
    ("", "Pod"): _default_pod,
    ("", "PodTemplate"): _default_pod_template,
    ("", "ReplicationController"): _default_replication_controller,
    ("", "Secret"): stored_data.fill_secret,
    ("", "Service"): services.fill,
    (api_groups.API_EXTENSIONS, "CustomResourceDefinition"): definition_rules.fill,
    (api_groups.APPS, "DaemonSet"): _default_daemon_set,
    (api_groups.APPS, "Deployment"): _default_deployment,
    (api_groups.APPS, "ReplicaSet"): _default_replica_set,
    (api_groups.APPS, "StatefulSet"): _default_stateful_set,
    (api_groups.BATCH, "CronJob"): _default_cron_job,
    (api_groups.BATCH, "Job"): _default_job,
    (api_groups.RESOURCE, "ResourcePoolStatusRequest"): _default_pool_report,
    (api_groups.SCHEDULING, "PriorityClass"): _default_priority_class,
}
