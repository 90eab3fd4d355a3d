"""What the API server itself sets on new workloads, before any controller sees them."""

from app.domain.values import json_tree
from app.domain.values.fields import meta
from app.domain.values.json_tree import JsonObject, JsonView

CONTROLLER_UID = "batch.kubernetes.io/controller-uid"
JOB_NAME = "batch.kubernetes.io/job-name"
TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"
"""An annotation of DaemonSets that counts their templates. The server alone writes it."""


def prepare_job(tree: JsonObject) -> None:
    """Give a Job the selector and the labels by which its pods are told apart, in place.

    Names and uid are set already. With `manualSelector` the author has chosen both.
    """
    spec = tree["spec"]
    template = spec.get("template")
    if spec.get("manualSelector") is True or not isinstance(template, dict):
        return
    metadata = tree["metadata"]
    uid, name = metadata.get("uid", ""), metadata.get("name", "")
    written = template.setdefault("metadata", {})
    written["labels"] = json_tree.labels(written, "labels") | {
        CONTROLLER_UID: uid,
        "controller-uid": uid,
        JOB_NAME: name,
        "job-name": name,
    }
    spec["selector"] = {"matchLabels": {CONTROLLER_UID: uid}}
    if not metadata.get("labels"):
        # A Job without labels has those of its template.
        metadata["labels"] = dict(written["labels"])


def count_template(tree: JsonObject, old: JsonView | None = None) -> None:
    """Count the templates of a DaemonSet, in place; `old` is what is stored."""
    count = 1
    if old is not None:
        count = _template_count(old)
        if json_tree.get(tree, "spec", "template") != json_tree.get(old, "spec", "template"):
            count += 1
    metadata = tree["metadata"]
    annotations = dict(metadata.get("annotations") or {})
    metadata["annotations"] = annotations | {TEMPLATE_GENERATION: str(count)}


def _template_count(tree: JsonView) -> int:
    text = meta.annotations(tree).get(TEMPLATE_GENERATION, "")
    return int(text) if text.isdecimal() else meta.generation(tree) or 1
