"""The workloads: Deployment, ReplicaSet, StatefulSet, DaemonSet and Job.

Belongs here: the number and templates of a workload's pods, their names and owners, its status and
its Events (controllers.md 5.5). Does not belong here: where pods run (scheduling), the life of pods
on their nodes (kubelet), garbage collection (garbage). Each kind is a pure function in a module of
its own; `reconciler` has the queue that all kinds share. Imported by the registry of controllers
and by tests.
"""

from app.domain.controllers.workloads.kinds import (
    DAEMON_SETS,
    DEPLOYMENTS,
    JOBS,
    REPLICA_SETS,
    STATEFUL_SETS,
)
from app.domain.controllers.workloads.reconciler import WorkloadReconciler

__all__ = [
    "DAEMON_SETS",
    "DEPLOYMENTS",
    "JOBS",
    "REPLICA_SETS",
    "STATEFUL_SETS",
    "WorkloadReconciler",
]
