"""What a comparison of two runs leaves out of objects."""

import random

import pytest

from app.analysis.masks import changes, masked, masked_where_different
from tests import draws


def result(**more):
    return {"device": "gpu-0", **more}


def test_share_counts_and_its_random_id_does_not():
    one, other = masked(result(shareID="a")), masked(result(shareID="b"))
    assert list(changes(one, other)) == []
    assert [path for path, *_ in changes(masked(result()), one)] == ["shareID"]
    for absent in ("", None):
        assert masked(result(shareID=absent)) == masked(result())


def test_generation_of_an_object_counts_writes_and_others_are_content():
    tree = {"metadata": {"name": "a", "generation": 3}, "pool": {"generation": 3}}
    assert masked(tree) == {"metadata": {"name": "a"}, "pool": {"generation": 3}}


def test_that_a_condition_has_a_time_counts_and_which_one_does_not():
    one = masked({"type": "Ready", "lastTransitionTime": "2026-01-01T00:00:00Z"})
    other = masked({"type": "Ready", "lastTransitionTime": "2026-01-01T00:00:09Z"})
    assert list(changes(one, other)) == []
    assert [path for path, *_ in changes(masked({"type": "Ready"}), one)] == ["lastTransitionTime"]


NAMES = ("metadata", "generation", "shareID", "lastTransitionTime", "timeAdded", "spec", "a", "b")


def tree_of(draw, depth=3):
    """A random tree of the fields that masks tell apart, with empty values of each type."""
    if not depth or draw.random() < 0.3:
        return draw.choice((None, "", "x", "y", 0, 1, True, {}, [], [{"shareID": "s"}]))
    if draw.random() < 0.2:
        return [tree_of(draw, depth - 1) for _ in range(draw.randrange(3))]
    return {name: tree_of(draw, depth - 1) for name in draw.sample(NAMES, draw.randrange(6))}


def altered(draw, tree):
    """The tree with some of its values replaced."""
    if not isinstance(tree, dict) or draw.random() < 0.1:
        return tree_of(draw, 2) if draw.random() < 0.5 else tree
    kept = {name: altered(draw, value) for name, value in tree.items() if draw.random() < 0.95}
    return kept | {draw.choice(NAMES): tree_of(draw, 2)} if draw.random() < 0.2 else kept


@draws.BY_DAY
@pytest.mark.parametrize("seed", range(4))
def test_trees_masked_where_they_differ_have_the_changes_of_masked_trees(seed):
    draw, different = random.Random(seed), 0
    for _ in range(500):
        old = {name: tree_of(draw) for name in NAMES}
        new = altered(draw, old)
        expected = list(changes(masked(old), masked(new)))
        assert list(changes(*masked_where_different(old, new))) == expected, (old, new)
        different += bool(expected)
    assert different > 100
