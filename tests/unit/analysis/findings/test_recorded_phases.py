"""A pod of which a recording knows the phase and not the node, as tables of kubectl show it."""

import pytest

from app.analysis.chronicle import Chronicle
from app.analysis.findings import pods
from app.analysis.views import LiveViews
from app.domain.log import Revision
from app.domain.objects.profile import Profile
from tests.cluster import Cluster


def findings_of(cluster):
    chronicle, views = Chronicle(), LiveViews(Profile())
    chronicle.fold(cluster.line.events)
    for event in cluster.line.events:
        views.fold(event)
    until = Revision(len(cluster.line.events))
    return list(pods.waiting(chronicle, views, until, lambda _: ""))


@pytest.mark.parametrize(
    ("phase", "waiting"), [("Pending", 1), ("Running", 0), ("Succeeded", 0), ("Failed", 0)]
)
def test_pod_that_runs_or_has_finished_does_not_wait(phase, waiting):
    cluster = Cluster()
    cluster.pod("p")
    cluster.patch("pods", "p", {"status": {"phase": phase}}, subresource="status")
    assert [finding.present for finding in findings_of(cluster)] == [1] * waiting
