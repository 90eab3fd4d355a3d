"""Explanations of hardware: devices, pools, slices, classes, patches, rules and nodes."""

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import anyio.to_thread
import msgspec

from app.analysis import device_map, scope
from app.analysis.explain import decisions as decision_reasons
from app.analysis.explain import questions, sources, tainted
from app.analysis.explain.hardware import biography as biographies
from app.analysis.explain.hardware import classes, cordons, devices, nodes, patches, pools, rules
from app.analysis.explain.hardware.biography import Biography
from app.analysis.explain.nearby import drivers as drivers_nearby
from app.analysis.explain.nearby import successors
from app.analysis.explain.observed import drivers_reports
from app.analysis.explain.questions import ObjectExplanation
from app.analysis.explain.reasons import NAMES_MAX, Reason, as_recorded, listed
from app.analysis.explain.tallies import devices_text
from app.analysis.map_answers import Gauge
from app.analysis.recordings import incomplete_pools, uncertainty
from app.analysis.views import LiveViews
from app.domain.allocation.quirks import Quirks
from app.domain.devices.model import Consumption
from app.domain.errors import NotFound
from app.domain.log import Event, EventType, ObjectKey
from app.domain.values import api_resources, counts, identifiers
from app.domain.values.fields import core, dra, meta
from app.domain.values.identifiers import DeviceId, DeviceName, PoolId
from app.domain.values.json_tree import JsonObject
from app.service import recorded_doubts
from app.service.explaining import evictions, former_circumstances, selections, unfinished
from app.service.explaining.evidence import ExplainedMoment, body

if TYPE_CHECKING:  # heavy: only rules have a blast, only recordings are judged
    from app.analysis.blast.radius import BlastRadius
    from app.analysis.recordings.mismatched_objects import FitWatch


_HIT = ("resourceslices", "resourceclaims", "pods")
"""The resources whose objects a rule concerns: `pods: none would be evicted` denies them."""


async def device(evidence: ExplainedMoment, name: str) -> ObjectExplanation:
    """The biography of a device. Raises NotFound for an unknown one, naming others."""
    device_id = questions.device_of(name)
    profile = evidence.views.profile
    life = Biography(
        device_id,
        with_rules=tainted.are_rules_on(profile),
        rules_without_selector_match=profile.empty_rules_taint or not evidence.rules.quirks.c1,
    )
    fit = await _fit(evidence)
    async for event in evidence.every():
        life.fold(event)
        if fit is not None:
            fit.fold(event)
    if not life.is_known:
        raise NotFound(
            f"device {name} was never published or allocated{_near(evidence, device_id)}",
            resource="devices",
        )
    views = evidence.views
    holders = views.allocated.holders(device_id)
    quirks = evidence.rules.allocator_quirks
    is_published = tainted.device_of(views, device_id) is not None
    olds = [
        old
        for old in views.old_pools(device_id[:2], quirks)
        if any(each.id == device_id for each in old.devices())
    ]
    noun = counts.plural(len(holders), "claim")
    outcome, text = "Allocated", f"held by {noun} {', '.join(holders)}"
    if not holders:
        outcome, text = _unheld(views, device_id, quirks)
        text = as_recorded(text, ("resourceclaims",), evidence.lacks)
        if admins := [span.text for span in life.holders if span.end is None]:
            text += f"; {listed(admins, len(admins))}"
    reasons = (
        *map(pools.not_noticed, olds),
        *drivers_reports.of_device(views, device_id),
        *_drawing(views, device_id, quirks),
        *devices.patched(views, device_id),
        *devices.for_nodes(views, device_id),
        *(() if is_published else successors.of_device(views, device_id)),
        *life.reasons(await evidence.now()),
        *(() if fit is None else (*incomplete_pools.of_pool(views, device_id[:2]), *fit.reasons())),
    )
    return _explained(
        evidence,
        subject=f"device {name}",
        outcome=outcome if is_published or olds else "NotPublished",
        text=text,
        reasons=reasons,
        details={"holders": [_span(span) for span in life.holders]},
    )


async def _fit(evidence: ExplainedMoment) -> "FitWatch | None":
    """Judges what does not fit in a recording; None where redra wrote everything itself."""
    if not evidence.info.is_recorded:
        return None
    from app.analysis.recordings.mismatched_objects import FitWatch
    from app.analysis.verify.invariants.watch import InvariantWatch
    from app.service.replays.verifying import switches_over_time

    recorded = await recorded_doubts.doubts_of(evidence.log, evidence.info)
    switches = await switches_over_time(evidence.log, evidence.info)
    return FitWatch(InvariantWatch(switches, uncertainty.lacking(recorded)))


def _unheld(views: LiveViews, device_id: DeviceId, quirks: Quirks) -> tuple[str, str]:
    """The outcome and the text for a device without a claim: whether a claim could get it."""
    mapped = device_map.device_at(views, device_id, quirks)
    text = "no claim has it"
    if mapped is None:
        return "Free", text
    pool, one = mapped
    match one.state:
        case "unusable":
            return "Unusable", f"{text}, and its pool cannot be used: {pool.problem}"
        case "blocked":
            lacks = listed(one.lacks, len(one.lacks))
            return "Blocked", f"{text}, and none can: too little is left of counter {lacks}"
        case "tainted":
            return "Tainted", f"{text}; only claims that tolerate its taints get it"
        case _:
            return "Free", text


def _drawing(views: LiveViews, device_id: DeviceId, quirks: Quirks) -> Iterator[Reason]:
    """The counters of which too little is left for a device, with the devices that use them."""
    mapped = device_map.device_at(views, device_id, quirks)
    if mapped is None or mapped[1].state != "blocked":
        return
    pool, one = mapped
    drawn = {
        str(device.id[2]): device.consumes
        for each in views.inventory.slices_of(device_id[:2])
        if each.generation == pool.generation
        for device in each.devices
    }
    for gauge in pool.counters:
        if (name := f"{gauge.set}/{gauge.counter}") not in one.lacks:
            continue
        users = [
            f"{other.name} of {listed(other.holders, len(other.holders))}"
            for other in pool.devices
            if other.state == "held" and _draws(drawn.get(other.name, ()), gauge)
        ]
        text = f"{gauge.used} of {gauge.total} of counter {name} is used"
        yield Reason(text=f"{text}, by {listed(users, len(users))}" if users else text)


def _draws(consumption: Consumption, gauge: Gauge) -> bool:
    """Whether a device uses something of a counter."""
    return any(
        name == gauge.set and counter == gauge.counter and amount
        for name, counters in consumption
        for counter, amount in counters
    )


async def pool(evidence: ExplainedMoment, name: str) -> ObjectExplanation:
    """The state of a pool and its slices. Raises NotFound."""
    pool_id = identifiers.parse_pool(name)
    inventory = evidence.views.inventory
    if not inventory.slices_of(pool_id):
        if ended := await _ended(evidence, pool_id):
            text = as_recorded(
                "no slice of it is published any more", ("resourceslices",), evidence.lacks
            )
            return _explained(
                evidence, subject=f"pool {name}", outcome="Gone", text=text, reasons=ended
            )
        near = scope.nearest("/".join(pool_id), sorted(map("/".join, inventory.pool_ids())))
        text = f"no slice of pool {name} is published"
        raise NotFound(f"{text}; {near}" if near else text, resource="pools")
    state, text = pools.state_of(evidence.views, pool_id)
    since = await unfinished.of_pool(evidence, pool_id)
    reasons = (*since, *pools.of_pool(evidence.views, pool_id, evidence.rules.allocator_quirks))
    return _explained(evidence, subject=f"pool {name}", outcome=state, text=text, reasons=reasons)


async def _ended(evidence: ExplainedMoment, place: PoolId) -> tuple[Reason, ...]:
    """The deleted slices of a pool that is gone, the last one first, and its devices' holders."""
    kind = api_resources.RESOURCE_SLICES
    ends: list[tuple[Event, Reason]] = []
    for key in await former_circumstances.gone_of_kind(evidence, kind, ()):
        last = next(iter(await evidence.changes(key)), None)
        if last is None or (dra.driver(last.object), dra.pool_name(last.object)) != place:
            continue
        names = [DeviceName(str(each.get("name"))) for each in dra.devices(last.object)]
        held = [(*place, name) for name in names]
        text = f"slice {key.name} with {devices_text(len(held))} was deleted"
        holders = [
            f"{each[2]}: claim {claim}"
            for each in held
            for claim in evidence.views.allocated.holders(each)
        ]
        still = f"still allocated are {listed(holders, len(holders))}"
        moved = [one for each in held for one in successors.of_device(evidence.views, each)]
        below = [Reason(text=still), *moved[:NAMES_MAX]] if holders else []
        made = sources.made(last, text, *below)
        ends.append((last, made))
    ends.sort(key=lambda one: -one[0].revision)
    return tuple(reason for _, reason in ends[: pools.SLICES_MAX])


async def resource_slice(
    evidence: ExplainedMoment, key: ObjectKey, tree: JsonObject
) -> ObjectExplanation:
    """A slice, its part in the pool, and its publisher."""
    events = await evidence.changes(key)
    pool_id = dra.pool_id(tree)
    state, _ = pools.state_of(evidence.views, pool_id)
    newest = max(
        resource_slice.generation for resource_slice in evidence.views.inventory.slices_of(pool_id)
    )
    generation = dra.pool(tree).generation
    count = len(dra.devices(tree))
    since = await unfinished.of_pool(evidence, pool_id)
    return _explained(
        evidence,
        subject=questions.subject_of(key),
        outcome="Obsolete" if generation < newest else state,
        text=f"{devices_text(count)} of pool {'/'.join(pool_id)}, generation {generation}",
        reasons=(
            *since,
            *pools.of_slice(evidence.views, events, tree, evidence.rules.allocator_quirks),
        ),
    )


async def device_class(
    evidence: ExplainedMoment, key: ObjectKey, tree: JsonObject
) -> ObjectExplanation:
    """The devices that a class selects, and its users."""
    compiler = evidence.rules.compiler
    selection = await evidence.run(lambda views: classes.select(views, tree, compiler))
    sees = evidence.sight.sees_key
    users = await evidence.run(lambda views: classes.users(views, key.name, sees))
    extended = dra.extended_resource_name(tree)
    named = (Reason(text=f"serves the extended resource {extended}"),) if extended else ()
    written = await _writes_of_class(evidence, key)
    return _explained(
        evidence,
        subject=questions.subject_of(key),
        outcome="Present",
        text=selection.text,
        reasons=(
            *classes.reasons(selection),
            *drivers_nearby.of_class(evidence.views, key, tree),
            *users,
            *named,
            *written,
        ),
        details={
            "selected": selection.selected,
            "devices": selection.total,
            "pools": {name: count for name, (count, _) in selection.pools.items() if count},
        },
    )


async def _writes_of_class(evidence: ExplainedMoment, key: ObjectKey) -> list[Reason]:
    """The creation of a class, and the last change of its selectors, with what it selected before.

    Devices are counted as they are now.
    """
    reasons: list[Reason] = []
    changed = await selections.reselecting(evidence, key.name)
    is_anew = changed is not None and changed[1].type is EventType.OBJECT_CREATED
    if changed is not None:
        before, after = changed
        compiler = evidence.rules.compiler
        former = await evidence.run(lambda views: classes.select(views, before.object, compiler))
        selectors = dra.class_selectors(before.object)
        noun = counts.plural(len(selectors), "selector")
        how = f"with its former {noun}" if selectors else "without a selector, as before,"
        text = f"{how} it would select {former.selected} of {devices_text(former.total)}"
        text += ": " * bool(selectors) + " and ".join(map(selections.expression_text, selectors))
        below = Reason(text=text, revision=before.revision, about=key)
        what = "made anew with other selectors" if is_anew else "its selectors were changed"
        reasons.append(replace(sources.made(after, what, below), is_kept=True))
    created = sources.creation(await evidence.changes(key))
    if created is not None and not is_anew and evidence.sight.sees(created):
        reasons.append(sources.made(created, "created"))
    return reasons


async def patch(evidence: ExplainedMoment, key: ObjectKey, tree: JsonObject) -> ObjectExplanation:
    """The changes that a patch makes, and the patches that take precedence over it."""
    known = evidence.views.inventory.patches().get(key.name)
    if known is None:
        problem = evidence.views.unreadable.get(key, "the patch is not used")
        return _explained(
            evidence,
            subject=questions.subject_of(key),
            outcome="Unreadable",
            text=problem,
            reasons=(Reason(text=problem),),
        )
    text, reasons = patches.summary(evidence.views, known)
    if not evidence.views.features.patches:
        reasons.insert(0, Reason(text="the gate DRAAdminControlledDeviceAttributes is off"))
    return _explained(
        evidence,
        subject=questions.subject_of(key),
        outcome="Present",
        text=f"{text}, priority {known.priority}",
        reasons=tuple(reasons),
    )


async def node(evidence: ExplainedMoment, key: ObjectKey, tree: JsonObject) -> ObjectExplanation:
    """Whether pods may be scheduled to a node, and how much of it is in use."""
    events = await evidence.changes(key)
    quirks, rules_now, now = evidence.rules.allocator_quirks, evidence.rules, await evidence.now()
    kept: tuple[Reason, ...] = ()
    if core.unschedulable(tree):
        most = evidence.bounds.cause_waiting_pods_max
        kept = await evidence.run(
            lambda views: cordons.kept_out(rules_now, views, key.name, most, now)
        )
    return _explained(
        evidence,
        subject=questions.subject_of(key),
        outcome=nodes.state_of(tree),
        text="",
        reasons=tuple(nodes.reasons(evidence.views, events, key.name, tree, quirks, kept)),
    )


async def rule(
    evidence: ExplainedMoment, key: ObjectKey, tree: JsonObject, decision: Event | None
) -> ObjectExplanation:
    """The effects of a rule on each device it selects, compared with a state without the rule."""
    from app.analysis.blast import text as blasting_text

    now = await evidence.now()
    quirks = evidence.rules.quirks
    reasons = await evidence.run(lambda views: rules.reasons(views, tree, quirks, now))
    decided = () if decision is None else (decision_reasons.reason_of(decision),)
    blast = await _blast(evidence, key.name)
    hit = blasting_text.reasons(blast, NAMES_MAX)
    radius = Reason(
        text="what it does, against a state without it:",
        children=tuple(replace(one, denies=_HIT if ": no" in one.text else ()) for one in hit),
    )
    conditions = meta.conditions(tree)
    count = len(reasons.claims)
    return _explained(
        evidence,
        subject=f"devicetaintrule {key.name}",
        outcome=conditions[0].reason if conditions else "NotProcessed",
        text=f"selects {devices_text(len(reasons.devices))}, {count} allocated "
        f"{counts.plural(count, 'claim')}",
        reasons=(*reasons.reasons, *await evictions.of_rule(evidence, key), radius, *decided),
        decision=decision,
        details={
            "devices": reasons.devices,
            "claims": reasons.claims,
            "blast": msgspec.to_builtins(blast),
        },
    )


async def _blast(evidence: ExplainedMoment, name: str) -> "BlastRadius":
    """The blast radius of an existing rule among what the reader may see, computed in a thread."""
    from app.analysis.blast import compare, sight, world

    now = await evidence.now()
    frozen = world.freeze(evidence.views, evidence.info, None, now)
    bounds = evidence.blast_bounds
    if evidence.sight.sees_all:
        return await anyio.to_thread.run_sync(compare.blast_of_rule, frozen, name, bounds)
    seen = sight.as_seen(frozen, evidence.sight.sees_key)
    part = await anyio.to_thread.run_sync(compare.blast_of_rule, seen, name, bounds)
    return msgspec.structs.replace(part, notes=(*part.notes, sight.UNSEEN))


def _explained(
    evidence: ExplainedMoment,
    *,
    subject: str,
    outcome: str,
    text: str,
    reasons: tuple[Reason, ...],
    decision: Event | None = None,
    details: JsonObject | None = None,
) -> ObjectExplanation:
    return ObjectExplanation(
        subject=subject,
        outcome=outcome,
        revision=evidence.views.revision,
        text=text,
        reason=Reason(text=subject, children=reasons),
        decision=body(decision),
        details=details or {},
    )


def _near(evidence: ExplainedMoment, device_id: DeviceId) -> str:
    """Devices of the pool, or pools of the driver, or drivers, as hints for a mistyped name."""
    inventory = evidence.views.inventory
    names = [device.id[2] for item in inventory.slices_of(device_id[:2]) for device in item.devices]
    if names:
        return f"; pool {'/'.join(device_id[:2])} has {listed(names, len(names))}"
    known = inventory.pool_ids()
    pools_of = [name for driver, name in known if driver == device_id[0]]
    if pools_of:
        return f"; pools of {device_id[0]} are {listed(pools_of, len(pools_of))}"
    drivers = sorted({driver for driver, _ in known})
    return f"; drivers are {listed(drivers, len(drivers))}" if drivers else ""


def _span(span: biographies.DeviceSpan) -> JsonObject:
    tree: JsonObject = {"claim": span.claim, "kind": span.kind, "from": span.begin.revision}
    if span.end is not None:
        tree["to"] = span.end.revision
    if span.pods:
        tree["pods"] = span.pods
    if span.others:
        tree["others"] = span.others
    return tree
