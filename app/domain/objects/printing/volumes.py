"""Tables of storage, runtime classes and signing requests. Parity: api.md 6, "Columns"."""

from app.domain.objects.printing import cells
from app.domain.objects.printing.durations import duration_text
from app.domain.objects.printing.tables import NONE, Cells, Row
from app.domain.values import api_groups, json_tree
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import Instant

UNSET = "<unset>"
_DEFAULT_CLASS = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)
_DEFAULT_ATTRIBUTES = "volumeattributesclass.alpha.kubernetes.io/is-default-class"
_MICROSECONDS = 1_000_000


def _storage_class(tree: JsonObject, now: Instant) -> Cells:
    name, marks = cells.name(tree), json_tree.mapping(tree, "metadata", "annotations")
    is_default = any(marks.get(mark) == "true" for mark in _DEFAULT_CLASS)
    return [
        f"{name} (default)" if is_default else name,
        json_tree.text(tree, "provisioner"),
        json_tree.text(tree, "reclaimPolicy") or "Delete",
        json_tree.text(tree, "volumeBindingMode") or "Immediate",
        tree.get("allowVolumeExpansion") is True,
        cells.age(tree, now),
    ]


def _attributes_class(tree: JsonObject, now: Instant) -> Cells:
    name, marks = cells.name(tree), json_tree.mapping(tree, "metadata", "annotations")
    return [
        f"{name} (default)" if marks.get(_DEFAULT_ATTRIBUTES) == "true" else name,
        json_tree.text(tree, "driverName"),
        cells.age(tree, now),
    ]


def _driver(tree: JsonObject, now: Instant) -> Cells:
    spec = json_tree.mapping(tree, "spec")
    audiences = [
        json_tree.text(request, "audience") for request in json_tree.objects(spec, "tokenRequests")
    ]
    return [
        cells.name(tree),
        spec.get("attachRequired") is not False,
        spec.get("podInfoOnMount") is True,
        spec.get("storageCapacity") is True,
        ",".join(audiences) or UNSET,
        spec.get("requiresRepublish") is True,
        ",".join(json_tree.texts(spec, "volumeLifecycleModes")) or NONE,
        cells.age(tree, now),
    ]


def _node(tree: JsonObject, now: Instant) -> Cells:
    drivers = json_tree.objects(tree, "spec", "drivers")
    return [cells.name(tree), len(drivers), cells.age(tree, now)]


def _capacity(tree: JsonObject, now: Instant) -> Cells:
    amount = json_tree.text(tree, "capacity") or UNSET
    return [cells.name(tree), json_tree.text(tree, "storageClassName"), amount]


def _attachment(tree: JsonObject, now: Instant) -> Cells:
    spec = json_tree.mapping(tree, "spec")
    return [
        cells.name(tree),
        json_tree.text(spec, "attacher"),
        json_tree.text(spec, "source", "persistentVolumeName"),
        json_tree.text(spec, "nodeName"),
        json_tree.get(tree, "status", "attached") is True,
        cells.age(tree, now),
    ]


def _runtime_class(tree: JsonObject, now: Instant) -> Cells:
    return [cells.name(tree), json_tree.text(tree, "handler"), cells.age(tree, now)]


def _signing_request(tree: JsonObject, now: Instant) -> Cells:
    spec, status = json_tree.mapping(tree, "spec"), json_tree.mapping(tree, "status")
    seconds = json_tree.integer(spec, "expirationSeconds")
    held = {json_tree.text(found, "type") for found in json_tree.objects(status, "conditions")}
    # A denial outweighs an approval.
    states = ["Denied"] if "Denied" in held else ["Approved"] if "Approved" in held else ["Pending"]
    states += ["Failed"] if "Failed" in held else []
    states += ["Issued"] if json_tree.text(status, "certificate") else []
    return [
        cells.name(tree),
        cells.age(tree, now),
        json_tree.text(spec, "signerName") or NONE,
        json_tree.text(spec, "username"),
        NONE if seconds is None else duration_text(seconds * _MICROSECONDS),
        ",".join(states),
    ]


ROWS: tuple[Row, ...] = (
    (
        api_groups.STORAGE,
        "storageclasses",
        "Name, Provisioner, ReclaimPolicy, VolumeBindingMode, AllowVolumeExpansion, Age",
        _storage_class,
    ),
    (
        api_groups.STORAGE,
        "csidrivers",
        "Name, ?AttachRequired, ?PodInfoOnMount, ?StorageCapacity, TokenRequests, "
        "?RequiresRepublish, Modes, Age",
        _driver,
    ),
    (api_groups.STORAGE, "volumeattributesclasses", "Name, DriverName, Age", _attributes_class),
    (api_groups.STORAGE, "csinodes", "Name, #Drivers, Age", _node),
    (api_groups.STORAGE, "csistoragecapacities", "Name, StorageClassName, Capacity", _capacity),
    (
        api_groups.STORAGE,
        "volumeattachments",
        "Name, =Attacher, PV, Node, ?Attached, Age",
        _attachment,
    ),
    (api_groups.NODE, "runtimeclasses", "Name, Handler, Age", _runtime_class),
    (
        api_groups.CERTIFICATES,
        "certificatesigningrequests",
        "Name, Age, SignerName, Requestor, RequestedDuration, Condition",
        _signing_request,
    ),
)
