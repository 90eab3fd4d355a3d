"""Who set a scheduling gate, and who removed it from other pods, in `why`."""

from typing import Any

from app.bootstrap import stores
from app.domain.log import Actor, Head, ObjectKey
from app.domain.objects.write.commands import CreateObject, PatchObject, PatchType
from app.domain.values.timestamps import Instant
from tests.cluster import Cluster
from tests.unit.service.test_explaining_elsewhere import why

GATE = "batch.test/quota"


def submit(cluster: Cluster, command: Any, user: str) -> None:
    cluster.line.submit(command, actor=Actor(user=user))


def gated(cluster: Cluster, name: str, *gates: str) -> None:
    spec = {
        "containers": [{"name": "main", "image": "example.com/job:1"}],
        "schedulingGates": [{"name": gate} for gate in gates],
    }
    metadata = {"name": name, "namespace": "default"}
    tree = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
    key = ObjectKey("", "pods", "default", name)
    submit(cluster, CreateObject(key=key, version="v1", tree=tree), "dora")


def lift(cluster: Cluster, name: str, user: str) -> None:
    body = [{"op": "remove", "path": "/spec/schedulingGates"}]
    key = ObjectKey("", "pods", "default", name)
    submit(cluster, PatchObject(key=key, version="v1", type=PatchType.JSON, body=body), user)


async def said_of(cluster: Cluster, name: str) -> str:
    store = stores.memory_store()
    info = await store.log.create_history("here", seed=1, settings={}, created=Instant(0))
    await store.log.append(info.id, expected=Head(), events=cluster.line.events)
    answer = await why(store, "here", kind="pod", name=name, namespace="default")
    return " | ".join(each["text"] for each in answer["reasons"]["children"])


async def test_gate_names_who_set_it_and_who_removed_it_from_another_pod() -> None:
    cluster = Cluster()
    cluster.node("n1")
    gated(cluster, "first", GATE)
    gated(cluster, "kept", GATE)
    lift(cluster, "first", "quota-bot")
    cluster.settle()
    said = await said_of(cluster, "kept")
    assert f"gate {GATE} was set with the pod, by dora at " in said
    assert f"gate {GATE} was removed from pod default/first, by quota-bot at " in said
    assert "of this pod nobody has removed it" in said


async def test_gate_that_nobody_removed_anywhere_has_no_remover() -> None:
    """Neither the removal of another gate nor a new pod of the same name without it counts."""
    cluster = Cluster()
    cluster.node("n1")
    gated(cluster, "first", "batch.test/other")
    gated(cluster, "again", GATE)
    gated(cluster, "kept", GATE)
    lift(cluster, "first", "quota-bot")
    cluster.delete("pods", "again", grace_seconds=0)
    gated(cluster, "again")
    cluster.settle()
    said = await said_of(cluster, "kept")
    assert "was set with the pod, by dora at " in said
    assert "was removed" not in said
    assert "quota-bot" not in said
