"""The search of allocator.md 3 to 9, transcribed step by step, slow and without cleverness.

It shares with the product only what reads API objects (views of nodes, plans of claims, quantities)
and is written on devices and dictionaries. The product's search must give the same answers.
"""

from __future__ import annotations

import sys
from collections import defaultdict

from app.domain.allocation import capacity as capacities
from app.domain.allocation import requests
from app.domain.allocation.capacity import Requested
from app.domain.allocation.features import Variant
from app.domain.allocation.requests import AttemptAborted
from app.domain.devices import taints
from app.domain.devices.device_selectors import SelectorCompileError
from app.domain.devices.pools import PoolState

sys.setrecursionlimit(20_000)

SUCCESS, FAIL, LIMIT = "success", "fail", "limit"
SCALARS = ("string", "int", "bool", "version")


class TooLong(Exception):
    """The literal search took more steps than the test wants to wait for."""


class Literal:
    """One attempt; `allocate` per node view, as upstream's allocator object."""

    def __init__(self, claims, classes, state, features, variant, quirks, compiler, steps_max):
        self.features, self.variant, self.quirks = features, variant, quirks
        self.state, self.compiler, self.steps_max = state, compiler, steps_max
        self.consumable = features.consumable_capacity and variant is not Variant.STABLE
        self.plans = [requests.plan_of(c, classes, features, variant) for c in claims]
        self.available = {}
        self.amounts = {}
        self.steps = 0

    def allocate(self, view):
        """(takes per claim or None, error or None, scope)."""
        self.view = view
        self.results = [[] for _ in self.plans]
        self.allocating = defaultdict(set)
        self.allocating_capacity = {}
        self.consumed = {}
        self.cache = {}
        self.steps = 0
        try:
            self.rows = self.validate()
            self.constraints = [
                [make_constraint(c, self) for c in plan.constraints] for plan in self.plans
            ]
            signal = self.step(0, 0, 0, 0, False, 0)
        except AttemptAborted as abort:
            return None, str(abort), "fatal"
        if signal == SUCCESS:
            return [[self.shown(t) for t in takes] for takes in self.results], None, None
        if any(pool.state is PoolState.INVALID for pool in view.pools):
            return None, "invalid resource pools were encountered", "node"
        return None, None, None

    def shown(self, take):
        request, device, amounts = take
        text = None
        if amounts is not None:
            text = {
                name: str(a.source.amount if a.source else a.value)
                for name, a in sorted(amounts.items())
            }
        return request.result_name, device.id, text

    def validate(self):
        rows = []
        for c, plan in enumerate(self.plans):
            claim_rows, least = [], 0
            for r, alternatives in enumerate(plan.requests):
                made = []
                for k, request in enumerate(alternatives):
                    self.amounts.setdefault(
                        (c, r, k), {n: Requested(amount=q) for n, q in request.capacity.items()}
                    )
                    if request.takes_all:
                        listed = self.all_devices(plan, request, c, r, k)
                        made.append((request, listed, len(listed)))
                    else:
                        made.append((request, None, request.count))
                claim_rows.append(made)
                least += min(count for _, _, count in made)
            if plan.request_error:
                raise AttemptAborted(plan.request_error)
            if least > 32:
                raise AttemptAborted(requests.limit_error(plan, least))
            if plan.constraint_error:
                raise AttemptAborted(plan.constraint_error)
            rows.append(claim_rows)
        return rows

    def all_devices(self, plan, request, c, r, k):
        listed = []
        for pool in self.view.pools:
            if pool.state is not PoolState.USABLE:
                how = "being updated" if pool.state is PoolState.INCOMPLETE else "invalid"
                raise AttemptAborted(
                    f"claim {plan.key}, request {request.name}: asks for all devices, "
                    f"but resource pool {pool.text} is currently {how}"
                )
            for found in pool.slices:
                for device in found.devices:
                    if self.selectable(device, found, c, r, k) and self.fits(device, c, r, k):
                        listed.append((pool, found, device))
        return listed

    def devices(self, start):
        position = 0
        for pool in self.view.pools:
            if pool.state is not PoolState.USABLE:
                continue
            for found in pool.slices:
                for device in found.devices:
                    if position >= start:
                        yield position, pool, found, device
                    position += 1

    def step(self, c, r, k, d, inside, start):
        self.steps += 1
        if self.steps > self.steps_max:
            raise TooLong
        if c == len(self.plans):
            return SUCCESS
        if r == len(self.rows[c]):
            signal = self.step(c + 1, 0, 0, 0, False, 0)
            return FAIL if signal == LIMIT else signal
        alternatives = self.rows[c][r]
        if alternatives[0][0].alternative is not None and not inside:
            only_limit = True
            for number in range(len(alternatives)):
                signal = self.step(c, r, number, d, True, 0)
                if signal == LIMIT:
                    continue
                only_limit = False
                if signal == SUCCESS:
                    return SUCCESS
            return LIMIT if only_limit else FAIL
        request, listed, count = alternatives[k]
        if request.takes_all and not listed:
            return FAIL
        if d >= count:
            return self.step(c, r + 1, 0, 0, False, 0)
        if len(self.results[c]) + count - d > 32:
            return LIMIT
        if request.takes_all:
            pool, _, device = listed[d]
            undo = self.take(device, pool, c, r, k, must=True)
            if undo is None:
                return FAIL
            signal = self.step(c, r, k, d + 1, inside, 0)
            if signal != SUCCESS:
                undo()
            return signal
        for position, pool, found, device in self.devices(start):
            if request.admin:
                if c in self.allocating[device.id]:
                    continue
            elif self.in_use(device):
                continue
            if not self.selectable(device, found, c, r, k):
                continue
            if not self.fits(device, c, r, k):
                continue
            undo = self.take(device, pool, c, r, k, must=False)
            if undo is None:
                continue
            following = 0 if self.variant is Variant.STABLE else position + 1
            signal = self.step(c, r, k, d + 1, inside, following)
            if signal == SUCCESS:
                return SUCCESS
            undo()
            if signal == LIMIT:
                return LIMIT
        return FAIL

    def in_use(self, device):
        return self.state.is_dedicated(device.id) or bool(self.allocating[device.id])

    def selectable(self, device, found, c, r, k):
        if device.binding_conditions and not self.features.binding_conditions:
            return False
        key = (device.id, c, r, k)
        if key not in self.cache:
            self.cache[key] = self.evaluate(device, found, c, r, k)
        return self.cache[key]

    def evaluate(self, device, found, c, r, k):
        request = self.plans[c].requests[r][k]
        for owner, expressions in (
            (f"class {request.class_name}", request.selectors.of_class),
            (f"claim {self.plans[c].key}", request.selectors.own),
        ):
            for number, expression in enumerate(expressions):
                try:
                    selector = self.compiler.compile(expression)
                except SelectorCompileError as problem:
                    raise AttemptAborted(
                        f"{owner}: selector #{number}: CEL compile error: {problem}"
                    ) from problem
                verdict = selector.judge([device])[0]
                if verdict.error:
                    raise AttemptAborted(
                        f"{owner}: selector #{number} on device {device.text}: "
                        f"CEL runtime error: {verdict.error}"
                    )
                if not verdict.match:
                    return False
        return not found.per_device or device.node.matches(self.view.node)

    def fits(self, device, c, r, k):
        if not self.consumable:
            return True
        return (
            capacities.shortage(
                self.amounts[c, r, k],
                device.capacity,
                self.state.aggregated(device.id),
                self.allocating_capacity.get(device.id),
                grows=self.quirks.q20,
            )
            is None
        )

    def book(self, pool, device):
        key = pool.id[1] if self.quirks.q3 else pool.id
        if key not in self.available:
            left = {(s, n): v for s, found in pool.counters.items() for n, v in found.items()}
            for found in (*pool.slices, *pool.others):
                for other in found.devices:
                    if self.state.is_allocated(other.id):
                        for place, amount in consumption(other):
                            if place in left:
                                left[place] -= amount
            self.available[key] = left
        booked = self.consumed.setdefault(key, defaultdict(int))
        for place, amount in consumption(device):
            booked[place] += amount
        concerned = self.available[key]
        if not self.quirks.q4:
            concerned = {p: concerned[p] for p, _ in consumption(device) if p in concerned}
        if all(left >= booked[place] for place, left in concerned.items()):
            return True
        self.unbook(pool, device)
        return False

    def unbook(self, pool, device):
        key = pool.id[1] if self.quirks.q3 else pool.id
        for place, amount in consumption(device):
            self.consumed[key][place] -= amount

    def take(self, device, pool, c, r, k, *, must):
        plan, (request, _, _) = self.plans[c], self.rows[c][r][k]
        multi = self.consumable and device.allow_multiple
        if request.admin and not multi and c in self.allocating[device.id]:
            return None
        if not request.admin and self.in_use(device):
            return None
        booked = False
        if device.consumes:
            if not self.features.partitionable_devices:
                return None
            held = self.state.aggregated(device.id) is not None
            if not (multi and (held or device.id in self.allocating_capacity)):
                if not self.book(pool, device):
                    return None
                booked = True
        if self.features.device_taints and taints.untolerated(device.taints, request.tolerations):
            return self.refused(pool, device, booked)
        added = []
        for constraint in self.constraints[c]:
            if not constraint.add(device, request):
                for earlier in added:
                    earlier.remove(device, request)
                self.refused(pool, device, booked)
                if must and self.quirks.q10:
                    raise AttemptAborted(
                        f"claim {plan.key}, request {request.name}: cannot add device "
                        f"{device.text} because a claim constraint would not be satisfied"
                    )
                return None
            added.append(constraint)
        if not multi:
            self.allocating[device.id].add(c)
        if self.consumable and not self.fits(device, c, r, k):
            assert self.quirks.q8, "repairs of q8 are tested by other means"
            return None
        amounts = None
        if multi:
            amounts = capacities.amounts(self.amounts[c, r, k], device.capacity)
            entry = self.allocating_capacity.setdefault(device.id, {})
            for name, amount in amounts.items():
                entry[name] = entry.get(name, 0) + amount.value.nanos
        self.results[c].append((request, device, amounts))

        def undo():
            for constraint in self.constraints[c]:
                constraint.remove(device, request)
            self.allocating[device.id].discard(c)
            if multi:
                self.unshare(device, amounts)
                if booked and not self.quirks.q2:
                    self.unbook(pool, device)
            elif device.consumes:
                self.unbook(pool, device)
            self.results[c].pop()

        return undo

    def refused(self, pool, device, booked):
        if booked and not self.quirks.q1:
            self.unbook(pool, device)

    def unshare(self, device, amounts):
        entry = self.allocating_capacity.get(device.id)
        if entry is None or not amounts:
            return
        for name, amount in amounts.items():
            if name in entry:
                current = amount.source.amount if amount.source else amount.value
                entry[name] -= current.nanos
        if not any(entry.values()):
            del self.allocating_capacity[device.id]


def consumption(device):
    return [((s, n), amount) for s, found in device.consumes for n, amount in found]


def make_constraint(constraint, attempt):
    lists = attempt.features.list_attributes and attempt.variant is Variant.EXPERIMENTAL
    if constraint.matching:
        return Match(constraint, lists, attempt.quirks.q5)
    return Distinct(constraint, lists, attempt.quirks.q6)


def attribute_of(device, constraint):
    name = f"{constraint.domain}/{constraint.identifier}"
    found = device.attributes.get(name if constraint.domain else constraint.identifier)
    if found is None and constraint.domain == device.id[0]:
        found = device.attributes.get(constraint.identifier)
    return found


def as_set(attribute):
    for field, kind in (("ints", "i"), ("bools", "b"), ("strings", "s"), ("versions", "v")):
        if attribute.get(field):
            return kind, set(attribute[field])
    for field in ("int", "bool", "string", "version"):
        if attribute.get(field) is not None:
            return field[0], {attribute[field]}
    return None


class Match:
    def __init__(self, constraint, lists, narrow):
        self.constraint, self.lists, self.narrow = constraint, lists, narrow
        self.count, self.reference, self.history = 0, None, []

    def add(self, device, request):
        if not self.constraint.concerns(request):
            return True
        attribute = attribute_of(device, self.constraint)
        if attribute is None:
            return False
        before = self.reference
        if self.lists:
            found = as_set(attribute)
            if found is None:
                return False
            if self.count:
                common = self.reference[1] & found[1]
                if self.reference[0] != found[0] or not common:
                    return False
                found = (found[0], common)
            self.reference = found
        elif self.count == 0:
            self.reference = attribute
        else:
            for kind in SCALARS:
                if attribute.get(kind) is not None:
                    if self.reference.get(kind) is None or self.reference[kind] != attribute[kind]:
                        return False
                    break
            else:
                return False
        self.history.append(before)
        self.count += 1
        return True

    def remove(self, device, request):
        if self.constraint.concerns(request):
            self.count -= 1
            before = self.history.pop()
            if not self.narrow:
                self.reference = before


class Distinct:
    def __init__(self, constraint, lists, last_only):
        self.constraint, self.lists, self.last_only = constraint, lists, last_only
        self.count, self.known = 0, {}

    def add(self, device, request):
        if not self.constraint.concerns(request):
            return True
        attribute = attribute_of(device, self.constraint)
        if attribute is None:
            return False
        if self.count and self.conflicts(attribute):
            return False
        self.known[request.main if self.last_only else (request.main, device.id)] = attribute
        self.count += 1
        return True

    def conflicts(self, attribute):
        if self.lists:
            found = as_set(attribute)
            if found is None:
                return True
            others = [as_set(other) for other in self.known.values()]
            return any(o and o[0] == found[0] and o[1] & found[1] for o in others)
        for kind in SCALARS:
            if attribute.get(kind) is not None:
                return any(o.get(kind) == attribute[kind] for o in self.known.values())
        return bool(self.known)

    def remove(self, device, request):
        if self.constraint.concerns(request):
            self.count -= 1
            key = request.main if self.last_only else (request.main, device.id)
            self.known.pop(key, None)
