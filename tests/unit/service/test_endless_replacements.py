"""Pods that are replaced without end while no time passes are named; a finite number rests."""

import pytest

from app.domain.values.json_tree import JsonObject
from app.service.replays.reconciling import LoopStuck, ReconcileBounds
from tests import draws
from tests.cluster import Cluster


def workload(seconds: int | None, *, kind: str = "ReplicaSet", replicas: int = 2) -> Cluster:
    """A workload whose pods tolerate the taint of their only pool for so long."""
    cluster = Cluster(kubelet=True, bounds=ReconcileBounds(steps_max=20_000))
    cluster.device_class()
    cluster.node("n0")
    cluster.slice("n0", replicas)
    toleration: JsonObject = {"key": "example.com/bad", "operator": "Exists", "effect": "NoExecute"}
    if seconds is not None:
        toleration["tolerationSeconds"] = seconds
    cluster.template(tolerations=[toleration])
    cluster.rule()
    entry = {"name": "gpu", "resourceClaimTemplateName": "gpu"}
    pod = {"containers": [{"name": "c", "image": "i"}], "resourceClaims": [entry]}
    labels = {"app": "w"}
    spec: JsonObject = {"selector": {"matchLabels": labels}, "replicas": replicas}
    spec["template"] = {"metadata": {"labels": labels}, "spec": pod}
    if kind == "StatefulSet":
        spec["serviceName"] = "w"
    cluster.create("apps/v1", kind, "w", spec=spec)
    return cluster


@pytest.mark.parametrize("kind", ["ReplicaSet", draws.by_day("StatefulSet")])
def test_workload_that_tolerates_a_taint_for_no_time_is_named(kind: str) -> None:
    with pytest.raises(LoopStuck) as refusal:
        workload(0, kind=kind).settle()
    (line,) = str(refusal.value).splitlines()
    assert f"the pods of {kind} default/w are replaced without end at 2026-01-02T03:00:00" in line


@draws.in_turn("ways")
def test_workload_is_named_once_the_taint_lasts_longer_than_it_is_tolerated() -> None:
    """The time of a toleration begins with the taint, not with the pod."""
    cluster = workload(60).wait(59)
    assert len(cluster.names("pods")) == 2
    with pytest.raises(LoopStuck, match="without end at 2026-01-02T03:01:00"):
        cluster.wait(2)


def test_many_replicas_may_be_replaced_once_at_an_instant() -> None:
    cluster = workload(None, replicas=30).settle()
    before = set(cluster.names("pods"))
    for name in before:
        cluster.kill(name)
    cluster.settle()
    assert len(set(cluster.names("pods")) - before) == 30
