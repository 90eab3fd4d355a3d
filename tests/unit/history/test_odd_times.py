"""Single answers whose time contradicts those of the other lines."""

import random

import pytest

from app.adapters.history.joining.odd_times import (
    PackedRequests,
    before_creation,
    outliers,
    too_early,
)

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


@pytest.mark.parametrize(
    ("binding", "created", "odd"),
    [
        (5, 20, [2]),  # before its pod, and before two requests that come before it
        (15, 20, [2]),
        (19, 20, []),  # within what clocks may differ
        (15, 10, []),  # after its pod was created: it may have been sent before the second request
        (5, None, []),  # when the pod was created is not known
        (25, 20, []),
    ],
)
def test_change_without_a_version_is_not_dated_before_its_object(binding, created, odd):
    requests = PackedRequests(zip(at(20, 21, None, 30), at(21, 22, None, 31), strict=True))
    rows = [(21 * SECOND, True), (22 * SECOND, True), (binding * SECOND, True)]
    rows.append((31 * SECOND, True))
    made = None if created is None else created * SECOND
    creations = [("p", made), ("q", 1 * SECOND), ("p", None), ("q", None)]
    assert list(before_creation(too_early(requests, rows), rows, creations)) == odd


def test_one_request_does_not_show_that_a_change_is_dated_too_early():
    requests = PackedRequests(zip(at(20, None), at(21, None), strict=True))
    assert too_early(requests, [(21 * SECOND, True), (5 * SECOND, True)]) == frozenset()
