"""Warnings about pods are found among many Events; only those that may be some are read."""

import pytest

from app.analysis.explain import lives
from app.domain.values import api_resources
from projections.objects import ObjectsProjection
from tests.cluster import Cluster


def told(cluster, name, about, **fields):
    """An Event that a kubelet writes about a pod."""
    cluster.create(
        "v1", "Event", name,
        involvedObject={"kind": "Pod", "namespace": "default", "name": about},
        **{"source": {"component": "kubelet"}, **fields},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("reason", "kind", "said"),
    [
        ("FailedPrepareDynamicResources", "Warning", True),
        ("FailedPrepareDynamicResources", "", True),
        ("FailedPrepareDynamicResources", "Normal", False),
        ("FailedScheduling", "Warning", False),
        ("BackOff", "Warning", False),
    ],
)
def test_event_without_a_component_is_a_kubelets_if_only_kubelets_say_so(reason, kind, said):
    cluster = Cluster()
    told(cluster, "web.x", "web", type=kind, reason=reason, message="no", source={})
    objects = ObjectsProjection(tells_changes=False)
    for event in cluster.line.events:
        objects.fold(event)
    assert bool(lives.warnings(objects.unusual_events())) is said


def test_only_warnings_are_decoded():
    cluster = Cluster()
    for number in range(5):
        told(cluster, f"web.{number}", "web", type="Normal", reason="Pulled", message="image")
    told(cluster, "job.x", "job", type="Warning", reason="BackOff", message="restarting")
    objects = ObjectsProjection(tells_changes=False)
    for event in cluster.line.events:
        objects.fold(event.undecoded())
    warnings = lives.warnings(objects.unusual_events())
    assert {key: one.message for key, one in warnings.items()} == {"default/job": "restarting"}
    decoded = [
        event.key.name for event in objects.events(*api_resources.EVENTS) if event.tree is not None
    ]
    assert decoded == ["job.x"]
