"""Tables for people: the columns of each kind and the cells of one object, as servers make them.

Pure: the present is a parameter, ages are computed from it. Parity: api-surface.md 6, "Columns".
Pods and nodes have modules of their own beside this one.
"""

from app.domain.objects import printing_nodes, printing_pods
from app.domain.objects.custom import columns
from app.domain.objects.durations import age_of, age_text
from app.domain.objects.registry import Kind
from app.domain.objects.tables import NONE, Cells, Printer, TableColumn
from app.domain.values import json_tree
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import Instant


def printer(kind: Kind, version: str) -> Printer:
    """The printer of a kind in a version; name and age for those without columns of their own."""
    if kind.custom is not None:
        return columns.printer(kind.custom.versions[version])
    return _PRINTERS.get((kind.group, kind.plural), _NAME_AND_AGE)


def _columns(text: str) -> tuple[TableColumn, ...]:
    """Columns from `Name, Age [Wide, #Count]`: brackets hold the wide ones, `#` is a number."""
    shown, _, wide = text.partition("[")
    found: list[TableColumn] = []
    for priority, part in ((0, shown), (1, wide.rstrip("]"))):
        for name in filter(None, (piece.strip() for piece in part.split(","))):
            bare = name.removeprefix("#")
            found.append(
                TableColumn(
                    name=bare,
                    type="integer" if name.startswith("#") else "string",
                    format="name" if bare == "Name" and not found else "",
                    description=_DESCRIPTIONS.get(bare, ""),
                    priority=priority,
                )
            )
    return tuple(found)


def _name(tree: JsonObject) -> str:
    return json_tree.text(tree, "metadata", "name")


def _age(tree: JsonObject, now: Instant) -> str:
    return age_of(tree, now, "metadata", "creationTimestamp")


def _name_and_age(tree: JsonObject, now: Instant) -> Cells:
    return [_name(tree), _age(tree, now)]


def _resource_claim(tree: JsonObject, now: Instant) -> Cells:
    states = []
    if json_tree.text(tree, "metadata", "deletionTimestamp"):
        states.append("deleted")
    if json_tree.get(tree, "status", "allocation") is None:
        if not states:
            states.append("pending")
    else:
        states.append("allocated")
        if json_tree.get(tree, "status", "reservedFor"):
            states.append("reserved")
    return [_name(tree), ",".join(states), _age(tree, now)]


def _resource_slice(tree: JsonObject, now: Instant) -> Cells:
    spec = json_tree.mapping(tree, "spec")
    return [
        _name(tree),
        json_tree.text(spec, "nodeName"),
        json_tree.text(spec, "driver"),
        json_tree.text(spec, "pool", "name"),
        _age(tree, now),
    ]


def _taint_rule(tree: JsonObject, now: Instant) -> Cells:
    taint = json_tree.mapping(tree, "spec", "taint")
    added = json_tree.text(taint, "timeAdded")
    return [
        _name(tree),
        json_tree.text(taint, "key"),
        json_tree.text(taint, "value"),
        json_tree.text(taint, "effect"),
        age_text(added, now) if added else "",
        _age(tree, now),
    ]


def _namespace(tree: JsonObject, now: Instant) -> Cells:
    return [_name(tree), json_tree.text(tree, "status", "phase"), _age(tree, now)]


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
        _name(tree),
    ]


def _config_map(tree: JsonObject, now: Instant) -> Cells:
    size = len(json_tree.mapping(tree, "data")) + len(json_tree.mapping(tree, "binaryData"))
    return [_name(tree), size, _age(tree, now)]


def _secret(tree: JsonObject, now: Instant) -> Cells:
    size = len(json_tree.mapping(tree, "data"))
    return [_name(tree), json_tree.text(tree, "type"), size, _age(tree, now)]


def _service(tree: JsonObject, now: Instant) -> Cells:
    spec = json_tree.mapping(tree, "spec")
    ports = []
    for port in json_tree.objects(spec, "ports"):
        number, node_port = json_tree.integer(port, "port"), json_tree.integer(port, "nodePort")
        protocol = json_tree.text(port, "protocol") or "TCP"
        ports.append(f"{number}:{node_port}/{protocol}" if node_port else f"{number}/{protocol}")
    return [
        _name(tree),
        json_tree.text(spec, "type") or "ClusterIP",
        json_tree.text(spec, "clusterIP") or NONE,
        ",".join(json_tree.texts(spec, "externalIPs")) or NONE,
        ",".join(ports) or NONE,
        _age(tree, now),
        _selector(json_tree.labels(spec, "selector")),
    ]


def _service_account(tree: JsonObject, now: Instant) -> Cells:
    return [_name(tree), len(json_tree.objects(tree, "secrets")), _age(tree, now)]


def _lease(tree: JsonObject, now: Instant) -> Cells:
    return [_name(tree), json_tree.text(tree, "spec", "holderIdentity"), _age(tree, now)]


def _disruption_budget(tree: JsonObject, now: Instant) -> Cells:
    spec = json_tree.mapping(tree, "spec")
    least, most = spec.get("minAvailable"), spec.get("maxUnavailable")
    return [
        _name(tree),
        "N/A" if least is None else str(least),
        "N/A" if most is None else str(most),
        json_tree.integer(tree, "status", "disruptionsAllowed") or 0,
        _age(tree, now),
    ]


def _deployment(tree: JsonObject, now: Instant) -> Cells:
    ready = json_tree.integer(tree, "status", "readyReplicas") or 0
    return [
        _name(tree),
        f"{ready}/{_replicas(tree)}",
        json_tree.integer(tree, "status", "updatedReplicas") or 0,
        json_tree.integer(tree, "status", "availableReplicas") or 0,
        _age(tree, now),
        *_template(tree),
        _label_selector(tree),
    ]


def _replica_set(tree: JsonObject, now: Instant) -> Cells:
    return [
        _name(tree),
        _replicas(tree),
        json_tree.integer(tree, "status", "replicas") or 0,
        json_tree.integer(tree, "status", "readyReplicas") or 0,
        _age(tree, now),
        *_template(tree),
        _label_selector(tree),
    ]


def _stateful_set(tree: JsonObject, now: Instant) -> Cells:
    ready = json_tree.integer(tree, "status", "readyReplicas") or 0
    return [_name(tree), f"{ready}/{_replicas(tree)}", _age(tree, now), *_template(tree)]


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
        _name(tree),
        *(json_tree.integer(status, number) or 0 for number in numbers),
        _selector(node_selector),
        _age(tree, now),
        *_template(tree),
        _label_selector(tree),
    ]


def _job(tree: JsonObject, now: Instant) -> Cells:
    status = json_tree.mapping(tree, "status")
    wanted = json_tree.integer(tree, "spec", "completions")
    done = json_tree.integer(status, "succeeded") or 0
    conditions = {
        json_tree.text(condition, "type")
        for condition in json_tree.objects(status, "conditions")
        if json_tree.text(condition, "status") == "True"
    }
    phases = (
        ("Complete", "Complete"),
        ("Failed", "Failed"),
        ("Suspended", "Suspended"),
        ("FailureTarget", "FailureTarget"),
        ("SuccessCriteriaMet", "SuccessCriteriaMet"),
    )
    phase = next((name for kind, name in phases if kind in conditions), "Running")
    if json_tree.text(tree, "metadata", "deletionTimestamp"):
        phase = "Terminating"
    started = json_tree.text(status, "startTime")
    return [
        _name(tree),
        phase,
        f"{done}/{1 if wanted is None else wanted}",
        age_text(started, now) if started else "",
        _age(tree, now),
        *_template(tree),
        _label_selector(tree),
    ]


def _custom_resource_definition(tree: JsonObject, now: Instant) -> Cells:
    return [_name(tree), json_tree.text(tree, "metadata", "creationTimestamp")]


def _replicas(tree: JsonObject) -> int:
    found = json_tree.integer(tree, "spec", "replicas")
    return 1 if found is None else found


def _template(tree: JsonObject) -> tuple[str, str]:
    """Names and images of the containers in the pod template."""
    containers = json_tree.objects(tree, "spec", "template", "spec", "containers")
    names = ",".join(json_tree.text(container, "name") for container in containers)
    images = ",".join(json_tree.text(container, "image") for container in containers)
    return names, images


def _selector(labels: dict[str, str]) -> str:
    return ",".join(f"{key}={value}" for key, value in sorted(labels.items())) or NONE


def _label_selector(tree: JsonObject) -> str:
    return _selector(json_tree.labels(tree, "spec", "selector", "matchLabels"))


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

_DRA = "resource.k8s.io"

_PRINTERS: dict[tuple[str, str], Printer] = {
    (group, resource): Printer(columns=_columns(titles), cells=cells)
    for group, resource, titles, cells in (
        (_DRA, "resourceclaims", "Name, State, Age", _resource_claim),
        (_DRA, "resourceslices", "Name, Node, Driver, Pool, Age", _resource_slice),
        (_DRA, "devicetaintrules", "Name, Key, Value, Effect, TimeAdded, Age", _taint_rule),
        ("", "pods", printing_pods.COLUMNS, printing_pods.cells),
        ("", "nodes", printing_nodes.COLUMNS, printing_nodes.cells),
        ("", "namespaces", "Name, Status, Age", _namespace),
        ("", "configmaps", "Name, #Data, Age", _config_map),
        ("", "secrets", "Name, Type, #Data, Age", _secret),
        (
            "",
            "services",
            "Name, Type, Cluster-IP, External-IP, Port(s), Age [Selector]",
            _service,
        ),
        ("", "serviceaccounts", "Name, #Secrets, Age", _service_account),
        ("coordination.k8s.io", "leases", "Name, Holder, Age", _lease),
        (
            "policy",
            "poddisruptionbudgets",
            "Name, Min Available, Max Unavailable, #Allowed Disruptions, Age",
            _disruption_budget,
        ),
        (
            "apps",
            "deployments",
            "Name, Ready, #Up-to-date, #Available, Age [Containers, Images, Selector]",
            _deployment,
        ),
        (
            "apps",
            "replicasets",
            "Name, #Desired, #Current, #Ready, Age [Containers, Images, Selector]",
            _replica_set,
        ),
        ("apps", "statefulsets", "Name, Ready, Age [Containers, Images]", _stateful_set),
        (
            "apps",
            "daemonsets",
            "Name, #Desired, #Current, #Ready, #Up-to-date, #Available, Node Selector, Age "
            "[Containers, Images, Selector]",
            _daemon_set,
        ),
        (
            "batch",
            "jobs",
            "Name, Status, Completions, Duration, Age [Containers, Images, Selector]",
            _job,
        ),
        (
            "apiextensions.k8s.io",
            "customresourcedefinitions",
            "Name, Created At",
            _custom_resource_definition,
        ),
    )
}


def _event_columns() -> tuple[TableColumn, ...]:
    """Events mix wide columns among the others."""
    wide = {"Subobject", "Source", "First Seen", "Count", "Name"}
    names = "Last Seen, Type, Reason, Object, Subobject, Source, Message, First Seen, #Count, Name"
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


_PRINTERS["", "events"] = Printer(columns=_event_columns(), cells=_event)
_PRINTERS["events.k8s.io", "events"] = _PRINTERS["", "events"]
