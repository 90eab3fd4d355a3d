"""Extended resources: whether devices of a class or the nodes themselves provide them."""

from collections.abc import Iterator, Sequence

from app.analysis import scheduler_messages
from app.analysis.explain import sources
from app.analysis.explain.node_reasons import NodeReason
from app.analysis.explain.reasons import Reason, listed
from app.analysis.views import LiveViews
from app.domain.controllers.scheduling.plugins.dynamic_resources import extended_resources
from app.domain.controllers.scheduling.plugins.dynamic_resources.extended_resources import (
    ExtendedClaim,
)
from app.domain.log import ObjectKey
from app.domain.objects.kinds import extended_resources as names_of_resources
from app.domain.objects.kinds import pod_resources
from app.domain.values import api_resources, counts
from app.domain.values.fields import core, dra, meta
from app.domain.values.json_tree import JsonObject


def offered_by_nodes(
    views: LiveViews, pod: JsonObject, nodes: Sequence[NodeReason]
) -> Iterator[Reason]:
    """The extended resources that nodes offer themselves, so that no driver is asked there.

    Parity: controllers.md 3.10.
    """
    lacking = {
        name: [
            reason.node for reason in nodes if scheduler_messages.names_lack_of(reason.text, name)
        ]
        for name in pod_resources.effective(meta.spec(pod), "requests")
        if names_of_resources.is_extended(name)
    }
    classes = extended_resources.classes_of(views.objects, [name for name in lacking if name])
    for resource, chosen in classes.items():
        offering: dict[str, str] = {}
        for name in lacking[resource]:
            node = views.objects.get(ObjectKey(*api_resources.NODES, "", name)) or {}
            amount = str(core.allocatable(node).get(resource) or "0")
            if amount != "0":
                offering[name] = amount
        if offering:
            names, first = list(offering), next(iter(offering.values()))
            noun = counts.plural(len(names), "node")
            text = f"{noun} {listed(names, len(names))} {counts.verb(len(names), 'has')} "
            text += f"{resource} of a device plugin ({first} allocatable), so devices of class "
            yield Reason(text=f"{text}{chosen} do not count there", is_kept=True)


def served_by(views: LiveViews, pod: JsonObject, nodes: Sequence[NodeReason]) -> Iterator[Reason]:
    """The classes whose devices serve the extended resources that the pod requests."""
    if any(reason.explained is not None and reason.text for reason in nodes):
        yield from _serving(views, pod)


def rivals(views: LiveViews, pod: JsonObject) -> Iterator[str]:
    """The classes that serve extended resources of the pod in place of others of the same name."""
    yield from (reason.text for reason in _serving(views, pod) if reason.is_kept)


def _serving(views: LiveViews, pod: JsonObject) -> Iterator[Reason]:
    requests = pod_resources.effective(meta.spec(pod), "requests")
    wanted = [
        name
        for name, amount in requests.items()
        if amount.nanos and names_of_resources.is_extended(name)
    ]
    needed = {
        request.name: request.exactly.count
        for request in dra.requests(claim_of(views, pod).tree)
        if request.exactly is not None
    }
    for resource, chosen in extended_resources.classes_of(views.objects, wanted).items():
        key = ObjectKey(*api_resources.DEVICE_CLASSES, "", chosen)
        others = _others(views, key, resource)
        text = f"{resource} stands for devices of class {chosen}"
        if others:
            noun = counts.plural(len(others), "class")
            text += f" and not of {noun} {listed([*others], len(others))}: of several classes with "
            text += "that name the newest counts"
            if meta.creation_timestamp(views.objects.get(key) or {}) in others.values():
                text += ", and of those created in the same second the first by name"
        revision = sources.revision_of(views.objects, key)
        lines = [
            Reason(text=f"request {request}{container_text(pod, request)} wants {needs}")
            for request, needs in needed.items()
            if f"({resource} of " in container_text(pod, request)
        ]
        yield Reason(
            text=text, children=tuple(lines), revision=revision, about=key, is_kept=bool(others)
        )


def claim_of(views: LiveViews, pod: JsonObject) -> ExtendedClaim:
    """The claim for all extended resources of a pod that a class stands for."""
    requests = pod_resources.effective(meta.spec(pod), "requests")
    wanted = [name for name in requests if names_of_resources.is_extended(name)]
    classes = extended_resources.classes_of(views.objects, wanted)
    return extended_resources.claim_for(pod, classes)


def container_text(pod: JsonObject, request: str) -> str:
    """The resource and the container of a request of such a claim: ` (x.test/y of container z)`."""
    resource, container = extended_resources.origin_of(pod, request)
    return f" ({resource} of container {container})" if resource else ""


def _others(views: LiveViews, chosen: ObjectKey, resource: str) -> dict[str, str]:
    """The classes with the name of a resource that do not count, with the time of creation."""
    trees = {
        key.name: views.objects.get(key) or {}
        for key in views.objects.keys(*api_resources.DEVICE_CLASSES)
        if key != chosen
    }
    return {
        name: meta.creation_timestamp(tree)
        for name, tree in trees.items()
        if dra.extended_resource_name(tree) == resource
    }
