"""Defaults of pod specs, in pods and in templates, and the quality of service of a pod.

Requests default to limits only in pods: requests that a template lacks are set when a pod is
created. The functions change a pruned spec in place; the caller owns it. Parity: controllers.md
5.1, api.md 5.
"""

from collections.abc import Iterable
from typing import Any

from app.domain.objects.kinds import pod_resources
from app.domain.values import images, json_tree, quantity
from app.domain.values.json_tree import JsonObject, JsonView

_MODE = 0o644
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_PROBE = {"failureThreshold": 3, "periodSeconds": 10, "successThreshold": 1, "timeoutSeconds": 1}
TOKEN_SECONDS = 3600
"""The lifetime of a projected ServiceAccount token in seconds."""
_VOLUMES_WITH_MODE = ("configMap", "downwardAPI", "projected", "secret")


def default_spec(spec: JsonObject) -> None:
    """Sets the defaults of a pod spec."""
    spec.setdefault("dnsPolicy", "ClusterFirst")
    spec.setdefault("restartPolicy", "Always")
    spec.setdefault("schedulerName", "default-scheduler")
    spec.setdefault("terminationGracePeriodSeconds", 30)
    spec.setdefault("securityContext", {})
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if account:
        spec["serviceAccountName"] = spec["serviceAccount"] = account
    for name in ("containers", "initContainers", "ephemeralContainers"):
        for container in spec.get(name) or ():
            _default_container(container, host_network=spec.get("hostNetwork") is True)
    for volume in spec.get("volumes") or ():
        _default_volume(volume)


def _default_container(container: JsonObject, *, host_network: bool) -> None:
    container.setdefault("terminationMessagePath", "/dev/termination-log")
    container.setdefault("terminationMessagePolicy", "File")
    if "imagePullPolicy" not in container:
        container["imagePullPolicy"] = _pull_policy(container.get("image", ""))
    for port in container.get("ports") or ():
        port.setdefault("protocol", "TCP")
        if host_network and "containerPort" in port:
            port.setdefault("hostPort", port["containerPort"])
    for variable in container.get("env") or ():
        if "valueFrom" in variable:
            _default_references(variable["valueFrom"])
    for name in _PROBES:
        if name in container:
            _default_probe(container[name])
    for hook in ("postStart", "preStop"):
        get = json_tree.get(container, "lifecycle", hook, "httpGet")
        if isinstance(get, dict):
            _default_get(get)


def default_requests(spec: JsonObject) -> None:
    """Sets missing requests of each container to its limits."""
    for name in ("containers", "initContainers"):
        for container in spec.get(name) or ():
            resources = container.get("resources")
            if resources and "limits" in resources:
                requests = resources.setdefault("requests", {})
                for resource, amount in resources["limits"].items():
                    requests.setdefault(resource, amount)


def default_whole_requests(spec: JsonObject) -> None:
    """Sets missing pod-level requests, given pod-level limits, to the containers' total.

    For a resource that no container requests, the request is the pod-level limit. Parity:
    objects.md 15.1; KEP-2837, the defaults of the API.
    """
    whole = spec.get("resources")
    if not isinstance(whole, dict) or not whole.get("limits"):
        return
    containers = {name: spec.get(name) for name in ("containers", "initContainers")}
    requests = dict(whole.get("requests") or {})
    for resource, amount in pod_resources.effective(containers, "requests").items():
        if _is_of_whole_pods(resource):
            requests.setdefault(resource, str(amount))
    for resource, limit in whole["limits"].items():
        if _is_of_whole_pods(resource):
            requests.setdefault(resource, limit)
    whole["requests"] = requests


def _is_of_whole_pods(resource: str) -> bool:
    return resource in ("cpu", "memory") or resource.startswith(pod_resources.HUGE_PAGES)


def _default_probe(probe: JsonObject) -> None:
    for key, value in _PROBE.items():
        probe.setdefault(key, value)
    get = probe.get("httpGet")
    if get is not None:
        _default_get(get)
    call = probe.get("grpc")
    if call is not None:
        call.setdefault("service", "")


def _default_get(get: JsonObject) -> None:
    get.setdefault("path", "/")
    get.setdefault("scheme", "HTTP")


def _default_references(source: JsonObject) -> None:
    """Sets the defaults of references to a field or resource of the pod itself."""
    if "fieldRef" in source:
        source["fieldRef"].setdefault("apiVersion", "v1")
    if "resourceFieldRef" in source:
        source["resourceFieldRef"].setdefault("divisor", "0")


def _default_volume(volume: JsonObject) -> None:
    for name in _VOLUMES_WITH_MODE:
        if name in volume:
            volume[name].setdefault("defaultMode", _MODE)
    for item in json_tree.objects(volume, "downwardAPI", "items"):
        _default_references(item)
    for source in json_tree.objects(volume, "projected", "sources"):
        for item in json_tree.objects(source, "downwardAPI", "items"):
            _default_references(item)
        if "serviceAccountToken" in source:
            source["serviceAccountToken"].setdefault("expirationSeconds", TOKEN_SECONDS)
    if "hostPath" in volume:
        volume["hostPath"].setdefault("type", "")
    if "iscsi" in volume:
        volume["iscsi"].setdefault("iscsiInterface", "default")
    claim = json_tree.get(volume, "ephemeral", "volumeClaimTemplate", "spec")
    if isinstance(claim, dict):
        claim.setdefault("volumeMode", "Filesystem")
    if len(volume) == 1:
        volume["emptyDir"] = {}


def _pull_policy(image: str) -> str:
    """The pull policy: `Always` for the tag `latest`, also implicit, else `IfNotPresent`.

    An image name that cannot be parsed has no tag.
    """
    return "Always" if images.tag(image) == "latest" else "IfNotPresent"


def quality_of_service(spec: JsonView) -> str:
    """The QoS class by cpu and memory: `Guaranteed`, `Burstable` or `BestEffort`.

    Pod-level resources, if set, count instead of those of the containers. Parity: objects.md 15.1;
    KEP-2837.
    """
    whole = spec.get("resources") or {}
    if whole.get("requests") or whole.get("limits"):
        return _class_of([{"resources": whole}])
    return _class_of([*(spec.get("initContainers") or ()), *(spec.get("containers") or ())])


def _class_of(containers: Iterable[JsonView]) -> str:
    guaranteed = True
    requested: dict[str, int] = {}
    limited: dict[str, int] = {}
    for container in containers:
        resources = container.get("resources") or {}
        limits = _amounts(resources.get("limits"))
        guaranteed = guaranteed and len(limits) == 2
        _add(requested, _amounts(resources.get("requests")))
        _add(limited, limits)
    if not requested and not limited:
        return "BestEffort"
    if guaranteed and requested == limited:
        return "Guaranteed"
    return "Burstable"


def _amounts(resources: Any) -> dict[str, int]:
    amounts = {}
    for name in ("cpu", "memory"):
        nanos = quantity.parse(resources[name]).nanos if resources and name in resources else 0
        if nanos > 0:
            amounts[name] = nanos
    return amounts


def _add(total: dict[str, int], amounts: dict[str, int]) -> None:
    for name, amount in amounts.items():
        total[name] = total.get(name, 0) + amount
