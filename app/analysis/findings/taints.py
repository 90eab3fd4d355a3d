"""Taints of devices: why they evict no pod, or when, and which of them evicted pods."""

import heapq
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from operator import attrgetter

from app.analysis.chronicle import Chronicle
from app.analysis.explain import sources, tainted
from app.analysis.explain.reasons import listed
from app.analysis.explain.tainted import TaintFate
from app.analysis.findings.report import OBJECTS_SHOWN_MAX, Finding, FindingKind, Severity, Subject
from app.analysis.verify.invariants.stock import Evictor
from app.analysis.views import LiveViews
from app.domain.controllers.eviction.reconciler import COMPONENT, CONDITION_REASON
from app.domain.controllers.eviction.taints import NO_EXECUTE
from app.domain.controllers.quirks import ControllerQuirks
from app.domain.controllers.resources import claim_key
from app.domain.devices import pools
from app.domain.devices.model import Device, Taint
from app.domain.log import EventType, ObjectKey, Revision, records
from app.domain.values import api_resources, counts
from app.domain.values.fields import dra
from app.domain.values.timestamps import Instant
from projections.timeline import Entry
from projections.timeline_kinds import AFTER, POD_DELETION, POD_EVICTED

EVICTORS_MAX = 5
"""The number of taints that a finding names; the others are counted."""


@dataclass(slots=True)
class _Spared:
    """Claims on which one taint has the same effect; `due` is the first eviction, if any."""

    due: Instant | None = None
    claims: dict[ObjectKey, None] = field(default_factory=dict)


def in_use(
    views: LiveViews, quirks: ControllerQuirks, now: Instant, wanted: str = ""
) -> Iterator[Finding]:
    """The claims whose pods continue with a tainted device, by taint and reason.

    With `wanted`, only those of that namespace.
    """
    groups: dict[tuple[str, str, tuple[str, ...]], _Spared] = {}
    for device in _tainted(views):
        for holder in views.allocated.holders(device.id):
            namespace, _, name = holder.rpartition("/")
            if wanted not in ("", namespace):
                continue
            key = claim_key(namespace, name)
            tree = views.objects.get(key)
            for result in dra.results(tree) if tree is not None else ():
                if tree is None or result.id != device.id:
                    continue
                for taint in device.taints:
                    verdict = tainted.judge(views, tree, result, taint, quirks, now)
                    if taint.effect != NO_EXECUTE or verdict.fate is TaintFate.EVICTED:
                        continue
                    why = "" if verdict.fate is TaintFate.DUE else _why(verdict.text)
                    group = groups.setdefault((taint.text, why, verdict.issues), _Spared())
                    group.claims[key] = None
                    if verdict.due is not None:
                        group.due = min(verdict.due, group.due or verdict.due)
    for (taint_text, why, issues), group in groups.items():
        yield _finding(views, taint_text, why, issues, group)


def _tainted(views: LiveViews) -> Iterator[Device]:
    """The devices of the newest generations that have a NoExecute taint."""
    for place in views.inventory.pool_ids():
        for resource_slice in pools.newest(views.inventory.slices_of(place)):
            for device in resource_slice.devices:
                if any(taint.effect == NO_EXECUTE for taint in device.taints):
                    yield device


def _why(text: str) -> str:
    """The reason without the names of requests, which differ from claim to claim."""
    return _FOR_EVER if text.startswith("tolerated for ever") else text


_FOR_EVER = "they tolerate it for ever"


def _finding(
    views: LiveViews, taint_text: str, why: str, issues: tuple[str, ...], group: _Spared
) -> Finding:
    count = len(group.claims)
    text = f"{counts.of(count, 'claim')} {counts.verb(count, 'has')} a device tainted "
    text += f"{taint_text} and {counts.verb(count, 'goes')} on: "
    if group.due is not None:
        first = "" if count == 1 else "for the first one "
        text += f"the toleration ends {first}at {sources.when(group.due)}"
    elif why == _FOR_EVER and count == 1:
        text += "it tolerates it for ever"
    else:
        text += why
    if issues:
        text += f" (known {counts.plural(len(issues), 'issue')} {', '.join(issues)})"
    events = [event for key in group.claims if (event := views.objects.event(key)) is not None]
    newest = sorted(events, key=lambda event: -event.revision)[:OBJECTS_SHOWN_MAX]
    return Finding(
        kind=FindingKind.TAINTED_DEVICES,
        severity=Severity.WARNING if issues else Severity.NOTICE,
        text=text,
        count=count,
        present=count,
        first=min(event.revision for event in events),
        last=max(event.revision for event in events),
        objects=tuple(Subject.of(event.key, views.revision) for event in newest),
    )


def evictions(chronicle: Chronicle, until: Revision) -> Iterator[tuple[str, ObjectKey, Revision]]:
    """The evictions up to a revision: the condition of the pod, the pod, and the revision.

    A pod that had the condition when it was first recorded has no entry about it. Its eviction is
    that of the deletion which rests on the condition.
    """
    marked: set[ObjectKey] = set()
    entries = heapq.merge(
        chronicle.of_kind(POD_EVICTED, until=until),
        chronicle.of_kind(POD_DELETION, until=until),
        key=attrgetter("revision"),
    )
    for entry in entries:
        if entry.kind == POD_EVICTED:
            marked.add(entry.subject)
            yield entry.text, entry.subject, entry.revision
        elif entry.subject in marked:
            marked.discard(entry.subject)
        elif entry.text.startswith(AFTER):
            yield entry.text.removeprefix(AFTER), entry.subject, entry.revision


def unseen_evictions(
    chronicle: Chronicle, views: LiveViews, until: Revision, namespace: str = ""
) -> Iterator[Finding]:
    """The pods that the eviction controller wrote by requests whose content was not recorded.

    It writes no pod for another reason than a tainted device. Which taint it was is not known; the
    rules that were written shortly before the first of these requests are named.
    """
    shown = {pod for _, pod, _ in evictions(chronicle, until)}
    writes = [*chronicle.of_kind(EventType.GAP_OBSERVED.value, until=until)]
    pods: dict[ObjectKey, Revision] = {}
    first: Entry | None = None
    for entry in writes:
        key = entry.subject
        is_of_pod = key[:2] == api_resources.PODS and key not in shown
        if is_of_pod and _is_of_controller(entry):
            first = first or entry
            if namespace in ("", key.namespace):
                pods[key] = entry.revision
    if first is None or not pods:
        return
    rules = heapq.merge(
        (one for one in writes if one.subject[:2] == api_resources.DEVICE_TAINT_RULES),
        chronicle.of_kind("RuleCreated", until=until),
        chronicle.of_kind("RuleChanged", until=until),
        key=attrgetter("revision"),
    )
    before = [one for one in rules if one.revision < first.revision and not _is_of_controller(one)][
        -EVICTORS_MAX:
    ]
    newest = sorted(pods.items(), key=lambda one: -one[1])
    yield Finding(
        kind=FindingKind.EVICTED_PODS,
        severity=Severity.WARNING,
        text=f"{_count({*pods})} {counts.verb(len(pods), 'was')} evicted by {COMPONENT} for a "
        "taint that was not recorded",
        count=len(pods),
        present=sum(views.objects.event(pod) is not None for pod in pods),
        first=min(pods.values()),
        last=max(pods.values()),
        objects=tuple(Subject.of(*one) for one in newest[:OBJECTS_SHOWN_MAX]),
        causes=tuple(_write_text(one) for one in reversed(before)),
    )


def _is_of_controller(entry: Entry) -> bool:
    return entry.actor.rpartition(":")[2] == COMPONENT


def _write_text(write: Entry) -> str:
    name = records.named_author(write.actor)
    what = f"before that, DeviceTaintRule {write.subject.name} was written ({write.verb})"
    return f"{what}, by {name} at {sources.when(Instant(write.time))}"


def evictor_lines(
    chronicle: Chronicle, text: str, evictions: Sequence[tuple[ObjectKey, Revision]]
) -> tuple[str, ...]:
    """A line for each taint that evicted pods, those of most pods first.

    `text` is the condition of the pods; pods that were evicted for another reason are left out. A
    pod with several taints counts for each of them.
    """
    if not text.startswith(CONDITION_REASON):
        return ()
    alike: dict[tuple[Evictor, ...], set[ObjectKey]] = {}
    for pod, revision in evictions:
        alike.setdefault(chronicle.evictors(revision), set()).add(pod)
    unknown = alike.pop((), set())
    pods: dict[Evictor, set[ObjectKey]] = {}
    slices: dict[Evictor, set[str]] = {}
    for evictors, evicted in alike.items():
        for each in evictors:
            # Devices in several slices, tainted by several writes, have one taint of a driver.
            taint = each._replace(slice="", written=Revision(0))
            pods.setdefault(taint, set()).update(evicted)
            slices.setdefault(taint, set()).update({each.slice} - {""})
    ranked = sorted(pods, key=lambda each: (-len(pods[each]), each))
    named = [
        f"{_count(pods[one])} by {_evictor_text(one, sorted(slices.get(one, ())))}"
        for one in ranked
    ]
    return tuple(_bounded(named, unknown))


def _bounded(named: Sequence[str], unknown: set[ObjectKey]) -> Iterator[str]:
    yield from named[:EVICTORS_MAX]
    if len(named) > EVICTORS_MAX:
        yield f"and by {counts.of(len(named) - EVICTORS_MAX, 'more taint')}"
    if unknown:
        yield f"{_count(unknown)} by a taint that is not known"


def _count(pods: set[ObjectKey]) -> str:
    return counts.of(len(pods), "pod")


def _evictor_text(evictor: Evictor, slices: Iterable[str]) -> str:
    """The taint with who set it: `rule maintenance, taint example.com/unhealthy:NoExecute`."""
    taint = Taint(key=evictor.key, value=evictor.value, effect=NO_EXECUTE).text
    names = [*slices]
    if evictor.rule:
        source = f"rule {evictor.rule}"
    else:
        where = f" in {counts.plural(len(names), 'slice')} {listed(names, len(names))}"
        source = f"driver {evictor.driver}{where if names else ''}"
    return f"{source}, taint {taint}{', which had just ended' if evictor.is_over else ''}"
