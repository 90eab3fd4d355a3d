"""The biography of a device that several claims name at a time."""

import json

import msgspec
import pytest

from app.analysis.explain.hardware import biography
from app.analysis.explain.hardware.biography import Biography
from app.domain.log import Actor, Origin
from app.domain.log.records import IMPORTER_USER, Loss
from app.domain.values import identifiers
from tests.cluster import DRIVER, Cluster

KINDS = {"whole": {}, "share": {"shareID": "s"}, "admin": {"adminAccess": True}}


@pytest.mark.parametrize(
    ("kinds", "is_twice"),
    [
        (("whole", "admin"), False),
        (("admin", "admin"), False),
        (("share", "share"), False),
        (("whole", "whole"), True),
        (("whole", "share"), True),
    ],
)
def test_only_claims_that_exclude_each_other_hold_a_device_twice(kinds, is_twice):
    """Administrative access takes nothing, shares are made to go together (allocator.md 1.1)."""
    cluster = Cluster()
    life = Biography(identifiers.parse_device(f"{DRIVER}/n1/d0"))
    for number, kind in enumerate(kinds):
        cluster.claim(f"c{number}")
        created = cluster.line.events[-1]
        result = {"request": "gpu", "driver": DRIVER, "pool": "n1", "device": "d0", **KINDS[kind]}
        tree = {**created.object, "status": {"allocation": {"devices": {"results": [result]}}}}
        life.fold(msgspec.structs.replace(created, body=json.dumps(tree).encode(), tree=None))
    (held,) = (reason for reason in life.reasons(cluster.line.now) if "held it" in reason.text)
    assert held.text.startswith("one device in two claims") is is_twice
    assert len(held.children) == 2


@pytest.mark.parametrize(("pods", "words"), [(["a"], "for pod a"), (["a", "b"], "for pods a, b")])
def test_pods_of_a_claim_are_named_in_the_singular_or_plural(pods, words):
    cluster = Cluster()
    life = Biography(identifiers.parse_device(f"{DRIVER}/n1/d0"))
    cluster.claim("c")
    created = cluster.line.events[-1]
    result = {"request": "gpu", "driver": DRIVER, "pool": "n1", "device": "d0"}
    users = [{"resource": "pods", "name": name, "uid": name} for name in pods]
    status = {"allocation": {"devices": {"results": [result]}}, "reservedFor": users}
    body = json.dumps({**created.object, "status": status}).encode()
    life.fold(msgspec.structs.replace(created, body=body, tree=None))
    (held,) = (
        child.text
        for reason in life.reasons(cluster.line.now)
        for child in (reason, *reason.children)
        if ", for pod" in child.text
    )
    assert held.endswith(words)


def publish(cluster, name, taints=(), *, generation=1, device="d0"):
    tree = {"name": device, "taints": [*taints]}
    pool = {"name": "n1", "generation": generation, "resourceSliceCount": 2}
    spec = {"driver": DRIVER, "nodeName": "n1", "pool": pool, "devices": [tree]}
    cluster.create("resource.k8s.io/v1", "ResourceSlice", name, spec=spec)


def life_in(cluster, **switches):
    life = Biography(identifiers.parse_device(f"{DRIVER}/n1/d0"), **switches)
    for event in cluster.line.events:
        life.fold(event)
    return [reason.text for reason in life.reasons(cluster.line.now)]


def test_device_of_two_slices_at_a_time_has_both_in_its_life():
    """A driver publishes the new slice before it deletes the old one, or names a device twice."""
    cluster = Cluster()
    publish(cluster, "old")
    publish(cluster, "new")
    both = [text for text in life_in(cluster) if "published in" in text]
    assert [text[:23] for text in both] == ["published in slice old ", "published in slice new "]
    cluster.delete("resourceslices", "old", "")
    texts = [text for text in life_in(cluster) if "published in" in text]
    assert texts[0].startswith("published in slice new ")
    assert texts[1].startswith("before, published in slice old ")
    cluster.delete("resourceslices", "new", "")
    texts = [text for text in life_in(cluster) if "published in" in text]
    assert texts[0].startswith("not published any more; it was published in slice new ")
    assert texts[1].startswith("before, published in slice old ")


def test_taint_that_a_new_slice_takes_over_has_not_ended():
    taint = {"key": "example.com/hot", "effect": "NoSchedule"}
    cluster = Cluster()
    publish(cluster, "old", [taint])
    publish(cluster, "new", [taint])
    cluster.delete("resourceslices", "old", "")
    (tainted,) = (text for text in life_in(cluster) if text.startswith("tainted "))
    assert "still at" in tainted
    cluster.delete("resourceslices", "new", "")
    (tainted,) = (text for text in life_in(cluster) if text.startswith("tainted "))
    assert "ended by revision" in tainted


def test_claim_that_held_a_device_twice_is_one_claim():
    cluster = Cluster()
    life = Biography(identifiers.parse_device(f"{DRIVER}/n1/d0"))
    cluster.claim("c")
    created = cluster.line.events[-1]
    result = {"request": "gpu", "driver": DRIVER, "pool": "n1", "device": "d0"}
    for status in ({"allocation": {"devices": {"results": [result]}}}, {}) * 2:
        tree = {**created.object, "status": status}
        life.fold(msgspec.structs.replace(created, body=json.dumps(tree).encode(), tree=None))
    (held,) = (reason for reason in life.reasons(cluster.line.now) if "held it" in reason.text)
    assert held.text == "1 claim held it so far, 2 times in all; free now"
    assert (held.count, len(held.children)) == (1, 2)


def test_slice_that_a_driver_wrote_anew_is_of_its_present_generation():
    cluster = Cluster()
    publish(cluster, "s")
    life = Biography(identifiers.parse_device(f"{DRIVER}/n1/d0"))
    created = cluster.line.events[-1]
    for generation in (1, 2):
        tree = json.loads(json.dumps(created.object))
        tree["spec"]["pool"]["generation"] = generation
        life.fold(msgspec.structs.replace(created, body=json.dumps(tree).encode(), tree=None))
    (text, *_) = (reason.text for reason in life.reasons(cluster.line.now))
    assert text.startswith("published in slice s of pool generation 2, ")


@pytest.mark.parametrize("device", ["d0", "another"])
def test_taint_of_a_slice_that_a_newer_generation_replaced_has_ended(device):
    """Only the newest generation of a pool counts, also where it lacks the device."""
    cluster = Cluster()
    publish(cluster, "old", [{"key": "example.com/hot", "effect": "NoSchedule"}])
    publish(cluster, "new", generation=2, device=device)
    (tainted,) = (text for text in life_in(cluster) if text.startswith("tainted "))
    assert tainted.endswith(f"ended by revision {cluster.line.events[-1].revision}")
    cluster.delete("resourceslices", "new", "")
    (_, again) = (text for text in life_in(cluster) if text.startswith("tainted "))
    assert "still at" in again


@pytest.mark.parametrize(
    ("selector", "switches", "tainted"),
    [
        ({"pool": "n1"}, {}, True),
        ({"pool": "n1"}, {"with_rules": False}, False),
        (None, {}, True),
        (None, {"rules_without_selector_match": False}, False),
    ],
)
def test_rules_taint_a_device_as_the_history_lets_them(selector, switches, tainted):
    cluster = Cluster()
    publish(cluster, "s")
    spec = {"taint": {"key": "k", "effect": "NoExecute"}, "deviceSelector": selector}
    if selector is None:
        del spec["deviceSelector"]
    cluster.create("resource.k8s.io/v1beta2", "DeviceTaintRule", "r", spec=spec)
    texts = life_in(cluster, **switches)
    assert any(text.startswith("tainted ") for text in texts) is tainted


def recorded(event, *, verb="update", losses=(), position="", time_quality="exact"):
    """The event as an import writes it."""
    origin = Origin(source="a.json", position=position, losses=losses, time_quality=time_quality)
    stamp = msgspec.structs.replace(
        event.stamp, verb=verb, origin=origin, actor=Actor(user=IMPORTER_USER)
    )
    return msgspec.structs.replace(event, stamp=stamp)


def looked_at(event, *losses):
    return recorded(event, verb="baseline", losses=losses, position="1[0]", time_quality="derived")


@pytest.mark.parametrize(
    ("slice_event", "others", "text"),
    [
        # The slice was made while the cluster was recorded.
        (recorded, (), "no claim has ever held it"),
        # It was there before: somebody may have held the device then.
        (looked_at, (), "no claim has ever held it, as far as was recorded"),
        # A cluster was looked at twice, and claims may have come and gone in between.
        (
            recorded,
            (looked_at, lambda event: looked_at(event, Loss.SYNTHETIC_DELETE)),
            "no claim has ever held it, as far as was recorded",
        ),
    ],
    ids=["recorded since it was made", "older than the recording", "looked at twice"],
)
def test_past_that_was_not_recorded_is_not_denied(slice_event, others, text):
    cluster = Cluster()
    publish(cluster, "s")
    life = Biography(identifiers.parse_device(f"{DRIVER}/n1/d0"))
    life.fold(slice_event(cluster.line.events[-1]))
    for other in others:
        cluster.claim(f"c{len(cluster.line.events)}")
        life.fold(other(cluster.line.events[-1]))
    assert text in [reason.text for reason in life.reasons(cluster.line.now)]


def test_holders_of_a_device_that_is_older_than_the_recording_are_those_recorded():
    cluster = Cluster()
    publish(cluster, "s")
    life = Biography(identifiers.parse_device(f"{DRIVER}/n1/d0"))
    life.fold(looked_at(cluster.line.events[-1]))
    cluster.claim("c")
    created = cluster.line.events[-1]
    result = {"request": "gpu", "driver": DRIVER, "pool": "n1", "device": "d0"}
    for status in ({"allocation": {"devices": {"results": [result]}}}, {}):
        tree = {**created.object, "status": status}
        life.fold(msgspec.structs.replace(created, body=json.dumps(tree).encode(), tree=None))
    (held,) = (reason for reason in life.reasons(cluster.line.now) if "held it" in reason.text)
    assert held.text == "1 claim held it so far, as far as was recorded; free now"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"string": "a"}, "a"),
        ({"string": ""}, '""'),
        ({"strings": ["c", "d"]}, '["c", "d"]'),
        ({"bool": True}, "true"),
        ({"bools": [True, False]}, "[true, false]"),
        ({"int": 5}, "5"),
        ({"value": "5Gi"}, "5Gi"),
        ({"value": {"string": "a"}}, "a"),
        (None, "nothing"),
    ],
)
def test_value_of_an_attribute_or_a_capacity_is_shown_as_json(value, text):
    assert biography.shown(value) == text
