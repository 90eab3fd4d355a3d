"""The disruption controller: the status of each PodDisruptionBudget.

Belongs here: counting protected pods and their owners' scale, and ending announced disruptions that
did not happen. Does not belong here: the refusal of an eviction (objects/eviction) and the use of
budgets in pre-emption (scheduling). Imported by the registry of controllers and by tests.
"""

from app.domain.controllers.disruption.reconciler import DisruptionReconciler

__all__ = ["DisruptionReconciler"]
