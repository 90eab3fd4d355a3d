"""The amounts that objects use, under the names of ResourceQuotas, and running sums of them.

Devices are counted by class (`<class>.deviceclass.resource.k8s.io/devices`). A prioritized list
counts for each class among its alternatives with the largest number requested of that class, so
alternatives cannot evade a quota. Mode `All` counts the largest number of devices that a claim can
get. Devices of ordinary claims also count for the extended resource of their class, under its own
and its implicit name; devices of a claim made for a pod's extended resources do not, because the
pod counts. Pods count their effective requests and limits until they have ended. Parity: objects.md
15.3; KEP-4816 (resource quota), KEP-5004.
"""

from collections.abc import Iterable, Mapping

import msgspec

from app.domain.objects.kinds import extended_resources, pod_resources
from app.domain.objects.quota import scopes as quota_scopes
from app.domain.values import api_resources, identifiers, json_tree, quantity
from app.domain.values.bounded import Bounded
from app.domain.values.fields import core, dra, entries, meta
from app.domain.values.json_tree import JsonObject, JsonView
from app.domain.values.quantity import Quantity, QuantityFormat

DEVICES_SUFFIX = ".deviceclass.resource.k8s.io/devices"
REQUESTS = "requests."
LIMITS = "limits."
NODE_PORTS = "services.nodeports"
BALANCERS = "services.loadbalancers"
STORAGE = "requests.storage"
STORAGE_CLASS = ".storageclass.storage.k8s.io/"
"""The infix between a class and the counted resource, `requests.storage` or
`persistentvolumeclaims`."""

ALL_DEVICES = 32
"""The count of a request with mode All: the largest number of results in an allocation."""

COMPUTE = ("cpu", "memory", "ephemeral-storage")
COUNTED_BY_NAME = frozenset(
    {
        "configmaps",
        "persistentvolumeclaims",
        "pods",
        "replicationcontrollers",
        "resourcequotas",
        "secrets",
        "services",
    }
)

ORDINARY = "ordinary:"
"""The prefix of a class for the sum of devices of ordinary claims, which are not made for a pod's
extended resources. A quota cannot contain such a name, because its names have no colon."""

_OLD_CLASS = "volume.beta.kubernetes.io/storage-class"
_ONE = quantity.from_integer(1)

SCOPES_MAX = 64
"""The largest number of sets of scopes that one namespace keeps sums for. A dropped sum is computed
again when it is requested."""

Scopes = list[JsonObject]
"""The requirements that a pod must meet, as `quota_scopes.of` reads them from a quota."""

_encode = msgspec.json.Encoder(order="deterministic").encode


def of_object(group: str, resource: str, tree: JsonView) -> dict[str, Quantity]:
    """The amounts that one object uses, by name."""
    amounts = {f"count/{identifiers.qualified_resource(group, resource)}": _ONE}
    if (group, resource) == api_resources.PODS:
        if not core.is_finished(tree):
            amounts |= _of_pod(meta.spec(tree))
    elif not group and resource in COUNTED_BY_NAME:
        amounts[resource] = _ONE
        if (group, resource) == api_resources.PERSISTENT_VOLUME_CLAIMS:
            amounts |= _of_volume_claim(tree)
        elif (group, resource) == api_resources.SERVICES:
            amounts |= _of_service(meta.spec(tree))
    elif (group, resource) == api_resources.RESOURCE_CLAIMS:
        amounts |= _of_claim(tree)
    return amounts


class RunningUsage:
    """The running sums of one namespace. A change takes time in proportion to the object's amounts.

    Beside the sums of all objects, it keeps a separate tally of the pods within each set of scopes
    that was requested.
    """

    def __init__(self) -> None:
        self._nanos: dict[str, int] = {}
        self._formats: dict[str, QuantityFormat] = {}
        self._within: Bounded[bytes, tuple[Scopes, RunningUsage]] = Bounded(SCOPES_MAX)

    def copy(self) -> "RunningUsage":
        """Returns an independent copy of the sums."""
        made = RunningUsage()
        made._nanos = dict(self._nanos)
        made._formats = dict(self._formats)
        for name, (scopes, tally) in self._within.items():
            made._within[name] = (scopes, tally.copy())
        return made

    def within(self, scopes: Scopes) -> "RunningUsage | None":
        """The sums of the pods within all scopes; None if they are not kept."""
        usage = self._within.get(_name_of(scopes))
        return usage[1] if usage is not None else None

    def keep_within(self, scopes: Scopes, pods: Iterable[JsonView]) -> "RunningUsage":
        """Starts to keep the sums of the pods within all scopes, beginning with these pods."""
        made = RunningUsage()
        for pod in pods:
            if quota_scopes.match(scopes, pod):
                made.add(*api_resources.PODS, pod)
        self._within[_name_of(scopes)] = (scopes, made)
        return made

    def add(self, group: str, resource: str, tree: JsonView) -> None:
        """Adds the amounts of an object."""
        if self._within and (group, resource) == api_resources.PODS:
            for scopes, tally in self._within.values():
                if quota_scopes.match(scopes, tree):
                    tally.add(group, resource, tree)
        for name, amount in of_object(group, resource, tree).items():
            self._nanos[name] = self._nanos.get(name, 0) + amount.nanos
            self._formats.setdefault(name, amount.format)

    def remove(self, group: str, resource: str, tree: JsonView) -> None:
        """Subtracts the amounts of an object."""
        if self._within and (group, resource) == api_resources.PODS:
            for scopes, tally in self._within.values():
                if quota_scopes.match(scopes, tree):
                    tally.remove(group, resource, tree)
        for name, amount in of_object(group, resource, tree).items():
            left = self._nanos.get(name, 0) - amount.nanos
            if left:
                self._nanos[name] = left
            else:
                self._nanos.pop(name, None)
                self._formats.pop(name, None)

    def amounts(self) -> Mapping[str, int]:
        """The sums that are not zero, by name, in units of 10**-9."""
        return self._nanos

    def amount(self, name: str, more: Iterable[str] = ()) -> Quantity:
        """The sum of a name and of the other names `more` that count for it."""
        nanos = self._nanos.get(name, 0) + sum(self._nanos.get(other, 0) for other in more)
        return quantity.from_nanos(nanos, self._formats.get(name, QuantityFormat.DECIMAL_SI))


def _name_of(scopes: Scopes) -> bytes:
    return _encode(scopes)


def _of_pod(spec: JsonView) -> dict[str, Quantity]:
    amounts = {"pods": _ONE}
    for name, amount in pod_resources.effective(spec, "requests").items():
        if name in COMPUTE or name.startswith(pod_resources.HUGE_PAGES):
            amounts[name] = amounts[f"{REQUESTS}{name}"] = amount
        elif extended_resources.is_extended(name):
            amounts[f"{REQUESTS}{name}"] = amount
    for name, amount in pod_resources.effective(spec, "limits").items():
        if name in COMPUTE:
            amounts[f"{LIMITS}{name}"] = amount
    return amounts


def _of_service(spec: JsonView) -> dict[str, Quantity]:
    """The node ports and load balancers of a service.

    A load balancer that does not allocate node ports counts only the ports that have one.
    """
    kind = json_tree.text(spec, "type")
    ports = core.ports(spec)
    if kind == "NodePort":
        return {NODE_PORTS: quantity.from_integer(len(ports))}
    if kind != "LoadBalancer":
        return {}
    if spec.get("allocateLoadBalancerNodePorts") is False:
        ports = [port for port in ports if port.get("nodePort")]
    return {NODE_PORTS: quantity.from_integer(len(ports)), BALANCERS: _ONE}


def _of_volume_claim(claim: JsonView) -> dict[str, Quantity]:
    """The requested storage, in total and of the storage class, and the claims of that class."""
    annotations = meta.annotations_as_stored(claim)
    name = json_tree.text(annotations, _OLD_CLASS) or core.storage_class_name(claim)
    storage = pod_resources.of(meta.spec(claim), "requests").get("storage")
    amounts = (
        {f"{name}{STORAGE_CLASS}{api_resources.PERSISTENT_VOLUME_CLAIMS[1]}": _ONE} if name else {}
    )
    if storage is not None:
        amounts[STORAGE] = storage
        if name:
            amounts[f"{name}{STORAGE_CLASS}{STORAGE}"] = storage
    return amounts


def _of_claim(claim: JsonView) -> dict[str, Quantity]:
    total: dict[str, int] = {}
    for request in dra.request_trees(claim):
        worst: dict[str, int] = {}
        alternatives = dra.alternatives(request)
        exactly = request.get("exactly")
        for ask in alternatives or ([exactly] if isinstance(exactly, dict) else []):
            name = dra.device_class_name(ask)
            worst[name] = max(
                worst.get(name, 0), devices_of(ask.get("allocationMode"), ask.get("count"))
            )
        for name, amount in worst.items():
            total[name] = total.get(name, 0) + amount
    annotations = meta.annotations_as_stored(claim)
    is_of_pod = annotations.get(extended_resources.ANNOTATION) == "true"
    amounts = {}
    for name, count in total.items():
        amounts[f"{name}{DEVICES_SUFFIX}"] = quantity.from_integer(count)
        if not is_of_pod:
            amounts[f"{ORDINARY}{name}"] = quantity.from_integer(count)
    return amounts


def devices_of(mode: object, count: object) -> int:
    """The number of devices that a request or subrequest counts for."""
    match mode:
        case "All":
            return ALL_DEVICES
        case "ExactCount":
            return count if isinstance(count, int) else 0
        case _:
            return 0


def missing_compute(pod: JsonObject, names: Iterable[str]) -> str:
    """The compute resources that containers must specify under a quota, as upstream lists them.

    Empty if none is missing. A pod with pod-level resources needs none. Parity: objects.md 15.3;
    the constraint on cpu and memory.
    """
    spec = meta.spec(pod)
    if core.requests_of(spec) or json_tree.mapping(spec, "resources", "limits"):
        return ""
    required = sorted({name for name in names if name in _REQUIRED})
    containers = [
        *core.containers_of(spec),
        *core.init_containers_of(spec),
    ]
    parts = []
    for name in required:
        field, resource = _REQUIRED[name]
        silent = sorted(
            {
                entries.name(container)
                for container in containers
                if resource not in json_tree.mapping(container, "resources", field)
            }
        )
        if silent:
            parts.append(f"{name} for: {','.join(silent)}")
    return "; ".join(parts)


_REQUIRED = {
    "cpu": ("requests", "cpu"),
    "memory": ("requests", "memory"),
    "requests.cpu": ("requests", "cpu"),
    "requests.memory": ("requests", "memory"),
    "limits.cpu": ("limits", "cpu"),
    "limits.memory": ("limits", "memory"),
}
