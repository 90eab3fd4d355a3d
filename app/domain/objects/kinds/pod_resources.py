"""Requests and limits of containers, and what a pod needs in all."""

from collections.abc import Mapping

from app.domain.values import json_tree, quantity
from app.domain.values.json_tree import JsonView
from app.domain.values.quantity import Quantity, QuantityError

HUGE_PAGES = "hugepages-"
"""Begins the names of huge pages, one name for each size."""


def effective(spec: JsonView, field: str) -> dict[str, Quantity]:
    """What a pod needs in all: `requests` or `limits`.

    Containers and sidecars add up; an init container needs its own plus the sidecars before it, and
    the larger counts. The pod's own resources replace the sums; the overhead comes on top.
    """
    total: dict[str, Quantity] = {}
    for container in json_tree.objects(spec, "containers"):
        add(total, of(container, field))
    sidecars: dict[str, Quantity] = {}
    for container in json_tree.objects(spec, "initContainers"):
        own = of(container, field)
        if container.get("restartPolicy") == "Always":
            add(total, own)
            add(sidecars, own)
            continue
        needed = dict(sidecars)
        add(needed, own)
        for name, amount in needed.items():
            if name not in total or quantity.compare(total[name], amount) < 0:
                total[name] = amount
    total |= of(spec, field)
    overhead = amounts(json_tree.mapping(spec, "overhead"))
    add(total, {n: a for n, a in overhead.items() if field == "requests" or n in total})
    return total


def of(holder: JsonView, field: str) -> dict[str, Quantity]:
    """The `requests` or `limits` of a container, or of a pod as a whole."""
    return amounts(json_tree.mapping(holder, "resources", field))


def amounts(tree: JsonView) -> dict[str, Quantity]:
    """A resource list; entries that are no quantities count as nothing."""
    quantities = {}
    for name, value in tree.items():
        try:
            quantities[name] = quantity.from_json(value)
        except QuantityError:
            continue
    return quantities


def add(total: dict[str, Quantity], more: Mapping[str, Quantity]) -> None:
    """Add amounts to a running total, by name."""
    for name, amount in more.items():
        total[name] = quantity.add(total[name], amount) if name in total else amount
