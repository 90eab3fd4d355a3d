"""Amounts of resources that pods request and nodes have, as integers.

CPU is in thousandths, every other resource in its own unit, rounded up. Parity: controllers.md 4.5;
the resource helpers of the scheduler; defaults for the scores are 100m of CPU and 200 MiB of memory
per container.
"""

from collections.abc import Iterable, Mapping

import msgspec

from app.domain.values import quantity
from app.domain.values.fields import core
from app.domain.values.json_tree import JsonObject, JsonView
from app.domain.values.quantity import QuantityError

CPU = "cpu"
MEMORY = "memory"
PODS = "pods"

DEFAULT_CPU_MILLI = 100
DEFAULT_MEMORY_BYTES = 200 * 1024 * 1024

_NANOS_PER_MILLI = 1_000_000
_NANOS_PER_UNIT = 1_000_000_000

Amounts = Mapping[str, int]
"""Resource name to amount; CPU in thousandths."""


class PodAmounts(msgspec.Struct, frozen=True, kw_only=True):
    """The requests of a pod, and its CPU and memory for the scores, with defaults filled in."""

    requests: Amounts
    scored_cpu: int
    scored_memory: int


def of_tree(tree: JsonView) -> dict[str, int]:
    """Reads a resource list; entries that are not quantities are left out."""
    amounts: dict[str, int] = {}
    for name, value in tree.items():
        amount = _amount(name, value)
        if amount is not None:
            amounts[name] = amount
    return amounts


def of_pod(spec: JsonView) -> PodAmounts:
    """The effective requests of a pod.

    Regular containers and sidecars are summed. An init container needs its own requests plus those
    of the sidecars before it. The larger of both counts. Requests of the pod as a whole
    (`spec.resources`) replace the sums, and then the overhead is added.
    """
    containers = core.containers_of(spec)
    inits = core.init_containers_of(spec) if "initContainers" in spec else []
    plain = [_requests(container) for container in containers]
    effective = _effective(plain, [(c, _requests(c)) for c in inits])
    scored = _effective(
        [_with_defaults(requests) for requests in plain],
        [(c, _with_defaults(_requests(c))) for c in inits],
    )
    if "resources" in spec:
        whole = of_tree(core.requests_of(spec))
        effective = {**effective, **whole}
        scored = {**scored, **whole}
    if "overhead" in spec:
        overhead = of_tree(core.overhead_of(spec))
        effective, scored = _sum(effective, overhead), _sum(scored, overhead)
    return PodAmounts(
        requests=effective, scored_cpu=scored.get(CPU, 0), scored_memory=scored.get(MEMORY, 0)
    )


def _effective(
    containers: Iterable[Amounts], inits: Iterable[tuple[JsonObject, Amounts]]
) -> dict[str, int]:
    total: dict[str, int] = {}
    for requests in containers:
        total = _sum(total, requests)
    sidecars: dict[str, int] = {}
    peak: dict[str, int] = {}
    for container, requests in inits:
        if container.get("restartPolicy") == "Always":
            total = _sum(total, requests)
            sidecars = _sum(sidecars, requests)
            needed = dict(sidecars)
        else:
            needed = _sum(sidecars, requests)
        for name, amount in needed.items():
            peak[name] = max(peak.get(name, 0), amount)
    for name, amount in peak.items():
        total[name] = max(total.get(name, 0), amount)
    return total


def _requests(container: JsonView) -> dict[str, int]:
    if "resources" not in container:
        return {}
    return of_tree(core.requests_of(container))


def _with_defaults(requests: Amounts) -> dict[str, int]:
    return {CPU: DEFAULT_CPU_MILLI, MEMORY: DEFAULT_MEMORY_BYTES, **requests}


def _sum(left: Amounts, right: Amounts) -> dict[str, int]:
    total = dict(left)
    for name, amount in right.items():
        total[name] = total.get(name, 0) + amount
    return total


def _amount(name: str, value: object) -> int | None:
    try:
        nanos = quantity.from_json(value).nanos
    except QuantityError:
        return None
    unit = _NANOS_PER_MILLI if name == CPU else _NANOS_PER_UNIT
    return -(-nanos // unit)
