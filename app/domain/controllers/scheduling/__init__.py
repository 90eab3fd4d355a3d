"""The scheduler: places pods on nodes with devices, and reports when no node fits.

Belongs here, each package using the earlier ones: messages (`reports`), nodes and filters
(`framework`), the plug-ins, the scheduling cycle, the binding cycle, the queue with its hints
(controllers.md 3 and 4). Does not belong here: the search for devices (allocation). Imported by the
registry of controllers, by analysis and by tests.
"""

from app.domain.controllers.scheduling.reconciler import SchedulingReconciler

__all__ = ["SchedulingReconciler"]
