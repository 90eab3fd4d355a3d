"""Every row of the ResourceClaim controller's sync table (controllers.md 8.2), that loop alone."""

import re
from dataclasses import dataclass, field

import pytest

from app.adapters.uids import DerivedUids
from app.bootstrap.rules import rules_for
from app.domain.controllers.claims import ClaimsReconciler, claim_sync
from app.domain.controllers.claims.claim_sync import ClaimAct
from app.domain.log import ObjectKey
from app.domain.objects.profile import Profile
from app.domain.objects.write.commands import CreateObject, ImportObject
from app.domain.values import json_tree
from app.domain.values.json_tree import JsonObject
from app.service.replays.reconciling import ReplayTimeline
from tests.cluster import DRIVER, T0, USER, group_of
from tests.shared_data import REPOSITORY

FINALIZER = "resource.kubernetes.io/delete-protection"
ENTRY = "resource.kubernetes.io/pod-claim-name"
ADMIN = "resource.kubernetes.io/admin-access"
MADE = re.compile(r"pod-gpu-[a-z0-9]{5}")

NOTHING: list[str] = []


def pod(
    *,
    template: bool = True,
    named: str = "",
    node: str = "",
    phase: str = "Pending",
    deleted: bool = False,
    uid: str = "uid-pod",
    name: str = "pod",
) -> JsonObject:
    entry = {"resourceClaimTemplateName": "template"} if template else {"resourceClaimName": "c"}
    tree: JsonObject = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "uid": uid},
        "spec": {
            "containers": [{"name": "c", "image": "i:1"}],
            "resourceClaims": [{"name": "gpu", **entry}],
        },
        "status": {"phase": phase},
    }
    if node:
        tree["spec"]["nodeName"] = node
    if named:
        tree["status"]["resourceClaimStatuses"] = [{"name": "gpu", "resourceClaimName": named}]
    if deleted:
        tree["metadata"]["deletionTimestamp"] = "2026-01-02T03:00:00Z"
    return tree


def template(**request: object) -> JsonObject:
    found = {"name": "r", "exactly": {"deviceClassName": "gpu", "count": 1, **request}}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "template", "namespace": "default", "uid": "uid-template"},
        "spec": {"spec": {"devices": {"requests": [found]}}},
    }


def claim(
    name: str = "c",
    *,
    owner: str = "",
    entry: str = "",
    users: tuple[str, ...] = (),
    allocated: bool = False,
    finalizer: bool = True,
    protected: bool = False,
    deleted: bool = False,
    jobs: bool = False,
) -> JsonObject:
    """An allocated claim has the `finalizer`; a `protected` one has it always."""
    metadata: JsonObject = {"name": name, "namespace": "default", "uid": f"uid-{name}"}
    if owner:
        metadata["ownerReferences"] = [
            {"apiVersion": "v1", "kind": "Pod", "name": "pod", "uid": owner, "controller": True}
        ]
    if entry:
        metadata["annotations"] = {ENTRY: entry}
    if (allocated and finalizer) or protected:
        metadata["finalizers"] = [FINALIZER]
    if deleted:
        metadata["deletionTimestamp"] = "2026-01-02T03:00:00Z"
    status: JsonObject = {}
    if allocated:
        result = {"request": "r", "driver": DRIVER, "pool": "p", "device": "d"}
        status["allocation"] = {"devices": {"results": [result]}}
    reserved: list[JsonObject] = [
        {"resource": "pods", "name": user, "uid": f"uid-{user}"} for user in users
    ]
    if jobs:
        reserved.append({"apiGroup": "batch", "resource": "jobs", "name": "j", "uid": "uid-j"})
    if reserved:
        status["reservedFor"] = reserved
    exactly = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}
    request = {"name": "r", "exactly": exactly}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": metadata,
        "spec": {"devices": {"requests": [request]}},
        "status": status,
    }


@dataclass(frozen=True, kw_only=True)
class Row:
    """What exists, what is written (`<made>` stands for a generated name), and claim `c` after."""

    name: str
    objects: tuple[JsonObject, ...]
    writes: list[str]
    says: str = ""
    names: str = ""
    claim: str = ""
    gates: dict[str, bool] = field(default_factory=dict)
    label: bool = False
    is_refused: bool = False


MAKE = ["create resourceclaims/<made>", "patch pods/pod"]
FREE = ["update resourceclaims/c", "update resourceclaims/c"]
OWNED = {"owner": "uid-pod", "entry": "gpu"}

ROWS = [
    Row(name="create", objects=(template(), pod()), writes=MAKE, names="<made>"),
    Row(
        name="create with admin access: gate off",
        objects=(template(adminAccess=True), pod()),
        writes=["create events/pod"],
        says="PodResourceClaim gpu: admin access is requested, but the feature is disabled",
        gates={"DRAAdminAccess": False},
    ),
    Row(
        name="create with admin access: on, label",
        objects=(template(adminAccess=True), pod()),
        writes=MAKE,
        names="<made>",
        label=True,
    ),
    Row(
        name="nop",
        objects=(template(), claim(**OWNED), pod(named="c")),
        writes=NOTHING,
        names="c",
        claim="free",
    ),
    Row(name="recreate", objects=(template(), pod(named="lost")), writes=MAKE, names="<made>"),
    Row(
        name="missing-template",
        objects=(pod(),),
        writes=["create events/pod"],
        says='PodResourceClaim gpu: resource claim template "template": '
        'resourceclaimtemplate.resource.k8s.io "template" not found',
    ),
    Row(
        name="find-existing-claim-by-label",
        objects=(template(), claim(**OWNED), pod()),
        writes=["patch pods/pod"],
        names="c",
        claim="free",
    ),
    # The log is the cache: what was created is seen by the next look.
    Row(
        name="find-created-claim-in-cache",
        objects=(claim(**OWNED), template(), pod()),
        writes=["patch pods/pod"],
        names="c",
        claim="free",
    ),
    Row(name="no-such-pod", objects=(template(),), writes=NOTHING),
    Row(name="pod-deleted", objects=(template(), pod(deleted=True)), writes=NOTHING),
    Row(
        name="create-with-other-claim",
        objects=(template(), claim(owner="uid-pod"), pod()),
        writes=MAKE,
        names="<made>",
        claim="free",
    ),
    Row(
        name="wrong-claim-owner",
        objects=(template(), claim(owner="uid-else", entry="gpu"), pod(named="c")),
        writes=["delete resourceclaims/c", *MAKE],
        names="<made>",
    ),
    Row(
        name="create-conflict",
        objects=(template(count=-1), pod()),
        writes=["create events/pod"],
        says="PodResourceClaim gpu: create ResourceClaim : ResourceClaim.resource.k8s.io",
        is_refused=True,
    ),
    Row(
        name="stay-reserved-seen",
        objects=(pod(template=False), claim(users=("pod",), allocated=True)),
        writes=NOTHING,
        claim="allocated, reserved for pod, protected",
    ),
    Row(
        name="stay-reserved-not-seen",
        objects=(claim(users=("pod",), allocated=True), pod(template=False)),
        writes=NOTHING,
        claim="allocated, reserved for pod, protected",
    ),
    Row(
        name="clear-reserved-structured",
        objects=(claim(users=("pod",), allocated=True, owner="uid-pod"),),
        writes=FREE,
        claim="free",
    ),
    Row(
        name="dont-clear-reserved-structured",
        objects=(pod(named="c"), claim(users=("pod",), allocated=True, **OWNED)),
        writes=NOTHING,
        names="c",
        claim="allocated, reserved for pod, protected",
    ),
    Row(
        name="clear-reserved-structured-deleted",
        objects=(claim(users=("pod",), allocated=True, deleted=True),),
        writes=["update resourceclaims/c", "update resourceclaims/c"],
    ),
    Row(
        name="structured-deleted",
        objects=(claim(allocated=True, deleted=True),),
        writes=["update resourceclaims/c", "update resourceclaims/c"],
    ),
    Row(
        name="clear-reserved-when-done",
        objects=(
            pod(template=False, phase="Succeeded"),
            claim(users=("pod",), allocated=True, finalizer=False),
        ),
        writes=["update resourceclaims/c"],
        claim="allocated",
    ),
    Row(
        name="remove-reserved",
        objects=(
            pod(template=False, phase="Succeeded"),
            pod(template=False, name="other", uid="uid-other"),
            claim(users=("pod", "other"), allocated=True),
        ),
        writes=["update resourceclaims/c"],
        claim="allocated, reserved for other, protected",
    ),
    Row(
        name="delete-claim-when-done",
        objects=(
            template(),
            pod(named="c", phase="Succeeded"),
            claim(users=("pod",), allocated=True, **OWNED),
        ),
        writes=[*FREE, "delete resourceclaims/c"],
        names="c",
    ),
    Row(
        name="add-reserved",
        objects=(pod(template=False, node="n1"), claim(allocated=True)),
        writes=["update resourceclaims/c"],
        claim="allocated, reserved for pod, protected",
    ),
    Row(
        name="reserved for an earlier pod of that name",
        objects=(
            pod(template=False, uid="uid-new"),
            claim(users=("pod",), allocated=True),
        ),
        writes=FREE,
        claim="free",
    ),
    Row(
        name="pod removed while non-pod consumer present",
        objects=(claim(users=("pod",), jobs=True, allocated=True),),
        writes=["update resourceclaims/c"],
        claim="allocated, reserved for j, protected",
    ),
]

NEVER_ALLOCATED = [
    Row(
        name="reserved",
        objects=(claim(users=("pod",)),),
        writes=["update resourceclaims/c"],
        claim="free",
    ),
    Row(
        name="reserved and protected",
        objects=(claim(users=("pod",), protected=True),),
        writes=FREE,
        claim="free",
    ),
    Row(
        name="in use",
        objects=(pod(template=False), claim(users=("pod",), protected=True)),
        writes=NOTHING,
        claim="reserved for pod, protected",
    ),
    Row(name="protected", objects=(claim(protected=True),), writes=NOTHING, claim="protected"),
    Row(
        name="protected and deleted",
        objects=(claim(protected=True, deleted=True),),
        writes=["update resourceclaims/c"],
    ),
    Row(
        name="in use, deleted",
        objects=(pod(template=False), claim(users=("pod",), protected=True, deleted=True)),
        writes=NOTHING,
        claim="reserved for pod, protected",
    ),
    Row(
        name="of a finished pod",
        objects=(
            template(),
            pod(named="c", phase="Succeeded"),
            claim(users=("pod",), protected=True, **OWNED),
        ),
        writes=[*FREE, "delete resourceclaims/c"],
        names="c",
    ),
]
"""Claims without an allocation; only recordings show them with reservations."""


@pytest.mark.parametrize("row", NEVER_ALLOCATED, ids=lambda row: row.name)
def test_claim_that_was_never_allocated_is_released(row):
    test_row_of_the_sync_table(row)


def test_release_of_a_claim_that_was_never_allocated_is_no_deallocation():
    line = told(Row(name="", objects=(claim(users=("pod",), protected=True),), writes=FREE))
    first = claim_sync.next_write(line.views.objects, "default", "c", ClaimAct.FIRST)
    together = claim_sync.needed_writes(line.views.objects, "default", "c")
    assert first is not None
    assert together is not None
    assert (first.outcome, together.outcome) == ("Released", "Released")
    assert first.follows == (ClaimAct.FINALIZER,)


def test_claim_that_ends_while_a_pod_uses_it_keeps_its_finalizer_also_without_devices():
    in_use = (pod(template=False), claim(users=("pod",), protected=True, deleted=True))
    line = told(Row(name="", objects=in_use, writes=NOTHING))
    assert claim_sync.needed_writes(line.views.objects, "default", "c") is None


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_row_of_the_sync_table(row):
    line = told(row)
    before = line.head.revision
    line.controllers = (ClaimsReconciler(Profile(gates=row.gates)),)
    for event in line.events:
        for controller in line.controllers:
            controller.fold(event, line.views)
    line.settle()
    assert bool(line.refusals) == row.is_refused, line.refusals[:1]
    made = [event for event in line.events if event.revision > before]
    writes = [
        f"{event.stamp.verb} {event.key.resource}/{event.key.name}"
        for event in made
        if event.is_about_object
    ]
    assert [anonymous(text) for text in writes] == row.writes
    texts = [event.object["message"] for event in made if event.key.resource == "events"]
    assert row.says in "".join(texts)
    assert bool(texts) == bool(row.says)
    assert names_of(line) == row.names
    assert state_of(line) == row.claim


def test_every_row_of_the_table_is_here():
    text = (REPOSITORY / "docs" / "parity" / "controllers.md").read_text(encoding="utf-8")
    table = text[text.index("### 8.2") : text.index("### 8.3")]
    rows = [line.split("|")[1].strip() for line in table.splitlines() if line.startswith("| ")][1:]
    parts = [part.split(" (")[0] for row in rows for part in re.split(r" / |; ", row)]
    names = [row.name for row in ROWS]
    missing = [p for p in parts if not any(n == p or n.endswith((f"-{p}", f" {p}")) for n in names)]
    assert missing == []


def told(row: Row) -> ReplayTimeline:
    """A log with the row's objects and nobody to work on them."""
    line = ReplayTimeline(rules=rules_for(Profile(gates=row.gates)), uids=DerivedUids(1), start=T0)
    labels = {ADMIN: "true"} if row.label else {}
    metadata = {"name": "default", "labels": labels}
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
    key = ObjectKey("", "namespaces", "", "default")
    line.submit(CreateObject(key=key, version="v1", tree=namespace), actor=USER)
    for tree in row.objects:
        resource = f"{tree['kind'].lower()}s"
        metadata = tree["metadata"]
        key = ObjectKey(group_of(resource), resource, "default", metadata["name"])
        command = ImportObject(
            operation="ADDED", key=key, uid=metadata["uid"], tree=json_tree.copy(tree)
        )
        line.submit(command, actor=USER)
    return line


def anonymous(text: str) -> str:
    """Generated and numbered names replaced."""
    text = re.sub(r"(events/pod)\..*", r"\1", text)
    return MADE.sub("<made>", text)


def names_of(line: ReplayTimeline) -> str:
    tree = line.views.objects.get(ObjectKey("", "pods", "default", "pod")) or {}
    found = json_tree.objects(tree, "status", "resourceClaimStatuses")
    return ",".join(anonymous(status["resourceClaimName"]) for status in found)


def state_of(line: ReplayTimeline) -> str:
    """The state of claim `c` as text; empty when it does not exist."""
    key = ObjectKey("resource.k8s.io", "resourceclaims", "default", "c")
    tree = line.views.objects.get(key)
    if tree is None:
        return ""
    words = ["allocated"] if json_tree.get(tree, "status", "allocation") else []
    users = json_tree.objects(tree, "status", "reservedFor")
    words += [f"reserved for {user['name']}" for user in users]
    words += ["protected"] if "finalizers" in tree["metadata"] else []
    return ", ".join(words) or "free"
