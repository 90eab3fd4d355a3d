"""Findings about pools and objects, quotas, violated invariants, and lacks of a recording."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice

from app.analysis.chronicle import Chronicle
from app.analysis.explain import quota_use
from app.analysis.explain.hardware import pools as hardware
from app.analysis.explain.hardware import rules as selection
from app.analysis.explain.nearby import successors
from app.analysis.explain.reasons import NAMES_MAX, listed
from app.analysis.findings.report import OBJECTS_SHOWN_MAX, Finding, FindingKind, Severity, Subject
from app.analysis.verify.invariants import RULES, Violation
from app.analysis.verify.invariants import ViolationKind as Gravity
from app.analysis.views import LiveViews
from app.domain.devices.pools import PoolState
from app.domain.log import Event, ObjectKey, Revision
from app.domain.log.doubts import Affects, Doubt
from app.domain.values import api_resources, counts
from app.domain.values.fields import dra, meta
from app.domain.values.identifiers import DeviceId
from app.domain.values.timestamps import Instant

_OF_GRAVITY = {
    Gravity.BROKEN: (FindingKind.BROKEN_INVARIANT, Severity.ERROR),
    Gravity.LATE: (FindingKind.BROKEN_INVARIANT, Severity.ERROR),
    Gravity.OUTSIDE: (FindingKind.BROKEN_INVARIANT, Severity.WARNING),
    Gravity.KNOWN: (FindingKind.KNOWN_ISSUE, Severity.WARNING),
    Gravity.UNSURE: (FindingKind.DOUBTED_INVARIANT, Severity.NOTICE),
}
_QUALIFIED = {
    Gravity.LATE: " (restored late)",
    Gravity.OUTSIDE: " (broken by what a driver or user changed)",
    Gravity.KNOWN: " (a known mistake of the release)",
}

_PUBLISHED = "allocated-device-published"
"""The rule that a device is published as long as it is allocated."""

NOTHING_KNOWN = Finding(
    kind=FindingKind.NOTHING_KNOWN,
    severity=Severity.NOTICE,
    text="nothing is known before revision 1, with which the history begins",
    count=0,
    present=0,
    first=Revision(0),
    last=Revision(0),
)
"""The only finding at a moment before the first event."""

_EFFECTS = {
    api_resources.RESOURCE_SLICES: ("ResourceSlice", "devices of {it} can still be allocated"),
    api_resources.DEVICE_CLASSES: ("DeviceClass", "claims can still get devices of {it}"),
    api_resources.DEVICE_TAINT_RULES: ("DeviceTaintRule", "devices are still tainted by {it}"),
    api_resources.RESOURCE_SLICE_PATCHES: (
        "ResourceSlicePatch",
        "devices are still changed by {it}",
    ),
    api_resources.NODES: ("Node", "pods can still be placed on {it}"),
}
"""The kinds, and the effect that objects of them have until they are gone."""


def pools(views: LiveViews) -> Iterator[Finding]:
    """Pools whose devices cannot be allocated, grouped by problem."""
    groups: dict[tuple[PoolState, str], list[tuple[ObjectKey, Revision]]] = {}
    causes: dict[tuple[PoolState, str], list[str]] = {}
    for place in views.inventory.pool_ids():
        pool = views.inventory.pool(place)
        if pool is None or pool.usable:
            continue
        slices = [
            ObjectKey(*api_resources.RESOURCE_SLICES, "", each.name)
            for each in views.inventory.slices_of(place)
        ]
        events = [event for key in slices if (event := views.objects.event(key)) is not None]
        newest = max(events, key=lambda event: event.revision, default=None)
        if newest is not None:
            group = groups.setdefault((pool.state, pool.problem), [])
            group.append((newest.key, newest.revision))
            lines = causes.setdefault((pool.state, pool.problem), [])
            if len(lines) < NAMES_MAX:
                lines += (one.text for one in hardware.doubled(views, place))
    for (state, problem), keys in groups.items():
        count = len(keys)
        noun = "1 pool is" if count == 1 else f"{count} pools are"
        yield Finding(
            kind=FindingKind.UNUSABLE_POOLS,
            severity=Severity.ERROR if state is PoolState.INVALID else Severity.WARNING,
            text=f"{noun} {state.value}" + (f": {problem}" if problem else ""),
            count=count,
            present=count,
            first=min(revision for _, revision in keys),
            last=max(revision for _, revision in keys),
            objects=tuple(Subject.of(key, views.revision) for key, _ in keys[:OBJECTS_SHOWN_MAX]),
            causes=tuple(causes[state, problem][:NAMES_MAX]),
        )


def patches(views: LiveViews) -> Iterator[Finding]:
    """Patches that are not applied because their selectors fail, grouped by problem."""
    groups: dict[tuple[str, str], int] = {}
    for problem in views.inventory.patch_problems():
        place = problem.patch, problem.problem
        groups[place] = groups.get(place, 0) + 1
    for (name, text), count in groups.items():
        key = ObjectKey(*api_resources.RESOURCE_SLICE_PATCHES, "", name)
        event = views.objects.event(key)
        revision = event.revision if event is not None else views.revision
        yield Finding(
            kind=FindingKind.IDLE_PATCHES,
            severity=Severity.WARNING,
            text=f"patch {name} changes nothing on {counts.of(count, 'device')}: {text}",
            count=count,
            present=count,
            first=revision,
            last=revision,
            objects=(Subject.of(key, views.revision),),
        )


def rules(views: LiveViews) -> Iterator[Finding]:
    """Rules that select no device, each with the part of its selector that nothing matches.

    A rule that selects a device which is only held, and not published any more, has an effect.
    """
    held: frozenset[DeviceId] | None = None
    for key in views.objects.keys(*api_resources.DEVICE_TAINT_RULES):
        event = views.objects.event(key)
        if event is None:
            continue
        for reason in selection.switched_off(views):
            yield _of_rule(views, event, Severity.WARNING, f"has no effect: {reason.text}")
        for reason in selection.missed(views, event.object):
            held = selection.held(views) if held is None else held
            selector = dra.device_selector(event.object)
            if any(selection.selects(selector, device) for device in held):
                continue
            yield _of_rule(views, event, Severity.WARNING, f"has no effect: {reason.text}")


def announcing(views: LiveViews) -> Iterator[Finding]:
    """Rules with effect None that select devices: they keep nobody off, and evict nobody."""
    places: set[DeviceId] | None = None
    for key in views.objects.keys(*api_resources.DEVICE_TAINT_RULES):
        event = views.objects.event(key)
        rule = views.inventory.rules().get(key.name)
        if event is None or rule is None or rule.taint.effect != "None":
            continue
        if places is None:
            places = {each.id for one in views.inventory.slices() for each in one.devices}
        count = sum(map(rule.matches, places))
        if count:
            text = f"only announces: its effect is None, so {counts.of(count, 'device')} that it "
            text += "selects can be allocated, and nobody is evicted"
            yield _of_rule(views, event, Severity.NOTICE, text)


def _of_rule(views: LiveViews, event: Event, severity: Severity, text: str) -> Finding:
    """A finding about one rule; `text` follows its name."""
    return Finding(
        kind=FindingKind.IDLE_RULES,
        severity=severity,
        text=f"rule {event.key.name} {text}",
        count=1,
        present=1,
        first=event.revision,
        last=event.revision,
        objects=(Subject.of(event.key, views.revision),),
    )


def invariants(
    chronicle: Chronicle,
    views: LiveViews,
    until: Revision,
    now: Instant,
    namespace: str = "",
    *,
    sees: Callable[[ObjectKey], bool] = lambda _: True,
) -> Iterator[Finding]:
    """Violated rules, one finding for each rule and severity; a state that lasts does until now.

    Left out are violations by objects that the reader does not see.
    """
    groups: dict[tuple[str, Gravity], list[Violation]] = {}
    for violation in chronicle.violations(until=until, now=now):
        if not all(map(sees, violation.objects)):
            continue
        if namespace and all(key.namespace != namespace for key in violation.objects):
            continue
        groups.setdefault((violation.rule, violation.kind), []).append(violation)
    for (rule, gravity), violations in groups.items():
        kind, severity = _OF_GRAVITY[gravity]
        lasting = [each for each in violations if each.end is None or each.end.revision > until]
        ends = [until if each.end is None else min(each.end.revision, until) for each in violations]
        newest = violations[-1]
        count = len(violations)
        times = "" if count == 1 else f", and {count - 1} more"
        sentence = RULES.get(rule, rule).rstrip(".")
        yield Finding(
            kind=kind,
            severity=severity,
            text=f"{newest.message}{times}; violated{_qualified(newest)}: {sentence}",
            count=count,
            present=len(lasting),
            first=violations[0].begin.revision,
            last=max(ends),
            objects=_subjects(violations, lasting, until),
            causes=_moved(views, lasting) if rule == _PUBLISHED else (),
            begins=_begins(lasting or violations),
        )


def _begins(violations: Sequence[Violation]) -> tuple[Revision, ...]:
    """The revisions at which the last of these violations began, the newest first."""
    revisions = dict.fromkeys(each.begin.revision for each in reversed(violations))
    return tuple(islice(revisions, OBJECTS_SHOWN_MAX))


def _moved(views: LiveViews, lasting: Iterable[Violation]) -> tuple[str, ...]:
    """The line for devices that claims hold and that are now published in other pools."""
    claims = dict.fromkeys(key for violation in lasting for key in violation.objects)
    moved = (
        one for key in claims for one in successors.of_claim(views, views.objects.get(key) or {})
    )
    text = successors.summary(moved)
    return (text,) if text else ()


def _qualified(violation: Violation) -> str:
    """The reason why a violation is less than a broken rule, as text."""
    if violation.kind is Gravity.UNSURE:
        return f" (unsure: {violation.doubt})" if violation.doubt else " (unsure)"
    return _QUALIFIED.get(violation.kind, "")


def unreadable(views: LiveViews, namespace: str = "") -> Iterator[Finding]:
    """Objects that the views could not interpret."""
    for key, problem in sorted(views.unreadable.items()):
        if namespace not in ("", key.namespace):
            continue
        event = views.objects.event(key)
        revision = event.revision if event is not None else Revision(0)
        yield Finding(
            kind=FindingKind.UNREADABLE_OBJECTS,
            severity=Severity.WARNING,
            text=f"{key} cannot be read: {problem}",
            count=1,
            present=1,
            first=revision,
            last=revision,
            objects=(Subject.of(key, revision),),
        )


def losses(recorded: Sequence[Doubt], until: Revision) -> Iterator[Finding]:
    """The lacks of the recording, one finding for each kind of object and loss."""
    for doubt in recorded:
        about = doubt.kind.removesuffix(".resource.k8s.io") or "all kinds"
        is_content = doubt.affects is Affects.CONTENT
        yield Finding(
            kind=FindingKind.LOSSES,
            severity=Severity.WARNING if is_content else Severity.NOTICE,
            text=f"the recording of {about} is incomplete: {doubt.text}",
            count=doubt.count,
            present=doubt.count,
            first=Revision(1),
            last=until,
        )


def _subjects(
    violations: Iterable[Violation], lasting: Sequence[Violation], until: Revision
) -> tuple[Subject, ...]:
    """The objects of violations: as they are where a violation lasts, else as it began."""
    subjects: dict[ObjectKey, Revision] = {}
    for violation in violations:
        for key in violation.objects:
            revision = until if violation in lasting else violation.begin.revision
            subjects.setdefault(key, revision)
    return tuple(Subject.of(*each) for each in list(subjects.items())[:OBJECTS_SHOWN_MAX])


def kept_objects(views: LiveViews) -> Iterator[Finding]:
    """One finding for each kind and set of finalizers that keep objects which are being deleted.

    Such objects still count.
    """
    for kind, (noun, effect) in _EFFECTS.items():
        groups: dict[tuple[str, ...], list[tuple[ObjectKey, Event]]] = {}
        for key in views.objects.keys(*kind):
            event = views.objects.event(key)
            if event is not None and meta.is_deleting(event.object):
                groups.setdefault(tuple(meta.finalizers(event.object)), []).append((key, event))
        for names, kept in groups.items():
            if names:
                yield _of_kept(views, noun, effect, names, kept)


def _of_kept(
    views: LiveViews,
    noun: str,
    effect: str,
    names: tuple[str, ...],
    kept: list[tuple[ObjectKey, Event]],
) -> Finding:
    count = len(kept)
    text = f"{counts.of(count, noun)} {counts.verb(count, 'is')} being deleted and kept by "
    text += f"{counts.plural(len(names), 'finalizer')} {listed(names, len(names))}: "
    text += effect.format(it="it" if count == 1 else "them")
    revisions = [event.revision for _, event in kept]
    newest = sorted(kept, key=lambda one: -one[1].revision)[:OBJECTS_SHOWN_MAX]
    return Finding(
        kind=FindingKind.KEPT_OBJECTS,
        severity=Severity.WARNING,
        text=text,
        count=count,
        present=count,
        first=min(revisions),
        last=max(revisions),
        objects=tuple(Subject.of(key, views.revision) for key, _ in newest),
    )


def exceeded_quotas(views: LiveViews, namespace: str = "") -> Iterator[Finding]:
    """One finding for each quota with more in use than it allows, as its status says.

    The API admits no object above a limit, so the limit was lowered, or the quota came later than
    the objects. A refused write leaves nothing in a history, except in one from an audit log.
    """
    for key in views.objects.keys(*api_resources.RESOURCE_QUOTAS, namespace or None):
        event = views.objects.event(key)
        if event is None or meta.is_deleting(event.object):
            continue
        over = [*quota_use.limits_exceeded_now(event.object)]
        if not over:
            continue
        amounts = ", ".join(f"{used} of {limit} {name}" for name, used, limit in over)
        yield Finding(
            kind=FindingKind.EXCEEDED_QUOTAS,
            severity=Severity.WARNING,
            text=f"quota {key.name} of namespace {key.namespace} allows less than is in use: "
            f"{amounts}; nothing is taken away, and no more can be made",
            count=1,
            present=1,
            first=event.revision,
            last=event.revision,
            objects=(Subject.of(key, views.revision),),
        )
