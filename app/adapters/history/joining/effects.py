"""Effects that derive an object from its last state: bindings, scales, terminations, patches.

Parity: history-formats.md 4.3.
"""

from app.domain.log.records import (
    BoundEffect,
    Effect,
    Loss,
    Op,
    PatchedEffect,
    Quality,
    Record,
    ScaledEffect,
    TerminatingEffect,
)
from app.domain.objects.schema import structural
from app.domain.objects.schema.structural import Schemas
from app.domain.objects.write import subresources
from app.domain.objects.write.commands import PatchType
from app.domain.values import condition_types, json_tree, patches, timestamps, well_known
from app.domain.values.fields import core, meta
from app.domain.values.json_tree import JsonObject, JsonView
from app.domain.values.timestamps import Instant

TOPOLOGY_LABELS = (well_known.ZONE, well_known.REGION)
"""Labels that admission copies from the node to a pod at its binding."""

DEFAULT_GRACE_SECONDS = 30
"""The grace period of a pod that specifies none, in seconds."""

_HOLDS = {"Orphan": "orphan", "Foreground": "foregroundDeletion"}
"""The finalizer that a deletion sets, by its propagation policy. Parity: controllers.md 6.5."""


def bind(
    pod: JsonObject, effect: BoundEffect, at: Instant | None, node: JsonView | None
) -> JsonObject:
    """The pod after its binding; `node` is the last known state of the node."""
    tree: JsonObject = json_tree.copy(pod)
    metadata = tree.setdefault("metadata", {})
    labels = dict(effect.labels)
    for name in TOPOLOGY_LABELS:
        value = meta.labels(node or {}).get(name)
        if value is not None:
            labels[name] = value
    if labels:
        metadata["labels"] = {**meta.labels_of(metadata), **labels}
    if effect.annotations:
        annotations = meta.annotations_of(metadata)
        metadata["annotations"] = {**annotations, **effect.annotations}
    tree.setdefault("spec", {})["nodeName"] = effect.node
    status = tree.setdefault("status", {})
    status.pop("nominatedNodeName", None)
    condition: JsonObject = {"type": condition_types.POD_SCHEDULED, "status": "True"}
    if at is not None:
        condition["lastTransitionTime"] = timestamps.seconds_text(at)
    before = meta.conditions_of(status)
    old = next((item for item in before if item.get("type") == condition_types.POD_SCHEDULED), None)
    # Parity: controllers.md 4.6. Nothing of the earlier condition stays, nor is a generation set.
    status["conditions"] = [item for item in before if item is not old] + [condition]
    return tree


def scale(parent: JsonObject, effect: ScaledEffect) -> JsonObject:
    """The parent of a Scale after its replicas changed."""
    tree: JsonObject = json_tree.copy(parent)
    spec = tree.setdefault("spec", {})
    if spec.get("replicas") != effect.replicas:
        spec["replicas"] = effect.replicas
        metadata = tree.setdefault("metadata", {})
        generation = json_tree.integer(metadata, "generation")
        if generation is not None:
            metadata["generation"] = generation + 1
    return tree


def terminate(
    before: JsonObject,
    effect: TerminatingEffect,
    at: Instant | None,
    answered: JsonView | None = None,
) -> JsonObject:
    """The object with the deletionTimestamp, grace period and finalizers of a deletion request.

    A later request can only shorten the grace period. `answered` is the state before, if the answer
    shows it, as that to the deletion of a collection does: it decides what holds the object. A
    namespace has no grace period, and the phase of its deletion. Parity: controllers.md 5.2, 5.5.
    """
    tree: JsonObject = json_tree.copy(before)
    metadata = tree.setdefault("metadata", {})
    shown = before if answered is None else answered
    if finalizers := finalizers_after(shown, effect):
        metadata["finalizers"] = finalizers
    else:
        metadata.pop("finalizers", None)
    if metadata.get("deletionTimestamp"):
        shorter = effect.grace_seconds
        if shorter is not None and shorter < (meta.deletion_grace_seconds(before) or 0):
            metadata["deletionGracePeriodSeconds"] = max(shorter, 0)
            _date(metadata, at, max(shorter, 0))
        return tree
    if tree.get("kind") == "Namespace":
        _date(metadata, at, 0)
        tree["status"] = {**meta.status(tree), "phase": "Terminating"}
        return tree
    grace = _grace_seconds(shown, effect) if tree.get("kind") == "Pod" else 0
    _date(metadata, at, grace)
    metadata["deletionGracePeriodSeconds"] = grace
    generation = json_tree.integer(metadata, "generation")
    if generation is not None:
        metadata["generation"] = generation + 1
    return tree


def _grace_seconds(pod: JsonView, effect: TerminatingEffect) -> int:
    """The grace period of a deletion; 0 for a pod without a node and for a finished pod."""
    if not core.node_name(pod) or core.is_finished(pod):
        return 0
    grace = effect.grace_seconds
    if grace is None:
        grace = core.termination_grace_seconds(pod)
    if grace is None:
        grace = DEFAULT_GRACE_SECONDS
    return grace if grace >= 0 else 1


def _date(metadata: JsonObject, at: Instant | None, grace_seconds: int) -> None:
    if at is not None:
        due = Instant(at + grace_seconds * timestamps.SECOND)
        metadata["deletionTimestamp"] = timestamps.seconds_text(due)


def finalizers_after(before: JsonView, effect: TerminatingEffect) -> list[str]:
    """The finalizers that hold an object after a deletion request, by its policy."""
    finalizers = meta.finalizers(before)
    if not effect.propagation:
        return finalizers
    own = [one for one in finalizers if one not in _HOLDS.values()]
    return own + ([_HOLDS[effect.propagation]] if effect.propagation in _HOLDS else [])


def patch(before: JsonObject, effect: PatchedEffect, schemas: Schemas | None) -> JsonObject:
    """The object after a patch. Raises PatchError when it does not fit.

    A server-side apply is treated as a merge: field ownership is not recorded, so no field is
    removed.
    """
    body = effect.body
    if isinstance(body, list):
        return patches.apply_operations(before, body)
    if effect.media_type == PatchType.STRATEGIC:
        kind = structural.find_kind_of(before)
        if kind is None or schemas is None:
            raise patches.PatchError("the fields of its kind are not known")
        return patches.apply_strategic(before, body, structural.storage_node(schemas, kind))
    merged: JsonObject = patches.apply_merge(before, body)
    return merged


def is_unanswered_update(record: Record) -> bool:
    """Whether the object of a record is what an update sent, of which the API takes a part."""
    is_sent = record.object_quality is Quality.PARTIAL and Loss.NO_RV in record.losses
    is_update = record.op is Op.MODIFIED and record.verb == "update"
    return is_sent and is_update and record.subresource in ("", "status")


def of_subresource(before: JsonObject, after: JsonObject, subresource: str) -> JsonObject:
    """The object after a write of a subresource, which writes no part but its own.

    A custom kind is not known here; its status is written without metadata.
    """
    kind = structural.find_kind_of(before)
    if kind is not None and subresources.exists(kind, subresource):
        return subresources.merged(kind, before, after, subresource)
    if subresource != "status":
        return after
    written = {"status": after["status"]} if "status" in after else {}
    return {**{name: part for name, part in before.items() if name != "status"}, **written}


def apply(
    before: JsonObject,
    effect: Effect,
    at: Instant | None,
    *,
    subresource: str = "",
    node: JsonView | None = None,
    answered: JsonView | None = None,
    schemas: Schemas | None = None,
) -> JsonObject:
    """The state after an effect. Raises PatchError for a patch that does not fit.

    `node` is that of a binding, `answered` the state that the answer to a deletion shows,
    `subresource` what is patched.
    """
    match effect:
        case BoundEffect():
            return bind(before, effect, at, node)
        case ScaledEffect():
            return scale(before, effect)
        case TerminatingEffect():
            return terminate(before, effect, at, answered)
        case PatchedEffect():
            after = patch(before, effect, schemas)
            return of_subresource(before, after, subresource) if subresource else after
