"""The biography of a device that several claims name at a time."""

import json

import msgspec
import pytest

from app.analysis.explain.hardware.biography import Biography
from app.domain.values import identifiers
from tests.cluster import DRIVER, Cluster

KINDS = {"whole": {}, "share": {"shareID": "s"}, "admin": {"adminAccess": True}}


@pytest.mark.parametrize(
    ("kinds", "is_twice"),
    [
        (("whole", "admin"), False),
        (("admin", "admin"), False),
        (("share", "share"), False),
        (("whole", "whole"), True),
        (("whole", "share"), True),
    ],
)
def test_only_claims_that_exclude_each_other_hold_a_device_twice(kinds, is_twice):
    """Administrative access takes nothing, shares are made to go together (allocator.md 1.1)."""
    cluster = Cluster()
    life = Biography(identifiers.parse_device(f"{DRIVER}/n1/d0"))
    for number, kind in enumerate(kinds):
        cluster.claim(f"c{number}")
        created = cluster.line.events[-1]
        result = {"request": "gpu", "driver": DRIVER, "pool": "n1", "device": "d0", **KINDS[kind]}
        tree = {**created.object, "status": {"allocation": {"devices": {"results": [result]}}}}
        life.fold(msgspec.structs.replace(created, body=json.dumps(tree).encode(), tree=None))
    (held,) = (reason for reason in life.reasons(cluster.line.now) if "held it" in reason.text)
    assert held.text.startswith("one device in two claims") is is_twice
    assert len(held.children) == 2
