"""Allocations after writes that were not recorded: what these may explain, and what they cannot.

A device is allocated in the world of `test_other_choices`, in which redra would take c-first. What
an unrecorded write may have changed follows from its kind: claims and rules say which devices may
be had; nodes, classes and slices say which there are. None of them lifts the taint of a driver or
gives a device another size, unless the slice itself is written.
"""

from typing import Any

import pytest

from app.analysis.verify.compare import DifferenceKind
from app.domain.log import ObjectKey
from tests.unit.analysis.invariants.test_rules import Story
from tests.unit.analysis.invariants.worlds import key_of
from tests.unit.analysis.verify.test_other_choices import give, observed, world

NODES, CLASSES, SLICES = "nodes", "deviceclasses", "resourceslices"
CLAIMS, RULES, PATCHES = "resourceclaims", "devicetaintrules", "resourceslicepatches"

FIRST, SECOND, HELD, SMALL, TAINTED = "c-first", "d-second", "b-held", "a-small", "e-tainted"
EXPLAINED, OTHER, WRONG = None, DifferenceKind.OTHER_CHOICE, DifferenceKind.VIOLATION

ROWS: list[tuple[str, str, str, Any]] = [
    ("", "", FIRST, EXPLAINED),
    ("", "", SECOND, OTHER),
    ("", "", HELD, WRONG),
    (CLAIMS, "", FIRST, EXPLAINED),
    (CLAIMS, "", SECOND, EXPLAINED),
    (CLAIMS, "", HELD, EXPLAINED),
    (CLAIMS, "", SMALL, WRONG),
    (CLAIMS, "", TAINTED, WRONG),
    (CLAIMS, "holder", SECOND, EXPLAINED),
    (CLAIMS, "holder", HELD, EXPLAINED),
    (CLAIMS, "holder", SMALL, WRONG),
    (CLAIMS, "holder", TAINTED, WRONG),
    (CLAIMS, "x", SECOND, OTHER),
    (CLAIMS, "x", HELD, WRONG),
    (RULES, "", SECOND, EXPLAINED),
    (RULES, "", HELD, WRONG),
    (RULES, "", TAINTED, WRONG),
    (NODES, "n1", SECOND, EXPLAINED),
    (NODES, "n2", SECOND, OTHER),
    (NODES, "", SECOND, EXPLAINED),
    (CLASSES, "gpu", SECOND, EXPLAINED),
    (CLASSES, "nic", SECOND, OTHER),
    (CLASSES, "", SECOND, EXPLAINED),
    (SLICES, "n1", SECOND, EXPLAINED),
    (SLICES, "n1", TAINTED, EXPLAINED),
    (SLICES, "n2", SECOND, OTHER),
    (SLICES, "n2", HELD, WRONG),
    (SLICES, "unknown", SECOND, EXPLAINED),
    (SLICES, "", SECOND, EXPLAINED),
    (PATCHES, "p", SECOND, EXPLAINED),
    ("configmaps", "c", SECOND, OTHER),
]


def verdict(story: Story, name: str) -> DifferenceKind | None:
    """The kind of the difference when a device is allocated; None if it is explained or none."""
    give(story, "x", name)
    kinds = [each.kind for each in observed(story)]
    assert len(kinds) <= 1
    return DifferenceKind(kinds[0]) if kinds else None


@pytest.mark.parametrize(
    ("kind", "name", "allocated", "expected"),
    ROWS,
    ids=[f"{kind or 'nothing'}/{name or '*'}: {device}" for kind, name, device, _ in ROWS],
)
def test_unrecorded_write_explains_what_it_may_have_changed(
    kind, name, allocated, expected
) -> None:
    story = world()
    if kind:
        key = key_of(kind, name)
        story.gap(ObjectKey(key.group, key.resource, "", "") if not name else key)
    assert verdict(story, allocated) is expected
