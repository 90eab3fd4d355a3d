"""What controllers write to nodes: when a node may be used, and how long its kubelet may remember.

Belongs here: readiness taints and annotations of nodes (controllers.md 5.5). Does not belong here:
pods of nodes that are gone (garbage) and heartbeats. Imported by the registry of controllers and by
tests.
"""

from app.domain.controllers.nodes.readiness import NodeReconciler
from app.domain.controllers.nodes.ttl import NodeTtlReconciler

__all__ = ["NodeReconciler", "NodeTtlReconciler"]
