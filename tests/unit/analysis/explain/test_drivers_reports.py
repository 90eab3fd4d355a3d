"""What drivers report of the devices of a claim, as sentences about that claim."""

import pytest

from app.analysis.explain.observed import drivers_reports
from app.analysis.explain.reasons import NAMES_MAX
from app.domain.controllers.resources import claim_key

KEY = claim_key("lab", "want")


def reported(*conditions, **fields):
    """A claim with a device for each condition; its driver reports one of each device."""
    places = [
        {"driver": "gpu.example.com", "pool": "n1", "device": f"d{number}"}
        for number in range(len(conditions))
    ]
    results = [{"request": "r", **place} for place in places]
    devices = [
        {**place, "conditions": [{**condition, **fields}]}
        for place, condition in zip(places, conditions, strict=True)
    ]
    return {"status": {"allocation": {"devices": {"results": results}}, "devices": devices}}


def said(claim):
    return [reason.text for reason in drivers_reports.reasons(KEY, claim)]


BAD = {"type": "Ready", "status": "False"}


@pytest.mark.parametrize(
    ("words", "quoted"),
    [
        ({}, "Ready is False"),
        ({"reason": "NoPower"}, "Ready is False (NoPower)"),
        ({"message": "the rack is off"}, "Ready is False (the rack is off)"),
        ({"reason": "NoPower", "message": "the rack is off"},
         "Ready is False (NoPower: the rack is off)"),
    ],
)  # fmt: skip
def test_report_is_quoted_with_the_words_that_it_has(words, quoted):
    assert said(reported(BAD, **words)) == [
        f"its driver reports of gpu.example.com/n1/d0: {quoted}; that alone ends no pod"
    ]


@pytest.mark.parametrize(
    ("more", "last"),
    [
        (0, None),
        (1, "drivers report 1 more device as not ready"),
        (2, "drivers report 2 more devices as not ready"),
    ],
)
def test_devices_beyond_those_that_are_named_are_counted(more, last):
    lines = said(reported(*[BAD] * (NAMES_MAX + more)))
    assert len(lines) == NAMES_MAX + (more > 0)
    assert all("its driver reports of" in line for line in lines[:NAMES_MAX])
    assert [*lines[NAMES_MAX:], None][0] == last


def test_other_reports_come_after_those_of_devices_that_are_not_ready():
    fast = {"type": "Fast", "status": "True"}
    first, second = said(reported(fast, BAD))
    assert first.startswith("its driver reports of gpu.example.com/n1/d1: Ready is False")
    assert second == "drivers report: Fast of gpu.example.com/n1/d0 is True"


def configured(*configurations, result="gpu/small", of_classes=()):
    """A claim with an alternative of request `gpu`, and its configurations by requests."""

    def written(requests, driver="gpu.example.com"):
        return {"requests": list(requests), "opaque": {"driver": driver, "parameters": {}}}

    place = {"request": result, "driver": "gpu.example.com", "pool": "n1", "device": "d0"}
    config = [written(*one) for one in of_classes]
    return {
        "spec": {"devices": {"config": [written(*one) for one in configurations]}},
        "status": {"allocation": {"devices": {"results": [place], "config": config}}},
    }


LARGE = ["gpu/large"]


@pytest.mark.parametrize(
    ("claim", "is_told"),
    [
        (configured([LARGE]), True),
        (configured([LARGE], [["gpu/small"], "other.example.com"]), True),
        (configured([LARGE], [["nic"]]), True),
        (configured([LARGE], [["gpu/small"]]), False),
        (configured([LARGE], [["gpu"]]), False),
        (configured([LARGE], [[]]), False),
        (configured([LARGE], of_classes=[[["gpu/small"]]]), False),
        (configured([LARGE, "other.example.com"]), False),
        (configured([["nic/large"]]), False),
        (configured([LARGE], result="gpu/large"), False),
        (configured([LARGE], result="gpu"), False),
        (configured(), False),
    ],
)
def test_chosen_alternative_without_the_configuration_of_another_is_named(claim, is_told):
    assert [*drivers_reports.unconfigured(claim)] == [
        "alternative small of request gpu was chosen, and no configuration for driver "
        "gpu.example.com is for it; what is written for alternative large does not count"
    ] * is_told
