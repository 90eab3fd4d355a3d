"""The claim that is created from a template. Parity: controllers.md 2.2."""

from app.domain.controllers.gates import Gates
from app.domain.controllers.pods import ClaimEntry, PodFacts
from app.domain.values import api_groups, json_tree, well_known
from app.domain.values.json_tree import JsonObject, JsonView

GENERATE_NAME_MAX = 57
"""The longest prefix; longer ones are cut in proportion, to keep pod and entry recognisable."""


def generate_name(pod: str, entry: str) -> str:
    """The prefix of the claim's name: `<pod>-<entry>-`, cut without a trailing dash when too long.

    Example: a pod name of 60 and an entry of 10 letters make 72 with dashes, so 47 letters of the
    pod (60*57//72), a dash and 7 letters of the entry remain.
    """
    base = f"{pod}-{entry}-"
    length = len(base)
    if length <= GENERATE_NAME_MAX:
        return base
    pod_length = len(pod) * GENERATE_NAME_MAX // length
    entry_length = len(entry) * GENERATE_NAME_MAX // length
    return f"{pod[:pod_length]}-{entry[:entry_length]}"


def disabled_feature(template: JsonView, gates: Gates) -> str:
    """Upstream's text when the template uses a feature that is off; empty when it does not."""
    for request in json_tree.objects(template, "spec", "spec", "devices", "requests"):
        if json_tree.flag(request, "exactly", "adminAccess") and not gates.enabled(
            "DRAAdminAccess"
        ):
            return "admin access is requested, but the feature is disabled"
        if request.get("firstAvailable") and not gates.enabled("DRAPrioritizedList"):
            return (
                "template includes a prioritized list of subrequests, but the feature is disabled"
            )
    return ""


def claim_from(template: JsonView, pod: PodFacts, entry: ClaimEntry) -> JsonObject:
    """The claim to create for one entry of a pod."""
    annotations = json_tree.labels(template, "spec", "metadata", "annotations")
    annotations[well_known.POD_CLAIM_NAME] = entry.name
    metadata: JsonObject = {
        "generateName": generate_name(pod.name, entry.name),
        "namespace": pod.namespace,
        "annotations": annotations,
        "ownerReferences": [
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "name": pod.name,
                "uid": pod.uid,
                "controller": True,
            }
        ],
    }
    if labels := json_tree.labels(template, "spec", "metadata", "labels"):
        metadata["labels"] = labels
    return {
        "kind": "ResourceClaim",
        "apiVersion": f"{api_groups.RESOURCE}/v1",
        "metadata": metadata,
        "spec": json_tree.copy(dict(json_tree.mapping(template, "spec", "spec"))),
    }
