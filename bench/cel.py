"""Measures the speed of device selectors: `python -m bench.cel`.

Per expression, in CPU time: compiling it; one evaluation by closures; a mask over 128 devices of
which each value occurs several times, when the devices are first asked, when they were grouped by
what the expression reads for another one, and when all of them differ. As a ratio: one evaluation
by cel-python, on values made for it beforehand. cel-python lacks optional chaining, quantities and
versions; there the column is empty.
"""

import itertools
import time
from collections.abc import Callable
from functools import partial

import celpy
from celpy.adapter import json_to_cel

from app.domain import cel
from app.domain.values.json_tree import JsonObject
from bench.cpu import turn_seconds

DOMAIN = "gpu.example.com"
DEVICES = 128
VALUES = 8
"""Distinct values of an attribute among the devices."""

SECONDS = 0.15
"""CPU time spent on each figure, at least; the best of RUNS is kept."""

RUNS = 3
ROWS = (
    ("driver", f'device.driver == "{DOMAIN}"', True),
    ("attribute", f'device.attributes["{DOMAIN}"].numa == 3', True),
    (
        "three attributes",
        f'device.attributes["{DOMAIN}"].numa < 4 && device.attributes["{DOMAIN}"].model == "h100"'
        f' && device.attributes["{DOMAIN}"].healthy',
        True,
    ),
    (
        "prefix and list",
        f'device.attributes["{DOMAIN}"].model.startsWith("h")'
        f' && device.attributes["{DOMAIN}"].model in ["a100", "h100", "h200"]',
        True,
    ),
    ("macro", f'device.attributes["{DOMAIN}"].exists(k, k == "numa")', True),
    ("optional", f'device.attributes["{DOMAIN}"].?slot.orValue(0) <= 2', False),
    ("pattern", f'device.attributes["{DOMAIN}"].model.matches("^[ah]100$")', True),
    (
        "quantity",
        f'device.capacity["{DOMAIN}"].memory.compareTo(quantity("40Gi")) >= 0',
        False,
    ),
    (
        "version",
        f'device.attributes["{DOMAIN}"].driver.isGreaterThan(semver("1.2.3"))',
        False,
    ),
)


def tree(index: int, values: int) -> JsonObject:
    """The attributes of a device; `values` is the number of distinct values."""
    return {
        "numa": {"int": index % values},
        "model": {"string": ("h100", "a100", "l40s")[index % min(values, 3)]},
        "healthy": {"bool": True},
        "uuid": {"string": f"uuid-{index}"},
        "driver": {"version": f"1.{index % values}.0"},
    }


def device(index: int, values: int) -> cel.DeviceInput:
    """A device as CEL sees it, converted."""
    found = cel.DeviceInput(
        driver=DOMAIN,
        attributes=tree(index, values),
        capacity={"memory": {"value": f"{80 - index % values}Gi"}},
    )
    assert found.value.failure is None
    return found


def seconds_of(work: Callable[[], object]) -> float:
    """CPU seconds of one call, the best of some runs."""
    times = []
    for _ in range(RUNS):
        calls = 0
        started = time.process_time()
        while (spent := time.process_time() - started) < SECONDS:
            for _ in range(10):
                work()
            calls += 10
        times.append(spent / calls)
    return min(times)


def theirs(expression: str) -> float:
    """CPU seconds of one evaluation by cel-python."""
    environment = celpy.Environment()
    program = environment.program(environment.compile(expression))
    plain = {name: next(iter(value.values())) for name, value in tree(3, VALUES).items()}
    given = {"device": json_to_cel({"driver": DOMAIN, "attributes": {DOMAIN: plain}})}
    return seconds_of(lambda: program.evaluate(given))


def others(expression: str) -> Callable[[], cel.Program]:
    """Compiles an equivalent expression with a new text at each call."""
    numbers = itertools.count()
    return lambda: cel.compile_expression(f"{expression} // {next(numbers)}")


def grouped(expression: str, devices: list[cel.DeviceInput]) -> float:
    """CPU seconds of a mask over devices, grouped by the values that the expression reads."""
    table = cel.DeviceTable(devices)
    compile_other = others(expression)
    programs = [compile_other() for _ in range(300)]
    table.groups(programs[0].reads)
    times = []
    for program in programs:
        assert program.reads == programs[0].reads
        started = time.process_time()
        table.mask(program)
        times.append(time.process_time() - started)
    return sorted(times)[len(times) // 2]


def main() -> None:
    """Measure and print."""
    turn = turn_seconds()
    print(f"one turn of a plain loop: {turn * 1e9:.0f} ns CPU; times in µs CPU")
    columns = (
        *("compile", "evaluate", "turns", "mask first", "grouped", "all differ"),
        *("cel-python", "ratio"),
    )
    print(f"{'expression':18}" + "".join(f"{name:>12}" for name in columns))
    like = [device(index, VALUES) for index in range(DEVICES)]
    unlike = [device(index, DEVICES) for index in range(DEVICES)]
    for name, expression, is_plain in ROWS:
        compiling = seconds_of(others(expression))
        program = cel.compile_expression(expression)
        one = like[3]
        evaluating = seconds_of(partial(program.evaluate, one))
        masks = [
            seconds_of(partial(cel.mask, program, like)),
            grouped(expression, like),
            seconds_of(partial(cel.mask, program, unlike)),
        ]
        other = theirs(expression) if is_plain else None
        row = [compiling * 1e6, evaluating * 1e6, evaluating / turn, *(m * 1e6 for m in masks)]
        line = "".join(f"{value:>12.2f}" for value in row)
        if other is not None:
            line += f"{other * 1e6:>12.0f}{other / evaluating:>12.0f}"
        print(f"{name:18}{line}")
    table = cel.DeviceTable(like)
    program = cel.compile_expression(ROWS[1][1])
    table.mask(program)
    again = seconds_of(lambda: table.mask(program))
    print(f"the mask of a slice that was asked before: {again * 1e6:.2f} µs")


if __name__ == "__main__":
    main()
