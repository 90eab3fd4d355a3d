"""Devices that the selectors of a pod would match without a later write of a slice or a patch.

The explanation of a selector says which part is false now, or which attribute is missing. When an
upgrade of a driver renames or changes an attribute, the cause is the write of a ResourceSlice; when
an administrator does, it is a ResourceSlicePatch.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice, pairwise
from typing import TYPE_CHECKING

from app.analysis.explain import choices, circumstances, sources, tainted
from app.analysis.explain.hardware import patches
from app.analysis.explain.node_reasons import NodeReason
from app.analysis.explain.reasons import NAMES_MAX, Reason, listed
from app.analysis.explain.remedies import SpecChange
from app.analysis.findings import outgrown as findings_outgrown
from app.analysis.findings.outgrown import (
    FormerState,
    LostDevices,
    SelectingRequest,
    wishes_of,
)
from app.analysis.views import LiveViews
from app.domain.allocation.reasons import causes
from app.domain.allocation.reasons.causes import CauseKind
from app.domain.controllers import pods
from app.domain.controllers.resources import claim_key
from app.domain.devices.inventory import Inventory
from app.domain.devices.model import Device, value_text
from app.domain.devices.pools import newest
from app.domain.log import Event, EventType, ObjectKey
from app.domain.values import api_resources, counts, identifiers, json_tree
from app.domain.values.fields import dra, meta
from app.domain.values.fields.dra import DeviceResult
from app.domain.values.identifiers import DeviceId
from app.domain.values.json_tree import JsonObject, JsonView
from app.service.explaining import former_circumstances
from app.service.explaining.evidence import ExplainedMoment

if TYPE_CHECKING:  # heavy: only findings read a chronicle
    from app.analysis.chronicle import Chronicle

_PUBLISHED = ("attributes", "capacity")

_ENDS = ("PatchChanged", "PatchDeleted", "ClassChanged", "ClassDeleted")
"""The kinds of entries of the timeline that end a state of a patch or a class."""

_HOW = {
    EventType.OBJECT_CREATED: "created",
    EventType.OBJECT_UPDATED: "written",
    EventType.OBJECT_DELETED: "deleted",
}
"""What the last event did with an object, in the passive."""


async def reasons(
    evidence: ExplainedMoment, pod: JsonObject, nodes: Sequence[NodeReason]
) -> list[Reason]:
    """The patches and the writes of slices because of which devices do not match."""
    against = await unaligned(evidence, nodes)
    if not (
        any(one.is_error for one in nodes)
        or circumstances.without_devices(nodes)
        or any(circumstances.excluded(nodes, CauseKind.SELECTOR, CauseKind.SELECTOR_ERROR))
    ):
        return against
    reasons: list[Reason] = against
    if any(one.is_error for one in nodes):
        # The devices of a selector that is false have their patches below them.
        reasons += [*patched_away(evidence, pod)][:NAMES_MAX]
    reasons += await reclassed(evidence, pod, LostDevices(evidence.views))
    left = NAMES_MAX - len(reasons)
    return [*reasons, *(await rewritten(evidence, pod))[: max(left, 1)]]


async def unaligned(evidence: ExplainedMoment, nodes: Sequence[NodeReason]) -> list[Reason]:
    """The writes of slices that withdrew an attribute which a constraint needs."""
    lacking: dict[tuple[str, str], str] = {}
    for group in circumstances.excluded(nodes, CauseKind.CONSTRAINT):
        cause = group.reason.cause
        about = "" if cause is None else cause.about
        name = about.removesuffix(causes.MISSING)
        for device in group.devices[:NAMES_MAX] if name != about else ():
            if len(lacking) < NAMES_MAX:
                lacking[(device, name)] = device
    reasons: list[Reason] = []
    for device, name in lacking:
        *_, own = identity = identifiers.parse_device(device)
        for one in newest(evidence.views.inventory.slices_of(identity[:2])):
            if all(each.id != identity for each in one.devices):
                continue
            key = ObjectKey(*api_resources.RESOURCE_SLICES, "", one.name)
            had = partial(_has_attribute, own, name)
            lost = former_circumstances.loss(await evidence.changes(key), had)
            if lost is not None and evidence.sight.sees(lost[1]):
                value = value_text(_attribute(lost[0].object, own, name))
                text = f"slice {one.name} had {name}={value} for {own} until it was written "
                reasons.append(former_circumstances.kept(lost[1], f"{text}without it"))
    return reasons


def _has_attribute(device: str, name: str, tree: JsonView) -> bool:
    return _attribute(tree, device, name) is not None


def _attribute(tree: JsonView, device: str, name: str) -> object:
    """The value of an attribute that a slice publishes for a device; None where it has none.

    In the domain of its driver, an attribute may be published without the domain.
    """
    own = name.removeprefix(f"{dra.driver(tree)}/")
    for each in dra.devices(tree):
        if each.get("name") == device:
            having = dra.attributes(each)
            value = having.get(name, having.get(own))
            return next(iter(value.values()), None) if isinstance(value, Mapping) else None
    return None


async def rewritten(evidence: ExplainedMoment, pod: JsonObject) -> list[Reason]:
    """The last writes of slices after which devices match no request of a pod any more."""
    wishes = [*requests_of(evidence, pod)]
    slices = api_resources.RESOURCE_SLICES
    reasons: list[Reason] = []
    for key in await former_circumstances.changed(evidence, slices) if wishes else ():
        event = evidence.views.objects.event(key)
        if event is None:
            continue
        events = (await evidence.changes(key))[: evidence.bounds.cause_slice_writes_max + 1]
        lost = _loss(events, wishes, evidence.views.inventory)
        if lost is not None and evidence.sight.sees(lost[0]):
            reasons.append(former_circumstances.kept(lost[0], f"slice {key.name} {lost[1]}"))
        if len(reasons) == NAMES_MAX:
            break
    return reasons


def patched_away(evidence: ExplainedMoment, pod: JsonObject) -> Iterator[Reason]:
    """The patches without which devices would match a request of a pod."""
    wishes = [*requests_of(evidence, pod)]
    for wish, devices in findings_outgrown.patched_away(evidence.views, wishes):
        texts = [text for _, text in patches.changes(devices[0])]
        names = [device.text for device in devices]
        writes = [*patches.events(evidence.views, devices[0]).values()]
        if not all(map(evidence.sight.sees, writes)):
            continue
        is_only = len(writes) == 1
        yield Reason(
            text=f"{listed(texts, len(texts))}; otherwise {counts.plural(len(names), 'device')} "
            f"{listed(names, len(names))} would match {wish.name}",
            count=len(names),
            revision=writes[0].revision if is_only else 0,
            about=writes[0].key if is_only else None,
            is_kept=True,
        )


async def reclassed(
    evidence: ExplainedMoment, pod: JsonObject, devices: LostDevices
) -> list[Reason]:
    """The last writes of classes that selected another way before, and then a device that is there.

    A class that was made anew is another one: its former selectors are in its former states alone.
    """
    reasons: list[Reason] = []
    wishes = [*requests_of(evidence, pod)]
    for name in sorted({wish.class_name for wish in wishes}):
        changed = await reselecting(evidence, name)
        if changed is None:
            continue
        before, after = changed
        former = [*requests_of(evidence, pod, {name: before.object})]
        lost = devices.first(former, wishes)
        if lost is not None:
            how = "made anew" if after.type is EventType.OBJECT_CREATED else "changed"
            wish = former[lost[0]].name
            text = f"class {name} selected {lost[1].text} for {wish} until it was {how}"
            reasons.append(replace(sources.made(after, text), is_kept=True))
    return reasons[:NAMES_MAX]


async def reselecting(evidence: ExplainedMoment, name: str) -> tuple[Event, Event] | None:
    """The last state in which a class selected another way, and the write that ended it."""
    key = ObjectKey(*api_resources.DEVICE_CLASSES, "", name)
    events = (await evidence.changes(key))[: evidence.bounds.cause_slice_writes_max + 1]
    states = [event for event in events if event.type is not EventType.OBJECT_DELETED]
    if events[:1] != states[:1]:
        return None
    for after, before in pairwise(states):
        if dra.class_selectors(after.object) != dra.class_selectors(before.object):
            return (before, after) if evidence.sight.sees(after) else None
    return None


async def former_classes(
    evidence: ExplainedMoment, pod: JsonObject
) -> list[tuple[ObjectKey, SpecChange]]:
    """The classes that a pod requests with the selectors that they had before.

    Left out are those that name devices of patches, because these devices would change with them.
    """
    of_patches = {patch.class_name for patch in evidence.views.inventory.patches().values()}
    names = {wish.class_name for wish in requests_of(evidence, pod)} - of_patches
    classes: list[tuple[ObjectKey, SpecChange]] = []
    for name in sorted(names):
        changed = await reselecting(evidence, name)
        key = ObjectKey(*api_resources.DEVICE_CLASSES, "", name)
        present = evidence.views.objects.get(key)
        if changed is None or present is None:
            continue
        before, after = changed
        tree: JsonObject = json_tree.copy(present)
        former = dra.class_selectors(before.object)
        tree.setdefault("spec", {})["selectors"] = json_tree.copy(former)
        noun = counts.plural(len(former), "selector")
        text = f"give DeviceClass {name} the {noun} back that it had before revision "
        text += f"{after.revision}: {' and '.join(map(expression_text, former))}"
        if not former:
            text = f"remove the selectors of DeviceClass {name}, which had none before revision "
            text += str(after.revision)
        kind = "give a DeviceClass its former selectors"
        classes.append((key, SpecChange(text=text, kind=kind, of_pod=False, tree=tree)))
    return classes


def expression_text(selector: JsonView) -> str:
    """The expression of a selector in one line."""
    return " ".join(str(json_tree.mapping(selector, "cel").get("expression", "")).split())


async def outgrown(
    evidence: ExplainedMoment, claim: JsonObject, results: Sequence[DeviceResult]
) -> list[Reason]:
    """The writes because of which devices that a claim holds no longer match its requests.

    Nobody takes such a device away: the claim only shows what a new one would not get.
    """
    reasons: list[Reason] = []
    for result in results[: evidence.bounds.cause_slice_writes_max]:
        held = tainted.device_of(evidence.views, result.id)
        wishes = _wishes_for(evidence, evidence.views, claim, result)
        if held is None or not wishes or any(wish.matches(held[1]) for wish in wishes):
            continue
        text = f"{result.text} no longer matches request {result.request}, and the claim keeps it: "
        if patched := [*_patched(evidence, held, wishes, text)]:
            reasons += patched
            continue
        key = ObjectKey(*api_resources.RESOURCE_SLICES, "", held[0])
        events = (await evidence.changes(key))[: evidence.bounds.cause_slice_writes_max + 1]
        lost = _outgrown(events, wishes, result.id[2])
        if lost is None:
            causes = await _since_chosen(evidence, claim, result, held[1], wishes)
        else:
            causes = [(lost[0], f"slice {held[0]} was written {lost[1]}")]
        for event, cause in causes:
            if evidence.sight.sees(event):
                reasons.append(replace(sources.made(event, f"{text}{cause}"), is_kept=True))
        if len(reasons) >= NAMES_MAX:
            break
    return reasons


async def former_states(evidence: ExplainedMoment, chronicle: "Chronicle") -> list[FormerState]:
    """The states of patches and classes that ended last, newest first."""
    states: list[FormerState] = []
    until = evidence.views.revision
    for kind in _ENDS:
        numbers = chronicle.numbers(kind=kind)
        entries = islice(
            chronicle.newest(numbers, until=until), evidence.bounds.cause_slice_writes_max
        )
        for entry in entries:
            events = await evidence.log.read_object(
                evidence.info.id, entry.subject, until=entry.revision, limit=2
            )
            if len(events) == 2 and events[1].is_about_object:
                states.append(FormerState(tree=events[1].object, ended_by=events[0]))
    return sorted(states, key=lambda one: -one.ended_by.revision)


async def _since_chosen(
    evidence: ExplainedMoment,
    claim: JsonObject,
    result: DeviceResult,
    device: Device,
    wishes: Sequence[SelectingRequest],
) -> list[tuple[Event, str]]:
    """The last writes of patches and classes without which a chosen device would match yet.

    A patch that is gone changes nothing, and a class that was made anew is another one: only the
    moment of the choice shows what they were.
    """
    key = claim_key(meta.namespace(claim), meta.name(claim))
    moment = choices.moment_of(await evidence.changes(key), claim)
    then = None if moment is None else await evidence.published_at(moment)
    chosen = None if then is None else tainted.device_of(then, result.id)
    if moment is None or then is None or chosen is None:
        return []
    texts: dict[ObjectKey, str] = {}
    of_device = any(wish.matches(chosen[1]) for wish in wishes)
    former = _wishes_for(evidence, then, claim, result)
    of_class = not former or any(wish.matches(device) for wish in former)
    before, after = dict(_effects(chosen[1])), dict(_effects(device))
    for name in () if of_class and not of_device else dict.fromkeys((*before, *after)):
        if before.get(name) != after.get(name):
            place = ObjectKey(*api_resources.RESOURCE_SLICE_PATCHES, "", name)
            texts[place] = f"without patch {name}, which {before.get(name)}; it was"
            if name in after:
                texts[place] = f"patch {name} {after[name]}; it was"
    for name in () if of_device and not of_class else sorted({one.class_name for one in wishes}):
        place = ObjectKey(*api_resources.DEVICE_CLASSES, "", name)
        old, new = then.objects.get(place) or {}, evidence.views.objects.get(place) or {}
        if dra.class_selectors(old) != dra.class_selectors(new):
            texts[place] = f"class {name} selects otherwise; it was"
    causes: list[tuple[Event, str]] = []
    for place, text in texts.items():
        last = next(iter(await evidence.changes(place)), None)
        if last is not None and last.revision > moment:
            causes.append((last, f"{text} {_HOW[last.type]}"))
    return causes


def _wishes_for(
    evidence: ExplainedMoment, views: LiveViews, claim: JsonObject, result: DeviceResult
) -> list[SelectingRequest]:
    """The request, or its alternatives, for which a device was chosen, with the selectors."""
    wishes = wishes_of(views, evidence.rules.compiler, meta.name(claim), claim)
    names = (result.request, result.request.partition("/")[0])
    return [wish for wish in wishes if wish.request in names]


def _effects(device: Device) -> Iterator[tuple[str, str]]:
    """The patches that change a device, each with what it does."""
    texts: dict[str, list[str]] = {}
    for applied, text in patches.changes(device):
        texts.setdefault(applied.patch, []).append(text.removeprefix(f"patch {applied.patch} "))
    for name, lines in texts.items():
        yield name, listed(lines, len(lines))


def _patched(
    evidence: ExplainedMoment,
    held: tuple[str, Device],
    wishes: Collection[SelectingRequest],
    text: str,
) -> Iterator[Reason]:
    """The patch without which a device that is held would match one of the requests."""
    name, device = held
    for one in evidence.views.inventory.slices_of(device.id[:2]):
        if one.key == name and findings_outgrown.is_patched_away(one, device, wishes):
            writes = [*patches.events(evidence.views, device).values()]
            if writes and all(map(evidence.sight.sees, writes)):
                texts = [change for _, change in patches.changes(device)]
                made = sources.made(writes[-1], text + listed(texts, len(texts)))
                yield replace(made, is_kept=True)


def _outgrown(
    events: Sequence[Event], wishes: Sequence[SelectingRequest], name: str
) -> tuple[Event, str] | None:
    """The last write after which a device no longer matches, and what it changed."""
    for after, before in pairwise(events):
        if EventType.OBJECT_DELETED in (after.type, before.type):
            return None
        former = _devices(before.object).get(name)
        if former is None:
            return None
        if any(wish.matches(former) for wish in wishes):
            old, new = _published(before.object), _published(after.object)
            return after, _change(old[name], new.get(name), "it")
    return None


def requests_of(
    evidence: ExplainedMoment, pod: JsonObject, classes: Mapping[str, JsonView] | None = None
) -> Iterator[SelectingRequest]:
    """The requests of the pod's claims that have no devices yet; `classes` as in `wishes_of`."""
    facts = pods.facts(pod)
    for named in pods.named_claims(facts):
        key = claim_key(facts.namespace, named.name or "")
        claim = evidence.views.objects.get(key) or {}
        if dra.allocation(claim) is None:
            name, compiler = named.name or "", evidence.rules.compiler
            yield from wishes_of(evidence.views, compiler, name, claim, classes or {})


def open_claims(evidence: ExplainedMoment, pod: JsonObject) -> Iterator[JsonObject]:
    """The claims of a pod that have no devices yet."""
    facts = pods.facts(pod)
    for named in pods.named_claims(facts):
        claim = evidence.views.objects.get(claim_key(facts.namespace, named.name or ""))
        if claim is not None and dra.allocation(claim) is None:
            yield claim


def _loss(
    events: Sequence[Event], wishes: Sequence[SelectingRequest], inventory: Inventory
) -> tuple[Event, str] | None:
    """The last write after which devices no longer match, and a text about its change.

    Devices that match now are left out: another slice may publish them, or a patch change them.
    """
    now = _published(events[0].object) if events else {}
    for after, before in pairwise(events):
        if EventType.OBJECT_DELETED in (after.type, before.type):
            return None
        old, new = _published(before.object), _published(after.object)
        differing = [name for name in old if old[name] != new.get(name)]
        if not differing:
            continue
        former = _devices(before.object)
        current = _current(inventory, [each.id for each in former.values()])
        for wish in wishes:
            names = [
                name
                for name in differing
                if name in former
                and wish.matches(former[name])
                and not any(wish.matches(each) for each in current.get(name, ()))
                and now.get(name) == new.get(name)
            ]
            if names:
                text = f"had {counts.plural(len(names), 'device')} {listed(names, len(names))} for "
                text += f"{wish.name} until it was written "
                pronoun = "it" if len(names) == 1 else "them"
                return after, text + _change(old[names[0]], new.get(names[0]), pronoun)
    return None


def _devices(tree: JsonObject) -> dict[str, Device]:
    return {
        device.id[2]: device
        for one in Inventory.of_slices([tree]).slices()
        for device in one.devices
    }


def _current(inventory: Inventory, ids: Collection[DeviceId]) -> dict[str, list[Device]]:
    """The devices with these ids as they are now, by name."""
    current: dict[str, list[Device]] = {}
    for driver, pool in {(driver, pool) for driver, pool, _ in ids}:
        for one in inventory.slices_of((driver, pool)):
            for device in one.devices:
                if device.id in ids:
                    current.setdefault(device.id[2], []).append(device)
    return current


def _published(tree: JsonView) -> dict[str, Mapping[str, object]]:
    """The parts of each device of a slice that selectors can read, by device name."""
    return {
        str(device.get("name")): {part: device.get(part) or {} for part in _PUBLISHED}
        for device in dra.devices(tree)
    }


def _change(old: Mapping[str, object], new: Mapping[str, object] | None, pronoun: str) -> str:
    """The attributes and capacities of a device that a write removed, changed or added."""
    if new is None:
        return f"without {pronoun}"
    before, after = _values(old), _values(new)
    gone = [f"{name}={one.text}" for name, one in before.items() if name not in after]
    other = [
        f"{name} changed from {_apart(one, after[name])} to {_apart(after[name], one)}"
        for name, one in before.items()
        if name in after and after[name] != one
    ]
    added = [f"{name}={one.text}" for name, one in after.items() if name not in before]
    parts = [f"without {listed(gone, len(gone))}"] if gone else []
    parts += [f"with {listed(some, len(some))}" for some in (other, added) if some]
    return " and ".join(parts)


@dataclass(frozen=True, slots=True)
class _Value:
    """The value of an attribute or capacity as text, and its type as the API names it."""

    text: str
    type: str


def _apart(one: _Value, other: _Value) -> str:
    """The text of a value that differs from the other one, with its type if the types differ."""
    return one.text if one.type == other.type else f"{one.text} ({one.type})"


def _values(published: Mapping[str, object]) -> dict[str, _Value]:
    """The attributes and capacities of a device, by name."""
    values: dict[str, _Value] = {}
    for part in published.values():
        for name, tree in (part if isinstance(part, dict) else {}).items():
            fields = tree if isinstance(tree, dict) else {"": tree}
            text = ", ".join(value_text(value) for value in fields.values())
            values[name] = _Value(text, ", ".join(fields))
    return values
