"""Groups of devices that draw from the same counter sets, against a model that walks from each."""

from types import SimpleNamespace

from hypothesis import given
from hypothesis import strategies as st

from app.domain.allocation import bounds, counters

SETS = st.sampled_from([(pool, f"set-{number}") for pool in range(2) for number in range(5)])
DEVICES = st.lists(st.lists(st.tuples(SETS, st.integers(0, 3)), max_size=3), max_size=10)


def connected(devices):
    """The devices that can be reached from each by way of common sets, in groups."""
    groups = set()
    for start in range(len(devices)):
        reached, waiting = set(), [start]
        while waiting:
            here = waiting.pop()
            if here not in reached:
                reached.add(here)
                waiting += [one for one, sets in enumerate(devices) if sets & devices[here]]
        if devices[start]:
            groups.add(frozenset(reached))
    return groups


@given(DEVICES)
def test_groups_are_the_devices_that_counter_sets_connect(drawn):
    """A device draws from the sets of one pool, as the API wants it: that of its first one."""
    devices = [[(place, each) for place, each in one if place[0] == one[0][0][0]] for one in drawn]
    pools = [one[0][0][0] if one else 0 for one in devices]
    amounts = [
        tuple({(name, "memory"): amount for (_, name), amount in one}.items()) for one in devices
    ]
    problem = SimpleNamespace(
        view=SimpleNamespace(pool_index=pools), draws=SimpleNamespace(amounts=amounts)
    )
    groups = bounds.groups_of_counters(problem)
    numbers = range(len(devices))
    masks = [frozenset(n for n in numbers if group.mask >> n & 1) for group in groups]
    assert len(masks) == len(set(masks))
    assert set(masks) == connected([{place for place, _ in one} for one in devices])
    for group in groups:
        drawing = {
            (pool, counter, n, amount)
            for pool, counter, by_amount in group.counters
            for amount, mask in by_amount
            for n in numbers
            if mask >> n & 1
        }
        assert drawing == {
            (pools[n], counter, n, amount)
            for n in numbers
            if group.mask >> n & 1
            for counter, amount in amounts[n]
        }


def test_counter_that_a_device_names_twice_is_added_up():
    """The API refuses such a device; a recording may have one."""
    twice = SimpleNamespace(
        consumes=(
            ("set-0", (("memory", 3), ("cores", 1))),
            ("set-1", (("memory", 7),)),
            ("set-0", (("memory", 5),)),
        )
    )
    draws = counters.draws_of([twice, SimpleNamespace(consumes=())])
    assert [dict(amounts) for amounts in draws.amounts] == [
        {("set-0", "memory"): 8, ("set-0", "cores"): 1, ("set-1", "memory"): 7},
        {},
    ]
    assert not draws.negative
