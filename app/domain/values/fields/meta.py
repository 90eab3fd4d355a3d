"""The fields that objects of every kind have: ObjectMeta, conditions, references."""

from app.domain.values import json_tree
from app.domain.values.fields import paths, records
from app.domain.values.fields.records import FieldRecord
from app.domain.values.identifiers import NO_UID, Uid
from app.domain.values.json_tree import JsonObject, JsonView

kind = paths.text("kind")
api_version = paths.text("apiVersion")
"""The kind, and the group and version, of an object or of the object that a reference is to."""

metadata = paths.mapping("metadata")
spec = paths.mapping("spec")
status = paths.mapping("status")

name = paths.text("metadata", "name")
namespace = paths.text("metadata", "namespace")
"""The namespace of an object; empty for cluster-scoped kinds."""

deletion_grace = paths.integer("metadata", "deletionGracePeriodSeconds")
"""The seconds that an object which is being deleted has to end."""

generate_name = paths.text("metadata", "generateName")

uid = paths.typed(Uid, paths.text("metadata", "uid"))
labels = paths.labels("metadata", "labels")
annotations = paths.labels("metadata", "annotations")
annotations_as_stored = paths.mapping("metadata", "annotations")
"""The annotations with values of any type, not copied."""

finalizers = paths.texts("metadata", "finalizers")
generation = paths.integer("metadata", "generation")
resource_version = paths.text("metadata", "resourceVersion")
creation_timestamp = paths.text("metadata", "creationTimestamp")
deletion_timestamp = paths.text("metadata", "deletionTimestamp")
"""The time at which deletion of the object was requested; empty before."""

labels_of = paths.labels("labels")
annotations_of = paths.labels("annotations")
finalizers_of = paths.texts("finalizers")
"""The labels, annotations and finalizers in the metadata of an object."""

UNKNOWN_TIME = "0001-01-01T00:00:00Z"
"""The zero time, which clients show as unknown: a field that is set at a time that nobody knows."""

deletion_grace_seconds = paths.integer("metadata", "deletionGracePeriodSeconds")
"""The grace period of an object that is being deleted, in seconds; 0 for a forced deletion."""

phase = paths.text("status", "phase")
managed_entries = paths.objects("metadata", "managedFields")

owner_references = paths.objects("metadata", "ownerReferences")
condition_trees = paths.objects("status", "conditions")
"""Owner references and conditions as stored; `owners` and `conditions` read them as records."""

conditions_of = paths.objects("conditions")
"""The conditions in a status, as stored."""


class Owner(FieldRecord, frozen=True):
    """An owner reference."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: Uid = NO_UID
    controller: bool = False
    block_owner_deletion: bool | None = None


class Condition(FieldRecord, frozen=True):
    """A condition of any object."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str = ""
    observed_generation: int | None = None


class Reference(FieldRecord, frozen=True):
    """A reference to an object, such as the one that a Kubernetes Event is about."""

    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: Uid = NO_UID
    resource_version: str = ""
    field_path: str = ""


reference = records.of_tree(Reference)
owners = records.of_list(Owner, paths.get("metadata", "ownerReferences"))
conditions = records.of_list(Condition, paths.get("status", "conditions"))
_condition = records.of_tree(Condition)


def is_deleting(tree: JsonView) -> bool:
    """True when `metadata.deletionTimestamp` is present, with any value."""
    return "deletionTimestamp" in metadata(tree)


def known_deletion_timestamp(tree: JsonView) -> str:
    """The deletion timestamp; empty where none is set, and where its time is not known."""
    text = deletion_timestamp(tree)
    return "" if text == UNKNOWN_TIME else text


def same_object(tree: JsonView) -> JsonObject:
    """The metadata of a patch that no other object of the name takes.

    Empty where no uid was recorded: an audit log has none of what is created at level Request.
    """
    own = uid(tree)
    return {"uid": own} if own else {}


def annotation(tree: JsonView, key: str) -> str:
    """The value of an annotation; empty when the object does not have it."""
    return json_tree.text(tree, "metadata", "annotations", key)


def place(tree: JsonView) -> tuple[str, str]:
    """The namespace and name of an object."""
    return namespace(tree), name(tree)


def controller(tree: JsonView) -> Owner | None:
    """The first owner reference with `controller: true`, or None."""
    held = tree.get("metadata")
    if held.__class__ is dict and "ownerReferences" not in held:
        return None  # asked for every event of a pod; many pods have no owner
    return next((owner for owner in owners(tree) if owner.controller), None)


def controller_uid(tree: JsonView) -> Uid:
    """The uid of the controller; empty when there is none."""
    owner = controller(tree)
    return NO_UID if owner is None else owner.uid


def condition(tree: JsonView, wanted: str) -> Condition | None:
    """The first condition of a type, or None."""
    item = condition_tree(tree, wanted)
    return None if item is None else _condition(item)


def condition_tree(tree: JsonView, wanted: str) -> JsonObject | None:
    """The first condition of a type as stored, or None."""
    return next((item for item in condition_trees(tree) if item.get("type") == wanted), None)


def is_true(tree: JsonView, wanted: str) -> bool:
    """True when a condition of a type has the status True."""
    return any(
        item.get("type") == wanted and item.get("status") == "True"
        for item in condition_trees(tree)
    )
