"""Allocations of devices whose taints the requests do not tolerate, from stories of writes."""

import json
from typing import Any

import pytest

from app.analysis.verify.taint_audit import TaintAudit
from app.analysis.views import LiveViews
from app.domain.log import Actor, Event, EventType, ObjectKey, Revision, Stamp
from app.domain.objects.profile import Profile
from app.domain.values.timestamps import SECOND, Instant

Tree = dict[str, Any]
DRA = "resource.k8s.io"
SLICE = ObjectKey(DRA, "resourceslices", "", "s")
RULE = ObjectKey(DRA, "devicetaintrules", "", "rule")
CLAIM = ObjectKey(DRA, "resourceclaims", "ns", "c")
TAINT = {"key": "example.com/bad", "value": "v", "effect": "NoSchedule"}
EXISTS = {"key": "example.com/bad", "operator": "Exists"}


def published(*taints: Tree) -> Tree:
    pool = {"name": "n1", "generation": 1, "resourceSliceCount": 1}
    devices = [{"name": "g0", "taints": list(taints)}, {"name": "g1"}]
    return {"spec": {"driver": "d.example", "nodeName": "n1", "pool": pool, "devices": devices}}


def ruled(effect: str = "NoExecute") -> Tree:
    return {
        "spec": {
            "deviceSelector": {"driver": "d.example", "pool": "n1", "device": "g0"},
            "taint": {**TAINT, "effect": effect},
        }
    }


def given(*devices: str, **fields: Any) -> Tree:
    results = [
        {"request": "r", "driver": "d.example", "pool": "n1", "device": name, **fields}
        for name in devices
    ]
    return {"status": {"allocation": {"devices": {"results": results}}}}


MADE: Tree = {"spec": {}}
RESERVED: Tree = {"status": {"reservedFor": [{"resource": "pods", "name": "p", "uid": "p"}]}}


def audited(*writes: tuple[ObjectKey, Tree | None]) -> list[tuple[int, str, list[str]]]:
    """The revision of each wrong allocation, its message, and the objects concerned."""
    views = LiveViews(Profile())
    audit = TaintAudit(views)
    seen: dict[ObjectKey, Tree] = {}
    for number, (key, tree) in enumerate(writes, 1):
        kind = EventType.OBJECT_UPDATED if key in seen else EventType.OBJECT_CREATED
        if tree is None:
            kind = EventType.OBJECT_DELETED
        shown = seen.pop(key) if tree is None else tree
        metadata = {"name": key.name, "namespace": key.namespace, "uid": f"uid-{key.name}"}
        event = Event(
            revision=Revision(number),
            type=kind,
            key=key,
            uid=f"uid-{key.name}",
            body=json.dumps({**shown, "metadata": metadata}).encode(),
            stamp=Stamp(time=Instant(number * SECOND), actor=Actor(user="x"), verb="update"),
        )
        audit.before(event)
        views.fold(event)
        if tree is not None:
            seen[key] = tree
    return [
        (event.revision, violation.message, [str(key) for key in violation.objects])
        for event, violation in audit.found
    ]


BY_SLICE = (
    "device d.example/n1/g0 was allocated to claim ns/c although its slice taints it "
    "example.com/bad:{}"
)
BY_RULE = BY_SLICE.replace("its slice", "DeviceTaintRule rule").format("NoExecute")


@pytest.mark.parametrize(
    ("writes", "found"),
    [
        pytest.param(
            [(SLICE, published(TAINT)), (CLAIM, MADE), (CLAIM, given("g0"))],
            [(3, BY_SLICE.format("NoSchedule"), [str(CLAIM)])],
            id="a taint of the slice",
        ),
        pytest.param(
            [(SLICE, published()), (RULE, ruled()), (CLAIM, MADE), (CLAIM, given("g0"))],
            [(4, BY_RULE, [str(CLAIM), str(RULE)])],
            id="a taint of a rule",
        ),
        pytest.param(
            [(SLICE, published(TAINT)), (CLAIM, MADE), (CLAIM, RESERVED), (CLAIM, given("g0"))],
            [(4, BY_SLICE.format("NoSchedule"), [str(CLAIM)])],
            id="a claim with a status before",
        ),
        pytest.param(
            [(SLICE, published(TAINT)), (CLAIM, MADE), (CLAIM, given("g1", "g0"))],
            [(3, BY_SLICE.format("NoSchedule"), [str(CLAIM)])],
            id="the second device",
        ),
        pytest.param(
            [(SLICE, published(TAINT)), (CLAIM, MADE), (CLAIM, given("g1"))], [], id="another one"
        ),
        pytest.param(
            [
                (SLICE, published(TAINT)),
                (CLAIM, MADE),
                (CLAIM, given("g0", tolerations=[EXISTS])),
            ],
            [],
            id="tolerated",
        ),
        pytest.param(
            [(SLICE, published(TAINT)), (CLAIM, MADE), (CLAIM, given("g0", adminAccess=True))],
            [],
            id="for an administrator",
        ),
        pytest.param(
            [(SLICE, published({**TAINT, "effect": "None"})), (CLAIM, MADE), (CLAIM, given("g0"))],
            [],
            id="without an effect",
        ),
        pytest.param(
            [(SLICE, published()), (CLAIM, MADE), (CLAIM, given("g0")), (RULE, ruled())],
            [],
            id="tainted later",
        ),
        pytest.param(
            [
                (SLICE, published()),
                (CLAIM, MADE),
                (CLAIM, given("g0")),
                (SLICE, published(TAINT)),
                (CLAIM, {"status": {**given("g0")["status"], **RESERVED["status"]}}),
            ],
            [],
            id="written again",
        ),
        pytest.param(
            [(SLICE, published(TAINT)), (SLICE, published()), (CLAIM, MADE), (CLAIM, given("g0"))],
            [],
            id="no longer tainted",
        ),
        pytest.param(
            [(CLAIM, MADE), (CLAIM, given("g0"))], [], id="a device that is not published"
        ),
        pytest.param(
            [(SLICE, published(TAINT)), (CLAIM, given("g0"))], [], id="allocated when it was seen"
        ),
        pytest.param(
            [
                (SLICE, published(TAINT)),
                (CLAIM._replace(group="", resource="pods"), MADE),
                (CLAIM._replace(group="", resource="pods"), given("g0")),
            ],
            [],
            id="another kind",
        ),
    ],
)
def test_allocation_of_a_tainted_device_is_found_when_it_is_made(
    writes: list[tuple[ObjectKey, Tree | None]], found: list[tuple[int, str, list[str]]]
) -> None:
    assert audited(*writes) == found
