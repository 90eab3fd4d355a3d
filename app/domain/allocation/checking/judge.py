"""Checks allocations against the rules, one by one.

A result that is right only because of a defect of upstream gives a finding that names the quirk.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from app.domain.allocation.checking import amounts, claim_requests, results, stock
from app.domain.allocation.checking.capacities import Capacities
from app.domain.allocation.checking.claim_requests import Ask
from app.domain.allocation.checking.stock import CounterKey, DeviceKey, Holding, Piece, UsablePool
from app.domain.values import json_tree
from app.domain.values.json_tree import JsonObject, JsonView

DEVICES_MAX = 32
"""The most devices that one claim may have."""

Selects = Callable[[str, str, JsonView], bool]
"""Whether an expression matches a device, given its driver's name and its API object."""

RESULT_FIELDS = frozenset(
    (
        "request", "driver", "pool", "device", "adminAccess", "tolerations", "shareID",
        "consumedCapacity", "bindingConditions", "bindingFailureConditions",
    )
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A violation of a rule; `quirk` names the defect of upstream that explains it."""

    claim: str
    problem: str
    quirk: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """The inputs of an allocation, as API objects, against which a result is checked.

    `slices` are the published slices of the whole cluster, `held` the claims that were allocated
    before, `claims` the claims that were allocated together. `gates` are feature gates by name; a
    gate that is not named is off. `variant` is upstream's allocator, `quirks` the numbers of its
    defects. `cleaned_configs` is true since 1.37. With `ordered`, results are in upstream's order;
    the API does not ask for that of other schedulers.
    """

    node: JsonView
    claims: Sequence[JsonView]
    classes: Mapping[str, JsonView]
    slices: Sequence[JsonView]
    selects: Selects
    rules: Sequence[JsonView] = ()
    held: Sequence[JsonView] = ()
    gates: Mapping[str, bool] = field(default_factory=dict)
    variant: str = "experimental"
    quirks: frozenset[str] = frozenset()
    cleaned_configs: bool = True
    ordered: bool = True

    def on(self, *gates: str) -> bool:
        """Whether all these gates are on."""
        return all(self.gates.get(gate, False) for gate in gates)

    @property
    def consumable(self) -> bool:
        """Whether devices can be shared."""
        return self.on("DRAConsumableCapacity") and self.variant != "stable"

    @property
    def binding(self) -> bool:
        """Whether binding conditions are on; they also need the gate of device status."""
        has_status = self.gates.get("DRAResourceClaimDeviceStatus", True)
        return self.on("DRADeviceBindingConditions") and has_status

    @property
    def lists(self) -> bool:
        """Whether attributes may be lists."""
        return self.on("DRAListTypeAttributes") and self.variant == "experimental"


@dataclass(frozen=True, slots=True, kw_only=True)
class _DeviceResult:
    """One device result, resolved."""

    claim: int
    ask: Ask
    piece: Piece
    pool: UsablePool
    tree: JsonView

    @property
    def is_admin(self) -> bool:
        return self.tree.get("adminAccess") is True


@dataclass(frozen=True, slots=True, kw_only=True)
class _JudgedClaim:
    """One claim with its allocation."""

    key: str
    tree: JsonView
    asks: Sequence[Sequence[Ask]]
    devices: Sequence[_DeviceResult]
    allocation: JsonView


def check(case: Case, allocations: Sequence[JsonView]) -> list[Finding]:
    """All findings about one AllocationResult per claim; empty when the allocations are right."""
    if len(allocations) != len(case.claims):
        text = f"{len(allocations)} allocations for {len(case.claims)} claims"
        return [Finding(claim="", problem=text)]
    return _Judge(case).check(allocations)


def findings_tree(findings: Sequence[Finding]) -> list[JsonObject]:
    """The findings as JSON."""
    return [
        {
            "claim": finding.claim,
            "problem": finding.problem,
            **({"quirk": finding.quirk} if finding.quirk else {}),
        }
        for finding in findings
    ]


class _Judge:
    """The rules, applied to one case."""

    def __init__(self, case: Case) -> None:
        self.case = case
        reading = stock.Reading(
            partitionable=case.on("DRAPartitionableDevices"),
            taints=case.on("DRADeviceTaints"),
            is_stable=case.variant == "stable",
            quirks=case.quirks,
        )
        rules = case.rules if case.on("DRADeviceTaints") else ()
        self.pools = stock.usable_pools(case.node, case.slices, rules, reading)
        self.pieces = {piece.key: (pool, piece) for pool in self.pools for piece in pool.pieces}
        self.places = {key: number for number, key in enumerate(self.pieces)}
        self.holding: Holding = stock.holding_of(
            case.held, consumable=case.on("DRAConsumableCapacity")
        )
        grows = case.consumable and "q20" in case.quirks
        self.capacities = Capacities(case.slices, self.holding, grows=grows)

    def check(self, allocations: Sequence[JsonView]) -> list[Finding]:
        findings: list[Finding] = []
        claims: list[_JudgedClaim] = []
        for number, (tree, allocation) in enumerate(
            zip(self.case.claims, allocations, strict=True)
        ):
            claim, problems = self._resolve(number, tree, allocation)
            claims.append(claim)
            findings += [Finding(claim=claim.key, problem=text) for text in problems]
            findings += [
                Finding(claim=claim.key, problem=text, quirk=quirk)
                for text, quirk in self._of_claim(claim)
            ]
        devices = [one for claim in claims for one in claim.devices]
        keys = [claim.key for claim in claims]
        for one, text, quirk in (
            *self._exclusive(devices),
            *self._capacities(devices),
            *self._generations(devices),
        ):
            problem = f"device {one.piece.text} {text}"
            findings.append(Finding(claim=keys[one.claim], problem=problem, quirk=quirk))
        return findings + list(self._counters(devices))

    def _resolve(
        self, number: int, tree: JsonView, allocation: JsonView
    ) -> tuple[_JudgedClaim, list[str]]:
        asks = claim_requests.asks_of(tree, self.case.classes)
        named = {ask.name: ask for alternatives in asks for ask in alternatives}
        devices, problems = [], []
        for result in json_tree.objects(allocation, "devices", "results"):
            ask = named.get(json_tree.text(result, "request"))
            known = self.pieces.get(stock.key_of(result))
            if ask is None:
                problems.append(f"there is no request {json_tree.text(result, 'request')}")
            elif known is None:
                problems.append(f"device {'/'.join(stock.key_of(result))} is not usable")
            else:
                pool, piece = known
                devices.append(
                    _DeviceResult(claim=number, ask=ask, piece=piece, pool=pool, tree=result)
                )
        namespace = json_tree.text(tree, "metadata", "namespace")
        name = json_tree.text(tree, "metadata", "name")
        key = f"{namespace}/{name}" if namespace else name
        return _JudgedClaim(
            key=key, tree=tree, asks=asks, devices=devices, allocation=allocation
        ), problems

    def _of_claim(self, claim: _JudgedClaim) -> Iterator[tuple[str, str]]:
        """The problems of one claim alone, each with the quirk that explains it, if any."""
        if len(claim.devices) > DEVICES_MAX:
            yield f"{len(claim.devices)} devices exceed the limit of {DEVICES_MAX}", ""
        places = {a.main: n for n, alternatives in enumerate(claim.asks) for a in alternatives}
        order = [places[one.ask.main] for one in claim.devices]
        if self.case.ordered and order != sorted(order):
            yield "results are not in the order of the requests", ""
        for alternatives in claim.asks:
            yield from self._amount(alternatives, claim.devices)
        for one in claim.devices:
            for text in self._one(one):
                yield f"device {one.piece.text}: {text}", ""
        for constraint in json_tree.objects(claim.tree, "spec", "devices", "constraints"):
            yield from self._constraint(constraint, claim.devices)
        for text in self._derived(claim):
            yield text, ""

    def _amount(
        self, alternatives: Sequence[Ask], devices: Sequence[_DeviceResult]
    ) -> Iterator[tuple[str, str]]:
        if not alternatives:
            return
        main = alternatives[0].main
        mine = [one for one in devices if one.ask.main == main]
        chosen = {one.ask.name: one.ask for one in mine}
        if len(chosen) > 1:
            yield f"request {main} mixes alternatives {', '.join(sorted(chosen))}", ""
            return
        if not chosen:
            if not any(_wants_nothing(ask) for ask in alternatives):
                yield f"request {main} has no devices", ""
            return
        ask = next(iter(chosen.values()))
        keys = [one.piece.key for one in mine]
        in_order = sorted(keys, key=self.places.__getitem__)
        if not self.case.ordered:
            keys = in_order
        if ask.takes_all:
            if keys != self._all(ask):
                text = f"request {ask.name} does not have all devices, in their order"
                listed = [self.pieces[key][1] for key in keys]
                is_explained = self.capacities.explain_list(ask, self._selectable(ask), listed)
                yield text, "q20" if is_explained else ""
        elif len(mine) != (json_tree.integer(ask.tree, "count") or 0):
            yield f"request {ask.name} has {len(mine)} of {ask.tree.get('count')} devices", ""
        if len(set(keys)) != len(keys):
            yield f"request {ask.name} has a device twice", ""
        # Parity: allocator.md 15; only upstream's stable allocator looks at permutations of one
        # request's devices.
        if self.case.variant != "stable" and keys != in_order:
            yield f"devices of request {ask.name} are not in the order in which they are listed", ""

    def _all(self, ask: Ask) -> list[DeviceKey]:
        return [
            piece.key
            for piece in self._selectable(ask)
            if not (self.case.consumable and self.capacities.shortage(ask, piece, {}))
        ]

    def _selectable(self, ask: Ask) -> list[Piece]:
        pieces = (piece for pool in self.pools for piece in pool.pieces)
        return [piece for piece in pieces if self._is_selectable(ask, piece)]

    def _is_selectable(self, ask: Ask, piece: Piece) -> bool:
        """Parity: allocator.md 5.1."""
        if not self.case.binding and piece.tree.get("bindingConditions"):
            return False
        if not all(self.case.selects(text, piece.key[0], piece.tree) for text in ask.expressions):
            return False
        return stock.is_selected(piece.place, self.case.node)

    def _one(self, one: _DeviceResult) -> Iterator[str]:
        """The problems of one device result, field by field."""
        ask, piece, case = one.ask, one.piece, self.case
        if not self._is_selectable(ask, piece):
            yield f"it is not selectable for request {ask.name}"
        tolerations = json_tree.objects(ask.tree, "tolerations")
        for taint in piece.taints:
            if taint.get("effect") in stock.HARD and not stock.is_tolerated(taint, tolerations):
                yield f"it has the taint {taint.get('key')}:{taint.get('effect')}"
        if piece.tree.get("consumesCounters") and not case.on("DRAPartitionableDevices"):
            yield "it consumes counters, which are switched off"
        for name, expected in results.copies(ask, piece, has_conditions=case.binding):
            if not results.is_same(one.tree.get(name), expected):
                yield f"{name} is {_shown(one.tree.get(name))}, not {_shown(expected)}"
        for name in one.tree.keys() - RESULT_FIELDS:
            yield f"the field {name} is not known"
        share = one.tree.get("shareID")
        if self._is_shared(piece):
            if not (isinstance(share, str) and share):
                yield "a share has no shareID"
        elif share is not None:
            yield "a whole device has a shareID"

    def _derived(self, claim: _JudgedClaim) -> Iterator[str]:
        """The problems of config, node selector and unknown fields."""
        chosen_by = {one.ask.main: one.ask for one in claim.devices}
        chosen = [chosen_by.get(options[0].main, options[0]) for options in claim.asks if options]
        cleaned = self.case.cleaned_configs
        expected = results.configs(claim.tree, chosen, are_cleaned=cleaned)
        written = json_tree.get(claim.allocation, "devices", "config")
        if not results.is_same(written if written is not None else [], expected):
            yield f"config is {_shown(written)}, not {_shown(expected)}"
        pieces = [one.piece for one in claim.devices]
        is_stable = self.case.variant == "stable"
        selector = results.node_selector(self.case.node, pieces, is_stable=is_stable)
        if not results.is_same(claim.allocation.get("nodeSelector"), selector):
            own = claim.allocation.get("nodeSelector")
            yield f"nodeSelector is {_shown(own)}, not {_shown(selector)}"
        yield from (f"the field {n} is not known" for n in results.unknown_fields(claim.allocation))

    def _constraint(
        self, constraint: JsonView, devices: Sequence[_DeviceResult]
    ) -> Iterator[tuple[str, str]]:
        names = json_tree.texts(constraint, "requests")
        concerned = [one for one in devices if not names or claim_requests.names_it(names, one.ask)]
        matching = constraint.get("matchAttribute")
        name = matching if matching is not None else constraint.get("distinctAttribute")
        values = []
        for one in concerned:
            value = claim_requests.attribute(one.piece.tree, one.piece.key[0], str(name))
            if value is None:
                yield f"device {one.piece.text} has no attribute {name}", ""
                return
            values.append(value)
        if len(values) < 2:
            return
        lists = self.case.lists
        if matching is not None:
            if not claim_requests.have_common_value(values, lists=lists):
                yield f"the devices do not have a common value of {name}", ""
        elif claim_requests.two_agree(values, lists=lists):
            mains = [one.ask.main for one in concerned]
            explained = len(set(mains)) != len(mains) and "q6" in self.case.quirks
            yield f"two devices share a value of {name}", "q6" if explained else ""

    def _is_shared(self, piece: Piece) -> bool:
        return self.case.consumable and piece.tree.get("allowMultipleAllocations") is True

    def _exclusive(
        self, devices: Sequence[_DeviceResult]
    ) -> Iterator[tuple[_DeviceResult, str, str]]:
        """The devices that are taken as a whole twice. Parity: allocator.md 5.2 and 5.4."""
        earlier: dict[DeviceKey, list[_DeviceResult]] = {}
        for one in devices:
            if not one.is_admin and one.piece.key in self.holding.whole:
                yield one, "is allocated already", ""
            if self._is_shared(one.piece):
                continue
            for other in earlier.setdefault(one.piece.key, []):
                # With quirk q9 a device taken with admin access is in use for what follows.
                may_be = one.is_admin or (other.is_admin and "q9" not in self.case.quirks)
                if one.claim == other.claim or not may_be:
                    yield one, "is taken twice", ""
            earlier[one.piece.key].append(one)

    def _counters(self, devices: Sequence[_DeviceResult]) -> Iterator[Finding]:
        """The overdrawn counters; a shared device draws counters once. Parity: allocator.md 7."""
        drawn: dict[tuple[str, str], dict[CounterKey, Fraction]] = {}
        pools = {}
        counted: set[DeviceKey] = set()
        for one in devices:
            key = one.piece.key
            if self._is_shared(one.piece) and (key in counted or key in self.holding.shared):
                continue
            counted.add(key)
            pools[one.pool.key] = one.pool
            mine = drawn.setdefault(one.pool.key, {})
            for counter, amount in one.piece.consumes.items():
                mine[counter] = mine.get(counter, Fraction(0)) + amount
        for pool_key, wanted in drawn.items():
            left = pools[pool_key].left(self.holding)
            place = "/".join(pool_key)
            for used, amount in wanted.items():
                if amount > left.get(used, amount):
                    yield Finding(
                        claim="",
                        problem=f"counter {used[1]} of set {used[0]} in pool {place} is overdrawn",
                        quirk=self._explains_counters(pools[pool_key]),
                    )

    def _explains_counters(self, pool: UsablePool) -> str:
        """The quirk that allows a pool to be overdrawn: books that are shared, or not kept."""
        # A book is opened for a device that draws counters; pools without such devices have none.
        names = {
            json_tree.text(tree, "spec", "driver")
            for tree in self.case.slices
            if json_tree.text(tree, "spec", "pool", "name") == pool.key[1]
            and any(
                each.get("consumesCounters") for each in json_tree.objects(tree, "spec", "devices")
            )
        }
        if "q3" in self.case.quirks and len(names) > 1:
            return "q3"
        # The book of a node that was asked before holds for all nodes.
        if "q12" in self.case.quirks and not pool.is_uniform:
            return "q12"
        gives_without_amounts = any(
            self._is_shared(piece) and not piece.tree.get("capacity") for piece in pool.pieces
        )
        return "q7" if "q7" in self.case.quirks and gives_without_amounts else ""

    def _capacities(
        self, devices: Sequence[_DeviceResult]
    ) -> Iterator[tuple[_DeviceResult, str, str]]:
        """The amounts that are not rounded, not recorded, or too large. Parity: allocator.md 8."""
        before: dict[DeviceKey, dict[str, Fraction]] = {}
        # An amount that grew is taken back in full, which can make room for any request.
        anywhere = "q20" if any(map(self.capacities.growing, self._asks())) else ""
        for one in devices:
            own = "q20" if self.capacities.growing(one.ask) else ""
            written = one.tree.get("consumedCapacity")
            shared = self._is_shared(one.piece)
            if not self.case.consumable or not shared:
                if written is not None:
                    yield one, "is taken as a whole and consumes capacity", ""
                if self.case.consumable and (
                    text := self.capacities.shortage(one.ask, one.piece, {})
                ):
                    yield one, text, own
                continue
            mine = before.setdefault(one.piece.key, {})
            if text := self.capacities.shortage(one.ask, one.piece, mine):
                yield one, text, anywhere
            expected = self.capacities.consumption(one.ask, one.piece)
            if _amounts_of(written) != (expected or None):
                yield one, f"consumes {written}, not {_texts(expected)}", own
            for name, amount in expected.items():
                mine[name] = mine.get(name, Fraction(0)) + amount

    def _asks(self) -> Iterator[Ask]:
        for claim in self.case.claims:
            for alternatives in claim_requests.asks_of(claim, self.case.classes):
                yield from alternatives

    def _generations(
        self, devices: Sequence[_DeviceResult]
    ) -> Iterator[tuple[_DeviceResult, str, str]]:
        seen: set[tuple[str, str]] = set()
        for one in devices:
            pool = one.pool
            if pool.newer is not None and pool.key not in seen:
                seen.add(pool.key)
                text = f"is of generation {pool.generation} while {pool.newer} is published"
                yield one, text, "q12"


def _wants_nothing(ask: Ask) -> bool:
    """Whether no device is right; mode All needs one. Parity: allocator.md 4."""
    return not ask.takes_all and not ask.tree.get("count")


def _amounts_of(written: object) -> dict[str, Fraction] | None:
    """The amounts in a result; None when absent, empty when they cannot be read."""
    if not isinstance(written, Mapping) or None in written.values():
        return None if written is None else {}
    try:
        return {name: amounts.read(amount) for name, amount in written.items()}
    except ValueError:
        return {}


def _texts(expected: Mapping[str, Fraction]) -> dict[str, str]:
    return {name: str(amount) for name, amount in expected.items()}


def _shown(value: object) -> str:
    """A value of a field as JSON, for messages."""
    return "absent" if value is None else json.dumps(value, ensure_ascii=False)
