"""Devices that differ in their names and attributes only share what is compiled of the rest."""

import msgspec
import pytest

from app.domain.devices import compiling
from app.domain.errors import InputError
from app.domain.values import json_tree

POOL = ("gpu.example.com", "p")


def compiled(place="d", name="d", **rest):
    return compiling.device_of(POOL, {"name": name, "attributes": {"uuid": name}, **rest}, place)


def test_devices_of_one_kind_share_their_compiled_part():
    memory = {"memory": {"value": "80Gi"}}
    one, other = compiled(name="a", capacity=memory), compiled(name="b", capacity=memory)
    assert one.capacity is other.capacity
    assert (one.id, one.attributes) == ((*POOL, "a"), {"uuid": "a"})
    assert (other.id, other.attributes) == ((*POOL, "b"), {"uuid": "b"})


@pytest.mark.parametrize("values", [(True, 1, True), (1, True, 1), (1.0, True, 1)])
def test_values_that_are_only_equal_in_python_are_not_of_one_kind(values):
    flags = [compiled(allowMultipleAllocations=value).allow_multiple for value in values]
    assert flags == [value is True for value in values]


def test_unreadable_quantity_is_told_with_the_place_of_each_device():
    for place in ("slice a, device 1", "slice b, device 2"):
        with pytest.raises(InputError, match=f"{place}.capacity"):
            compiled(place, capacity={"memory": {"value": "lots"}})


SLICE = {
    "kind": "ResourceSlice",
    "metadata": {"name": "s", "uid": "u", "managedFields": [{"manager": "driver"}]},
    "spec": {
        "driver": "gpu.example.com",
        "nodeName": "n",
        "pool": {"name": "n", "generation": 1, "resourceSliceCount": 1},
        "devices": [
            {
                "capacity": {"memory": {"value": "80Gi"}},
                "attributes": {"uuid": {"string": name}, "kind": {"string": "a"}, "odd": odd},
                "consumesCounters": [{"counterSet": "c", "counters": {"s": {"value": "1"}}}],
                "name": name,
            }
            for name, odd in (("a", {"int": 1}), ("b", {"int": True}), ("c", {"int": 1, "x": []}))
        ],
    },
}


def test_slice_keeps_what_was_published_except_managed_fields():
    written = msgspec.json.encode(SLICE)
    made = compiling.slice_of(msgspec.json.decode(written))
    shown = {**made.tree, "metadata": {**made.tree["metadata"]}}
    shown["metadata"]["managedFields"] = SLICE["metadata"]["managedFields"]
    assert msgspec.json.encode(shown) == written
    assert [device.written for device in made.devices] == [
        msgspec.json.encode(device) for device in SLICE["spec"]["devices"]
    ]


def test_devices_share_equal_values_and_nothing_else():
    one, other = (compiling.slice_of(json_tree.copy(SLICE)).devices for _ in range(2))
    for attribute in ("uuid", "kind", "odd"):
        assert one[0].attributes[attribute] is other[0].attributes[attribute]
    assert one[0].attributes["kind"] is one[1].attributes["kind"]
    assert one[0].tree["capacity"] is one[2].tree["capacity"]
    assert [type(device.attributes["odd"]["int"]) for device in one] == [int, bool, int]
