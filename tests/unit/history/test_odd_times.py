"""Single answers whose time contradicts those of the other lines."""

import random

import pytest

from app.adapters.history.joining.odd_times import PackedRequests, outliers

SECOND = 1_000_000


def literally(requests):
    """The same by the definition: look at each pair of a request and a later answer."""
    pairs = [
        (one, other)
        for one, (requested, _) in enumerate(requests)
        for other, (_, answered) in enumerate(requests)
        if one < other and None not in (requested, answered) and answered < requested - SECOND
    ]
    of_request = {one: [late for early, late in pairs if early == one] for one, _ in pairs}
    return {
        other
        for _, other in pairs
        if len([one for one, late in pairs if late == other]) > 1
        and all(of_request[one] == [other] for one, late in pairs if late == other)
    }


def at(*seconds):
    return [None if each is None else each * SECOND for each in seconds]


@pytest.mark.parametrize(
    ("requested", "answered", "odd"),
    [
        (at(10, 20, 30, 4), at(11, 21, 31, 5), {3}),  # the example
        (at(10, 4), at(11, 5), set()),  # one of the two
        (at(50, 20, 30), at(51, 21, 31), set()),  # the first is dated too late
        (at(10, 20, 30, 4, 4), at(11, 21, 31, 5, 5), set()),  # a clock that was set back
        (at(None, 20, 30, 4), at(11, 21, 31, None), set()),  # what is not known is no witness
    ],
)
def test_answer_is_an_outlier_if_it_alone_contradicts_several_requests(requested, answered, odd):
    assert outliers(PackedRequests(zip(requested, answered, strict=True))) == odd


def test_outliers_are_those_of_the_definition():
    source = random.Random("outliers")
    counts = 0
    for _ in range(400):
        times = sorted(source.sample(range(60), 8))
        requests = [(each * SECOND, (each + 1) * SECOND) for each in times]
        for _ in range(source.choice((1, 1, 2))):
            by = source.choice((-30, -12, 12)) * SECOND
            place = source.randrange(8)
            requests[place] = (requests[place][0] + by, requests[place][1] + by)
        assert outliers(PackedRequests(requests)) == literally(requests), requests
        counts += bool(literally(requests))
    assert counts > 50


def test_packed_requests_are_those_that_were_given():
    given = [(1, 2), (None, 3), (-4, None), (None, None)]
    packed = PackedRequests(given)
    assert list(packed) == given
    assert (packed[-1], packed[1:3], len(packed)) == (given[-1], given[1:3], 4)
    with pytest.raises(IndexError):
        packed[4]
