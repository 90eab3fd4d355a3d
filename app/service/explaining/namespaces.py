"""A namespace: what keeps it while it is being deleted, and what the API refused in it."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import attrgetter

from app.analysis.explain import questions, sources, untried
from app.analysis.explain.observed import refused_writes
from app.analysis.explain.reasons import NAMES_MAX, Reason, listed
from app.analysis.explain.workloads import contents, refused
from app.domain.controllers import registry
from app.domain.log import Event, EventType, ObjectKey
from app.domain.log.event import KeyFilter
from app.domain.values import api_resources, counts
from app.domain.values.fields import meta
from app.domain.values.json_tree import JsonObject
from app.service.explaining.evidence import ExplainedMoment

KINDS = (
    api_resources.RESOURCE_CLAIMS,
    api_resources.RESOURCE_CLAIM_TEMPLATES,
    api_resources.PODS,
    api_resources.DEPLOYMENTS,
    api_resources.REPLICA_SETS,
    api_resources.STATEFUL_SETS,
    api_resources.DAEMON_SETS,
    api_resources.JOBS,
)
"""The kinds whose refused writes are looked for."""

_EMPTYING = registry.actor_of("namespaces").user
"""The author of the deletions of what a namespace has that is being deleted."""

EVENTS_MAX = 5
"""The newest events of an object that are looked at; behind more, a refusal is an old story."""


async def reasons(evidence: ExplainedMoment, key: ObjectKey, tree: JsonObject) -> list[Reason]:
    """The objects left in a namespace that is being deleted, and the refusals in it."""
    sees = evidence.sight.sees_key
    return [
        *contents.remaining(evidence.views, key.name, tree, sees),
        *(_of_events(evidence, key.name) if evidence.sight.reads_events else ()),
        *await _of_writes(evidence, key.name),
    ]


async def ending(
    evidence: ExplainedMoment, key: ObjectKey, observed: Sequence[Event]
) -> tuple[Reason, ...]:
    """The request that deleted the namespace because of which an object ends or ended.

    The controller that empties namespaces deletes the object; `observed` is newest first.
    """
    events = [event for event in observed if event.is_about_object]
    if not key.namespace or not events:
        return ()
    is_gone = events[0].type is EventType.OBJECT_DELETED
    first = sources.since(events[is_gone:], meta.is_deleting)
    if first is None:
        first = events[0] if is_gone else None
    if first is None or first.stamp.actor.user != _EMPTYING:
        return ()
    place = ObjectKey(*api_resources.NAMESPACES, "", key.namespace)
    states = [one for one in await evidence.observed(place) if one.is_about_object]
    before = [one for one in states if one.revision <= first.revision]
    request = sources.since(before, meta.is_deleting)
    if request is None or not evidence.sight.sees(request):
        return ()
    noun = questions.named(place)
    text = f"the deletion of {noun} with all in it was asked for {sources.asked_by(request)}"
    return (Reason(text=text, revision=request.revision, about=place, is_kept=True),)


def _of_events(evidence: ExplainedMoment, namespace: str) -> Iterator[Reason]:
    """The claims that could not be made for pods, and the pods that workloads could not make."""
    views, sees = evidence.views, evidence.sight.sees_key
    for text, waiting in untried.refused_claims(views, namespace).items():
        names = [key.name for key, _ in waiting if sees(key)]
        if not names:
            continue
        noun = counts.plural(len(names), "pod")
        wait = counts.verb(len(names), "waits")
        yield Reason(
            text=f"{noun} {listed(names, len(names))} {wait} for a claim that is refused: {text}",
            count=len(names),
            revision=max(event.revision for _, event in waiting),
            about=waiting[0][0] if len(names) == 1 else None,
            is_kept=True,
        )
    for uid, refusal in refused.newest(views, namespace).items():
        workload = views.objects.by_uid(uid)
        if workload is None or refusal.is_past or not sees(workload):
            continue
        yield Reason(
            text=f"pods of {questions.named(workload)} are refused: {refusal.message}",
            revision=refusal.event.revision,
            about=workload,
            is_kept=True,
        )


async def _of_writes(evidence: ExplainedMoment, namespace: str) -> list[Reason]:
    """The last refused writes of objects that have not changed since, as an audit log has them.

    Of each kind those objects are looked at about which something was recorded last.
    """
    newest: list[tuple[ObjectKey, Event]] = []
    for kind in KINDS:
        keys = await evidence.log.keys(
            evidence.info.id,
            KeyFilter(*kind, namespace=namespace),
            until=evidence.views.revision,
            limit=evidence.bounds.places_max,
            newest_first=True,
        )
        keys = [*filter(evidence.sight.sees_key, keys)]
        events = await evidence.log.read_object(
            evidence.info.id, *keys, until=evidence.views.revision, limit=EVENTS_MAX
        )
        for key, of_key in groupby(events, key=attrgetter("key")):
            event = refused_writes.newest([*of_key])
            # A refused object without a name is reported with the workload or pod that asks for it.
            if event is not None and key.name and evidence.sight.sees(event):
                newest.append((key, event))
    newest.sort(key=lambda one: -one[1].revision)
    made = [
        Reason(
            text=f"{questions.named(key)}: {refused_writes.sentence(event)}",
            revision=event.revision,
            # No question finds an object that was never stored.
            about=key if evidence.views.objects.get(key) else None,
            is_kept=True,
        )
        for key, event in newest[:NAMES_MAX]
    ]
    if (left := len(newest) - NAMES_MAX) > 0:
        made.append(Reason(text=f"writes of {counts.of(left, 'more object')} were refused"))
    return made
