"""The causes of "cannot allocate all claims", counted over nodes when a decision is written.

An attempt stops at a node's refusal. The reasons per device are counted afterwards, only for
decisions that are written, and are kept with the verdict on the node, which is valid equally long.
The nodes are checked in their order by an allocator of its own, so that a repeated decision counts
the same.
"""

from collections.abc import Sequence

from app.domain.allocation import Allocator
from app.domain.allocation.reasons import summary
from app.domain.allocation.reasons.summary import CauseSummary, SummaryBounds
from app.domain.allocation.requests import AttemptAborted
from app.domain.controllers.scheduling.framework.nodes import NodeInfo
from app.domain.controllers.scheduling.scheduling_cycle.cycle import Cycle
from app.domain.devices.nodes import NodeSelectionError


def count(cycle: Cycle, refusing: Sequence[NodeInfo], bounds: SummaryBounds) -> CauseSummary:
    """Counts the causes on nodes refused for their devices; `left_out` counts those over the bound.

    At most `bounds.nodes_max` nodes are checked.
    """
    together = CauseSummary()
    if cycle.allocator is None:
        return together
    # Not the allocator of the attempt: its counters were read in the order of the walk.
    fresh = cycle.allocator.on_world(
        cycle.allocator.inventory, cycle.allocator.classes, cycle.allocator.state
    )
    for info in refusing[: bounds.nodes_max]:
        _add(cycle, info, fresh, together)
    together.left_out = len(refusing[bounds.nodes_max :])
    return together


def _add(cycle: Cycle, info: NodeInfo, allocator: Allocator, causes: CauseSummary) -> None:
    devices = cycle.verdict(info).devices
    assert devices is not None, "the node was refused for its devices"
    of_node = devices.causes
    if of_node is None:
        claims = cycle.fresh
        if (extended := cycle.extended_claim(devices.served)) is not None:
            claims = (*claims, extended.tree)
        try:
            of_node = summary.causes_of(allocator.case_of(info.node, claims).problem)
        except (AttemptAborted, NodeSelectionError):
            return  # an error, not a refusal; its text is in the message
        if of_node.may_be_kept:
            devices.causes = of_node
    causes.add(info.name, of_node)
