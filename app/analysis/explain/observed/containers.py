"""Devices of a pod's containers: what they get of its claims, and what the kubelet reports.

The kubelet gives a container the devices of the claims that it names in `resources.claims`; with a
request, only those of that request and those that the driver prepared for no particular request.
It checks neither: the pod starts without devices. Parity: controllers.md 5.3.
"""

from collections.abc import Iterator
from typing import NamedTuple

from app.analysis.explain.reasons import Reason, listed
from app.analysis.views import LiveViews
from app.domain.controllers import pods
from app.domain.controllers.resources import claim_key
from app.domain.log import ObjectKey
from app.domain.values.fields import core, dra, records
from app.domain.values.fields.records import FieldRecord
from app.domain.values.json_tree import JsonView

_HEALTHY = frozenset(("", "Healthy"))
_UNKNOWN = "Unknown"
"""The health of a device that cannot be determined: its plug-in is gone, or reports none."""


class _Use(FieldRecord, frozen=True):
    """The entry of its pod's claims that a container names, and the request of it or nothing."""

    name: str = ""
    request: str = ""


class _ContainerResources(FieldRecord, frozen=True):
    claims: tuple[_Use, ...] = ()


class _DeviceContainer(FieldRecord, frozen=True):
    name: str = ""
    resources: _ContainerResources = _ContainerResources()


class _DevicePodSpec(FieldRecord, frozen=True):
    resource_claims: tuple[_Use, ...] = ()
    containers: tuple[_DeviceContainer, ...] = ()
    init_containers: tuple[_DeviceContainer, ...] = ()


class _DevicePodStatus(FieldRecord, frozen=True):
    container_statuses: tuple[core.DeviceStatuses, ...] = ()


class _DevicePod(FieldRecord, frozen=True):
    """The fields of a pod that say which containers get devices, and how these are."""

    spec: _DevicePodSpec = _DevicePodSpec()
    status: _DevicePodStatus = _DevicePodStatus()


_pod = records.of_tree(_DevicePod)


class Unreached(NamedTuple):
    """A claim of which a container gets no device, or no container any.

    `is_mistake` is true when a container names a request that the claim does not have.
    """

    claim: ObjectKey
    text: str
    is_mistake: bool


def concerns(pod: JsonView) -> bool:
    """Whether `unreached` or `unhealthy` may have something to say of a pod; quick for most."""
    read = _pod(pod)
    spec = read.spec
    for reported in read.status.container_statuses:
        if reported.allocated_resources_status:
            return True
    if not spec.resource_claims:
        return False
    named = set()
    for container in (*spec.containers, *spec.init_containers):
        for use in container.resources.claims:
            if use.request:
                return True
            named.add(use.name)
    return any(entry.name not in named for entry in spec.resource_claims)


def unreached(views: LiveViews, pod: JsonView) -> Iterator[Unreached]:
    """The claims of a pod whose devices do not reach the containers."""
    named = [*_named(_pod(pod).spec)]
    facts = pods.facts(pod)
    for entry in facts.entries:
        claim = pods.entry_claim(facts, entry)
        if claim.problem or claim.name is None:
            continue
        key = claim_key(facts.namespace, claim.name)
        users = [(container, request) for container, name, request in named if name == entry.name]
        if not users:
            text = f"no container names claim {claim.name} in its resources.claims, so none gets "
            text += "its devices; only a driver that serves whole pods, such as one for networks, "
            yield Unreached(key, text + "does without", is_mistake=False)
        tree = views.objects.get(key)
        requests = [] if tree is None else [request.name for request in dra.requests(tree)]
        for container, request in users:
            if tree is not None and request and request not in requests:
                has = listed(requests, len(requests)) or "none"
                text = f"container {container} asks for request {request} of claim {claim.name}, "
                text += f"which has {has}, so it gets no device that was prepared for a request"
                yield Unreached(key, text, is_mistake=True)


def _named(spec: _DevicePodSpec) -> Iterator[tuple[str, str, str]]:
    """The containers with the entries that they name, and the request of each or nothing."""
    for container in (*spec.init_containers, *spec.containers):
        for use in container.resources.claims:
            yield container.name, use.name, use.request


def unhealthy(pod: JsonView) -> Iterator[str]:
    """The devices of containers that the kubelet reports as not healthy, as sentences.

    Those whose health cannot be determined are none of them.
    """
    return (text for health, text in _not_healthy(pod) if health != _UNKNOWN)


def _not_healthy(pod: JsonView) -> Iterator[tuple[str, str]]:
    """The health of each device that is not reported as healthy, and a sentence about it.

    The kubelet reports them of containers, not of init containers.
    """
    for container in _pod(pod).status.container_statuses:
        for resource in container.allocated_resources_status:
            for each in resource.resources:
                if each.health in _HEALTHY:
                    continue
                message = f" ({each.message})" if each.message else ""
                yield (
                    each.health,
                    f"container {container.name}: the kubelet reports {each.resource_id} of "
                    f"{resource.name} as {each.health}{message}",
                )


def reasons(views: LiveViews, pod: JsonView) -> list[Reason]:
    """The reasons about the devices of a pod that does not wait for a node."""
    if core.is_finished(pod) or not concerns(pod):
        return []
    made: list[Reason] = []
    for health, text in _not_healthy(pod):
        meaning = "it cannot tell more" if health == _UNKNOWN else "that alone ends no pod"
        made.append(Reason(text=f"{text}; {meaning}", is_kept=True))
    made += [Reason(text=one.text, about=one.claim, is_kept=True) for one in unreached(views, pod)]
    return made
