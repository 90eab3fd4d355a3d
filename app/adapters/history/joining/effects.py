"""Effects that derive an object from its last state: bindings, scales, terminations, patches.

Parity: history-formats.md 4.3.
"""

from app.domain.log.records import (
    BoundEffect,
    Effect,
    PatchedEffect,
    ScaledEffect,
    TerminatingEffect,
)
from app.domain.objects.schema import structural
from app.domain.objects.schema.structural import Schemas
from app.domain.objects.write.commands import PatchType
from app.domain.values import condition_types, json_tree, patches, timestamps, well_known
from app.domain.values.fields import meta
from app.domain.values.json_tree import JsonObject, JsonView
from app.domain.values.timestamps import Instant

TOPOLOGY_LABELS = (well_known.ZONE, well_known.REGION)
"""Labels that admission copies from the node to a pod at its binding."""

DEFAULT_GRACE_SECONDS = 30
"""The grace period of a pod that specifies none, in seconds."""


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


def terminate(before: JsonObject, effect: TerminatingEffect, at: Instant | None) -> JsonObject:
    """The object with the deletionTimestamp and grace period that a deletion request sets."""
    tree: JsonObject = json_tree.copy(before)
    metadata = tree.setdefault("metadata", {})
    if metadata.get("deletionTimestamp"):
        return tree
    grace = effect.grace_seconds
    if tree.get("kind") == "Pod":
        named = json_tree.integer(tree, "spec", "terminationGracePeriodSeconds")
        grace = grace if grace is not None else named
        grace = DEFAULT_GRACE_SECONDS if grace is None else grace
    grace = grace or 0
    if at is not None:
        metadata["deletionTimestamp"] = timestamps.seconds_text(
            Instant(at + grace * timestamps.SECOND)
        )
    metadata["deletionGracePeriodSeconds"] = grace
    generation = json_tree.integer(metadata, "generation")
    if generation is not None:
        metadata["generation"] = generation + 1
    return tree


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


def apply(
    before: JsonObject,
    effect: Effect,
    at: Instant | None,
    *,
    node: JsonView | None = None,
    schemas: Schemas | None = None,
) -> JsonObject:
    """The state after an effect. Raises PatchError for a patch that does not fit."""
    match effect:
        case BoundEffect():
            return bind(before, effect, at, node)
        case ScaledEffect():
            return scale(before, effect)
        case TerminatingEffect():
            return terminate(before, effect, at)
        case PatchedEffect():
            return patch(before, effect, schemas)
