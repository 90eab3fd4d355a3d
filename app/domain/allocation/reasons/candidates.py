"""The single changes that may help refused claims, derived from the causes of their refusal.

Whether a change helps is proven by an allocation (`counterfactual`). Nothing is tried here.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from app.domain.allocation import capacity
from app.domain.allocation.eligibility import Exclusion, Fault
from app.domain.allocation.problem import Problem, RequestRow
from app.domain.allocation.reasons import causes, pool_repairs
from app.domain.allocation.reasons.causes import CauseKind
from app.domain.allocation.reasons.changes import (
    AllocationWorld,
    Change,
    DropConstraint,
    EditRequest,
    EnlargeCounter,
    FrozenObject,
    LowerAmount,
    PreferAlternative,
    ReleaseClaim,
    RemoveRule,
    ServeByClass,
)
from app.domain.allocation.reasons.patching import PatchAttribute, Patching
from app.domain.allocation.usage import Usage
from app.domain.devices import taints
from app.domain.devices.model import Taint
from app.domain.devices.node_views import NodeView
from app.domain.devices.pools import Pool
from app.domain.values import quantity
from app.domain.values.fields import dra, meta
from app.domain.values.identifiers import DeviceId
from app.domain.values.json_tree import JsonObject


def repairs(view: NodeView, world: AllocationWorld) -> Iterator[Change]:
    """The changes that would make unusable pools of the node usable."""
    for pool in view.pools:
        if pool.usable:
            continue
        for repair_of in (pool_repairs.of_slices, pool_repairs.of_names, pool_repairs.of_counters):
            repair = repair_of(world.inventory, pool.id)
            if repair is not None:
                yield repair


def of(problem: Problem, world: AllocationWorld) -> Iterator[Change]:
    """The changes that remove a cause, most frequent causes first; then changes of the claims."""
    weights: dict[Change, int] = {}
    patches = Patching(world.inventory)
    usage = Usage(problem)
    for row in (row for claim in problem.rows for request in claim for row in request):
        for device in range(len(problem.view.devices)):
            cause = causes.of(problem, usage, row, device)
            if cause is not None:
                for change in _against(problem, usage, row, device, cause.kind, patches):
                    if not (isinstance(change, EditRequest) and world.is_made(change.number)):
                        weights[change] = weights.get(change, 0) + 1
    ordered = sorted(weights, key=lambda change: (-weights[change], change.text))
    # Of one counter the smallest enlargement is tried first.
    enlarged = sorted((each for each in ordered if isinstance(each, EnlargeCounter)), key=_by)
    smallest = iter(enlarged)
    ordered = [next(smallest) if isinstance(each, EnlargeCounter) else each for each in ordered]
    ordered = _largest_first(ordered)
    # Attributes that a driver left out come last: there may be as many such changes as devices.
    left_out = [change for change in ordered if isinstance(change, PatchAttribute)]
    yield from (change for change in ordered if not isinstance(change, PatchAttribute))
    seen = set(weights)
    further = (
        *_of_claims(problem, world),
        *_of_containers(world),
        *_of_classes(world),
        *_lower_capacity(problem),
    )
    for change in further:
        if change not in seen:
            yield change
    yield from left_out


def capacity_of(change: EditRequest) -> tuple[int, str, str]:
    """The claim, the request and the capacity of which a change requests another amount."""
    assert isinstance(change.value, tuple), "an amount of a capacity"
    return change.number, change.result_name, change.value[0]


def _largest_first(changes: Sequence[Change]) -> list[Change]:
    """The changes, those that request less of one capacity in the order of their amounts."""
    edits: dict[object, list[EditRequest]] = defaultdict(list)
    for one in changes:
        if isinstance(one, EditRequest) and one.field == "capacity":
            edits[capacity_of(one)].append(one)
    largest = {place: iter(sorted(each, key=_requested)) for place, each in edits.items()}
    return [
        next(largest[capacity_of(one)])
        if isinstance(one, EditRequest) and one.field == "capacity"
        else one
        for one in changes
    ]


def _requested(change: EditRequest) -> tuple[bool, int]:
    """The order of changes of one capacity: large amounts first, none at all last."""
    assert isinstance(change.value, tuple), "an amount of a capacity"
    amount = change.value[1]
    return amount is None, 0 if amount is None else -quantity.parse(amount).nanos


def _by(change: EnlargeCounter) -> int:
    return change.by


def _against(
    problem: Problem,
    usage: Usage,
    row: RequestRow,
    device: int,
    kind: CauseKind,
    patches: Patching,
) -> Iterator[Change]:
    """The changes that remove one cause."""
    view = problem.view
    view_device = view.devices[device]
    match kind:
        case CauseKind.ALLOCATED:
            for holder in problem.state.holders(view_device.id)[:1]:
                yield ReleaseClaim(claim=holder)
        case CauseKind.TAINT:
            for taint in _blocking(row, view_device.taints):
                if taint.rule:
                    yield RemoveRule(rule=taint.rule)
                yield _edit(
                    problem,
                    row,
                    f"tolerate taint {taint.text}",
                    "tolerations",
                    FrozenObject.of(_toleration(taint)),
                )
        case CauseKind.SELECTOR | CauseKind.SELECTOR_ERROR:
            refusal, fault = row.refused.get(device), row.faults.get(device)
            number = refusal.number if refusal else fault.number if fault else -1
            of_class = refusal.of_class if refusal else bool(fault and fault.of_class)
            own = row.request.selectors.own
            if not of_class and 0 <= number < len(own):
                yield _edit(
                    problem,
                    row,
                    f"drop selector #{number} ({own[number]})",
                    "selectors",
                    FrozenObject.of({"cel": {"expression": own[number]}}),
                )
            yield from patches.removals(view_device)
            yield from patches.additions(view_device, _named_by(refusal, fault))
        case CauseKind.COUNTERS:
            yield from _counter_changes(problem, usage, device)
        case CauseKind.CAPACITY:
            for holder in problem.state.holders(view_device.id)[:2]:
                yield ReleaseClaim(claim=holder)
            yield from _capacity_changes(problem, row, view_device.id)
            yield from patches.removals(view_device)
        case CauseKind.CAPACITY_POLICY | CauseKind.CAPACITY_MISSING:
            yield from _capacity_changes(problem, row, view_device.id)
            yield from patches.removals(view_device)
        case CauseKind.CONSTRAINT:
            names = [one.attribute for one in problem.plans[row.claim].constraints]
            yield from patches.removals(view_device)
            yield from patches.additions(view_device, " ".join(names))
        case _:
            pass


def _named_by(refusal: Exclusion | None, fault: Fault | None) -> str:
    """The text that names the attributes which a selector read."""
    return refusal.expression if refusal else fault.detail if fault else ""


def _counter_changes(problem: Problem, usage: Usage, device: int) -> Iterator[Change]:
    view = problem.view
    position = view.pool_index[device]
    shortage = usage.ledger().shortage(device)
    if shortage is None:
        return
    pool = view.usable[position]
    yield EnlargeCounter(
        pool=pool.id,
        counter_set=shortage.counter_set,
        counter=shortage.counter,
        by=shortage.booked - shortage.available,
    )
    for holder in _users(problem, pool, (shortage.counter_set, shortage.counter)):
        yield ReleaseClaim(claim=holder)


def _users(problem: Problem, pool: Pool, place: tuple[str, str]) -> list[str]:
    """The claims that hold devices which use the counter."""
    names: dict[str, None] = {}
    for resource_slice in (*pool.slices, *pool.others):
        for device in resource_slice.devices:
            used = {(name, one) for name, counters in device.consumes for one, _ in counters}
            if place in used:
                names.update(dict.fromkeys(problem.state.holders(device.id)))
    return list(names)[:4]


def _capacity_changes(problem: Problem, row: RequestRow, device: DeviceId) -> Iterator[Change]:
    """The changes that request the most that the device has left and that its policy allows."""
    view_device = next(one for one in problem.view.devices if one.id == device)
    held = problem.state.aggregated(device) or {}
    for name, amount in row.request.capacity.items():
        own = view_device.capacity.get(name)
        if own is None:
            yield _edit(problem, row, f"ask for no {name}", "capacity", (name, None))
            continue
        most = capacity.most_allowed(own.value.nanos - held.get(name, 0), own.policy)
        if 0 < most < amount.nanos:
            text = str(quantity.from_nanos(most, own.value.format))
            yield _edit(problem, row, f"ask for {text} of {name}", "capacity", (name, text))


def _lower_capacity(problem: Problem) -> Iterator[Change]:
    """The amounts below the most that a device has left, so that requests can share a device."""
    shared = [one for one in problem.view.devices if one.allow_multiple]
    rows = [row for claim in problem.rows for request in claim for row in request]
    for row in rows if len(rows) > 1 else ():
        for name, amount in row.request.capacity.items():
            policies = [one.capacity[name].policy for one in shared if name in one.capacity]
            values = {
                value.nanos: str(value)
                for policy in policies
                if policy is not None
                for value in (*(policy.valid_values or ()), policy.minimum)
                if value is not None and 0 < value.nanos < amount.nanos
            }
            for nanos in sorted(values, reverse=True):
                text = values[nanos]
                yield _edit(problem, row, f"ask for {text} of {name}", "capacity", (name, text))


def _of_claims(problem: Problem, world: AllocationWorld) -> Iterator[Change]:
    """The changes of claims that no single device suggests."""
    for number, plan in enumerate(problem.plans):
        if world.is_made(number):
            continue
        for constraint in plan.constraints:
            yield DropConstraint(
                number=number,
                claim=plan.key,
                index=constraint.index,
                attribute=constraint.attribute,
            )
        for alternatives in problem.rows[number]:
            for row in alternatives:
                if not row.takes_all:
                    for count in range(row.count - 1, 0, -1):
                        yield _edit(problem, row, f"lower count to {count}", "count", count)
                if row.request.alternative:
                    yield PreferAlternative(
                        number=number, claim=plan.key, main=row.request.main, name=row.request.name
                    )


def _of_containers(world: AllocationWorld) -> Iterator[Change]:
    """The lower amounts of the extended resources for which the scheduler makes a claim."""
    for container, resource, before in () if world.made is None else world.made.amounts:
        for amount in range(before - 1, 0, -1):
            yield LowerAmount(container=container, resource=resource, before=before, amount=amount)


def _of_classes(world: AllocationWorld) -> Iterator[Change]:
    """The older classes that would serve an extended resource if the newest did not have its name.

    Parity: controllers.md 3.10, of several classes with the name the newest counts.
    """
    for resource, chosen in () if world.made is None else world.made.classes.items():
        tree = world.classes.get(chosen)
        if tree is None or dra.extended_resource_name(tree) != resource:
            continue
        others = [
            (meta.creation_timestamp(other), name)
            for name, other in world.classes.items()
            if name != chosen and dra.extended_resource_name(other) == resource
        ]
        if others:
            last = max(created for created, _ in others)
            older = min(name for created, name in others if created == last)
            yield ServeByClass(resource=resource, newest=chosen, older=older)


def _edit(problem: Problem, row: RequestRow, what: str, field: str, value: object) -> EditRequest:
    return EditRequest(
        number=row.claim,
        claim=problem.plans[row.claim].key,
        result_name=row.request.result_name,
        what=what,
        field=field,
        value=value,
    )


def _blocking(row: RequestRow, device_taints: Iterable[Taint]) -> Iterator[Taint]:
    for taint in device_taints:
        if taints.untolerated((taint,), row.request.tolerations) is not None:
            yield taint


def _toleration(taint: Taint) -> JsonObject:
    return {
        "key": taint.key,
        "operator": "Equal",
        "value": taint.value,
        "effect": taint.effect,
    }
