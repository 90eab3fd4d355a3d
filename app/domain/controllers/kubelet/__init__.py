"""The emulated kubelets: what kubelets would do with bound pods, nodes and lost drivers.

Belongs here: pods that start, run for a while and end, graceful deletion, the first Ready condition
of a node, slices of a lost driver (controllers.md 5.3). Does not belong here: where pods run
(scheduling), pods of nodes that do not exist (garbage). Nodes that have a real kubelet are left
alone. Imported by the registry of controllers and by tests.
"""

from app.domain.controllers.kubelet.reconciler import KubeletReconciler

__all__ = ["KubeletReconciler"]
