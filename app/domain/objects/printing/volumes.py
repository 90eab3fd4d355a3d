"""Tables of storage, runtime classes and signing requests. Parity: api.md 6, "Columns"."""

from app.domain.objects.printing import cells
from app.domain.objects.printing.cells import Row
from app.domain.objects.printing.durations import duration_text
from app.domain.objects.printing.tables import NONE, UNSET, Cell, CellOf
from app.domain.values import api_groups, json_tree
from app.domain.values.fields import meta
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import Instant

_DEFAULT_CLASS = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)
_DEFAULT_ATTRIBUTES = "volumeattributesclass.alpha.kubernetes.io/is-default-class"
_MICROSECONDS = 1_000_000


def _name(*marks: str) -> CellOf:
    """The name of a class, with `(default)` if one of the annotations marks it as the default."""

    def shown(tree: JsonObject, _: Instant) -> Cell:
        is_default = any(meta.annotations(tree).get(mark) == "true" for mark in marks)
        return f"{meta.name(tree)} (default)" if is_default else meta.name(tree)

    return shown


def _audiences(tree: JsonObject, _: Instant) -> Cell:
    requests = json_tree.objects(tree, "spec", "tokenRequests")
    return ",".join([json_tree.text(request, "audience") for request in requests]) or UNSET


def _attaches(tree: JsonObject, _: Instant) -> Cell:
    return json_tree.get(tree, "spec", "attachRequired") is not False


def _condition(tree: JsonObject, _: Instant) -> Cell:
    held = {condition.type for condition in meta.conditions(tree)}
    # A denial outweighs an approval.
    states = ["Denied"] if "Denied" in held else ["Approved"] if "Approved" in held else ["Pending"]
    states += ["Failed"] if "Failed" in held else []
    states += ["Issued"] if json_tree.text(tree, "status", "certificate") else []
    return ",".join(states)


def _duration(tree: JsonObject, _: Instant) -> Cell:
    seconds = json_tree.integer(tree, "spec", "expirationSeconds")
    return NONE if seconds is None else duration_text(seconds * _MICROSECONDS)


ROWS: tuple[Row, ...] = (
    (
        api_groups.STORAGE,
        "storageclasses",
        cells.table(
            "Name, Provisioner=.provisioner, ReclaimPolicy=.reclaimPolicy|Delete, "
            "VolumeBindingMode=.volumeBindingMode|Immediate, "
            "AllowVolumeExpansion=?allowVolumeExpansion, Age",
            {"Name": _name(*_DEFAULT_CLASS)},
        ),
    ),
    (
        api_groups.STORAGE,
        "csidrivers",
        cells.table(
            "Name, ?AttachRequired, ?PodInfoOnMount=?spec.podInfoOnMount, "
            "?StorageCapacity=?spec.storageCapacity, TokenRequests, "
            "?RequiresRepublish=?spec.requiresRepublish, Modes=*spec.volumeLifecycleModes|<none>, "
            "Age",
            {"AttachRequired": _attaches, "TokenRequests": _audiences},
        ),
    ),
    (
        api_groups.STORAGE,
        "volumeattributesclasses",
        cells.table("Name, DriverName=.driverName, Age", {"Name": _name(_DEFAULT_ATTRIBUTES)}),
    ),
    (api_groups.STORAGE, "csinodes", cells.table("Name, #Drivers=+spec.drivers, Age")),
    (
        api_groups.STORAGE,
        "csistoragecapacities",
        cells.table("Name, StorageClassName=.storageClassName, Capacity=.capacity|<unset>"),
    ),
    (
        api_groups.STORAGE,
        "volumeattachments",
        cells.table(
            "Name, =Attacher=.spec.attacher, PV=.spec.source.persistentVolumeName, "
            "Node=.spec.nodeName, ?Attached=?status.attached, Age"
        ),
    ),
    (api_groups.NODE, "runtimeclasses", cells.table("Name, Handler=.handler, Age")),
    (
        api_groups.CERTIFICATES,
        "certificatesigningrequests",
        cells.table(
            "Name, Age, SignerName=.spec.signerName|<none>, Requestor=.spec.username, "
            "RequestedDuration, Condition",
            {"RequestedDuration": _duration, "Condition": _condition},
        ),
    ),
)
