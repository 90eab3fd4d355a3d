"""What every namespace has: the service account `default` and the authority's certificate.

Belongs here: making these objects, and making them again. Does not belong here: what a service
account may do (objects/access), and the end of namespaces (garbage). Imported by the registry of
controllers and by tests.
"""

from app.domain.controllers.namespace_objects.reconciler import (
    ROOT_CA,
    SERVICE_ACCOUNTS,
    NamespaceObjectReconciler,
)

__all__ = ["ROOT_CA", "SERVICE_ACCOUNTS", "NamespaceObjectReconciler"]
