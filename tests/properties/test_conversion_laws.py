"""Laws of conversion and of the life of objects, over generated inputs."""

import copy
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from app.domain.errors import Rejected
from app.domain.log import EventType
from app.domain.objects import registry
from app.domain.objects.schema import conversion
from app.domain.objects.write.commands import PatchType, Propagation
from tests import draws
from tests.unit.objects.builders import Cluster, claim, cluster, key

NAMES = st.sampled_from(["a", "b", "c"])
SELECTORS = st.lists(
    st.builds(lambda text: {"cel": {"expression": text}}, st.text(max_size=5)), max_size=2
)
CLASSED = {"deviceClassName": st.sampled_from(["gpu", "tpu"])}
MORE = {
    "selectors": SELECTORS,
    "allocationMode": st.sampled_from(["ExactCount", "All"]),
    "count": st.integers(min_value=1, max_value=5),
    "adminAccess": st.booleans(),
    "tolerations": st.lists(st.fixed_dictionaries({"key": NAMES}), max_size=2),
    "capacity": st.fixed_dictionaries({"requests": st.dictionaries(NAMES, st.just("1"))}),
}
EXACT = st.fixed_dictionaries(CLASSED, optional=MORE)
REQUESTS = st.lists(
    st.one_of(
        st.fixed_dictionaries({"name": NAMES, "exactly": EXACT}),
        st.fixed_dictionaries(
            {"name": NAMES, "firstAvailable": st.lists(EXACT, min_size=1, max_size=2)}
        ),
        st.fixed_dictionaries({"name": NAMES}),
    ),
    max_size=3,
)
DEVICES = st.lists(
    st.fixed_dictionaries(
        {"name": NAMES},
        optional={
            "attributes": st.dictionaries(NAMES, st.just({"int": 1}), min_size=1),
            "capacity": st.dictionaries(NAMES, st.just({"value": "1"}), min_size=1),
            "taints": st.just([{"key": "k", "effect": "None"}]),
            "allNodes": st.booleans(),
            "nodeName": NAMES,
            "bindingConditions": st.lists(NAMES, max_size=2),
        },
    ),
    max_size=3,
)


@given(REQUESTS)
def test_claims_round_trip_through_v1beta1(requests: list[dict[str, Any]]) -> None:
    kind = registry.find("resource.k8s.io", "resourceclaims")
    assert kind is not None
    tree = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "spec": {"devices": {"requests": requests}},
    }
    there = conversion.convert(tree, kind, "v1", "v1beta1")
    assert conversion.convert(there, kind, "v1beta1", "v1") == tree


@given(DEVICES, st.one_of(st.none(), NAMES))
def test_slices_round_trip_through_v1beta1(devices: list[dict[str, Any]], node: str | None) -> None:
    kind = registry.find("resource.k8s.io", "resourceslices")
    assert kind is not None
    spec: dict[str, Any] = {"devices": devices} | ({"nodeName": node} if node else {})
    tree = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "spec": spec}
    there = conversion.convert(tree, kind, "v1", "v1beta1")
    assert conversion.convert(there, kind, "v1beta1", "v1") == tree


PLACE = key("devicetaintrules", "r")
STEPS = st.lists(
    st.one_of(
        st.just(("create", None)),
        st.builds(lambda value: ("taint", value), st.sampled_from(["v", "w"])),
        st.builds(lambda value: ("label", value), st.sampled_from([None, "x", "y"])),
        st.builds(lambda value: ("finalizers", value), st.sampled_from([None, ["a/b"], ["c/d"]])),
        st.builds(lambda value: ("status", value), st.sampled_from(["True", "False"])),
        st.builds(lambda value: ("delete", value), st.sampled_from([None, *Propagation])),
    ),
    max_size=12,
)


def apply(made: Cluster, step: str, value: Any) -> None:
    """Takes one step of a life; the name of the step decides the patch."""
    match step:
        case "create":
            made.create(
                {
                    "apiVersion": "resource.k8s.io/v1",
                    "kind": "DeviceTaintRule",
                    "metadata": {"name": "r"},
                    "spec": {"taint": {"key": "k", "effect": "NoSchedule"}},
                }
            )
        case "taint":
            made.patch(PLACE, {"spec": {"taint": {"value": value}}})
        case "label":
            made.patch(PLACE, {"metadata": {"labels": {"l": value}}})
        case "finalizers":
            made.patch(PLACE, {"metadata": {"finalizers": value}}, PatchType.MERGE)
        case "status":
            condition = {"type": "T", "status": value, "reason": "R", "message": ""}
            made.patch(PLACE, {"status": {"conditions": [condition]}}, subresource="status")
        case _:
            made.delete(PLACE, propagation=value)


def describe(tree: dict[str, Any] | None) -> tuple[Any, ...]:
    """The parts of an object that a watcher may compare between two states."""
    if tree is None:
        return ()
    metadata = {name: item for name, item in tree["metadata"].items() if name != "resourceVersion"}
    return (metadata, tree["spec"], tree.get("status"))


@settings(max_examples=draws.examples(150), deadline=None)
@given(STEPS)
def test_every_life_keeps_the_invariants(steps: list[tuple[str, Any]]) -> None:
    made = cluster()
    for step, value in steps:
        before = copy.deepcopy(made.get(PLACE))
        count = len(made.world.events)
        try:
            apply(made, step, value)
        except Rejected:
            assert len(made.world.events) == count, "a refused command leaves no event"
            assert made.get(PLACE) == before
            continue
        after = made.get(PLACE)
        new = made.world.events[count:]
        if before is None or after is None:
            assert new, "an object does not come or go without an event"
            continue
        changed = describe(before) != describe(after)
        assert bool(new) is changed, "an event tells a change, and each change is told"
        spec_changed = before["spec"] != after["spec"]
        began_to_end = "deletionTimestamp" in (after["metadata"].keys() - before["metadata"].keys())
        generations = after["metadata"]["generation"] - before["metadata"]["generation"]
        assert generations == spec_changed + began_to_end
        for name in ("uid", "creationTimestamp", "name"):
            assert before["metadata"][name] == after["metadata"][name]
        if "deletionTimestamp" in before["metadata"]:
            assert "deletionTimestamp" in after["metadata"], "an end is not taken back"
    kinds = [event.type for event in made.world.events if event.key == PLACE]
    alive = False
    for kind in kinds:
        assert alive is (kind is not EventType.OBJECT_CREATED)
        alive = kind is not EventType.OBJECT_DELETED
    revisions = [event.object["metadata"]["resourceVersion"] for event in made.world.events]
    assert revisions == [str(event.revision) for event in made.world.events]


@settings(max_examples=draws.examples(60), deadline=None)
@given(st.lists(st.sampled_from(["labels", "annotations"]), max_size=4), st.booleans())
def test_writing_back_what_was_read_changes_nothing(fields: list[str], beta: bool) -> None:
    made = cluster()
    tree = claim()
    for number, name in enumerate(fields):
        tree["metadata"].setdefault(name, {})[f"k{number}"] = "v"
    stored = made.create(tree)
    if beta:
        kind = registry.find("resource.k8s.io", "resourceclaims")
        assert kind is not None
        stored = conversion.convert(stored, kind, "v1", "v1beta1")
    made.update(copy.deepcopy(stored))
    assert made.types == []
    made.update(copy.deepcopy(stored), subresource="status")
    assert made.types == []
