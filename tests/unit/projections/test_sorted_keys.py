"""Keys that are sorted late are those that were added and not removed, in order."""

import random

from app.domain.log import ObjectKey
from projections.sorted_keys import SortedKeys


def key(number: int) -> ObjectKey:
    return ObjectKey("", "pods", f"space-{number % 3}", f"pod-{number}")


def test_keys_are_those_of_a_set_in_order() -> None:
    for seed in range(40):
        pick = random.Random(seed)
        keys, expected = SortedKeys(), set[ObjectKey]()
        for _ in range(pick.randrange(1, 400)):
            one = key(pick.randrange(120))
            if one in expected:
                keys.remove(one)
                expected.remove(one)
            else:
                keys.add(one)
                expected.add(one)
            if pick.random() < 0.1:
                assert list(keys.all()) == sorted(expected)
            if pick.random() < 0.1:
                first, end = sorted((key(pick.randrange(120)), key(pick.randrange(120))))
                assert keys.between(first, end) == sorted(k for k in expected if first <= k < end)
            assert len(keys) == len(expected)
