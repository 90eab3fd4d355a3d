"""The pools that the checker takes for usable, from slices as they are published.

Parity: allocator.md 4. A pool is complete when its newest generation has as many slices as the
first of them announces; the checker reads that anew, and not as the search does.
"""

from typing import Any

import pytest

from app.domain.allocation.checking import stock
from app.domain.allocation.checking.stock import Reading, UsablePool
from tests.worlds.builders import counter_set, device, node, resource_slice, uses

READING = Reading(partitionable=True, taints=True, is_stable=False)
Q12 = Reading(partitionable=True, taints=True, is_stable=False, quirks=frozenset({"q12"}))


def published(name: str, *devices: Any, on: str = "node", **more: Any) -> Any:
    return resource_slice(name, *devices, node=on, **more)


def pools(*slices: Any, reading: Reading = READING) -> list[UsablePool]:
    return stock.usable_pools(node(), slices, (), reading)


ROWS: list[tuple[str, list[Any], list[str] | None]] = [
    ("one slice", [published("a", device("d"))], ["d"]),
    ("one of two", [published("a", device("d"), count=2)], None),
    (
        "both",
        [published("a", device("d"), count=2), published("b", device("e"), count=2)],
        ["d", "e"],
    ),
    (
        "an older generation besides",
        [published("a", device("d"), generation=2), published("b", device("e"))],
        ["d"],
    ),
    (
        "a newer one elsewhere",
        [published("a", device("d")), published("b", device("e"), generation=2, on="other")],
        None,
    ),
    (
        "the other slice elsewhere",
        [published("a", device("d"), count=2), published("b", device("e"), count=2, on="other")],
        ["d"],
    ),
    (
        "an old slice elsewhere",
        [published("a", device("d"), generation=2), published("b", device("e"), on="other")],
        ["d"],
    ),
    ("a device twice", [published("a", device("d"), device("d"))], None),
    (
        "a counter that is not there",
        [published("a", device("d", consumesCounters=uses("s", x=1)))],
        None,
    ),
    (
        "a counter in another slice",
        [
            published("a", device("d", consumesCounters=uses("s", x=1)), count=2),
            published("b", count=2, sharedCounters=[counter_set("s", x=2)]),
        ],
        ["d"],
    ),
    ("only elsewhere", [published("a", device("d"), on="other")], None),
]


@pytest.mark.parametrize(("slices", "names"), [row[1:] for row in ROWS], ids=[r[0] for r in ROWS])
def test_pool_is_usable_when_it_is_complete_and_valid(
    slices: list[Any], names: list[str] | None
) -> None:
    for order in (slices, slices[::-1]):
        found = pools(*order)
        assert len(found) == (names is not None)
        assert [piece.key[2] for pool in found for piece in pool.pieces] == (names or [])


@pytest.mark.parametrize(
    ("slices", "generation", "is_uniform", "elsewhere"),
    [
        ([published("a", device("d"), generation=3)], 3, True, []),
        (
            [
                published("a", device("d"), generation=3, count=2),
                published("b", device("e"), generation=3, count=2),
            ],
            3,
            True,
            [],
        ),
        # a slice of an older generation, which another node may still read
        (
            [published("a", device("d"), generation=3), published("b", device("e"))],
            3,
            False,
            [],
        ),
        # slices that announce different numbers
        (
            [
                published("a", device("d"), generation=3, count=2),
                published("b", device("e"), generation=3, count=3, on="other"),
            ],
            3,
            False,
            ["e"],
        ),
        (
            [
                published("a", device("d"), generation=3, count=2),
                published("b", device("e"), generation=3, count=2, on="other"),
            ],
            3,
            True,
            ["e"],
        ),
    ],
)
def test_pool_says_which_slices_it_was_read_from(
    slices: list[Any], generation: int, is_uniform: bool, elsewhere: list[str]
) -> None:
    (pool,) = pools(*slices)
    assert (pool.generation, pool.newer) == (generation, None)
    assert pool.is_uniform is is_uniform
    assert [key[2] for key, _ in pool.elsewhere] == elsewhere


def test_quirk_q12_looks_at_other_slices_only_if_the_own_ones_are_too_few() -> None:
    """A newer generation elsewhere is not noticed then; what it is stays known to the checker."""
    own = published("a", device("d"))
    newer = published("b", device("e"), generation=2, on="other")
    (pool,) = pools(own, newer, reading=Q12)
    assert (pool.generation, pool.newer) == (1, 2)
    assert [piece.key[2] for piece in pool.pieces] == ["d"]
    assert pool.elsewhere == []
    assert pools(published("a", device("d"), count=2), newer, reading=Q12) == []
