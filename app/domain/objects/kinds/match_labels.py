"""Label keys that a pod's terms take their values from: written into the selectors on create.

`matchLabelKeys` means pods with the same value of the label as the pod itself, `mismatchLabelKeys`
(of affinity only) those with another; a key that the pod does not have means nothing. The scheduler
looks at the selectors alone. Parity: objects.md 15.1; the API's description of these fields.
"""

from collections.abc import Iterator

from app.domain.values import json_tree
from app.domain.values.fields import meta
from app.domain.values.json_tree import JsonObject

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_FIELDS = (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn"))


def merge(pod: JsonObject) -> None:
    """Add the pod's own values to the selectors of its terms, in place."""
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
                    known = json_tree.objects(selector, "matchExpressions")
                    selector["matchExpressions"] = [*known, wanted]


def _terms(spec: JsonObject) -> Iterator[JsonObject]:
    yield from json_tree.objects(spec, "topologySpreadConstraints")
    for kind in ("podAffinity", "podAntiAffinity"):
        yield from json_tree.objects(spec, "affinity", kind, _REQUIRED)
        for item in json_tree.objects(spec, "affinity", kind, _PREFERRED):
            if isinstance(item.get("podAffinityTerm"), dict):
                yield item["podAffinityTerm"]
