"""The objects of every namespace: the service account `default` and the authority's certificate.

Belongs here: creating these objects, and creating them again. Does not belong here: the permissions
of a service account (objects/access), and the deletion of namespaces (garbage). Imported by the
registry of controllers and by tests.
"""

from app.domain.controllers.namespace_objects.reconciler import (
    ROOT_CA,
    SERVICE_ACCOUNTS,
    NamespaceObjectReconciler,
)

__all__ = ["ROOT_CA", "SERVICE_ACCOUNTS", "NamespaceObjectReconciler"]
