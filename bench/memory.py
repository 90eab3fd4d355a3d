"""Measures the memory for a large cluster: `python -m bench.memory`.

5,000 nodes of 8 devices, 50,000 running pods with an allocated claim each. Every event is folded
into what one `redra up` keeps: the live views, every controller, and the projector's views, which
share the events; `--parts` names who folds beside the live views. The log itself stays in the
database and is not counted.
"""

import argparse
import sys
import time
from collections.abc import Iterator, Sequence

from app.analysis.views import LiveViews, compiler_of, features_of
from app.bootstrap import garbage_collection
from app.bootstrap.histories import views_of
from app.domain.controllers import reconcilers, registry
from app.domain.controllers.plan import Reconciler
from app.domain.log import Event, ObjectKey
from app.domain.log.projection import Projection
from app.domain.objects.profile import Profile
from bench import figures, folding
from bench.cluster import node
from bench.processes import resident_megabytes
from projections.last_events import PLAIN_MAX

DEVICES = 8


def events(nodes: int, pods: int) -> Iterator[Event]:
    """Nodes, slices, and pods that were created, given a claim, and started."""
    made = folding.Maker()
    for number in range(nodes):
        command = node(f"node-{number:04}")
        yield made.event("ObjectCreated", command.key, command.tree, folding.DRIVER)
        key = folding.slice_key(number)
        tree = folding.slice_tree(number, 0, devices=DEVICES)
        yield made.event("ObjectCreated", key, tree, folding.DRIVER)
    for number in range(pods):
        yield from folding.arrive(made, number, nodes=nodes, devices=DEVICES)


class Consumers:
    """All folding views and controllers, by name."""

    def __init__(self, parts: Sequence[str]) -> None:
        profile = Profile()
        self.views = LiveViews(profile, plain_max=PLAIN_MAX)
        self.controllers: Sequence[Reconciler] = ()
        self.projections: Sequence[Projection] = ()
        if "controllers" in parts:
            self.controllers = reconcilers.controllers(
                profile, features_of(profile), compiler_of(profile), registry.options_from({})
            )
        if "projections" in parts:
            self.projections = views_of(profile.settings(), plain_max=PLAIN_MAX)()

    def fold(self, event: Event) -> None:
        """One event into all of them, and the rows as the projector takes them."""
        self.views.fold(event)
        for controller in self.controllers:
            controller.fold(event, self.views)
        for projection in self.projections:
            projection.fold(event)
        if event.revision % 1_000 == 0:
            self.take_rows()

    def take_rows(self) -> None:
        """Takes the changed rows, as the projector does before it writes."""
        for projection in self.projections:
            for table, keys in projection.take_changed().items():
                for key in keys:
                    projection.row(table, key)
            projection.state_hash()


def main(arguments: Sequence[str] = ()) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="bench.memory", description=__doc__)
    parser.add_argument("--nodes", type=int, default=5_000)
    parser.add_argument("--pods", type=int, default=50_000)
    parser.add_argument("--parts", nargs="*", default=("controllers", "projections"))
    options = parser.parse_args(arguments)
    garbage_collection.expect_large_heap()
    before = resident_megabytes()
    consumers = Consumers(options.parts)
    started, count, size, place = time.process_time(), 0, 0, ObjectKey("", "", "", "")
    for event in events(options.nodes, options.pods):
        consumers.fold(event)
        place, count, size = event.key, count + 1, size + len(event.body)
    spent = time.process_time() - started
    consumers.take_rows()
    present = sum(
        len(event.body)
        for group, resource in consumers.views.objects.resources()
        for event in consumers.views.objects.events(group, resource)
    )
    print(f"programs: {before} MiB; {count} events up to {place}, {size >> 20} MiB of bodies")
    print(f"objects that exist: {present >> 20} MiB of bodies")
    if (options.nodes, options.pods) == (5_000, 50_000) and len(options.parts) == 2:
        figures.note("memory.5000_nodes", resident_megabytes())
    resident = resident_megabytes()
    print(
        f"resident: {resident} MiB, {resident - before} beyond the programs; "
        f"{spent / count * 1e6:.0f} µs CPU an event"
    )


if __name__ == "__main__":
    main(sys.argv[1:])
