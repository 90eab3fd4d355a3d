"""The pages of `kubectl describe` for workloads: which kind a page is of, and what it tells.

kubectl does not print the kind of an object. The fields of a page tell it where only pages of one
kind have them. A ReplicaSet and a ReplicationController have the same fields, but for a controller
that only a ReplicaSet has.
"""

import re
from collections.abc import Mapping, Sequence

from app.adapters.history.printouts import containers
from app.domain.values.json_tree import JsonObject

_KINDS = (
    ({"StrategyType", "Replicas", "Selector"}, "deployments"),
    ({"Desired Number of Nodes Scheduled", "Selector"}, "daemonsets"),
    ({"Update Strategy", "Replicas", "Pods Status"}, "statefulsets"),
    ({"Parallelism", "Completions"}, "jobs"),
)
"""The fields that only pages of a kind have."""

_CONTROLLED = {"Controlled By", "Replicas", "Pods Status"}
_OF_DEPLOYMENT = "Deployment/"
_DESIRED = re.compile(r"(?:\d+ current / )?(?P<count>\d{1,9}) desired\b.*")
_NUMBERS = {"Parallelism": "parallelism", "Completions": "completions"}


def plural(fields: Mapping[str, Sequence[str]]) -> str:
    """The plural name of the kind of a page with these fields; empty if nothing tells it."""
    for needed, name in _KINDS:
        if needed <= fields.keys():
            return name
    if fields.keys() >= _CONTROLLED and fields["Controlled By"][:1]:
        return "replicasets" if fields["Controlled By"][0].startswith(_OF_DEPLOYMENT) else ""
    return ""


def fill(tree: JsonObject, fields: Mapping[str, Sequence[str]]) -> None:
    """Adds to a workload its creation and the numbers of pods that are wanted."""
    created = containers.instant(_first(fields, "CreationTimestamp"))
    if created:
        tree["metadata"]["creationTimestamp"] = created
    if (desired := _DESIRED.fullmatch(_first(fields, "Replicas"))) is not None:
        tree.setdefault("spec", {})["replicas"] = int(desired["count"])
    for title, name in _NUMBERS.items():
        if (text := _first(fields, title)).isdecimal():
            tree.setdefault("spec", {})[name] = int(text)


def _first(fields: Mapping[str, Sequence[str]], name: str) -> str:
    return next(iter(fields.get(name, ())), "").strip()
