"""Limits of slices by release, against the numbers that each release publishes with its fields.

The descriptions of the published schemas say how many entries a list may have. What they say is
read here, slices are made with that many and with one more, and validation has to agree.
"""

import re

import pytest

from app.adapters import schemas
from app.bootstrap.rules import rules_for
from app.domain.objects import registry
from app.domain.objects.profile import VERSIONS, Profile
from app.domain.values.json_tree import JsonObject
from tests.cluster import DRIVER

ON = dict.fromkeys(("DRADeviceTaints", "DRAPartitionableDevices"), True)
KIND = registry.find("resource.k8s.io", "resourceslices")
POOL = {"name": "n1", "generation": 1, "resourceSliceCount": 1}


def said(release: str, type_name: str, field: str) -> str:
    definition = schemas.load(release).definition(f"io.k8s.api.resource.v1.{type_name}")
    return " ".join(definition["properties"][field]["description"].split())


def number(text: str, pattern: str) -> int:
    match = re.search(pattern, text)
    assert match is not None, (pattern, text)
    return int(match[1])


def errors(release: str, **spec: object) -> list[str]:
    rules = rules_for(Profile(version=release, gates=ON))
    tree: JsonObject = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": "s"},
        "spec": {"driver": DRIVER, "nodeName": "n1", "pool": POOL, **spec},
    }
    assert KIND is not None
    return [str(each) for each in rules.validate_create(KIND, tree, rules.context(None, 0))]


def counters(count: int) -> JsonObject:
    return {f"c{n}": {"value": "1"} for n in range(count)}


def sets(count: int, each: int = 1) -> list[JsonObject]:
    return [{"name": f"set-{n}", "counters": counters(each)} for n in range(count)]


def uses(count: int, each: int = 1) -> list[JsonObject]:
    return [{"counterSet": f"set-{n}", "counters": counters(each)} for n in range(count)]


def taints(count: int) -> list[JsonObject]:
    return [{"key": f"example.com/t{n}", "effect": "NoSchedule"} for n in range(count)]


@pytest.mark.parametrize("release", VERSIONS)
def test_taints_of_a_device_are_bounded_as_published(release: str) -> None:
    most = number(said(release, "Device", "taints"), r"maximum number of taints is (\d+)")
    assert most == (4 if release == "1.34" else 16)
    assert errors(release, devices=[{"name": "d", "taints": taints(most)}]) == []
    (error,) = errors(release, devices=[{"name": "d", "taints": taints(most + 1)}])
    assert error == (
        f"spec.devices[0].taints: Too many: {most + 1}: must have at most {most} items"
    )


@pytest.mark.parametrize("release", VERSIONS)
def test_devices_with_taints_or_counters_are_bounded_as_published(release: str) -> None:
    text = said(release, "ResourceSliceSpec", "devices")
    plain = number(text, r"Must not have more than (\d+) entries")
    other = re.search(r"uses taints or consumes counters the limit is (\d+)", text)
    most = plain if other is None else int(other[1])
    assert (plain, most) == (128, 128 if release == "1.34" else 64)
    for what in ({"taints": taints(1)}, {"consumesCounters": uses(1)}):
        shared = {} if "taints" in what or release != "1.34" else {"sharedCounters": sets(1)}
        devices = [{"name": f"d{n}", **what} for n in range(most + 1)]
        assert errors(release, devices=devices[:most], **shared) == []
        (error,) = errors(release, devices=devices, **shared)
        assert error == (f"spec.devices: Too many: {most + 1}: must have at most {most} items")


@pytest.mark.parametrize("release", VERSIONS[1:])
def test_counters_since_35_are_bounded_as_published(release: str) -> None:
    of_slice = said(release, "ResourceSliceSpec", "sharedCounters")
    of_set = said(release, "CounterSet", "counters")
    of_device = said(release, "Device", "consumesCounters")
    of_use = said(release, "DeviceCounterConsumption", "counters")
    sets_max = number(of_slice, r"maximum number of counter sets is (\d+)")
    counters_max = number(of_set, r"maximum number of counters is (\d+)")
    uses_max = number(of_device, r"consumptions per device is (\d+)")
    drawn_max = number(of_use, r"maximum number of counters is (\d+)")
    assert errors(release, sharedCounters=sets(sets_max, counters_max)) == []
    assert len(errors(release, sharedCounters=sets(sets_max + 1))) == 1
    assert len(errors(release, sharedCounters=sets(1, counters_max + 1))) == 1
    device = {"name": "d", "consumesCounters": uses(uses_max, drawn_max)}
    assert errors(release, devices=[device]) == []
    assert len(errors(release, devices=[{**device, "consumesCounters": uses(uses_max + 1)}])) == 1
    many = [{**device, "consumesCounters": uses(1, drawn_max + 1)}]
    assert len(errors(release, devices=many)) == 1
    (both,) = errors(release, devices=[{"name": "d"}], sharedCounters=sets(1))
    assert both.endswith("only one of `sharedCounters` or `devices` is allowed")


def test_counters_up_to_34_are_bounded_over_the_slice_as_published() -> None:
    release = "1.34"
    of_slice = said(release, "ResourceSliceSpec", "sharedCounters")
    of_device = said(release, "Device", "consumesCounters")
    of_use = said(release, "DeviceCounterConsumption", "counters")
    shared_max = number(of_slice, r"maximum number of counters in all sets is (\d+)")
    own_max = number(of_use, r"maximum number counters in a device is (\d+)")
    all_max = number(of_device, r"entire ResourceSlice must be <= (\d+)")
    assert (shared_max, own_max, all_max) == (32, 32, 1_024)
    own = {"name": "d", "consumesCounters": uses(own_max)}
    assert errors(release, devices=[own], sharedCounters=sets(shared_max)) == []
    assert errors(release, sharedCounters=sets(shared_max + 1)) == [
        f"spec.sharedCounters: Invalid value: {shared_max + 1}: the total number of shared counters"
        f" must not exceed {shared_max}"
    ]
    each = 16
    devices = [{"name": f"d{n}", "consumesCounters": uses(each)} for n in range(all_max // each)]
    assert errors(release, devices=devices, sharedCounters=sets(each)) == []
    more = [*devices, {"name": "more", "consumesCounters": uses(1)}]
    assert errors(release, devices=more, sharedCounters=sets(each)) == [
        f"spec.devices: Invalid value: {all_max + 1}: the total number of counters in devices must"
        f" not exceed {all_max}"
    ]
    two = {"name": "d", "consumesCounters": uses(2, 17)}
    assert errors(release, devices=[two], sharedCounters=sets(2, 16)) == [
        'spec.devices[0].consumesCounters[0].counters: Invalid value: "c16": must reference a '
        "counter defined in the ResourceSlice sharedCounters",
        'spec.devices[0].consumesCounters[1].counters: Invalid value: "c16": must reference a '
        "counter defined in the ResourceSlice sharedCounters",
        "spec.devices[0]: Invalid value: 34: the total number of counters must not exceed 32",
    ]
    assert errors(release, devices=[own], sharedCounters=sets(1))[0] == (
        'spec.devices[0].consumesCounters[1].counterSet: Invalid value: "set-1": must reference a'
        " counterSet defined in the ResourceSlice sharedCounters"
    )
