"""Invariants: rules that a cluster satisfies at every revision, judged from the raw objects alone.

This is an independent judge. Nothing here imports what it judges: neither the allocator nor the
inventory, the reconcilers, the object rules or the projections. Its own structs read objects from
the bytes of their events (`reading`), and its own parser reads quantities (`amounts`). It receives
event by event (`watch`), keeps the published objects (`stock`) and the holders of devices (`pools`,
`known`), and judges again only what an event touched. Allocations are judged when they are written
(`placements`), placements of pods when pod and allocation come together (`cells`).

Belongs here: rules that follow from the API's words. Does not belong here: rules that follow from
the way some scheduler works. Code that verifies, simulates or tests may import it.
"""

from app.analysis.verify.invariants.placements import Switches
from app.analysis.verify.invariants.violations import RULES, Moment, Violation, ViolationKind
from app.analysis.verify.invariants.watch import InvariantWatch

__all__ = ["RULES", "InvariantWatch", "Moment", "Switches", "Violation", "ViolationKind"]
