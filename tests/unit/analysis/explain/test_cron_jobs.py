"""The state of CronJobs, whose jobs the controllers of a recorded cluster make."""

import pytest

from app.analysis.explain.workloads import cron_jobs
from app.domain.log import ObjectKey
from app.domain.values import api_resources
from tests.cluster import Cluster
from tests.unit.analysis.findings.test_refused_workloads import POD, end, views_of

AT = "2026-01-02T01:05:00Z"
DUE = f"its last job was due at {AT} (5 1 * * *)"
TEMPLATE = {**POD, "spec": {**POD["spec"], "restartPolicy": "Never"}}


def said(policy, *jobs, last=AT, is_made_elsewhere=True):
    """What is said of a CronJob with these jobs: still at work or not."""
    cluster = Cluster()
    spec = {"schedule": "5 1 * * *", "concurrencyPolicy": policy,
            "jobTemplate": {"spec": {"template": TEMPLATE}}}  # fmt: skip
    cluster.apply({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "nightly"},
                   "spec": spec})  # fmt: skip
    key = ObjectKey(*api_resources.CRON_JOBS, "default", "nightly")
    uid = views_of(cluster).objects.get(key)["metadata"]["uid"]
    owner = {"apiVersion": "batch/v1", "kind": "CronJob", "name": "nightly", "uid": uid,
             "controller": True}  # fmt: skip
    for number, is_active in enumerate(jobs):
        metadata = {"name": f"nightly-{number}", "ownerReferences": [owner]}
        cluster.apply({"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata,
                       "spec": {"template": TEMPLATE}})  # fmt: skip
        if not is_active:
            end(cluster, f"nightly-{number}")
    if last:
        status = {"status": {"lastScheduleTime": last}}
        cluster.patch("cronjobs", "nightly", status, subresource="status")
    views = views_of(cluster)
    told = cron_jobs.state(views, key, views.objects.get(key), is_made_elsewhere=is_made_elsewhere)
    return [reason.text for reason in told]


@pytest.mark.parametrize(
    ("policy", "jobs", "expected"),
    [
        ("Forbid", (False, True), ["job default/nightly-1 has not ended; concurrencyPolicy is "
                                   "Forbid: no further job begins until then", DUE]),
        ("Replace", (True,), ["job default/nightly-0 has not ended; concurrencyPolicy is Replace: "
                              "the next job replaces what has not ended", DUE]),
        ("Allow", (True, True),
         ["jobs default/nightly-0, default/nightly-1 have not ended", DUE]),
        ("Forbid", (False,), [DUE]),
    ],
)  # fmt: skip
def test_jobs_that_have_not_ended_are_named(policy, jobs, expected):
    assert said(policy, *jobs) == expected


def test_cron_job_without_jobs_says_when_they_are_due():
    due = "they are due at 5 1 * * *"
    assert said("Allow", last="") == [f"no job of it was made yet; {due}"]
    (text,) = said("Allow", last="", is_made_elsewhere=False)
    assert text == "no controller here makes its jobs, which are due at 5 1 * * * (A18)"
