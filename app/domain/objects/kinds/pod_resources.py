"""Requests and limits of containers, and their effective sums for a pod."""

from collections.abc import Mapping

from app.domain.values import json_tree, quantity
from app.domain.values.fields import core
from app.domain.values.json_tree import JsonView
from app.domain.values.quantity import Quantity, QuantityError

HUGE_PAGES = "hugepages-"
"""The prefix of huge page resources, which have one name for each size."""


def effective(spec: JsonView, field: str) -> dict[str, Quantity]:
    """The effective `requests` or `limits` of a pod.

    They are the sum of containers and sidecars, or the amount of an init container plus the
    sidecars before it, whichever is larger. Pod-level resources replace these amounts; the overhead
    is added.
    """
    total: dict[str, Quantity] = {}
    for container in core.containers_of(spec):
        add(total, of(container, field))
    sidecars: dict[str, Quantity] = {}
    for container in core.init_containers_of(spec):
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
    overhead = amounts(core.overhead_of(spec))
    add(total, {n: a for n, a in overhead.items() if field == "requests" or n in total})
    return total


def of(holder: JsonView, field: str) -> dict[str, Quantity]:
    """The `requests` or `limits` of a container, or the pod-level ones."""
    return amounts(json_tree.mapping(holder, "resources", field))


def amounts(tree: JsonView) -> dict[str, Quantity]:
    """The quantities of a resource list; entries that are not quantities are left out."""
    quantities = {}
    for name, value in tree.items():
        try:
            quantities[name] = quantity.from_json(value)
        except QuantityError:
            continue
    return quantities


def add(total: dict[str, Quantity], more: Mapping[str, Quantity]) -> None:
    """Adds amounts to a running total, by name."""
    for name, amount in more.items():
        total[name] = quantity.add(total[name], amount) if name in total else amount
