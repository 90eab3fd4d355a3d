"""Fresh identities."""

import re

from app.adapters.uids import DerivedUids, RandomUids

FORM = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")


def test_uids_have_the_form_of_the_api():
    for source in (RandomUids(), DerivedUids(7)):
        assert FORM.fullmatch(source.uid())


def test_random_uids_differ():
    source = RandomUids()
    assert len({source.uid() for _ in range(100)}) == 100


def test_derived_uids_depend_on_seed_and_counter_alone():
    one, other = DerivedUids(7), DerivedUids(7)
    first = [one.uid() for _ in range(5)]
    assert [other.uid() for _ in range(5)] == first
    assert DerivedUids(7, counter=3).uid() == first[3]
    assert one.counter == 5


def test_derived_uids_of_other_seeds_differ():
    seeds = (0, 1, 10, 11, -1, 2**70)
    assert (
        len({DerivedUids(seed, counter=count).uid() for seed in seeds for count in range(12)}) == 72
    )


def test_derived_uids_stay_what_they_are():
    assert DerivedUids(7).uid() == "1fa4555d-6dc1-4c8a-ba89-4282373a3343"
