"""Workloads whose pods the API refuses: each is told once, whoever owns it."""

import pytest

from app.analysis.explain import untried
from app.analysis.findings import workloads
from app.domain.controllers.scheduling.scheduling_cycle.attempt import SchedulerRules
from app.domain.values import api_resources
from app.domain.values.timestamps import Instant
from tests.cluster import Cluster
from tests.unit.service.test_explaining import views_up_to

KINDS = (api_resources.DEPLOYMENTS, api_resources.REPLICA_SETS)
LABELS = {"app": "web"}
POD = {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "main", "image": "a:1"}]}}


def views_of(cluster):
    return views_up_to(cluster.line.events, len(cluster.line.events))


def refused(kind, *owners):
    cluster = Cluster()
    cluster.create("v1", "ResourceQuota", "none", spec={"hard": {"pods": "0"}})
    metadata = {"name": "web", "namespace": "default", "ownerReferences": list(owners)}
    spec = {"replicas": 1, "selector": {"matchLabels": LABELS}, "template": POD}
    cluster.apply({"apiVersion": "apps/v1", "kind": kind, "metadata": metadata, "spec": spec})
    cluster.wait(30)
    return views_of(cluster)


@pytest.mark.parametrize("kind", ["Deployment", "ReplicaSet"])
def test_workload_of_a_custom_resource_is_told(kind):
    """Nobody takes the condition over from it."""
    owner = {"apiVersion": "example.com/v1", "kind": "App", "name": "a", "uid": "u"}
    (finding,) = workloads.refused(refused(kind, owner), KINDS)
    assert finding.text.startswith("1 workload cannot make pods: exceeded quota: none")
    assert [subject.resource for subject in finding.objects] == [f"{kind.lower()}s"]


def test_replica_set_is_told_to_who_may_not_see_deployments():
    (finding,) = workloads.refused(refused("Deployment"), KINDS[1:])
    assert [subject.resource for subject in finding.objects] == ["replicasets"]


def test_pods_of_one_unknown_scheduler_are_read_once(monkeypatch):
    cluster = Cluster()
    for number in range(6):
        cluster.pod(f"p{number}", schedulerName="defualt-scheduler")
    views, asked = views_of(cluster), []
    monkeypatch.setattr(untried.scope, "nearest", lambda name, _: asked.append(name) or "")
    shared = untried.shared_causes(views, SchedulerRules, Instant(0), reads_events=True)
    said = {shared(views.objects.get(key)) for key in views.objects.keys(*api_resources.PODS)}
    assert said == {"it is left to the scheduler defualt-scheduler, which does not run here"}
    assert asked == ["defualt-scheduler"]


def refused_job(*, gone_for=0):
    cluster = Cluster()
    cluster.create("v1", "ResourceQuota", "none", spec={"hard": {"pods": "0"}})
    pod = {**POD, "spec": {**POD["spec"], "restartPolicy": "Never"}}
    cluster.create("batch/v1", "Job", "train", spec={"template": pod})
    cluster.wait(30)
    if gone_for:
        cluster.delete("resourcequotas", "none")
        cluster.wait(gone_for)
    return views_of(cluster)


def test_job_has_no_condition_and_is_told_from_events():
    views = refused_job()
    (finding,) = workloads.refused(views, (api_resources.JOBS,), reads_events=True)
    assert finding.text.startswith("1 workload cannot make pods: exceeded quota: none")
    assert [(subject.resource, subject.name) for subject in finding.objects] == [("jobs", "train")]
    assert not [*workloads.refused(views, (api_resources.JOBS,))], "nothing comes from Events"


def test_job_whose_pod_was_made_in_the_end_is_not_told():
    views = refused_job(gone_for=900)
    assert not [*workloads.refused(views, (api_resources.JOBS,), reads_events=True)]
