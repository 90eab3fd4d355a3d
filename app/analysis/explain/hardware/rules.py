"""DeviceTaintRules: the devices that a rule selects, the claims on them, and their pods' fate."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from app.analysis import device_selectors
from app.analysis.explain import tainted
from app.analysis.explain.devices import devices_text
from app.analysis.explain.pods import Steps
from app.analysis.explain.reasons import Reason, listed
from app.analysis.explain.tainted import TaintFate
from app.analysis.views import LiveViews
from app.domain.controllers.quirks import ControllerQuirks
from app.domain.controllers.resources import claim_key
from app.domain.devices import pools, taints
from app.domain.devices.model import Taint
from app.domain.log import ObjectKey
from app.domain.values import api_resources, counts
from app.domain.values.fields import dra, meta
from app.domain.values.fields.dra import DeviceResult
from app.domain.values.identifiers import DeviceId
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import Instant

STEP_MAX = 256
"""The number of objects examined between two yields to other tasks."""

CLAIMS_MAX = 12
"""The number of claims of one fate shown one by one."""

_FATES = {
    TaintFate.EVICTED: "whose pods are evicted",
    TaintFate.DUE: "whose pods may stay for a while",
    TaintFate.SPARED: "whose pods stay",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleFindings:
    """The reasons, the published devices that the rule selects, and the claims that hold some."""

    reasons: tuple[Reason, ...]
    devices: list[str]
    claims: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Hit:
    """A claim that holds a selected device, and its fate."""

    key: ObjectKey
    text: str
    fate: TaintFate
    issues: tuple[str, ...]


def reasons(
    views: LiveViews, tree: JsonObject, quirks: ControllerQuirks, now: Instant
) -> Steps[RuleFindings]:
    """The effect of a rule, device by device and claim by claim."""
    selector = dra.device_selector(tree)
    matched: list[DeviceId] = []
    for number, pool in enumerate(list(views.inventory.pool_ids())):
        if number % STEP_MAX == 0:
            yield
        for item in pools.newest(views.inventory.slices_of(pool)):
            matched += [
                device.id
                for device in item.devices
                if selects(selector, device.id, everywhere=not quirks.c1)
            ]
    taint = taints.rule_of(tree).taint
    hits = yield from _hits(views, selector, taint, quirks, now)
    status = [
        _condition(condition.reason, condition.message) for condition in meta.conditions(tree)
    ]
    everywhere = views.profile.empty_rules_taint
    text, issues = _taint_text(selector, taint, matched, quirks, everywhere=everywhere)
    is_on = tainted.are_rules_on(views.profile)
    children = [
        *status,
        *switched_off(views),
        *(() if hits else missed(views, tree)),
        Reason(text=text if is_on else f"it would set {text}", count=len(matched), issues=issues),
        *(_by_fate(hits) if is_on else ()),
        *(_unclaimed(views, matched) if is_on and hits else ()),
    ]
    claims = [f"claim {hit.key.namespace}/{hit.key.name} {hit.text}" for hit in hits]
    return RuleFindings(
        reasons=tuple(children), devices=["/".join(place) for place in matched], claims=claims
    )


def switched_off(views: LiveViews) -> Iterator[Reason]:
    """The gate without which no rule taints a device; none if it is on."""
    if not tainted.are_rules_on(views.profile):
        gates = ("DRADeviceTaints", "DRADeviceTaintRules")
        off = [gate for gate in gates if not views.profile.enabled(gate)]
        text = f"{counts.plural(len(off), 'gate')} {' and '.join(off)} "
        text += f"{counts.verb(len(off), 'is')} off in this history: "
        yield Reason(text=f"{text}rules taint no device and evict nobody", is_kept=True)


def missed(views: LiveViews, tree: JsonObject) -> Iterator[Reason]:
    """The reasons why a rule's selector matches no published device; none if it matches one."""
    text = device_selectors.unmatched(
        dra.device_selector(tree),
        (
            device.id
            for pool in views.inventory.pool_ids()
            for item in pools.newest(views.inventory.slices_of(pool))
            for device in item.devices
        ),
    )
    if text:
        yield Reason(text=text, is_kept=True)


def held(views: LiveViews) -> frozenset[DeviceId]:
    """The devices that claims hold, published or not: eviction compares rules with them."""
    keys = views.objects.keys(*api_resources.RESOURCE_CLAIMS)
    return frozenset(
        result.id for key in keys for result in dra.results(views.objects.get(key) or {})
    )


def _taint_text(
    selector: object,
    taint: Taint,
    matched: Sequence[DeviceId],
    quirks: ControllerQuirks,
    *,
    everywhere: bool,
) -> tuple[str, tuple[str, ...]]:
    noun = counts.plural(len(matched), "published device")
    text = f"taint {taint.text} on {len(matched)} {noun}"
    if selector is not None or not quirks.c1:
        drivers = sorted({device[0] for device in matched})
        # Drivers name pools after nodes, so a rule by pool may mean more than its author did.
        several = f" of {len(drivers)} drivers" if len(drivers) > 1 else ""
        return (f"{text}{several}: {devices_text(matched)}" if matched else text), ()
    text += "; a rule without deviceSelector evicts nobody"
    if not everywhere:
        return f"{text} and keeps no pod away", ("C1",)
    if taint.effect in taints.BLOCKING_EFFECTS:
        text += ", but new pods keep away from every device"
    return text, ("C1", "Q14")


def _hits(
    views: LiveViews, selector: object, taint: Taint, quirks: ControllerQuirks, now: Instant
) -> Steps[list[_Hit]]:
    hits: list[_Hit] = []
    for number, key in enumerate(list(views.objects.keys(*api_resources.RESOURCE_CLAIMS))):
        if number % STEP_MAX == 0:
            yield
        tree = views.objects.get(key) or {}
        for result in dra.results(tree):
            if selects(selector, result.id, everywhere=not quirks.c1):
                hits.append(_hit(views, key, tree, result, taint, quirks, now))
    return hits


def _hit(
    views: LiveViews,
    key: ObjectKey,
    tree: JsonObject,
    result: DeviceResult,
    taint: Taint,
    quirks: ControllerQuirks,
    now: Instant,
) -> _Hit:
    verdict = tainted.judge(views, tree, result, taint, quirks, now)
    users = [consumer.name for consumer in dra.consumers(tree)]
    fate, text = verdict.fate, verdict.text
    if not users and fate is not TaintFate.SPARED:
        fate, text = TaintFate.SPARED, "no pod uses it, so nobody is evicted"
    owner = f"of pod {listed(users, len(users))}" if users else "of no pod"
    return _Hit(key=key, text=f"{owner}: {result.text}: {text}", fate=fate, issues=verdict.issues)


def _by_fate(hits: Sequence[_Hit]) -> Iterator[Reason]:
    if not hits:
        yield Reason(
            text="no allocated claim has one of them, so nobody is evicted",
            denies=("resourceclaims",),
        )
    for fate in TaintFate:
        alike = [hit for hit in hits if hit.fate is fate]
        if not alike:
            continue
        lines = [
            Reason(
                text=f"claim {hit.key.namespace}/{hit.key.name} {hit.text}",
                issues=hit.issues,
                about=claim_key(hit.key.namespace, hit.key.name),
            )
            for hit in alike[:CLAIMS_MAX]
        ]
        if (rest := len(alike) - CLAIMS_MAX) > 0:
            lines.append(Reason(text=f"{rest} more", count=rest))
        count = len({hit.key for hit in alike})
        noun = "1 allocated claim" if count == 1 else f"{count} allocated claims"
        yield Reason(text=f"{noun} {_FATES[fate]}", children=tuple(lines), count=count)


def _unclaimed(views: LiveViews, matched: Sequence[DeviceId]) -> Iterator[Reason]:
    """The devices of a rule without a claim, beside others of it that claims have."""
    free = [place for place in matched if not views.allocated.holders(place)]
    if free:
        names = ["/".join(place) for place in free]
        has = counts.verb(len(free), "has")
        text = f"{listed(names, len(names))} {has} no claim on it, so nobody is evicted for it"
        if len(free) > 1:
            text = f"{listed(names, len(names))} have no claim on them, so nobody is evicted"
        yield Reason(text=text, count=len(free), denies=("resourceclaims",))


def _condition(reason: str, message: str) -> Reason:
    return Reason(text=f"{reason}: {message}".rstrip(": "))


def selects(selector: object, place: DeviceId, *, everywhere: bool = False) -> bool:
    """Whether the selector matches, for eviction: an absent one never does (controllers.md C1).

    `everywhere` is the result for an absent one where C1 is switched off.
    """
    if not isinstance(selector, dict):
        return everywhere
    return device_selectors.matches(selector, place)
