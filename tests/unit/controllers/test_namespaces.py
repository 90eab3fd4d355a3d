"""Namespaces that end, and those that come after them under the same name."""

import pytest

from app.domain.controllers.garbage.namespaces import NamespaceReconciler
from app.domain.log import Event
from app.domain.values.timestamps import SECOND, Instant
from tests.cluster import T0, Cluster
from tests.conformance.soak_recordings import Load, SlowControlPlane


def test_new_namespace_of_an_old_name_keeps_its_objects_when_the_controllers_restart():
    cluster = Cluster()
    cluster.create("v1", "Namespace", "team")
    cluster.pod("old", namespace="team")
    cluster.settle()
    cluster.delete("namespaces", "team")
    cluster.wait(60)
    assert cluster.get("namespaces", "team") is None
    cluster.create("v1", "Namespace", "team")
    cluster.pod("new", namespace="team")
    cluster.settle()
    cluster.restart()
    cluster.wait(60)
    assert "deletionTimestamp" not in cluster.must("pods", "new", "team")["metadata"]


def test_namespace_with_a_finalizer_waits_without_work_and_ends_when_it_is_removed():
    cluster = Cluster()
    held = {"name": "held", "finalizers": ["example.com/hold"]}
    cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": held})
    cluster.delete("namespaces", "held")
    cluster.wait(60)
    assert cluster.get("namespaces", "held") is not None
    namespaces = next(found for found in cluster.controllers if found.name == "namespaces")
    assert namespaces.step(cluster.line.views, cluster.line.now) is None
    cluster.patch("namespaces", "held", {"metadata": {"finalizers": None}}, namespace="")
    assert cluster.get("namespaces", "held") is None


class KnownMark(SlowControlPlane):
    """A pace at which the mark of a namespace can have been seen before its event."""

    def __init__(self, before: int) -> None:
        super().__init__(Load())
        self._before = before

    def seen_from(self, event: Event) -> Instant:
        return Instant(event.stamp.time - self._before)

    def not_before(self, queue: str, key: tuple[str, ...], now: Instant) -> Instant:
        return now


@pytest.mark.parametrize("before", [0, 40_000])
def test_grace_of_a_namespace_counts_from_when_its_mark_can_have_been_seen(before: int) -> None:
    cluster = Cluster()
    cluster.create("v1", "Namespace", "team")
    namespaces = NamespaceReconciler(KnownMark(before))
    cluster.line.controllers = (namespaces,)
    cluster.delete("namespaces", "team")
    assert namespaces.due() == T0 + 5 * SECOND - before
