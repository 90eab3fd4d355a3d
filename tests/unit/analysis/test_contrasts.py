"""Two values beside each other: what differs is always shown, however long what is the same."""

import json
import random

import pytest

from app.analysis.diff import contrasts, named_lists
from app.analysis.explain import pages


@pytest.mark.parametrize("length", [10, 60, 100, 1000])
@pytest.mark.parametrize("seed", range(5))
def test_part_that_differs_is_shown_whole(length, seed):
    chance = random.Random(seed)
    before, after = ("".join(chance.choices("ab ./", k=length)) for _ in range(2))
    left, right = contrasts.of(f"{before}OLD{after}", f"{before}NEWER{after}")
    assert "OLD" in left
    assert "NEWER" in right
    for text, word in ((left, "OLD"), (right, "NEWER")):
        begin, _, end = text.strip('"').partition(word)
        assert before.endswith(begin.lstrip("…"))
        assert after.startswith(end.rstrip("…"))
    assert max(len(left), len(right)) <= contrasts.LONG + 2 * contrasts.BESIDE + 10


@pytest.mark.parametrize("same", ["", "x" * 10, "x" * contrasts.BESIDE, "x" * 100])
def test_ellipsis_stands_for_what_is_left_out_alone(same):
    """On either side of what differs; a mark of JSON is at each end."""
    is_cut = len(same) + 1 > contrasts.BESIDE
    for a, b in (("1" * 90, "2" * 90), ("3" * 90, "4" * 90)):
        left, right = contrasts.of(same + a, same + b)
        kept = same[-contrasts.BESIDE :] if is_cut else f'"{same}'
        assert (left, right) == tuple(f'{"…" * is_cut}{kept}{each}"' for each in (a, b))
        left, right = contrasts.of(a + same, b + same)
        kept = same[: contrasts.BESIDE] if is_cut else f'{same}"'
        assert (left, right) == tuple(f'"{each}{kept}{"…" * is_cut}' for each in (a, b))


def test_short_values_are_shown_as_they_are():
    assert contrasts.of({"a": 1}, [2]) == ("{a: 1}", "[2]")


@pytest.mark.parametrize("pair", [("a" * 100, "a" * 101), ("a" * 200, "a" * 150)])
def test_value_that_is_a_part_of_the_other_differs_by_its_length(pair):
    left, right = contrasts.of(*pair)
    assert left != right
    assert abs(len(left) - len(right)) == abs(len(pair[0]) - len(pair[1]))


def test_entries_without_names_are_not_compared_by_name():
    assert named_lists.by_name([{"cel": {"expression": "true"}}]) is None
    assert list(named_lists.by_name([{"name": "a"}]) or ()) == ["a"]


def test_long_value_without_spaces_is_cut_within_itself():
    value = json.dumps({"expression": "x" * 300}, separators=(",", ":"))
    text = pages.shortened(f"spec.selectors: {value}", 160)
    assert text == f"spec.selectors: {value}"[:160] + " …"
    assert pages.shortened("one two three four five", 20) == "one two three four …"
