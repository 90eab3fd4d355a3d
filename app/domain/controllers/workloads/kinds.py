"""The five kinds with their rules."""

from app.domain.controllers.workloads import (
    daemon_sets,
    deployments,
    jobs,
    replica_sets,
    stateful_sets,
)
from app.domain.controllers.workloads.answer import Workload
from app.domain.values import api_groups, api_resources

DEPLOYMENTS = Workload(
    name="deployments",
    kind="Deployment",
    api_version=api_groups.APPS_V1,
    place=api_resources.DEPLOYMENTS,
    component="deployment-controller",
    dependents=frozenset({api_resources.REPLICA_SETS}),
    sync=deployments.sync,
)
REPLICA_SETS = Workload(
    name="replica-sets",
    kind="ReplicaSet",
    api_version=api_groups.APPS_V1,
    place=api_resources.REPLICA_SETS,
    component="replicaset-controller",
    dependents=frozenset({api_resources.PODS}),
    sync=replica_sets.sync,
    failed=replica_sets.failed,
)
STATEFUL_SETS = Workload(
    name="stateful-sets",
    kind="StatefulSet",
    api_version=api_groups.APPS_V1,
    place=api_resources.STATEFUL_SETS,
    component="statefulset-controller",
    dependents=frozenset({api_resources.PODS, api_resources.CONTROLLER_REVISIONS}),
    sync=stateful_sets.sync,
    failed=stateful_sets.failed,
)
DAEMON_SETS = Workload(
    name="daemon-sets",
    kind="DaemonSet",
    api_version=api_groups.APPS_V1,
    place=api_resources.DAEMON_SETS,
    component="daemonset-controller",
    dependents=frozenset({api_resources.PODS, api_resources.CONTROLLER_REVISIONS}),
    sync=daemon_sets.sync,
    failed=daemon_sets.failed,
    watches_nodes=True,
)
JOBS = Workload(
    name="jobs",
    kind="Job",
    api_version="batch/v1",
    place=api_resources.JOBS,
    component="job-controller",
    dependents=frozenset({api_resources.PODS}),
    sync=jobs.sync,
    release=jobs.release,
)
