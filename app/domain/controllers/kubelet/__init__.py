"""Nodes that are not there: what kubelets would do with bound pods, nodes and lost drivers.

Belongs here: pods that start, run for a while and end, graceful deletion, the first Ready condition
of a node, slices of a driver that is gone (controllers.md 5.3). Does not belong here: where pods
run (scheduling), pods of nodes that do not exist (garbage). It keeps away from nodes that have a
kubelet of their own. Imported by the registry of controllers and by tests.
"""

from app.domain.controllers.kubelet.reconciler import KubeletReconciler

__all__ = ["KubeletReconciler"]
