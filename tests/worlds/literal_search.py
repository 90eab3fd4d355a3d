"""The search of allocator.md 3 to 9, transcribed step by step, slow and simple.

Together with `literal_cluster`, `literal_claims`, `literal_capacity`, `literal_constraints` and
`literal_results` it is a second allocator, written from the specification on plain objects. It
shares with the product nothing but quantities and the evaluation of single CEL expressions. The
product must give the same answers.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from copy import copy, deepcopy
from functools import lru_cache

from app.domain import cel
from tests.worlds import literal_capacity, literal_results
from tests.worlds.literal_claims import Checks, constraints_of, key_of
from tests.worlds.literal_cluster import Abort, is_meant
from tests.worlds.literal_constraints import Constraint

sys.setrecursionlimit(20_000)

SUCCESS, FAIL, LIMIT = "success", "fail", "limit"


class TooLong(Exception):
    """The literal search took more steps than its bound."""


class Literal:
    """One attempt; `allocate` per node, as upstream's allocator object."""

    def __init__(self, claims, classes, cluster, state, steps_max):
        self.claims, self.cluster, self.state = claims, cluster, state
        self.features, self.quirks, self.stable = cluster.features, cluster.quirks, cluster.stable
        self.lists = self.features.list_attributes and not cluster.scalars
        self.consumable = self.features.consumable_capacity and not self.stable
        self.steps_max = steps_max
        self.checks = Checks(classes, self.features, self.stable, self.quirks)
        self.available, self.amounts = {}, {}
        self.steps = 0

    def allocate(self, node):
        """The answer for a node, in the form of `scenarios.run`."""
        self.node = node
        self.pools = self.cluster.pools(node)
        self.results = [[] for _ in self.claims]
        self.allocating = defaultdict(list)
        self.shares, self.shared = {}, defaultdict(int)
        self.consumed = {}
        self.cache = {}
        self.steps = 0
        shown = {"node": node["metadata"]["name"], "allocations": None}
        try:
            self.wishes = [
                self.checks.claim(number, claim, self.all_devices, self.amounts)
                for number, claim in enumerate(self.claims)
            ]
            self.constraints = [
                [
                    Constraint(tree, lists=self.lists, quirks=self.quirks)
                    for tree in constraints_of(claim)
                ]
                for claim in self.claims
            ]
            if self.step(0, 0, 0, 0, False, 0) == SUCCESS:
                shown["allocations"] = [
                    literal_results.allocation(
                        claim, self.wishes[c], self.results[c], node, self.features,
                        stable=self.stable,
                    )
                    for c, claim in enumerate(self.claims)
                ]  # fmt: skip
            elif any(pool.state == "invalid" for pool in self.pools):
                shown |= {
                    "error": "invalid resource pools were encountered",
                    "errorScope": "node",
                }
        except Abort as abort:
            shown |= {"error": str(abort), "errorScope": "fatal"}
        return shown

    def all_devices(self, wish, c, r, k):
        listed = []
        for pool in self.pools:
            if pool.state != "usable":
                how = "being updated" if pool.state == "incomplete" else "invalid"
                raise Abort(
                    f"{wish.place}: asks for all devices, "
                    f"but resource pool {pool.text} is currently {how}"
                )
            for found in pool.slices:
                for device in found.devices:
                    if self.selectable(device, wish, c, r, k) and self.fits(device, wish):
                        listed.append((pool, device))
        return listed

    def devices(self, start):
        position = 0
        for pool in self.pools:
            for found in pool.slices:
                for device in found.devices:
                    if position >= start:
                        yield position, pool, device
                    position += 1

    def step(self, c, r, k, d, inside, start):
        self.steps += 1
        if self.steps > self.steps_max:
            raise TooLong
        if c == len(self.claims):
            return SUCCESS
        if r == len(self.wishes[c]):
            signal = self.step(c + 1, 0, 0, 0, False, 0)
            return FAIL if signal == LIMIT else signal
        alternatives = self.wishes[c][r]
        if alternatives[0].inner and not inside:
            return self.first_available(c, r, d)
        wish = alternatives[k]
        if wish.everything and not wish.listed:
            if wish.abort:
                raise Abort(wish.abort)
            return FAIL
        if d >= wish.count:
            return self.step(c, r + 1, 0, 0, False, 0)
        if len(self.results[c]) + wish.count - d > 32:
            return LIMIT
        if wish.everything:
            pool, device = wish.listed[d]
            undo = self.take(device, pool, wish, c, must=True)
            if undo is None:
                return FAIL
            signal = self.step(c, r, k, d + 1, inside, 0)
            if signal != SUCCESS:
                undo()
            return signal
        for position, pool, device in self.devices(start):
            if self.taken_by(device, c) if wish.admin else self.in_use(device, c):
                continue
            if not self.selectable(device, wish, c, r, k):
                continue
            if not self.fits(device, wish):
                continue
            undo = self.take(device, pool, wish, c, must=False)
            if undo is None:
                continue
            following = 0 if self.stable else position + 1
            signal = self.step(c, r, k, d + 1, inside, following)
            if signal == SUCCESS:
                return SUCCESS
            undo()
            if signal == LIMIT:
                return LIMIT
        return FAIL

    def first_available(self, c, r, d):
        only_limit = True
        books = self.books()
        for number in range(len(self.wishes[c][r])):
            if number and not self.quirks.q18:
                self.allocating, self.shares, self.shared, self.consumed = books[:4]
                self.constraints = books[4]
                books = self.books()
            signal = self.step(c, r, number, d, True, 0)
            if signal == LIMIT:
                continue
            only_limit = False
            if signal == SUCCESS:
                return SUCCESS
        return LIMIT if only_limit else FAIL

    def books(self):
        if self.quirks.q18:
            return ()
        plain = (self.allocating, self.shares, self.shared, self.consumed)
        return (*deepcopy(plain), [[saved(found) for found in claim] for claim in self.constraints])

    def in_use(self, device, c):
        takers = self.allocating[device.id]
        if not self.quirks.q9:
            takers = [(claim, is_admin) for claim, is_admin in takers if claim == c or not is_admin]
        return device.id in self.state.whole or bool(takers)

    def taken_by(self, device, c):
        return any(claim == c for claim, _ in self.allocating[device.id])

    def selectable(self, device, wish, c, r, k):
        if device.binding and not self.features.binding_conditions:
            return False
        key = (device.id, c, r, k)
        if key not in self.cache:
            try:
                self.cache[key] = self.evaluate(device, wish, key_of(self.claims[c]))
            except Abort:
                if self.quirks.q16 or not self.never(device, wish):
                    raise
                self.cache[key] = False
        return self.cache[key]

    def never(self, device, wish):
        """True when the request can never take the device (Q16)."""
        return (
            (not wish.admin and device.id in self.state.whole)
            or self.is_tainted(device, wish)
            or bool(device.consumes_any and not self.features.partitionable_devices)
        )

    def evaluate(self, device, wish, key):
        """The class's selectors, then the request's, then the device's nodes."""
        for owner, found in (
            (f"class {wish.tree['deviceClassName']}", wish.cls["spec"]),
            (f"claim {key}", wish.tree),
        ):
            for number, selector in enumerate(found.get("selectors") or []):
                place = f"{owner}: selector #{number}"
                program = compiled(selector["cel"]["expression"])
                if isinstance(program, str):
                    raise Abort(f"{place}: CEL compile error: {program}")
                outcome = program.evaluate(device.cel_input, hint=True)
                if outcome.error is not None:
                    problem = f"CEL runtime error: {outcome.error}"
                    raise Abort(f"{place} on device {device.text}: {problem}")
                if not outcome.match:
                    return False
        return not device.slice.per_device or is_meant(device.tree, self.node)

    def fits(self, device, wish):
        return not self.consumable or literal_capacity.fits(
            wish.amounts,
            device,
            self.state.aggregated.get(device.id),
            self.shares.get(device.id),
            grows=self.quirks.q20,
        )

    def is_tainted(self, device, wish):
        return self.features.device_taints and any(
            taint.get("effect") in ("NoSchedule", "NoExecute")
            and not any(tolerates(found, taint) for found in wish.tolerations)
            for taint in device.taints
        )

    def book(self, pool, device):
        key = pool.id[1] if self.quirks.q3 else pool.id
        if key not in self.available:
            left = dict(pool.counters)
            for found in (*pool.slices, *pool.others):
                for other in found.devices:
                    if self.state.is_allocated(other.id):
                        for place, amount in other.consumes:
                            if place in left:
                                left[place] -= amount
            self.available[key] = left
        booked = self.consumed.setdefault(key, {})
        for place, amount in device.consumes:
            booked[place] = booked.get(place, 0) + amount
        concerned = self.available[key]
        if not self.quirks.q4:
            concerned = {p: concerned[p] for p, _ in device.consumes if p in concerned}
        if all(left >= booked.get(place, 0) for place, left in concerned.items()):
            return True
        self.unbook(pool, device)
        return False

    def unbook(self, pool, device):
        key = pool.id[1] if self.quirks.q3 else pool.id
        for place, amount in device.consumes:
            self.consumed[key][place] -= amount

    def take(self, device, pool, wish, c, *, must):
        multi = self.consumable and device.shared
        if wish.admin and not multi and self.taken_by(device, c):
            return None
        if not wish.admin and self.in_use(device, c):
            return None
        booked = False
        if device.consumes_any:
            if not self.features.partitionable_devices:
                return None
            if not (multi and self.is_held(device)):
                if not self.book(pool, device):
                    return None
                booked = True
        if self.is_tainted(device, wish):
            return self.refused(pool, device, booked=booked)
        added = []
        for constraint in self.constraints[c]:
            if not constraint.add(device, wish):
                for earlier in added:
                    earlier.remove(device, wish)
                self.refused(pool, device, booked=booked)
                if must and self.quirks.q10:
                    raise Abort(
                        f"{wish.place}: cannot add device {device.text} "
                        "because a claim constraint would not be satisfied"
                    )
                return None
            added.append(constraint)
        if not multi:
            self.allocating[device.id].append((c, wish.admin))
        if not self.fits(device, wish):
            if not self.quirks.q8:
                for earlier in added:
                    earlier.remove(device, wish)
                if not multi:
                    self.allocating[device.id].remove((c, wish.admin))
                if booked:
                    self.unbook(pool, device)
            return None
        amounts = self.share(device, wish) if multi else None
        self.results[c].append((wish, device, amounts))

        def undo():
            for constraint in self.constraints[c]:
                constraint.remove(device, wish)
            if multi:
                self.unshare(device, amounts)
                if booked and not self.quirks.q2:
                    self.unbook(pool, device)
            else:
                self.allocating[device.id].remove((c, wish.admin))
                if booked:
                    self.unbook(pool, device)
            self.results[c].pop()

        return undo

    def is_held(self, device):
        """True when the counters of a shared device already count as booked."""
        if device.id in self.state.aggregated or device.id in self.shares:
            return True
        return not self.quirks.q17 and device.id in self.state.shares

    def refused(self, pool, device, *, booked):
        if booked and not self.quirks.q1:
            self.unbook(pool, device)

    def share(self, device, wish):
        amounts = {
            name: literal_capacity.amount_of(wish.amounts.get(name), capacity)
            for name, capacity in device.capacity.items()
        }
        entry = self.shares.setdefault(device.id, {})
        for name, (amount, _) in amounts.items():
            entry[name] = entry.get(name, 0) + amount.nanos
        self.shared[device.id] += 1
        return amounts

    def unshare(self, device, amounts):
        self.shared[device.id] -= 1
        entry = self.shares.get(device.id)
        if entry is None or (self.quirks.q7 and not amounts):
            return
        for name, (amount, source) in amounts.items():
            if name in entry:
                entry[name] -= (source.now if source else amount).nanos
        gone = not any(entry.values()) if self.quirks.q7 else not self.shared[device.id]
        if gone:
            del self.shares[device.id]


@lru_cache(maxsize=4_096)
def compiled(expression):
    """The program, or the text of its error."""
    try:
        return cel.compile_expression(expression)
    except cel.CompileError as problem:
        return str(problem)


def tolerates(toleration, taint):
    """9."""
    if toleration.get("effect") and toleration["effect"] != taint.get("effect"):
        return False
    if toleration.get("key") and toleration["key"] != taint.get("key"):
        return False
    operator = toleration.get("operator") or "Equal"
    if operator == "Equal":
        return (toleration.get("value") or "") == (taint.get("value") or "")
    return operator == "Exists"


def saved(constraint):
    """A copy that further changes of the constraint leave alone."""
    made = copy(constraint)
    made.history, made.known = list(constraint.history), dict(constraint.known)
    return made
