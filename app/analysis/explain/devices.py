"""Reasons about devices of claims and rules: what they have or select, and who uses it."""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from app.analysis.explain import sources, tainted
from app.analysis.explain.observed import drivers_reports
from app.analysis.explain.pods import Steps
from app.analysis.explain.reasons import Reason, listed
from app.analysis.explain.tallies import common_prefix
from app.analysis.views import LiveViews
from app.domain.controllers import pods
from app.domain.controllers.eviction import TaintState
from app.domain.controllers.eviction.taints import NO_EXECUTE, eviction_time, read_taint
from app.domain.controllers.quirks import ControllerQuirks
from app.domain.controllers.resources import claim_key, pod_key
from app.domain.devices import pools
from app.domain.devices.model import Taint
from app.domain.log import ObjectKey
from app.domain.values import api_resources, counts, timestamps
from app.domain.values.fields import dra, meta
from app.domain.values.fields.dra import DeviceResult
from app.domain.values.identifiers import DeviceId
from app.domain.values.json_tree import JsonObject, JsonView
from app.domain.values.timestamps import Instant

STEP_MAX = 256
"""The number of objects examined between two yields to other tasks."""


def devices_text(places: Iterable[DeviceId], *, all_names: bool = False) -> str:
    """The devices, with their common prefix written once: `gpu-0, gpu-1 of driver/pool`."""
    names = ["/".join(place) for place in places]
    prefix = common_prefix(names)
    shown = [name.removeprefix(prefix) for name in names]
    text = ", ".join(shown) if all_names else listed(shown, len(shown))
    return f"{text} of {prefix.rstrip('/')}" if prefix else text


def allocated(results: Sequence[DeviceResult]) -> list[Reason]:
    """The devices of a claim, one line per request."""
    requests: dict[str, list[DeviceResult]] = {}
    for result in results:
        requests.setdefault(result.request, []).append(result)
    return [_request(name, devices) for name, devices in requests.items()]


def later_alternatives(claim: JsonView, results: Sequence[DeviceResult]) -> Iterator[Reason]:
    """The alternatives of a prioritized list that come before the one that a claim got."""
    got = dict.fromkeys(result.request.partition("/")[::2] for result in results)
    for main, name in got:
        for request in dra.requests(claim):
            names = [wish.name for wish in request.first_available]
            if request.name != main or name not in names[1:]:
                continue
            before = names[: names.index(name)]
            which = listed(before, len(before))
            text = f"alternative {name} of request {main} was chosen, not {which}, which "
            text += f"{counts.verb(len(before), 'comes')} first"
            yield Reason(text=f"{text}; the reasons of the claim say why", is_kept=True)


def claims_of(
    views: LiveViews, pod: JsonObject, quirks: ControllerQuirks, now: Instant
) -> Steps[list[Reason]]:
    """The claims reserved for a pod: their devices, the devices' taints, and evictions due."""
    uid = meta.uid(pod)
    namespace = meta.namespace(pod)
    reasons: list[Reason] = []
    for number, key in enumerate(
        list(views.objects.keys(*api_resources.RESOURCE_CLAIMS, namespace))
    ):
        if number % STEP_MAX == 0:
            yield
        tree = views.objects.get(key) or {}
        if dra.has_consumer(tree, uid):
            results = dra.results(tree)
            taints = [
                reason
                for result in results
                for reason in tainted.of_result(views, tree, result, quirks, now)
            ]
            children = (
                *taints,
                *allocated(results),
                *held_twice(views, tree, results),
                *later_alternatives(tree, results),
                *drivers_reports.reasons(key, tree),
                *drivers_reports.of_configurations(views, key, tree),
                *unpublished(views, key, results),
            )
            reasons.append(Reason(text=f"claim {key.name}", children=children, about=key))
    return _to_be_evicted(views, pod, quirks) + reasons


def held_twice(
    views: LiveViews, tree: JsonView, results: Sequence[DeviceResult]
) -> Iterator[Reason]:
    """Other claims that hold a whole device which this claim also holds as a whole."""
    own = "/".join(part for part in meta.place(tree) if part)
    for result in results:
        if result.admin_access or result.share_id:
            continue
        for holder in views.allocated.holders(result.id):
            if holder == own:
                continue
            namespace, _, name = holder.rpartition("/")
            key = claim_key(namespace, name)
            text = f"{result.text} is allocated to claim {holder} too: one device in two claims"
            yield Reason(
                text=text,
                revision=sources.revision_of(views.objects, key),
                about=key,
                is_kept=True,
                holds=partial(_holds, result.id),
                since="; it was allocated there",
            )


def _holds(device: DeviceId, tree: JsonView) -> bool:
    return any(result.id == device for result in dra.results(tree))


def unpublished(
    views: LiveViews, claim: ObjectKey, results: Sequence[DeviceResult]
) -> Iterator[Reason]:
    """Devices of a claim that the newest generation of their pool does not have.

    A recording without any slice does not show that one is gone.
    """
    event = views.objects.event(claim)
    if event is not None and sources.is_recorded([event]) and not any(views.inventory.slices()):
        return
    for result in results:
        everywhere = views.inventory.slices_of(result.id[:2])
        having = [one for one in everywhere if any(each.id == result.id for each in one.devices)]
        current = pools.newest(everywhere)
        if any(one in current for one in having):
            continue
        if having:
            names = [one.name for one in having]
            yield Reason(
                text=f"{result.text} is published by slice {listed(names, len(names))} of "
                f"generation {having[0].generation} only, and generation {current[0].generation} "
                "is there; that alone ends no pod"
            )
        else:
            yield Reason(text=f"{result.text} is not published any more; that alone ends no pod")


def _to_be_evicted(views: LiveViews, pod: JsonObject, quirks: ControllerQuirks) -> list[Reason]:
    """The eviction planned for a pod, as the eviction controller computes it."""
    if not views.profile.enabled("DRADeviceTaints") or "deletionTimestamp" in pod["metadata"]:
        return []
    objects = views.objects
    namespace, name = meta.namespace(pod), pod["metadata"]["name"]
    state = TaintState(quirks, with_rules=views.profile.enabled("DRADeviceTaintRules"))
    claims = [
        claim_key(namespace, named.name or "") for named in pods.named_claims(pods.facts(pod))
    ]
    pools = {result.id[:2] for key in claims for result in dra.results(objects.get(key) or {})}
    slices = [
        ObjectKey(*api_resources.RESOURCE_SLICES, "", item.key)
        for pool in sorted(pools)
        for item in views.inventory.slices_of(pool)
    ]
    for key in (
        *objects.keys(*api_resources.DEVICE_TAINT_RULES),
        *slices,
        *claims,
        pod_key(namespace, name),
    ):
        if (event := objects.event(key)) is not None:
            state.fold(event)
    eviction = state.pod_eviction((namespace, name))
    if eviction is None:
        return []
    # The controller's reasons include taints that would evict the pod later.
    causes = [*dict.fromkeys(_evicting_by(views, claims, quirks, eviction.time))]
    when = sources.when(eviction.time)
    text = f"is to be evicted at {when}: {listed(causes, len(causes))}"
    return [Reason(text=text, is_kept=True)]


def _evicting_by(
    views: LiveViews, claims: Sequence[ObjectKey], quirks: ControllerQuirks, until: Instant
) -> Iterator[str]:
    """The users who set the taints of the claims' devices that evict a pod by an instant."""
    for key in claims:
        tree = views.objects.get(key)
        for result in () if tree is None else dra.results(tree):
            if tree is None:
                continue
            for slice_key, taint in tainted.taints_of(views, result.id, quirks):
                verdict = tainted.judge(views, tree, result, taint, quirks, until)
                if verdict.due is not None and verdict.due <= until:
                    yield tainted.origin(views, result.id, taint, slice_key).text


def evicting(views: LiveViews, pod: JsonObject, quirks: ControllerQuirks) -> Steps[list[Reason]]:
    """The NoExecute taints of the pod's devices that its claims do not tolerate for ever."""
    uid = meta.uid(pod)
    reasons: list[Reason] = []
    for number, key in enumerate(
        list(views.objects.keys(*api_resources.RESOURCE_CLAIMS, meta.namespace(pod)))
    ):
        if number % STEP_MAX == 0:
            yield
        tree = views.objects.get(key) or {}
        if dra.has_consumer(tree, uid):
            reasons += _evicting_of(views, key, tree, quirks)
    return reasons


def _evicting_of(
    views: LiveViews, claim: ObjectKey, tree: JsonView, quirks: ControllerQuirks
) -> Iterator[Reason]:
    """The taints of a claim's devices that it does not tolerate for ever."""
    for result in dra.results(tree):
        for slice_key, taint in tainted.taints_of(views, result.id, quirks):
            patience = _patience(taint, result.tolerations, dra.allocation(tree), quirks)
            if patience is not None:
                source = tainted.origin(views, result.id, taint, slice_key)
                what = f"tainted {taint.text} by {source.text}{patience}"
                yield source.reason(f"claim {claim.name} has {result.text}, {what}")


def _patience(
    taint: Taint,
    tolerations: Sequence[JsonObject],
    allocation: JsonView | None,
    quirks: ControllerQuirks,
) -> str | None:
    """The time for which a claim tolerates a taint, as a suffix; None if it never evicts."""
    if taint.effect != NO_EXECUTE:
        return None
    read = read_taint({"key": taint.key, "value": taint.value, "timeAdded": taint.time_added})
    due = eviction_time(read, tolerations, empty_effect_counts=not quirks.c2)
    if due is None:
        return None
    if due > read.time_added:
        until = timestamps.seconds_text(due)
        return f", tolerated until {until}{tainted.was_over(allocation, due)}"
    if due != eviction_time(read, tolerations, empty_effect_counts=True):
        return "; a toleration without an effect does not keep from eviction (known issue C2)"
    return ""


def _request(name: str, results: Sequence[DeviceResult]) -> Reason:
    if not any(result.consumed_capacity for result in results):
        places = [result.id for result in results]
        text = f"request {name} has {devices_text(places, all_names=True)}"
        return Reason(text=text, count=len(results))
    lines = tuple(
        Reason(
            text=f"{result.text} with "
            + ", ".join(f"{key} {used}" for key, used in sorted(result.consumed_capacity.items()))
        )
        for result in results
    )
    if len(lines) == 1:
        return Reason(text=f"request {name} has {lines[0].text}")
    text = f"request {name} has {len(lines)} shares"
    return Reason(text=text, children=lines, count=len(lines))
