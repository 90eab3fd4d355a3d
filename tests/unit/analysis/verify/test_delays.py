"""How long before its write an allocation may have been chosen: for its queue, and moments.

A claim of a pod gets device a, which was tainted so many seconds before. The queue is that of the
scheduler's client; what it allows follows from the pace of its requests.
"""

import random
from collections.abc import Callable

import pytest
from msgspec import structs

from app.analysis.verify.compare import ComparisonResult
from app.analysis.verify.invariants.queues import Queues
from app.domain.log import Actor, Event, EventType, ObjectKey, Revision, Stamp
from app.domain.log.event import Origin
from app.domain.values.timestamps import SECOND, Instant
from tests.unit.analysis.invariants import delays
from tests.unit.analysis.invariants.test_rules import Story
from tests.unit.analysis.invariants.worlds import UNNAMED, claim, device, key_of, pod, result, user
from tests.unit.analysis.verify.test_last_lost import ANY, result_of
from tests.unit.analysis.verify.test_selector_judge import put_class

SCHEDULER, DRIVER_USER = "system:kube-scheduler", "driver"
TAINT = {"key": "flaky", "value": "v", "effect": "NoExecute"}
BROKEN, OPEN = (
    ("broken", ComparisonResult.DIFFERENT),
    ("unsure", ComparisonResult.CONCURRENT),
)
LAST = 5
"""Seconds after a pause in which the scheduler reports on other pods before all else."""


def requests(count: int, each: float) -> list[float]:
    """The pauses before so many requests of a scheduler, a step apart."""
    return [each] * count


def report(story: Story, after: float, by: str) -> None:
    """A condition of a pod that does not fit anywhere."""
    story.put(key_of("pods", "other"), {"at": story.revision}, after=after, by=by)


def refuse(story: Story, after: float, by: str) -> None:
    """A binding of a pod that is gone."""
    story.time += int(after * SECOND)
    stamp = Stamp(time=Instant(story.time), actor=Actor(user=by), verb="create")
    key = ObjectKey("", "pods", "ns", "gone")
    story.events.append(
        Event(
            revision=Revision(story.revision + 1),
            type=EventType.REQUEST_OBSERVED,
            key=key,
            uid="",
            stamp=stamp,
            body=b'{"code":404,"verb":"create","subresource":"binding"}',
        )
    )


def story_of(
    *pauses: float,
    tainted: float,
    send: Callable[[Story, float, str], None] = report,
    by: str = SCHEDULER,
    before: str = SCHEDULER,
    spec: dict[str, object] | None = None,
    is_silent: bool = False,
) -> Story:
    """An allocation after requests with these pauses, the last of them being its own.

    A node reports each second unless it `is_silent`. `before` made the requests, `by` the last one.
    """
    story = Story()
    put_class(story)
    story.put(key_of("nodes", "node"), {}, by=DRIVER_USER)
    story.publish("p", device("a"), device("b"))
    report(story, 1, before)
    story.put(key_of("resourceclaims", "x"), claim(ANY), by="user")
    tree = pod("x", node="node")
    tree["spec"] |= spec or {}
    story.put(key_of("pods", "of-x"), tree, by="user")
    start = story.time + LAST * SECOND
    end = start + round(sum(pauses) * SECOND)
    acts: list[tuple[int, int, Callable[[], object]]] = []
    at = start
    for pause in pauses[:-1]:
        at += round(pause * SECOND)
        acts.append((at, 0, lambda: send(story, 0, before)))
    taints = [device("a", taints=[TAINT]), device("b", taints=[TAINT])]
    acts.append((end - round(tainted * SECOND), 1, lambda: story.publish("p", *taints, after=0)))
    if not is_silent:
        nodes = key_of("nodes", "elsewhere")
        acts += [
            (moment, 2, lambda: story.put(nodes, {"at": story.revision}, by=DRIVER_USER))
            for moment in range(story.time + SECOND, end, SECOND)
        ]
    for moment, _, act in sorted(acts, key=lambda each: each[:2]):
        story.time = max(moment, story.time)
        act()
    story.time = end
    tree, write = story.change(key_of("resourceclaims", "x"), by=by)
    tree["status"] = {
        "allocation": {"devices": {"results": [result("p", "a")]}},
        "reservedFor": [user("of-x", story.uid("of-x"))],
    }
    write()
    return story


def verdicts_of(story: Story) -> tuple[str, ComparisonResult]:
    """What the rules and the repeated allocation say of the last event."""
    kinds = [kind for rule, kind, *_ in story.found() if rule == "placement-respects-taints"]
    return kinds[0], result_of(story, None)


@pytest.mark.parametrize(
    ("pauses", "tainted", "expected"),
    [
        # The scheduler had sent nothing for long.
        ([30], 4, OPEN),
        ([30], 8, BROKEN),
        ([30], 14, BROKEN),
        # The first of its requests about the pod was sent just before.
        ([30, 0.01], 8, BROKEN),
        # The usual limit: fifty a second after the first hundred at once.
        ([3, *requests(99, 0), *requests(400, 0.02)], 8, OPEN),
        ([3, *requests(99, 0), *requests(1_000, 0.02)], 18, OPEN),
        ([3, *requests(99, 0), *requests(1_000, 0.02)], 28, BROKEN),
        # A pause, after which only those since wait.
        ([3, *requests(1_000, 0.02), 3, *requests(50, 0.02)], 9, BROKEN),
        # Slower limits.
        (requests(60, 0.5), 28, OPEN),
        (requests(100, 0.2), 18, OPEN),
        ([*requests(60, 0.5), 4, 0.01], 8, BROKEN),
        # Five at once each two seconds: those were not waiting for each other.
        ([2, 0.01, 0.01, 0.01, 0.01] * 15, 8, BROKEN),
    ],
)
def test_choice_is_as_much_older_than_its_write_as_requests_waited(
    pauses: list[float], tainted: float, expected: tuple[str, ComparisonResult]
) -> None:
    assert verdicts_of(story_of(*pauses, tainted=tainted)) == expected


SLOW = requests(60, 0.5)


@pytest.mark.parametrize(
    ("pauses", "options"),
    [
        ([30], {"spec": {"volumes": [{"persistentVolumeClaim": {"claimName": "c"}}]}}),
        ([30], {"spec": {"volumes": [{"ephemeral": {}}]}}),
        ([30], {"spec": {"schedulingGroup": {"podGroupName": "g"}}}),
        ([30], {"is_silent": True}),
        ([30], {"by": UNNAMED, "before": UNNAMED}),
        # The scheduler has another name since its last request.
        (SLOW, {"by": "scheduler-two"}),
        (SLOW, {"send": refuse}),
    ],
)
def test_whatever_else_may_delay_a_write_is_no_violation(
    pauses: list[float], options: dict[str, object]
) -> None:
    assert verdicts_of(story_of(*pauses, tainted=10, **options)) == OPEN


def taking(story: Story, number: int, seconds: float) -> None:
    """Lets the request of an event have arrived so many seconds before it was stored."""
    event = story.events[number]
    asked = event.stamp.time - round(seconds * SECOND)
    origin = Origin(source="audit", time_quality="exact", asked=asked)
    stamp = structs.replace(event.stamp, origin=origin)
    story.events[number] = structs.replace(event, stamp=stamp)


@pytest.mark.parametrize(
    ("seconds", "tainted", "expected"),
    [(0.02, 8, BROKEN), (9, 8, OPEN), (9, 12, OPEN), (9, 16, BROKEN), (29, 32, OPEN)],
)
def test_request_that_a_webhook_delays_was_decided_before_it_arrived(
    seconds: float, tainted: float, expected: tuple[str, ComparisonResult]
) -> None:
    """The server stores the writes of others meanwhile."""
    story = story_of(40, tainted=tainted)
    taking(story, -1, seconds)
    assert verdicts_of(story) == expected


@pytest.mark.parametrize(
    ("subject", "by", "seconds", "expected"),
    [
        ("x", SCHEDULER, 9, OPEN),
        ("x", SCHEDULER, 0.02, BROKEN),
        ("x", DRIVER_USER, 9, BROKEN),
        ("other", SCHEDULER, 9, BROKEN),
    ],
)
def test_write_waits_for_the_answer_to_the_one_before_about_its_claim(
    subject: str, by: str, seconds: float, expected: tuple[str, ComparisonResult]
) -> None:
    """The finalizer comes before the allocation; what others are asked meanwhile delays nothing."""

    def send(story: Story, after: float, _: str) -> None:
        if subject == "x":
            key = key_of("resourceclaims", subject)
            tree, write = story.change(key, after=after, by=by)
            tree["metadata"]["finalizers"] = ["resource.kubernetes.io/delete-protection"]
            write()
        else:
            report(story, after, by)
        taking(story, -1, seconds)

    assert verdicts_of(story_of(40, 0.01, tainted=9, send=send)) == expected


def test_arrivals_of_slow_requests_are_those_that_a_search_finds() -> None:
    for seed in range(60):
        draw, queues, events, now = random.Random(seed), Queues(), [], 100 * SECOND
        # A few queues are longer than any wait.
        is_long = seed % 15 == 0
        pauses = (10_000, SECOND // 2, 2 * SECOND, 6 * SECOND, 20 * SECOND)
        for number in range(1, 41 if is_long else 16):
            now += 4 * SECOND if is_long else draw.choice(pauses)
            took = draw.choice((0, 5_000, SECOND // 2, SECOND, 3 * SECOND, 9 * SECOND))
            origin = Origin(source="audit", time_quality="exact", asked=now - took if took else 0)
            actor = Actor(user=draw.choice((SCHEDULER, DRIVER_USER, UNNAMED)))
            stamp = Stamp(time=Instant(now), actor=actor, verb="update", origin=origin)
            uid = draw.choice(("x", "y", "pod"))
            event = Event(
                revision=Revision(number),
                type=draw.choice((*[EventType.OBJECT_UPDATED] * 5, EventType.OBJECT_DELETED)),
                key=key_of("pods" if uid == "pod" else "resourceclaims", uid),
                uid=uid,
                stamp=stamp,
                body=b"{}",
            )
            events.append(event)
            queues.note(event, None)
            pods = draw.choice(((), ("pod",)))
            expected = delays.decided_from(events, event, pods)
            assert queues.decided_from(event, pods) == expected, (seed, number)
            # The limits of what a pause hides are at 4.3 s and 120 s.
            later = now + draw.choice((0, 2 * SECOND, 4_300_000, 4_300_001, 119 * SECOND))
            for asked in (SCHEDULER, DRIVER_USER, UNNAMED, "nobody"):
                begun = delays.begun_from(events, asked, later)
                assert queues.begun(asked, Instant(later)) == begun, (seed, number, asked)


def test_volumes_that_wait_for_nothing_delay_no_write() -> None:
    spec = {"volumes": [{"configMap": {"name": "c"}}]}
    assert verdicts_of(story_of(30, tainted=8, spec=spec)) == BROKEN
