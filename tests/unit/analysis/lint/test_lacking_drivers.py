"""Classes of drivers that no slice of the sources is of."""

import pytest

from tests.unit.analysis.lint.test_planted_defects import lint
from tests.unit.analysis.lint.test_whole_claims import device, slice_of


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("device.driver == 'net.test'", ": there is no driver net.test; there is gpu.example.com"),
        (
            "device.driver == 'gpu.exampel.com' && true",
            ": there is no driver gpu.exampel.com; the nearest name is gpu.example.com",
        ),
        ("device.driver == 'gpu.example.com' && false", ""),
        ("device.driver in ['net.test']", ""),
    ],
)
def test_class_without_devices_is_told_by_the_driver_that_lacks(
    expression: str, reason: str
) -> None:
    """The devices that there are may all be another driver's."""
    chosen = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": "empty"},
        "spec": {"selectors": [{"cel": {"expression": expression}}]},
    }
    findings = lint([slice_of("n1", device("d0"), device("d1")), chosen]).findings
    told = [each.message for each in findings if each.rule.id == "class-matches-nothing"]
    assert told == [f"none of 2 devices matches{reason}"]
