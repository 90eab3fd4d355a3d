"""The label keys of a pod's terms, which are merged into selectors on create.

`matchLabelKeys` selects pods with the same value of the label as the pod itself,
`mismatchLabelKeys` (only in affinity) pods with another value; a key that the pod lacks is ignored.
The scheduler uses only the selectors. Parity: objects.md 15.1; the API's description of these
fields.
"""

from collections.abc import Iterator

from app.domain.values import json_tree
from app.domain.values.fields import core, meta
from app.domain.values.json_tree import JsonObject

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_FIELDS = (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn"))


def merge(pod: JsonObject) -> None:
    """Adds the pod's own label values to the selectors of its terms, in place."""
    spec = pod["spec"]
    if "affinity" not in spec and "topologySpreadConstraints" not in spec:
        return
    labels = meta.labels(pod)
    for term in _terms(spec):
        selector = term.get("labelSelector")
        if not isinstance(selector, dict):
            continue
        for field, operator in _FIELDS:
            for key in json_tree.texts(term, field):
                if key in labels:
                    wanted = {"key": key, "operator": operator, "values": [labels[key]]}
                    known = core.expressions(selector)
                    selector["matchExpressions"] = [*known, wanted]


def _terms(spec: JsonObject) -> Iterator[JsonObject]:
    yield from json_tree.objects(spec, "topologySpreadConstraints")
    for kind in ("podAffinity", "podAntiAffinity"):
        yield from json_tree.objects(spec, "affinity", kind, _REQUIRED)
        for item in json_tree.objects(spec, "affinity", kind, _PREFERRED):
            if isinstance(item.get("podAffinityTerm"), dict):
                yield item["podAffinityTerm"]
