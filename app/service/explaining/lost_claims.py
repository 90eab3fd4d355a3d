"""Claims that were taken away from a running pod: the user who did it, and the present holders.

No kubelet ends a pod for that: the pod goes on with devices that the scheduler gives to others.
"""

from collections.abc import Iterator, Sequence

from app.analysis.explain import sources
from app.analysis.explain.reasons import Reason, listed
from app.analysis.recordings import uncertainty
from app.domain.controllers import pods
from app.domain.controllers.pods import PodFacts
from app.domain.controllers.resources import claim_key
from app.domain.log import Event, EventType, ObjectKey
from app.domain.values import counts
from app.domain.values.fields import core, dra, meta
from app.domain.values.json_tree import JsonObject
from app.service.explaining.evidence import ExplainedMoment

RUNNING = "Running"


async def unseen(evidence: ExplainedMoment, events: Sequence[Event], tree: JsonObject) -> list[str]:
    """The claims of a pod that was bound, of which a recording shows no allocation for it.

    A scheduler binds after it has reserved the pod's claims, and a kubelet starts no pod without
    them. `events` are the states of the pod, newest first.
    """
    created = sources.creation(events)
    was_bound = created is not None and core.has_node(tree) and not core.has_node(created.object)
    if not was_bound or not sources.is_recorded(events) or core.is_finished(tree):
        return []
    facts = pods.facts(tree)
    return [
        named.name
        for named in pods.named_claims(facts)
        if named.name
        and not _is_had(evidence.views.objects.get(_key(facts, named.name)), facts)
        and _loss(await evidence.changes(_key(facts, named.name)), facts) == (None, None)
    ]


def unseen_reasons(names: Sequence[str]) -> list[Reason]:
    """A reason for each claim of which no allocation was recorded."""
    return [
        Reason(
            text=f"claim {name}: no allocation for the pod was recorded, which was bound all the "
            "same",
            is_kept=True,
            unexplained=uncertainty.NO_ALLOCATION,
        )
        for name in names
    ]


def names(evidence: ExplainedMoment, tree: JsonObject) -> list[str]:
    """The claims of a running pod that are not allocated and reserved for it."""
    if meta.phase(tree) != RUNNING or meta.is_deleting(tree):
        return []
    facts = pods.facts(tree)
    return [
        named.name
        for named in pods.named_claims(facts)
        if named.name and not _is_had(evidence.views.objects.get(_key(facts, named.name)), facts)
    ]


async def reasons(
    evidence: ExplainedMoment, tree: JsonObject, unseen: Sequence[str]
) -> list[Reason]:
    """A reason for each claim that a running pod does not have any more, but the unseen ones."""
    facts = pods.facts(tree)
    return [
        _reason(evidence, name, *_loss(await evidence.changes(_key(facts, name)), facts))
        for name in names(evidence, tree)
        if name not in unseen
    ]


def _key(facts: PodFacts, name: str) -> ObjectKey:
    return claim_key(facts.namespace, name)


def _is_had(claim: JsonObject | None, facts: PodFacts) -> bool:
    return (
        claim is not None
        and pods.is_allocated(claim)
        and pods.is_reserved_for(claim, facts.uid, facts.group)
    )


def _loss(events: Sequence[Event], facts: PodFacts) -> tuple[Event | None, Event | None]:
    """The write that took a claim away from the pod, and the last state in which the pod had it."""
    taking: Event | None = None
    for event in events:
        if event.type is not EventType.OBJECT_DELETED and _is_had(event.object, facts):
            return taking, event
        taking = event
    return None, None


def _reason(
    evidence: ExplainedMoment, name: str, taking: Event | None, last: Event | None
) -> Reason:
    if taking is None or last is None:
        text = f"claim {name} is not allocated and reserved for the pod, which runs all the same"
        return Reason(text=text, is_kept=True)
    how = "was deleted" if taking.type is EventType.OBJECT_DELETED else "was taken away from it"
    children = tuple(_devices(evidence, last))
    made = sources.made(taking, f"claim {name} {how} while it runs", *children)
    return Reason(
        text=made.text, children=children, revision=made.revision, about=made.about, is_kept=True
    )


def _devices(evidence: ExplainedMoment, last: Event) -> Iterator[Reason]:
    """The devices with which the pod goes on, and the claims that have them now."""
    for result in dra.results(last.object):
        holders = evidence.views.allocated.holders(result.id)
        text = f"it goes on with {result.text}, which "
        if holders:
            now = listed(sorted(holders), len(holders))
            text += f"{counts.plural(len(holders), 'claim')} {now} got meanwhile"
        else:
            text += "another claim may get"
        yield Reason(text=text, is_kept=True)
