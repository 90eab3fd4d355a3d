"""What makes pods: Deployment, ReplicaSet, StatefulSet, DaemonSet and Job.

Belongs here: how many pods of which shape a workload has, their names and owners, its status and
its Events (controllers.md 5.5). Does not belong here: where pods run (scheduling), what becomes of
them there (kubelet), collecting what has lost its owner (garbage). Each kind is a pure function in
a module of its own; `reconciler` holds the queue that all share. Imported by the registry of
controllers and by tests.
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
