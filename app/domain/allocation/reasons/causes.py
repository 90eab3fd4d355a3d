"""The first cause why a device cannot be taken now, with the numbers and names for a reader.

Causes are checked in the order of the search (allocator.md 5), with the same functions; the checks
change nothing. One thing differs: a device that a selector excludes is not selected, whoever holds
it, because it would not be taken if it were free.
"""

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from itertools import chain
from typing import TypeAlias

import msgspec

from app.domain.allocation import capacity
from app.domain.allocation.capacity import CapacityShortage
from app.domain.allocation.case import Case
from app.domain.allocation.constraints import ConstraintState, Facts
from app.domain.allocation.counters import Shortage
from app.domain.allocation.eligibility import Exclusion
from app.domain.allocation.features import AllocatorVariant
from app.domain.allocation.problem import Problem, RequestRow
from app.domain.allocation.requests import AttemptAborted
from app.domain.allocation.usage import Usage
from app.domain.devices import taints
from app.domain.devices.model import Device, value_text
from app.domain.values.json_tree import JsonObject
from app.domain.values.texts import notation


class CauseKind(StrEnum):
    """The kinds of causes, in the order in which they are checked."""

    OTHER_NODE = "other-node"
    BINDING = "binding-conditions-off"
    SELECTOR = "selector"
    ALLOCATED = "allocated"
    TAKEN = "taken-by-this-pod"
    SELECTOR_ERROR = "selector-error"
    CAPACITY_MISSING = "capacity-missing"
    CAPACITY_POLICY = "capacity-policy"
    CAPACITY = "capacity"
    COUNTERS_OFF = "counters-off"
    COUNTERS = "counters"
    TAINT = "taint"
    CONSTRAINT = "constraint"


MISSING = " is missing"
"""The words after the attribute of a constraint that a device does not have."""

_CLASS = "class "
"""The word before the name of the class whose selector excludes a device."""

SUITABLE = "suitable"
"""The kind for devices that fit when each request is considered alone."""

WORDS: Mapping[str, str] = {
    CauseKind.OTHER_NODE: "for other nodes",
    CauseKind.BINDING: "with binding conditions, which the release ignores",
    CauseKind.SELECTOR: "not selected",
    CauseKind.ALLOCATED: "allocated",
    CauseKind.TAKEN: "taken already for this pod",
    CauseKind.SELECTOR_ERROR: "failing a selector",
    CauseKind.CAPACITY_MISSING: "without a capacity that is requested",
    CauseKind.CAPACITY_POLICY: "whose request policy does not allow the amount",
    CauseKind.CAPACITY: "with too little capacity left",
    CauseKind.COUNTERS_OFF: "consuming counters, which the release ignores",
    CauseKind.COUNTERS: "short of a counter",
    CauseKind.TAINT: "tainted",
    CauseKind.CONSTRAINT: "against a constraint",
    SUITABLE: "suitable alone",
}
"""The kinds of causes as words after a number of devices."""


def text_of(kind: str, about: str) -> str:
    """Words for devices with this kind of cause, and its subject.

    Example: `tainted (k=v:NoSchedule)`. A kind that a later release recorded is named as it is.
    """
    words = WORDS.get(kind, kind)
    return f"{words} ({about})" if about else words


def refusing_class(kind: str, about: str) -> str:
    """The class whose selector does not select the device, if that is the cause; or empty."""
    owner = about.partition(" of ")[2] if kind == CauseKind.SELECTOR.value else ""
    return owner.partition(": ")[0].removeprefix(_CLASS) if owner.startswith(_CLASS) else ""


def is_of_another_class(kind: str, about: str) -> bool:
    """Whether a cause is that the class of a request does not select the device.

    Such a device is not of the sort that is asked for: nothing about it is nearly right.
    """
    return bool(refusing_class(kind, about))


class Cause(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One cause for one device.

    `about` is what several devices can have in common (a taint, a selector, a counter); causes of
    the same kind and `about` are counted together. `text` describes this device.
    """

    kind: CauseKind
    about: str
    text: str

    def tree(self) -> JsonObject:
        """The cause as JSON."""
        return {"cause": self.kind.value, "about": self.about, "text": self.text}


Known: TypeAlias = dict[int, Cause]
"""The causes of exclusions already built for the same row: many devices share an exclusion."""

OfTaints: TypeAlias = dict[tuple[str, str, str, str], Cause]
"""The causes of taints already built: many devices have the same taint."""


def asking(problem: Problem, usage: Usage, row: RequestRow) -> Callable[[int], Cause | None]:
    """A version of `of` for all devices of a row, which looks up shared values once.

    On a large node selectors refuse most devices, or they are for other nodes; for these the
    refusal alone gives the cause.
    """
    known: Known = {}
    if row.takes_all:
        return lambda device: of(problem, usage, row, device, known)
    in_use = usage.blocked(row) | (0 if row.admin else problem.dedicated)
    held = 0 if row.admin else problem.dedicated & ~row.tainted
    of_holders: dict[tuple[str, ...], Cause] = {}
    of_taints: OfTaints = {}
    # Nothing is requested of capacities, no policy sets an amount, and no share consumes any.
    is_roomy = not (
        row.requested
        or problem.view.traits.policies
        or problem.state.has_aggregated
        or usage.has_shares
    )
    tainted = row.tainted & ~in_use & ~problem.consuming if is_roomy else 0

    def cause_of(device: int) -> Cause | None:
        refusal = row.refused.get(device)
        if refusal is None:
            if device in row.faults:
                return of(problem, usage, row, device, known)
            if held >> device & 1:
                holders = problem.state.holders(problem.view.devices[device].id)
                cause = of_holders.get(holders)
                if cause is None:
                    cause = of_holders[holders] = _allocated(holders, "")
                return cause
            if tainted >> device & 1:
                return _tainted(problem, row, device, of_taints)
            is_free = not in_use >> device & 1
            return _of_selectable(problem, usage, row, device, of_taints, is_free=is_free)
        cause = known.get(id(refusal))
        if cause is None:
            cause = known[id(refusal)] = of_refusal(refusal, row)
        return cause

    return cause_of


def of(
    problem: Problem, usage: Usage, row: RequestRow, device: int, known: Known | None = None
) -> Cause | None:
    """The first cause against taking the device for the row now; None when there is none.

    A caller that checks all devices of a row passes one `known`, empty at first.

    Parity: allocator.md 3.1 and 4. In mode All the devices are listed by selectors and capacity
    before the search checks which are in use. Otherwise the search checks that first, so a selector
    that fails on a device in use is not the cause; one that excludes it is.
    """
    if row.takes_all:
        return (
            _not_selectable(problem, row, device, known)
            or _short_of_capacity(problem, usage, row, device)
            or _in_use(problem, usage, row, device)
            or _short_of_counters(problem, usage, row, device)
            or _tainted(problem, row, device)
            or _constrained(problem, usage, row, device)
        )
    return (
        _refused(row, device, known)
        or _in_use(problem, usage, row, device)
        or _not_selectable(problem, row, device, known)
        or _short_of_capacity(problem, usage, row, device)
        or _short_of_counters(problem, usage, row, device)
        or _tainted(problem, row, device)
        or _constrained(problem, usage, row, device)
    )


def _of_selectable(
    problem: Problem,
    usage: Usage,
    row: RequestRow,
    device: int,
    of_taints: OfTaints,
    *,
    is_free: bool,
) -> Cause | None:
    """The cause for a device that the selectors match and that is for the node."""
    if row.takes_all:
        cause = _short_of_capacity(problem, usage, row, device)
        cause = cause or (None if is_free else _in_use(problem, usage, row, device))
    else:
        cause = None if is_free else _in_use(problem, usage, row, device)
        cause = cause or _short_of_capacity(problem, usage, row, device)
    return (
        cause
        or _short_of_counters(problem, usage, row, device)
        or _tainted(problem, row, device, of_taints)
        or _constrained(problem, usage, row, device)
    )


def _refused(row: RequestRow, device: int, known: Known | None) -> Cause | None:
    """The cause for a device that a selector or rule excluded, even if it is in use; else None."""
    refusal = row.refused.get(device)
    if refusal is None:
        return None
    if known is None:
        return of_refusal(refusal, row)
    cause = known.get(id(refusal))
    if cause is None:
        cause = known[id(refusal)] = of_refusal(refusal, row)
    return cause


def _in_use(problem: Problem, usage: Usage, row: RequestRow, device: int) -> Cause | None:
    bit = 1 << device
    if row.admin:
        if usage.blocked(row) & bit:
            return Cause(
                kind=CauseKind.TAKEN,
                about="this claim",
                text="taken by another request of the claim",
            )
        return None
    if problem.dedicated & bit:
        holders = problem.state.holders(problem.view.devices[device].id)
        return _allocated(holders, _and_tainted(problem, row, device))
    if usage.blocked(row) & bit:
        for take in (take for claim in usage.results for take in claim):
            if take.device == device:
                name = take.row.request.result_name
                owner = f"request {name} of claim {problem.plans[take.row.claim].key}"
                return Cause(kind=CauseKind.TAKEN, about=owner, text=f"taken by {owner}")
        return Cause(
            kind=CauseKind.TAKEN,
            about="a failed attempt",
            text="still marked by a failed attempt (q8)",
        )
    return None


def _allocated(holders: Sequence[str], also: str) -> Cause:
    names = ", ".join(holders) or "an allocated claim"
    return Cause(kind=CauseKind.ALLOCATED, about="", text=f"allocated to {names}{also}")


def _not_selectable(
    problem: Problem, row: RequestRow, device: int, known: Known | None
) -> Cause | None:
    fault = row.faults.get(device)
    if fault is not None:
        text = fault.text(row.request.class_name, problem.plans[row.claim].key)
        return Cause(kind=CauseKind.SELECTOR_ERROR, about=fault.detail, text=text)
    return _refused(row, device, known)


def of_refusal(refusal: Exclusion, row: RequestRow) -> Cause:
    """The cause for a device that a selector or rule excluded."""
    if not refusal.expression:
        kind = CauseKind.BINDING if refusal.binding else CauseKind.OTHER_NODE
        return Cause(kind=kind, about="", text=refusal.reason)
    owner = f"{_CLASS}{row.request.class_name}" if refusal.of_class else "the request"
    about = f"selector #{refusal.number} of {owner}: {refusal.expression}"
    return Cause(kind=CauseKind.SELECTOR, about=about, text=f"false: {about}")


def failing(case: Case, error: str) -> tuple[tuple[str, str], ...]:
    """The requests, as (claim, request), on whose devices a selector failed with this error.

    Empty where the problem cannot be built, because a request for all devices met the error.
    """
    try:
        problem = case.problem
    except AttemptAborted:
        return ()
    return tuple(
        (problem.plans[row.claim].key, row.request.result_name)
        for row in chain.from_iterable(chain.from_iterable(problem.rows))
        if any(
            fault.text(row.request.class_name, problem.plans[row.claim].key) == error
            for fault in row.faults.values()
        )
    )


def _short_of_capacity(
    problem: Problem, usage: Usage, row: RequestRow, device: int
) -> Cause | None:
    if not problem.features.consumable_capacity or problem.variant is AllocatorVariant.STABLE:
        return None
    view_device = problem.view.devices[device]
    if not view_device.capacity and not row.requested:
        return None
    shortages = capacity.shortages(
        row.requested,
        view_device.capacity,
        problem.state.aggregated(view_device.id),
        usage.allocating(device),
    )
    short = next(shortages, None)
    if short is None:
        return None
    also = "".join(f"; and {_lacks(view_device, row, other)}" for other in shortages)
    about = f"capacity {short.name}"
    if short.needed is None:
        # No holder has anything to do with it.
        text = _lacks(view_device, row, short) + also
        return Cause(kind=CauseKind.CAPACITY_MISSING, about=about, text=text)
    own = view_device.capacity[short.name]
    wanted = row.requested.get(short.name)
    if short.free is None:
        note = capacity.policy_note(wanted, own)
        about = f"{about}: {short.needed}" + (f", {note}" if note else "")
        text = _lacks(view_device, row, short) + also
        return Cause(kind=CauseKind.CAPACITY_POLICY, about=about, text=text)
    text, note = capacity.lacking(short, own, wanted)
    if holders := _listed(problem.state.holders(view_device.id)):
        text += f", held by {holders}"
    text += f" ({note})" if note else ""
    text += also + _and_tainted(problem, row, device)
    return Cause(kind=CauseKind.CAPACITY, about=about, text=text)


def _lacks(device: Device, row: RequestRow, short: CapacityShortage) -> str:
    """A capacity that falls short, without its holders."""
    if short.needed is None:
        return f"capacity {short.name} is not defined by the device"
    own = device.capacity[short.name]
    if short.free is None:
        return capacity.against_policy(short, own)
    text, note = capacity.lacking(short, own, row.requested.get(short.name))
    return f"{text} ({note})" if note else text


def _short_of_counters(
    problem: Problem, usage: Usage, row: RequestRow, device: int
) -> Cause | None:
    bit = 1 << device
    if not problem.consuming & bit:
        return None
    if not problem.features.partitionable_devices:
        text = "consumes counters while partitionable devices are off"
        return Cause(kind=CauseKind.COUNTERS_OFF, about="", text=text)
    shared = problem.held & bit or usage.allocating(device) is not None
    if problem.multi & bit and shared:
        return None
    view = problem.view
    view_device = view.devices[device]
    position = view.pool_index[device]
    shortages = [*usage.ledger().shortages(device)]
    if not shortages:
        return None
    first, *others = shortages
    about = f"counter {first.counter} of set {first.counter_set}"
    pool = view.usable[position].text
    text = f"{about} in {pool}: {_lack(view_device, first)}"
    if holders := _holders_of(problem, position, (first.counter_set, first.counter)):
        text += f", held by {holders}"
    for other in others:
        # Quirk q4 also refuses a device for counters that it does not draw on.
        if _drawn(view_device, other):
            text += f"; and counter {other.counter} of set {other.counter_set}: "
            text += _lack(view_device, other)
    text += _and_tainted(problem, row, device)
    return Cause(kind=CauseKind.COUNTERS, about=about, text=text)


def _lack(device: Device, shortage: Shortage) -> str:
    own = _drawn(device, shortage)
    free = shortage.available - shortage.booked + own
    needed, left = notation.alike((own, free))
    return f"needs {needed}, {left} is left"


def _drawn(device: Device, shortage: Shortage) -> int:
    """The amount in nanos that the device draws from the counter."""
    return sum(
        amount
        for name, used in device.consumes
        for counter, amount in used
        if (name, counter) == (shortage.counter_set, shortage.counter)
    )


def _holders_of(problem: Problem, position: int, place: tuple[str, str]) -> str:
    """The claims that hold devices which use the counter; at most three are named."""
    names: dict[str, None] = {}
    pool = problem.view.usable[position]
    for resource_slice in (*pool.slices, *pool.others):
        for device in resource_slice.devices:
            if any(
                (name, counter) == place for name, used in device.consumes for counter, _ in used
            ):
                names.update(dict.fromkeys(problem.state.holders(device.id)))
    return _listed(list(names))


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more


def _tainted(
    problem: Problem, row: RequestRow, device: int, known: OfTaints | None = None
) -> Cause | None:
    if not row.tainted >> device & 1:
        return None
    view_device = problem.view.devices[device]
    taint = taints.untolerated(view_device.taints, row.request.tolerations)
    assert taint is not None, "the bit says that there is one"
    parts = (taint.key, taint.value, taint.effect, taint.rule)
    if known is not None and (cause := known.get(parts)) is not None:
        return cause
    origin = f" by rule {taint.rule}" if taint.rule else ""
    cause = Cause(
        kind=CauseKind.TAINT, about=taint.text, text=f"taint {taint.text}{origin} is not tolerated"
    )
    if known is not None:
        known[parts] = cause
    return cause


def _and_tainted(problem: Problem, row: RequestRow, device: int) -> str:
    """The cause that keeps the device from the request also when its holders give it back."""
    if not row.tainted >> device & 1:
        return ""
    tainted = _tainted(problem, row, device)
    return "" if tainted is None else f" (and {tainted.text})"


def _constrained(problem: Problem, usage: Usage, row: RequestRow, device: int) -> Cause | None:
    states = usage.constraint_states(row.claim)
    for number in row.constraints:
        if not states[number].accepts(device):
            return _against(states[number], problem.facts[row.claim][number][device])
    return None


def _type_of(facts: object) -> str:
    """The type of an attribute's value, as a slice names it."""
    match facts:
        case Facts(scalars=((name, _), *_)):
            return name
        case Facts(values=(str(name), _)) | (str(name), frozenset()):
            return name
        case _:
            return "another type"


def _against(state: ConstraintState, facts: object) -> Cause:
    name = state.constraint.attribute
    if facts is None:
        return Cause(
            kind=CauseKind.CONSTRAINT,
            about=f"{name}{MISSING}",
            text=f"has no attribute {name}, which a constraint needs",
        )
    value = value_text(getattr(facts, "shown", lambda: None)())
    seen = ", ".join(map(value_text, state.seen()))
    if state.constraint.matching and seen:
        common = state.seen()
        seen = seen if len(common) == 1 else value_text(common)
        types = _type_of(facts), _type_of(state.reference())
        if types[0] != types[1]:
            value, seen = f"{value} ({types[0]})", f"{seen} ({types[1]})"
    how = "does not match" if state.constraint.matching else "is not distinct from"
    return Cause(
        kind=CauseKind.CONSTRAINT,
        about=f"{name} {how} what is taken",
        text=f"{name} is {value}, which {how} {seen or 'the devices already taken'}",
    )
