"""What the API server itself sets on new workloads, before any controller sees them."""

from app.domain.values import json_tree
from app.domain.values.json_tree import JsonObject

CONTROLLER_UID = "batch.kubernetes.io/controller-uid"
JOB_NAME = "batch.kubernetes.io/job-name"


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
