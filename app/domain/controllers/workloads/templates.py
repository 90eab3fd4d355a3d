"""Pod templates: their equality, and the hash that is used in names and labels.

Upstream hashes a dump of its Go structure. This module hashes the canonical JSON with the same
function and alphabet: names have the same form, but other letters.
"""

from app.domain.log.chain import canonical_json
from app.domain.values import json_tree, well_known
from app.domain.values.fields import core
from app.domain.values.json_tree import JsonObject, JsonView
from app.domain.values.names import SUFFIX_ALPHABET

HASH_LABEL = "pod-template-hash"
REVISION_LABEL = well_known.CONTROLLER_REVISION

_FNV_PRIME = 16_777_619
_FNV_OFFSET = 2_166_136_261


def revision_of(pod: JsonView) -> str:
    """The revision that its DaemonSet or StatefulSet gave a pod; empty if it has none."""
    return json_tree.text(pod, "metadata", "labels", REVISION_LABEL)


def template_of(tree: JsonView) -> JsonObject:
    """The pod template of a workload without the labels that controllers add; a copy."""
    template: JsonObject = json_tree.copy(dict(core.template(tree)))
    labels = template.get("metadata", {}).get("labels")
    if isinstance(labels, dict):
        labels.pop(HASH_LABEL, None)
    return template


def text_of(template: JsonView) -> bytes:
    """The text of a template; equal texts mean equal templates."""
    return canonical_json(template)


def hash_of(template: JsonView, salt: str = "") -> str:
    """The hash of a template: FNV-1a of 32 bits, its digits in the alphabet of suffixes."""
    number = _FNV_OFFSET
    for byte in text_of(template) + salt.encode():
        number = ((number ^ byte) * _FNV_PRIME) & 0xFFFFFFFF
    return "".join(SUFFIX_ALPHABET[ord(digit) % len(SUFFIX_ALPHABET)] for digit in str(number))
