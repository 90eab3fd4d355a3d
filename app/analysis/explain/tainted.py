"""The effect of a taint on an allocated device: whether and when the claim's pods are evicted.

The eviction controller's view is used: the taints of the newest generation and the rules that
select the device, against the tolerations in the allocation. Parity: controllers.md 1.1 to 1.3.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from itertools import islice

from app.analysis.explain import sources
from app.analysis.explain.reasons import NAMES_MAX, Reason
from app.analysis.views import LiveViews
from app.domain.controllers import pods
from app.domain.controllers.eviction import taints as evictions
from app.domain.controllers.eviction.taints import NO_EXECUTE, eviction_time, read_taint
from app.domain.controllers.quirks import ControllerQuirks
from app.domain.controllers.resources import claim_key
from app.domain.devices import pools, taints
from app.domain.devices.model import Device, Taint
from app.domain.devices.taints import TaintRule
from app.domain.log import ObjectKey
from app.domain.objects.profile import Profile
from app.domain.values import api_resources, counts, timestamps
from app.domain.values.fields import dra, meta
from app.domain.values.fields.dra import DeviceResult
from app.domain.values.identifiers import DeviceId
from app.domain.values.json_tree import JsonObject, JsonView
from app.domain.values.timestamps import Instant


class TaintFate(StrEnum):
    """The fate of the pods of a claim under one taint."""

    EVICTED = "evicted"
    DUE = "due"
    SPARED = "spared"


@dataclass(frozen=True, slots=True, kw_only=True)
class TaintVerdict:
    """The verdict on one taint of a device for one result of a claim.

    `due` is the instant of the eviction, if any; `issues` are the known issues that were involved.
    """

    taint: Taint
    fate: TaintFate
    text: str
    due: Instant | None = None
    issues: tuple[str, ...] = ()


def device_of(views: LiveViews, place: DeviceId) -> tuple[str, Device] | None:
    """The effective device in its pool's newest generation, after the key of its slice."""
    for resource_slice in pools.newest(views.inventory.slices_of(place[:2])):
        for device in resource_slice.devices:
            if device.id == place:
                return resource_slice.key, device
    return None


def taints_of(
    views: LiveViews, place: DeviceId, quirks: ControllerQuirks
) -> Iterator[tuple[str, Taint]]:
    """The taints of a device that a claim holds, each after the key of the device's slice.

    Eviction sees a rule also where no slice publishes the device, and where the scheduler does not
    see it. Parity: controllers.md 1.2 and C24.
    """
    slice_and_device = device_of(views, place)
    slice_key = "" if slice_and_device is None else slice_and_device[0]
    own = () if slice_and_device is None else slice_and_device[1].taints
    yield from ((slice_key, taint) for taint in own)
    if not are_rules_on(views.profile):
        return
    seen = {taint.rule for taint in own}
    for name, rule in sorted(views.inventory.rules().items()):
        is_evicting = rule.taint.effect == NO_EXECUTE and name not in seen
        if is_evicting and rule.matches(place, without_selector=not quirks.c1):
            yield slice_key, rule.taint


@dataclass(frozen=True, slots=True, kw_only=True)
class TaintSource:
    """The source of a taint on a device: as text, the object, and its last revision in the views.

    `holds` tests whether a state of the object sets the taint.
    """

    text: str
    about: ObjectKey
    revision: int
    holds: Callable[[JsonView], bool]

    def reason(self, text: str, issues: tuple[str, ...] = ()) -> Reason:
        """A reason caused by this object."""
        return Reason(
            text=text,
            revision=self.revision,
            about=self.about,
            holds=self.holds,
            issues=issues,
            is_kept=True,
        )


def origin(views: LiveViews, place: DeviceId, taint: Taint, slice_key: str) -> TaintSource:
    """The source of a taint of a device."""
    if taint.rule:
        key = ObjectKey(*api_resources.DEVICE_TAINT_RULES, "", taint.rule)
        text = f"rule {taint.rule}"
        holds = partial(_rule_taints, place, taint)
    else:
        key = ObjectKey(*api_resources.RESOURCE_SLICES, "", slice_key)
        text = f"the driver, slice {slice_key}"
        holds = partial(_slice_taints, place, taint)
    return TaintSource(
        text=text, about=key, revision=sources.revision_of(views.objects, key), holds=holds
    )


def _rule_taints(place: DeviceId, taint: Taint, tree: JsonView) -> bool:
    rule = taints.rule_of(dict(tree))
    return rule.taint.text == taint.text and rule.matches(place)


def _slice_taints(place: DeviceId, taint: Taint, tree: JsonView) -> bool:
    return dra.pool_id(tree) == place[:2] and any(
        taints.taint_of(device_taint).text == taint.text
        for device in dra.devices(tree)
        if device.get("name") == place[2]
        for device_taint in dra.device_taints(device)
    )


def of_result(
    views: LiveViews,
    claim: JsonObject,
    result: DeviceResult,
    quirks: ControllerQuirks,
    now: Instant,
) -> Iterator[Reason]:
    """Each taint of a device that a claim holds, and its effect on the claim's pods."""
    for slice_key, taint in taints_of(views, result.id, quirks):
        verdict = judge(views, claim, result, taint, quirks, now)
        source = origin(views, result.id, taint, slice_key)
        text = f"{result.text} is tainted {taint.text} by {source.text}: {verdict.text}"
        yield source.reason(text, verdict.issues)


def judge(
    views: LiveViews,
    claim: JsonObject,
    result: DeviceResult,
    taint: Taint,
    quirks: ControllerQuirks,
    now: Instant,
) -> TaintVerdict:
    """The effect of one taint on the pods of a claim that holds the device."""
    if taint.effect != NO_EXECUTE:
        text = f"nobody is evicted, the effect is {taint.effect or 'None'}"
        return TaintVerdict(taint=taint, fate=TaintFate.SPARED, text=text)
    if not views.profile.enabled("DRADeviceTaints"):
        text = "nobody is evicted, the gate DRADeviceTaints is off"
        return TaintVerdict(taint=taint, fate=TaintFate.SPARED, text=text)
    if taint.rule and not are_rules_on(views.profile):
        text = "nobody is evicted, the gate DRADeviceTaintRules is off"
        return TaintVerdict(taint=taint, fate=TaintFate.SPARED, text=text)
    rule = views.inventory.rules().get(taint.rule)
    if rule is not None and not rule.selects and quirks.c1:
        text = "nobody is evicted, because a rule without deviceSelector selects nothing there"
        return TaintVerdict(taint=taint, fate=TaintFate.SPARED, text=text, issues=("C1", "Q14"))
    if quirks.c3 and is_extended(views, claim):
        text = "not evicted, because the claim is for an extended resource"
        return TaintVerdict(taint=taint, fate=TaintFate.SPARED, text=text, issues=("C3",))
    return _tolerated(claim, result, taint, quirks, now)


def is_extended(views: LiveViews, claim: JsonView) -> bool:
    """Whether the scheduler created the claim for extended resources of a pod."""
    owner = meta.controller(claim)
    if owner is None or owner.kind != "Pod":
        return False
    pod = views.objects.get(ObjectKey(*api_resources.PODS, meta.namespace(claim), owner.name))
    return pod is not None and pods.facts(pod).extended_claim == meta.name(claim)


def toleration_text(toleration: JsonView) -> str:
    """The toleration as text: `key=value:effect for 300 s`, with `Exists` for any value."""
    key = toleration.get("key") or "every key"
    operator = toleration.get("operator") or "Equal"
    value = f"={toleration.get('value') or ''}" if operator == "Equal" else f" {operator}"
    effect = toleration.get("effect")
    seconds = toleration.get("tolerationSeconds")
    text = f"{key}{value}{f':{effect}' if effect else ', any effect'}"
    return text + ("" if seconds is None else f" for {seconds} s")


def not_copied(claim: JsonObject, result: DeviceResult) -> list[JsonObject]:
    """The tolerations of the request that the allocation lacks; eviction does not see them."""
    wanted = tolerations_of(claim, result.request)
    return [toleration for toleration in wanted if toleration not in result.tolerations]


def are_rules_on(profile: Profile) -> bool:
    """Whether DeviceTaintRules taint devices, also where the scheduler does not see them (C24)."""
    return profile.enabled("DRADeviceTaints") and profile.enabled("DRADeviceTaintRules")


def unseen_rules(views: LiveViews, pod: JsonObject) -> tuple[Reason, ...]:
    """The rules that would evict the pod from devices on which its scheduler places it.

    The scheduler of a release does not see rules, but the eviction controller does. Parity:
    controllers.md C24.
    """
    profile = views.profile
    if not (profile.ignores_rules and are_rules_on(profile)):
        return ()
    return tuple(islice(_evicting(views, pod), NAMES_MAX))


def _evicting(views: LiveViews, pod: JsonObject) -> Iterator[Reason]:
    tolerations = [*_tolerations_of(views, pod)]
    for name, rule in sorted(views.inventory.rules().items()):
        if rule.taint.effect != NO_EXECUTE or not rule.selects:
            continue
        read = read_taint({"key": rule.taint.key, "value": rule.taint.value})
        if all(eviction_time(read, each) is None for each in tolerations):
            continue
        count = _count_selected(views, rule)
        if not count:
            continue
        key = ObjectKey(*api_resources.DEVICE_TAINT_RULES, "", name)
        text = f"the scheduler of this release does not see rule {name}, which taints "
        text += f"{counts.of(count, 'device')} {rule.taint.text}: where a change leads to one of "
        yield Reason(
            text=f"{text}them, the pod is placed there and evicted again",
            count=count,
            revision=sources.revision_of(views.objects, key),
            about=key,
            issues=("C24",),
            is_kept=True,
        )


def _tolerations_of(views: LiveViews, pod: JsonObject) -> Iterator[tuple[JsonObject, ...]]:
    """The tolerations of each request of the pod's claims."""
    facts = pods.facts(pod)
    for named in pods.named_claims(facts):
        claim = views.objects.get(claim_key(facts.namespace, named.name or "")) or {}
        for request in dra.requests(claim):
            for wish in (request.exactly, *request.first_available):
                if wish is not None:
                    yield wish.tolerations


def _count_selected(views: LiveViews, rule: TaintRule) -> int:
    """The number of published devices that a rule selects."""
    places = (device.id for one in views.inventory.slices() for device in one.devices)
    return len({place for place in places if rule.matches(place)})


def _tolerated(
    claim: JsonObject, result: DeviceResult, taint: Taint, quirks: ControllerQuirks, now: Instant
) -> TaintVerdict:
    read = read_taint({"key": taint.key, "value": taint.value, "timeAdded": taint.time_added})
    due = eviction_time(read, result.tolerations, empty_effect_counts=not quirks.c2)
    matching = [each for each in result.tolerations if evictions.matches(each, read)]
    named = " and ".join(toleration_text(each) for each in matching)
    by = f"request {result.request or 'without name'} ({named})" if matching else ""
    if due is None:
        text = f"tolerated for ever by {by}, so nobody is evicted"
        return TaintVerdict(taint=taint, fate=TaintFate.SPARED, text=text)
    if due > read.time_added:
        fate = TaintFate.DUE if due > now else TaintFate.EVICTED
        text = f"tolerated until {sources.when(due)} by {by}"
        late = was_over(dra.allocation(claim), due)
        text += f"{late}, so its pods are evicted at once" if late else "; evicted then"
        return TaintVerdict(taint=taint, fate=fate, text=text, due=due)
    text = "not tolerated, so its pods are evicted"
    issues: tuple[str, ...] = ()
    if due != eviction_time(read, result.tolerations, empty_effect_counts=True):
        text += f"; {by} has no effect, which does not keep from eviction"
        issues = ("C2",)
    lost = [each for each in not_copied(claim, result) if evictions.matches(each, read)]
    if lost:
        shown = " and ".join(toleration_text(each) for each in lost)
        text += f"; {shown} of the request was not copied to the allocation"
    return TaintVerdict(taint=taint, fate=TaintFate.EVICTED, text=text, due=due, issues=issues)


def was_over(allocation: JsonView | None, due: Instant) -> str:
    """The words about a tolerated time that was over before a claim got its device; else empty."""
    got = timestamps.instant_of(dra.allocation_time(allocation or {}))
    if got is None or got < due:
        return ""
    return ", which counts from when the taint was set and was over when the claim got the device"


def tolerations_of(claim: JsonView, name: str) -> Sequence[JsonObject]:
    """The tolerations of a request, or of its chosen alternative."""
    main, _, alternative = name.partition("/")
    for request in dra.requests(claim):
        if request.name != main:
            continue
        for ask in request.first_available:
            if ask.name == alternative:
                return ask.tolerations
        return () if request.exactly is None else request.exactly.tolerations
    return ()
