"""Extended resources that devices provide: builds a pod's claim from its container requests.

A resource name belongs to a class by `spec.extendedResourceName`, or implicitly as
`deviceclass.resource.kubernetes.io/<class>`. Devices serve different resources on different nodes,
so one claim is built for each set of served resources. Parity: controllers.md 3.10.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from app.domain.controllers.pods import PodFacts
from app.domain.controllers.resources import is_of
from app.domain.log import ObjectKey
from app.domain.objects.kinds import extended_resources
from app.domain.objects.kinds.extended_resources import IMPLICIT
from app.domain.objects.reader import ObjectsReader
from app.domain.values import api_groups, api_resources, json_tree, quantity
from app.domain.values.fields import core, dra, entries, meta
from app.domain.values.json_tree import JsonObject, JsonView
from app.domain.values.quantity import QuantityError

PSEUDO_NAME = "<extended-resources>"
"""The name of the claim while it does not exist yet; it appears in messages."""

_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtendedRequests:
    """The extended resources of a pod: the amounts by name, and the classes by name.

    `classes` has only the resources with a class. `leftover` is a claim of an earlier attempt.
    """

    amounts: Mapping[str, int]
    classes: Mapping[str, str]
    leftover: ObjectKey | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ExtendedClaim:
    """The claim for one set of served resources, and the mappings of containers to requests."""

    tree: JsonObject
    mappings: tuple[JsonObject, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ChangeableClaim:
    """The claim of a pod for the resources that `classes` serve, and what it would be otherwise."""

    pod: JsonView
    classes: Mapping[str, str]
    containers: "tuple[_ContainerRequests, ...]"
    tree: JsonObject

    @property
    def amounts(self) -> list[tuple[str, str, int]]:
        """Container, resource and amount of each request that counts for the claim."""
        return [
            (container.name, resource, count)
            for container in self.containers
            for resource in sorted(self.classes)
            if (count := _count(container, resource)) > 0
        ]

    def with_amount(self, container: str, resource: str, amount: int) -> "ChangeableClaim":
        """The claim if the container requested that amount of the resource."""
        containers = tuple(
            replace(one, requests={**one.requests, resource: str(amount)})
            if one.name == container
            else one
            for one in self.containers
        )
        tree = _claim(self.pod, containers, self.classes).tree
        return replace(self, containers=containers, tree=tree)

    def with_class(self, resource: str, name: str) -> "ChangeableClaim":
        """The claim if that class served the resource."""
        classes = {**self.classes, resource: name}
        return replace(self, classes=classes, tree=_claim(self.pod, self.containers, classes).tree)


def wanted_by(
    objects: ObjectsReader, pod: PodFacts, requests: Mapping[str, int]
) -> ExtendedRequests | None:
    """The extended resources that the pod requests; None when it requests none."""
    amounts = {
        name: count
        for name, count in requests.items()
        if count > 0 and extended_resources.is_extended(name)
    }
    if not amounts:
        return None
    classes = classes_of(objects, amounts)
    return ExtendedRequests(amounts=amounts, classes=classes, leftover=_leftover(objects, pod))


def classes_of(objects: ObjectsReader, names: Iterable[str]) -> dict[str, str]:
    """The class by resource name: of several classes the newest, then the one with lower name."""
    wanted = set(names)
    newest: dict[str, tuple[str, str]] = {}
    for key in objects.keys(*api_resources.DEVICE_CLASSES):
        tree = objects.get(key)
        if tree is None:
            continue
        if f"{IMPLICIT}{key.name}" in wanted:
            newest[f"{IMPLICIT}{key.name}"] = ("", key.name)
        name = dra.extended_resource_name(tree)
        if name not in wanted:
            continue
        created = meta.creation_timestamp(tree)
        if name not in newest or created > newest[name][0]:
            newest[name] = (created, key.name)
    return {name: chosen for name, (_, chosen) in newest.items()}


def claim_for(pod: JsonView, classes: Mapping[str, str]) -> ExtendedClaim:
    """Builds the claim of the pod for the served resources, which are the keys of `classes`."""
    return _claim(pod, _containers(pod), classes)


def changeable_claim(
    pod: JsonView, classes: Mapping[str, str], tree: JsonObject
) -> ChangeableClaim:
    """The claim of `claim_for`, whose tree is known, and which can be made anew otherwise."""
    containers = tuple(_containers(pod))
    return ChangeableClaim(pod=pod, classes=classes, containers=containers, tree=tree)


def _claim(
    pod: JsonView, containers: Sequence["_ContainerRequests"], classes: Mapping[str, str]
) -> ExtendedClaim:
    requests: list[JsonObject] = []
    mappings: list[JsonObject] = []
    for resource in sorted(classes):
        _add_resource(resource, classes[resource], containers, requests, mappings)
    requests.sort(key=lambda request: str(request["name"]))
    tree: JsonObject = {
        "apiVersion": f"{api_groups.RESOURCE}/v1",
        "kind": "ResourceClaim",
        "metadata": {
            "name": PSEUDO_NAME,
            "namespace": meta.namespace(pod),
            "uid": f"extended/{meta.uid(pod)}",
        },
        "spec": {"devices": {"requests": requests}},
    }
    return ExtendedClaim(tree=tree, mappings=tuple(mappings))


def origin_of(pod: JsonView, request: str) -> tuple[str, str]:
    """The resource and the container that a request of the claim is named after; else empty."""
    for container in _containers(pod):
        for resource in container.requests:
            if _request_name(container, resource) == request:
                return resource, container.name
    return "", ""


def generate_name(pod: str) -> str:
    """The prefix of the claim's name."""
    return f"{pod}-extended-resources-"


def claim_to_create(pod: JsonView, claim: ExtendedClaim, attempt: int) -> JsonObject:
    """Builds the claim to write. Its name suffix derives from the pod and the attempt."""
    name, uid = meta.name(pod), meta.uid(pod)
    base = generate_name(name)
    return {
        "apiVersion": f"{api_groups.RESOURCE}/v1",
        "kind": "ResourceClaim",
        "metadata": {
            "name": f"{base[:58]}{_suffix(f'{uid}/{attempt}')}",
            "generateName": base,
            "namespace": meta.namespace(pod),
            "annotations": {extended_resources.ANNOTATION: "true"},
            "ownerReferences": [
                {
                    "apiVersion": "v1",
                    "kind": "Pod",
                    "name": name,
                    "uid": uid,
                    "controller": True,
                }
            ],
        },
        "spec": json_tree.copy(claim.tree["spec"]),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class _ContainerRequests:
    index: int
    name: str
    lives_long: bool
    requests: Mapping[str, object]


def _containers(pod: JsonView) -> list[_ContainerRequests]:
    """The init containers, then the regular ones, with consecutive numbers."""
    inits = core.init_containers(pod)
    containers: list[_ContainerRequests] = []
    for index, tree in enumerate((*inits, *core.containers(pod))):
        containers.append(
            _ContainerRequests(
                index=index,
                name=entries.name(tree),
                lives_long=index >= len(inits) or tree.get("restartPolicy") == "Always",
                requests=core.requests_of(tree),
            )
        )
    return containers


def _add_resource(
    resource: str,
    class_name: str,
    containers: Sequence[_ContainerRequests],
    requests: list[JsonObject],
    mappings: list[JsonObject],
) -> None:
    """Adds the requests for one resource: long-lived containers add up, short-lived ones share."""
    long: list[tuple[_ContainerRequests, str, int]] = []
    for container in containers:
        count = _count(container, resource)
        if container.lives_long and count > 0:
            name = _request_name(container, resource)
            long.append((container, name, count))
            requests.append(_request(name, class_name, count))
            mappings.append(_mapping(container, resource, name))
    short: list[tuple[str, int]] = []
    users: list[tuple[_ContainerRequests, str]] = []
    for container in containers:
        missing = 0 if container.lives_long else _count(container, resource)
        if missing <= 0:
            continue
        for other, name, count in long:
            if missing > 0 and other.index >= container.index:
                users.append((container, name))
                missing -= count
        if missing > 0:
            name = _request_name(container, resource)
            short.append((name, missing))
            users.append((container, name))
    if short:
        # Short-lived containers run one after the other: the largest of their requests serves all.
        largest = max(short, key=lambda request: request[1])
        requests.append(_request(largest[0], class_name, largest[1]))
        names = {name for name, _ in short}
        users = [(c, largest[0] if name in names else name) for c, name in users]
    mappings.extend(_mapping(container, resource, name) for container, name in users)


def _count(container: _ContainerRequests, resource: str) -> int:
    value = container.requests.get(resource)
    if value is None:
        return 0
    try:
        requested = quantity.from_json(value)
    except QuantityError:
        return 0
    if not quantity.is_integer(requested):
        return 0 if not container.lives_long else quantity.round_up(requested)
    return quantity.as_integer(requested)


def _request_name(container: _ContainerRequests, resource: str) -> str:
    place = sorted(container.requests).index(resource)
    return f"container-{container.index}-request-{place}"


def _request(name: str, class_name: str, count: int) -> JsonObject:
    exactly = {"deviceClassName": class_name, "allocationMode": "ExactCount", "count": count}
    return {"name": name, "exactly": exactly}


def _mapping(container: _ContainerRequests, resource: str, request: str) -> JsonObject:
    return {
        "containerName": container.name,
        "resourceName": resource,
        "requestName": request,
    }


def _leftover(objects: ObjectsReader, pod: PodFacts) -> ObjectKey | None:
    """A claim that an earlier attempt made for this pod."""
    for key in objects.dependents(pod.uid):
        tree = objects.get(key) if is_of(key, api_resources.RESOURCE_CLAIMS) else None
        if tree is None or meta.controller_uid(tree) != pod.uid:
            continue
        if meta.annotation(tree, extended_resources.ANNOTATION) == "true":
            return key
    return None


def _suffix(seed: str) -> str:
    digest = hashlib.sha256(f"extended claim {seed}".encode()).digest()
    return "".join(_ALPHABET[byte % len(_ALPHABET)] for byte in digest[:5])
