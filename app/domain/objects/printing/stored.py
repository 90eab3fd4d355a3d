"""Tables of kinds that are stored for others: rights, quotas, volumes, priorities, endpoints.

Parity: api.md 6, "Columns"; the printers of the real server.
"""

from app.domain.objects.printing import cells
from app.domain.objects.printing.tables import NONE, Cells, Row
from app.domain.values import api_groups, json_tree
from app.domain.values.fields import core, meta
from app.domain.values.json_tree import JsonObject, JsonView
from app.domain.values.timestamps import Instant

ENDPOINTS_SHOWN = 3
UNSET = "<unset>"

_MODES = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}


def _created(tree: JsonObject, now: Instant) -> Cells:
    return [cells.name(tree), cells.created_at(tree)]


def _binding(tree: JsonObject, now: Instant) -> Cells:
    role = json_tree.mapping(tree, "roleRef")
    found: dict[str, list[str]] = {"User": [], "Group": [], "ServiceAccount": []}
    for subject in json_tree.objects(tree, "subjects"):
        kind, name = json_tree.text(subject, "kind"), json_tree.text(subject, "name")
        place = json_tree.text(subject, "namespace")
        shown = f"{place}/{name}" if kind == "ServiceAccount" else name
        found.setdefault(kind, []).append(shown)
    return [
        cells.name(tree),
        f"{json_tree.text(role, 'kind')}/{json_tree.text(role, 'name')}",
        cells.age(tree, now),
        *(", ".join(found[kind]) for kind in ("User", "Group", "ServiceAccount")),
    ]


def _priority_class(tree: JsonObject, now: Instant) -> Cells:
    return [
        cells.name(tree),
        json_tree.integer(tree, "value") or 0,
        tree.get("globalDefault") is True,
        cells.age(tree, now),
        json_tree.text(tree, "preemptionPolicy"),
    ]


def _quota(tree: JsonObject, now: Instant) -> Cells:
    used = json_tree.mapping(tree, "status", "used")
    requests: list[str] = []
    limits: list[str] = []
    for name, amount in sorted(json_tree.mapping(tree, "status", "hard").items()):
        text = f"{name}: {used.get(name, '0')}/{amount}"
        (limits if name.startswith("limits.") else requests).append(text)
    return [cells.name(tree), ", ".join(requests), ", ".join(limits), cells.age(tree, now)]


def _volume(tree: JsonObject, now: Instant) -> Cells:
    spec = json_tree.mapping(tree, "spec")
    claim = json_tree.mapping(spec, "claimRef")
    owner = f"{json_tree.text(claim, 'namespace')}/{json_tree.text(claim, 'name')}"
    return [
        cells.name(tree),
        json_tree.text(spec, "capacity", "storage"),
        _modes(spec),
        json_tree.text(spec, "persistentVolumeReclaimPolicy"),
        _phase(tree),
        owner if claim else "",
        json_tree.text(spec, "storageClassName"),
        json_tree.text(spec, "volumeAttributesClassName") or UNSET,
        core.status_reason(tree),
        cells.age(tree, now),
        json_tree.text(spec, "volumeMode") or UNSET,
    ]


def _volume_claim(tree: JsonObject, now: Instant) -> Cells:
    spec = json_tree.mapping(tree, "spec")
    volume = json_tree.text(spec, "volumeName")
    status = json_tree.mapping(tree, "status")
    return [
        cells.name(tree),
        _phase(tree),
        volume,
        json_tree.text(status, "capacity", "storage") if volume else "",
        _modes(status) if volume else "",
        json_tree.text(spec, "storageClassName"),
        json_tree.text(spec, "volumeAttributesClassName") or UNSET,
        cells.age(tree, now),
        json_tree.text(spec, "volumeMode") or UNSET,
    ]


def _phase(tree: JsonView) -> str:
    is_ending = meta.deletion_timestamp(tree)
    return "Terminating" if is_ending else meta.phase(tree)


def _modes(holder: JsonView) -> str:
    present = json_tree.texts(holder, "accessModes")
    return ",".join(short for mode, short in _MODES.items() if mode in present)


def _endpoints(tree: JsonObject, now: Instant) -> Cells:
    found = []
    for subset in json_tree.objects(tree, "subsets"):
        ports = json_tree.objects(subset, "ports") or [{}]
        for port in ports:
            number = json_tree.integer(port, "port")
            for address in json_tree.objects(subset, "addresses"):
                place = json_tree.text(address, "ip")
                found.append(place if number is None else f"{place}:{number}")
    shown = ",".join(found[:ENDPOINTS_SHOWN]) or NONE
    if len(found) > ENDPOINTS_SHOWN:
        shown += f" + {len(found) - ENDPOINTS_SHOWN} more..."
    return [cells.name(tree), shown, cells.age(tree, now)]


def _pod_template(tree: JsonObject, now: Instant) -> Cells:
    labels = json_tree.labels(tree, "template", "metadata", "labels")
    return [cells.name(tree), *cells.template(tree, "template"), cells.selector(labels)]


def _replication_controller(tree: JsonObject, now: Instant) -> Cells:
    return [
        cells.name(tree),
        cells.replicas(tree),
        json_tree.integer(tree, "status", "replicas") or 0,
        json_tree.integer(tree, "status", "readyReplicas") or 0,
        cells.age(tree, now),
        *cells.template(tree),
        cells.selector(json_tree.labels(tree, "spec", "selector")),
    ]


def _controller_revision(tree: JsonObject, now: Instant) -> Cells:
    owner: JsonView = next(
        (found for found in meta.owner_references(tree) if found.get("controller") is True),
        {},
    )
    group, slash, _ = json_tree.text(owner, "apiVersion").partition("/")
    kind = json_tree.text(owner, "kind").lower()
    qualified = f"{kind}.{group}" if slash else kind
    return [
        cells.name(tree),
        f"{qualified}/{json_tree.text(owner, 'name')}" if owner else NONE,
        json_tree.integer(tree, "revision") or 0,
        cells.age(tree, now),
    ]


def _api_service(tree: JsonObject, now: Instant) -> Cells:
    service = json_tree.mapping(tree, "spec", "service")
    place = f"{json_tree.text(service, 'namespace')}/{json_tree.text(service, 'name')}"
    state = "Unknown"
    for held in meta.condition_trees(tree):
        if held.get("type") == "Available":
            state = json_tree.text(held, "status")
            state += "" if state == "True" else f" ({json_tree.text(held, 'reason')})"
    return [cells.name(tree), place if service else "Local", state, cells.age(tree, now)]


_BINDING = "Name, Role, Age [Users, Groups, ServiceAccounts]"

ROWS: tuple[Row, ...] = (
    (api_groups.RBAC, "clusterroles", "Name, @Created At", _created),
    (api_groups.RBAC, "roles", "Name, @Created At", _created),
    (api_groups.RBAC, "clusterrolebindings", _BINDING, _binding),
    (api_groups.RBAC, "rolebindings", _BINDING, _binding),
    (api_groups.API_EXTENSIONS, "customresourcedefinitions", "Name, @Created At", _created),
    (
        api_groups.SCHEDULING,
        "priorityclasses",
        "Name, #Value, ?Global-Default, Age, PreemptionPolicy",
        _priority_class,
    ),
    ("", "resourcequotas", "Name, Request, Limit, Age", _quota),
    ("", "limitranges", "Name, @Created At", _created),
    (
        "",
        "persistentvolumes",
        "Name, Capacity, Access Modes, Reclaim Policy, Status, Claim, StorageClass, "
        "VolumeAttributesClass, Reason, Age [VolumeMode]",
        _volume,
    ),
    (
        "",
        "persistentvolumeclaims",
        "Name, Status, Volume, Capacity, Access Modes, StorageClass, VolumeAttributesClass, Age "
        "[VolumeMode]",
        _volume_claim,
    ),
    ("", "endpoints", "Name, Endpoints, Age", _endpoints),
    ("", "podtemplates", "Name, Containers, Images, Pod Labels", _pod_template),
    (
        "",
        "replicationcontrollers",
        "Name, #Desired, #Current, #Ready, Age [Containers, Images, Selector]",
        _replication_controller,
    ),
    (api_groups.API_REGISTRATION, "apiservices", "Name, Service, Available, Age", _api_service),
    (
        api_groups.APPS,
        "controllerrevisions",
        "Name, Controller, Revision, Age",
        _controller_revision,
    ),
)
