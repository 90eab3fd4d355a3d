"""What must hold of a cluster at every revision, judged from the raw objects alone.

An independent judge: nothing here imports what it judges, neither the allocator nor the inventory,
the reconcilers, the object rules or the projections. Objects are read from the bytes of their
events by structs of its own (`reading`), quantities by a parser of its own (`amounts`). It is fed
event by event (`watch`), keeps what is published (`stock`) and who holds it (`holdings`), and
judges again only what an event touched. Allocations are judged when they are written
(`placements`), placements of pods when pod and allocation come together (`nodes`).

What belongs here is a rule that follows from the API's words, not from how some scheduler works.
Whoever verifies, simulates or tests may import it.
"""

from app.analysis.verify.invariants.placements import Switches
from app.analysis.verify.invariants.violations import RULES, Moment, Violation, ViolationKind
from app.analysis.verify.invariants.watch import InvariantWatch

__all__ = ["RULES", "InvariantWatch", "Moment", "Switches", "Violation", "ViolationKind"]
