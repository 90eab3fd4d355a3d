"""The quotas, policies and webhooks that refuse claims, pods and other objects: their writes.

A refusal names the quota and its limit, and not that the limit was higher before; and it names the
policy, and not who made it.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from app.analysis.explain import quota_use, sources
from app.analysis.explain.nearby import reviews
from app.analysis.explain.questions import named
from app.analysis.explain.reasons import Reason
from app.domain.log import Event, EventType, ObjectKey
from app.domain.values import api_resources
from app.domain.values.json_tree import JsonView
from app.domain.values.texts import notation
from app.service.explaining.evidence import ExplainedMoment
from app.service.explaining.former_circumstances import loss

NEXT = "the next try is not refused for it"


async def of_claim(evidence: ExplainedMoment, namespace: str, refusal: str) -> list[Reason]:
    """The quota that refused a claim: that it is gone, has room by now, or allowed more before."""
    name = quota_use.refusing(refusal)
    key = ObjectKey(*api_resources.RESOURCE_QUOTAS, namespace, name)
    events = await evidence.changes(key) if name else []
    last = next(iter(events), None)
    if last is None or not evidence.sight.sees(last):
        return []
    if last.type is EventType.OBJECT_DELETED:
        made = sources.made(last, f"quota {name} was deleted", Reason(text=NEXT))
        return [replace(made, is_kept=True)]
    if not quota_use.has_room(evidence.views, namespace, refusal, last.object):
        return list(_lowered(evidence, events, quota_use.limits_exceeded(last.object, refusal)))
    text = f"quota {name} has room for the claim by now: {NEXT}"
    return [Reason(text=text, revision=last.revision, about=key, is_kept=True)]


async def of_policy(evidence: ExplainedMoment, refusal: str) -> list[Reason]:
    """The last writes of the policy, binding or webhook that refused, and what it checks."""
    reasons: list[Reason] = []
    for key in reviews.refusing(evidence.views, refusal):
        last = next(iter(await evidence.changes(key)), None)
        if last is None or not evidence.sight.sees(last):
            continue
        if last.type is EventType.OBJECT_DELETED:
            made = sources.made(
                last, f"{named(key)}, which refused it, was deleted", Reason(text=NEXT)
            )
        else:
            wanted = reviews.check(last.object, refusal)
            is_new = last.type is EventType.OBJECT_CREATED
            text = f"{named(key)}, which refuses it, was {'created' if is_new else 'last written'}"
            below = (Reason(text=f"it wants: {wanted}"),) if wanted else ()
            made = sources.made(last, text, *below)
        reasons.append(replace(made, is_kept=True))
    return reasons


async def of_pods(evidence: ExplainedMoment, key: ObjectKey, refusal: str) -> list[Reason]:
    """The writes since which a quota allows less of what it refuses to the pods of a workload."""
    tree = evidence.views.objects.get(key)
    if tree is None or quota_use.has_room(evidence.views, key.namespace, refusal, tree):
        return []
    exceeded = quota_use.limits_exceeded(tree, refusal)
    return list(_lowered(evidence, await evidence.changes(key), exceeded))


async def of_itself(evidence: ExplainedMoment, key: ObjectKey, tree: JsonView) -> list[Reason]:
    """The writes since which a quota allows less of what it has no room for."""
    return list(_lowered(evidence, await evidence.changes(key), quota_use.limits_reached(tree)))


def _lowered(
    evidence: ExplainedMoment, events: Sequence[Event], names: Iterable[tuple[str, str]]
) -> Iterator[Reason]:
    """The writes since which a quota allows less of names; its events are newest first.

    A quota takes nothing away, so what was in use then is in use still.
    """
    for name, now in names:
        lost = loss(events, partial(quota_use.allows_more, name, now))
        if lost is not None and evidence.sight.sees(lost[1]):
            before, after = (quota_use.limit(event.object, name) for event in lost)
            if before:
                before, after = notation.alike_texts(before, after)
            text = f"quota {events[0].key.name} allowed {before or 'any amount'} of {name} until "
            text += f"it was written with {after}"
            yield replace(sources.made(lost[1], text), is_kept=True)
