"""The causes behind "cannot allocate all claims", counted over nodes when a decision is written.

The plain attempt stops at a node's refusal. What each node says down to the device is counted
afterwards, for decisions that are written only, and kept with the verdict on the node: it holds as
long as that. Nodes are asked in their order on books of their own, so that deciding again counts
the same.
"""

from collections.abc import Sequence

from app.domain.allocation import Allocator
from app.domain.allocation.reasons import summary
from app.domain.allocation.reasons.summary import Summary, SummaryBounds
from app.domain.allocation.requests import AttemptAborted
from app.domain.controllers.scheduling.framework.nodes import NodeInfo
from app.domain.controllers.scheduling.scheduling_cycle.cycle import Cycle
from app.domain.devices.nodes import NodeSelectionError


def count(cycle: Cycle, refusing: Sequence[NodeInfo], bounds: SummaryBounds) -> Summary:
    """What the nodes say that were refused for their devices; beyond the bound they are counted."""
    together = Summary()
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


def _add(cycle: Cycle, info: NodeInfo, allocator: Allocator, found: Summary) -> None:
    devices = cycle.verdict(info).devices
    assert devices is not None, "the node was refused for its devices"
    said = devices.causes
    if said is None:
        claims = cycle.fresh
        if (extended := cycle.extended_claim(devices.served)) is not None:
            claims = (*claims, extended.tree)
        try:
            said = summary.causes_of(allocator.case_of(info.node, claims).problem)
        except (AttemptAborted, NodeSelectionError):
            return  # an error rather than a refusal, whose text is in the message
        if said.may_be_kept:
            devices.causes = said
    found.add(info.name, said)
