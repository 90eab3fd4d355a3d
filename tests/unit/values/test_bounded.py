"""A bounded dictionary behaves as a list of pairs that is cut at its beginning."""

from hypothesis import given
from hypothesis import strategies as st

from app.domain.values.bounded import Bounded

STEPS = st.lists(
    st.tuples(st.sampled_from(["set", "get", "recent", "pop"]), st.integers(0, 9)), max_size=60
)


@given(size_max=st.integers(0, 6), steps=STEPS)
def test_keeps_what_was_written_or_used_last(size_max: int, steps: list[tuple[str, int]]) -> None:
    held: Bounded[int, int] = Bounded(size_max)
    model: list[tuple[int, int]] = []
    for number, (step, key) in enumerate(steps):
        there = dict(model)
        if step == "set":
            held[key] = number
            if key in there:
                model = [(k, number if k == key else v) for k, v in model]
            else:
                model = [*model, (key, number)][-size_max:] if size_max else []
        elif step == "recent":
            assert held.recent(key) == there.get(key)
            if key in there:
                model = [*((k, v) for k, v in model if k != key), (key, there[key])]
        elif step == "pop":
            assert held.pop(key, None) == there.get(key)
            model = [(k, v) for k, v in model if k != key]
        else:
            assert held.get(key) == there.get(key)
        assert list(held.items()) == model


def test_smaller_bound_drops_the_oldest_entries_at_once():
    kept: Bounded[str, int] = Bounded(3)
    for number, name in enumerate("abc"):
        kept[name] = number
    kept.resize(1)
    assert list(kept) == ["c"]
    kept.resize(2)
    kept["d"] = 3
    assert list(kept) == ["c", "d"]
