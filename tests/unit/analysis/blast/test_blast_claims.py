"""Claims that are deleted, where the verdict is planted."""

import pytest

from app.analysis.blast import text
from app.analysis.blast.compare import ProposedDeletion
from app.analysis.blast.radius import BlastRadius, ClaimDeletion, Prospect
from app.domain.errors import NotFound
from tests.cluster import DRIVER, Cluster
from tests.unit.analysis.blast.worlds import ask

PROTECTION = "resource.kubernetes.io/delete-protection"


def claimed(*, devices: int = 1) -> Cluster:
    """A claim on the only node, reserved for one pod."""
    cluster = Cluster()
    cluster.device_class()
    cluster.template()
    cluster.node("n1", pods=10)
    cluster.slice("n1", devices=devices)
    cluster.claim("shared")
    cluster.pod("holds", claim="shared")
    return cluster.settle()


def delete(cluster: Cluster, name: str, *more: ProposedDeletion) -> BlastRadius:
    return ask(cluster, ProposedDeletion(kind="resourceclaim", name=f"default/{name}"), *more)


def claim_line(answer: BlastRadius) -> str:
    page = list(text.lines(answer, 5))
    return page[page.index("claims that are deleted: 1") + 1].strip()


def test_reserved_claim_is_held_with_its_device_and_blocks_who_comes_later():
    cluster = claimed()
    cluster.patch("nodes", "n1", {"spec": {"unschedulable": True}})
    cluster.pod("later", claim="shared")
    cluster.settle()
    answer = delete(cluster, "shared")
    (claim,) = answer.claim_deletions
    assert (answer.effects[0].action, claim.is_held) == ("terminating", True)
    assert (claim.reserved_for, claim.blocked, claim.remade) == (("holds",), ("later",), ())
    assert (claim.finalizers, claim.devices) == ((PROTECTION,), (f"{DRIVER}/n1/gpu-0",))
    assert claim_line(answer) == (
        "default/shared stays until the pods that reserve it have ended: holds; "
        f"{DRIVER}/n1/gpu-0 comes free only then; later cannot start while it is terminating"
    )
    assert not answer.pods
    assert answer.totals["pods_evicted"] == 0


def test_pod_that_would_share_a_held_claim_gets_no_place():
    cluster = claimed()
    cluster.patch("nodes", "n1", {"spec": {"unschedulable": True}})
    cluster.pod("later", claim="shared")
    cluster.settle()
    # Nobody has tried it yet on the node that takes pods again.
    cluster.line.controllers = [c for c in cluster.line.controllers if c.name != "scheduling"]
    cluster.patch("nodes", "n1", {"spec": {"unschedulable": False}})
    cluster.settle()
    answer = delete(cluster, "shared")
    assert [(pod.name, pod.prospect) for pod in answer.waiting] == [("later", Prospect.KEPT)]
    assert (answer.totals["waiting"], answer.totals["waiting_kept"]) == (1, 1)
    assert any(
        "would get none; without the change, on n1" in line for line in text.lines(answer, 5)
    )


def test_devices_of_a_held_claim_are_given_to_nobody_before_its_pods_end():
    cluster = claimed()
    cluster.pod("waits", template="gpu")
    cluster.settle()
    assert not delete(cluster, "shared").waiting
    pod = ProposedDeletion(kind="pod", name="default/holds")
    answer = delete(cluster, "shared", pod)
    assert [(one.name, one.prospect) for one in answer.waiting] == [("waits", Prospect.FREED)]


def test_claim_that_nobody_uses_goes_and_blocks_who_names_it():
    cluster = claimed()
    cluster.claim("spare")
    cluster.pod("names", claim="spare")
    cluster.settle()
    answer = delete(cluster, "spare")
    (claim,) = answer.claim_deletions
    assert (answer.effects[0].action, claim.is_held, claim.devices) == ("deleted", False, ())
    assert claim.blocked == ("names",)
    assert claim_line(answer) == (
        "default/spare goes at once; names cannot start until it is made again"
    )


def test_unreserved_devices_come_free_at_once():
    cluster = claimed()
    cluster.pod("waits", template="gpu")
    cluster.settle()
    # Reserved for nobody and still allocated, as other consumers than pods leave a claim.
    cluster.line.controllers = [c for c in cluster.line.controllers if c.name != "claims"]
    cluster.patch(
        "resourceclaims", "shared", {"status": {"reservedFor": None}}, subresource="status"
    )
    answer = delete(cluster, "shared")
    (claim,) = answer.claim_deletions
    assert (claim.is_held, claim.devices) == (False, (f"{DRIVER}/n1/gpu-0",))
    assert [(one.name, one.prospect, one.node) for one in answer.waiting] == [
        ("waits", Prospect.FITS, "n1")
    ]


def test_claim_of_a_template_is_made_again_for_its_waiting_pod():
    cluster = claimed()
    cluster.pod("waits", template="gpu")
    cluster.settle()
    answer = delete(cluster, cluster.claim_of("waits"))
    (claim,) = answer.claim_deletions
    assert (claim.is_held, claim.blocked, claim.remade) == (False, (), ("waits",))
    assert not answer.waiting
    cluster.delete("resourceclaimtemplates", "gpu")
    (claim,) = delete(cluster, cluster.claim_of("waits")).claim_deletions
    assert (claim.blocked, claim.remade) == (("waits",), ())


def test_foreign_finalizer_holds_a_claim_without_devices():
    cluster = claimed()
    cluster.claim("spare")
    cluster.patch("resourceclaims", "spare", {"metadata": {"finalizers": ["example.com/mine"]}})
    cluster.settle()
    answer = delete(cluster, "spare")
    assert claim_line(answer) == (
        "default/spare stays until its finalizers are removed: example.com/mine"
    )


def test_claim_that_is_not_there_is_refused():
    with pytest.raises(NotFound):
        delete(claimed(), "none")


@pytest.mark.parametrize(
    ("claim", "said"),
    [
        ({"is_held": False}, "goes at once"),
        ({"is_held": False, "devices": ("a",)}, "goes at once; a comes free with that"),
        (
            {"is_held": False, "devices": ("a", "b")},
            "goes at once; a, b come free with that",
        ),
        (
            {"is_held": True, "finalizers": ("x/y", "z"), "devices": ("a",)},
            "stays until its finalizers are removed: x/y, z; a comes free with that",
        ),
        (
            {"is_held": True, "reserved_for": ("p", "q"), "devices": ("a",)},
            "stays until the pods that reserve it have ended: p, q; a comes free only then",
        ),
        (
            {"is_held": True, "reserved_for": ("p",), "blocked": ("q",), "blocked_count": 1},
            "stays until the pods that reserve it have ended: p; q cannot start while it is "
            "terminating",
        ),
        (
            {"is_held": False, "blocked": ("q",), "blocked_count": 3},
            "goes at once; q and 2 more cannot start until it is made again",
        ),
        (
            {"is_held": False, "remade": ("p",)},
            "goes at once; another is made from the template of p",
        ),
    ],
)
def test_line_of_a_claim_says_what_keeps_it_and_when_its_devices_come_free(claim, said):
    assert text.claim_deletion(ClaimDeletion(namespace="ns", name="c", **claim)) == f"ns/c {said}"
