"""Reports that wait to be written, and the reports of later attempts that repeat them."""

from types import SimpleNamespace

import pytest

from app.analysis.replay.variants import Variant
from app.domain.log import ObjectKey
from app.domain.objects.write.commands import CreateObject
from app.domain.values.timestamps import Instant
from app.service.replays.deciding.late_reports import LateReports

POD = "uid-p"
KEY = ObjectKey("", "events", "default", "p.1")


def reports(variant=Variant(joined=frozenset((POD,)))):
    """Of a recording in which nothing was reported, read by its fields alone."""
    return LateReports(SimpleNamespace(evicted={}, reported={}, repeated={}), variant)


def failure(version, uid=POD, reason="FailedScheduling"):
    about = {"kind": "Pod", "uid": uid, "name": "p", "resourceVersion": version}
    return {"kind": "Event", "reason": reason, "involvedObject": about}


def created(tree):
    return CreateObject(key=KEY, version="v1", tree=tree)


def test_third_report_of_one_version_is_only_counted():
    late = reports()
    answers = [late.is_first_repetition(failure(version)) for version in ("7", "7", "7", "8", "7")]
    assert answers == [True, False, False, True, False]


def test_first_repetitions_of_two_pods_are_two():
    late = reports()
    assert [late.is_first_repetition(failure("7", uid)) for uid in ("a", "b", "a")] == [
        True,
        True,
        False,
    ]


@pytest.mark.parametrize(
    ("tree", "is_joined"),
    [
        (failure("7"), True),
        (failure("8"), False),
        (failure("7", "other"), False),
        (failure("7", reason="Scheduled"), False),
    ],
    ids=["the same version", "another version", "another pod", "no failure"],
)
def test_report_of_a_version_waits_for_the_one_that_waits(tree, is_joined):
    late = reports()
    until = late.put_off(created(failure("7")), Instant(5))
    assert until == 5
    assert late.waiting(tree) == ((KEY, until) if is_joined else None)


def test_only_failures_are_waited_for():
    late = reports()
    late.put_off(created(failure("7", reason="Scheduled")), Instant(5))
    assert late.waiting(failure("7")) is None


def test_report_of_a_pod_that_is_not_joined_waits_for_nothing():
    late = reports(Variant())
    late.put_off(created(failure("7")), Instant(5))
    assert late.waiting(failure("7")) is None


def test_report_of_another_controller_does_not_wait_for_the_scheduler():
    """An eviction is reported with it, however late the scheduler's client is."""
    late = reports(Variant(reported=frozenset((POD,)), repeated=frozenset((POD,))))
    theirs = {**failure("", reason="Scheduled"), "reportingController": "default-scheduler"}
    evicted = failure("", reason="DeviceTaintManagerEviction")
    assert late.is_late(theirs)
    assert not late.is_late(evicted)
    assert not late.is_late({**theirs, **failure("", "another")})
