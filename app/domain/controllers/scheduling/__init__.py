"""The scheduler: which pod goes to which node with which devices, and what is said when none fits.

Belongs here: the queue and its hints, filters and scores of the framework, the DynamicResources
plug-in, messages, Event objects and the writes of one attempt (controllers.md 3 and 4). Does not
belong here: the search for devices (allocation). Imported by the registry of controllers and tests.
"""

from app.domain.controllers.scheduling.reconciler import SchedulingReconciler

__all__ = ["SchedulingReconciler"]
