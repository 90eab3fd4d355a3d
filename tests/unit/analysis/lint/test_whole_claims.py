"""Claims that no node can satisfy, beside claims that differ by little and that one can."""

import pytest

from tests.unit.analysis.lint import clean
from tests.unit.analysis.lint.test_planted_defects import lint

DRIVER = "gpu.example.com"


def slice_of(node: str, *devices: dict) -> dict:
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": DRIVER, "pool": pool, "nodeName": node, "devices": list(devices)}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": f"slice-{node}"},
        "spec": spec,
    }


def node(name: str) -> dict:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}


def device(name: str, numa: int = 0, **more: object) -> dict:
    return {"name": name, "attributes": {"slot": {"int": numa}}, **more}


def shared(**policy: object) -> dict:
    bandwidth = {"value": "10", **({"requestPolicy": policy} if policy else {})}
    return device("d0", allowMultipleAllocations=True, capacity={"bw": bandwidth})


def found(trees: list[dict], *requests: dict, **devices: object) -> list[tuple[str, str]]:
    gpu = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": "gpu"},
        "spec": {"selectors": [{"cel": {"expression": f'device.driver == "{DRIVER}"'}}]},
    }
    claim = clean.claim("c", *requests)
    claim["spec"]["devices"].update(devices)
    report = lint([*trees, gpu, claim])
    return [(each.rule.id, each.message) for each in report.findings if each.rule.id in RULES]


RULES = {
    "claim-never-fits", "request-exceeds-devices", "capacity-never-enough",
    "alternative-never-taken",
}  # fmt: skip


def asks(count: int = 1, **more: object) -> dict:
    return {"name": "r", "exactly": {"deviceClassName": "gpu", "count": count, **more}}


def bandwidth(amount: str) -> dict:
    return asks(capacity={"requests": {"bw": amount}})


def test_two_devices_must_be_on_one_node() -> None:
    apart = [slice_of("n1", device("d0")), slice_of("n2", device("d0"))]
    told = ("claim-never-fits", "request r asks for 2 devices, no node has more than 1")
    assert found(apart, asks(2)) == [told]
    assert found([*apart, node("n1"), node("n2")], asks(2)) == [told]
    assert found([slice_of("n1", device("d0"), device("d1"))], asks(2)) == []


@pytest.mark.parametrize(("slots", "told"), [((0, 1), True), ((1, 1), False)])
def test_values_of_a_constraint_are_compared(slots: tuple[int, int], told: bool) -> None:
    devices = [device(f"d{number}", slot) for number, slot in enumerate(slots)]
    constraint = {"matchAttribute": f"{DRIVER}/slot"}
    findings = found([slice_of("n1", *devices)], asks(2), constraints=[constraint])
    assert findings == (
        [
            (
                "claim-never-fits",
                "the only node does not have devices that satisfy all of it together",
            )
        ]
        if told
        else []
    )


def test_request_takes_a_shared_device_once() -> None:
    (finding,) = found([slice_of("n1", shared())], asks(2))
    assert finding[0] == "request-exceeds-devices"


@pytest.mark.parametrize(
    ("policy", "amount", "told"),
    [
        ({"default": "1", "validRange": {"min": "1", "max": "4"}}, "6", True),
        ({"default": "1", "validRange": {"min": "1", "max": "4"}}, "4", False),
        ({"default": "1", "validRange": {"min": "1", "step": "4"}}, "10", True),
        ({"default": "1", "validRange": {"min": "1", "step": "4"}}, "6", False),
        ({"default": "2", "validValues": ["2", "8"]}, "9", True),
        ({"default": "2", "validValues": ["2", "8"]}, "3", False),
    ],
)
def test_amounts_are_rounded_up_by_policies(policy: dict, amount: str, told: bool) -> None:
    """Parity: allocator.md 8.1 and 8.2; the expectations are worked out by hand."""
    findings = found([slice_of("n1", shared(**policy))], bandwidth(amount))
    assert [rule for rule, _ in findings] == ["capacity-never-enough"] * told


def test_list_of_which_no_alternative_can_be_taken() -> None:
    alternatives = [
        {"name": name, "deviceClassName": "gpu", "count": count}
        for name, count in (("x", 2), ("y", 3))
    ]
    findings = found([slice_of("n1", device("d0"))], {"name": "r", "firstAvailable": alternatives})
    assert [rule for rule, _ in findings] == ["claim-never-fits", *["alternative-never-taken"] * 2]
    alternatives[1]["count"] = 1
    findings = found([slice_of("n1", device("d0"))], {"name": "r", "firstAvailable": alternatives})
    assert [rule for rule, _ in findings] == ["alternative-never-taken"]


def test_nothing_is_said_where_nodes_are_not_known() -> None:
    """A node selector without nodes, or a pool without one of its slices, may hide devices."""
    slice_ = slice_of("n1", device("d0"))
    term = {"matchExpressions": [{"key": "rack", "operator": "In", "values": ["r1"]}]}
    del slice_["spec"]["nodeName"]
    slice_["spec"]["nodeSelector"] = {"nodeSelectorTerms": [term]}
    both = [device("d0"), device("d1", 1)]
    slice_["spec"]["devices"] = both
    constraint = {"matchAttribute": f"{DRIVER}/slot"}
    assert found([slice_], asks(2), constraints=[constraint]) == []
    partial = slice_of("n1", *both)
    partial["spec"]["pool"]["resourceSliceCount"] = 2
    assert found([partial], asks(2), constraints=[constraint]) == []
