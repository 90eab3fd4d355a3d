"""The ResourceClaim controller: claims from templates, reservations, release, deletion.

Belongs here: what controllers.md 2 says of pod sync and claim sync. Does not belong here: who gets
which device (scheduling). Imported by the registry of controllers and by tests.
"""

from app.domain.controllers.claims.reconciler import ClaimsReconciler

__all__ = ["ClaimsReconciler"]
