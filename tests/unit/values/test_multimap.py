"""A multimap against a dictionary of sets, with drawn operations."""

from hypothesis import given
from hypothesis import strategies as st

from app.domain.values.multimap import Multimap

steps = st.lists(
    st.tuples(st.booleans(), st.sampled_from("ab"), st.sampled_from([("n", "x"), ("n", "y"), "z"]))
)


@given(steps)
def test_multimap_is_a_dictionary_of_sets(steps):
    made, model = Multimap(), {}
    for is_added, key, value in steps:
        if is_added:
            made.add(key, value)
            model.setdefault(key, set()).add(value)
        else:
            made.discard(key, value)
            model.get(key, set()).discard(value)
            model = {key: values for key, values in model.items() if values}
        assert {key: set(made.of(key)) for key in made} == model
        assert len(made) == len(model)
        assert all(len(made.of(key)) == len(values) for key, values in model.items())
        assert not made.of("absent")
