"""The fields that objects of every kind have: ObjectMeta, conditions, references."""

from app.domain.values.fields import paths, records
from app.domain.values.fields.records import Record
from app.domain.values.json_tree import JsonView

api_version = paths.text("apiVersion")
kind = paths.text("kind")
metadata = paths.mapping("metadata")
spec = paths.mapping("spec")
status = paths.mapping("status")

name = paths.text("metadata", "name")
namespace = paths.text("metadata", "namespace")
"""The namespace of an object; empty for kinds of the cluster."""

uid = paths.text("metadata", "uid")
labels = paths.labels("metadata", "labels")
annotations = paths.labels("metadata", "annotations")
finalizers = paths.texts("metadata", "finalizers")
generation = paths.integer("metadata", "generation")
resource_version = paths.text("metadata", "resourceVersion")
creation_timestamp = paths.text("metadata", "creationTimestamp")
deletion_timestamp = paths.text("metadata", "deletionTimestamp")
"""When the object's deletion was asked for; empty before."""

phase = paths.text("status", "phase")
condition_trees = paths.objects("status", "conditions")
"""The conditions as they are written."""


def is_deleting(tree: JsonView) -> bool:
    """True when `metadata.deletionTimestamp` is there, whatever it holds."""
    return "deletionTimestamp" in metadata(tree)


def place(tree: JsonView) -> tuple[str, str]:
    """Namespace and name."""
    return namespace(tree), name(tree)


class Owner(Record, frozen=True):
    """An owner reference."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False
    block_owner_deletion: bool = False


class Condition(Record, frozen=True):
    """A condition of any object."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str = ""
    observed_generation: int | None = None


class Reference(Record, frozen=True):
    """A reference to an object: what a Kubernetes Event is about, what a hook targets."""

    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    resource_version: str = ""
    field_path: str = ""


owner_references = paths.objects("metadata", "ownerReferences")
"""The owner references as they are written."""

owners = records.of_list(Owner, paths.get("metadata", "ownerReferences"))
"""The owner references as records."""

_condition = records.of_tree(Condition)

conditions = records.of_list(Condition, paths.get("status", "conditions"))
"""The conditions as records."""


def condition(tree: JsonView, wanted: str) -> Condition | None:
    """The first condition of a type, or None."""
    for item in condition_trees(tree):
        if item.get("type") == wanted:
            return _condition(item)
    return None
