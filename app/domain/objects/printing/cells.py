"""Cells of several tables: name, age, replicas, containers of a template, labels."""

from collections.abc import Mapping
from functools import partial
from typing import TypeAlias

from app.domain.objects.printing import tables
from app.domain.objects.printing.durations import age_text
from app.domain.objects.printing.tables import NONE, Cell, CellOf, Printer
from app.domain.values import json_tree
from app.domain.values.fields import core, meta
from app.domain.values.json_tree import JsonView
from app.domain.values.timestamps import Instant

Row: TypeAlias = tuple[str, str, Printer]
"""Group, resource and the printer of its tables."""


def table(declared: str, functions: Mapping[str, CellOf] | None = None) -> Printer:
    """Returns the printer of the declared columns (`tables.table`), with the standard cells."""
    return tables.table(declared, {**STANDARD, **(functions or {})})


def age(tree: JsonView, now: Instant) -> str:
    """The time since the object was created."""
    return age_text(meta.creation_timestamp(tree), now)


def replicas(tree: JsonView, _: Instant) -> Cell:
    """The number of desired replicas; 1 if the spec has none."""
    count = core.replicas(tree)
    return 1 if count is None else count


def ready(tree: JsonView, now: Instant) -> str:
    """The ready and the desired replicas, such as `1/3`."""
    return f"{json_tree.integer(tree, 'status', 'readyReplicas') or 0}/{replicas(tree, now)}"


def ingress(tree: JsonView) -> list[str]:
    """The addresses or host names of a load balancer."""
    places = json_tree.objects(tree, "status", "loadBalancer", "ingress")
    return [json_tree.text(place, "ip") or json_tree.text(place, "hostname") for place in places]


def template(*path: str) -> dict[str, CellOf]:
    """Names and images of the containers in a pod template."""

    def joined(field: str, tree: JsonView, _: Instant) -> str:
        containers = json_tree.objects(tree, *path, "spec", "containers")
        return ",".join(json_tree.text(container, field) for container in containers)

    return {"Containers": partial(joined, "name"), "Images": partial(joined, "image")}


def labels(*path: str) -> CellOf:
    """Labels as `a=b,c=d`."""

    def joined(tree: JsonView, _: Instant) -> str:
        pairs = sorted(json_tree.labels(tree, *path).items())
        return ",".join(f"{key}={value}" for key, value in pairs) or NONE

    return joined


STANDARD: Mapping[str, CellOf] = {
    "Name": lambda tree, _: meta.name(tree),
    "Age": age,
    "Created At": lambda tree, _: meta.creation_timestamp(tree),
    **template("spec", "template"),
    "Selector": labels("spec", "selector", "matchLabels"),
}
"""The cells of titles that have the same meaning in all tables."""
