"""The scheduler: which pod goes to which node with which devices, and what is said when none fits.

Belongs here, each room using those before it: texts (`reports`), nodes and filters (`framework`),
the plug-ins, the scheduling cycle, the binding cycle, the queue with its hints (controllers.md 3
and 4). Does not belong here: the search for devices (allocation). Imported by the registry of
controllers, by analysis and by tests.
"""

from app.domain.controllers.scheduling.reconciler import SchedulingReconciler

__all__ = ["SchedulingReconciler"]
