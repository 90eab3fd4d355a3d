"""What the node controller decides: when a node may be used.

Belongs here: the readiness taints of nodes (controllers.md 5.5). Does not belong here: pods of
nodes that are gone (garbage) and heartbeats. Imported by the registry of controllers and by tests.
"""

from app.domain.controllers.nodes.readiness import NodeReconciler

__all__ = ["NodeReconciler"]
