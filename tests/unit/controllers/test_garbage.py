"""Dependents that go with their owners, many in one append."""

from collections.abc import Sequence

import pytest

from app.domain.controllers.batching import BATCH_MAX
from app.domain.controllers.garbage.collector import DEPENDENTS_MAX
from app.domain.errors import Rejected
from app.domain.objects.write.commands import Command, DeleteObject, Propagation
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

    cluster.line.adapt = adapt
    cluster.delete(TEMPLATES, "owner")
    cluster.settle()
    assert cluster.names(TEMPLATES) == ["part-003"]
    # Ten and then five are refused. Two pass, so that the next batch is of four.
    assert appends(cluster) == [2, 4, 2, 1]
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


def reference(owner: JsonObject, **more: object) -> JsonObject:
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "blockOwnerDeletion": True,
        **more,
    }


def circle(size: int) -> Cluster:
    """Objects of which each owns the next one, and the last one the first."""
    cluster = Cluster()
    trees = [template(cluster, f"c{number}") for number in range(size)]
    for number in range(size):
        owners = [reference(trees[number - 1])]
        cluster.patch(TEMPLATES, f"c{number}", {"metadata": {"ownerReferences": owners}})
    return cluster.settle()


@pytest.mark.parametrize("size", [2, 3, 5])
def test_foreground_deletion_of_a_circle_ends(size):
    cluster = circle(size)
    cluster.delete(TEMPLATES, "c0", propagation=Propagation.FOREGROUND)
    cluster.settle()
    assert cluster.names(TEMPLATES) == []


def test_circle_of_which_all_are_deleted_in_the_foreground_ends():
    cluster = circle(3)
    for name in ("c0", "c1", "c2"):
        cluster.delete(TEMPLATES, name, propagation=Propagation.FOREGROUND)
    cluster.settle()
    assert cluster.names(TEMPLATES) == []


def test_dependent_of_an_owner_in_another_namespace_is_collected():
    cluster = Cluster(namespaces=("default", "other"))
    owner = template(cluster, "owner")
    for namespace in ("default", "other"):
        cluster.apply(
            {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "ResourceClaimTemplate",
                "metadata": {
                    "name": "part",
                    "namespace": namespace,
                    "ownerReferences": [reference(owner)],
                },
                **SPEC,
            }
        )
    cluster.settle()
    assert cluster.get(TEMPLATES, "part", "other") is None
    assert cluster.get(TEMPLATES, "part") is not None


def test_owner_of_the_right_uid_and_another_name_does_not_keep_a_dependent():
    cluster = Cluster()
    owner = template(cluster, "owner")
    template(cluster, "part")
    change = {"metadata": {"ownerReferences": [reference(owner, name="other")]}}
    cluster.patch(TEMPLATES, "part", change)
    cluster.settle()
    assert cluster.names(TEMPLATES) == ["owner"]


def test_cluster_scoped_object_with_a_namespaced_owner_stays():
    cluster = Cluster()
    owner = template(cluster, "owner")
    metadata = {"name": "gpu.example.com", "ownerReferences": [reference(owner)]}
    tree = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "spec": {}}
    cluster.apply({**tree, "metadata": metadata})
    cluster.settle()
    cluster.delete(TEMPLATES, "owner")
    cluster.settle()
    assert cluster.names("deviceclasses") == ["gpu.example.com"]


def test_dependent_of_a_cluster_scoped_owner_stays_as_long_as_it():
    cluster = Cluster()
    cluster.device_class()
    template(cluster, "part")
    owners = [reference(cluster.must("deviceclasses", "gpu"))]
    cluster.patch(TEMPLATES, "part", {"metadata": {"ownerReferences": owners}})
    cluster.settle()
    assert cluster.names(TEMPLATES) == ["part"]
    cluster.delete("deviceclasses", "gpu")
    cluster.settle()
    assert cluster.names(TEMPLATES) == []


@pytest.mark.parametrize("others", [0, 1])
@pytest.mark.parametrize("count", [0, 1, 3, DEPENDENTS_MAX, DEPENDENTS_MAX + 1])
def test_orphans_lose_the_reference_to_their_owner_alone(count, others):
    cluster = Cluster()
    owner, other = template(cluster, "owner"), template(cluster, "other")
    held = {"metadata": {"finalizers": ["example.com/hold"]}}
    cluster.patch(TEMPLATES, "owner", held)
    kept = [reference(other)] * others
    for number in range(count):
        owners = [reference(owner), *kept]
        template(cluster, f"part-{number:03}")
        cluster.patch(TEMPLATES, f"part-{number:03}", {"metadata": {"ownerReferences": owners}})
    cluster.delete(TEMPLATES, "owner", propagation=Propagation.ORPHAN)
    cluster.settle()
    # The finalizer of the policy goes when all are orphans; that of somebody else stays.
    assert cluster.must(TEMPLATES, "owner")["metadata"]["finalizers"] == ["example.com/hold"]
    cluster.patch(TEMPLATES, "owner", {"metadata": {"finalizers": None}})
    cluster.settle()
    parts = [f"part-{number:03}" for number in range(count)]
    assert cluster.names(TEMPLATES) == ["other", *parts]
    for name in parts:
        assert cluster.must(TEMPLATES, name)["metadata"].get("ownerReferences", []) == kept


def by_collector(cluster: Cluster) -> list[tuple[str, str]]:
    """The objects that the collector wrote, each with what it did."""
    return [
        (event.key.name, event.stamp.verb)
        for event in cluster.line.events
        if event.stamp.actor.user == COLLECTOR and event.is_about_object
    ]


@pytest.mark.parametrize(
    ("blocks", "is_marked", "has_other", "writes", "left"),
    [
        (
            True,
            False,
            False,
            [("part", "delete"), ("part", "update")],
            ["other", "owner", "part"],
        ),
        (True, True, False, [], ["other", "owner", "part"]),
        (
            False,
            False,
            False,
            [("part", "delete"), ("owner", "update"), ("part", "update")],
            ["other", "part"],
        ),
        (True, False, True, [("part", "patch"), ("owner", "update")], ["other", "part"]),
    ],
)
def test_owner_deleted_in_the_foreground_waits_for_dependents_that_block_it(
    blocks, is_marked, has_other, writes, left
):
    cluster = Cluster()
    owner, other = template(cluster, "owner"), template(cluster, "other")
    template(cluster, "part")
    owners = [reference(owner, blockOwnerDeletion=blocks), *[reference(other)] * has_other]
    metadata = {"ownerReferences": owners, "finalizers": ["example.com/hold"]}
    cluster.patch(TEMPLATES, "part", {"metadata": metadata})
    if is_marked:
        cluster.delete(TEMPLATES, "part")
    cluster.settle()
    cluster.delete(TEMPLATES, "owner", propagation=Propagation.FOREGROUND)
    cluster.settle()
    assert by_collector(cluster) == writes
    assert cluster.names(TEMPLATES) == left
    metadata = cluster.must(TEMPLATES, "part")["metadata"]
    assert metadata.get("ownerReferences") == ([reference(other)] if has_other else owners)
    assert ("deletionTimestamp" in metadata) != has_other
    if not has_other:
        cluster.patch(TEMPLATES, "part", {"metadata": {"finalizers": None}})
        cluster.settle()
        assert cluster.names(TEMPLATES) == ["other"]


@pytest.mark.parametrize(
    "owners",
    [
        None,
        [{"blockOwnerDeletion": False}],
        [{"blockOwnerDeletion": None}],
        [{"uid": "another", "name": "another"}],
    ],
)
@pytest.mark.parametrize("restarts", [False, True])
def test_owner_ends_when_the_last_dependent_that_it_waits_for_blocks_it_no_longer(owners, restarts):
    cluster = Cluster()
    owner = template(cluster, "owner")
    for name in ("part", "rest"):
        template(cluster, name, owner)
        cluster.patch(TEMPLATES, name, {"metadata": {"finalizers": ["example.com/hold"]}})
    cluster.delete(TEMPLATES, "owner", propagation=Propagation.FOREGROUND)
    cluster.settle()
    if restarts:
        cluster.restart()
    cluster.patch(TEMPLATES, "rest", {"metadata": {"finalizers": None}})
    cluster.patch(TEMPLATES, "part", {"metadata": {"labels": {"a": "b"}}})
    cluster.settle()
    assert cluster.names(TEMPLATES) == ["owner", "part"]
    references = owners and [reference(owner, **each) for each in owners]
    cluster.patch(TEMPLATES, "part", {"metadata": {"ownerReferences": references}})
    cluster.settle()
    assert cluster.names(TEMPLATES) == ["part"]


def test_dependent_that_comes_while_its_owner_waits_is_waited_for_too():
    cluster = Cluster()
    owner = template(cluster, "owner")
    template(cluster, "first", owner)
    cluster.patch(TEMPLATES, "first", {"metadata": {"finalizers": ["example.com/hold"]}})
    cluster.delete(TEMPLATES, "owner", propagation=Propagation.FOREGROUND)
    cluster.settle()
    template(cluster, "late", owner)
    cluster.patch(TEMPLATES, "late", {"metadata": {"finalizers": ["example.com/hold"]}})
    cluster.patch(TEMPLATES, "first", {"metadata": {"finalizers": None}})
    cluster.settle()
    assert cluster.names(TEMPLATES) == ["late", "owner"]
    cluster.patch(TEMPLATES, "late", {"metadata": {"ownerReferences": None}})
    cluster.settle()
    assert cluster.names(TEMPLATES) == ["late"]
