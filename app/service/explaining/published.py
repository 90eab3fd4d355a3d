"""Devices as drivers publish them, beside what is seen of them now.

Taints whose time was reset, withdrawn devices, and devices of older generations of a pool.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, pairwise

from app.analysis.explain import choices, circumstances, sources, tainted
from app.analysis.explain.hardware import pools as hardware
from app.analysis.explain.nearby import successors
from app.analysis.explain.node_reasons import NodeReason
from app.analysis.explain.reasons import NAMES_MAX, Reason, listed
from app.analysis.findings.outgrown import SelectingRequest, request_text
from app.analysis.views import LiveViews
from app.domain.allocation.reasons.causes import CauseKind
from app.domain.controllers import pods
from app.domain.controllers.eviction.taints import NO_EXECUTE
from app.domain.controllers.resources import claim_key
from app.domain.devices import pools, taints
from app.domain.devices.inventory import Inventory
from app.domain.devices.model import Slice, Taint
from app.domain.log import Event, EventType, ObjectKey
from app.domain.values import api_resources, counts, identifiers
from app.domain.values.fields import dra, meta
from app.domain.values.fields.dra import DeviceResult
from app.domain.values.identifiers import DeviceId, PoolId
from app.domain.values.json_tree import JsonObject, JsonView
from app.service.explaining import former_circumstances, selections
from app.service.explaining.evidence import ExplainedMoment

_IN_THE_WAY = (CauseKind.ALLOCATED, CauseKind.CAPACITY, CauseKind.COUNTERS, CauseKind.TAINT)
"""The causes against devices that a pod could have some other time."""

_EXCLUDING = (CauseKind.SELECTOR, CauseKind.SELECTOR_ERROR)


async def renewed(evidence: ExplainedMoment, results: Sequence[DeviceResult]) -> list[Reason]:
    """The taints of held devices that drivers have written again with a later time.

    Parity: controllers.md 6.3, a taint without a time gets the present time with every write.
    """
    reasons: list[Reason] = []
    for result in results:
        slice_and_device = tainted.device_of(evidence.views, result.id)
        if slice_and_device is None:
            continue
        name, device = slice_and_device
        own = [each for each in device.taints if each.effect == NO_EXECUTE and not each.rule]
        if not own:
            continue
        events = await evidence.changes(ObjectKey(*api_resources.RESOURCE_SLICES, "", name))
        for taint in own:
            times = list(dict.fromkeys(_times(events, result.id, taint)))
            if len(times) < 2:
                continue
            newest = next(_writes(events, result.id, taint, times[0]))
            reasons.append(
                Reason(
                    text=f"the time of taint {taint.text} on {result.text} has begun anew: it was "
                    f"added at {times[-1]}, and slice {name} says {times[0]} since it was written "
                    f"{sources.by(newest)}; so does each tolerated time",
                    revision=newest.revision,
                    about=newest.key,
                    issues=("C19",),
                    is_kept=True,
                )
            )
    return reasons


async def withdrawn(
    evidence: ExplainedMoment,
    claim: Sequence[Event],
    tree: JsonObject,
    results: Sequence[DeviceResult],
) -> list[Reason]:
    """The withdrawals of devices that a claim holds; `claim` has its events, newest first."""
    lost = [each for each in results if tainted.device_of(evidence.views, each.id) is None]
    moment = choices.moment_of(claim, tree) if lost else None
    if moment is None:
        return []
    then = await evidence.published_at(moment)
    named = {each.held for each in successors.of_claim(evidence.views, tree)}
    reasons: list[Reason] = []
    for result in lost:
        known = tainted.device_of(then, result.id)
        if known is None:
            continue
        key = ObjectKey(*api_resources.RESOURCE_SLICES, "", known[0])
        last = _withdrawal(await evidence.changes(key), result.id)
        if last is not None:
            what = "deleted" if last.type is EventType.OBJECT_DELETED else "written without it"
            text = f"slice {key.name}, which had {result.text}, was {what}"
            change = sources.made(last, text)
            reasons.append(
                Reason(text=change.text, revision=change.revision, about=change.about, is_kept=True)
            )
        if result.id not in named:
            reasons += successors.renamed(evidence.views, then, known[1])
    return [*reasons, *successors.reasons(evidence.views, tree)]


async def under_claims(evidence: ExplainedMoment, pod: JsonObject) -> list[Reason]:
    """The withdrawals of devices of allocated claims that a waiting pod names."""
    facts = pods.facts(pod)
    reasons: list[Reason] = []
    for named in pods.named_claims(facts):
        key = claim_key(facts.namespace, named.name or "")
        tree = evidence.views.objects.get(key) or {}
        if results := dra.results(tree):
            reasons += await withdrawn(evidence, await evidence.changes(key), tree, results)
    return reasons


async def taken_away(
    evidence: ExplainedMoment,
    pod: JsonObject,
    nodes: Sequence[NodeReason],
    known: Sequence[Reason],
) -> list[Reason]:
    """The writes and deletions of slices with which devices for a pod went, if others are in use.

    Where no device is in the way, the node or the pool without devices says what became of them.
    Left out are slices that `known` reasons are about, and writes where selectors exclude devices:
    `selections.rewritten` has these.
    """
    wishes = _lacking(selections.requests_of(evidence, pod), nodes)
    if not wishes or not any(circumstances.excluded(nodes, *_IN_THE_WAY)):
        return []
    reasons: list[Reason] = []
    about = {one.about for one in known}
    are_excluding = any(circumstances.excluded(nodes, *_EXCLUDING))
    are_excluding = are_excluding or bool(circumstances.without_devices(nodes))
    for key in await former_circumstances.changed(evidence, api_resources.RESOURCE_SLICES):
        is_there = evidence.views.objects.event(key) is not None
        if key in about or (is_there and are_excluding):
            continue
        events = (await evidence.changes(key))[: evidence.bounds.cause_slice_writes_max + 1]
        for after, before in pairwise(events):
            wish, names = _lost(evidence.views, after, before, wishes)
            if names and evidence.sight.sees(after):
                is_deleted = after.type is EventType.OBJECT_DELETED
                how = "deleted" if is_deleted else "written without "
                how += "" if is_deleted else "it" if len(names) == 1 else "them"
                text = f"slice {key.name} had {counts.plural(len(names), 'device')} "
                text += f"{listed(names, len(names))} for {wish} until it was {how}"
                reasons.append(former_circumstances.kept(after, text))
                break
        if len(reasons) == NAMES_MAX:
            break
    return reasons


def _lacking(
    wishes: Iterable[SelectingRequest], nodes: Sequence[NodeReason]
) -> list[SelectingRequest]:
    """The requests that lack devices on some node; all where only a search finds that they do."""
    lacking = {
        request_text(one.request.partition("/")[0], claim.rpartition("/")[2])
        for node in nodes
        for claim, one in node.requests()
        if one.suitable < one.needs
    }
    return [wish for wish in wishes if not lacking or wish.name in lacking]


def _lost(
    views: LiveViews, after: Event, before: Event, wishes: Iterable[SelectingRequest]
) -> tuple[str, list[str]]:
    """The first request for which a slice lost devices with an event, and these; none if empty."""
    for wish in wishes:
        if names := _taken(views, after, before, wish):
            return wish.name, names
    return "", []


def _taken(views: LiveViews, after: Event, before: Event, wish: SelectingRequest) -> list[str]:
    """The devices for a request that a slice lost with an event, and that no slice has since.

    Empty where as many devices for it came instead, on the same node or in the same pool, or where
    the node of the slice went, too.
    """
    if before.type is EventType.OBJECT_DELETED:
        return []
    node = dra.node_name(before.object)
    if node and views.objects.get(ObjectKey(*api_resources.NODES, "", node)) is None:
        return []
    is_deleted = after.type is EventType.OBJECT_DELETED
    old = _matching(before.object, wish)
    new = set[str]() if is_deleted else _matching(after.object, wish)
    gone = old - new
    if len(old) <= len(new) or not gone:
        return []
    driver, pool = dra.pool_id(before.object)
    there, since = set[str](), set[str]()
    for one in views.inventory.slices():
        if one.pool[0] != driver or (one.node.name != node if node else one.pool[1] != pool):
            continue
        is_since = meta.creation_timestamp(one.tree) > meta.creation_timestamp(before.object)
        for device in one.devices:
            there.add(device.id[2])
            if is_since and wish.matches(device):
                since.add(device.id[2])
    gone -= there
    return sorted(gone) if len(gone) > len(since - old - new) else []


def _matching(tree: JsonObject, wish: SelectingRequest) -> set[str]:
    """The names of the devices of a slice that match the request."""
    return {
        device.id[2]
        for one in Inventory.of_slices([tree]).slices()
        for device in one.devices
        if wish.matches(device)
    }


def useless(
    evidence: ExplainedMoment, pod: JsonObject, nodes: Sequence[NodeReason]
) -> list[Reason]:
    """The slices that make pools of the nodes invalid, and those that are passed over."""
    if not nodes:
        return []
    names = (pool for one in nodes if one.explained for pool, _ in one.explained.pools)
    reasons = doubled(evidence, map(identifiers.parse_pool, dict.fromkeys(names)))
    return [*reasons, *passed_over(evidence, pod)]


def invalid(views: LiveViews) -> list[Reason]:
    """The first invalid pools, with the counter sets of those in which one is missing."""
    everywhere = ((place, views.inventory.pool(place)) for place in views.inventory.pool_ids())
    broken = (
        ("/".join(place), pool.problem)
        for place, pool in everywhere
        if pool is not None and pool.state is pools.PoolState.INVALID
    )
    problems = dict(islice(broken, NAMES_MAX))
    sets = circumstances.declared_counters(views, problems)
    others = (
        Reason(text=f"pool {place} is invalid: {problem}")
        for place, problem in problems.items()
        if place not in sets
    )
    return [*sets.values(), *others]


def doubled(evidence: ExplainedMoment, pools_: Iterable[PoolId]) -> list[Reason]:
    """The slices with which pools are invalid because they have one name in common."""
    made = (one for place in pools_ for one in hardware.doubled(evidence.views, place))
    return [*islice(made, NAMES_MAX)]


def passed_over(evidence: ExplainedMoment, pod: JsonObject) -> list[Reason]:
    """The slices of older generations with devices for a pod that its pools lack otherwise.

    A driver that has lost the count of its generations publishes such slices, and nothing says that
    they count for nothing. Those of pools that cannot be used at all stand with the pools.
    """
    wishes = [*selections.requests_of(evidence, pod)]
    inventory, quirks = evidence.views.inventory, evidence.rules.allocator_quirks
    reasons: list[Reason] = []
    for place in inventory.pool_ids() if wishes else ():
        if len(reasons) >= NAMES_MAX:
            break
        older = _lacked(inventory.slices_of(place), wishes)
        pool = inventory.pool(place) if older else None
        if pool is None or not pool.usable:
            continue
        # Each node is asked, so only for pools that matter.
        seen = {name for old in evidence.views.old_pools(place, quirks) for name in old.slices}
        for one, names, wish in older:
            key = ObjectKey(*api_resources.RESOURCE_SLICES, "", one.name)
            if one.name in seen or not evidence.sight.sees_key(key):
                continue
            text = _passed_over(one, names, wish, pools.newest(inventory.slices_of(place)))
            revision = sources.revision_of(evidence.views.objects, key)
            reasons.append(Reason(text=text, revision=revision, about=key, is_kept=True))
    return reasons[:NAMES_MAX]


def _lacked(
    everywhere: Sequence[Slice], wishes: Sequence[SelectingRequest]
) -> list[tuple[Slice, Sequence[str], str]]:
    """The older slices of a pool with devices for a request that its newest slices lack."""
    current = pools.newest(everywhere)
    if len(current) == len(everywhere):
        return []
    having = {each.id: each for one in current for each in one.devices}
    lacked: list[tuple[Slice, Sequence[str], str]] = []
    for one in everywhere:
        if one.generation == current[0].generation:
            continue
        for wish in wishes:
            names = [
                each.id[2]
                for each in one.devices
                if wish.matches(each) and not (each.id in having and wish.matches(having[each.id]))
            ]
            if names:
                lacked.append((one, names, wish.name))
                break
    return lacked


def _passed_over(one: Slice, names: Sequence[str], wish: str, current: Sequence[Slice]) -> str:
    """A slice of an older generation with devices for a request, and what would let it count."""
    newer, slices = current[0].generation, [each.name for each in current]
    text = f"slice {one.name} has {counts.plural(len(names), 'device')} "
    text += f"{listed(names, len(names))} for {wish} and is passed over: its generation "
    text += f"{one.generation} is older than generation {newer} of pool {'/'.join(one.pool)} "
    text += f"({counts.plural(len(slices), 'slice')} {listed(slices, len(slices))}); it counts "
    pronoun = "that slice is" if len(slices) == 1 else "those slices are"
    return text + f"once it is published with a generation above {newer}, or {pronoun} deleted"


def _withdrawal(events: Sequence[Event], device: DeviceId) -> Event | None:
    """The first event without the device, after the last one with it; None while it is there."""
    first: Event | None = None
    for event in events:
        if event.type is not EventType.OBJECT_DELETED and _has(event.object, device):
            return first
        first = event
    return None


def _has(tree: JsonView, device: DeviceId) -> bool:
    is_pool = dra.pool_id(tree) == device[:2]
    return is_pool and any(each.get("name") == device[2] for each in dra.devices(tree))


def _times(events: Sequence[Event], device: DeviceId, taint: Taint) -> Iterator[str]:
    """The time of the taint in each state of the slice, up to the first state without it."""
    for event in events:
        added = _added(event, device, taint)
        if added is None:
            return
        yield added


def _writes(events: Sequence[Event], device: DeviceId, taint: Taint, added: str) -> Iterator[Event]:
    """The events in which the taint has that time, oldest first."""
    for event in reversed(events):
        if _added(event, device, taint) == added:
            yield event


def _added(event: Event, device: DeviceId, taint: Taint) -> str | None:
    """The time of the taint in a state of a slice; None when the state lacks the taint."""
    if event.type is EventType.OBJECT_DELETED or not _has(event.object, device):
        return None
    for each in dra.devices(event.object):
        for tree in dra.device_taints(each) if each.get("name") == device[2] else ():
            if taints.taint_of(tree).text == taint.text:
                return str(tree.get("timeAdded") or "no time")
    return None
