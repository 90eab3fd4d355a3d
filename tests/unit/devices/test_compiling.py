"""Devices that differ in their names and attributes only share what is compiled of the rest."""

import pytest

from app.domain.devices import compiling
from app.domain.errors import InputError

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
