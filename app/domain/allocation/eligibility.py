"""The devices that a request may take, independent of the search and of other claims.

Parity: allocator.md 5.1 and 9. Selectors are evaluated for all devices of a view at once. An error
on a device is kept as a *fault* until the search looks at the device, because upstream ends the
attempt only then.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from app.domain.allocation.requests import Selectors
from app.domain.devices import taints
from app.domain.devices.device_selectors import KeyOf, SelectorCompileError, SelectorCompiler
from app.domain.devices.model import Toleration
from app.domain.devices.node_views import NodeView
from app.domain.devices.nodes import NodeSelectionError
from app.domain.values.bounded import Bounded

MEMORY_MAX = 512
"""The most answers cached per view; beyond it, the oldest is dropped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """An error that ends the attempt when the search looks at the device.

    `of_class` is true for a selector of the class, false for one of the request; `number` is its
    index and `detail` the error. For a node selector that cannot be parsed `number` is -1 and
    `detail` the whole text.
    """

    of_class: bool
    number: int
    on_device: str
    detail: str

    def text(self, class_name: str, claim: str) -> str:
        """Upstream's text of the error."""
        if self.number < 0:
            return self.detail
        owner = f"class {class_name}" if self.of_class else f"claim {claim}"
        device = f" on device {self.on_device}" if self.on_device else ""
        return f"{owner}: selector #{self.number}{device}: {self.detail}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Exclusion:
    """The first selector or rule that excluded a device, for explanations.

    `expression` is empty when it was not a selector; then `binding` is true for binding conditions
    that are switched off, and false for a device of other nodes.
    """

    reason: str
    binding: bool = False
    expression: str = ""
    of_class: bool = False
    number: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectedDevices:
    """The devices of a view under one list of selectors.

    `matching` has bit i set when device i is selectable; `faults` are the errors on devices;
    `refused` has the reason for all other devices.
    """

    matching: int
    faults: dict[int, Fault]
    refused: dict[int, Exclusion]


class _Answers:
    """The cached answers of a view: devices under selectors, and devices not tolerated.

    `keys` has what selectors read from the devices, all of which are plain.
    """

    __slots__ = ("keys", "selections", "tainted")

    def __init__(self) -> None:
        self.keys: Bounded[KeyOf, tuple[Hashable, ...]] = Bounded(MEMORY_MAX)
        self.selections: Bounded[object, SelectedDevices] = Bounded(MEMORY_MAX)
        self.tainted: Bounded[object, int] = Bounded(MEMORY_MAX)


def select(
    view: NodeView, selectors: Selectors, compiler: SelectorCompiler, *, binding_conditions: bool
) -> SelectedDevices:
    """The selectable devices of a view, cached with the view."""
    known = view.part(_Answers).selections
    key = (compiler, selectors.of_class, selectors.own, binding_conditions)
    selection = known.get(key)
    if selection is None:
        selection = known[key] = _select(view, selectors, compiler, binding_conditions)
    return selection


def tainted(view: NodeView, tolerations: Sequence[Toleration]) -> int:
    """The devices, as bits, with a blocking taint that none of the tolerations matches."""
    known = view.part(_Answers).tainted
    key = tuple(
        (toleration.key, toleration.operator, toleration.value, toleration.effect)
        for toleration in tolerations
    )
    mask = known.get(key)
    if mask is None:
        mask = 0
        last, is_tainted = None, False
        for index, device in enumerate(view.devices if view.traits.taints else ()):
            # Devices of a kind share their taints and mostly follow each other.
            if device.taints is not last:
                last = device.taints
                is_tainted = taints.untolerated(last, tolerations) is not None
            if is_tainted:
                mask |= 1 << index
        known[key] = mask
    return mask


def published_keys(view: NodeView, key_of: KeyOf) -> tuple[Hashable, ...]:
    """The values that a selector reads from each plain device of a view, cached with the view."""
    known = view.part(_Answers).keys
    keys = known.get(key_of)
    if keys is None:
        keys = known[key_of] = tuple([key_of(device) for device in view.devices])
    return keys


def _select(
    view: NodeView, selectors: Selectors, compiler: SelectorCompiler, binding_conditions: bool
) -> SelectedDevices:
    devices = view.devices
    faults: dict[int, Fault] = {}
    refused: dict[int, Exclusion] = {}
    alive = list(range(len(devices)))
    if not binding_conditions and view.traits.binding:
        bound = Exclusion(reason="binding conditions are not enabled", binding=True)
        refused = {index: bound for index in alive if devices[index].binding_conditions}
        alive = [index for index in alive if index not in refused]
    for of_class, expressions in ((True, selectors.of_class), (False, selectors.own)):
        for number, expression in enumerate(expressions):
            alive = _apply(view, alive, expression, compiler, (of_class, number), faults, refused)
    if any(resource_slice.per_device for pool in view.usable for resource_slice in pool.slices):
        alive = _for_node(view, alive, faults, refused)
    matching = (1 << len(devices)) - 1 if len(alive) == len(devices) else 0
    if not matching:
        for index in alive:
            matching |= 1 << index
    return SelectedDevices(matching=matching, faults=faults, refused=refused)


def _for_node(
    view: NodeView, alive: list[int], faults: dict[int, Fault], refused: dict[int, Exclusion]
) -> list[int]:
    """The devices that are for the node; the others are added to faults or refused."""
    left = []
    for index in alive:
        if view.slices[index].per_device:
            try:
                if not view.devices[index].node.matches(view.node):
                    refused[index] = Exclusion(reason="the device is for other nodes")
                    continue
            except NodeSelectionError as problem:
                faults[index] = Fault(of_class=False, number=-1, on_device="", detail=str(problem))
                continue
        left.append(index)
    return left


def _apply(
    view: NodeView,
    alive: list[int],
    expression: str,
    compiler: SelectorCompiler,
    place: tuple[bool, int],
    faults: dict[int, Fault],
    refused: dict[int, Exclusion],
) -> list[int]:
    """The devices that one selector matches; the others are added to faults or refused."""
    if not alive:
        return alive
    of_class, number = place
    try:
        selector = compiler.compile(expression)
    except SelectorCompileError as problem:
        fault = Fault(
            of_class=of_class,
            number=number,
            on_device="",
            detail=f"CEL compile error: {problem}",
        )
        faults.update(dict.fromkeys(alive, fault))
        return []
    left: list[int] = []
    refusal = Exclusion(
        reason="the selector is false", expression=expression, of_class=of_class, number=number
    )
    if view.is_uniform:
        common = selector.judge_like(view.devices[alive[0]])
        if common is not None and not common.error:
            if common.match:
                return alive
            refused.update(dict.fromkeys(alive, refusal))
            return left
    key_of = selector.published_key
    published = None if key_of is None else view.part(_Answers).keys.get(key_of)
    verdicts = selector.judge(
        [view.devices[index] for index in alive],
        None if published is None else [published[index] for index in alive],
    )
    for index, verdict in zip(alive, verdicts, strict=True):
        if verdict.error:
            faults[index] = Fault(
                of_class=of_class,
                number=number,
                on_device=view.devices[index].text if verdict.names_device else "",
                detail=f"CEL runtime error: {verdict.error}",
            )
        elif verdict.match:
            left.append(index)
        else:
            refused[index] = refusal
    return left
