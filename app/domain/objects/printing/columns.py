"""Tables for people: the columns of each kind and the cells of one object, as servers make them.

Pure: the present is a parameter, ages are computed from it. Parity: api.md 6, "Columns".
Pods and nodes have modules of their own beside this one.
"""

from app.domain.objects.printing import admission as printing_reviews
from app.domain.objects.printing import batch, cells, custom, networks, nodes, pods, stored, volumes
from app.domain.objects.printing.durations import age_text
from app.domain.objects.printing.tables import NONE, Cells, Printer, TableColumn
from app.domain.objects.registry import Kind
from app.domain.values import api_groups, api_resources, json_tree
from app.domain.values.fields import dra, meta
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import Instant


def printer(kind: Kind, version: str) -> Printer:
    """The printer of a kind in a version; name and age for those without columns of their own."""
    if kind.custom is not None:
        return custom.printer(kind.custom.versions[version])
    return _PRINTERS.get((kind.group, kind.plural), _NAME_AND_AGE)


_TYPES = {"#": "integer", "?": "boolean", "@": "date"}


def _columns(text: str) -> tuple[TableColumn, ...]:
    """Columns from `Name, Age [Wide, #Count, ?Flag, @Time, =Name]`: brackets hold the wide ones."""
    shown, _, wide = text.partition("[")
    found: list[TableColumn] = []
    for priority, part in ((0, shown), (1, wide.rstrip("]"))):
        for name in filter(None, (piece.strip() for piece in part.split(","))):
            bare = name.lstrip("#?@=")
            is_name = name[0] == "=" or (bare == "Name" and not found)
            found.append(
                TableColumn(
                    name=bare,
                    type=_TYPES.get(name[0], "string"),
                    format="name" if is_name else "",
                    description=_DESCRIPTIONS.get(bare, ""),
                    priority=priority,
                )
            )
    return tuple(found)


def _name_and_age(tree: JsonObject, now: Instant) -> Cells:
    return [cells.name(tree), cells.age(tree, now)]


def _resource_claim(tree: JsonObject, now: Instant) -> Cells:
    states = []
    if meta.deletion_timestamp(tree):
        states.append("deleted")
    if dra.allocation(tree) is None:
        if not states:
            states.append("pending")
    else:
        states.append("allocated")
        if json_tree.get(tree, "status", "reservedFor"):
            states.append("reserved")
    return [cells.name(tree), ",".join(states), cells.age(tree, now)]


def _resource_slice(tree: JsonObject, now: Instant) -> Cells:
    return [
        cells.name(tree),
        dra.node_name(tree),
        dra.driver(tree),
        dra.pool_name(tree),
        cells.age(tree, now),
    ]


def _taint_rule(tree: JsonObject, now: Instant) -> Cells:
    taint = dra.taint(tree)
    added = json_tree.text(taint, "timeAdded")
    return [
        cells.name(tree),
        json_tree.text(taint, "key"),
        json_tree.text(taint, "value"),
        json_tree.text(taint, "effect"),
        age_text(added, now) if added else "",
        cells.age(tree, now),
    ]


def _pool_status_request(tree: JsonObject, now: Instant) -> Cells:
    driver = dra.driver(tree)
    if json_tree.get(tree, "status") is None:
        return [cells.name(tree), driver, *"-----", 0, "Pending", NONE]
    pools = json_tree.objects(tree, "status", "pools")
    fields = ("totalDevices", "availableDevices", "allocatedDevices", "unavailableDevices")
    sums = [str(sum(json_tree.integer(pool, name) or 0 for pool in pools)) for name in fields]
    errors = sum("validationError" in pool for pool in pools)
    state, since = "Pending", ""
    for held in meta.condition_trees(tree):
        if held.get("status") == "True":
            state, since = json_tree.text(held, "type"), json_tree.text(held, "lastTransitionTime")
    completed = age_text(since, now) if since else NONE
    return [cells.name(tree), driver, *sums, str(errors), len(pools), state, completed]


def _namespace(tree: JsonObject, now: Instant) -> Cells:
    return [cells.name(tree), meta.phase(tree), cells.age(tree, now)]


def _event(tree: JsonObject, now: Instant) -> Cells:
    first = json_tree.text(tree, "firstTimestamp") or json_tree.text(tree, "eventTime")
    last = json_tree.text(tree, "lastTimestamp") or first
    count = json_tree.integer(tree, "count") or 0
    if json_tree.get(tree, "series") is not None:
        last = json_tree.text(tree, "series", "lastObservedTime") or last
        count = json_tree.integer(tree, "series", "count") or count
    seen = age_text(last, now)
    if count > 1:
        seen = f"{seen} (x{count} over {age_text(first, now)})"
    target = json_tree.mapping(tree, "involvedObject")
    kind = json_tree.text(target, "kind").lower()
    name = json_tree.text(target, "name")
    parts = [json_tree.text(tree, "source", part) for part in ("component", "host")]
    source = ", ".join(filter(None, parts)) or json_tree.text(tree, "reportingComponent")
    return [
        seen,
        json_tree.text(tree, "type"),
        json_tree.text(tree, "reason"),
        f"{kind}/{name}" if name else kind,
        json_tree.text(target, "fieldPath"),
        source,
        json_tree.text(tree, "message").strip(),
        age_text(first, now),
        count or 1,
        cells.name(tree),
    ]


def _config_map(tree: JsonObject, now: Instant) -> Cells:
    size = len(json_tree.mapping(tree, "data")) + len(json_tree.mapping(tree, "binaryData"))
    return [cells.name(tree), size, cells.age(tree, now)]


def _secret(tree: JsonObject, now: Instant) -> Cells:
    size = len(json_tree.mapping(tree, "data"))
    return [cells.name(tree), json_tree.text(tree, "type"), size, cells.age(tree, now)]


def _service(tree: JsonObject, now: Instant) -> Cells:
    spec = json_tree.mapping(tree, "spec")
    ports = []
    for port in json_tree.objects(spec, "ports"):
        number, node_port = json_tree.integer(port, "port"), json_tree.integer(port, "nodePort")
        protocol = json_tree.text(port, "protocol") or "TCP"
        ports.append(f"{number}:{node_port}/{protocol}" if node_port else f"{number}/{protocol}")
    return [
        cells.name(tree),
        json_tree.text(spec, "type") or "ClusterIP",
        json_tree.text(spec, "clusterIP") or NONE,
        _external(tree),
        ",".join(ports) or NONE,
        cells.age(tree, now),
        cells.selector(json_tree.labels(spec, "selector")),
    ]


def _external(tree: JsonObject) -> str:
    """Where a service is reached from outside."""
    spec = json_tree.mapping(tree, "spec")
    places = json_tree.texts(spec, "externalIPs")
    match json_tree.text(spec, "type"):
        case "ExternalName":
            return json_tree.text(spec, "externalName")
        case "LoadBalancer":
            ingress = json_tree.objects(tree, "status", "loadBalancer", "ingress")
            found = [json_tree.text(i, "ip") or json_tree.text(i, "hostname") for i in ingress]
            return ",".join([*filter(None, found), *places]) or "<pending>"
    return ",".join(places) or NONE


def _service_account(tree: JsonObject, now: Instant) -> Cells:
    return [cells.name(tree), cells.age(tree, now)]


def _lease(tree: JsonObject, now: Instant) -> Cells:
    return [cells.name(tree), json_tree.text(tree, "spec", "holderIdentity"), cells.age(tree, now)]


def _disruption_budget(tree: JsonObject, now: Instant) -> Cells:
    spec = json_tree.mapping(tree, "spec")
    least, most = spec.get("minAvailable"), spec.get("maxUnavailable")
    return [
        cells.name(tree),
        "N/A" if least is None else str(least),
        "N/A" if most is None else str(most),
        json_tree.integer(tree, "status", "disruptionsAllowed") or 0,
        cells.age(tree, now),
    ]


def _deployment(tree: JsonObject, now: Instant) -> Cells:
    ready = json_tree.integer(tree, "status", "readyReplicas") or 0
    return [
        cells.name(tree),
        f"{ready}/{cells.replicas(tree)}",
        json_tree.integer(tree, "status", "updatedReplicas") or 0,
        json_tree.integer(tree, "status", "availableReplicas") or 0,
        cells.age(tree, now),
        *cells.template(tree),
        cells.label_selector(tree),
    ]


def _replica_set(tree: JsonObject, now: Instant) -> Cells:
    return [
        cells.name(tree),
        cells.replicas(tree),
        json_tree.integer(tree, "status", "replicas") or 0,
        json_tree.integer(tree, "status", "readyReplicas") or 0,
        cells.age(tree, now),
        *cells.template(tree),
        cells.label_selector(tree),
    ]


def _stateful_set(tree: JsonObject, now: Instant) -> Cells:
    ready = json_tree.integer(tree, "status", "readyReplicas") or 0
    return [
        cells.name(tree),
        f"{ready}/{cells.replicas(tree)}",
        cells.age(tree, now),
        *cells.template(tree),
    ]


def _daemon_set(tree: JsonObject, now: Instant) -> Cells:
    status = json_tree.mapping(tree, "status")
    numbers = (
        "desiredNumberScheduled",
        "currentNumberScheduled",
        "numberReady",
        "updatedNumberScheduled",
        "numberAvailable",
    )
    node_selector = json_tree.labels(tree, "spec", "template", "spec", "nodeSelector")
    return [
        cells.name(tree),
        *(json_tree.integer(status, number) or 0 for number in numbers),
        cells.selector(node_selector),
        cells.age(tree, now),
        *cells.template(tree),
        cells.label_selector(tree),
    ]


_DESCRIPTIONS = {
    "Name": "Name of the object, unique within its namespace and kind",
    "Age": "Time since the object was created",
    "State": "What has become of the claim: pending, allocated, reserved, deleted",
    "Node": "Node that the object belongs to or runs on",
    "Driver": "Driver that publishes the devices",
    "Pool": "Pool that the slice is part of",
    "TimeAdded": "Time since the taint was added",
    "Status": "Present state",
    "Ready": "How many parts are ready, of how many",
    "Restarts": "How often containers were started again, and when last",
    "Last Seen": "Time since it was last observed",
    "Object": "Kind and name of the object concerned",
}

_NAME_AND_AGE = Printer(columns=_columns("Name, Age"), cells=_name_and_age)


_PRINTERS: dict[tuple[str, str], Printer] = {
    (group, resource): Printer(columns=_columns(titles), cells=row)
    for group, resource, titles, row in (
        (api_groups.RESOURCE, "resourceclaims", "Name, State, Age", _resource_claim),
        (api_groups.RESOURCE, "resourceslices", "Name, Node, Driver, Pool, Age", _resource_slice),
        (
            api_groups.RESOURCE,
            "devicetaintrules",
            "Name, Key, Value, Effect, TimeAdded, Age",
            _taint_rule,
        ),
        (
            api_groups.RESOURCE,
            "resourcepoolstatusrequests",
            "Name, Driver, Total, Available, Allocated, Unavailable, Errors, #Pools, Status, "
            "Completed",
            _pool_status_request,
        ),
        ("", "pods", pods.COLUMNS, pods.cells),
        ("", "nodes", nodes.COLUMNS, nodes.cells),
        ("", "namespaces", "Name, Status, Age", _namespace),
        ("", "configmaps", "Name, #Data, Age", _config_map),
        ("", "secrets", "Name, Type, Data, Age", _secret),
        (
            "",
            "services",
            "Name, Type, Cluster-IP, External-IP, Port(s), Age [Selector]",
            _service,
        ),
        ("", "serviceaccounts", "Name, Age", _service_account),
        (api_groups.COORDINATION, "leases", "Name, Holder, Age", _lease),
        (
            api_groups.POLICY,
            "poddisruptionbudgets",
            "Name, Min Available, Max Unavailable, #Allowed Disruptions, Age",
            _disruption_budget,
        ),
        (
            api_groups.APPS,
            "deployments",
            "Name, Ready, Up-to-date, Available, Age [Containers, Images, Selector]",
            _deployment,
        ),
        (
            api_groups.APPS,
            "replicasets",
            "Name, #Desired, #Current, #Ready, Age [Containers, Images, Selector]",
            _replica_set,
        ),
        (api_groups.APPS, "statefulsets", "Name, Ready, Age [Containers, Images]", _stateful_set),
        (
            api_groups.APPS,
            "daemonsets",
            "Name, #Desired, #Current, #Ready, #Up-to-date, #Available, Node Selector, Age "
            "[Containers, Images, Selector]",
            _daemon_set,
        ),
        (api_groups.BATCH, "jobs", batch.JOB, batch.job),
        (api_groups.BATCH, "cronjobs", batch.CRON_JOB, batch.cron_job),
        *stored.ROWS,
        *networks.ROWS,
        *volumes.ROWS,
        *printing_reviews.ROWS,
    )
}


def _event_columns() -> tuple[TableColumn, ...]:
    """Events mix wide columns among the others."""
    wide = {"Subobject", "Source", "First Seen", "Count", "Name"}
    names = "Last Seen, Type, Reason, Object, Subobject, Source, Message, First Seen, Count, Name"
    return tuple(
        TableColumn(
            name=column.name,
            type=column.type,
            format="name" if column.name == "Name" else "",
            description=column.description,
            priority=1 if column.name in wide else 0,
        )
        for column in _columns(names)
    )


_PRINTERS[api_resources.EVENTS] = Printer(columns=_event_columns(), cells=_event)
_PRINTERS[api_groups.EVENTS, "events"] = _PRINTERS[api_resources.EVENTS]
