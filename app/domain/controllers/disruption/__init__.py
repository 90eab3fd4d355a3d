"""The disruption controller: what the status of each PodDisruptionBudget says.

Belongs here: counting protected pods and their owners' scale, and the end of announced disruptions
that never came. Does not belong here: the refusal of an eviction (objects/eviction) and what
pre-emption makes of a budget (scheduling). Imported by the registry of controllers and by tests.
"""

from app.domain.controllers.disruption.reconciler import DisruptionReconciler

__all__ = ["DisruptionReconciler"]
