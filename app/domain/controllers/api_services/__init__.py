"""The availability of APIServices that name a service, which is never contacted.

Belongs here: the condition Available of APIServices with a service. Does not belong here: local
APIServices, which are available from their creation (objects/api_services). Imported by the
registry of controllers and by tests.
"""

from app.domain.controllers.api_services.reconciler import ApiServiceReconciler

__all__ = ["ApiServiceReconciler"]
