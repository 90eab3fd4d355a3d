"""Measures the speed of the allocator: `python -m bench.allocation [--with-pruning-only]`.

Two tables, in CPU time, the best of some runs each. *Ordinary* shapes are timed four ways: the
first pod of all (slices compiled, nodes never seen, selectors not compiled), the same after other
memory was read (*cold*: the processor's caches hold nothing of the allocator), a pod on nodes that
were seen but whose allocations changed, and a pod whose like was answered before. *Hard* shapes are
those in which exhaustive search explodes; they are run without the proven shortcuts too, up to a
bound of steps. *Turns* are CPU time divided by that of one turn of a plain loop, for comparisons.
"""

import argparse
import gc
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from app.domain.allocation import AllocatedState, Allocation, Allocator, Answer, Bounds, Features
from app.domain.allocation.reasons.explanation import event_reason
from app.domain.devices import nodes
from app.domain.devices.cel_selectors import CelCompiler
from app.domain.devices.inventory import Inventory
from app.domain.values.json_tree import JsonObject
from bench import figures
from bench.cpu import turn_seconds

DRIVER = "gpu.example.com"
CLASSES: dict[str, JsonObject] = {
    "gpu": {
        "metadata": {"name": "gpu"},
        "spec": {"selectors": [{"cel": {"expression": f'device.driver == "{DRIVER}"'}}]},
    }
}
FEATURES = Features.of_profile("1.37")
RUNS = 5
STEPS_MAX = 300_000
"""Where runs without pruning are stopped."""

MATCH = [{"requests": [], "matchAttribute": f"{DRIVER}/numa"}]

FILLING = 200
"""Pods that are placed one after the other where 100 nodes are filled."""

OTHER_MEMORY = 64 << 20
"""Bytes that are read to empty the processor's caches: twice the last one of a large processor."""

FIGURES = {
    "100 nodes x 10 devices": {
        "first pod": "allocation.first_pod.100_nodes",
        "new state": "allocation.new_state.100_nodes",
    },
    "128 devices, 8 that match, first group": {
        "first pod": "allocation.match.first_group",
        "cold": "allocation.match.first_group.cold",
    },
}
"""The figures of a shape, by column."""


@dataclass(frozen=True, kw_only=True)
class Shape:
    """A pod on some nodes."""

    name: str
    slices: list[JsonObject]
    claims: list[JsonObject]
    nodes: int = 1


def device(name: str, *, counters: JsonObject | None = None, **attributes: object) -> JsonObject:
    """A device; attributes are numbers or texts."""
    kinds = {int: "int", str: "string"}
    made: JsonObject = {
        "name": name,
        "attributes": {key: {kinds[type(value)]: value} for key, value in attributes.items()},
    }
    if counters:
        made["consumesCounters"] = [
            {"counterSet": name_, "counters": {c: {"value": str(v)} for c, v in amounts.items()}}
            for name_, amounts in counters.items()
        ]
    return made


def pool(
    number: int, devices: list[JsonObject], sets: JsonObject | None = None
) -> list[JsonObject]:
    """The slices of one node's pool."""
    name = f"node-{number}"
    count = 2 if sets else 1
    spec = {
        "driver": DRIVER,
        "nodeName": name,
        "pool": {"name": name, "generation": 1, "resourceSliceCount": count},
    }
    made = [{"metadata": {"name": name}, "spec": {**spec, "devices": devices}}]
    if sets:
        shared = [
            {"name": name_, "counters": {c: {"value": str(v)} for c, v in amounts.items()}}
            for name_, amounts in sets.items()
        ]
        made.append({"metadata": {"name": f"{name}-c"}, "spec": {**spec, "sharedCounters": shared}})
    return made


def wish(count: int, *expressions: str) -> JsonObject:
    """The fields of a request or alternative."""
    return {
        "deviceClassName": "gpu",
        "allocationMode": "ExactCount",
        "count": count,
        "selectors": [{"cel": {"expression": found}} for found in expressions],
    }


def request(name: str, count: int = 1, *expressions: str) -> JsonObject:
    """An exact request."""
    return {"name": name, "exactly": wish(count, *expressions)}


def claim(*requests: JsonObject, constraints: list[JsonObject] | None = None) -> JsonObject:
    """A claim."""
    devices: JsonObject = {"requests": list(requests)}
    if constraints:
        devices["constraints"] = constraints
    return {"metadata": {"name": "claim", "namespace": "bench"}, "spec": {"devices": devices}}


def alternatives(name: str, counts: Sequence[int]) -> JsonObject:
    """A prioritized list."""
    return {
        "name": name,
        "firstAvailable": [{"name": f"a{i}", **wish(count)} for i, count in enumerate(counts)],
    }


def plain(count: int) -> list[JsonObject]:
    """Devices that differ in their uuid alone."""
    return [device(f"d{i}", uuid=f"u{i}", index=i) for i in range(count)]


def migs(gpus: int) -> tuple[list[JsonObject], JsonObject]:
    """GPUs of forty overlapping partitions each."""
    devices = [
        device(
            f"g{gpu}-{part}",
            counters={f"g{gpu}": {"memory": 10 * (1 + part % 4), f"slice-{part % 8}": 1}},
            gpu=gpu,
            profile=f"p{part % 5}",
        )
        for gpu in range(gpus)
        for part in range(40)
    ]
    slots = {f"slice-{i}": 1 for i in range(8)}
    return devices, {f"g{gpu}": {"memory": 80, **slots} for gpu in range(gpus)}


def cards(count: int) -> tuple[list[JsonObject], JsonObject]:
    """Cards of seven slots with overlapping partitions: the whole card, two parts, each slot."""
    parts = [range(7), range(4), range(4, 7), *((slot,) for slot in range(7))]
    devices = [
        device(
            f"c{card}-{number}",
            counters={f"c{card}": {"memory": len(part), **{f"slot-{slot}": 1 for slot in part}}},
        )
        for card in range(count)
        for number, part in enumerate(parts)
    ]
    slots = {f"slot-{slot}": 1 for slot in range(7)}
    return devices, {f"c{card}": {"memory": 7, **slots} for card in range(count)}


def ordinary() -> list[Shape]:
    """Shapes of every day; the Go library's times are in the design."""
    last = [device(f"d{i}", numa=min(i // 7, 15), index=i) for i in range(113)]
    profile = f'device.attributes["{DRIVER}"].profile == "p3"'
    hundred = [found for i in range(100) for found in pool(i, plain(10))]
    return [
        Shape(
            name="100 nodes x 10 devices", slices=hundred, claims=[claim(request("r"))], nodes=100
        ),
        Shape(
            name="113 devices, 8 that match, last group",
            slices=pool(0, last),
            claims=[claim(request("r", 8), constraints=MATCH)],
        ),
        Shape(
            name="128 devices, 8 that match, first group",
            slices=pool(0, [device(f"d{i}", numa=i // 8, index=i) for i in range(128)]),
            claims=[claim(request("r", 8), constraints=MATCH)],
        ),
        Shape(
            name="MIG node, 320 partitions",
            slices=pool(0, *migs(8)),
            claims=[claim(request("r", 1, profile))],
        ),
        Shape(
            name="3 requests x 8 alternatives x 100 nodes",
            slices=hundred,
            claims=[claim(*(alternatives(f"r{i}", [11] * 7 + [3]) for i in range(3)))],
            nodes=100,
        ),
    ]


def hard() -> list[Shape]:
    """Shapes in which exhaustive search takes more than 20 seconds, and relatives of them."""
    groups = [device(f"d{i}", numa=i // 8, index=i % 8) for i in range(128)]
    counted = [device(f"d{i}", counters={"c": {"x": 1}}, index=i) for i in range(24)]
    index = f'device.attributes["{DRIVER}"].index'
    return [
        Shape(
            name="11 requests on 10 devices",
            slices=pool(0, plain(10)),
            claims=[claim(*(request(f"r{i}") for i in range(11)))],
        ),
        Shape(
            name="3 requests of 10 on 20",
            slices=pool(0, plain(20)),
            claims=[claim(*(request(f"r{i}", 10) for i in range(3)))],
        ),
        Shape(
            name="8 that match, groups of 8, one unfit",
            slices=pool(0, groups),
            claims=[
                claim(*(request(f"r{i}", 1, f"{index} > 0") for i in range(8)), constraints=MATCH)
            ],
        ),
        Shape(
            name="two of 4 on 24, a counter short",
            slices=pool(0, counted, {"c": {"x": 7}}),
            claims=[claim(request("a", 4), request("b", 4))],
        ),
        Shape(
            name="7 alternatives of 17 over 16",
            slices=pool(0, plain(16)),
            claims=[claim(alternatives("r", [17] * 7))],
        ),
        Shape(
            name="11 claims, each barring one of 10",
            slices=pool(0, plain(10)),
            claims=[claim(request("r", 1, f"{index} != {i}")) for i in range(11)],
        ),
        Shape(
            name="4 that match, memory for 3, leaks",
            slices=pool(
                0,
                [
                    device(f"g{g}p{p}", counters={f"g{g}": {"m": 10, f"s{p}": 1}}, numa=g)
                    for g in range(8)
                    for p in range(7)
                ],
                {f"g{g}": {"m": 30, **{f"s{p}": 1 for p in range(7)}} for g in range(8)},
            ),
            claims=[claim(*(request(f"r{i}") for i in range(4)), constraints=MATCH)],
        ),
        Shape(
            name="29 partitions of 4 cards of 7 slots",
            slices=pool(0, *cards(4)),
            claims=[claim(request("r", 29))],
        ),
    ]


@dataclass(frozen=True, kw_only=True)
class Run:
    """The CPU seconds for a pod, and the answers."""

    seconds: float
    answers: list[Answer]

    @property
    def steps(self) -> int:
        """Search steps over all nodes."""
        return sum(answer.steps for answer in self.answers)


def ask(shape: Shape, inventory: Inventory, state: AllocatedState, how: dict[str, object]) -> Run:
    """One pod over all nodes of the shape."""
    here = [nodes.node_of({"metadata": {"name": f"node-{i}"}}) for i in range(shape.nodes)]
    start = time.process_time()
    allocator = Allocator(inventory, CLASSES, state, FEATURES, **how)  # type: ignore[arg-type]  # rows of options
    answers = [allocator.allocate(found, shape.claims) for found in here]
    return Run(seconds=time.process_time() - start, answers=answers)


def best(
    shape: Shape,
    inventory: Inventory,
    how: dict[str, object],
    state_of: Callable[[], AllocatedState],
) -> Run:
    """The fastest of some runs."""
    runs = [ask(shape, inventory, state_of(), how) for _ in range(RUNS)]
    return min(runs, key=lambda found: found.seconds)


def _always(state: AllocatedState) -> Callable[[], AllocatedState]:
    return lambda: state


def first_pod(shape: Shape, other_memory: bytes = b"") -> Run:
    """The fastest of some runs with nothing known but the slices.

    All inventories are made before, and no garbage is looked for in between: a look reads all
    objects of the process, which empties the processor's caches. `other_memory` is read before each
    run to empty them on purpose.
    """
    inventories = [Inventory.of_slices(shape.slices) for _ in range(RUNS)]
    runs = []
    gc.collect()
    gc.disable()
    try:
        for inventory in inventories:
            other_memory.count(1)
            runs.append(
                ask(
                    shape,
                    inventory,
                    AllocatedState(),
                    {"compiler": CelCompiler(detailed_errors=True)},
                )
            )
    finally:
        gc.enable()
    return min(runs, key=lambda found: found.seconds)


def measure_ordinary() -> None:
    """Print the table of ordinary shapes."""
    turn = turn_seconds()
    print(f"one turn of a plain loop: {turn * 1e9:.0f} ns CPU")
    other_memory = bytes(OTHER_MEMORY)
    columns = "".join(f"{name:>12}" for name in ("first pod", "cold", "new state", "like before"))
    print(f"{'ordinary':42}{columns}{'steps':>8}{'first, turns':>14}")
    for shape in ordinary():
        how: dict[str, object] = {"compiler": CelCompiler(detailed_errors=True)}
        first = first_pod(shape)
        cold = first_pod(shape, other_memory)
        inventory = Inventory.of_slices(shape.slices)
        fresh = best(shape, inventory, how, AllocatedState)
        state = AllocatedState()
        ask(shape, inventory, state, how)
        again = best(shape, inventory, how, _always(state))
        assert all(isinstance(answer, Allocation) for answer in again.answers), shape.name
        columns_of = {"first pod": first, "cold": cold, "new state": fresh, "like before": again}
        for column, figure in FIGURES.get(shape.name, {}).items():
            figures.note(figure, columns_of[column].seconds * 1000)
        times = "".join(f"{run.seconds * 1000:>9.2f} ms" for run in columns_of.values())
        print(f"{shape.name:42}{times}{fresh.steps:>8}{first.seconds / turn:>14,.0f}")


def fill() -> float:
    """CPU seconds to place pods of one device each; each tries all nodes and takes the first one.

    The first node that fits is the same for ten pods, so most nodes have not changed since the pod
    before, as in a cluster that fills up.
    """
    slices = [part for i in range(100) for part in pool(i, plain(10))]
    here = [nodes.node_of({"metadata": {"name": f"node-{i}"}}) for i in range(100)]
    inventory, state, compiler = (
        Inventory.of_slices(slices),
        AllocatedState(),
        CelCompiler(detailed_errors=True),
    )
    started = time.process_time()
    for number in range(FILLING):
        wanted = claim(request("r"))
        wanted["metadata"] = {"name": f"claim-{number}", "namespace": "bench"}
        allocator = Allocator(inventory, CLASSES, state, FEATURES, compiler=compiler)
        answers = [allocator.allocate(node, [wanted]) for node in here]
        chosen = next(answer for answer in answers if isinstance(answer, Allocation))
        allocation = chosen.allocation_results(lambda: "")[0]
        state.add_claim({**wanted, "status": {"allocation": allocation}})
    return time.process_time() - started


def measure_fill() -> None:
    """Prints the cost of filling a cluster."""
    seconds = min(fill() for _ in range(RUNS))
    print(f"{FILLING} pods fill 100 nodes x 10 devices: {seconds * 1000:.0f} ms CPU")
    figures.note("allocation.fill.100_nodes", seconds * 1000)


def measure_hard(*, without_pruning: bool) -> None:
    """Print the table of hard shapes."""
    print(f"{'hard':42}{'pruned':>12}{'steps':>8}" + ("   without pruning" * without_pruning))
    for shape in hard():
        how: dict[str, object] = {"compiler": CelCompiler(detailed_errors=True)}
        inventory = Inventory.of_slices(shape.slices)
        run = best(shape, inventory, how, AllocatedState)
        assert all(event_reason(answer) for answer in run.answers), shape.name
        line = f"{shape.name:42}{run.seconds * 1000:>9.2f} ms{run.steps:>8}"
        if without_pruning:
            bounded = {**how, "prune": False, "bounds": Bounds(steps_max=STEPS_MAX)}
            plain_run = ask(shape, inventory, AllocatedState(), bounded)
            more = "> " if plain_run.steps >= STEPS_MAX else ""
            line += f"{more + format(plain_run.seconds * 1000, '.0f'):>12} ms{plain_run.steps:>8}"
        print(line)


def main(arguments: Sequence[str] = ()) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="bench.allocation", description=__doc__)
    parser.add_argument("--with-pruning-only", action="store_true")
    options = parser.parse_args(arguments)
    measure_ordinary()
    measure_fill()
    print()
    measure_hard(without_pruning=not options.with_pruning_only)


if __name__ == "__main__":
    main(sys.argv[1:])
