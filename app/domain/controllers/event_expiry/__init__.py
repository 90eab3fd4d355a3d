"""The expiry of Event objects, which a real store drops an hour after their last change.

Belongs here: finding and deleting expired Event objects. Does not belong here: their content
(event_objects). Imported by the registry of controllers and by tests.
"""

from app.domain.controllers.event_expiry.reconciler import EventExpiryReconciler

__all__ = ["EventExpiryReconciler"]
