"""Which conditions of pods have a time that is not of the clock of their writer."""

import msgspec
import pytest

from app.analysis.replay.authors import EVICTION, SCHEDULER
from app.analysis.replay.unsure.condition_times import ConditionTimes
from app.domain.log import EventType, ObjectKey
from app.domain.values.timestamps import SECOND, Instant, seconds_text
from tests.unit.analysis.replay.test_lacks import event

HOURS = 3 * 3600


def state(name, answered, dated, *, status="False", type_="PodScheduled", node=""):
    """A pod with one condition, in an answer at some second."""
    pod = ObjectKey("", "pods", "default", name)
    condition = {"type": type_, "status": status}
    condition["lastTransitionTime"] = seconds_text(Instant(dated * SECOND))
    conditions = [condition] if type_ else []
    tree = {"spec": {"nodeName": node}, "status": {"conditions": conditions}}
    written = event(pod)
    stamp = msgspec.structs.replace(written.stamp, time=Instant(answered * SECOND + SECOND // 2))
    return msgspec.structs.replace(written, body=msgspec.json.encode(tree), stamp=stamp)


def waiting(name, answered, dated, **how):
    """A pod without a condition, then the condition of an attempt."""
    return state(name, answered - 1, 0, type_=""), state(name, answered, dated, **how)


def odd(*events, author=SCHEDULER):
    times = ConditionTimes()
    for each in events:
        times.note(each, author)
    return sorted(text.rpartition("/")[2] for text in times.odd())


@pytest.mark.parametrize("clock", [0, 7, -7, HOURS, -HOURS])
def test_one_time_is_not_of_the_clock_that_all_others_show(clock):
    honest = [waiting(f"p{n}", 100 * n, 100 * n + clock) for n in range(1, 6)]
    events = [each for pair in honest for each in pair]
    assert not odd(*events)
    for seconds in (HOURS, -HOURS, 90, -90):
        assert odd(*events, *waiting("wrong", 600, 600 + clock + seconds)) == ["wrong"]
    assert not odd(*events, *waiting("slow", 600, 600 + clock - 50)), "a request takes a while"


def test_two_times_that_are_of_no_one_clock_are_both_unsure():
    assert odd(*waiting("p1", 100, 100), *waiting("p2", 200, 200 + HOURS)) == ["p1", "p2"]
    assert not odd(*waiting("p1", 100, 100 + HOURS)), "one alone may be of any clock"


def test_time_that_changes_without_the_status_is_none_of_its_write():
    events = [each for n in range(1, 4) for each in waiting(f"p{n}", 100 * n, 100 * n)]
    assert not odd(*events, state("p3", 900, 300))
    assert odd(*events, state("p3", 900, 300 + HOURS)) == ["p3"]


def test_pod_is_bound_by_the_clock_of_the_server():
    """That of the scheduler is hours off; who binds leaves the condition to the server."""
    events = [each for n in range(1, 4) for each in waiting(f"p{n}", 100 * n, 100 * n - HOURS)]
    bound = [state(f"p{n}", 500 + n, 500 + n, status="True", node="n") for n in range(1, 4)]
    assert not odd(*events, *bound)
    wrong = state("p3", 503, 503 - HOURS, status="True", node="n")
    assert odd(*events, *bound[:2], wrong) == ["p3"]


def test_each_controller_has_a_clock_of_its_own():
    times = ConditionTimes()
    for n in range(1, 4):
        for each in waiting(f"p{n}", 100 * n, 100 * n):
            times.note(each, SCHEDULER)
        times.note(state(f"p{n}", 600 + n, 600 + n + HOURS, type_="DisruptionTarget"), EVICTION)
    assert not list(times.odd())


def test_nothing_is_known_of_conditions_that_others_wrote():
    events = [each for n in range(1, 4) for each in waiting(f"p{n}", 100 * n, 100 * n)]
    assert not odd(*events, *waiting("p9", 600, 600 + HOURS, type_="Ready"))
    assert not odd(*events, *waiting("p9", 600, 600 + HOURS), author="")
    assert not odd(*events, state("seen-late", 900, 10)), "it may be as old as it says"


def report(name, stored, dated, *, reason="FailedScheduling"):
    """An Event about a pod, stored and dated at some seconds."""
    about = {"kind": "Pod", "namespace": "default", "name": name, "uid": f"uid of {name}"}
    tree = {"reason": reason, "regarding": about}
    tree["eventTime"] = seconds_text(Instant(dated * SECOND)).replace("Z", ".000000Z")
    key = ObjectKey("events.k8s.io", "events", "default", f"{name}.{stored}")
    written = event(key, EventType.OBJECT_CREATED)
    stamp = msgspec.structs.replace(written.stamp, time=Instant(stored * SECOND + SECOND // 2))
    return msgspec.structs.replace(written, body=msgspec.json.encode(tree), stamp=stamp)


def new(name, made):
    """A pod as it is created."""
    tree = {"metadata": {"creationTimestamp": seconds_text(Instant(made * SECOND))}}
    written = event(ObjectKey("", "pods", "default", name), EventType.OBJECT_CREATED)
    return msgspec.structs.replace(written, body=msgspec.json.encode(tree))


@pytest.mark.parametrize("clock", [0, 7, -7, HOURS, -HOURS])
@pytest.mark.parametrize(
    ("made", "stored", "dated", "is_odd"),
    [
        (1000, 1001, 1001, False),
        # It was sent late, or the pod had waited long.
        (1000, 1300, 1001, False),
        (1000, 9000, 8999, False),
        (1000, 1001, 1001 - HOURS, True),
        (1000, 9000, 900, True),
        (1000, 1001, 1100, True),
    ],
)
def test_event_is_dated_between_the_creation_of_its_pod_and_its_own(
    clock, made, stored, dated, is_odd
):
    honest = [report(f"p{n}", 100 * n, 100 * n + clock) for n in range(1, 6)]
    pods = [new(f"p{n}", 100 * n - 1) for n in range(1, 6)]
    assert not odd(*pods, *honest)
    one = report("wrong", stored, dated + clock)
    assert odd(*pods, *honest, new("wrong", made), one) == (["wrong"] if is_odd else [])
    assert not odd(*pods, *honest, new("wrong", made), one, author="somebody else")


def test_object_with_such_a_time_is_named():
    times = ConditionTimes()
    events = [each for n in range(1, 6) for each in waiting(f"p{n}", 100 * n, 100 * n)]
    pods = [new(f"r{n}", 100 * n - 1) for n in range(1, 6)]
    reports = [report(f"r{n}", 100 * n, 100 * n) for n in range(1, 6)]
    wrong = [*waiting("wrong", 600, 600 + HOURS), new("late", 1000), report("late", 1001, 1100)]
    for each in (*events, *pods, *reports, *wrong):
        times.note(each, SCHEDULER)
    words = "whose time is not of the clock of its writer"
    assert sorted(times.odd()) == [
        f"a condition {words}: {ObjectKey('', 'pods', 'default', 'wrong')}",
        f"an Event {words}: {ObjectKey('', 'pods', 'default', 'late')}",
    ]
