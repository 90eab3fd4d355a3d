"""Tables of networks and autoscalers. Parity: api.md 6, "Columns"; the real printers."""

from app.domain.objects.printing import cells
from app.domain.objects.printing.tables import NONE, Cells, Row
from app.domain.values import api_groups, json_tree
from app.domain.values.json_tree import JsonObject, JsonView
from app.domain.values.timestamps import Instant

_SHOWN = 3
_METRICS_SHOWN = 2
_UNKNOWN = "<unknown>"
UNSET = "<unset>"


def _some(found: list[str], separator: str = ",") -> str:
    """The first few, and how many more there are."""
    shown = separator.join(found[:_SHOWN])
    return f"{shown} + {len(found) - _SHOWN} more..." if len(found) > _SHOWN else shown


def _ingress(tree: JsonObject, now: Instant) -> Cells:
    spec = json_tree.mapping(tree, "spec")
    hosts = [json_tree.text(rule, "host") for rule in json_tree.objects(spec, "rules")]
    places = json_tree.objects(tree, "status", "loadBalancer", "ingress")
    addresses = [json_tree.text(i, "ip") or json_tree.text(i, "hostname") for i in places]
    return [
        cells.name(tree),
        json_tree.text(spec, "ingressClassName") or NONE,
        _some([host for host in hosts if host]) or "*",
        ",".join(address for address in addresses if address),
        "80, 443" if json_tree.objects(spec, "tls") else "80",
        cells.age(tree, now),
    ]


def _ingress_class(tree: JsonObject, now: Instant) -> Cells:
    parameters = json_tree.mapping(tree, "spec", "parameters")
    kind, group = (json_tree.text(parameters, key) for key in ("kind", "apiGroup"))
    qualified = f"{kind}.{group}" if group else kind
    return [
        cells.name(tree),
        json_tree.text(tree, "spec", "controller"),
        f"{qualified}/{json_tree.text(parameters, 'name')}" if parameters else NONE,
        cells.age(tree, now),
    ]


def _network_policy(tree: JsonObject, now: Instant) -> Cells:
    selector = cells.label_selector(tree, "spec", "podSelector")
    return [cells.name(tree), selector, cells.age(tree, now)]


def _endpoint_slice(tree: JsonObject, now: Instant) -> Cells:
    ports = [json_tree.integer(port, "port") for port in json_tree.objects(tree, "ports")]
    places = json_tree.objects(tree, "endpoints")
    addresses = [text for place in places for text in json_tree.texts(place, "addresses")]
    return [
        cells.name(tree),
        json_tree.text(tree, "addressType"),
        _some(["*" if port is None else str(port) for port in ports]) or UNSET,
        _some(addresses) or UNSET,
        cells.age(tree, now),
    ]


def _service_range(tree: JsonObject, now: Instant) -> Cells:
    ranges = json_tree.texts(tree, "spec", "cidrs")
    return [cells.name(tree), ",".join(ranges), cells.age(tree, now)]


def _address(tree: JsonObject, now: Instant) -> Cells:
    """The age stands under no column. Parity: recorded with 1.36.2."""
    owner = json_tree.mapping(tree, "spec", "parentRef")
    group, resource = json_tree.text(owner, "group"), json_tree.text(owner, "resource")
    parts = (
        f"{resource}.{group}" if group else resource,
        json_tree.text(owner, "namespace"),
        json_tree.text(owner, "name"),
    )
    shown = "/".join(part for part in parts if part) if owner else NONE
    return [cells.name(tree), shown, cells.age(tree, now)]


def _autoscaler(tree: JsonObject, now: Instant) -> Cells:
    spec, status = json_tree.mapping(tree, "spec"), json_tree.mapping(tree, "status")
    target = json_tree.mapping(spec, "scaleTargetRef")
    least = json_tree.integer(spec, "minReplicas")
    return [
        cells.name(tree),
        f"{json_tree.text(target, 'kind')}/{json_tree.text(target, 'name')}",
        _targets(spec, status),
        UNSET if least is None else str(least),
        json_tree.integer(spec, "maxReplicas") or 0,
        json_tree.integer(status, "currentReplicas") or 0,
        cells.age(tree, now),
    ]


_SOURCES = {
    "ContainerResource": "containerResource",
    "External": "external",
    "Object": "object",
    "Pods": "pods",
    "Resource": "resource",
}


def _targets(spec: JsonView, status: JsonView) -> str:
    """Measured and wanted values; nobody measures anything here unless a client writes it."""
    wanted = json_tree.objects(spec, "metrics")
    measured = json_tree.objects(status, "currentMetrics")
    found = []
    for index, metric in enumerate(wanted):
        kind = json_tree.text(metric, "type")
        source = _SOURCES.get(kind, "")
        target = json_tree.mapping(metric, source, "target")
        current = (
            json_tree.mapping(measured[index], source, "current") if index < len(measured) else {}
        )
        is_average = "averageValue" in target and kind in ("External", "Object")
        text = f"{_value(current, target)}/{_value(target, target)}{' (avg)' if is_average else ''}"
        name = json_tree.text(metric, source, "name")
        found.append(f"{name}: {text}" if name and "averageUtilization" in target else text)
    if not found:
        return NONE
    shown = ", ".join(found[:_METRICS_SHOWN])
    more = len(found) - _METRICS_SHOWN
    return f"{shown} + {more} more..." if more > 0 else shown


def _value(holder: JsonView, target: JsonView) -> str:
    """The value of the sort that the target asks for."""
    for key in ("averageUtilization", "averageValue", "value"):
        if key in target:
            found = holder.get(key)
            if found is None:
                return _UNKNOWN
            return f"{found}%" if key == "averageUtilization" else str(found)
    return _UNKNOWN


ROWS: tuple[Row, ...] = (
    (api_groups.NETWORKING, "ingresses", "Name, Class, Hosts, Address, Ports, Age", _ingress),
    (api_groups.NETWORKING, "ingressclasses", "Name, Controller, Parameters, Age", _ingress_class),
    (api_groups.NETWORKING, "networkpolicies", "Name, Pod-Selector, Age", _network_policy),
    (api_groups.NETWORKING, "servicecidrs", "Name, CIDRs, Age", _service_range),
    (api_groups.NETWORKING, "ipaddresses", "Name, ParentRef", _address),
    (
        api_groups.DISCOVERY,
        "endpointslices",
        "Name, AddressType, Ports, Endpoints, Age",
        _endpoint_slice,
    ),
    (
        api_groups.AUTOSCALING,
        "horizontalpodautoscalers",
        "Name, Reference, Targets, MinPods, MaxPods, Replicas, Age",
        _autoscaler,
    ),
)
