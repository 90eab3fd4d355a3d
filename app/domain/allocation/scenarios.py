"""A scenario in the form of the conformance data: `{"name", "input"}` in, answers out.

Either the claims of `input` are allocated together on each node independently, or its pods are
scheduled one after the other, each on the first node where it fits. The caller supplies the timer;
without one, the answers contain no times.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count

from app.domain.allocation.allocator import (
    Allocation,
    Allocator,
    Answer,
    Bounds,
    DoesNotFit,
    Failure,
    FailureScope,
)
from app.domain.allocation.checking import Case
from app.domain.allocation.features import AllocatorVariant, Features
from app.domain.allocation.quirks import MARKS, NUMBERS, UPSTREAM, Quirks
from app.domain.allocation.selections import Selections
from app.domain.allocation.state import AllocatedState
from app.domain.devices.device_selectors import SelectorCompiler
from app.domain.devices.inventory import Inventory
from app.domain.errors import InputError
from app.domain.values import json_tree
from app.domain.values.fields import dra
from app.domain.values.json_tree import JsonObject, JsonView

DEVICES_MAX = 200_000
DEVICES_PER_SLICE_MAX = 4_096
EXPRESSION_MAX = 100_000
NODES_MAX = 20_000
PODS_MAX = 100_000

OnAnswer = Callable[[Case, Answer, JsonObject], None]
"""Called with each case in the checker's form, the answer, and its output, which it may extend."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioSettings:
    """The settings of a run. `timer` gives seconds; `variant` None means chosen by the gates."""

    compiler: SelectorCompiler
    quirks: Quirks = UPSTREAM
    variant: AllocatorVariant | None = AllocatorVariant.EXPERIMENTAL
    bounds: Bounds = Bounds()
    prune: bool = True
    timer: Callable[[], float] | None = None
    on_answer: OnAnswer | None = None


@dataclass(slots=True, kw_only=True, eq=False)
class _World:
    """The scenario's cluster, compiled; `given` and `held` are its objects as given."""

    given: JsonView
    held: list[JsonObject]
    selects: Selections
    features: Features
    nodes: Sequence[JsonObject]
    classes: Mapping[str, JsonObject]
    inventory: Inventory
    state: AllocatedState
    settings: ScenarioSettings
    share_ids: Iterator[str]
    steps: int = 0
    seconds: float = 0.0

    def allocator(self) -> Allocator:
        """The allocator of one scheduling attempt."""
        return Allocator(
            self.inventory,
            self.classes,
            self.state,
            self.features,
            compiler=self.settings.compiler,
            quirks=self.settings.quirks,
            variant=self.settings.variant,
            bounds=self.settings.bounds,
            prune=self.settings.prune,
        )

    def hold(self, claim: JsonObject) -> None:
        """Adds an allocated claim, for the pods that follow."""
        self.held.append(claim)
        self.state.add_claim(claim)

    def case(
        self, node: JsonObject, claims: Sequence[JsonObject], variant: AllocatorVariant
    ) -> Case:
        """The case in the checker's form, to verify an answer for the node."""
        return Case(
            node=node,
            claims=claims,
            classes=self.classes,
            slices=json_tree.objects(self.given, "slices"),
            rules=json_tree.objects(self.given, "deviceTaintRules"),
            held=tuple(self.held),
            gates=json_tree.mapping(self.given, "features"),
            variant=variant.value,
            quirks=frozenset(NUMBERS) - frozenset(self.settings.quirks.repaired()),
            selects=self.selects,
        )


def run(scenario: JsonView, settings: ScenarioSettings) -> JsonObject:
    """The answers to one scenario.

    `steps` counts search steps over all nodes, `elapsedMs` the time spent allocating. Raises
    InputError naming the path of the first field that cannot be used.
    """
    world_input = _object(scenario.get("input"), "input")
    world = _world(world_input, settings)
    output: JsonObject = {"name": scenario.get("name", "")}
    if world_input.get("pods") is not None:
        pods = _objects(world_input, "pods", "input", PODS_MAX)
        output["pods"] = [
            _pod(world, pod, f"input.pods[{index}]") for index, pod in enumerate(pods)
        ]
    else:
        claims = _claims(world_input, "input")
        output["results"] = _on_every_node(world, claims)
    if settings.timer is not None:
        output["elapsedMs"] = round(world.seconds * 1000, 3)
    output["steps"] = world.steps
    return output


def of_table_case(case: JsonView, place: str) -> JsonObject:
    """The scenario of one case of upstream's test table. Raises InputError.

    The allocated state becomes a claim; the summed capacity of a device is that of its first share.
    """
    where = f"{place}.allocatedState"
    state = _object(case.get("allocatedState") or {}, where)
    sums = {
        _device_of(each): each for each in _objects(state, "aggregatedCapacity", where, DEVICES_MAX)
    }
    shares = [
        {**each, "consumedCapacity": {}, **sums.pop(_device_of(each), {})}
        for each in _objects(state, "sharedDevices", where, DEVICES_MAX)
    ]
    shares += [{**each, "shareID": "sum"} for each in sums.values()]
    results = [*_objects(state, "devices", where, DEVICES_MAX), *shares]
    held = {
        "metadata": {"name": "allocated", "namespace": "allocated", "uid": "allocated"},
        "status": {"allocation": {"devices": {"results": results}}},
    }
    parts = {name: case.get(name) or [] for name in ("claims", "classes", "slices")}
    node = _object(case.get("node"), f"{place}.node")
    world_input = {
        **parts,
        "features": case.get("features") or {},
        "nodes": [node],
        "allocatedClaims": [held] if results else [],
    }
    return {"name": case.get("name", ""), "input": world_input}


def _device_of(result: JsonView) -> tuple[object, ...]:
    return tuple(result.get(name) for name in ("driver", "pool", "device"))


def marks_that_matter(scenario: JsonView, settings: ScenarioSettings) -> list[str]:
    """The defects of upstream that the answers depend on, by mark, sorted.

    Each defect is repaired alone and the scenario is run again; steps and times are not compared.
    """
    quiet = replace(settings, timer=None, on_answer=None)
    usual = _comparable(run(scenario, quiet))
    marks = []
    for mark in sorted(MARKS):
        repaired = run(scenario, replace(quiet, quirks=settings.quirks.without(mark)))
        if _comparable(repaired) != usual:
            marks.append(mark)
    return marks


def _comparable(output: JsonObject) -> JsonObject:
    return {field: value for field, value in output.items() if field != "steps"}


def _on_every_node(world: _World, claims: Sequence[JsonObject]) -> list[JsonObject]:
    allocator = world.allocator()
    results = []
    for node in world.nodes:
        _, shown = _ask(world, allocator, node, claims)
        results.append(shown)
    return results


def _pod(world: _World, pod: JsonObject, place: str) -> JsonObject:
    """Tries all nodes in order; the pod gets the first that fits and counts for later pods.

    A fatal error on any node ends the attempt: the pod gets no node, even if an earlier one fits.
    """
    claims = _claims(pod, place)
    allocator = world.allocator()
    shown: JsonObject = {"pod": pod.get("name", "")}
    results: list[JsonObject] = []
    chosen: JsonObject | None = None
    for node in world.nodes:
        answer, placed = _ask(world, allocator, node, claims)
        results.append(placed)
        if isinstance(answer, Allocation) and chosen is None:
            chosen = placed
        if isinstance(answer, Failure) and answer.scope is FailureScope.FATAL:
            chosen = None
            break
    if chosen is not None:
        shown["node"] = chosen["node"]
        for claim, allocation in zip(claims, chosen["allocations"], strict=True):
            world.hold({**claim, "status": {"allocation": allocation}})
    shown["results"] = results
    return shown


def _ask(
    world: _World, allocator: Allocator, node: JsonObject, claims: Sequence[JsonObject]
) -> tuple[Answer, JsonObject]:
    timer = world.settings.timer
    start = timer() if timer is not None else 0.0
    answer = allocator.allocate(node, claims)
    allocations: list[JsonObject] | None = None
    if isinstance(answer, Allocation):
        allocations = answer.allocation_results(lambda: next(world.share_ids))
    if timer is not None:
        world.seconds += timer() - start
    world.steps += answer.steps
    shown: JsonObject = {"node": answer.node.name, "allocations": allocations}
    match answer:
        case Failure():
            shown["error"] = answer.text
            shown["errorScope"] = answer.scope.value
        case Allocation() | DoesNotFit():
            pass
    if world.settings.on_answer is not None:
        world.settings.on_answer(world.case(node, claims, allocator.variant), answer, shown)
    return answer, shown


def _world(world_input: JsonView, settings: ScenarioSettings) -> _World:
    gates = _object(world_input.get("features", {}) or {}, "input.features")
    for name, value in gates.items():
        if not isinstance(value, bool):
            raise InputError("must be true or false", place=f"input.features.{name}")
    features = Features.of_gates(gates)
    classes = {
        _name(tree, f"input.classes[{index}]"): tree
        for index, tree in enumerate(_objects(world_input, "classes", "input", DEVICES_MAX))
    }
    for name, tree in classes.items():
        _check_selectors(_object(tree.get("spec") or {}, "spec"), f"input.classes[{name}].spec")
    inventory = Inventory(rules_without_selector_match=settings.quirks.q14)
    slices = _objects(world_input, "slices", "input", DEVICES_MAX)
    devices = 0
    for index, tree in enumerate(slices):
        place = f"input.slices[{index}]"
        devices += _check_slice(tree, place)
        if devices > DEVICES_MAX:
            raise InputError(f"more than {DEVICES_MAX} devices in all", place=place)
        try:
            inventory.put_slice(tree, key=f"{index:08d}")
        except InputError as problem:
            raise InputError(problem.problem, place=f"{place}: {problem.place}") from problem
    if features.device_taints:
        for rule in _objects(world_input, "deviceTaintRules", "input", DEVICES_MAX):
            inventory.put_rule(rule)
    held = _objects(world_input, "allocatedClaims", "input", DEVICES_MAX)
    return _World(
        given=world_input,
        held=list(held),
        selects=Selections(),
        features=features,
        nodes=_objects(world_input, "nodes", "input", NODES_MAX),
        classes=classes,
        inventory=inventory,
        state=AllocatedState.of_claims(
            held,
            consumable_capacity=features.consumable_capacity,
        ),
        settings=settings,
        share_ids=(f"share-{number}" for number in count(1)),
    )


def _check_slice(tree: JsonObject, place: str) -> int:
    """Checks the shape of a slice and returns its number of devices."""
    spec = _object(tree.get("spec"), f"{place}.spec")
    _object(spec.get("pool"), f"{place}.spec.pool")
    devices = _objects(spec, "devices", f"{place}.spec", DEVICES_PER_SLICE_MAX)
    for index, device in enumerate(devices):
        inside = f"{place}.spec.devices[{index}]"
        _name_field(device, inside)
        for field in ("attributes", "capacity"):
            for name, value in _object(device.get(field) or {}, f"{inside}.{field}").items():
                _object(value, f"{inside}.{field}[{name}]")
        _objects(device, "consumesCounters", inside, DEVICES_MAX)
        _objects(device, "taints", inside, DEVICES_MAX)
    _objects(spec, "sharedCounters", f"{place}.spec", DEVICES_MAX)
    return len(devices)


def _claims(world_input: JsonView, place: str) -> list[JsonObject]:
    claims = _objects(world_input, "claims", place, DEVICES_MAX)
    for index, claim in enumerate(claims):
        inside = f"{place}.claims[{index}]"
        _name(claim, inside)
        spec = _object(claim.get("spec") or {}, f"{inside}.spec")
        devices = _object(spec.get("devices") or {}, f"{inside}.spec.devices")
        for number, request in enumerate(
            _objects(devices, "requests", f"{inside}.spec.devices", DEVICES_MAX)
        ):
            at = f"{inside}.spec.devices.requests[{number}]"
            _name_field(request, at)
            exactly = request.get("exactly")
            alternatives = _objects(request, "firstAvailable", at, DEVICES_MAX)
            if exactly is None and not alternatives:
                raise InputError("needs either exactly or firstAvailable", place=at)
            for wish in ([_object(exactly, f"{at}.exactly")] if exactly else []) + alternatives:
                _check_selectors(wish, at)
                wanted = wish.get("count")
                if wanted is not None and (isinstance(wanted, bool) or not isinstance(wanted, int)):
                    raise InputError("must be an integer", place=f"{at}.count")
        _objects(devices, "constraints", f"{inside}.spec.devices", DEVICES_MAX)
        _objects(devices, "config", f"{inside}.spec.devices", DEVICES_MAX)
    return claims


def _check_selectors(tree: JsonView, place: str) -> None:
    for index, selector in enumerate(_objects(tree, "selectors", place, DEVICES_MAX)):
        expression = dra.selector_expression(selector)
        if len(expression) > EXPRESSION_MAX:
            raise InputError(
                f"the expression has more than {EXPRESSION_MAX} characters",
                place=f"{place}.selectors[{index}].cel.expression",
            )


def _object(value: object, place: str) -> JsonView:
    if not isinstance(value, Mapping):
        raise InputError(f"must be an object, not {_kind(value)}", place=place)
    return value


def _objects(tree: JsonView, field: str, place: str, most: int) -> list[JsonObject]:
    items = tree.get(field)
    if items is None:
        return []
    path = f"{place}.{field}"
    if not isinstance(items, list):
        raise InputError(f"must be a list, not {_kind(items)}", place=path)
    if len(items) > most:
        raise InputError(f"has {len(items)} entries; at most {most} are accepted", place=path)
    for index, item in enumerate(items):
        _object(item, f"{path}[{index}]")
    return items


def _name(tree: JsonView, place: str) -> str:
    metadata = _object(tree.get("metadata"), f"{place}.metadata")
    return _name_field(metadata, f"{place}.metadata")


def _name_field(tree: JsonView, place: str) -> str:
    name = tree.get("name")
    if not isinstance(name, str):
        raise InputError(f"must be text, not {_kind(name)}", place=f"{place}.name")
    return name


def _kind(value: object) -> str:
    match value:
        case None:
            return "missing"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return "text"
        case list():
            return "a list"
    return "an object"
