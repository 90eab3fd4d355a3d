"""Garbage: objects whose owners are gone, deleted namespaces, and pods of nodes that are gone.

Belongs here: garbage collection through owner references, namespace deletion, PodGC (controllers.md
5.4, 5.5, 6.6). Does not belong here: release of claims (claims). Imported by the registry of
controllers and by tests.
"""

from app.domain.controllers.garbage.collector import GarbageReconciler
from app.domain.controllers.garbage.namespaces import NamespaceReconciler
from app.domain.controllers.garbage.pod_gc import PodGcReconciler

__all__ = ["GarbageReconciler", "NamespaceReconciler", "PodGcReconciler"]
