"""The end of Event objects, which a real store forgets by itself an hour after their last change.

Belongs here: which Event objects are past their time. Does not belong here: what they say
(event_objects). Imported by the registry of controllers and by tests.
"""

from app.domain.controllers.event_expiry.reconciler import EventExpiryReconciler

__all__ = ["EventExpiryReconciler"]
