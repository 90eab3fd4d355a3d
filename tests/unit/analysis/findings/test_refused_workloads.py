"""Workloads whose pods the API refuses, each in one finding, and Jobs that failed."""

import pytest

from app.analysis import scheduling_rules
from app.analysis.explain import untried
from app.analysis.findings import workloads
from app.analysis.findings.report import Severity
from app.analysis.views import compiler_of
from app.domain.log import HistoryInfo
from app.domain.objects.profile import Profile
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
    profile = Profile()
    rules = scheduling_rules.of(HistoryInfo(id=1, name="h"), profile, compiler_of(profile))
    shared = untried.shared_causes(views, rules, Instant(0), reads_events=True)
    said = {shared(views.objects.get(key)) for key in views.objects.keys(*api_resources.PODS)}
    assert said == {"it is left to the scheduler defualt-scheduler, which does not run here"}
    assert asked == ["defualt-scheduler"]


def refused_job(*, gone_for=0, ends=""):
    cluster = Cluster()
    cluster.create("v1", "ResourceQuota", "none", spec={"hard": {"pods": "0"}})
    pod = {**POD, "spec": {**POD["spec"], "restartPolicy": "Never"}}
    cluster.create("batch/v1", "Job", "train", spec={"template": pod})
    cluster.wait(30)
    if gone_for:
        cluster.delete("resourcequotas", "none")
        cluster.wait(gone_for)
    if ends:
        end(cluster, "train", reason=ends)
    return views_of(cluster)


def test_job_has_no_condition_and_is_told_from_events():
    views = refused_job()
    (finding,) = workloads.refused(views, (api_resources.JOBS,), reads_events=True)
    assert finding.text.startswith("1 workload cannot make pods: exceeded quota: none")
    assert [(subject.resource, subject.name) for subject in finding.objects] == [("jobs", "train")]
    assert not [*workloads.refused(views, (api_resources.JOBS,))], "nothing comes from Events"


@pytest.mark.parametrize("change", ["raised", "gone", "lowered again"])
@pytest.mark.parametrize("kind", ["ReplicaSet", "Job"])
def test_workload_that_its_quota_allows_by_now_is_apart(change, kind):
    """The controller tries again later; until then nothing refuses its pods."""
    cluster = Cluster()
    cluster.create("v1", "ResourceQuota", "few", spec={"hard": {"pods": "0"}})
    if kind == "Job":
        pod = {**POD, "spec": {**POD["spec"], "restartPolicy": "Never"}}
        cluster.create("batch/v1", "Job", "train", spec={"template": pod})
    else:
        spec = {"replicas": 1, "selector": {"matchLabels": LABELS}, "template": POD}
        cluster.create("apps/v1", "ReplicaSet", "web", spec=spec)
    cluster.wait(30)
    (before,) = workloads.refused(views_of(cluster), workloads.KINDS, reads_events=True)
    if change == "gone":
        cluster.delete("resourcequotas", "few")
    else:
        cluster.patch("resourcequotas", "few", {"spec": {"hard": {"pods": "3"}}})
    if change == "lowered again":
        cluster.patch("resourcequotas", "few", {"spec": {"hard": {"pods": "0"}}})
    (finding,) = workloads.refused(views_of(cluster), workloads.KINDS, reads_events=True)
    refusal = "exceeded quota: few, requested: pods=1"
    assert before.text.startswith(f"1 workload cannot make pods: {refusal}")
    if change == "lowered again":
        assert (finding.text, finding.severity) == (before.text, Severity.ERROR)
        return
    assert finding.severity is Severity.WARNING
    assert finding.text.startswith(
        f"1 workload could not make pods, and quota few does not refuse the next try: {refusal}"
    )


def test_job_whose_pod_was_made_in_the_end_is_not_told():
    views = refused_job(gone_for=900)
    assert not [*workloads.refused(views, (api_resources.JOBS,), reads_events=True)]


def end(cluster, name, *, message="", reason="BackoffLimitExceeded", type="Failed"):
    """The end of a Job, as its controller writes it."""
    ended = {"type": type, "status": "True", "reason": reason, "message": message}
    before = {**ended, "type": "FailureTarget" if type == "Failed" else "SuccessCriteriaMet"}
    status = {"startTime": "2026-01-02T03:00:00Z", "conditions": [before, ended]}
    if type == "Complete":
        status["completionTime"] = "2026-01-02T03:00:09Z"
    cluster.patch("jobs", name, {"status": status}, subresource="status")


def ended_jobs(*messages, reason="BackoffLimitExceeded", type="Failed"):
    """Jobs that have ended, with the message of each."""
    cluster = Cluster()
    pod = {**POD, "spec": {**POD["spec"], "restartPolicy": "Never"}}
    for number, message in enumerate(messages):
        metadata = {"name": f"train-{number}"}
        cluster.apply({"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata,
                       "spec": {"template": pod, "suspend": True}})  # fmt: skip
        end(cluster, metadata["name"], message=message, reason=reason, type=type)
    return views_of(cluster)


@pytest.mark.parametrize(
    ("count", "labels", "said"),
    [
        (1, {}, "1 job is suspended (spec.suspend), and no pods are made"),
        (2, {"x.test/queue-name": "night", "x.test/team": "a"},
         "2 jobs are suspended (spec.suspend), and no pods are made; they may wait for their "
         "queue: x.test/queue-name=night"),
    ],
)  # fmt: skip
def test_suspended_jobs_are_a_finding_until_they_go_on_or_end(count, labels, said):
    cluster = Cluster()
    pod = {**POD, "spec": {**POD["spec"], "restartPolicy": "Never"}}
    for number in range(count + 2):
        metadata = {"name": f"train-{number}", "labels": labels}
        cluster.apply({"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata,
                       "spec": {"template": pod, "suspend": number != 0}})  # fmt: skip
    end(cluster, "train-1")
    (finding,) = workloads.suspended_jobs(views_of(cluster), (api_resources.JOBS,))
    assert (finding.text, finding.count) == (said, count)
    assert not [*workloads.suspended_jobs(views_of(cluster), ())]


@pytest.mark.parametrize(
    ("messages", "said"),
    [
        (("backoff limit",), "1 job failed: BackoffLimitExceeded: backoff limit"),
        (("backoff limit",) * 7, "7 jobs failed: BackoffLimitExceeded: backoff limit"),
        (("pod a", "pod b"), "2 jobs failed: BackoffLimitExceeded: pod b (train-1)"),
    ],
)
def test_jobs_that_failed_are_a_finding(messages, said):
    (finding,) = workloads.failed_jobs(ended_jobs(*messages), (api_resources.JOBS,))
    assert (finding.text, finding.count) == (said, len(messages))
    assert finding.objects[0].name == f"train-{len(messages) - 1}"


def test_job_that_failed_is_not_refused_any_more():
    views, kinds = refused_job(ends="DeadlineExceeded"), (api_resources.JOBS,)
    assert not [*workloads.refused(views, kinds, reads_events=True)]
    (finding,) = workloads.failed_jobs(views, kinds)
    assert finding.text.startswith("1 job failed: DeadlineExceeded")


def test_jobs_that_succeeded_or_may_not_be_seen_are_none():
    views = ended_jobs("fine", type="Complete", reason="CompletionsReached")
    assert not [*workloads.failed_jobs(views, (api_resources.JOBS,))]
    assert not [*workloads.failed_jobs(ended_jobs("bad"), KINDS)]
    assert not [*workloads.failed_jobs(ended_jobs("bad"), (api_resources.JOBS,), "other")]
