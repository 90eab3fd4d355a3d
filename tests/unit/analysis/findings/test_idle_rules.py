"""Rules that select no device: those that evict nobody and keep nothing."""

import pytest

from app.analysis.findings import cluster as cluster_findings
from app.analysis.views import LiveViews
from app.domain.objects.profile import Profile
from tests.cluster import Cluster


@pytest.mark.parametrize(
    ("pool", "is_held", "idle"),
    [("n1", False, False), ("n2", False, True), ("n1", True, False), ("n2", True, True)],
)
def test_rule_for_a_device_that_is_held_and_not_published_any_more_is_not_idle(pool, is_held, idle):
    """Eviction compares a rule with the devices of claims, whatever is published."""
    cluster = Cluster()
    cluster.node("n1")
    cluster.device_class()
    cluster.slice("n1", 1)
    if is_held:
        cluster.claim("c")
        cluster.pod("p", claim="c")
        cluster.settle()
        cluster.delete("resourceslices", "n1-slice")
    cluster.rule("r", effect="None", selector={"pool": pool})
    cluster.settle()
    views = LiveViews(Profile())
    for event in cluster.line.events:
        views.fold(event)
    found = [finding.text for finding in cluster_findings.rules(views)]
    assert ["rule r has no effect" in text for text in found] == [True] * idle
