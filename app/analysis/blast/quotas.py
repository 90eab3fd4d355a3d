"""Refusals of a ResourceQuota: claims from templates, pods of owners, claims of waiting pods.

A quota removes nothing. It is checked for possible next writes: one more claim of each template of
the namespace, one more pod of each owner, and the missing claims of waiting pods, which the claim
controller creates one after the other. Parity: objects.md 15.3, controllers.md 2.2.
"""

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from app.analysis.blast import pods as blasting_pods
from app.analysis.blast import protection
from app.analysis.blast.cutting import ListCut
from app.analysis.blast.radius import BlastRadius, QuotaFate, WriteFate
from app.analysis.blast.world import World
from app.domain.controllers import pods
from app.domain.errors import Forbidden
from app.domain.log import ObjectKey
from app.domain.objects import registry
from app.domain.objects.quota import limits
from app.domain.values import api_resources, quantity
from app.domain.values.fields import core, meta
from app.domain.values.json_tree import JsonObject, JsonView
from app.domain.values.quantity import Quantity
from app.domain.values.texts import notation

COUNTED = frozenset((api_resources.PODS, api_resources.RESOURCE_CLAIMS))
"""The resources counted here.

Of others, secrets for example, nobody learns more than the status of the quota says.
"""


_FORBIDDEN = " is forbidden: "

_Write = tuple[str, str, str]
"""The namespace and kind of the write, and its source."""


def with_quotas(
    answer: BlastRadius,
    before: World,
    after: World,
    quotas: Sequence[ObjectKey],
    listed_max: int,
) -> BlastRadius:
    """The answer with the refusals of quotas that a change puts, changes or deletes.

    The missing claims of waiting pods are created in both worlds as far as quotas have room.
    """
    namespaces = sorted({key.namespace for key in quotas})
    fates = [fate for key in quotas for fate in _fates(before, after, key)]
    writes = list(_writes(_refusals(before, namespaces), _refusals(after, namespaces)))
    cut = ListCut(listed_max)
    return msgspec.structs.replace(
        answer,
        quotas=cut("quotas", fates),
        writes=cut("writes", writes),
        totals=answer.totals
        | {
            "quotas": len(fates),
            "writes_refused": sum(one.is_refused for one in writes),
            "writes_admitted": sum(not one.is_refused for one in writes),
        },
        left_out=answer.left_out | cut.left_out,
    )


def _fates(before: World, after: World, key: ObjectKey) -> Iterator[QuotaFate]:
    """The limits of a quota before and after, and the amounts in use."""
    old, new = before.objects.get(key), after.objects.get(key)
    was, now = _hard(old), _hard(new)
    names = sorted({*was, *now})
    counted = [name for name in names if limits.places_of(name) <= COUNTED]
    used = {name: _in_status(old, name) for name in names}
    used |= limits.used(after.objects, key, new or old or {}, counted)
    for name in names:
        amount = used[name]
        texts = _alike(was.get(name), now.get(name), amount)
        yield QuotaFate(
            namespace=key.namespace,
            quota=key.name,
            name=name,
            before=texts[0],
            after=texts[1],
            used=texts[2],
            is_over=amount is not None and name in now and amount.nanos > now[name].nanos,
        )


def _alike(*amounts: Quantity | None) -> list[str]:
    """Amounts in the notation of the first one; empty for those that are absent."""
    present = [one for one in amounts if one is not None]
    form = present[0].format if present else quantity.QuantityFormat.UNKNOWN
    texts = iter(notation.exactly_alike([one.nanos for one in present], form))
    return ["" if one is None else next(texts) for one in amounts]


def _hard(quota: JsonView | None) -> Mapping[str, Quantity]:
    return {} if quota is None else limits.hard(quota)


def _in_status(quota: JsonView | None, name: str) -> Quantity | None:
    """The amount in use that the status of the present quota tells; None where it tells none."""
    amount = None if quota is None else core.quota_used(quota).get(name)
    try:
        return None if amount is None else quantity.from_json(amount)
    except quantity.QuantityError:
        return None


def _writes(before: Mapping[_Write, str], after: Mapping[_Write, str]) -> Iterator[WriteFate]:
    """The writes that the change newly allows or refuses, in order."""
    for write in sorted(before.keys() | after.keys()):
        old, new = before.get(write, ""), after.get(write, "")
        if bool(old) != bool(new):
            namespace, kind, source = write
            yield WriteFate(
                namespace=namespace,
                kind=kind,
                source=source,
                is_refused=bool(new),
                text=new or old,
            )


def _refusals(world: World, namespaces: Sequence[str]) -> dict[_Write, str]:
    """The refusal of each possible next write; empty if it passes."""
    refusals: dict[_Write, str] = {}
    for namespace in namespaces:
        for key in list(world.objects.keys(*api_resources.RESOURCE_CLAIM_TEMPLATES, namespace)):
            claim = {"spec": meta.spec(meta.spec(world.objects.get(key) or {}))}
            source = f"ResourceClaimTemplate/{key.name}"
            refusals[(namespace, "ResourceClaim", source)] = _refusal(
                world, api_resources.RESOURCE_CLAIMS, namespace, claim
            )
        for source, pod in _of_owners(world, namespace).items():
            refusals[(namespace, "Pod", source)] = _refusal(
                world, api_resources.PODS, namespace, pod
            )
    for namespace in namespaces:
        for key, tree in _lacking(world, namespace):
            made = protection.make_claims(world, pods.facts(tree))
            refusals[(namespace, "ResourceClaim", f"Pod/{key.name}")] = _words(made.refusal)
    return refusals


def _refusal(world: World, place: tuple[str, str], namespace: str, tree: JsonObject) -> str:
    kind = registry.find(*place)
    assert kind is not None, "pods and claims are there in every release"
    key = ObjectKey(*place, namespace, "next")
    try:
        limits.check_create(world.objects, kind, key, tree)
    except Forbidden as problem:
        return _words(problem.message)
    return ""


def _words(refusal: str) -> str:
    """A refusal without the name of the refused object, which differs each time."""
    return refusal.partition(_FORBIDDEN)[2] or refusal


def _of_owners(world: World, namespace: str) -> dict[str, JsonObject]:
    """An unfinished pod of each owner, as it would be created again."""
    made: dict[str, JsonObject] = {}
    for key in list(world.objects.keys(*api_resources.PODS, namespace)):
        tree = world.objects.get(key)
        if tree is None or core.is_finished(tree):
            continue
        owner = blasting_pods.owner_of(world, (namespace, key.name))
        if owner and owner not in made:
            made[owner] = {"spec": dict(meta.spec(tree))}
    return made


def _lacking(world: World, namespace: str) -> list[tuple[ObjectKey, JsonView]]:
    """The unplaced pods whose claims have yet to be created, in the order of their last changes."""
    lacking = []
    for key in list(world.objects.keys(*api_resources.PODS, namespace)):
        event = world.objects.event(key)
        pod = None if event is None else pods.facts_of(event)
        if event is None or pod is None or pod.is_done or pod.is_deleting or pod.node:
            continue
        if any(entry.template and pods.entry_claim(pod, entry).problem for entry in pod.entries):
            lacking.append((event.revision, key, event.object))
    return [(key, tree) for _, key, tree in sorted(lacking, key=lambda one: one[0])]
