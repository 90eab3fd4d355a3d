"""Versions of the store that no line is about: where a write may have no line."""

import pytest

from app.domain.log import Actor, Event, EventType, ObjectKey, Revision, Stamp
from app.domain.log.event import Origin
from app.domain.log.records import Loss
from app.domain.log.store_versions import Versions, WriteSpan
from app.domain.values.timestamps import SECOND, Instant

POD = ObjectKey("", "pods", "default", "p")


def at(seconds):
    return Instant(round(seconds * SECOND))


def write(version, second, verb="update", *, losses=(), asked=None, request="r"):
    """A write that is answered at a second; without a version if `version` is empty."""
    is_end = verb.startswith("delete")
    loss = () if version else (Loss.NO_RV.value,)
    origin = Origin(
        source="audit",
        resource_version=str(version),
        losses=(*loss, *(each.value for each in losses)),
        asked=at(second if asked is None else asked),
        answered=at(second),
    )
    return Event(
        revision=Revision(1),
        type=EventType.OBJECT_DELETED if is_end else EventType.OBJECT_UPDATED,
        key=POD,
        uid="u",
        body=b"{}",
        stamp=Stamp(
            time=at(second), actor=Actor(user="a"), verb=verb, origin=origin, request_id=request
        ),
    )


BINDING = write("", 20.1, "create", asked=20)
REMOVAL = write("", 20.1, "delete", asked=20)


@pytest.mark.parametrize(
    ("between", "after", "is_hidden"),
    [
        ([], write(11, 30), False),
        ([], write(12, 30), True),
        # a write without a version fills one that was given while it was under way
        ([BINDING], write(12, 30), False),
        ([REMOVAL], write(12, 30), False),
        ([BINDING], write(13, 30), True),
        ([BINDING, REMOVAL], write(13, 30), False),
        ([write("", 20.1, asked=20)], write(12, 30), True),
        ([write(11, 15), write("", 40, "create", asked=39)], write(13, 20), True),
        # a pod is removed in two writes
        ([], write(12, 30, "delete", losses=[Loss.COLLAPSED]), False),
        ([], write(13, 30, "delete", losses=[Loss.COLLAPSED]), True),
        # a restore sets versions back
        ([], write(5, 30), False),
    ],
)
def test_version_that_is_left_over_may_be_of_a_write_without_a_line(between, after, is_hidden):
    versions = Versions()
    for each in (write(9, 1), write(10, 10), *between, after):
        versions.follow(each)
    assert versions.may_hide(at(10), at(30)) is is_hidden


def test_it_was_given_between_those_of_its_neighbours():
    versions = Versions()
    for each in (write(10, 10, asked=9.9), write(12, 12), write(13, 40)):
        versions.follow(each)
    spans = ((1, 9.8), (1, 9.9), (11, 11.1), (12, 20), (12.1, 20))
    assert [versions.may_hide(at(first), at(last)) for first, last in spans] == [
        False,
        True,
        True,
        True,
        False,
    ]


def test_unversioned_write_may_have_got_another_version_of_its_time():
    versions = Versions()
    binding = write("", 20, "create", asked=12)
    for each in (write(10, 10), write(12, 13), binding, write(14, 15), write(15, 30)):
        versions.follow(each)
    spans = ((1, 9), (10, 13), (14, 19), (21, 30))
    hidden = [versions.may_hide(at(first), at(last)) for first, last in spans]
    assert hidden == [False, True, True, False]


def test_version_is_left_for_a_write_only_where_all_others_find_one_too():
    """The binding needs the one version of its time, though another one is left over later."""
    binding = write("", 21, "create", asked=20)
    other = write(14, 40, asked=39)
    for asked, is_hidden in ((22, False), (20, True)):
        versions = Versions()
        given = [write(10, 10), binding, write(12, 22, asked=asked), other]
        for each in given:
            versions.follow(each)
        # the version 13 was given after the request that got the 12th
        assert versions.may_hide(at(11), at(21)) is is_hidden
        assert versions.may_hide(at(30), at(35))


def test_write_may_be_decided_before_the_write_that_it_follows_is_answered():
    versions = Versions()
    for each in (write(10, 10, asked=8), write(12, 14, asked=12)):
        versions.follow(each)
    assert versions.may_hide(at(10), at(9))
    assert not versions.may_hide(at(10), at(7))


def test_each_version_is_left_for_one_write_only():
    versions = Versions()
    for each in (write(10, 10), write(12, 30), write(14, 50)):
        versions.follow(each)
    first, second = WriteSpan(at(10), at(20)), WriteSpan(at(12), at(28))
    assert versions.may_hide(*first)
    assert versions.may_hide(*second)
    assert not versions.may_hide(*second, [first])
    assert not versions.may_hide_all([first, second])
    assert versions.may_hide_all([first, WriteSpan(at(20), at(45))])
    assert versions.may_hide(at(20), at(45), [first])


@pytest.mark.parametrize(
    ("low", "high", "are_all"),
    [(10, 11, True), (11, 13, False), (10, 13, False), (13, 15, True), (15, 13, False)],
)
def test_versions_between_two_lines_are_all_recorded(low, high, are_all):
    versions = Versions()
    for version in (10, 11, 13, 14, 15):
        versions.follow(write(version, version))
    assert versions.are_all_recorded(low, high) is are_all
    versions.follow(write(9, 40))  # a restore sets versions back
    assert not versions.are_all_recorded(low, high)


def test_without_requests_versions_prove_nothing():
    versions = Versions()
    for each in (write(10, 10), write(12, 30), write(13, 31, request="")):
        versions.follow(each)
    assert not versions.may_hide(at(10), at(30))
    ends = Versions()
    concluded = write("", 20, "delete", losses=[Loss.SYNTHETIC_DELETE], request="")
    for each in (write(10, 10), concluded, write(12, 30)):
        ends.follow(each)
    assert ends.may_hide(at(10), at(30))


def test_write_without_a_version_is_as_exact_as_the_clocks():
    """Its server dates it behind the version that it was given, as others show."""
    ahead = write("", 15.2, "create", asked=15)
    between = [write(10, 10), write(12, 14), write(13, 20)]
    for asked, is_hidden in ((19, True), (23, False)):
        versions = Versions()
        skewed = write(14, 20, asked=asked)
        for each in (*between[:2], ahead, between[2], skewed):
            versions.follow(each)
        assert versions.may_hide(at(0), at(50)) is is_hidden
