"""Findings about the past: why pods waited that wait no more, and who violated invariants."""

import dataclasses
from collections.abc import MutableMapping
from dataclasses import dataclass, field
from typing import TypeAlias

from msgspec.structs import replace

from app.analysis.explain import sources
from app.analysis.findings import waits_over
from app.analysis.findings.report import Finding, FindingKind, Findings, Subject
from app.domain.errors import InputError
from app.domain.log import Event, EventType, ObjectKey, Revision
from app.service.explaining.evidence import ExplainedMoment
from app.service.explaining.waiting import in_turn, with_causes

FormerCauses: TypeAlias = MutableMapping[tuple[int, ObjectKey, Revision], tuple[str, ...]]
"""The causes of former refusals, by the life of the history, the pod and the refusal's revision."""

FORMER_LINES_MAX = 3
"""The lines about a pod that waits no more; the first ones say most."""

BEGINNINGS_MAX = 3
"""The writes that are named for one rule, the newest ones."""

_VIOLATED = frozenset(
    (FindingKind.BROKEN_INVARIANT, FindingKind.DOUBTED_INVARIANT, FindingKind.KNOWN_ISSUE)
)
_VERBS = {
    EventType.OBJECT_CREATED: "was created",
    EventType.OBJECT_UPDATED: "was changed",
    EventType.OBJECT_DELETED: "was deleted",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class FormerRefusals:
    """The bounds of what is found out about pods that wait no more, and what earlier answers found.

    At most `pods_max` pods are looked at, each as of its last refusal. The state of then is rebuilt
    for that, of at most `objects_max` objects in all.
    """

    pods_max: int
    objects_max: int
    kept: FormerCauses = field(default_factory=dict)

    def share(self, objects: int) -> int:
        """The number of pods for a state of so many objects."""
        return min(self.pods_max, self.objects_max // max(1, objects))


async def with_former_causes(
    evidence: ExplainedMoment, answer: Findings, former: FormerRefusals, life: int | None
) -> Findings:
    """The findings; those about pods that wait no more name the causes of their last refusals.

    Behind them is how each of these pods came to wait no more, as far as the log shows it.
    The newest pod of each finding comes before the second of any. What is found out is kept for
    this life of the history; without one, as for a reader who may not see all, it is not.
    """
    kept = {} if life is None else former.kept
    asking = [number for number, item in enumerate(answer.items) if _is_former(item)]
    sizes = [len(answer.items[number].objects) for number in asking]
    shares = in_turn(asking, sizes, former.share(evidence.views.objects.total))
    items = list(answer.items)
    for number in asking:
        item = items[number]
        pods_of: dict[str, list[str]] = {}
        ends: list[str] = []
        for subject in item.objects[: shares[number]]:
            place = life or 0, subject.key, subject.revision
            if (causes := kept.get(place)) is None:
                causes = kept[place] = await _former(evidence, answer, item, subject)
            for cause in causes[:FORMER_LINES_MAX]:
                pods_of.setdefault(cause, []).append(_then(subject))
            ends += await _ends(evidence, subject)
        lines = [f"{', '.join(names)}: {cause}" for cause, names in pods_of.items()]
        items[number] = replace(item, causes=(*lines, *ends))
    return replace(answer, items=tuple(items))


async def _ends(evidence: ExplainedMoment, subject: Subject) -> list[str]:
    """The end of the wait of a pod, and the write after which its last attempt was made."""
    end = waits_over.end_of(await evidence.changes(subject.key), subject.revision)
    if end is None or not evidence.sight.sees(end.event):
        return []
    line = f"{subject.namespace}/{subject.name} waits no more since revision {end.event.revision}: "
    line += end.text
    if end.is_placed:
        decisions = await evidence.decisions(subject.key)
        revision = waits_over.waking_revision(decisions, subject.revision, end)
        for event in await _events_at(evidence, revision):
            woken = waits_over.waking_text(event)
            line += f", when it was tried again after {woken}" if woken else ""
    return [line]


async def _events_at(evidence: ExplainedMoment, revision: Revision | None) -> list[Event]:
    """The event of a revision, if the reader may see it."""
    if revision is None:
        return []
    page = await evidence.log.read(
        evidence.info.id, after=Revision(revision - 1), until=revision, limit=1
    )
    return [event for event in page if evidence.sight.sees(event)]


def _then(subject: Subject) -> str:
    return f"{subject.namespace}/{subject.name} at revision {subject.revision}"


def _is_former(item: Finding) -> bool:
    """Whether the finding is about pods that wait no more, and does not say yet for what."""
    return item.kind is FindingKind.WAITING_PODS and not item.present and not item.causes


async def _former(
    evidence: ExplainedMoment, answer: Findings, item: Finding, subject: Subject
) -> tuple[str, ...]:
    """The causes of the refusal of a pod at a revision."""
    try:
        views = await evidence.views_at(subject.revision)
    except InputError:
        # The state of then has more objects than are folded for an answer.
        return ()
    rules = await evidence.rules_at(views)
    then = dataclasses.replace(evidence, views=views, rules=rules, time=None)
    alone = replace(item, present=1, objects=(replace(subject, alike=0),))
    explained = await with_causes(then, replace(answer, items=(alone,)), 1)
    return explained.items[0].causes


async def with_authors(evidence: ExplainedMoment, answer: Findings) -> Findings:
    """The findings; those about violated invariants say with which writes the violations began."""
    items = [await _with_authors(evidence, item) for item in answer.items]
    return replace(answer, items=tuple(items))


async def _with_authors(evidence: ExplainedMoment, item: Finding) -> Finding:
    if item.kind not in _VIOLATED or item.causes:
        return item
    lines = []
    for revision in item.begins[:BEGINNINGS_MAX]:
        lines += [_line(event) for event in await _events_at(evidence, revision)]
    return replace(item, causes=tuple(line for line in lines if line))


def _line(event: Event) -> str:
    """The write, in a sentence; empty for an event that is none."""
    verb = _VERBS.get(event.type, "")
    if not verb:
        return ""
    return f"it began when {event.key} {verb} {sources.by(event)} (revision {event.revision})"
