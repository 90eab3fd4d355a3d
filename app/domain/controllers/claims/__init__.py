"""The ResourceClaim controller: claims from templates, reservations, release, deletion.

Belongs here: pod sync and claim sync as described in controllers.md 2. Does not belong here: the
allocation of devices (scheduling). Imported by the registry of controllers and by tests.
"""

from app.domain.controllers.claims.reconciler import ClaimsReconciler

__all__ = ["ClaimsReconciler"]
