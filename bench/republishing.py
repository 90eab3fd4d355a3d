"""Measures the cost of a republished slice: `python -m bench.republishing [--devices N]`.

Slices of N devices, of which one differs from what was published before, as by a driver that tells
the health or the temperature of its devices. Decoding is not counted.
"""

import argparse
import gc
import sys
import time
from collections.abc import Iterator, Sequence

import msgspec

from app.domain.devices.inventory import Inventory
from app.domain.values.json_tree import JsonObject
from bench import figures
from bench.folding import DRIVER, Maker, slice_key, slice_tree
from projections.inventory import InventoryProjection

NODES = 20
ROUNDS = 20


def main(arguments: Sequence[str] = ()) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="bench.republishing", description=__doc__)
    parser.add_argument("--devices", type=int, default=64)
    options = parser.parse_args(arguments)
    gc.freeze()
    gc.set_threshold(100_000, 20, 50)
    compiled, rows = measure_compiling(options.devices), measure_rows(options.devices)
    figures.note("republishing.compiled", compiled)
    figures.note("republishing.rows", rows)
    print(
        f"a slice of {options.devices} devices again, one changed: compiled in {compiled:.0f} µs, "
        f"with pool and rows {rows:.0f} µs"
    )


def measure_compiling(devices: int) -> float:
    """Microseconds for taking a slice over into an inventory."""
    inventory, seconds = Inventory(), 0.0
    for number, published in enumerate(publications(devices)):
        for tree in published:
            started = time.process_time()
            inventory.put_slice(tree)
            seconds += (time.process_time() - started) * bool(number)
    return seconds / NODES / ROUNDS * 1e6


def measure_rows(devices: int) -> float:
    """Microseconds for taking a slice over, and for computing and hashing what rows changed."""
    view, made, seconds = InventoryProjection(), Maker(), 0.0
    for number, published in enumerate(publications(devices)):
        kind = "ObjectUpdated" if number else "ObjectCreated"
        for node, tree in enumerate(published):
            view.fold(made.event(kind, slice_key(node), tree, DRIVER))
        started = time.process_time()
        for table, keys in view.take_changed().items():
            for key in keys:
                view.row(table, key)
        view.state_hash()
        seconds += (time.process_time() - started) * bool(number)
    return seconds / NODES / ROUNDS * 1e6


def publications(devices: int) -> Iterator[list[JsonObject]]:
    """The slices of all nodes, time after time, as they come from the log."""
    for number in range(ROUNDS + 1):
        trees = [slice_tree(node, 0, devices=devices) for node in range(NODES)]
        for tree in trees:
            device = tree["spec"]["devices"][number % devices]
            device["attributes"]["temperature"] = {"int": number + 1}
        yield [msgspec.json.decode(msgspec.json.encode(tree, order="sorted")) for tree in trees]


if __name__ == "__main__":
    main(sys.argv[1:])
