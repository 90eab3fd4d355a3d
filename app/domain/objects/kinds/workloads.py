"""Fields that the API server sets on workloads, before any controller sees them."""

from app.domain.values import decimals, json_tree
from app.domain.values.fields import meta
from app.domain.values.json_tree import JsonObject, JsonView

CONTROLLER_UID = "batch.kubernetes.io/controller-uid"
JOB_NAME = "batch.kubernetes.io/job-name"
JOB_LABELS = (CONTROLLER_UID, "controller-uid", JOB_NAME, "job-name")
"""The labels that the server gives the pods of a Job, and a Job without labels."""

TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"
"""An annotation of DaemonSets that counts the versions of their template. Only the server writes
it."""


def prepare_job(tree: JsonObject) -> None:
    """Sets the selector and the labels that identify the pods of a Job, in place.

    Name and uid are already set. With `manualSelector` the author provides selector and labels.
    """
    spec = tree["spec"]
    template = spec.get("template")
    if spec.get("manualSelector") is True or not isinstance(template, dict):
        return
    metadata = tree["metadata"]
    uid, name = metadata.get("uid", ""), metadata.get("name", "")
    written = template.setdefault("metadata", {})
    written["labels"] = meta.labels_of(written) | {
        CONTROLLER_UID: uid,
        "controller-uid": uid,
        JOB_NAME: name,
        "job-name": name,
    }
    spec["selector"] = {"matchLabels": {CONTROLLER_UID: uid}}
    if not metadata.get("labels"):
        # A Job without labels gets those of its template.
        metadata["labels"] = dict(written["labels"])


def count_template(tree: JsonObject, old: JsonView | None = None) -> None:
    """Sets the template count of a DaemonSet in place; `old` is the stored object."""
    count = 1
    if old is not None:
        count = _template_count(old)
        if json_tree.get(tree, "spec", "template") != json_tree.get(old, "spec", "template"):
            count += 1
    metadata = tree["metadata"]
    annotations = dict(metadata.get("annotations") or {})
    metadata["annotations"] = annotations | {TEMPLATE_GENERATION: str(count)}


def _template_count(tree: JsonView) -> int:
    count = decimals.natural(meta.annotation(tree, TEMPLATE_GENERATION))
    return meta.generation(tree) or 1 if count is None else count
