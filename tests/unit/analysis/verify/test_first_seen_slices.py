"""Allocations of devices whose slice is first seen when it changes: its creation has no line."""

import pytest

from app.analysis.verify.compare import ComparisonResult
from tests.unit.analysis.invariants.test_rules import Story
from tests.unit.analysis.invariants.worlds import key_of, result, slice_, user
from tests.unit.analysis.verify.test_last_lost import ANY, result_of
from tests.unit.analysis.verify.test_selector_judge import of_size, put_class


def judged(pool: str, *losses: str) -> ComparisonResult:
    """The comparison of an allocation of pool p, after which a slice of a pool is first seen."""
    story = Story()
    put_class(story)
    story.put(key_of("nodes", "node"), {})
    story.publish("known", of_size("small", "b"))
    story.claim("x", ANY)
    story.pod("of-x", "x", node="node")
    tree, write = story.change(key_of("resourceclaims", "x"))
    tree["status"] = {
        "allocation": {"devices": {"results": [result("p", "a")]}},
        "reservedFor": [user("of-x", story.uid("of-x"))],
    }
    write()
    slice_tree = slice_(pool, of_size("small", "a"))
    story.put(key_of("resourceslices", "shown"), slice_tree, losses=losses)
    return result_of(story, None, number=1)


@pytest.mark.parametrize(
    ("pool", "losses", "expected"),
    [
        ("p", ["synthetic_create"], ComparisonResult.NOT_COMPARABLE),
        # made after the allocation
        ("p", [], ComparisonResult.DIFFERENT),
        # the pool of a slice never changes
        ("q", ["synthetic_create"], ComparisonResult.DIFFERENT),
    ],
)
def test_slice_that_is_first_seen_when_it_changes_had_its_devices(pool, losses, expected) -> None:
    assert judged(pool, *losses) is expected
