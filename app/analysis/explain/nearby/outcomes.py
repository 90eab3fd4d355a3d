"""Placements that do not last: claims without room for the pod, devices that it is evicted from."""

from collections.abc import Iterator, Sequence

from app.analysis.explain import tainted
from app.analysis.explain.node_reasons import NodeReason
from app.analysis.explain.reasons import NAMES_MAX, Reason
from app.analysis.explain.tainted import TaintFate
from app.analysis.views import LiveViews
from app.domain.controllers import pods
from app.domain.controllers.eviction.taints import NO_EXECUTE
from app.domain.controllers.plan import Views
from app.domain.controllers.quirks import ControllerQuirks
from app.domain.controllers.resources import claim_key
from app.domain.controllers.scheduling.scheduling_cycle.attempt import SchedulerRules
from app.domain.controllers.scheduling.scheduling_cycle.cycle import fails_to_score
from app.domain.values import counts, identifiers
from app.domain.values.fields import dra, meta
from app.domain.values.fields.dra import DeviceResult
from app.domain.values.json_tree import JsonObject, JsonView
from app.domain.values.timestamps import Instant


def full_claims(views: Views, pod: JsonObject) -> Iterator[Reason]:
    """The allocated claims of a pod that are reserved for as many consumers as a claim can have.

    All filters pass such a pod, and each attempt fails when it binds. Parity: controllers.md C14.
    """
    facts = pods.facts(pod)
    for named in pods.named_claims(facts):
        key = claim_key(facts.namespace, named.name or "")
        claim = views.objects.get(key)
        if claim is None or dra.allocation(claim) is None or pods.has_room(claim):
            continue
        if not pods.is_reserved_for(claim, meta.uid(pod)):
            text = f"claim {key.name} is reserved for {pods.RESERVED_MAX} consumers, and a claim "
            text += "cannot have more: each attempt to bind the pod fails until one of them ends"
            yield Reason(
                text=text,
                about=key,
                holds=lambda tree: not pods.has_room(tree),
                issues=("C14",),
                is_kept=True,
            )


def untimed_claims(views: Views, pod: JsonObject, rules: SchedulerRules) -> Iterator[Reason]:
    """The claims whose allocation has no time, where a reservation for the pod would add one.

    The API refuses that, as an allocation may not change. Parity: controllers.md C13.
    """
    if not rules.features.binding_conditions:
        return
    facts = pods.facts(pod)
    for named in pods.named_claims(facts):
        key = claim_key(facts.namespace, named.name or "")
        claim = views.objects.get(key)
        if claim is None or not _is_untimed(claim) or pods.is_reserved_for(claim, meta.uid(pod)):
            continue
        text = f"claim {key.name} was allocated without an allocationTimestamp: a reservation for "
        text += "another pod adds one, which the API refuses, until the claim is deallocated"
        yield Reason(text=text, about=key, holds=_is_untimed, issues=("C13",), is_kept=True)


def _is_untimed(claim: JsonView) -> bool:
    allocation = dra.allocation(claim)
    return allocation is not None and not dra.allocation_time(allocation)


def unscored(
    views: Views, pod: JsonObject, rules: SchedulerRules, fitting: int
) -> Iterator[Reason]:
    """The reason that scoring fails for a pod with mixed claims. Parity: controllers.md 10."""
    facts = pods.facts(pod)
    named = pods.named_claims(facts)
    claims = [views.objects.get(claim_key(facts.namespace, one.name or "")) for one in named]
    fresh = sum(claim is None or dra.allocation(claim) is None for claim in claims)
    if fitting > 1 and fails_to_score(rules, fresh, len(claims)):
        text = f"{fresh} of {counts.of(len(claims), 'claim')} of the pod is not allocated yet: "
        text += "scoring fails for such a pod while more than one node fits"
        yield Reason(text=text, issues=("R2",), is_kept=True)


def evictions(
    views: LiveViews,
    pod: JsonObject,
    nodes: Sequence[NodeReason],
    quirks: ControllerQuirks,
    now: Instant,
) -> tuple[tuple[Reason, ...], int]:
    """The evictions that follow where a node takes the pod, and the number of such nodes.

    There is one reason for each device and taint, at most NAMES_MAX.
    """
    evicting: dict[str, Reason] = {}
    count = 0
    for node in nodes:
        reasons = () if node.text else tuple(_of_node(views, pod, node, quirks, now))
        count += bool(reasons)
        for reason in reasons:
            if len(evicting) < NAMES_MAX:
                evicting.setdefault(reason.text, reason)
    return tuple(evicting.values()), count


def _of_node(
    views: LiveViews, pod: JsonObject, node: NodeReason, quirks: ControllerQuirks, now: Instant
) -> Iterator[Reason]:
    """The evictions from the devices that one node gives the pod."""
    namespace = meta.namespace(pod)
    for name, request in node.requests():
        claim = views.objects.get(claim_key(namespace, name.rpartition("/")[2]))
        for device in request.devices if claim is not None else ():
            if not device.chosen or claim is None:
                continue
            driver, pool, device_name = identifiers.parse_device(device.device)
            result = DeviceResult(
                request=request.request,
                driver=driver,
                pool=pool,
                device=device_name,
                tolerations=tuple(tainted.tolerations_of(claim, request.request)),
            )
            yield from _from_device(views, claim, result, quirks, now)


def _from_device(
    views: LiveViews,
    claim: JsonObject,
    result: DeviceResult,
    quirks: ControllerQuirks,
    now: Instant,
) -> Iterator[Reason]:
    slice_and_device = tainted.device_of(views, result.id)
    if slice_and_device is None:
        return
    slice_key, device = slice_and_device
    for taint in device.taints:
        if taint.effect != NO_EXECUTE:
            continue
        verdict = tainted.judge(views, claim, result, taint, quirks, now)
        if verdict.fate is not TaintFate.SPARED:
            source = tainted.origin(views, result.id, taint, slice_key)
            text = f"{result.text} would be taken, which is tainted {taint.text} by {source.text}"
            yield source.reason(f"{text}: {verdict.text}", verdict.issues)
