"""The rules of cluster roles that collect those of others.

Belongs here: writing the collected rules. Does not belong here: which rules those are
(objects/cluster_roles), and what they allow (objects/access). Imported by the registry of
controllers and by tests.
"""

from app.domain.controllers.cluster_roles.reconciler import ClusterRoleReconciler

__all__ = ["ClusterRoleReconciler"]
