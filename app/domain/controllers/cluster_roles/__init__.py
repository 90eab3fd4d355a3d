"""The aggregation of cluster roles: roles that collect the rules of others.

Belongs here: writing the collected rules. Does not belong here: the selection of the rules
(objects/cluster_roles) and their meaning (objects/access). Imported by the registry of controllers
and by tests.
"""

from app.domain.controllers.cluster_roles.reconciler import ClusterRoleReconciler

__all__ = ["ClusterRoleReconciler"]
