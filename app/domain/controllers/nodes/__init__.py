"""The writes of controllers to nodes: readiness taints, labels, and the TTL for kubelets.

Belongs here: readiness taints and annotations of nodes (controllers.md 5.5). Does not belong here:
pods of nodes that are gone (garbage) and heartbeats. Imported by the registry of controllers and by
tests.
"""

from app.domain.controllers.nodes.readiness import NodeReconciler
from app.domain.controllers.nodes.ttl import NodeTtlReconciler

__all__ = ["NodeReconciler", "NodeTtlReconciler"]
