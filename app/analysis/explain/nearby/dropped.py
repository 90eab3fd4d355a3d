"""Fields that somebody applied and the API server did not store, because a feature gate is off.

An object lacks what was dropped. But `kubectl apply` leaves the whole configuration in an
annotation, which shows what was intended.
"""

from collections.abc import Iterable, Iterator
from itertools import islice

import msgspec

from app.analysis.explain import questions
from app.analysis.explain.reasons import NAMES_MAX, Reason
from app.analysis.views import LiveViews
from app.domain.controllers import pods
from app.domain.controllers.resources import claim_key
from app.domain.log import ObjectKey
from app.domain.objects import registry
from app.domain.objects.schema import gates
from app.domain.values import api_resources, well_known
from app.domain.values.fields import dra, meta
from app.domain.values.identifiers import PoolId
from app.domain.values.json_tree import JsonObject, JsonView

_LAST_APPLIED = well_known.LAST_APPLIED.encode()


def fields(views: LiveViews, pod: JsonObject, pools: Iterable[PoolId]) -> Iterator[Reason]:
    """The dropped fields of a pod, of what its claims are made of, and of the slices of pools."""
    keys = dict.fromkeys((*_behind(views, pod), *_slices(views, dict.fromkeys(pools))))
    yield from islice((each for key in keys for each in _dropped(views, key)), NAMES_MAX)


def _behind(views: LiveViews, pod: JsonObject) -> Iterator[ObjectKey]:
    """The pod, its claims, their templates and their classes."""
    facts = pods.facts(pod)
    yield ObjectKey(*api_resources.PODS, facts.namespace, facts.name)
    for entry in facts.entries:
        if entry.template:
            place = api_resources.RESOURCE_CLAIM_TEMPLATES
            yield ObjectKey(*place, facts.namespace, entry.template)
    for named in pods.named_claims(facts):
        key = claim_key(facts.namespace, named.name or "")
        yield key
        for request in dra.requests(views.objects.get(key) or {}):
            for wish in (request.exactly, *request.first_available):
                if wish is not None:
                    yield ObjectKey(*api_resources.DEVICE_CLASSES, "", wish.device_class_name)


def _slices(views: LiveViews, pools: Iterable[PoolId]) -> Iterator[ObjectKey]:
    for place in pools:
        for one in views.inventory.slices_of(place):
            yield ObjectKey(*api_resources.RESOURCE_SLICES, "", one.name)


def _dropped(views: LiveViews, key: ObjectKey) -> Iterator[Reason]:
    """The fields in the applied configuration of an object that the gates of its release drop."""
    event = views.objects.event(key)
    kind = registry.find(key.group, key.resource)
    # Most slices of a large cluster have no such annotation, and are not decoded.
    if event is None or kind is None or _LAST_APPLIED not in event.body:
        return
    text = meta.annotations(event.object).get(well_known.LAST_APPLIED)
    applied = _applied(str(text)) if text else {}
    group, version = registry.split_api_version(str(applied.get("apiVersion", "")))
    # Fields have other places in other versions.
    if registry.api_version(group, version) != kind.storage_api_version:
        return
    # What an object used before its gate was switched off is kept.
    kept = {*_texts(views, kind, msgspec.json.decode(event.body))}
    try:
        problems = _texts(views, kind, applied)
    except (AttributeError, TypeError, ValueError):
        # The annotation may hold anything, which no schema was asked about.
        return
    for problem in problems:
        if problem not in kept:
            said = f"{questions.named(key)} was applied with a field that is not stored: {problem}"
            yield Reason(
                text=said, revision=event.revision, about=key, is_kept=True, rests_on=(key,)
            )


def _texts(views: LiveViews, kind: registry.Kind, tree: JsonObject) -> tuple[str, ...]:
    """The fields that are dropped from a tree, which is changed."""
    return gates.drop_disabled(kind, tree, None, views.profile)


def _applied(text: str) -> JsonObject:
    """The configuration in an annotation, which anyone may have written; empty if unreadable."""
    try:
        tree: JsonView = msgspec.json.decode(text)
    except msgspec.DecodeError:
        return {}
    return dict(tree) if isinstance(tree, dict) and isinstance(tree.get("spec"), dict) else {}
