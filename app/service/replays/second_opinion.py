"""The second opinion: another evaluator's results for the selectors and devices of a history.

When decisions are made again, a mistake of the evaluator agrees with itself. So every selector of a
history (of DeviceClasses, claims, claim templates and patches) is evaluated for every device that
the history had, as published and as patched, and another evaluator does the same. Pairs that it
cannot answer are counted by reason, and never count as agreement. Neither evaluator is assumed to
be right: a disagreement means that an answer is in doubt, not that the history is wrong.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import msgspec
from anyio import lowlevel

from app.domain import cel
from app.domain.devices.device_selectors import (
    SelectorCompileError,
    SelectorCompiler,
    SelectorResult,
)
from app.domain.devices.inventory import Inventory, SliceChange
from app.domain.devices.model import Device
from app.domain.errors import InputError
from app.domain.log import Event, EventType
from app.domain.values import api_groups, json_tree
from app.domain.values.fields import dra, meta
from app.domain.values.json_tree import JsonObject, JsonView
from app.ports import Match, Opinion, SecondOpinion

EXAMPLES_MAX = 100
"""The most disagreements that a report names; all are counted."""

TURN_MAX = 20
"""Pairs that are evaluated before the loop runs other tasks."""

REFUSED = "redra refuses the expression, whose types the second opinion does not check"
"""The reason when an expression does not compile, so that there is nothing to compare."""

TOO_DEAR = "the evaluation costs more than the bound"
"""The reason for a pair that is not evaluated a second time because of its cost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpinionBounds:
    """Bounds of a second opinion: pairs of expression and device, and CEL cost units for each.

    The cost is that of our own evaluation of the pair; the other evaluator has no bound.
    """

    evaluations_max: int = 10_000
    cost_max: int = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class SecondReader:
    """The second evaluator, and the bounds of asking it."""

    opinion: SecondOpinion
    bounds: OpinionBounds = OpinionBounds()


@dataclass(frozen=True, slots=True, kw_only=True)
class Disagreement:
    """An expression and a device for which the evaluators give different results.

    `error` is the text of our error, if our result is an error.
    """

    expression: str
    device: str
    ours: Match
    theirs: Match
    error: str = ""

    def to_json(self) -> JsonObject:
        """The JSON form for reports."""
        return {
            "expression": self.expression,
            "device": self.device,
            "redra": self.ours.value,
            "second": self.theirs.value,
            "error": self.error,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class OpinionReport:
    """The result of the second opinion, for all pairs of an expression and a device's values.

    `unsaid` counts the pairs that were not judged, by reason; `unasked` those beyond the bound.
    """

    by: str
    expressions: int
    devices: int
    agreed: int
    disagreed: int
    disagreements: tuple[Disagreement, ...]
    unsaid: Mapping[str, int]
    unasked: int

    @property
    def is_complete(self) -> bool:
        """True when every pair was judged and both agree."""
        return not (self.disagreed or self.unsaid or self.unasked)

    def to_json(self) -> JsonObject:
        """The JSON form for reports."""
        return {
            "by": self.by,
            "expressions": self.expressions,
            "devices": self.devices,
            "agreed": self.agreed,
            "disagreed": self.disagreed,
            "disagreements": [each.to_json() for each in self.disagreements],
            "unsaid": dict(sorted(self.unsaid.items())),
            "unasked": self.unasked,
        }


@dataclass(slots=True)
class OpinionTally:
    """Counts the answers of the second opinion."""

    agreed: int = 0
    disagreed: int = 0
    disagreements: list[Disagreement] = field(default_factory=list)
    unsaid: Counter[str] = field(default_factory=Counter)

    def take(
        self, expression: str, device: Device, verdict: SelectorResult, opinion: Opinion
    ) -> None:
        """Compare our verdict with the opinion."""
        ours = answer_of(verdict)
        if opinion.answer is None:
            self.unsaid[opinion.reason] += 1
        elif opinion.answer is ours:
            self.agreed += 1
        else:
            self.disagreed += 1
            if len(self.disagreements) < EXAMPLES_MAX:
                self.disagreements.append(
                    Disagreement(
                        expression=expression,
                        device=device.text,
                        ours=ours,
                        theirs=opinion.answer,
                        error=verdict.error,
                    )
                )


def answer_of(verdict: SelectorResult) -> Match:
    """Our result; texts of errors are not compared."""
    if verdict.error:
        return Match.ERROR
    return Match.MATCH if verdict.match else Match.NO_MATCH


def answer_of_outcome(outcome: cel.SelectorOutcome) -> Match:
    """Our result for a selector that was evaluated alone."""
    if outcome.error is not None:
        return Match.ERROR
    return Match.MATCH if outcome.match else Match.NO_MATCH


class SelectorHistory:
    """Collects the distinct selectors and devices of a history from its events, in order.

    Devices are distinct by the values that a selector can see. At most `kept_max` devices and as
    many expressions are kept; the others are counted.
    """

    def __init__(self, *, compiler: SelectorCompiler, with_patches: bool, kept_max: int) -> None:
        self._inventory = Inventory(compiler=compiler, with_rules=False, with_patches=with_patches)
        self._max = kept_max
        self._devices: dict[bytes, Device] = {}
        self._expressions: dict[str, None] = {}
        self._devices_beyond: set[bytes] = set()
        self._expressions_beyond: set[str] = set()

    @property
    def expressions(self) -> Sequence[str]:
        """The expressions of the selectors, in the order first seen."""
        return list(self._expressions)

    @property
    def devices(self) -> Sequence[Device]:
        """One device for each distinct set of values, in the order first seen."""
        return list(self._devices.values())

    @property
    def pairs(self) -> int:
        """The number of pairs, including those with parts that are not kept."""
        expressions = len(self._expressions) + len(self._expressions_beyond)
        return expressions * (len(self._devices) + len(self._devices_beyond))

    def take(self, event: Event) -> None:
        """Take one event of the log."""
        key = event.key
        if key.group != api_groups.RESOURCE or not event.is_about_object:
            return
        if key.resource not in _RESOURCES:
            return
        try:
            self._take(key.resource, key.name, event)
        except (InputError, TypeError, ValueError, AttributeError, msgspec.DecodeError):
            # An object that cannot be read as a slice or patch takes part in no decision either.
            return

    def _take(self, resource: str, name: str, event: Event) -> None:
        is_deleted = event.type is EventType.OBJECT_DELETED
        if resource in _CLAIMS and b'"expression"' not in event.body:
            return
        tree: JsonObject = msgspec.json.decode(event.body, type=dict)
        tree["metadata"] = {**meta.metadata(tree), "name": name}
        if not is_deleted:
            for expression in expressions_of(resource, tree):
                self._keep_expression(expression)
        inventory = self._inventory
        changes: Sequence[SliceChange] = ()
        match resource:
            case "resourceslices":
                changes = inventory.remove_slice(name) if is_deleted else inventory.put_slice(tree)
            case "deviceclasses":
                changes = inventory.remove_class(name) if is_deleted else inventory.put_class(tree)
            case "resourceslicepatches":
                changes = (
                    inventory.remove_patch(name)
                    if is_deleted
                    else inventory.put_patch(tree, revision=event.revision)
                )
        for change in changes:
            if change.new is not None:
                for device in change.new.devices:
                    self._keep_device(device)

    def _keep_expression(self, expression: str) -> None:
        if expression in self._expressions:
            return
        if len(self._expressions) < self._max:
            self._expressions[expression] = None
        else:
            self._expressions_beyond.add(expression)

    def _keep_device(self, device: Device) -> None:
        """Keep a device; if it is patched, also the values that its driver published."""
        if device.patches:
            published = replace(
                device,
                attributes=dra.attributes(device.tree),
                capacity_tree=dra.capacity(device.tree),
                patches=(),
            )
            self._keep_values(published)
        self._keep_values(device)

    def _keep_values(self, device: Device) -> None:
        values = _values_of(device)
        if values in self._devices:
            return
        if len(self._devices) < self._max:
            self._devices[values] = device
        else:
            self._devices_beyond.add(values)


_CLAIMS = frozenset(("resourceclaims", "resourceclaimtemplates"))
_RESOURCES = _CLAIMS | {"resourceslices", "resourceslicepatches", "deviceclasses"}


def expressions_of(resource: str, tree: JsonView) -> Iterator[str]:
    """The expressions of the selectors of an object."""
    match resource:
        case "deviceclasses":
            selected: Iterable[JsonView] = [meta.spec(tree)]
        case "resourceslicepatches":
            selected = [json_tree.mapping(tree, "spec", "devices", "filter")]
        case "resourceclaims":
            selected = _requests(meta.spec(tree))
        case "resourceclaimtemplates":
            selected = _requests(json_tree.mapping(tree, "spec", "spec"))
        case _:
            return
    for part in selected:
        for selector in json_tree.objects(part, "selectors"):
            if expression := dra.selector_expression(selector):
                yield expression


def _requests(spec: JsonView) -> Iterator[JsonView]:
    for request in json_tree.objects(spec, "devices", "requests"):
        yield json_tree.mapping(request, "exactly")
        yield from dra.alternatives(request)


def _values_of(device: Device) -> bytes:
    """All values that a selector can see of a device."""
    capacity = {
        name: str(json_tree.get(entry, "value")) for name, entry in device.capacity_tree.items()
    }
    return msgspec.json.encode(
        (device.id[0], device.attributes, capacity, device.allow_multiple), order="deterministic"
    )


def ask_about(second: SecondOpinion, expression: str, device: cel.DeviceInput) -> Opinion:
    """The second opinion about an expression and a device."""
    return second.ask(
        expression,
        driver=device.driver,
        attributes=device.attributes,
        capacity=device.capacity,
        allow_multiple_allocations=device.allow_multiple_allocations,
    )


async def compare(
    selectors: SelectorHistory,
    second: SecondOpinion,
    *,
    compiler: SelectorCompiler,
    bounds: OpinionBounds = OpinionBounds(),
    progress: Callable[[int, int], None],
) -> OpinionReport:
    """Evaluate the pairs with both evaluators, as many as `bounds` allow.

    The most telling pairs come first: for each expression, one device for each set of the values
    that its text names. `progress` is called with the number of pairs done and of all.
    """
    tally = OpinionTally()
    expressions, devices = selectors.expressions, selectors.devices
    count = 0
    bound = min(bounds.evaluations_max, selectors.pairs)
    ranked = [(expression, _ranked(expression, devices)) for expression in expressions]
    for rank in (0, 1):
        for expression, ranks in ranked:
            chosen = ranks[rank][: max(0, bound - count)]
            for device, verdict in _verdicts(compiler, expression, chosen):
                if verdict is None:
                    tally.unsaid[REFUSED] += 1
                elif _cost(expression, device) > bounds.cost_max:
                    tally.unsaid[TOO_DEAR] += 1
                else:
                    tally.take(
                        expression, device, verdict, ask_about(second, expression, device.cel_input)
                    )
                count += 1
                if count % TURN_MAX == 0:
                    progress(count, bound)
                    await lowlevel.checkpoint()
    progress(count, bound)
    return OpinionReport(
        by=second.name,
        expressions=len(expressions),
        devices=len(devices),
        agreed=tally.agreed,
        disagreed=tally.disagreed,
        disagreements=tuple(tally.disagreements),
        unsaid=dict(tally.unsaid),
        unasked=selectors.pairs - count,
    )


def _cost(expression: str, device: Device) -> int:
    return cel.compile_expression(expression).evaluate(device.cel_input).cost


def _ranked(
    expression: str, devices: Sequence[Device]
) -> tuple[Sequence[Device], Sequence[Device]]:
    """The devices that differ in values the expression names, and the other devices."""
    seen: set[bytes] = set()
    first: list[Device] = []
    others: list[Device] = []
    for device in devices:
        named = [
            {key: value for key, value in tree.items() if key.rpartition("/")[2] in expression}
            for tree in (device.attributes, device.capacity_tree)
        ]
        form = msgspec.json.encode((device.id[0], device.allow_multiple, named))
        (others if form in seen else first).append(device)
        seen.add(form)
    return first, others


def _verdicts(
    compiler: SelectorCompiler, expression: str, devices: Sequence[Device]
) -> Iterator[tuple[Device, SelectorResult | None]]:
    """Each device with our result; None for an expression that does not compile."""
    if not devices:
        return
    try:
        verdicts: Sequence[SelectorResult | None] = compiler.compile(expression).judge(devices)
    except SelectorCompileError:
        verdicts = [None] * len(devices)
    yield from zip(devices, verdicts, strict=True)
