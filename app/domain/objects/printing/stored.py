"""Tables of kinds such as roles, quotas, volumes, priority classes and endpoints.

Parity: api.md 6, "Columns"; the printers of the real server.
"""

from app.domain.objects.printing import cells
from app.domain.objects.printing.cells import Row
from app.domain.objects.printing.tables import NONE, Cell, CellOf, Cells, Printer, cell_at, columns
from app.domain.values import api_groups, json_tree
from app.domain.values.fields import core, entries, meta
from app.domain.values.json_tree import JsonObject, JsonView
from app.domain.values.timestamps import Instant

ENDPOINTS_SHOWN = 3

_MODES = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}


def _subjects(kind: str) -> CellOf:
    """The names of a binding's subjects of one kind."""

    def shown(tree: JsonObject, _: Instant) -> Cell:
        subjects = [
            subject
            for subject in map(meta.reference, json_tree.objects(tree, "subjects"))
            if subject.kind == kind
        ]
        if kind == "ServiceAccount":
            return ", ".join(f"{subject.namespace}/{subject.name}" for subject in subjects)
        return ", ".join(subject.name for subject in subjects)

    return shown


def _role(tree: JsonObject, _: Instant) -> Cell:
    role = meta.reference(tree.get("roleRef"))
    return f"{role.kind}/{role.name}"


def _quota(tree: JsonObject, now: Instant) -> Cells:
    used = core.quota_used(tree)
    requests: list[str] = []
    limits: list[str] = []
    for name, amount in sorted(json_tree.mapping(tree, "status", "hard").items()):
        text = f"{name}: {used.get(name, '0')}/{amount}"
        (limits if name.startswith("limits.") else requests).append(text)
    return [meta.name(tree), ", ".join(requests), ", ".join(limits), cells.age(tree, now)]


def _claim(tree: JsonObject, _: Instant) -> Cell:
    claim = json_tree.mapping(tree, "spec", "claimRef")
    return _place(claim) if claim else ""


def _place(reference: JsonView) -> str:
    return f"{json_tree.text(reference, 'namespace')}/{entries.name(reference)}"


def _modes(*path: str) -> CellOf:
    def shown(tree: JsonObject, _: Instant) -> Cell:
        present = json_tree.texts(tree, *path, "accessModes")
        return ",".join(short for mode, short in _MODES.items() if mode in present)

    return shown


def _if_bound(cell: CellOf) -> CellOf:
    """A cell that is empty until the claim has a volume."""
    return lambda tree, now: cell(tree, now) if core.bound_volume(tree) else ""


def _phase(tree: JsonObject, _: Instant) -> Cell:
    return "Terminating" if meta.deletion_timestamp(tree) else meta.phase(tree)


def _endpoints(tree: JsonObject, _: Instant) -> Cell:
    endpoints = []
    for subset in json_tree.objects(tree, "subsets"):
        ports = core.ports(subset) or [{}]
        for port in ports:
            number = json_tree.integer(port, "port")
            for address in json_tree.objects(subset, "addresses"):
                place = json_tree.text(address, "ip")
                endpoints.append(place if number is None else f"{place}:{number}")
    shown = ",".join(endpoints[:ENDPOINTS_SHOWN]) or NONE
    if len(endpoints) > ENDPOINTS_SHOWN:
        shown += f" + {len(endpoints) - ENDPOINTS_SHOWN} more..."
    return shown


def _controller(tree: JsonObject, _: Instant) -> Cell:
    owner = meta.controller(tree)
    if owner is None:
        return NONE
    group, slash, _version = owner.api_version.partition("/")
    kind = owner.kind.lower()
    return f"{kind}.{group}/{owner.name}" if slash else f"{kind}/{owner.name}"


def _service(tree: JsonObject, _: Instant) -> Cell:
    service = json_tree.mapping(tree, "spec", "service")
    return _place(service) if service else "Local"


def _available(tree: JsonObject, _: Instant) -> Cell:
    state = "Unknown"
    for condition in meta.conditions(tree):
        if condition.type == "Available":
            state = condition.status
            state += "" if state == "True" else f" ({condition.reason})"
    return state


_CREATED = cells.table("Name, @Created At")
_BINDING = cells.table(
    "Name, Role, Age [Users, Groups, ServiceAccounts]",
    {
        "Role": _role,
        "Users": _subjects("User"),
        "Groups": _subjects("Group"),
        "ServiceAccounts": _subjects("ServiceAccount"),
    },
)

ROWS: tuple[Row, ...] = (
    (api_groups.RBAC, "clusterroles", _CREATED),
    (api_groups.RBAC, "roles", _CREATED),
    (api_groups.RBAC, "clusterrolebindings", _BINDING),
    (api_groups.RBAC, "rolebindings", _BINDING),
    (api_groups.API_EXTENSIONS, "customresourcedefinitions", _CREATED),
    (
        api_groups.SCHEDULING,
        "priorityclasses",
        cells.table(
            "Name, #Value=#value, ?Global-Default=?globalDefault, Age, "
            "PreemptionPolicy=.preemptionPolicy"
        ),
    ),
    (
        "",
        "resourcequotas",
        Printer(columns=columns("Name, Request, Limit, Age"), cells=_quota),
    ),
    ("", "limitranges", _CREATED),
    (
        "",
        "persistentvolumes",
        cells.table(
            "Name, Capacity=.spec.capacity.storage, Access Modes, "
            "Reclaim Policy=.spec.persistentVolumeReclaimPolicy, Status, Claim, "
            "StorageClass=.spec.storageClassName, "
            "VolumeAttributesClass=.spec.volumeAttributesClassName|<unset>, "
            "Reason=.status.reason, Age [VolumeMode=.spec.volumeMode|<unset>]",
            {"Access Modes": _modes("spec"), "Status": _phase, "Claim": _claim},
        ),
    ),
    (
        "",
        "persistentvolumeclaims",
        cells.table(
            "Name, Status, Volume=.spec.volumeName, Capacity, Access Modes, "
            "StorageClass=.spec.storageClassName, "
            "VolumeAttributesClass=.spec.volumeAttributesClassName|<unset>, Age "
            "[VolumeMode=.spec.volumeMode|<unset>]",
            {
                "Status": _phase,
                "Capacity": _if_bound(cell_at(".status.capacity.storage")),
                "Access Modes": _if_bound(_modes("status")),
            },
        ),
    ),
    ("", "endpoints", cells.table("Name, Endpoints, Age", {"Endpoints": _endpoints})),
    (
        "",
        "podtemplates",
        cells.table(
            "Name, Containers, Images, Pod Labels",
            {
                "Pod Labels": cells.labels("template", "metadata", "labels"),
                **cells.template("template"),
            },
        ),
    ),
    (
        "",
        "replicationcontrollers",
        cells.table(
            "Name, #Desired, #Current=#status.replicas, #Ready=#status.readyReplicas, Age "
            "[Containers, Images, Selector]",
            {"Desired": cells.replicas, "Selector": cells.labels("spec", "selector")},
        ),
    ),
    (
        api_groups.API_REGISTRATION,
        "apiservices",
        cells.table(
            "Name, Service, Available, Age", {"Service": _service, "Available": _available}
        ),
    ),
    (
        api_groups.APPS,
        "controllerrevisions",
        cells.table("Name, Controller, Revision=#revision, Age", {"Controller": _controller}),
    ),
)
