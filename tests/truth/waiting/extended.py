"""What extended resources of a pod want of a node: its own ones, or devices of a class.

Parity: controllers.md 3.10; objects.md on `spec.extendedResourceName`.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from tests.truth.facts import FINISHED, Facts, amount

NAME = "<extended-resources>"
ANNOTATION = "resource.kubernetes.io/extended-resource-claim"
IMPLICIT = "deviceclass.resource.kubernetes.io/"


@dataclass(slots=True)
class _Request:
    """A request of the claim, with the number of the container that it is named after."""

    container: int
    name: str
    count: int


def class_of(facts: Facts, resource: str) -> str:
    """The class whose devices serve a resource: the youngest, of those the first by name."""
    if resource.startswith(IMPLICIT):
        name = resource.removeprefix(IMPLICIT)
        return name if ("deviceclasses", "", name) in facts.state else ""
    named = [
        (tree["metadata"]["creationTimestamp"], name)
        for name, tree in facts.all("deviceclasses")
        if tree["spec"].get("extendedResourceName") == resource
    ]
    youngest = max((created for created, _ in named), default="")
    return min((name for created, name in named if created == youngest), default="")


def claim_of(facts: Facts, pod: dict, node: dict) -> dict | None:
    """The claim for the resources that devices of a node have to serve; None without one."""
    requests: list[tuple[_Request, str]] = []
    for resource in sorted(resources(pod)):
        chosen = class_of(facts, resource)
        if chosen and not offered(node, resource):
            requests += ((one, chosen) for one in _requests(pod, resource))
    if not requests:
        return None
    trees = [
        {"name": one.name, "exactly": {"deviceClassName": chosen, "count": one.count}}
        for one, chosen in sorted(requests, key=lambda pair: pair[0].name)
    ]
    return {
        "metadata": {"namespace": pod["metadata"]["namespace"], "name": NAME},
        "spec": {"devices": {"requests": trees}},
    }


def lacking(facts: Facts, pod: dict, node: dict) -> Iterator[str]:
    """The resources that the node itself has to offer, and of which too little is left."""
    for resource in sorted(resources(pod)):
        there = offered(node, resource)
        is_own = there or not class_of(facts, resource)
        if is_own and used(facts, node, resource) + asks(pod, resource) > there:
            yield resource


def offered(node: dict, resource: str) -> int:
    """What a node itself has of a resource."""
    return int(amount(node["status"]["allocatable"].get(resource, "0")))


def used(facts: Facts, node: dict, resource: str) -> int:
    """The amount of a resource that the pods of a node request, whatever serves it."""
    pods = (facts.pods[name] for name in facts.on_node(node["metadata"]["name"]))
    return sum(asks(one, resource) for one in pods if one["status"].get("phase") not in FINISHED)


def resources(pod: dict) -> set[str]:
    """The extended resources of which a pod wants some."""
    names = {name for _, one in _containers(pod) for name in wants(one) if "/" in name}
    return {name for name in names if asks(pod, name)}


def containers(pod: dict) -> list[dict]:
    """All containers in their order."""
    return [one for _, one in _containers(pod)]


def _containers(pod: dict) -> list[tuple[bool, dict]]:
    """All containers, those that end before others begin with False."""
    first = pod["spec"].get("initContainers") or ()
    return [
        *((one.get("restartPolicy") == "Always", one) for one in first),
        *((True, one) for one in pod["spec"]["containers"]),
    ]


def wants(container: dict) -> dict[str, str]:
    """The amounts that a container requests."""
    return (container.get("resources") or {}).get("requests") or {}


def asks(pod: dict, resource: str) -> int:
    """What a pod wants at once: all that stay, or one that ends beside those that began."""
    staying = most = 0
    for stays, container in _containers(pod):
        count = int(amount(wants(container).get(resource, "0")))
        staying += count if stays else 0
        most = max(most, staying + (0 if stays else count))
    return most


def _requests(pod: dict, resource: str) -> list[_Request]:
    """One request for each container that stays, and one for the most that one of the others lacks.

    What ends early uses what containers at its place or behind it have.
    """
    staying, short = [], []
    containers = list(enumerate(_containers(pod)))
    for number, (stays, container) in containers:
        count = int(amount(wants(container).get(resource, "0")))
        if stays and count:
            staying.append(_Request(number, _name(number, container, resource), count))
    for number, (stays, container) in containers:
        if not stays:
            count = int(amount(wants(container).get(resource, "0")))
            missing = count - sum(one.count for one in staying if one.container >= number)
            if missing > 0:
                short.append(_Request(number, _name(number, container, resource), missing))
    most = max((one.count for one in short), default=0)
    return [*staying, *(one for one in short if one.count == most)][: len(staying) + 1]


def _name(number: int, container: dict, resource: str) -> str:
    return f"container-{number}-request-{sorted(wants(container)).index(resource)}"
