"""Whole explanations of small allocations: each field of the JSON, with its path.

`REDRA_REWRITE=1 pytest tests/unit/allocation/test_whole_explanations.py` writes them anew; then
read the difference.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from app.domain.allocation.reasons import explanation
from tests.unit.analysis import kept_texts
from tests.worlds.builders import (
    DRIVER,
    allocator,
    claim,
    counter_set,
    device,
    device_class,
    distinct,
    first_available,
    holding,
    match,
    node,
    request,
    resource_slice,
    result,
    taint,
    uses,
    wish,
)

FILE = Path(__file__).with_name("whole_explanations.txt")

MODEL = f"device.attributes['{DRIVER}'].model"
POLICY = {"default": "1", "validRange": {"min": "2", "max": "8", "step": "2"}}
SHARED = {
    "allowMultipleAllocations": True,
    "capacity": {"memory": {"value": "8"}, "slots": {"value": "9", "requestPolicy": POLICY}},
}
USED = {"memory": "7", "slots": "2"}
PAIRS = [device("a", numa=0, root=["x", "y"]), device("b", numa=1, root=["y", "z"]), device("c")]
COUNTED = [
    resource_slice(
        "s",
        device("held", consumesCounters=uses(mem=5, cores=1)),
        device("d", consumesCounters=uses(mem=3, cores=2)),
        count=2,
    ),
    resource_slice("c", count=2, sharedCounters=[counter_set(mem=6, cores=2)]),
]
CLASSES = [device_class("gpu"), device_class("some", f"{MODEL} == 'a'", f"{MODEL} != 'b'")]

WORLDS: dict[str, tuple[list[Any], list[Any], dict[str, Any]]] = {
    "one is enough": ([resource_slice("s", device("a"), device("b"))], [claim(request())], {}),
    "no slice": ([], [claim(request())], {}),
    "a pool lacks slices": (
        [resource_slice("s", device("a"), count=2), resource_slice("t", device("b"), pool="q")],
        [claim(request("r0", 0))],
        {},
    ),
    "classes, requests and holders exclude": (
        [resource_slice("s", *(device(name, model=name) for name in "ab"), device("h", model="a"))],
        [claim(request("r0", 2, f"{MODEL} in ['a', 'b']", deviceClassName="some"))],
        {"held": [holding(result("h"))], "classes": CLASSES},
    ),
    "selectors fail": (
        [resource_slice("s", device("a"), device("b", model="b"))],
        [claim(request("r0", 1, f"{MODEL} == 'b'"))],
        {},
    ),
    "values in common": (
        [resource_slice("s", *PAIRS)],
        [claim(request("r0", 3), constraints=[match("root")])],
        {},
    ),
    "two values in common": (
        [resource_slice("s", device("a", root=["x", "y"]), device("b", root=["z"]))],
        [claim(request("r0", 2), constraints=[match("root")])],
        {},
    ),
    "values of other types": (
        [resource_slice("s", device("a", numa=1), device("b", numa="1"))],
        [claim(request("r0", 2), constraints=[match()])],
        {},
    ),
    "distinct values, of which each request remembers the last (Q6)": (
        [resource_slice("s", device("a", numa=1), device("b", numa=2), device("c", numa=1))],
        [claim(request("r0", 3), constraints=[distinct()])],
        {},
    ),
    "distinct values of three requests": (
        [resource_slice("s", device("a", numa=1), device("b", numa=2), device("c", numa=1))],
        [claim(*(request(name) for name in ("r0", "r1", "r2")), constraints=[distinct()])],
        {},
    ),
    "counters": (COUNTED, [claim(request())], {"held": [holding(result("held"))]}),
    "capacity": (
        [resource_slice("s", device("d", **SHARED), device("e", **SHARED), device("plain"))],
        [
            claim(request("r0", 1, capacity={"requests": {"memory": "5", "slots": "3"}}), name="x"),
            claim(request("r0", 2, capacity={"requests": {"memory": "4", "slots": "9"}}), name="y"),
        ],
        {"held": [holding(result("e", shareID="s", consumedCapacity=USED))]},
    ),
    "taints": (
        [
            resource_slice(
                "s",
                device("a", taints=[taint(), taint("z", effect="None")]),
                device("b", taints=[taint("w", effect="NoExecute")]),
            )
        ],
        [claim(request("r0", 1, tolerations=[{"key": "k", "value": "u", "operator": "Equal"}]))],
        {},
    ),
    "administrators take what is held, once": (
        [resource_slice("s", device("a"), device("b"))],
        [claim(request("r0", 2, adminAccess=True), request("r1", 1, adminAccess=True))],
        {"held": [holding(result("a"))]},
    ),
    "two requests share devices": (
        [resource_slice("s", device("a"), device("b"))],
        [claim(request("r0", 2), request("r1", 1)), claim(request(), name="later")],
        {},
    ),
    "alternatives": (
        [resource_slice("s", device("a", model="a"), device("b", model="b"))],
        [claim(first_available("r", best=wish(3), next=wish(2, f"{MODEL} == 'a'")))],
        {},
    ),
    "a later alternative": (
        [resource_slice("s", device("a", model="a"), device("b", model="b"))],
        [claim(first_available("r", best=wish(3), next=wish(1)), request("q", 1))],
        {},
    ),
    "all devices": (
        [resource_slice("s", device("a"), device("b"))],
        [claim(request("r0", 0))],
        {"held": [holding(result("b"))]},
    ),
    "devices of other nodes": (
        [
            resource_slice(
                "s",
                device("a", nodeName="other"),
                device("b", allNodes=True),
                perDeviceNodeSelection=True,
                nodeName=None,
            )
        ],
        [claim(request("r0", 2))],
        {},
    ),
    "a class is missing": (
        [resource_slice("s", device("a"))],
        [claim(request("r0", 1, deviceClassName="none"))],
        {},
    ),
}


def flat(value: object, path: str = "") -> Iterator[str]:
    """Each leaf of a JSON tree in a line of its own, after its path."""
    match value:
        case dict() if value:
            for name, inner in value.items():
                yield from flat(inner, f"{path}.{name}" if path else name)
        case list() if value and any(isinstance(each, dict | list) for each in value):
            for number, inner in enumerate(value):
                yield from flat(inner, f"{path}[{number}]")
        case _:
            yield f"{path}: {json.dumps(value)}"


@pytest.mark.parametrize("name", WORLDS)
def test_explanation_reads_the_same(name: str) -> None:
    slices, claims, how = WORLDS[name]
    answer = allocator(*slices, **how).allocate(node(), claims)
    kept_texts.check(FILE, name, "\n".join(flat(explanation.explain(answer).tree())), WORLDS)


def test_every_explanation_has_its_world() -> None:
    assert list(kept_texts.kept(FILE)) == list(WORLDS)
