"""Is this allocation right? Verifies results without knowing how they were found.

The checker reads the API objects of a result and holds them against the rules, one by one: devices
exist for the node and are selectable, nothing is taken twice, taints are tolerated, counters and
capacity suffice, constraints hold, copies and configs are complete. It shares with the search what
says *what* a rule is (selectors, tolerations, amounts) and nothing of what is tried when.

A result that is only right because of a defect of upstream gives a finding that names the quirk.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from app.domain.allocation import capacity, constraints, counters, eligibility
from app.domain.allocation.allocator import Allocation, Allocator
from app.domain.allocation.capacity import Requested
from app.domain.allocation.constraints import Facts
from app.domain.allocation.features import Features, Variant
from app.domain.allocation.quirks import UPSTREAM, Quirks
from app.domain.allocation.requests import DEVICES_MAX, ClaimPlan, Constraint, Request
from app.domain.allocation.state import AllocatedState
from app.domain.devices import taints
from app.domain.devices.device_selectors import SelectorCompiler
from app.domain.devices.inventory import Inventory, NodeView
from app.domain.devices.model import Device, DeviceId
from app.domain.values import json_tree, selectors
from app.domain.values.json_tree import JsonObject, JsonView
from app.domain.values.selectors import SelectorError


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something that breaks a rule; `quirk` names the defect of upstream that explains it."""

    claim: str
    problem: str
    quirk: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One device result, resolved. `index` is the device's place in the view."""

    claim: int
    request: Request
    index: int
    device: Device
    tree: JsonView

    @property
    def admin(self) -> bool:
        """Whether the device was taken with admin access."""
        return self.tree.get("adminAccess") is True


@dataclass(frozen=True, slots=True, kw_only=True)
class Checker:
    """Everything a result is held against."""

    view: NodeView
    plans: Sequence[ClaimPlan]
    state: AllocatedState
    features: Features
    variant: Variant
    inventory: Inventory
    compiler: SelectorCompiler
    quirks: Quirks = UPSTREAM

    def check(self, allocations: Sequence[JsonView]) -> list[Finding]:
        """All findings; an empty list means that the result is right."""
        if len(allocations) != len(self.plans):
            text = f"{len(allocations)} allocations for {len(self.plans)} claims"
            return [Finding(claim="", problem=text)]
        findings: list[Finding] = []
        entries: list[Entry] = []
        for number, (plan, allocation) in enumerate(zip(self.plans, allocations, strict=True)):
            found, problems = self._resolve(number, plan, allocation)
            entries += found
            findings += (Finding(claim=plan.key, problem=text) for text in problems)
            findings += self._check_claim(plan, found, allocation)
        findings += self._check_exclusive(entries)
        findings += self._check_counters(entries)
        findings += self._check_capacity(entries)
        findings += self._check_generations(entries)
        return findings

    @property
    def _consumable(self) -> bool:
        return self.features.consumable_capacity and self.variant is not Variant.STABLE

    def _resolve(
        self, number: int, plan: ClaimPlan, allocation: JsonView
    ) -> tuple[list[Entry], list[str]]:
        places = {device.id: index for index, device in enumerate(self.view.devices)}
        requests = {
            request.result_name: request
            for alternatives in plan.requests
            for request in alternatives
        }
        entries, problems = [], []
        for tree in json_tree.objects(allocation, "devices", "results"):
            device_id: DeviceId = (
                json_tree.text(tree, "driver"),
                json_tree.text(tree, "pool"),
                json_tree.text(tree, "device"),
            )
            request = requests.get(json_tree.text(tree, "request"))
            index = places.get(device_id)
            if request is None:
                problems.append(f"there is no request {json_tree.text(tree, 'request')}")
            elif index is None:
                problems.append(f"device {'/'.join(device_id)} is not usable on the node")
            else:
                entries.append(
                    Entry(
                        claim=number,
                        request=request,
                        index=index,
                        device=self.view.devices[index],
                        tree=tree,
                    )
                )
        return entries, problems

    def _check_claim(
        self, plan: ClaimPlan, entries: Sequence[Entry], allocation: JsonView
    ) -> Iterator[Finding]:
        def finding(problem: str, quirk: str = "") -> Finding:
            return Finding(claim=plan.key, problem=problem, quirk=quirk)

        if len(entries) > DEVICES_MAX:
            yield finding(f"{len(entries)} devices exceed the limit of {DEVICES_MAX}")
        for alternatives in plan.requests:
            for problem in self._check_request(alternatives, entries):
                yield finding(problem)
        order = [
            position
            for entry in entries
            for position, alternatives in enumerate(plan.requests)
            if alternatives[0].main == entry.request.main
        ]
        if order != sorted(order):
            yield finding("results are not in the order of the requests")
        for entry in entries:
            for problem in self._check_entry(plan, entry):
                yield finding(problem)
        for constraint in plan.constraints:
            problem, quirk = self._check_constraint(constraint, entries)
            if problem:
                yield finding(problem, quirk)
        yield from (finding(problem) for problem in self._check_node_selector(allocation))

    def _check_request(
        self, alternatives: Sequence[Request], entries: Sequence[Entry]
    ) -> Iterator[str]:
        mine = [entry for entry in entries if entry.request.main == alternatives[0].main]
        chosen = {entry.request.result_name: entry.request for entry in mine}
        if len(chosen) > 1:
            yield f"request {alternatives[0].main} mixes alternatives {sorted(chosen)}"
            return
        request = next(iter(chosen.values()), alternatives[0])
        if request.takes_all:
            listed = self._all_devices(request)
            if [entry.index for entry in mine] != listed:
                yield f"request {request.result_name} does not have all {len(listed)} devices"
        elif len(mine) != request.count:
            yield f"request {request.result_name} has {len(mine)} of {request.count} devices"
        if len({entry.index for entry in mine}) != len(mine):
            yield f"request {request.result_name} has a device twice"

    def _all_devices(self, request: Request) -> list[int]:
        selection = eligibility.select(
            self.view,
            request.selectors,
            self.compiler,
            binding_conditions=self.features.binding_conditions,
        )
        return [
            index
            for index, device in enumerate(self.view.devices)
            if selection.matching >> index & 1
            and (not self._consumable or not self._lacks(request, device))
        ]

    def _lacks(self, request: Request, device: Device) -> str | None:
        return capacity.shortage(
            _requested(request),
            device.capacity,
            self.state.aggregated(device.id),
            None,
            grows=False,
        )

    def _check_entry(self, plan: ClaimPlan, entry: Entry) -> Iterator[str]:
        device, request = entry.device, entry.request
        selection = eligibility.select(
            self.view,
            request.selectors,
            self.compiler,
            binding_conditions=self.features.binding_conditions,
        )
        if not selection.matching >> entry.index & 1:
            yield f"device {device.text} is not selectable for request {request.result_name}"
        if self.features.device_taints:
            taint = taints.untolerated(device.taints, request.tolerations)
            if taint is not None:
                yield f"device {device.text} has taint {taint.text}"
        if device.consumes and not self.features.partitionable_devices:
            yield f"device {device.text} consumes counters, which are switched off"
        if entry.admin is not request.admin:
            yield f"device {device.text}: adminAccess is not that of the request"
        shared = self._consumable and device.allow_multiple
        if ("shareID" in entry.tree) is not shared:
            yield f"device {device.text}: a shareID is there iff the device is shared"
        copied = [dict(found.tree) for found in request.tolerations]
        if entry.tree.get("tolerations", []) != copied:
            yield f"device {device.text}: tolerations are not those of the request"
        binding = self.features.binding_conditions
        for field, values in (
            ("bindingConditions", device.binding_conditions),
            ("bindingFailureConditions", device.binding_failure_conditions),
        ):
            if entry.tree.get(field, []) != (list(values) if binding else []):
                yield f"device {device.text}: {field} are not those of the device"

    def _check_constraint(
        self, constraint: Constraint, entries: Sequence[Entry]
    ) -> tuple[str, str]:
        """The problem with a constraint and the quirk that explains it; empty when it holds."""
        concerned = [entry for entry in entries if constraint.concerns(entry.request)]
        facts = [constraints.facts_of(entry.device, constraint) for entry in concerned]
        name = constraint.attribute
        missing = [entry for entry, found in zip(concerned, facts, strict=True) if found is None]
        if missing:
            return f"device {missing[0].device.text} has no attribute {name}", ""
        values = [found for found in facts if found is not None]
        sets = self.features.list_attributes and self.variant is Variant.EXPERIMENTAL
        if constraint.matching:
            if len(values) > 1 and not _have_common_value(values, sets=sets):
                return f"the devices do not have a common value of {name}", ""
            return "", ""
        if len(values) > 1 and not _are_distinct(values, sets=sets):
            names = Counter(entry.request.main for entry in concerned)
            repeated = any(count > 1 for count in names.values())
            return f"two devices share a value of {name}", "q6" if repeated else ""
        return "", ""

    def _check_node_selector(self, allocation: JsonView) -> Iterator[str]:
        tree = json_tree.get(allocation, "nodeSelector")
        if not isinstance(tree, Mapping):
            return
        try:
            selector = selectors.node_selector_of(tree)
        except SelectorError as problem:
            yield f"the node selector cannot be read: {problem}"
            return
        if not selector.matches(self.view.node.name, self.view.node.labels):
            yield "the node selector does not select the node itself"

    def _check_exclusive(self, entries: Sequence[Entry]) -> Iterator[Finding]:
        """No device is taken as a whole twice. Parity: allocator.md 5.2 and 5.4."""
        owners: dict[int, list[Entry]] = {}
        for entry in entries:
            if self._consumable and entry.device.allow_multiple:
                if not entry.admin and self.state.is_dedicated(entry.device.id):
                    yield self._about(entry, "is allocated as a whole already")
                continue
            if not entry.admin and self.state.is_dedicated(entry.device.id):
                yield self._about(entry, "is allocated already")
            for other in owners.setdefault(entry.index, []):
                # With quirk q9 a device taken with admin access is in use for what follows.
                may_be = entry.admin or (other.admin and not self.quirks.q9)
                if entry.claim == other.claim or not may_be:
                    yield self._about(entry, "is taken twice")
            owners[entry.index].append(entry)

    def _check_counters(self, entries: Sequence[Entry]) -> Iterator[Finding]:
        booked: dict[int, dict[counters.Counter, int]] = {}
        counted: set[int] = set()
        for entry in entries:
            shared = self._consumable and entry.device.allow_multiple
            if shared and (entry.index in counted or self.state.is_shared(entry.device.id)):
                continue
            counted.add(entry.index)
            pool = booked.setdefault(self.view.pool_index[entry.index], {})
            for place, amount in _consumption(entry.device):
                pool[place] = pool.get(place, 0) + amount
        names = Counter(pool.id[1] for pool in self.view.usable)
        for position, wanted in booked.items():
            pool_found = self.view.usable[position]
            left = counters.available_of(pool_found, self.state)
            for place, amount in wanted.items():
                if amount > left.get(place, amount):
                    clash = names[pool_found.id[1]] > 1 or not self.inventory.has_plain_counters(
                        pool_found.id
                    )
                    yield Finding(
                        claim="",
                        problem=f"counter {place[1]} of set {place[0]} in pool "
                        f"{pool_found.text} is overdrawn",
                        quirk="q3" if clash else "q7",
                    )

    def _check_capacity(self, entries: Sequence[Entry]) -> Iterator[Finding]:
        if not self._consumable:
            return
        distorted = self._distorted()
        sums: dict[int, dict[str, int]] = {}
        for entry in entries:
            device, request = entry.device, entry.request
            if not device.allow_multiple:
                if self._lacks(request, device):
                    yield self._about(entry, str(self._lacks(request, device)))
                continue
            amounts = capacity.amounts(_requested(request), device.capacity)
            written = json_tree.mapping(entry.tree, "consumedCapacity")
            expected = {name: str(amount.value) for name, amount in amounts.items()}
            if dict(written) != expected:
                # Looking at any device may have enlarged the amount, not only at this one.
                grows = any(found.may_grow for found in _requested(request).values())
                yield self._about(
                    entry, f"consumes {dict(written)}, not {expected}", "q20" if grows else ""
                )
            unknown = capacity.asks_for_unknown(_requested(request), device.capacity)
            if unknown:
                yield self._about(entry, f"does not define capacity {unknown}")
            total = sums.setdefault(entry.index, dict(self.state.aggregated(device.id) or {}))
            for name, amount in amounts.items():
                if capacity.violates(amount.value, device.capacity[name].policy):
                    yield self._about(
                        entry, f"capacity {name} breaks its request policy", distorted
                    )
                total[name] = total.get(name, 0) + amount.value.nanos
                if total[name] > device.capacity[name].value.nanos:
                    yield self._about(entry, f"capacity {name} is overdrawn", distorted)

    def _check_generations(self, entries: Sequence[Entry]) -> Iterator[Finding]:
        seen: set[int] = set()
        for entry in entries:
            position = self.view.pool_index[entry.index]
            if position in seen:
                continue
            seen.add(position)
            pool = self.view.usable[position]
            newest = max(found.generation for found in self.inventory.slices_of(pool.id))
            if newest > pool.generation:
                yield self._about(
                    entry,
                    f"is of generation {pool.generation} while {newest} is published elsewhere",
                    "q12",
                )

    def _distorted(self) -> str:
        """Quirk q20 if some request may have grown: taking back what grew falsifies the books."""
        amounts = (
            amount
            for plan in self.plans
            for alternatives in plan.requests
            for request in alternatives
            for amount in request.capacity.values()
        )
        return "q20" if self.quirks.q20 and any(not found.compact for found in amounts) else ""

    def _about(self, entry: Entry, problem: str, quirk: str = "") -> Finding:
        return Finding(
            claim=self.plans[entry.claim].key,
            problem=f"device {entry.device.text} {problem}",
            quirk=quirk,
        )


def check_answer(
    allocator: Allocator, answer: Allocation, allocations: Sequence[JsonView]
) -> list[Finding]:
    """The findings about an allocation just made; `allocations` are its API objects."""
    checker = Checker(
        view=answer.case.view,
        plans=answer.case.plans,
        state=allocator.state,
        features=allocator.features,
        variant=allocator.variant,
        inventory=allocator.inventory,
        compiler=allocator.compiler,
        quirks=allocator.quirks,
    )
    return checker.check(allocations)


def findings_tree(findings: Sequence[Finding]) -> list[JsonObject]:
    """The findings as JSON."""
    return [
        {
            "claim": found.claim,
            "problem": found.problem,
            **({"quirk": found.quirk} if found.quirk else {}),
        }
        for found in findings
    ]


def _requested(request: Request) -> Mapping[str, Requested]:
    return {name: Requested(amount=amount) for name, amount in request.capacity.items()}


def _consumption(device: Device) -> Iterator[tuple[counters.Counter, int]]:
    for name, used in device.consumes:
        for counter, amount in used:
            yield (name, counter), amount


def _have_common_value(values: Sequence[Facts], *, sets: bool) -> bool:
    if not sets:
        first = values[0].scalars
        return all(found.scalars and found.scalars[0] in first for found in values[1:])
    known = [found.values for found in values if found.values is not None]
    if len(known) != len(values) or len({kind for kind, _ in known}) != 1:
        return False
    return bool(frozenset.intersection(*(found for _, found in known)))


def _are_distinct(values: Sequence[Facts], *, sets: bool) -> bool:
    for position, one in enumerate(values):
        for other in values[position + 1 :]:
            if not sets:
                if other.scalars and other.scalars[0] in one.scalars:
                    return False
            elif (
                one.values is not None
                and other.values is not None
                and one.values[0] == other.values[0]
                and one.values[1] & other.values[1]
            ):
                return False
    return True
