"""The tables of `kubectl get`: the columns of each kind and the cells of an object.

The current time is a parameter, from which ages are computed. Parity: api.md 6, "Columns".
Pods and nodes have their own modules in this package.
"""

from dataclasses import replace

from app.domain.objects.printing import (
    admission,
    batch,
    cells,
    custom,
    networks,
    nodes,
    pods,
    stored,
    tables,
    volumes,
)
from app.domain.objects.printing.durations import age_text
from app.domain.objects.printing.tables import NONE, Cell, CellOf, Cells, Printer
from app.domain.objects.registry import Kind
from app.domain.values import api_groups, api_resources, json_tree
from app.domain.values.fields import core, dra, meta
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import Instant


def printer(kind: Kind, version: str) -> Printer:
    """The printer of a kind in a version; it prints name and age if the kind has no columns."""
    if kind.custom is not None:
        return custom.printer(kind.custom.versions[version])
    return _PRINTERS.get((kind.group, kind.plural), _NAME_AND_AGE)


def _claim_state(tree: JsonObject, _: Instant) -> Cell:
    states = ["deleted"] if meta.deletion_timestamp(tree) else []
    if dra.allocation(tree) is not None:
        states.append("allocated")
        if json_tree.get(tree, "status", "reservedFor"):
            states.append("reserved")
    return ",".join(states) or "pending"


def _time_added(tree: JsonObject, now: Instant) -> Cell:
    added = json_tree.text(tree, "spec", "taint", "timeAdded")
    return age_text(added, now) if added else ""


def _pool_status_request(tree: JsonObject, now: Instant) -> Cells:
    driver = dra.driver(tree)
    if json_tree.get(tree, "status") is None:
        return [meta.name(tree), driver, *"-----", 0, "Pending", NONE]
    pools = json_tree.objects(tree, "status", "pools")
    fields = ("totalDevices", "availableDevices", "allocatedDevices", "unavailableDevices")
    sums = [str(sum(json_tree.integer(pool, name) or 0 for pool in pools)) for name in fields]
    errors = sum("validationError" in pool for pool in pools)
    state, since = "Pending", ""
    for condition in meta.conditions(tree):
        if condition.status == "True":
            state, since = condition.type, condition.last_transition_time
    completed = age_text(since, now) if since else NONE
    return [meta.name(tree), driver, *sums, str(errors), len(pools), state, completed]


def _event(tree: JsonObject, now: Instant) -> Cells:
    event = core.event_object(tree)
    first = event.first_timestamp or event.event_time or ""
    last, count = event.last_timestamp or first, event.count
    if event.series is not None:
        last = event.series.last_observed_time or last
        count = event.series.count or count
    seen = age_text(last, now)
    if count > 1:
        seen = f"{seen} (x{count} over {age_text(first, now)})"
    target = event.involved_object
    kind = target.kind.lower()
    parts = (event.source.component, event.source.host)
    return [
        seen,
        event.type,
        event.reason,
        f"{kind}/{target.name}" if target.name else kind,
        target.field_path,
        ", ".join(filter(None, parts)) or event.reporting_component,
        event.message.strip(),
        age_text(first, now),
        count or 1,
        meta.name(tree),
    ]


def _data(*fields: str) -> CellOf:
    return lambda tree, _: sum(len(json_tree.mapping(tree, field)) for field in fields)


def _ports(tree: JsonObject, _: Instant) -> Cell:
    ports = []
    for port in json_tree.objects(tree, "spec", "ports"):
        number, node_port = json_tree.integer(port, "port"), json_tree.integer(port, "nodePort")
        protocol = json_tree.text(port, "protocol") or "TCP"
        ports.append(f"{number}:{node_port}/{protocol}" if node_port else f"{number}/{protocol}")
    return ",".join(ports) or NONE


def _external(tree: JsonObject, _: Instant) -> Cell:
    """The external addresses of a service."""
    spec = meta.spec(tree)
    places = json_tree.texts(spec, "externalIPs")
    match json_tree.text(spec, "type"):
        case "ExternalName":
            return json_tree.text(spec, "externalName")
        case "LoadBalancer":
            return ",".join([*filter(None, cells.ingress(tree)), *places]) or "<pending>"
    return ",".join(places) or NONE


def _bound(field: str) -> CellOf:
    """A limit of a PodDisruptionBudget, a number or a percentage; `N/A` if it is not set."""

    def shown(tree: JsonObject, _: Instant) -> Cell:
        limit = json_tree.get(tree, "spec", field)
        return "N/A" if limit is None else str(limit)

    return shown


_NAME_AND_AGE = cells.table("Name, Age")

_WIDE = {"Subobject", "Source", "First Seen", "Count", "Name"}
"""The columns of wide output in tables of Events, which stand between the other columns."""

_EVENT = Printer(
    columns=tuple(
        replace(column, priority=1 if column.name in _WIDE else 0)
        for column in tables.columns(
            "Last Seen, Type, Reason, Object, Subobject, Source, Message, First Seen, Count, =Name"
        )
    ),
    cells=_event,
)

_PRINTERS: dict[tuple[str, str], Printer] = {
    (group, resource): printer
    for group, resource, printer in (
        (
            api_groups.RESOURCE,
            "resourceclaims",
            cells.table("Name, State, Age", {"State": _claim_state}),
        ),
        (
            api_groups.RESOURCE,
            "resourceslices",
            cells.table(
                "Name, Node=.spec.nodeName, Driver=.spec.driver, Pool=.spec.pool.name, Age"
            ),
        ),
        (
            api_groups.RESOURCE,
            "devicetaintrules",
            cells.table(
                "Name, Key=.spec.taint.key, Value=.spec.taint.value, Effect=.spec.taint.effect, "
                "TimeAdded, Age",
                {"TimeAdded": _time_added},
            ),
        ),
        (
            api_groups.RESOURCE,
            "resourcepoolstatusrequests",
            Printer(
                columns=tables.columns(
                    "Name, Driver, Total, Available, Allocated, Unavailable, Errors, #Pools, "
                    "Status, Completed"
                ),
                cells=_pool_status_request,
            ),
        ),
        ("", "pods", pods.TABLE),
        ("", "nodes", nodes.TABLE),
        ("", "namespaces", cells.table("Name, Status=.status.phase, Age")),
        ("", "configmaps", cells.table("Name, #Data, Age", {"Data": _data("data", "binaryData")})),
        ("", "secrets", cells.table("Name, Type=.type, Data, Age", {"Data": _data("data")})),
        (
            "",
            "services",
            cells.table(
                "Name, Type=.spec.type|ClusterIP, Cluster-IP=.spec.clusterIP|<none>, External-IP, "
                "Port(s), Age [Selector]",
                {
                    "External-IP": _external,
                    "Port(s)": _ports,
                    "Selector": cells.labels("spec", "selector"),
                },
            ),
        ),
        ("", "serviceaccounts", _NAME_AND_AGE),
        (*api_resources.EVENTS, _EVENT),
        (api_groups.EVENTS, "events", _EVENT),
        (api_groups.COORDINATION, "leases", cells.table("Name, Holder=.spec.holderIdentity, Age")),
        (
            api_groups.POLICY,
            "poddisruptionbudgets",
            cells.table(
                "Name, Min Available, Max Unavailable, "
                "#Allowed Disruptions=#status.disruptionsAllowed, Age",
                {
                    "Min Available": _bound("minAvailable"),
                    "Max Unavailable": _bound("maxUnavailable"),
                },
            ),
        ),
        (
            api_groups.APPS,
            "deployments",
            cells.table(
                "Name, Ready, Up-to-date=#status.updatedReplicas, "
                "Available=#status.availableReplicas, Age [Containers, Images, Selector]",
                {"Ready": cells.ready},
            ),
        ),
        (
            api_groups.APPS,
            "replicasets",
            cells.table(
                "Name, #Desired, #Current=#status.replicas, #Ready=#status.readyReplicas, Age "
                "[Containers, Images, Selector]",
                {"Desired": cells.replicas},
            ),
        ),
        (
            api_groups.APPS,
            "statefulsets",
            cells.table("Name, Ready, Age [Containers, Images]", {"Ready": cells.ready}),
        ),
        (
            api_groups.APPS,
            "daemonsets",
            cells.table(
                "Name, #Desired=#status.desiredNumberScheduled, "
                "#Current=#status.currentNumberScheduled, #Ready=#status.numberReady, "
                "#Up-to-date=#status.updatedNumberScheduled, #Available=#status.numberAvailable, "
                "Node Selector, Age [Containers, Images, Selector]",
                {"Node Selector": cells.labels("spec", "template", "spec", "nodeSelector")},
            ),
        ),
        *batch.ROWS,
        *stored.ROWS,
        *networks.ROWS,
        *volumes.ROWS,
        *admission.ROWS,
    )
}
