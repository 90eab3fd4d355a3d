"""What the containers of a pod get of its claims, and what the kubelet reports of their devices.

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
from app.domain.values.fields import core, dra, paths
from app.domain.values.json_tree import JsonView

_name = paths.text("name")
_request = paths.text("request")

_HEALTHY = frozenset(("", "Healthy"))


class Unreached(NamedTuple):
    """A claim of which a container gets no device, or no container any.

    `is_mistake` is true when a container names a request that the claim does not have.
    """

    claim: ObjectKey
    text: str
    is_mistake: bool


def unreached(views: LiveViews, pod: JsonView) -> Iterator[Unreached]:
    """The claims of a pod whose devices do not reach the containers."""
    if not core.resource_claims(pod):
        return
    facts = pods.facts(pod)
    named = [*_named(pod)]
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


def _named(pod: JsonView) -> Iterator[tuple[str, str, str]]:
    """The containers with the entries that they name, and the request of each or nothing."""
    for container in (*core.init_containers(pod), *core.containers(pod)):
        for each in core.container_claims(container):
            yield _name(container), _name(each), _request(each)


def unhealthy(pod: JsonView) -> Iterator[str]:
    """The devices of containers that the kubelet reports as not healthy, as sentences."""
    for container in (*core.init_container_statuses(pod), *core.container_statuses(pod)):
        for resource in container.allocated_resources_status:
            for each in resource.resources:
                if each.health in _HEALTHY:
                    continue
                message = f" ({each.message})" if each.message else ""
                yield (
                    f"container {container.name}: the kubelet reports {each.resource_id} of "
                    f"{resource.name} as {each.health}{message}"
                )


def told(views: LiveViews, pod: JsonView) -> list[Reason]:
    """The reasons about the devices of a pod that does not wait for a node."""
    if core.is_finished(pod):
        return []
    made = [Reason(text=f"{text}; that alone ends no pod", is_kept=True) for text in unhealthy(pod)]
    made += [Reason(text=one.text, about=one.claim, is_kept=True) for one in unreached(views, pod)]
    return made
