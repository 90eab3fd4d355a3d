"""Tables of networks and autoscalers. Parity: api.md 6, "Columns"; the real printers."""

from app.domain.objects.printing import cells
from app.domain.objects.printing.cells import Row
from app.domain.objects.printing.tables import NONE, UNKNOWN, UNSET, Cell, Cells, Printer, columns
from app.domain.values import api_groups, identifiers, json_tree
from app.domain.values.fields import core, entries, meta
from app.domain.values.json_tree import JsonObject, JsonView
from app.domain.values.timestamps import Instant

_SHOWN = 3
_METRICS_SHOWN = 2


def _some(texts: list[str]) -> str:
    """The first `_SHOWN` texts, and the number of the others."""
    shown = ",".join(texts[:_SHOWN])
    return f"{shown} + {len(texts) - _SHOWN} more..." if len(texts) > _SHOWN else shown


def _hosts(tree: JsonObject, _: Instant) -> Cell:
    hosts = [json_tree.text(rule, "host") for rule in json_tree.objects(tree, "spec", "rules")]
    return _some([host for host in hosts if host]) or "*"


def _ingress_ports(tree: JsonObject, _: Instant) -> Cell:
    return "80, 443" if json_tree.objects(tree, "spec", "tls") else "80"


def _parameters(tree: JsonObject, _: Instant) -> Cell:
    parameters = json_tree.mapping(tree, "spec", "parameters")
    kind, group = (json_tree.text(parameters, key) for key in ("kind", "apiGroup"))
    qualified = f"{kind}.{group}" if group else kind
    return f"{qualified}/{entries.name(parameters)}" if parameters else NONE


def _ports(tree: JsonObject, _: Instant) -> Cell:
    ports = [json_tree.integer(port, "port") for port in core.ports(tree)]
    return _some(["*" if port is None else str(port) for port in ports]) or UNSET


def _addresses(tree: JsonObject, _: Instant) -> Cell:
    places = json_tree.objects(tree, "endpoints")
    return (
        _some([text for place in places for text in json_tree.texts(place, "addresses")]) or UNSET
    )


def _address(tree: JsonObject, now: Instant) -> Cells:
    """The cells of an IPAddress; the age has no column. Parity: api.md 6; recorded with 1.36.2."""
    owner = json_tree.mapping(tree, "spec", "parentRef")
    group, resource, namespace, name = (
        json_tree.text(owner, key) for key in ("group", "resource", "namespace", "name")
    )
    parts = (identifiers.qualified_resource(group, resource), namespace, name)
    shown = "/".join(part for part in parts if part) if owner else NONE
    return [meta.name(tree), shown, cells.age(tree, now)]


def _target(tree: JsonObject, _: Instant) -> Cell:
    target = json_tree.mapping(tree, "spec", "scaleTargetRef")
    return f"{meta.kind(target)}/{entries.name(target)}"


def _least(tree: JsonObject, _: Instant) -> Cell:
    least = json_tree.integer(tree, "spec", "minReplicas")
    return UNSET if least is None else str(least)


_SOURCES = {
    "ContainerResource": "containerResource",
    "External": "external",
    "Object": "object",
    "Pods": "pods",
    "Resource": "resource",
}


def _targets(tree: JsonObject, _: Instant) -> Cell:
    """The current and target values of metrics. Current values come only from clients."""
    wanted = json_tree.objects(tree, "spec", "metrics")
    measured = json_tree.objects(tree, "status", "currentMetrics")
    targets = []
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
        targets.append(f"{name}: {text}" if name and "averageUtilization" in target else text)
    if not targets:
        return NONE
    shown = ", ".join(targets[:_METRICS_SHOWN])
    more = len(targets) - _METRICS_SHOWN
    return f"{shown} + {more} more..." if more > 0 else shown


def _value(holder: JsonView, target: JsonView) -> str:
    """The value of the type that the target uses; `<unknown>` if it is missing."""
    for key in ("averageUtilization", "averageValue", "value"):
        if key in target:
            value = holder.get(key)
            if value is None:
                return UNKNOWN
            return f"{value}%" if key == "averageUtilization" else str(value)
    return UNKNOWN


ROWS: tuple[Row, ...] = (
    (
        api_groups.NETWORKING,
        "ingresses",
        cells.table(
            "Name, Class=.spec.ingressClassName|<none>, Hosts, Address, Ports, Age",
            {
                "Hosts": _hosts,
                "Address": lambda tree, _: ",".join(filter(None, cells.ingress(tree))),
                "Ports": _ingress_ports,
            },
        ),
    ),
    (
        api_groups.NETWORKING,
        "ingressclasses",
        cells.table(
            "Name, Controller=.spec.controller, Parameters, Age", {"Parameters": _parameters}
        ),
    ),
    (
        api_groups.NETWORKING,
        "networkpolicies",
        cells.table(
            "Name, Pod-Selector, Age",
            {"Pod-Selector": cells.labels("spec", "podSelector", "matchLabels")},
        ),
    ),
    (api_groups.NETWORKING, "servicecidrs", cells.table("Name, CIDRs=*spec.cidrs, Age")),
    (
        api_groups.NETWORKING,
        "ipaddresses",
        Printer(columns=columns("Name, ParentRef"), cells=_address),
    ),
    (
        api_groups.DISCOVERY,
        "endpointslices",
        cells.table(
            "Name, AddressType=.addressType, Ports, Endpoints, Age",
            {"Ports": _ports, "Endpoints": _addresses},
        ),
    ),
    (
        api_groups.AUTOSCALING,
        "horizontalpodautoscalers",
        cells.table(
            "Name, Reference, Targets, MinPods, MaxPods=#spec.maxReplicas, "
            "Replicas=#status.currentReplicas, Age",
            {"Reference": _target, "Targets": _targets, "MinPods": _least},
        ),
    ),
)
