"""Hypothesis strategies for worlds with clusters and matching claims."""

from hypothesis import strategies as st

from tests.worlds import random_worlds

SEEDS = st.integers(min_value=0, max_value=2**32 - 1)


def worlds(theme: str | None = None) -> st.SearchStrategy[dict]:
    """Worlds in the form of a scenario; a failing one is named by its seed."""
    return SEEDS.map(lambda seed: random_worlds.world(seed, theme=theme))


def spoilt(scenario: dict) -> st.SearchStrategy[dict]:
    """The scenario with one value somewhere in its input replaced by another kind of value."""
    return st.builds(
        _replaced,
        st.just(scenario),
        st.sampled_from(list(_paths(scenario["input"]))[1:]),
        st.sampled_from(
            [None, 5, -3, 2.5, "x", "", True, [], {}, [1], [{}], {"a": 1}, "9" * 50, 10**30, [None]]
        ),
    )


def _paths(tree: object, path: tuple = ()):
    yield path
    if isinstance(tree, dict):
        for name, value in tree.items():
            yield from _paths(value, (*path, name))
    elif isinstance(tree, list):
        for index, value in enumerate(tree):
            yield from _paths(value, (*path, index))


def _replaced(scenario: dict, path: tuple, value: object) -> dict:
    def rebuilt(tree, rest):
        if not rest:
            return value
        if isinstance(tree, dict):
            return {**tree, rest[0]: rebuilt(tree[rest[0]], rest[1:])}
        return [
            rebuilt(item, rest[1:]) if index == rest[0] else item for index, item in enumerate(tree)
        ]

    return {**scenario, "input": rebuilt(scenario["input"], path)}
