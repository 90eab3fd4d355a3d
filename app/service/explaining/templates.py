"""Claims of a waiting pod whose templates were changed after the claims were created.

A claim keeps the spec that its template had when the claim was created. After a repair of the
template, the pod must be created again.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from app.analysis.explain import sources
from app.analysis.explain.reasons import NAMES_MAX, Reason, listed
from app.analysis.object_history import flat
from app.domain.controllers import pods
from app.domain.controllers.resources import claim_key
from app.domain.log import Event, EventType, ObjectKey, Revision
from app.domain.log.records import BASELINE_VERB
from app.domain.values import api_resources, counts, timestamps
from app.domain.values.fields import dra, meta
from app.domain.values.json_tree import JsonObject, JsonView
from app.service.explaining.evidence import ExplainedMoment


async def reasons(evidence: ExplainedMoment, pod: JsonObject) -> list[Reason]:
    """The writes of templates after the claims of the pod were made from them."""
    objects = evidence.views.objects
    reasons: list[Reason] = []
    for claim, key in _made(pod):
        tree, template = objects.get(claim), objects.get(key)
        if tree is None or template is None or dra.allocation(tree) is not None:
            continue
        differences = _differences(meta.spec(tree), _claim_spec(template))
        if not differences:
            continue
        # Views of a past moment hold only the last event of a claim, so the log is read.
        born = sources.creation(await evidence.changes(claim))
        made = objects.created(claim) if born is None else born.revision
        written = _written_later(await evidence.changes(key), tree, made)
        if written is not None and evidence.sight.sees(written):
            reasons.append(_reason(key, written, claim.name, differences))
    return reasons


async def replaced(evidence: ExplainedMoment, pod: JsonObject) -> list[Reason]:
    """The writes of templates before the claims of the pod, with what they asked for before.

    Where older claims that ask for that have devices, their pods are named.
    """
    reasons: list[Reason] = []
    for claim, key in _made(pod):
        tree, template = evidence.views.objects.get(claim), evidence.views.objects.get(key)
        if tree is None or template is None or dra.allocation(tree) is not None:
            continue
        older = [*_satisfied(evidence, key, _claim_spec(template))]
        change = _last_change(await evidence.changes(key))
        if change is None or not evidence.sight.sees(change[0]):
            continue
        written, former = change
        born = None if older else sources.creation(await evidence.changes(claim))
        if not older and (born is None or written.revision > born.revision):
            continue
        text = f"template {key.namespace}/{key.name} was {_how(written)} {sources.by(written)}"
        if older:
            names = listed([name for name, _ in older], len(older))
            text += f"; as it was before, {counts.plural(len(older), 'pod')} {names} got devices "
            text += "with it"
        before, now = dict(flat(_claim_spec(former.object))), dict(flat(_claim_spec(template)))
        differences = [
            f"{path}: {_value(before.get(path))} before, {_value(now.get(path))} since"
            for path in dict.fromkeys((*before, *now))
            if before.get(path) != now.get(path)
        ]
        reasons.append(_with_fields(Reason(text=text, about=key), written, differences))
    return reasons


def _satisfied(
    evidence: ExplainedMoment, template: ObjectKey, wanted: JsonView
) -> Iterator[tuple[str, ObjectKey]]:
    """The pods that have devices by a claim of the template that asks for something else."""
    objects = evidence.views.objects
    for key in objects.keys(*api_resources.PODS, namespace=template.namespace):
        pod = objects.get(key)
        for claim, source in _made(pod) if pod is not None else ():
            tree = objects.get(claim) if source == template else None
            if tree is None or dra.allocation(tree) is None:
                continue
            if _differences(meta.spec(tree), wanted):
                yield key.name, claim


def _last_change(events: Sequence[Event]) -> tuple[Event, Event] | None:
    """The write that gave a template its present claim spec, and the state before it."""
    kept = [event for event in events if event.type is not EventType.OBJECT_DELETED]
    for after, before in pairwise(kept):
        if _claim_spec(after.object) != _claim_spec(before.object):
            return after, before
    return None


async def too_late(evidence: ExplainedMoment, pod: JsonObject) -> list[Reason]:
    """The writes of tolerations to templates after the claims of an evicted pod were made."""
    reasons: list[Reason] = []
    for claim, key in _made(pod):
        states = await evidence.changes(claim)
        template, born = evidence.views.objects.get(key), sources.creation(states)
        if template is None or born is None:
            continue
        differences = [
            text
            for text in _differences(meta.spec(born.object), _claim_spec(template))
            if "toleration" in text.partition(":")[0]
        ]
        if not differences:
            continue
        written = _written_later(await evidence.changes(key), born.object, born.revision)
        if written is not None and evidence.sight.sees(written):
            reasons.append(_reason(key, written, claim.name, differences))
    return reasons


def _made(pod: JsonView) -> Iterator[tuple[ObjectKey, ObjectKey]]:
    """The claims that were made for a pod, each with its template."""
    facts = pods.facts(pod)
    for entry in facts.entries:
        named = pods.entry_claim(facts, entry)
        if entry.template and named.name:
            template = (*api_resources.RESOURCE_CLAIM_TEMPLATES, facts.namespace, entry.template)
            yield claim_key(facts.namespace, named.name), ObjectKey(*template)


def _written_later(events: Sequence[Event], claim: JsonView, made: Revision) -> Event | None:
    """The write that gave a template its present claim spec, if the claim is older; else None.

    A claim may differ from its template for other reasons: a webhook changed it, or the template
    was recorded as a user wrote it, without defaults. So the spec in the template must have changed
    within the history. If it did not, the creation time of the template must be later.
    """
    if not events:
        return None
    now = _claim_spec(events[0].object)
    written = events[0]
    for event in events:
        if event.type is EventType.OBJECT_DELETED:
            continue
        if _claim_spec(event.object) != now:
            return written if written.revision > made else None
        if event.revision < made and event.stamp.verb != BASELINE_VERB:
            return None
        written = event
    times = [meta.creation_timestamp(each) for each in (claim, written.object)]
    instants = [timestamps.instant_of(text) for text in times]
    claimed, born = instants
    return written if claimed is not None and born is not None and claimed < born else None


def _claim_spec(template: JsonView) -> JsonView:
    """The spec of the claims that a template makes."""
    return meta.spec(meta.spec(template))


def _reason(key: ObjectKey, written: Event, claim: str, differences: Sequence[str]) -> Reason:
    text = f"template {key.namespace}/{key.name} was {_how(written)} {sources.by(written)}, after "
    text += f"claim {claim} was made from it: a claim keeps what it asks for, until it is deleted"
    return _with_fields(Reason(text=text, about=key), written, differences)


def _how(written: Event) -> str:
    return "made anew" if written.type is EventType.OBJECT_CREATED else "changed"


def _with_fields(reason: Reason, written: Event, differences: Sequence[str]) -> Reason:
    """The reason with the write behind it and the first fields that differ."""
    children = [Reason(text=one) for one in differences[:NAMES_MAX]]
    if (more := len(differences) - NAMES_MAX) > 0:
        children.append(Reason(text=f"{more} more {counts.plural(more, 'field')} differ"))
    return replace(reason, revision=written.revision, is_kept=True, children=tuple(children))


def _differences(claim: JsonView, template: JsonView) -> list[str]:
    """The fields in which the spec of a claim differs from that in its template."""
    then, now = dict(flat(claim)), dict(flat(template))
    return [
        f"{path}: the claim has {_value(then.get(path))}, the template {_value(now.get(path))}"
        for path in dict.fromkeys((*then, *now))
        if then.get(path) != now.get(path)
    ]


def _value(value: object) -> str:
    return "none" if value is None else str(value)
