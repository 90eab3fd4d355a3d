"""Queues of controllers and of the scheduler: delays after failures, and rounds of the flush."""

import random

import pytest

from app.analysis.replay.variants import CacheOfClaims, Variant
from app.domain.controllers.pacing import NextTry
from app.domain.controllers.scheduling.framework import pod_spec
from app.domain.controllers.scheduling.queue.waiting_pods import (
    QueuedPod,
    SchedulingQueue,
    backoff_end,
)
from app.domain.controllers.work_queue import (
    RETRY_FIRST_MICROS,
    RETRY_MAX_MICROS,
    WorkQueue,
)
from app.domain.log import Revision
from app.domain.values.timestamps import SECOND, Instant
from tests.cluster import T0, Cluster

KEY = ("default", "a")


def delays(queue: WorkQueue, failures: int, key: tuple[str, ...] = KEY) -> list[int]:
    """How long the key waits after each of so many failures in a row."""
    found = []
    now = Instant(0)
    for _ in range(failures):
        queue.retry(key, now)
        due = queue.due()
        assert due is not None
        found.append(due - now)
        now = due
        assert queue.take(now) == (key, 0)
        assert queue.take(now) is None
    return found


def test_each_failure_in_a_row_doubles_the_delay_up_to_its_bound():
    found = delays(WorkQueue(), 21)
    assert found[:4] == [5_000, 10_000, 20_000, 40_000]
    assert found[-4:] == [655_360_000, *[RETRY_MAX_MICROS] * 3]


def test_success_ends_the_failures_in_a_row():
    queue: WorkQueue = WorkQueue()
    assert delays(queue, 3) == [5_000, 10_000, 20_000]
    queue.settle(KEY, None, Instant(0))
    assert delays(queue, 2) == [5_000, 10_000]
    queue.forget(KEY)
    assert delays(queue, 1) == [RETRY_FIRST_MICROS]


def test_success_of_one_key_leaves_the_failures_of_others():
    queue: WorkQueue = WorkQueue()
    assert delays(queue, 2) == [5_000, 10_000]
    assert delays(queue, 1, ("default", "b")) == [5_000]
    queue.settle(("default", "b"), None, Instant(0))
    assert delays(queue, 1) == [20_000]


class LatePace:
    """A pace at which each key waits for an instant; it counts how often it is asked."""

    claims_cache = CacheOfClaims(Variant())

    def __init__(self, until: Instant) -> None:
        self.until = until
        self.asked = 0

    def not_before(self, queue: str, key: tuple[str, ...], now: Instant) -> Instant:
        self.asked += 1
        return self.until


def test_key_whose_work_has_begun_does_not_wait_for_the_pace_again():
    pace = LatePace(Instant(SECOND))
    queue: WorkQueue = WorkQueue("queue", pace)
    queue.add(KEY)
    assert queue.take(Instant(0)) is None
    queue.resume(KEY)
    assert (queue.take(Instant(0)), pace.asked) == ((KEY, 0), 1)
    queue.add(KEY)
    assert (queue.take(Instant(0)), pace.asked) == (None, 2)


class RecordedTries:
    """A pace at which a key is tried at recorded instants, in milliseconds."""

    def __init__(self, tries: tuple[int, ...], begun: int | None, unsure: int = 0) -> None:
        """The instants may be too early by so many milliseconds as `unsure` says."""
        self.unsure = Instant(unsure * 1_000)
        self.tries = [Instant(each * 1_000) for each in tries]
        self.begun = None if begun is None else Instant(begun * 1_000)
        self.passed = Instant(-1)

    def not_before(self, queue: str, key: tuple[str, ...], now: Instant) -> Instant:
        due = next((each for each in self.tries if each > self.passed), now)
        self.passed = now if due <= now else self.passed
        return due

    def next_try(
        self, queue: str, key: tuple[str, ...], failures: tuple[Instant, Instant], until: Instant
    ) -> NextTry | None:
        before, last = failures
        later = next((each for each in self.tries if last < each < until), None)
        begun = self.begun if later and self.begun and before < self.begun <= later else None
        if later is None:
            return None
        return NextTry(at=later, latest=Instant(later + self.unsure), begun=begun)


@pytest.mark.parametrize(
    ("tries", "begun", "made"),
    [
        # The first failures were at 0, 5, 15, 35 and 75, and each was reported later.
        ((30, 60, 66, 70, 80), None, [30, 60, 66, 70, 80]),
        ((0, 5, 15, 35), None, [0, 5, 15, 35]),
        ((0, 5, 15, 40), None, [0, 5, 15, 40]),
        # No failure can have been tried again so early, unless by another process.
        ((0, 5, 15, 25), None, [0, 5, 15, 25]),
        ((0, 5, 15, 24), None, [0, 5, 15, 35]),
        ((0, 5, 15, 35, 50, 53, 60, 80), None, [0, 5, 15, 35, 75, 155]),
        ((0, 5, 15, 35, 50, 55, 65, 85), 50, [0, 5, 15, 35, 50, 55, 65, 85, 125]),
        ((0, 5, 15, 35, 90, 95, 105), 90, [0, 5, 15, 35, 90, 95, 105, 125]),
        # What follows shows that none took over.
        ((0, 5, 15, 35), 16, [0, 5, 15, 35, 75]),
        ((0, 5), None, [0, 5, 15, 35]),
        ((0, 5), 4, [0, 5, 15, 35]),
    ],
)
def test_retry_at_a_recorded_pace_comes_when_it_is_recorded_if_it_can(tries, begun, made):
    """The delay counts from a failure, of which a recording shows a later report alone."""
    queue: WorkQueue = WorkQueue("queue", RecordedTries(tries, begun))
    queue.add(KEY)
    now, instants = Instant(0), []
    while len(instants) < len(made):
        if queue.take(now) is not None:
            instants.append(now // 1_000)
            queue.retry(KEY, now)
        now = queue.due()
    assert instants == made


@pytest.mark.parametrize(
    ("unsure", "made"),
    [(0, [0, 5, 15, 24, 29]), (5, [0, 5, 15, 24, 64])],
    ids=["another process", "the same one"],
)
def test_retry_that_is_dated_too_early_is_of_the_same_process_if_dates_are_unsure(unsure, made):
    queue: WorkQueue = WorkQueue("queue", RecordedTries((0, 5, 15, 24), 24, unsure))
    queue.add(KEY)
    now, instants = Instant(0), []
    while len(instants) < len(made):
        if queue.take(now) is not None:
            instants.append(now // 1_000)
            queue.retry(KEY, now)
        now = queue.due()
    assert instants == made


def test_key_that_was_dropped_waits_for_the_pace_when_it_is_added_again():
    queue: WorkQueue = WorkQueue("queue", LatePace(Instant(SECOND)))
    queue.resume(KEY, Revision(3))
    queue.drop(KEY, Revision(3))
    queue.add(KEY)
    assert queue.take(Instant(0)) is None


@pytest.mark.parametrize("seed", range(20))
def test_queue_that_may_have_nothing_has_nothing(seed: int):
    draw, queue, now = random.Random(seed), WorkQueue(), Instant(0)
    asked = had = 0
    for _ in range(200):
        key, at = ("default", draw.choice("abc")), Instant(now + draw.randrange(5))
        draw.choice(
            (
                lambda key=key: queue.add(key),
                lambda key=key: queue.add_first(key),
                lambda key=key, at=at: queue.add_at(key, at),
                lambda key=key: queue.drop(key, Revision(0)),
                lambda: None,
            )
        )()
        now = Instant(now + draw.randrange(2))
        may = queue.may_have(now)
        has = queue.take(now) is not None
        assert may or not has
        asked, had = asked + may, had + has
    # A key that waits no longer is noticed when it is taken.
    assert had > 50
    assert asked - had < 20


def queued(queue: SchedulingQueue) -> QueuedPod:
    """A pod that the queue has handed out for an attempt."""
    tree = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "pod", "namespace": "default", "uid": "uid"},
        "spec": {"containers": [{"name": "main", "image": "busybox:1"}]},
    }
    pod = QueuedPod(spec=pod_spec.read(tree), order=Revision(1), since=Instant(0))
    queue.put(pod)
    queue.activate(pod, Instant(0), Revision(1))
    assert queue.pop(Instant(0)) is pod
    return pod


def seconds_after_errors(queue: SchedulingQueue, pod: QueuedPod, errors: int) -> list[int]:
    """How long the pod waits after each of so many errors in a row."""
    found = []
    now = Instant(pod.ready_at)
    for _ in range(errors):
        queue.err(pod, now)
        due = queue.due()
        assert due is not None
        found.append((due - now) // SECOND)
        assert queue.pop(Instant(due - 1)) is None
        assert queue.pop(due) is pod
        now = due
    return found


@pytest.mark.parametrize(
    ("count", "ready"), [(1, 7), (2, 8), (3, 10), (4, 14), (5, 16), (6, 16), (60, 16)]
)
def test_back_off_doubles_from_a_second_to_ten_and_ends_with_a_whole_second(count, ready):
    """A failure at 5.01 s, the first of which ends at 6.01: cut to 6, and that second is over."""
    assert backoff_end(Instant(5 * SECOND + 10_000), count) == ready * SECOND


def test_attempt_that_was_decided_ends_the_errors_in_a_row():
    queue = SchedulingQueue()
    pod = queued(queue)
    # A back-off ends with the second that it falls into.
    assert seconds_after_errors(queue, pod, 5) == [2, 3, 5, 9, 11]
    queue.fail(pod, pod.ready_at, frozenset({"NodeResourcesFit"}))
    assert (pod.errors, pod.unfit) == (0, 1)
    assert seconds_after_errors(queue, pod, 2) == [2, 3]


@pytest.mark.parametrize(("failed", "tried"), [(7, 330), (29, 330), (31, 360), (61, 390)])
def test_pod_that_nothing_wakes_is_tried_in_the_first_round_after_five_minutes(failed, tried):
    # Parity: controllers.md 4.1; the flush looks every 30 s for pods that have waited for 300 s.
    cluster = Cluster()
    cluster.device_class()
    cluster.node()
    cluster.template()
    cluster.wait(failed)
    cluster.pod(template="gpu")
    cluster.settle()
    cluster.wait(400)
    attempts = [
        (event.stamp.time - T0) // SECOND
        for event in cluster.line.events
        if event.type == "DecisionRecorded" and event.object["controller"] == "scheduling"
    ]
    assert attempts == [failed, tried]
