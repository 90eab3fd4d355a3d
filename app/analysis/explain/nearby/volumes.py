"""Volumes of a pod that keep it from nodes.

redra's scheduler checks the claims of volumes only, and those not in older histories (A18).
"""

from collections.abc import Callable, Iterator
from dataclasses import replace

from app.analysis.explain import waits
from app.analysis.explain.reasons import NAMES_MAX, Reason
from app.analysis.views import LiveViews
from app.domain.controllers.plan import Views
from app.domain.controllers.scheduling.framework import pod_spec
from app.domain.controllers.scheduling.plugins import volume_binding
from app.domain.controllers.scheduling.scheduling_cycle.attempt import SchedulerRules
from app.domain.log import ObjectKey
from app.domain.values import api_resources, selectors
from app.domain.values.fields import core, entries, meta
from app.domain.values.json_tree import JsonObject, JsonView
from app.domain.values.selectors import SelectorError

_FOR_ONE_POD = "ReadWriteOncePod"
"""The access mode of a volume claim that no two pods use at once."""

_NOUN = "PersistentVolumeClaim"

_UNMADE = "does not exist: the ephemeral volume controller, which makes it, is not imitated"


def reasons(views: Views, pod: JsonObject, *, is_elsewhere: bool = False) -> Iterator[Reason]:
    """The volume claims of a pod that are missing or not bound, and the nodes of its volumes.

    Those in the way come first, as not all are named. A pod that is scheduled elsewhere has
    controllers there that make claims.
    """
    ordered = sorted(claims(pod), key=lambda key: not obstacle(views, pod, key, ""))
    for key in ordered[:NAMES_MAX]:
        claim = views.objects.get(key)
        reason, subject = _of_claim(views, key, claim), f"{_NOUN} {key.namespace}/{key.name}"
        if claim is None and not is_elsewhere:
            reason = replace(reason, text=f"{subject} {_missing(pod, key)}")
        yield reason
        if claim is not None and (rival := _rival(views, pod, claim)):
            text = f"{subject} {_alone(rival)}"
            yield Reason(text=text, about=rival, rests_on=(key, rival), is_kept=True)


def refusing(views: Views, pod: JsonObject, rules: SchedulerRules) -> Iterator[Reason]:
    """The volume claims of a pod that redra's scheduler refuses for one of them."""
    if not rules.checks_volumes:
        return
    if volume_binding.check_claims(views.objects, pod_spec.read(pod)) is not None:
        named = {core.volume_claim_name(volume) for volume in core.volumes(pod)}
        missing = [key for key in claims(pod) if views.objects.get(key) is None]
        first = next((key for key in missing if key.name in named), None)
        for reason in reasons(views, pod):
            # The refusal names the first missing claim: who sees the pod knows of it.
            is_said = first is not None and reason.rests_on == (first,)
            yield replace(reason, rests_on=()) if is_said else reason


def remedies(
    views: Views, pod: JsonObject, rules: SchedulerRules, sees_key: Callable[[ObjectKey], bool]
) -> Iterator[str]:
    """The changes after which the volume claims of a pod keep it waiting no longer."""
    if not [*refusing(views, pod, rules)]:
        return
    named = {core.volume_claim_name(volume) for volume in core.volumes(pod)}
    for key in filter(sees_key, claims(pod)):
        claim = views.objects.get(key)
        if claim is None:
            if key.name in named:
                yield f"create PersistentVolumeClaim {key.name} in namespace {key.namespace}"
        elif not core.bound_volume(claim) and obstacle(views, pod, key, ""):
            yield (
                f"set spec.volumeName of PersistentVolumeClaim {key.name}, which no controller "
                "does here (A18)"
            )


def unjudged(views: LiveViews, pod: JsonObject, rules: SchedulerRules) -> Iterator[Reason]:
    """The note on what redra's scheduler does not check of a pod's volume claims, with these."""
    if claims(pod):
        text = "redra's scheduler does not look at the volume claims of the pod, and a real one "
        text += "may refuse it for them (A18)"
        if rules.checks_volumes:
            text = "redra's scheduler checks that the volume claims of the pod can be used, but "
            text += "not from which nodes; a real one may refuse it for that (A18)"
        yield Reason(
            text=text,
            children=tuple(reasons(views, pod)),
            is_kept=True,
        )


def claims(pod: JsonView) -> list[ObjectKey]:
    """The volume claims that a pod names, and those that are made for its ephemeral volumes."""
    names = []
    for volume in core.volumes(pod):
        names.append(core.volume_claim_name(volume))
        if "ephemeral" in volume:
            names.append(f"{meta.name(pod)}-{entries.name(volume)}")
    namespace = meta.namespace(pod)
    return [
        ObjectKey(*api_resources.PERSISTENT_VOLUME_CLAIMS, namespace, name)
        for name in dict.fromkeys(filter(None, names))
    ]


def _missing(pod: JsonView, key: ObjectKey) -> str:
    """The absence of a volume claim as text, with who would have made that of a volume."""
    named = {core.volume_claim_name(volume) for volume in core.volumes(pod)}
    return "does not exist" if key.name in named else _UNMADE


def sources(views: Views, key: ObjectKey) -> Iterator[ObjectKey]:
    """The volume and the class of a volume claim, from which it is known where it can be used."""
    claim = views.objects.get(key) or {}
    if name := core.bound_volume(claim):
        yield ObjectKey(*api_resources.PERSISTENT_VOLUMES, "", name)
    elif name := core.storage_class_name(claim):
        yield ObjectKey(*api_resources.STORAGE_CLASSES, "", name)


def obstacle(views: Views, pod: JsonView, key: ObjectKey, node: str) -> str:
    """The reason why a scheduler places a pod with a volume claim on no node; empty for none.

    A claim without a volume may wait for its pod if its class has the mode WaitForFirstConsumer.
    """
    claim = views.objects.get(key)
    if claim is None:
        return _missing(pod, key)
    if name := core.bound_volume(claim):
        volume = views.objects.get(ObjectKey(*api_resources.PERSISTENT_VOLUMES, "", name)) or {}
        if not _reaches(views, core.volume_nodes(volume), node):
            return f"has volume {name}, which is for {_nodes_text(core.volume_nodes(volume))}"
        rival = _rival(views, pod, claim)
        return "" if rival is None else _alone(rival)
    if not (name := core.storage_class_name(claim)):
        return "is not bound"
    chosen = views.objects.get(ObjectKey(*api_resources.STORAGE_CLASSES, "", name))
    if chosen is None:
        return f"is not bound, and StorageClass {name} does not exist"
    if core.volume_binding_mode(chosen) != "WaitForFirstConsumer":
        return "is not bound"
    if _reaches(views, places := _places(chosen), node):
        return ""
    return f"gets its volume from StorageClass {name}, which is for {_nodes_text(places)}"


def _rival(views: Views, pod: JsonView, claim: JsonView) -> ObjectKey | None:
    """The pod that has, or had before a placed one, a volume claim which one pod alone may use."""
    if _FOR_ONE_POD not in core.access_modes(claim):
        return None
    own = (meta.creation_timestamp(pod), meta.name(pod))
    for key in views.objects.keys(*api_resources.PODS, meta.namespace(claim)):
        other = views.objects.get(key) or {}
        if key.name == meta.name(pod) or not core.has_node(other) or core.is_finished(other):
            continue
        is_earlier = (meta.creation_timestamp(other), key.name) < own
        is_named = any(one.name == meta.name(claim) for one in claims(other))
        if is_named and (is_earlier or not core.has_node(pod)):
            return key
    return None


def _alone(rival: ObjectKey) -> str:
    return f"is for one pod ({_FOR_ONE_POD}), and pod {rival.namespace}/{rival.name} uses it"


def _places(storage_class: JsonView) -> JsonObject:
    """The node selector of the nodes for which a StorageClass makes volumes; empty for all."""
    terms: list[JsonObject] = [
        {"matchExpressions": [{**one, "operator": "In"} for one in core.label_expressions(term)]}
        for term in core.allowed_topologies(storage_class)
    ]
    return {"nodeSelectorTerms": terms} if terms else {}


def _nodes_text(required: JsonView) -> str:
    """The nodes of a node selector as text."""
    terms = [*map(waits.term_text, core.node_selector_terms(required))]
    return f"nodes with {' or '.join(terms)}" if terms else "other nodes"


def _reaches(views: Views, required: JsonView, node: str) -> bool:
    """Whether a node selector of volumes matches a node; one that cannot be read does."""
    tree = views.objects.get(ObjectKey(*api_resources.NODES, "", node))
    if not required or tree is None:
        return True
    try:
        return selectors.node_selector_of(required).matches(node, meta.labels(tree))
    except SelectorError:
        return True


def _of_claim(views: Views, key: ObjectKey, claim: JsonObject | None) -> Reason:
    subject = f"{_NOUN} {key.namespace}/{key.name}"
    if claim is None:
        text = f"{subject} does not exist"
        return Reason(text=text, rests_on=(key,), denies=(key.resource,), is_kept=True)
    text = f"{subject} is {meta.phase(claim) or 'not bound'}"
    if volume := core.bound_volume(claim):
        return _of_volume(views, key, text, volume)
    name = core.storage_class_name(claim)
    storage_class = ObjectKey(*api_resources.STORAGE_CLASSES, "", name)
    text += f", of StorageClass {name}" if name else ", without a StorageClass"
    chosen = views.objects.get(storage_class) if name else None
    is_missing = bool(name) and chosen is None
    places = _places(chosen or {})
    text += f", which is for {_nodes_text(places)}" if places else ""
    return Reason(
        text=f"{text}, which does not exist" if is_missing else text,
        about=key,
        rests_on=(key, storage_class) if name else (key,),
        denies=(storage_class.resource,) if is_missing else (),
        is_kept=True,
    )


def _of_volume(views: Views, key: ObjectKey, text: str, name: str) -> Reason:
    """The nodes that the volume of a claim is for."""
    volume = ObjectKey(*api_resources.PERSISTENT_VOLUMES, "", name)
    tree = views.objects.get(volume) or {}
    required = core.volume_nodes(tree)
    text += f", with volume {name}"
    text += f", which is for {_nodes_text(required)}" if required else ""
    return Reason(text=text, about=key, rests_on=(key, volume), is_kept=True)
