"""The status of ResourceQuotas: the usage of each namespace, counted again after every change.

Belongs here: writing `status.hard` and `status.used`. Does not belong here: the arithmetic and the
refusal (objects/quota). Imported by the registry of controllers and by tests.
"""

from app.domain.controllers.quotas.reconciler import QuotaReconciler

__all__ = ["QuotaReconciler"]
