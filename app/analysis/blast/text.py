"""A blast radius as lines that fit a page: counts first, then the first entries of each list."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TypeVar

from app.analysis.blast.radius import (
    BlastRadius,
    ClaimDeletion,
    ClaimRelease,
    ClassFate,
    DeviceFate,
    Effect,
    Fate,
    PodFate,
    PoolFate,
    Prospect,
    QuotaFate,
    WaitingFate,
    WriteFate,
)
from app.analysis.explain.reasons import Reason
from app.analysis.recordings import uncertainty
from app.domain.values import counts, durations

SUMS_MAX = 6
"""The number of capacities and counters in a pool's line; a host of partitions has hundreds."""

NAMES_MAX = 3
"""The number of pods or devices that the line of a deleted claim names."""

_Entry = TypeVar("_Entry")

_WORDS = {
    Fate.NOW: "at once",
    Fate.LATER: "later",
    Fate.TERMINATING: "terminating already",
    Fate.ALREADY: "evicted anyway",
    Fate.TOLERATED: "tolerating it for ever",
    Fate.SPARED: "spared",
    Fate.DELETED: "deleted by the change",
    Fate.ORPHANED: "left without a node and removed",
    Fate.DRAINED: "by the drain",
    Fate.PROTECTED: "kept by a disruption budget",
}


def lines(radius: BlastRadius, examples_max: int) -> Iterator[str]:
    """The lines of the page, with at most `examples_max` entries of each kind."""
    for effect in radius.effects[:examples_max]:
        yield f"{effect.kind} {effect.name}: {_effect(effect)}"
        if effect.status:
            yield f"  its status would say {effect.status}"
        for warning in effect.warnings[:examples_max]:
            yield f"  warning: {warning}"
    for more in _more(radius.totals["effects"], min(len(radius.effects), examples_max)):
        yield f"  {more}"
    for reason in reasons(radius, examples_max):
        yield reason.text
        yield from (f"  {child.text}" for child in reason.children)


def reasons(radius: BlastRadius, examples_max: int) -> tuple[Reason, ...]:
    """The same without the changes themselves, as a tree."""
    return tuple(_consequences(radius, examples_max))


def _consequences(radius: BlastRadius, examples_max: int) -> Iterator[Reason]:
    yield Reason(text=f"as of revision {radius.revision}, {radius.time}")
    for line in uncertainty.lines(radius.doubts):
        yield Reason(text=line)
    for note in radius.notes:
        yield Reason(text=f"note: {note}")
    if radius.preview:
        yield Reason(text="the effect is None: pods and claims are told as if it was NoExecute")
    order = list(Fate)
    pods = sorted(radius.pods, key=lambda pod: (order.index(pod.fate), pod.namespace, pod.name))
    yield _section(f"pods: {_pods(radius)}", pods, radius.totals["pods"], examples_max, _pod)
    if radius.owners:
        yield Reason(text=f"owners: {_owners(radius, examples_max)}")
    given, total = radius.claim_releases, radius.totals["claim_releases"]
    yield _section(f"claims: {_claims(radius)}", given, total, examples_max, _claim_release)
    if deletions := radius.claim_deletions:
        total = len(deletions) + radius.left_out.get("claim_deletions", 0)
        title = f"claims that are deleted: {total}"
        yield _section(title, deletions, total, examples_max, claim_deletion)
    if radius.quotas:
        total = radius.totals["quotas"]
        yield _section(f"quotas: {_quotas(radius)}", radius.quotas, total, examples_max, _quota)
    if radius.writes:
        total = radius.totals["writes_refused"] + radius.totals["writes_admitted"]
        yield _section(f"writes: {_writes(radius)}", radius.writes, total, examples_max, write_fate)
    if radius.totals["waiting"]:
        title, total = f"waiting pods: {_waiting(radius)}", len(radius.waiting)
        total += radius.left_out.get("waiting", 0)
        ended = _ended(radius)
        sentence_of = partial(_waiting_pod, ended=ended)
        yield _section(title, radius.waiting, total, examples_max, sentence_of)
    title, total = f"devices: {_devices(radius)}", radius.totals["devices"]
    yield _section(title, radius.devices, total, examples_max, _device)
    if total := radius.totals["pools"]:
        yield _section(f"pools that change: {total}", radius.pools, total, examples_max, _pool)
    if total := radius.totals["classes"]:
        yield _section(f"classes that change: {total}", radius.classes, total, examples_max, _class)


def _effect(effect: Effect) -> str:
    match effect.action:
        case "present":
            return "is there, against a state without it"
        case "unchanged":
            return "would stay as it is"
        case "terminating" if effect.grace_seconds is not None:
            seconds = effect.grace_seconds
            return f"would be marked for deletion and end within its grace period ({seconds} s)"
        case "terminating":
            return "would be marked for deletion and wait for its finalizers"
        case action:
            return f"would be {action}"


def _pods(radius: BlastRadius) -> str:
    totals = radius.totals
    parts = [
        f"{totals[f'pods_{fate.value}']} {_WORDS[fate]}"
        for fate in Fate
        if totals[f"pods_{fate.value}"]
    ]
    count, namespaces = totals["pods_evicted"], _namespaces(totals["namespaces"])
    evicted = f"{count} would be evicted in {namespaces}" if count else "none would be evicted"
    return f"{evicted} ({', '.join(parts)})" if parts else evicted


def _namespaces(count: int) -> str:
    return "1 namespace" if count == 1 else f"{count} namespaces"


def _pod(pod: PodFate) -> str:
    later = f"after {durations.rounded(pod.after_seconds)}"
    when = later if pod.fate is Fate.LATER else _WORDS[pod.fate]
    parts = [f"{pod.namespace}/{pod.name}", f"on {pod.node}"]
    if pod.owner:
        parts.append(f"of {pod.owner}")
    why = f": {', '.join(pod.reasons)}" if pod.reasons else ""
    return f"{' '.join(parts)}, {when}{why}"


def _owners(radius: BlastRadius, examples_max: int) -> str:
    most = sorted(radius.owners, key=lambda item: (-item.pods, item.namespace, item.owner))
    shown = [f"{item.owner} in {item.namespace} ({item.pods})" for item in most[:examples_max]]
    more = radius.totals["owners"] - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


def _claims(radius: BlastRadius) -> str:
    total, released = radius.totals["claims"], radius.totals["claim_releases"]
    verb = "gives back its devices" if released == 1 else "give back their devices"
    parting = f"{released} {verb} once the pods have ended" if released else ""
    if not total:
        return parting or "no allocated claim is concerned"
    kinds = Counter(kind for claim in radius.claims for kind in {t.kind for t in claim.troubles})
    words = {
        "tainted": ("holds a tainted device", "hold a tainted device"),
        "gone": ("holds a device that is gone", "hold a device that is gone"),
        "pool": (
            "holds a device of a pool that cannot be used",
            "hold a device of a pool that cannot be used",
        ),
        "class": ("no longer fits its class", "no longer fit their class"),
        "request": ("no longer fits its request", "no longer fit their request"),
    }
    counts_text = ", ".join(
        f"{count} {texts[count != 1]}" for kind, texts in words.items() if (count := kinds[kind])
    )
    cut = " (of those listed)" if radius.left_out.get("claims") else ""
    return f"{total} concerned: {counts_text}{cut}" + (f"; {parting}" if parting else "")


def _claim_release(claim: ClaimRelease) -> str:
    devices = _named(claim.devices, len(claim.devices))
    return f"{claim.namespace}/{claim.name} of {_named(claim.pods, len(claim.pods))}: {devices}"


def claim_deletion(claim: ClaimDeletion) -> str:
    """Whatever keeps the claim, the fate of its devices, and the pods that cannot start."""
    devices = _named(claim.devices, len(claim.devices))
    verb = counts.verb(len(claim.devices), "comes")
    if claim.reserved_for:
        pods = _named(claim.reserved_for, len(claim.reserved_for))
        parts = [f"stays until the pods that reserve it have ended: {pods}"]
    elif claim.is_held:
        parts = [f"stays until its finalizers are removed: {', '.join(claim.finalizers)}"]
    else:
        parts = ["goes at once"]
    if claim.devices:
        parts.append(f"{devices} {verb} free {'only then' if claim.reserved_for else 'with that'}")
    if claim.remade:
        pods = _named(claim.remade, len(claim.remade))
        parts.append(f"another is made from the template of {pods}")
    if claim.blocked:
        until = "while it is terminating" if claim.is_held else "until it is made again"
        parts.append(f"{_named(claim.blocked, claim.blocked_count)} cannot start {until}")
    return f"{claim.namespace}/{claim.name} {'; '.join(parts)}"


def _quotas(radius: BlastRadius) -> str:
    over = sum(one.is_over for one in radius.quotas)
    text = f"{counts.of(radius.totals['quotas'], 'limit')}"
    return f"{text}, {over} with more in use than allowed: nothing is taken away" if over else text


def _quota(quota: QuotaFate) -> str:
    place = f"{quota.namespace}/{quota.quota}: {quota.name}"
    change = f"{quota.before or 'no limit'} → {quota.after or 'no limit'}"
    limit = quota.after or "no limit" if quota.before == quota.after else change
    used = quota.used or "an unknown amount"
    return f"{place} {limit}, {used} in use{': more than allowed' * quota.is_over}"


def _writes(radius: BlastRadius) -> str:
    totals = radius.totals
    parts = [
        f"{totals[f'writes_{what}']} {text}"
        for what, text in (
            ("refused", "refused from then on"),
            ("admitted", "let pass from then on"),
        )
        if totals[f"writes_{what}"]
    ]
    return ", ".join(parts)


def write_fate(write: WriteFate) -> str:
    """The write, its source, and the refusal if any."""
    kind, _, name = write.source.partition("/")
    match kind:
        case "ResourceClaimTemplate":
            subject = f"one more claim from template {write.namespace}/{name}"
        case "Pod":
            subject = f"the claim that pod {write.namespace}/{name} waits for"
        case _:
            subject = f"one more pod of {write.source} in {write.namespace}"
    if write.is_refused:
        return f"{subject} is refused: {write.text}"
    return f"{subject} passes; without the change: {write.text}"


def _named(names: Sequence[str], count: int) -> str:
    """The first few names, and the number of further ones."""
    shown = names[:NAMES_MAX]
    more = count - len(shown)
    return f"{', '.join(shown)} and {more} more" if more > 0 else ", ".join(shown)


def _waiting(radius: BlastRadius) -> str:
    totals = radius.totals
    parts = [f"{totals['waiting_fits']} of {totals['waiting']} would fit from then on"]
    if freed := totals["waiting_freed"]:
        parts.append(f"{freed} {_ended(radius)}")
    if brief := totals["waiting_evicted"]:
        parts.append(f"{brief} would be placed and evicted at once")
    if kept := totals["waiting_kept"]:
        parts.append(f"{kept} would fit without the change only")
    return ", ".join(parts)


def _ended(radius: BlastRadius) -> str:
    which = "evicted" if radius.totals["pods_evicted"] else "removed"
    return f"once the {which} pods have ended"


def _waiting_pod(pod: WaitingFate, ended: str) -> str:
    owner = f" of {pod.owner}" if pod.owner else ""
    return f"{pod.namespace}/{pod.name}{owner} {_outlook(pod, ended)}"


def outlook(radius: BlastRadius, pod: WaitingFate) -> str:
    """The future of a waiting pod, as the rest of a sentence about it."""
    return _outlook(pod, _ended(radius))


def _outlook(pod: WaitingFate, ended: str) -> str:
    if pod.prospect is Prospect.KEPT:
        return f"would get none; without the change, on {pod.node}"
    text = f"would get a place on {pod.node}"
    why = ", ".join(pod.reasons)
    if pod.prospect is Prospect.EVICTED:
        return f"{text} and be evicted from it at once: {why}"
    if pod.prospect is Prospect.FREED:
        text += f" {ended}"
    if pod.evicted_after is not None:
        text += f", and be evicted from it {pod.evicted_after:g} s from now: {why}"
    return text


def _devices(radius: BlastRadius) -> str:
    totals = radius.totals
    words = ("tainted", "untainted", "gone", "new", "changed")
    parts = [f"{totals[f'devices_{w}']} {w}" for w in words if totals[f"devices_{w}"]]
    kept_out, other = totals["devices_kept_out"], totals["devices_other_class"]
    lost = totals["devices_unallocatable"] + totals["devices_unselected"]
    if lost or not (kept_out or other):
        parts.append(f"{lost} can no longer be allocated")
    if kept_out:
        free = totals["devices_kept_out_free"]
        parts.append(f"{kept_out} out of reach of new pods ({free} of them free)")
    if other:
        parts.append(f"{other} through other classes only")
    if won := totals["devices_allocatable"] + totals["devices_selected"]:
        parts.append(f"{won} can be allocated from then on")
    if let_in := totals["devices_let_in"]:
        parts.append(f"{let_in} within reach of new pods from then on")
    return ", ".join(parts)


def _device(device: DeviceFate) -> str:
    taints = f" {', '.join(device.taints)}" if device.taints else ""
    held = f", held by {', '.join(device.holders)}" if device.holders else ""
    what = "its pool's state changes" if device.change == "pool" else device.change
    return f"{device.device} {what}{taints}{held}"


def _pool(pool: PoolFate) -> str:
    parts = [
        f"{_arrow(pool.before.allocatable, pool.after.allocatable)} allocatable",
        f"{_arrow(pool.before.free, pool.after.free)} free",
    ]
    sums = {**pool.capacity, **pool.counters}
    parts += [
        f"{name} {amount.before} → {amount.after}" for name, amount in list(sums.items())[:SUMS_MAX]
    ]
    if len(sums) > SUMS_MAX:
        parts.append(f"… {counts.of(len(sums) - SUMS_MAX, 'more sum')}")
    if pool.state_before != pool.state_after:
        why = f" ({pool.problem})" if pool.problem else ""
        parts.insert(0, f"{pool.state_before} → {pool.state_after}{why}")
    return f"{pool.driver}/{pool.pool}: {', '.join(parts)}"


def _class(item: ClassFate) -> str:
    text = (
        f"{item.name}: {_arrow(item.before.devices, item.after.devices)} "
        f"{'device' if item.before.devices == item.after.devices == 1 else 'devices'}, "
        f"{_arrow(item.before.allocatable, item.after.allocatable)} allocatable, "
        f"{_arrow(item.before.free, item.after.free)} free"
    )
    return f"{text}; {item.problem}" if item.problem else text


def _arrow(before: int, after: int) -> str:
    return str(after) if before == after else f"{before} → {after}"


def _section(
    text: str,
    entries: Sequence[_Entry],
    total: int,
    examples_max: int,
    sentence_of: Callable[[_Entry], str],
) -> Reason:
    """The text, the first entries, and the number of further ones."""
    shown = [sentence_of(entry) for entry in entries[:examples_max]]
    shown += _more(total, len(shown))
    return Reason(text=text, children=tuple(Reason(text=line) for line in shown))


def _more(total: int, shown: int) -> list[str]:
    return [f"… {total - shown} more; -o json has them"] if total > shown else []
