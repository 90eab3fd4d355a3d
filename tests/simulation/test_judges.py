"""The judge of worlds and crashes reports each forbidden state."""

import copy
import json

import pytest

from app.domain.log import Actor, Event, EventType, ObjectKey, Revision, Stamp
from app.domain.values.timestamps import Instant
from tests.simulation.soundness import Soundness, Unsound, check_events

DRIVER = "gpu.example.com"
PROTECTION = "resource.kubernetes.io/delete-protection"
STAMP = Stamp(time=Instant(0), actor=Actor(user="alice"), verb="create")
GROUPS = {"Claim": "resourceclaims", "Slice": "resourceslices", "Pod": "pods"}


def event(number: int, kind: str, name: str, type: EventType, **tree: object) -> Event:
    resource = GROUPS[kind]
    group, namespace = ("", "ns") if kind == "Pod" else ("resource.k8s.io", "ns")
    key = ObjectKey(group, resource, "" if kind == "Slice" else namespace, name)
    metadata = {"name": name, "uid": f"uid-{name}", "resourceVersion": str(number)}
    metadata |= tree.pop("metadata", {})
    body = json.dumps({"metadata": metadata, **tree}).encode()
    return Event(
        revision=Revision(number), type=type, key=key, uid=f"uid-{name}", body=body, stamp=STAMP
    )


def history(*steps: tuple) -> list[Event]:
    """A history of steps: kind, name and the parts of a tree. A repeated name is an update."""
    seen: set[tuple[str, str]] = set()
    found = []
    for number, (kind, name, tree) in enumerate(steps, 1):
        again = (kind, name) in seen
        type = EventType.OBJECT_UPDATED if again else EventType.OBJECT_CREATED
        seen.add((kind, name))
        found.append(event(number, kind, name, type, **copy.deepcopy(tree)))
    return found


def devices(*listed: dict, **spec: object) -> dict:
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    return {"spec": {"driver": DRIVER, "pool": pool, "devices": list(listed), **spec}}


def result(device: str = "d0", **fields: object) -> dict:
    return {"request": "r", "driver": DRIVER, "pool": "p", "device": device, **fields}


def claim(*results: dict, pods: tuple = ("pod",), protected: bool = True) -> dict:
    status: dict = {"allocation": {"devices": {"results": list(results)}}} if results else {}
    if pods:
        status["reservedFor"] = [
            {"resource": "pods", "name": name, "uid": f"uid-{name}"} for name in pods
        ]
    return {"metadata": {"finalizers": [PROTECTION] if protected else []}, "status": status}


def pod(node: str = "n", name: str = "c", **status: object) -> dict:
    claims = [{"name": "gpu", "resourceClaimName": name}]
    return {"spec": {"nodeName": node, "resourceClaims": claims}, "status": status}


def uses(amount: str) -> list:
    return [{"counterSet": "s", "counters": {"m": {"value": amount}}}]


COUNTERS = devices(
    {"name": "d0", "consumesCounters": uses("6")},
    {"name": "d1", "consumesCounters": uses("5")},
    sharedCounters=[{"name": "s", "counters": {"m": {"value": "10"}}}],
)
SHARED = devices(
    {"name": "d0", "allowMultipleAllocations": True, "capacity": {"m": {"value": "4"}}}
)
PLAIN = devices({"name": "d0"}, {"name": "d1"})
WAITING = {"spec": {"resourceClaims": [{"name": "gpu", "resourceClaimName": "c"}]}}


def share(amount: str, number: str) -> dict:
    return result(shareID=number, consumedCapacity={"m": amount})


SOUND = [
    [("Slice", "s", PLAIN), ("Pod", "pod", WAITING), ("Claim", "c", claim(result()))],
    [
        ("Slice", "s", COUNTERS),
        ("Pod", "pod", WAITING),
        ("Claim", "c", claim(result())),
        ("Claim", "e", claim(result("d1", adminAccess=True))),
    ],
    [
        ("Slice", "s", SHARED),
        ("Pod", "pod", WAITING),
        ("Claim", "c", claim(share("2", "a"))),
        ("Claim", "e", claim(share("2", "b"))),
    ],
]

BROKEN = [
    (
        [("Slice", "s", PLAIN), ("Claim", "c", claim(result())), ("Claim", "e", claim(result()))],
        "d0 is allocated 2 times",
    ),
    (
        [
            ("Slice", "s", SHARED),
            ("Claim", "c", claim(share("1", "a"))),
            ("Claim", "e", claim(result())),
        ],
        "d0 is allocated 2 times",
    ),
    (
        [
            ("Slice", "s", SHARED),
            ("Claim", "c", claim(share("3", "a"))),
            ("Claim", "e", claim(share("2", "b"))),
        ],
        "m of device .* is consumed beyond",
    ),
    (
        [
            ("Slice", "s", COUNTERS),
            ("Claim", "c", claim(result())),
            ("Claim", "e", claim(result("d1"))),
        ],
        "counter m of set s in .* is overdrawn",
    ),
    ([("Slice", "s", PLAIN), ("Claim", "c", claim(result("d9")))], "d9 was in no slice"),
    (
        [("Slice", "s", PLAIN), ("Claim", "c", claim(result(), protected=False))],
        "is allocated without its finalizer",
    ),
    ([("Claim", "c", claim())], "is reserved and not allocated"),
    ([("Slice", "s", PLAIN), ("Pod", "pod", pod())], "is bound and .* is not allocated"),
    (
        [
            ("Slice", "s", PLAIN),
            ("Claim", "c", claim(result(), pods=("other",))),
            ("Pod", "pod", pod()),
        ],
        "is bound and .* is not reserved for it",
    ),
    (
        [("Pod", "pod", {"spec": {"nodeName": "a"}}), ("Pod", "pod", {"spec": {"nodeName": "b"}})],
        "was bound to a and moved",
    ),
    (
        [
            ("Pod", "pod", {"spec": {}, "status": {"phase": "Failed"}}),
            ("Pod", "pod", {"spec": {}, "status": {"phase": "Running"}}),
        ],
        "was Failed and is not any more",
    ),
    (
        [
            ("Slice", "s", PLAIN),
            ("Claim", "c", claim(result())),
            ("Claim", "c", claim(result("d1"))),
        ],
        "was allocated again",
    ),
    (
        [("Claim", "c", {"metadata": {"resourceVersion": "7"}})],
        "has the resourceVersion 7",
    ),
]


@pytest.mark.parametrize("steps", SOUND)
def test_sound_history_is_accepted(steps: list) -> None:
    assert check_events(history(*steps)).events == len(steps)


@pytest.mark.parametrize(("steps", "problem"), BROKEN)
def test_broken_rule_is_noticed_at_its_event(steps: list, problem: str) -> None:
    *before, last = history(*steps)
    sound = Soundness()
    for one in before:
        sound.fold(one)
    with pytest.raises(Unsound, match=problem):
        sound.fold(last)


def test_consumer_that_is_gone_is_noticed_at_rest() -> None:
    with pytest.raises(Unsound, match="is reserved for pod pod, which does not exist"):
        check_events(history(("Slice", "s", PLAIN), ("Claim", "c", claim(result()))))


def test_freed_device_may_be_given_again() -> None:
    steps = [
        ("Slice", "s", PLAIN),
        ("Claim", "c", claim(result())),
        ("Claim", "c", claim(pods=())),
        ("Pod", "pod", WAITING),
        ("Claim", "e", claim(result())),
    ]
    check_events(history(*steps))
