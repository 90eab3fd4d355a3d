"""Which event makes the ResourceClaim controller look at which claim and pod, and when again.

Parity: controllers.md 2.1. Each row is an event in a settled cluster, in which all controllers have
stopped, and the keys that it adds to the two queues.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, cast

import pytest
from msgspec.structs import replace

from app.analysis.views import LiveViews
from app.domain.controllers import pods
from app.domain.controllers.claims import claim_sync, pod_sync
from app.domain.controllers.claims.caches import CACHE_LAG
from app.domain.controllers.claims.claim_sync import ClaimAct
from app.domain.controllers.claims.reconciler import ClaimsReconciler
from app.domain.controllers.plan import Plan
from app.domain.controllers.pods import ClaimEntry, PodFacts
from app.domain.controllers.quirks import ControllerQuirks
from app.domain.controllers.registry import ControllerOptions
from app.domain.controllers.resources import claim_key
from app.domain.controllers.work_queue import WorkQueue
from app.domain.log import EventType
from app.domain.log.chain import canonical_json
from app.domain.objects.write.commands import CreateObject, PatchObject
from app.domain.values.identifiers import Uid
from app.domain.values.timestamps import SECOND, Instant
from tests.cluster import T0, Cluster
from tests.unit.controllers.test_queues import LatePace

LATER = Instant(T0 + 3_600 * SECOND)


def settled() -> Cluster:
    """Pods with a claim each: four on a node, `waits` and `late` for one, `lost` for its template.

    Claim `shared` is allocated and reserved for `first`; `second` waits, and names it, too.
    """
    cluster = Cluster(options=ControllerOptions(off=frozenset({"garbage"})))
    cluster.node()
    cluster.device_class()
    cluster.slice(devices=5)
    cluster.template()
    cluster.claim("shared")
    for name in ("runs", "ends", "ending", "killed"):
        cluster.pod(name, template="gpu")
    cluster.pod("first", claim="shared")
    cluster.settle()
    cluster.pod("plain")
    for name in ("waits", "late", "left"):
        cluster.pod(name, template="gpu", nodeSelector={"none": "such"})
    cluster.pod("second", claim="shared", nodeSelector={"none": "such"})
    for name in ("lost", "gone"):
        cluster.pod(name, template="absent")
    return cluster.settle()


def label(resource: str, name: str) -> Callable[[Cluster], object]:
    return lambda cluster: cluster.patch(resource, name, {"metadata": {"labels": {"a": "b"}}})


def label_claim_of(pod: str) -> Callable[[Cluster], object]:
    return lambda cluster: label("resourceclaims", cluster.claim_of(pod))(cluster)


def remove_claim_of(pod: str) -> Callable[[Cluster], object]:
    return lambda cluster: cluster.delete("resourceclaims", cluster.claim_of(pod))


ROWS: dict[str, tuple[Callable[[Cluster], object], list[str], list[str]]] = {
    "label of a pod that runs": (label("pods", "runs"), [], []),
    "label of a pod that waits for a node": (label("pods", "waits"), [], []),
    "label of a pod that waits for its template": (label("pods", "lost"), [], []),
    "node changes": (label("nodes", "n1"), [], []),
    "claim changes": (label_claim_of("runs"), ["of-runs"], []),
    "shared claim changes": (label("resourceclaims", "shared"), ["shared"], []),
    "claim of nobody is made": (lambda cluster: cluster.claim("new"), ["new"], []),
    "template that is not used is made": (lambda cluster: cluster.template("new"), [], []),
    "template changes": (label("resourceclaimtemplates", "gpu"), [], []),
    "pod of a template that others wait for is removed": (
        lambda cluster: cluster.delete("pods", "gone"),
        [],
        [],
    ),
    "template is made": (lambda cluster: cluster.template("absent"), [], ["lost"]),
    "pod is made": (lambda cluster: cluster.pod("made", template="gpu"), [], ["made"]),
    "pod without claims is made": (lambda cluster: cluster.pod("more"), [], []),
    "pod of a claim is made": (lambda cluster: cluster.pod("third", claim="shared"), [], []),
    "pod with a node is made": (
        lambda cluster: cluster.pod("fourth", claim="shared", nodeName="n1"),
        [],
        ["fourth"],
    ),
    # `fourth` still lacks its reservation: each event about its claim looks at it.
    "shared claim changes again": (
        lambda cluster: cluster.patch(
            "resourceclaims", "shared", {"metadata": {"labels": {"a": "c"}}}
        ),
        ["shared"],
        ["fourth"],
    ),
    "template is removed": (
        lambda cluster: cluster.delete("resourceclaimtemplates", "gpu"),
        [],
        [],
    ),
    "claim is removed": (remove_claim_of("late"), [], ["late"]),
    "pod finishes": (lambda cluster: cluster.finish("ends"), ["of-ends"], []),
    "pod that waits finishes": (lambda cluster: cluster.finish("left"), ["of-left"], []),
    "pod is marked": (lambda cluster: cluster.delete("pods", "ending"), [], []),
    "pod that was marked is removed": (lambda cluster: cluster.kill("ending"), ["of-ending"], []),
    "pod is removed": (lambda cluster: cluster.kill("killed"), ["of-killed"], []),
    "pod that waits is removed": (
        lambda cluster: cluster.delete("pods", "waits"),
        ["of-waits"],
        [],
    ),
    "pod without claims is removed": (lambda cluster: cluster.kill("plain"), [], []),
    "pod of a shared claim is removed": (
        lambda cluster: cluster.kill("first"),
        ["shared"],
        [],
    ),
}


def test_each_event_adds_what_it_may_concern() -> None:
    """One event after the other; generated claims are named like their pods."""
    cluster = settled()
    controller = next(each for each in cluster.line.controllers if each.name == "claims")
    assert isinstance(controller, ClaimsReconciler)
    pods = ("runs", "ends", "ending", "killed", "waits", "late", "left")
    names = {cluster.claim_of(each): f"of-{each}" for each in pods}
    cluster.stop()

    def added() -> list[list[str]]:
        found = []
        for queue in controller.queues:
            assert isinstance(queue, WorkQueue)
            keys: list[str] = []
            while item := queue.take(LATER):
                keys.append(names.get(item[0][1], item[0][1]))
            found.append(keys)
        return found

    added()
    rows = {}
    for row, (change, *_) in ROWS.items():
        before = cluster.line.head.revision
        change(cluster)
        for event in cluster.line.events[before:]:
            controller.fold(event, cluster.line.views)
        rows[row] = added()
    assert rows == {row: expected for row, (_, *expected) in ROWS.items()}


def test_claim_waits_for_the_recorded_pace() -> None:
    """Claims and pods are synced no earlier than the pace says; both queues ask it."""
    cluster = settled()
    pace = LatePace(LATER)
    controller = ClaimsReconciler(pace=pace)
    views = cluster.line.views
    for event in cluster.line.events:
        controller.fold(event, views)
    assert all(queue.depth for queue in controller.queues)
    assert controller.step(views, cluster.line.now) is None
    assert all(not queue.depth for queue in controller.queues)
    assert controller.due() == LATER
    keys = {(event.key.namespace, event.key.name) for event in cluster.line.events}
    assert pace.asked <= 2 * len(keys)


def reports(cluster: Cluster, entry: str) -> int:
    """How often the controller reported that the claim of an entry cannot be made."""
    counts = {
        event.key.name: event.object.get("count", 1)
        for event in cluster.line.events
        if event.key.resource == "events" and event.object["message"].startswith(entry)
    }
    return sum(counts.values())


def test_failures_end_with_a_sync_that_does_everything() -> None:
    """Parity: controllers.md 2.2, an error stops the loop: what was made before ends no failure.

    The tenth failure, at 2.555 s, is followed by a try 2.56 s later; the eleventh one, when the
    first entry gets its claim, comes before that, and the twelfth is followed by one after 10.24 s.
    When both have claims, a failure is a first one again: tries follow after 5, 10, 20 and 40 ms.
    """
    cluster = Cluster(options=ControllerOptions(off=frozenset({"scheduling", "garbage"})))
    cluster.pod(
        resourceClaims=[
            {"name": "a", "resourceClaimTemplateName": "late"},
            {"name": "b", "resourceClaimTemplateName": "latest"},
        ]
    )
    cluster.wait(2.6)
    assert reports(cluster, "PodResourceClaim a") == 10
    cluster.template("late")
    for seconds, count in ((2.4, 1), (0.2, 2), (10, 2), (0.2, 3)):
        cluster.wait(seconds)
        assert reports(cluster, "PodResourceClaim b") == count
    cluster.template("latest")
    cluster.settle()
    assert len(cluster.names("resourceclaims")) == 2
    cluster.delete("resourceclaimtemplates", "late")
    cluster.delete("resourceclaims", cluster.claim_of("pod", "a"))
    cluster.wait(0.1)
    assert reports(cluster, "PodResourceClaim a") == 15


def test_report_names_the_version_of_the_pod() -> None:
    cluster = Cluster()
    pod = cluster.pod(template="absent")
    cluster.settle()
    (event,) = (each.object for each in cluster.line.events if each.key.resource == "events")
    about = event["involvedObject"]
    metadata = pod["metadata"]
    assert (about["kind"], about["name"], about["uid"]) == ("Pod", "pod", metadata["uid"])
    assert about["resourceVersion"] == metadata["resourceVersion"]


def test_each_write_names_the_event_that_provoked_it() -> None:
    """The claim, its name in the pod and the report come of the pod, the release of its end."""
    cluster = Cluster(options=ControllerOptions(off=frozenset({"garbage"})))
    cluster.node()
    cluster.device_class()
    cluster.slice()
    cluster.template()

    def causes(change: Callable[[], object]) -> tuple[set[int], int]:
        """The causes of what the controller writes after a change, and the change."""
        before = cluster.line.head.revision
        change()
        cluster.settle()
        written = {
            event.stamp.cause
            for event in cluster.line.events
            if event.revision > before
            and event.stamp.actor.user.endswith(":resource-claim-controller")
        }
        return written, before + 1

    found = causes(lambda: cluster.pod("pod", template="gpu"))
    assert found == ({found[1]}, found[1])
    found = causes(lambda: cluster.pod("lost", template="absent"))
    assert found == ({found[1]}, found[1])
    found = causes(lambda: cluster.finish("pod"))
    assert found[1] in found[0]


def test_pod_that_names_its_extended_claim_no_longer_is_forgotten() -> None:
    cluster = Cluster(options=ControllerOptions(off=frozenset({"scheduling", "garbage"})))
    cluster.claim("made")
    for name in ("pod", "other"):
        cluster.pod(name)
        named = {"resourceClaimName": "made", "requestMappings": []}
        status = {"status": {"extendedResourceClaimStatus": named}}
        cluster.patch("pods", name, status, subresource="status")
    views, controller = cluster.line.views, ClaimsReconciler()
    nothing = {"status": {"extendedResourceClaimStatus": None}}
    cluster.patch("pods", "pod", nothing, subresource="status")
    for event in cluster.line.events:
        controller.fold(event, views)
    claims = controller.queues[0]
    assert isinstance(claims, WorkQueue)
    while claims.take(LATER):
        pass
    for name, expected in (("pod", []), ("other", ["made"])):
        before = cluster.line.head.revision
        cluster.kill(name)
        for event in cluster.line.events[before:]:
            controller.fold(event, views)
        added = []
        while item := claims.take(LATER):
            added.append(item[0][1])
        assert added == expected


@pytest.mark.parametrize(
    ("act", "known", "outcome", "follows"),
    [
        (ClaimAct.FIRST, True, "Deallocated", (ClaimAct.FINALIZER, ClaimAct.DELETION)),
        (ClaimAct.FIRST, False, "Deallocated", (ClaimAct.FINALIZER,)),
        (ClaimAct.FINALIZER, True, "Unprotected", ()),
        (ClaimAct.DELETION, True, "Deleted", ()),
    ],
)
def test_claim_of_a_removed_pod_is_deleted_while_the_cache_has_the_pod(
    act: ClaimAct, known: bool, outcome: str, follows: tuple[ClaimAct, ...]
) -> None:
    """Without it the owner is gone, and the garbage collector deletes the claim."""
    cluster = settled()
    name, uid = cluster.claim_of("runs"), cluster.must("pods", "runs")["metadata"]["uid"]
    cluster.stop()
    cluster.kill("runs")
    gone = {uid} if known else set()
    writes = claim_sync.next_write(cluster.line.views.objects, "default", name, act, gone)
    assert writes is not None
    assert (writes.outcome, writes.follows, len(writes.commands)) == (outcome, follows, 1)


def entry(name: str, **of: str) -> ClaimEntry:
    return ClaimEntry(name=name, **of)


@pytest.mark.parametrize(
    ("entries", "generated", "node", "expected"),
    [
        ([], (), "", False),
        ([entry("a", template="t")], (), "", True),
        ([entry("a", template="t")], (("a", None),), "", False),
        ([entry("a", template="t")], (("a", "missing"),), "", True),
        ([entry("a", template="t")], (("a", "own"),), "", False),
        ([entry("a", template="t")], (("a", "own"),), "n1", True),
        ([entry("a", template="t")], (("a", "others"),), "n1", False),
        ([entry("a", claim="missing")], (), "n1", False),
        ([entry("a", claim="others")], (), "", False),
        ([entry("a", claim="others")], (), "n1", True),
        ([entry("a", claim="reserved")], (), "n1", False),
        ([entry("a", claim="new")], (), "n1", False),
        # each entry counts, whatever the others are
        ([entry("a"), entry("b", template="t")], (), "", True),
        ([entry("a", claim="missing"), entry("b", template="t")], (), "", True),
        ([entry("a", claim="reserved"), entry("b", claim="others")], (), "n1", True),
        ([entry("a", template="t"), entry("b", template="t")], (("a", None),), "", True),
        (
            [entry("a", template="t"), entry("b", claim="others")],
            (("a", "others"),),
            "n1",
            True,
        ),
    ],
)
def test_pod_needs_work_for_any_of_its_entries(
    entries: list[ClaimEntry],
    generated: tuple[tuple[str, str | None], ...],
    node: str,
    expected: bool,
) -> None:
    """Parity: controllers.md 2.1. All claims but `new` are allocated; `own` is the pod's."""
    pod = PodFacts(
        namespace="ns",
        name="p",
        uid=Uid("u"),
        node=node,
        entries=tuple(entries),
        generated=generated,
    )
    owner = [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u", "controller": True}]
    user = {"resource": "pods", "name": "p", "uid": "u"}
    claims = {
        "own": ({"ownerReferences": owner}, {"allocation": {"devices": {}}}),
        "others": ({}, {"allocation": {"devices": {}}}),
        "reserved": ({}, {"allocation": {"devices": {}}, "reservedFor": [user]}),
        "new": ({}, {}),
    }
    objects = {
        claim_key("ns", name): {
            "metadata": {"name": name, "namespace": "ns", **more},
            "status": status,
        }
        for name, (more, status) in claims.items()
    }
    needs = partial(pod_sync.needs_work, cast(Any, objects))
    assert needs(pod) is expected
    assert needs(replace(pod, is_deleting=True)) is False
    assert needs(replace(pod, phase="Succeeded")) is False
    assert needs(replace(pod, phase="Succeeded"), ControllerQuirks(c8=True)) is expected
    known = needs(pod, is_reserved=lambda place, uid: (*place, uid) == ("ns", "others", "u"))
    assert known is (expected and all(each.claim != "others" for each in entries))


def test_refused_write_about_a_pod_is_tried_again_with_a_growing_delay() -> None:
    """So is one about a claim. A success in between ends the failures of that key alone."""
    for change, kind in ((lambda made: made.pod("new", template="gpu"), "pod"), (finish, "claim")):
        cluster = settled()
        cluster.stop()
        change(cluster)
        controller = ClaimsReconciler()
        views, now = cluster.line.views, cluster.line.now
        *earlier, last = cluster.line.events
        for event in earlier:
            controller.fold(event, views)
        for queue in controller.queues:
            assert isinstance(queue, WorkQueue)
            queue.clear()
        controller.fold(last, views)
        delays = []
        for _ in range(3):
            plan = next_plan(controller, views, now)
            assert plan.key.startswith(f"{kind}:")
            if kind == "pod":
                (command,) = plan.commands
                assert isinstance(command, CreateObject)
            controller.settled(plan, "refused", now)
            if kind == "pod":
                # The refusal of a claim is reported at once, and the report ends the try.
                controller.settled(next_plan(controller, views, now), None, now)
            due = controller.due()
            assert due is not None
            delays.append(due - now)
            now = due
        assert delays == [5_000, 10_000, 20_000]


def finish(cluster: Cluster) -> None:
    cluster.finish("runs")


def next_plan(controller: ClaimsReconciler, views: Any, now: Instant) -> Plan:
    plan = controller.step(views, now)
    assert plan is not None
    assert not plan.is_empty
    return plan


@pytest.mark.parametrize(
    ("gone", "outcome", "follows"),
    [
        (["first"], "Released", ()),
        (["first", "fourth"], "Deallocated", (ClaimAct.FINALIZER,)),
    ],
)
def test_first_write_of_a_release_is_named_by_what_it_does(
    gone: list[str], outcome: str, follows: tuple[ClaimAct, ...]
) -> None:
    """The devices are given back with the last reservation."""
    cluster = settled()
    cluster.pod("fourth", claim="shared", nodeName="n1")
    cluster.settle()
    cluster.stop()
    for name in gone:
        cluster.kill(name)
    objects = cluster.line.views.objects
    writes = claim_sync.next_write(objects, "default", "shared", ClaimAct.FIRST)
    assert writes is not None
    assert (writes.outcome, writes.follows) == (outcome, follows)
    assert [each["name"] for each in writes.removed] == gone
    assert writes.kept == 2 - len(gone)


def test_removed_pod_stays_in_the_emulated_cache_of_a_replay_for_a_while() -> None:
    cluster = settled()
    cluster.stop()
    uids = {name: cluster.must("pods", name)["metadata"]["uid"] for name in ("runs", "ends")}
    live, paced = ClaimsReconciler(), ClaimsReconciler(pace=LatePace(LATER))
    cluster.kill("runs")
    first = cluster.line.now
    cluster.wait(0.4)
    cluster.kill("ends")
    for event in cluster.line.events:
        for controller in (live, paced):
            controller.fold(event, cluster.line.views)
    lag = Instant(first + CACHE_LAG)
    assert set(paced._lately_gone(Instant(lag - 1))) == {uids["runs"], uids["ends"]}
    assert set(paced._lately_gone(lag)) == {uids["ends"]}
    assert set(paced._lately_gone(Instant(lag + CACHE_LAG))) == set()
    assert not live._lately_gone(first)


def test_batch_of_which_some_writes_are_refused_is_made_again_without_them() -> None:
    """A quota has room for two of five claims: the first pods get them, the others a report."""
    cluster = Cluster(options=ControllerOptions(off=frozenset({"scheduling", "garbage"})))
    cluster.template()
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "few"}}
    hard = {"count/resourceclaims.resource.k8s.io": "2"}
    cluster.apply({**quota, "spec": {"hard": hard}})
    cluster.settle()
    names = [f"p{number}" for number in range(5)]
    for name in names:
        cluster.pod(name, template="gpu")
    cluster.settle()
    owners = [
        cluster.must("resourceclaims", name)["metadata"]["ownerReferences"][0]["name"]
        for name in cluster.names("resourceclaims")
    ]
    assert sorted(owners) == names[:2]
    assert [name for name in names if cluster.messages(name)] == names[2:]
    assert all("exceeded quota: few" in text for text in cluster.messages())
    assert cluster.claim_of("p0") != cluster.claim_of("p1")
    cluster.delete("resourcequotas", "few")
    cluster.wait(2)
    assert len({cluster.claim_of(name) for name in names}) == 5


def test_recorded_release_is_decided_again_at_its_recorded_instant() -> None:
    """The instant of its inputs, although it was stored later; the stamp where there is none."""
    cluster = settled()
    cluster.finish("runs")
    cluster.settle()
    controller = ClaimsReconciler()
    views = LiveViews(cluster.profile)
    decision = next(
        event
        for event in cluster.line.events
        if event.type is EventType.DECISION_RECORDED and event.object["controller"] == "claims"
    )
    for event in cluster.line.events[: decision.stamp.observed]:
        views.fold(event)
    recorded = decision.object["inputs"]["now"]
    stored = Instant(decision.stamp.time + SECOND)
    stamp = replace(decision.stamp, time=stored)
    body = {**decision.object, "inputs": {**decision.object["inputs"], "now": 0}}
    for again, now in (
        (replace(decision, stamp=stamp), recorded),
        (replace(decision, stamp=stamp, body=canonical_json(body), tree=None), stored),
    ):
        plan = controller.redecide(views, again)
        assert plan is not None
        assert plan.decision is not None
        assert plan.decision.inputs["now"] == now
        assert plan.decision.outcome == decision.object["outcome"]
        assert plan.cause == decision.object["cause"]


@pytest.mark.parametrize(
    ("fresh", "names"),
    [
        ([], None),
        ([("b", "new")], [("b", "new")]),
        ([("a", "new")], [("a", "new"), ("b", "old")]),
        ([("b", "y"), ("a", "x")], [("a", "x"), ("b", "y")]),
    ],
)
def test_names_of_claims_are_entered_in_the_order_of_the_pod(
    fresh: list[tuple[str, str]], names: list[tuple[str, str]] | None
) -> None:
    """Those of other entries stay; a name that has no entry any more goes."""
    known = [("b", "old"), ("gone", "older")] if fresh != [("b", "new")] else []
    statuses = [{"name": entry, "resourceClaimName": name} for entry, name in known]
    entries = [{"name": name, "resourceClaimTemplateName": "t"} for name in "ab"]
    cluster = Cluster(options=ControllerOptions(off=frozenset({"claims"})))
    cluster.pod(resourceClaims=entries)
    if statuses:
        status = {"status": {"resourceClaimStatuses": statuses}}
        cluster.patch("pods", "pod", status, subresource="status")
    pod = pods.facts_of(next(e for e in reversed(cluster.line.events) if e.key.name == "pod"))
    write = pod_sync.enter_names(pod, fresh, ControllerQuirks())
    if names is None:
        assert write is None
        return
    assert write is not None
    assert isinstance(write.command, PatchObject)
    assert (write.command.key.name, write.command.subresource) == ("pod", "status")
    assert write.command.body["status"]["resourceClaimStatuses"] == [
        {"name": entry, "resourceClaimName": name} for entry, name in names
    ]
