"""The part of a device selector that matches nothing, by hand for each part."""

import pytest

from app.analysis import device_selectors

DEVICES = [("a.test", "rack1", "x"), ("a.test", "rack2", "y"), ("b.test", "rack3", "x")]


@pytest.mark.parametrize(
    ("selector", "text"),
    [
        (None, ""),
        ({}, ""),
        ({"driver": "a.test"}, ""),
        ({"pool": "rack3", "device": "x"}, ""),
        ({"driver": "c.test"}, "there is no driver c.test; the nearest names are b.test, a.test"),
        (
            {"driver": "a.test", "pool": "rack3"},
            "there is no pool rack3 of driver a.test; the nearest names are rack2, rack1",
        ),
        (
            {"driver": "a.test", "pool": "rack1", "device": "y"},
            "there is no device y of driver a.test and pool rack1; there is x",
        ),
        (
            {"pool": "elsewhere"},
            "there is no pool elsewhere; there are rack1, rack2, rack3",
        ),
    ],
)
def test_part_that_matches_nothing_is_named(selector, text):
    said = device_selectors.unmatched(selector, DEVICES)
    assert said == (f"it selects no device: {text}" if text else "")


def test_rule_without_any_device_says_so():
    assert device_selectors.unmatched({}, []) == "it selects no device: there is none"
    assert device_selectors.unmatched({"pool": "p"}, []) == (
        "it selects no device: there is no pool p"
    )
