"""Broken rules are found and name everything concerned; kept rules are not."""

import pytest

from app.domain.log import Event, EventType, ObjectKey, Revision, Stamp
from app.domain.log.chain import canonical_json
from app.domain.log.event import Actor
from app.domain.values.timestamps import Instant
from app.service import invariants
from projections.objects import ObjectsProjection

GROUP = "resource.k8s.io"
FINALIZER = "resource.kubernetes.io/delete-protection"


def world(*trees):
    objects = ObjectsProjection()
    for number, tree in enumerate(trees, start=1):
        plural = {
            "ResourceClaim": "resourceclaims",
            "ResourceSlice": "resourceslices",
            "Pod": "pods",
        }[tree["kind"]]
        group = "" if tree["kind"] == "Pod" else GROUP
        namespace = "" if tree["kind"] == "ResourceSlice" else "default"
        objects.fold(
            Event(
                revision=Revision(number),
                type=EventType.OBJECT_CREATED,
                key=ObjectKey(group, plural, namespace, tree["metadata"]["name"]),
                uid=tree["metadata"]["uid"],
                body=canonical_json(tree),
                stamp=Stamp(time=Instant(0), actor=Actor(user="x"), verb="create"),
            )
        )
    return objects


def claim(name, *devices, finalizers=(FINALIZER,), pods=(), **result):
    results = [
        {"driver": "d", "pool": "p", "device": device, "request": "r", **result}
        for device in devices
    ]
    status = {}
    if results:
        status["allocation"] = {"devices": {"results": results}}
    if pods:
        status["reservedFor"] = [{"resource": "pods", "name": pod, "uid": pod} for pod in pods]
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "ResourceClaim",
        "metadata": {
            "name": name,
            "uid": name,
            "namespace": "default",
            "finalizers": list(finalizers),
        },
        "spec": {},
        "status": status,
    }


def pod(name, *claims, node="n", phase="Running"):
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "uid": name, "namespace": "default"},
        "spec": {
            "nodeName": node,
            "resourceClaims": [{"name": found, "resourceClaimName": found} for found in claims],
        },
        "status": {"phase": phase},
    }


def slice_(*devices, counters=None):
    spec = {
        "driver": "d",
        "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
        "nodeName": "n",
        "devices": list(devices),
    }
    if counters:
        spec["sharedCounters"] = [
            {"name": "set", "counters": {k: {"value": v} for k, v in counters.items()}}
        ]
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": "s", "uid": "s"},
        "spec": spec,
    }


def device(name, consumes=None, capacity=None, *, shared=False):
    found = {"name": name}
    if consumes:
        found["consumesCounters"] = [
            {"counterSet": "set", "counters": {k: {"value": v} for k, v in consumes.items()}}
        ]
    if capacity:
        found["capacity"] = {k: {"value": v} for k, v in capacity.items()}
    if shared:
        found["allowMultipleAllocations"] = True
    return found


def broken(*trees, **options):
    return [
        (found.rule, tuple(key.name for key in found.objects))
        for found in invariants.check_invariants(world(*trees), **options)
    ]


TWO = slice_(device("a"), device("b"))
SHARED = slice_(device("a", capacity={"memory": "10Gi"}, shared=True))


@pytest.mark.parametrize(
    ("trees", "expected"),
    [
        ([TWO, claim("x", "a"), claim("y", "b")], []),
        ([TWO, claim("x", "a"), claim("y", "a")], [("device-in-one-claim", ("x", "y"))]),
        ([TWO, claim("x", "a", "a")], [("device-in-one-claim", ("x",))]),
        ([TWO, claim("x", "a"), claim("y", "a", adminAccess=True)], []),
        ([SHARED, claim("x", "a"), claim("y", "a")], []),
        (
            [
                SHARED,
                claim("x", "a", consumedCapacity={"memory": "6Gi"}),
                claim("y", "a", consumedCapacity={"memory": "4Gi"}),
            ],
            [],
        ),
        (
            [
                SHARED,
                claim("x", "a", consumedCapacity={"memory": "6Gi"}),
                claim("y", "a", consumedCapacity={"memory": "5Gi"}),
            ],
            [("consumed-within-capacity", ("x", "y"))],
        ),
        ([TWO, claim("x", "gone")], [("allocated-device-existed", ("x",))]),
        ([TWO, claim("x", "a", finalizers=())], [("allocation-has-finalizer", ("x",))]),
        ([pod("p"), claim("x", pods=["p"])], [("reservation-has-allocation", ("x",))]),
        ([TWO, claim("x", "a", pods=["q"])], [("reservation-names-pod", ("x", "q"))]),
        ([TWO, claim("x", "a", pods=["p"]), pod("p", "x")], []),
        ([TWO, claim("x", "a"), pod("p", "x")], [("bound-pod-has-claims", ("p", "x"))]),
        ([TWO, claim("x"), pod("p", "x")], [("bound-pod-has-claims", ("p", "x"))]),
        ([pod("p", "x")], [("bound-pod-has-claims", ("p", "x"))]),
        ([claim("x"), pod("p", "x", phase="Succeeded")], []),
        ([claim("x"), pod("p", "x", node="")], []),
    ],
)
def test_rules(trees, expected):
    assert broken(*trees) == expected


def test_overdrawn_counter_names_the_holders():
    stock = slice_(
        device("a", consumes={"units": "5"}),
        device("b", consumes={"units": "6"}),
        counters={"units": "10"},
    )
    assert broken(stock, claim("x", "a")) == []
    (found,) = invariants.check_invariants(world(stock, claim("x", "a"), claim("y", "b")))
    assert found.rule == "counters-not-overdrawn"
    assert [key.name for key in found.objects] == ["x", "y"]
    assert "overdrawn by 1" in found.message


def test_shares_of_one_device_draw_its_counters_once():
    stock = slice_(device("a", consumes={"units": "6"}, shared=True), counters={"units": "10"})
    assert broken(stock, claim("x", "a"), claim("y", "a")) == []


def test_device_that_existed_before_is_accepted():
    assert broken(claim("x", "gone"), known_devices={("d", "p", "gone")}) == []
