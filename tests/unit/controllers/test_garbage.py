"""Dependents that go with their owners, many in one append."""

from collections.abc import Sequence

from app.domain.controllers.batching import BATCH_MAX
from app.domain.errors import Rejected
from app.domain.objects.commands import Command, DeleteObject, Propagation
from app.domain.values.json_tree import JsonObject
from tests.cluster import Cluster, claim_spec

TEMPLATES = "resourceclaimtemplates"
COLLECTOR = "system:serviceaccount:kube-system:generic-garbage-collector"


SPEC: JsonObject = {"spec": claim_spec()}


def template(cluster: Cluster, name: str, owner: JsonObject | None = None) -> JsonObject:
    """An object that nobody but its owner's end makes go."""
    metadata: JsonObject = {"name": name}
    if owner is not None:
        metadata["ownerReferences"] = [
            {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "ResourceClaimTemplate",
                "name": owner["metadata"]["name"],
                "uid": owner["metadata"]["uid"],
                "blockOwnerDeletion": True,
            }
        ]
    tree = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate", "spec": SPEC}
    return cluster.apply({**tree, "metadata": metadata})


def owned(count: int) -> Cluster:
    """One object that owns others."""
    cluster = Cluster()
    owner = template(cluster, "owner")
    for number in range(count):
        template(cluster, f"part-{number:03}", owner)
    return cluster.settle()


def appends(cluster: Cluster) -> list[int]:
    """How many objects each append of the collector removed."""
    found: dict[int, int] = {}
    for event in cluster.line.events:
        if event.stamp.actor.user == COLLECTOR and event.type == "ObjectDeleted":
            found[event.stamp.observed] = found.get(event.stamp.observed, 0) + 1
    return list(found.values())


def gone(cluster: Cluster) -> list[str]:
    return [event.key.name for event in cluster.line.events if event.type == "ObjectDeleted"]


def test_dependents_of_one_owner_go_together():
    cluster = owned(BATCH_MAX + 12)
    cluster.delete(TEMPLATES, "owner")
    cluster.settle()
    assert cluster.names(TEMPLATES) == []
    assert appends(cluster) == [BATCH_MAX, 12]
    assert gone(cluster) == ["owner", *(f"part-{number:03}" for number in range(BATCH_MAX + 12))]


def test_dependent_that_cannot_go_keeps_nobody_else():
    cluster = owned(10)
    is_stuck = True

    def adapt(commands: Sequence[Command]) -> Sequence[Command]:
        for command in commands:
            if isinstance(command, DeleteObject) and command.key.name == "part-003" and is_stuck:
                raise Rejected("not now")
        return commands

    cluster.line._adapt = adapt
    cluster.delete(TEMPLATES, "owner")
    cluster.settle()
    assert cluster.names(TEMPLATES) == ["part-003"]
    assert appends(cluster) == [1] * 9
    is_stuck = False
    cluster.wait(1)
    assert cluster.names(TEMPLATES) == []


def test_owners_that_wait_for_their_dependents_end_after_them():
    cluster = Cluster()
    owners = [template(cluster, f"owner-{number}") for number in range(3)]
    for number, owner in enumerate(owners):
        template(cluster, f"part-{number}", owner)
    for owner in owners:
        name = owner["metadata"]["name"]
        cluster.delete(TEMPLATES, name, propagation=Propagation.FOREGROUND)
    cluster.settle()
    assert cluster.names(TEMPLATES) == []
    assert gone(cluster) == [
        f"{kind}-{number}" for kind in ("part", "owner") for number in range(3)
    ]
    assert appends(cluster) == [3, 3]
