"""The generation of an object between two of its states.

An API server raises `metadata.generation` by one with each write that changes the spec, and leaves
it alone with each other write. It may raise it once more when the deletion of the object begins.
Parity: objects.md 2.
"""

from enum import Enum

from app.domain.log.records import Record
from app.domain.objects.schema import structural
from app.domain.objects.schema.equality import semantic_equal
from app.domain.objects.schema.structural import Schemas
from app.domain.values import api_groups, api_resources
from app.domain.values.fields import meta
from app.domain.values.json_tree import JsonObject

_COUNTED = frozenset(
    {"deviceclasses", "devicetaintrules", "resourceslicepatches", "resourceslices"}
)
"""The resources of devices with a generation. Claims and their templates have none, pods do."""


class GenerationStep(Enum):
    """The change of a generation against that of the spec.

    `TOO_LARGE`: writes between the two states are missing. `TOO_SMALL`: it fell, or stood still
    although the spec changed, which no server does.
    """

    RIGHT = "right"
    TOO_LARGE = "too large"
    TOO_SMALL = "too small"


def counts(record: Record) -> bool:
    """Whether the generation of the record's object rises with its spec alone."""
    kind = record.group, record.resource
    is_of_devices = record.group == api_groups.RESOURCE and record.resource in _COUNTED
    return is_of_devices or kind == api_resources.PODS


def _counted(tree: JsonObject) -> JsonObject:
    """The spec without what changes no generation: the node, which a binding sets."""
    return {name: value for name, value in meta.spec(tree).items() if name != "nodeName"}


def step(schemas: Schemas, before: JsonObject, after: JsonObject) -> GenerationStep:
    """The step between two whole states of one object; `RIGHT` where one has no generation."""
    first, last = meta.generation(before), meta.generation(after)
    kind = structural.find_kind_of(after)
    if first is None or last is None or kind is None:
        return GenerationStep.RIGHT
    node = structural.storage_node(schemas, kind)
    specs = {"spec": _counted(before)}, {"spec": _counted(after)}
    fewest = 0 if semantic_equal(*specs, node) else 1
    is_ending = meta.deletion_timestamp(after) and not meta.deletion_timestamp(before)
    most = fewest + 1 if is_ending else fewest
    if last - first < fewest:
        return GenerationStep.TOO_SMALL
    return GenerationStep.TOO_LARGE if last - first > most else GenerationStep.RIGHT
