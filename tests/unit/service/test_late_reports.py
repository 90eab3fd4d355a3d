"""Reports that wait to be written, and the reports of later attempts that repeat them."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from app.analysis.replay import tolerances
from app.analysis.replay.acts import RefusedRequest
from app.analysis.replay.authors import SCHEDULER
from app.analysis.replay.recording import ReportTime
from app.analysis.replay.traces import Trace
from app.analysis.replay.variants import Variant
from app.domain.log import Actor, Event, EventType, ObjectKey, Revision
from app.domain.log.event import Stamp
from app.domain.objects.write.commands import CreateObject
from app.domain.values.identifiers import Uid
from app.domain.values.timestamps import Instant
from app.service.replays.deciding.late_reports import LateReports, is_refusal
from app.service.replays.deciding.replay import refused_reports
from app.service.replays.deciding.run import Run

POD = "uid-p"
KEY = ObjectKey("", "events", "default", "p.1")


def reports(variant=Variant(joined=frozenset((POD,)))):
    """Of a recording in which nothing was reported, read by its fields alone."""
    recording = SimpleNamespace(evicted={}, reported={}, repeated={}, trace=Trace())
    return LateReports(recording, variant)


def failure(version, uid=POD, reason="FailedScheduling"):
    about = {"kind": "Pod", "uid": uid, "name": "p", "resourceVersion": version}
    return {"kind": "Event", "reason": reason, "involvedObject": about}


def created(tree):
    return CreateObject(key=KEY, version="v1", tree=tree)


@pytest.mark.parametrize(
    ("ends", "refused", "until"),
    [
        (4, None, 5),
        (5, None, 6),
        (400_005, None, 400_006),
        (600_005, None, 5),
        (5, [], 5),
        (5, [("p.1", 9)], 6),
        (5, [("f0-0-a", 9)], 6),
        (5, [("p2.1", 9)], 5),
        (3_000_005, [("p.1", 3_000_009)], 3_000_006),
        (3_000_005, [("p.1", 9)], 5),
        (700_005, [("p.1", 100_000)], 5),
    ],
)
def test_report_that_is_not_recorded_is_refused_once_its_namespace_is_about_to_end(
    ends, refused, until
):
    """Where failed requests are recorded: only with that of an Event of the pod, or of any name."""
    late = reports()
    late._recorded.ends["default"].append((Instant(ends), Instant(ends)))
    late._recorded.refused_reports = None if refused is None else {"default": refused}
    assert late.put_off(created(failure("7")), Instant(5)) == until


REFUSED = RefusedRequest(user=SCHEDULER, at=Instant(9), key=KEY, is_unmade=True)
CONFLICT = replace(REFUSED, key=ObjectKey("", "pods", "default", "p"), is_unmade=False)


@pytest.mark.parametrize(
    ("requests", "asked", "is_lossy", "expected"),
    [
        ((REFUSED,), 3, False, {"default": [("p.1", 9)]}),
        ((CONFLICT,), 3, False, {}),
        ((replace(REFUSED, user="system:node:n1"),), 3, False, {}),
        ((replace(REFUSED, is_unmade=False),), 3, False, {}),
        ((), 3, False, None),
        ((replace(CONFLICT, is_rejected=False),), 3, False, None),
        ((CONFLICT,), 0, False, None),
        ((CONFLICT,), 3, True, None),
    ],
)
def test_log_of_failed_requests_has_those_of_refused_reports(requests, asked, is_lossy, expected):
    """Unless its Events are from another source, or lines are lost."""
    stamp = SimpleNamespace(origin=SimpleNamespace(asked=asked))
    act = SimpleNamespace(user=SCHEDULER, event=SimpleNamespace(key=KEY, stamp=stamp))
    lost = SimpleNamespace(omissions=SimpleNamespace(lost=SimpleNamespace(has_any=is_lossy)))
    recording = SimpleNamespace(acts=[act], refusals=requests, written_by={}, lacks=lost)
    assert refused_reports(recording) == expected


def test_third_report_of_one_version_is_only_counted():
    late = reports()
    answers = [late.is_first_repetition(failure(version)) for version in ("7", "7", "7", "8", "7")]
    assert answers == [True, False, False, True, False]


def test_waiting_report_is_repeated_once_at_the_instant_at_which_it_is_written():
    """Three attempts saw one version of the pod; the third one is only counted."""
    late, written, later, repeated = reports(), [], [], []
    run = SimpleNamespace(
        _reports=late,
        _write_at=lambda at, command: written.append((at, command.key)),
        _at=lambda at, act: later.append((at, act)),
        _say_again=repeated.append,
    )
    for now in (5, 6, 7):
        run.timeline = SimpleNamespace(now=Instant(now))
        Run._say_later(run, created(failure("7")))
    assert written == [(5, KEY)]
    [(at, act)] = later
    assert (at, repeated) == (5, [])
    act()
    assert [command.key for command in repeated] == [KEY._replace(group="events.k8s.io")]


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


def event(tree, key=KEY, user="system:kube-scheduler", type_=EventType.OBJECT_CREATED):
    stamp = Stamp(time=Instant(1), actor=Actor(user=user), verb="create")
    return Event(
        revision=Revision(1), type=type_, key=key, uid=Uid("e"), body=b"", stamp=stamp, tree=tree
    )


def recorded(**times):
    """Of a recording with these instants."""
    nothing = {"evicted": {}, "reported": {}, "repeated": {}}
    variant = Variant(repeated=frozenset((POD,)))
    return LateReports(SimpleNamespace(**nothing | times, trace=Trace()), variant)


def report_at(at, *, is_after_marking=False):
    return ReportTime(at=Instant(at), is_after_marking=is_after_marking)


@pytest.mark.parametrize(
    ("times", "written"),
    [
        ({}, [50, 50]),
        ({"reported": {(POD, "FailedScheduling"): [report_at(60), report_at(70)]}}, [60, 70]),
        ({"reported": {(POD, "FailedScheduling"): [report_at(40)]}}, [50, 50]),
        ({"reported": {(POD, "Scheduled"): [report_at(60)]}}, [50, 50]),
        ({"reported": {("another", "FailedScheduling"): [report_at(60)]}}, [50, 50]),
        # A report that repeats a late one is written with the next repetition.
        ({"repeated": {(POD, 0): [60, 80], (POD, 1): [70]}}, [60, 70]),
        ({"repeated": {(POD, 0): [40, 60], (POD, 1): [70]}}, [70, 50]),
        ({"repeated": {(POD, 0): [50]}}, [50, 50]),
        ({"repeated": {("another", 0): [60]}}, [50, 50]),
        (
            {
                "reported": {(POD, "FailedScheduling"): [report_at(60)]},
                "repeated": {(POD, 0): [90]},
            },
            [60, 90],
        ),
    ],
)  # fmt: skip
def test_report_is_written_at_its_recorded_instant_or_at_once(times, written):
    late = recorded(**times)
    assert [late.put_off(created(failure("7")), Instant(50)) for _ in written] == written


def test_report_of_a_pod_without_late_repetitions_takes_no_instant_of_theirs():
    times = SimpleNamespace(evicted={}, reported={}, repeated={(POD, 0): [60]}, trace=Trace())
    assert LateReports(times, Variant()).put_off(created(failure("7")), Instant(50)) == 50


@pytest.mark.parametrize(
    ("is_after_marking", "evicted", "written"),
    [
        (True, {POD: 90}, 90 + tolerances.MILLI),
        (True, {POD: 60}, 60),
        (True, {"another": 90}, 60),
        (True, {}, 60),
        (False, {POD: 90}, 60),
    ],
)
def test_report_after_the_mark_of_an_eviction_is_written_after_it(
    is_after_marking, evicted, written
):
    report = report_at(60, is_after_marking=is_after_marking)
    late = recorded(evicted=evicted, reported={(POD, "FailedScheduling"): [report]})
    assert late.put_off(created(failure("7")), Instant(50)) == written


def test_repetitions_are_those_of_the_report_by_its_number():
    """The reports of a pod are counted as they are written; only the scheduler's are."""
    late = recorded(repeated={(POD, 0): [60, 70], (POD, 1): [80]})
    other, third = KEY._replace(name="p.2"), KEY._replace(name="p.3")
    late.follow(event(failure("7"), third, user="alice"))
    late.follow(event(failure("7"), third, type_=EventType.OBJECT_UPDATED))
    late.follow(event(failure("7"), third._replace(resource="pods")))
    late.follow(event(failure("7")))
    late.follow(event(failure("8"), other))
    assert [late.repetition(KEY) for _ in range(3)] == [60, 70, None]
    assert late.repetition(other._replace(group="events.k8s.io")) == 80
    assert late.repetition(third) is None
    assert [late.is_repeated(key) for key in (KEY, other, third)] == [True, True, False]


def test_report_that_is_written_is_waited_for_no_more():
    late = reports()
    late.put_off(created(failure("7")), Instant(5))
    late.follow(event(failure("8")))
    assert late.waiting(failure("7")) == (KEY, 5)
    late.follow(event(failure("7")))
    assert late.waiting(failure("7")) is None


def told(**fields):
    return {"status": {"conditions": [{"type": "PodScheduled", **fields}]}}


REFUSED = {"status": "False", "reason": "Unschedulable", "message": "m"}


@pytest.mark.parametrize(
    ("body", "pod", "is_one"),
    [
        (told(**REFUSED), {}, True),
        (told(message="m"), told(**REFUSED), True),
        (told(message="m"), told(**REFUSED | {"status": "True"}), False),
        (told(message="m", status="False"), told(reason="Unschedulable", status="True"), True),
        (told(message="m", reason="Unschedulable"), told(reason="", status="False"), True),
        (told(message="m"), {}, False),
        ({"status": {"phase": "Failed"}}, told(**REFUSED), False),
    ],
)
def test_patch_with_changed_fields_alone_refuses_a_pod_with_what_was_there(body, pod, is_one):
    assert is_refusal(body, pod) is is_one
