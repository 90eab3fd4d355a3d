"""Which refusals of pods are proven wrong by the order in which pods leave the queue."""

import random
from dataclasses import replace

import pytest

from app.analysis.replay.attempts import Placing, PodCourse, Try
from app.analysis.replay.lags import Waits
from app.analysis.replay.lateness import (
    FirstAttempt,
    Process,
    Silences,
    Timers,
    late_attempts,
)
from app.analysis.replay.overtaken import PassedOver, WaitingPods, late_seconds
from app.analysis.replay.pace import RecordedPace
from app.domain.controllers.pacing import AttemptOutcome
from app.domain.controllers.scheduling.queue.waiting_pods import QUEUE
from app.domain.controllers.scheduling.scheduling_cycle.cycle import DEVICES
from app.domain.log import Actor, Draft, EventType, ObjectKey, Revision, Stamp, chain
from app.domain.values import api_resources
from app.domain.values.identifiers import Uid
from app.domain.values.timestamps import SECOND, Instant
from tests import draws
from tests.counting import counted

FREED = 60.0
GPU, OTHER = ("r0: n1/gpu-0",), ("r0: n1/gpu-1",)


class Story:
    """The pods `early` and `late`, which wait for a device; one of them gets it at last."""

    def __init__(self, **facts) -> None:
        self.facts = {"early": 40.0, "late": 42.0, "scheduler": "s", "priority": 0, **facts}
        failures = {name: self.tries(name) for name in ("early", "late")}
        self.recorded = RecordedPace()
        self.recorded._pods = {name: PodCourse(tries) for name, tries in failures.items()}
        writes = self.facts.get("writes", range(100))
        process = {QUEUE: Process(Instant(second * SECOND) for second in writes)}
        self.waiting = WaitingPods(self.recorded, Timers(processes=process))
        self.revision = 0
        self.anew = [self.facts["anew"]] if "anew" in self.facts else []

    def tries(self, name: str) -> list[Try]:
        at = Instant(int(self.facts[name] * SECOND))
        message = AttemptOutcome(message="no")
        is_exact = not self.facts.get("is_guessed")
        refused = Try(
            instant=at, first=at, last=at, tried=message, is_exact=is_exact, is_reported=True
        )
        then = Instant(int(FREED * SECOND))
        placed = Try(
            instant=then,
            first=then,
            last=then,
            tried=AttemptOutcome(node="n1"),
            placing=Placing(began=then),
        )
        again = [replace(refused, instant=Instant(at + SECOND))] * self.facts.get("again", 0)
        return [refused, placed] if name == "late" else [refused, *again]

    def write(self, at: float, key: ObjectKey, tree, type_=EventType.OBJECT_UPDATED) -> None:
        self.revision += 1
        tree = {**tree, "metadata": {"name": key.name, "namespace": key.namespace}}
        draft = Draft(
            type=type_,
            key=key,
            uid=Uid(key.name),
            tree=tree,
            stamp=Stamp(time=Instant(int(at * SECOND)), actor=Actor(user="me"), verb="create"),
        )
        self.waiting.follow(chain.seal(draft, Revision(self.revision), b""))

    def make(self, name: str, at: float, **spec) -> None:
        key = ObjectKey(*api_resources.PODS, "ns", name)
        self.write(at, key, {"spec": spec}, EventType.OBJECT_CREATED)

    def claim(self, at: float, name: str, *, is_allocated: bool) -> None:
        status = {"allocation": {"devices": {}}} if is_allocated else {}
        self.write(at, ObjectKey(*api_resources.RESOURCE_CLAIMS, "ns", name), {"status": status})

    def publish(self) -> None:
        self.write(self.facts["slice"], ObjectKey(*api_resources.RESOURCE_SLICES, "", "s"), {})

    def refuse(self, name: str, *, plugins: frozenset[str] = frozenset((DEVICES,))) -> None:
        at = Instant(int(self.facts[name] * SECOND))
        self.waiting.look(name, at)
        self.recorded._pods[name].number = 1
        self.waiting.count(name, AttemptOutcome(message="no", plugins=plugins), at)

    def play(self) -> list[str]:
        """What is named when the device of another claim is free and `late` gets it."""
        facts, now = self.facts, Instant(int(FREED * SECOND))
        self.claim(1, "held", is_allocated=True)
        self.make("early", 39, schedulerName="s", priority=0, **facts.get("early_spec", {}))
        self.make("late", 39.5, schedulerName=facts["scheduler"], priority=facts["priority"])
        if facts.get("slice", FREED) < facts["early"]:
            self.publish()
        for name in sorted(("early", "late"), key=lambda name: facts[name]):
            self.refuse(name, plugins=frozenset((DEVICES, *facts.get("plugins", ()))))
        if facts.get("slice", 0) > facts["early"]:
            self.publish()
        if not facts.get("is_flushed"):
            self.claim(FREED, "held", is_allocated=False)
        self.recorded._pods["early"].number += len(self.anew) + facts.get("again", 0)
        for name in facts.get("woken", ("early", "late")):
            self.waiting.look(name, now)
        fitted = AttemptOutcome(node="n1", devices=facts.get("fits", GPU))
        if facts.get("as_trial"):
            assert self.waiting.next_try("early", now, Instant(now + SECOND)) == now
            assert self.waiting.end_trial("early", fitted) == now + SECOND
        else:
            self.waiting.defer("early", fitted)
        if facts.get("fits_no_more"):
            self.waiting.defer("early", AttemptOutcome(message="no"))
        if "then" in facts:
            self.make("another", facts["then"])
        if "woken" in facts:
            self.waiting.look("late", Instant(now + 1))
        self.recorded._pods["late"].number = 2
        self.waiting.count("late", AttemptOutcome(node="n1", devices=GPU), now)
        return [f"{each.key.name} by {each.by.name}" for each in self.waiting.passed_over]


@pytest.mark.parametrize(
    "facts",
    [
        {},
        {"as_trial": True},
        {"priority": -1},
        {"early": 45.0, "late": 45.1},
        {"slice": 30},
    ],
)
def test_pod_that_is_before_the_one_that_was_placed_is_named(facts) -> None:
    assert Story(**facts).play() == ["early by late"]


@pytest.mark.parametrize(
    "facts",
    [
        {"early": 43.0},  # failed later
        {"priority": 1},
        {"scheduler": "another"},
        {"early_spec": {"schedulingGroup": {"podGroupName": "g"}}},
        {"is_guessed": True},  # no report names the instants of the failures
        {"early": 59.2, "late": 59.3},  # in back-off
        {"writes": [40, 42, 60]},  # another scheduler may have begun
        {"again": 1},  # another scheduler has tried it, for no reason of the run
        {"plugins": ("NodeResourcesFit",)},  # woken by more changes
        {"slice": 59},  # seen before or after the release
        {"slice": 39.9, "early": 41.0},  # seen before or after the failure
        {"woken": ("early",)},  # not by the same change
        {"fits": OTHER},
        {"fits_no_more": True},
        {"then": 60},  # the state is another one by then
    ],
)
def test_order_that_is_not_proven_names_nobody(facts) -> None:
    assert Story(**facts).play() == []


@pytest.mark.parametrize(
    ("facts", "second", "younger", "is_late"),
    [
        ({}, 69, 65, True),
        ({}, 61.5, 60.9, False),
        ({}, 69, None, False),  # nobody was tried meanwhile
        ({"plugins": ("NodePorts",)}, 69, 65, False),
        ({"slice": 59}, 69, 65, False),  # which of the two changes woke it is not known
        ({"early": 58.5}, 69, 65, False),  # the failed attempt may have seen the change
        ({"anew": 50}, 69, 65, False),  # a new process tried it before: 69 is a third attempt
    ],
)
def test_second_attempt_is_late_where_younger_pods_were_tried_before_it(
    facts, second, younger, is_late
) -> None:
    """A third attempt need not leave a trace, a second one does."""
    story = Story(**facts, woken=("early",))
    then = Instant(int(second * SECOND))
    outcome = AttemptOutcome(message="no")
    attempt = Try(instant=then, first=then, last=then, tried=outcome, is_reported=True)
    anew = [replace(attempt, instant=Instant(each * SECOND)) for each in story.anew]
    story.recorded._pods["early"].tries.extend([*anew, attempt])
    story.play()
    firsts = {}
    if younger is not None:
        made = Instant(int(younger * SECOND))
        tried = Try(instant=made, first=made, last=made, tried=outcome)
        firsts["new"] = FirstAttempt(ready=made, attempt=tried)
    keys = {name: ObjectKey(*api_resources.PODS, "ns", name) for name in ("early", "new")}

    def late(attempts):
        return late_attempts(attempts, firsts, {}, keys, Waits((), ()), ())

    delays = late_seconds(story.waiting.seconds, late)
    assert [each.key.name for each in delays] == (["early"] if is_late else [])


@pytest.mark.parametrize(
    ("facts", "end", "queued", "is_named"),
    [
        ({}, 69, 69, True),
        ({}, 69, 66, False),  # an attempt of then may be reported after the end
        ({}, 66, 66, False),  # soon after the younger one
        ({"plugins": ("NodePorts",)}, 69, 69, False),
        ({"slice": 59}, 69, 69, False),
        ({"is_flushed": True}, 69, 69, False),  # refused again for the same reasons, unreported
    ],
)
def test_pod_that_is_never_tried_again_is_named_where_younger_pods_were(
    facts, end, queued, is_named
) -> None:
    story = Story(**facts, woken=("early",))
    story.play()
    made = Instant(65 * SECOND)
    tried = Try(instant=made, first=made, last=made, tried=AttemptOutcome(message="no"))
    firsts = {"new": FirstAttempt(ready=made, attempt=tried)}
    keys = {name: ObjectKey(*api_resources.PODS, "ns", name) for name in ("early", "new")}

    def late(attempts):
        return late_attempts(attempts, firsts, {}, keys, Waits((), ()), ())

    at, since = (Instant(int(each * SECOND)) for each in (end, queued))
    delays = list(late_seconds(story.waiting.second_attempts(at, since), late))
    assert [each.key.name for each in delays] == (["early"] if is_named else [])
    assert all(each.text.startswith("was not tried even") for each in delays)


def test_second_attempts_are_judged_together_by_the_first_ones_of_younger_pods() -> None:
    """One pass judges them all: a pass for each looks at all pods as often as there are pods."""
    at = [Instant(each * SECOND) for each in (10, 20, 21, 40, 50)]
    outcome = AttemptOutcome(message="no")
    tries = [Try(instant=each, first=each, last=each, tried=outcome) for each in at]
    firsts = {
        "one": FirstAttempt(ready=at[0], attempt=tries[0]),
        "young": FirstAttempt(ready=at[2], attempt=tries[2]),
        "two": FirstAttempt(ready=at[3], attempt=tries[3]),
    }
    seconds = {
        "one": FirstAttempt(ready=at[0], attempt=tries[3]),
        "late": FirstAttempt(ready=at[1], attempt=tries[4]),
        "two": FirstAttempt(ready=at[3], attempt=tries[4]),
    }
    keys = {name: ObjectKey(*api_resources.PODS, "ns", name) for name in {*firsts, *seconds}}
    passes = []

    def late(attempts):
        passes.append({*attempts})
        return late_attempts(attempts, firsts, {}, keys, Waits((), ()), (), Silences(at))

    delays = [each for each in late_seconds(seconds, late) if each.is_sure]
    assert {each.uid: each.came for each in delays} == {"one": at[3], "late": at[4]}
    assert passes == [{"one", "late", "two"}]


def test_pod_that_is_gone_is_forgotten() -> None:
    story = Story()
    story.play()
    key = ObjectKey(*api_resources.PODS, "ns", "early")
    story.write(61, key, {}, EventType.OBJECT_DELETED)
    assert "early" not in story.waiting._refused


def test_nobody_is_tried_for_pods_that_are_not_placed() -> None:
    story = Story()
    story.make("early", 39)
    assert story.waiting.next_try("early", Instant(0), Instant(5)) == 5
    assert story.waiting.end_trial("early", AttemptOutcome(message="no")) is None


@pytest.mark.parametrize(
    ("devices", "said"), [(("p/a",), "device p/a"), (("p/a", "p/b"), "devices p/a, p/b")]
)
def test_report_names_the_devices_and_the_pod_that_got_them(devices, said):
    pods = [ObjectKey(*api_resources.PODS, "ns", name) for name in ("first", "second")]
    passed = PassedOver(key=pods[0], by=pods[1], devices=devices, woken=Instant(0))
    assert passed.text == (
        f"was refused although {said} fitted it from 1970-01-01T00:00:00.000000Z on, which "
        "pods/ns/second got, a pod behind it in the queue"
    )


class Crowd:
    """Many pods that are refused one after the other; each has the attempts that are named.

    `r` is a refusal, `p` a placement; from the second on they come soon after what wakes all.
    """

    def __init__(self, *courses: str) -> None:
        self.names = [f"p{number:05}" for number in range(len(courses))]
        self.recorded, self.story = RecordedPace(), Story()
        self.story.recorded = self.recorded
        self.waiting = self.story.waiting = WaitingPods(self.recorded, Timers())
        for number, (name, course) in enumerate(zip(self.names, courses, strict=True)):
            tenths = 400, *range(1001, 1000 + len(course))
            at = [Instant(each * SECOND // 10 + number) for each in tenths]
            tries = [
                Try(
                    instant=then,
                    first=then,
                    last=then,
                    tried=AttemptOutcome(message="no"),
                    placing=Placing(began=then) if kind == "p" else None,
                    is_reported=True,
                )
                for then, kind in zip(at, course, strict=True)
            ]
            self.recorded._pods[name] = PodCourse(tries)

    def refuse(self, number: int) -> None:
        """A pod is refused for the first time."""
        name, course = self.names[number], self.recorded._pods[self.names[number]]
        now = course.tries[0].instant
        self.waiting.look(name, now)
        course.number = 1
        self.waiting.count(name, AttemptOutcome(message="no", plugins=frozenset((DEVICES,))), now)

    def may_be_first(self, number: int) -> bool:
        """Whether a pod is tried, a minute after its refusal, though its attempt is due later."""
        now, due = Instant(100 * SECOND), Instant(101 * SECOND)
        return self.waiting.next_try(self.names[number], now, due) == now

    def wake(self) -> None:
        self.story.publish()
        for name in self.names:
            self.waiting.look(name, Instant(100 * SECOND))


@pytest.mark.parametrize("seed", draws.seeds(10))
def test_pod_may_be_first_where_one_behind_it_is_placed_next(seed) -> None:
    """Each pod is compared with each here."""
    chance = random.Random(seed)
    priorities = chance.choice(((0, 0, 5), range(-4, 8)))
    ranks = [(chance.choice("ab"), chance.choice(priorities)) for _ in range(12)]
    crowd = Crowd(*(chance.choice(("rp", "rrp", "rprp", "rr")) for _ in ranks))
    for name, (scheduler, priority) in zip(crowd.names, ranks, strict=True):
        crowd.story.make(name, 39, schedulerName=scheduler, priority=priority)
    for number in range(len(ranks)):
        crowd.refuse(number)
    crowd.story.facts["slice"] = 100
    crowd.wake()
    there = set(range(len(ranks)))
    for _ in range(20):
        number = chance.choice(sorted(there))
        course = crowd.recorded._pods[crowd.names[number]]
        match chance.randrange(4):
            case 0:
                # Attempts that are over are skipped when a pod is looked at.
                course.number = min(course.number + 1, len(course.tries) - 1)
                crowd.waiting.look(crowd.names[number], Instant(100 * SECOND))
            case 1 if len(there) > 6:
                key = ObjectKey(*api_resources.PODS, "ns", crowd.names[number])
                crowd.story.write(100, key, {}, EventType.OBJECT_DELETED)
                there.discard(number)
            case 2 if course.number < len(course.tries):
                course.number += 1
                outcome = AttemptOutcome(node="n1", devices=GPU)
                crowd.waiting.count(crowd.names[number], outcome, Instant(100 * SECOND))
                crowd.waiting.look(crowd.names[number], Instant(100 * SECOND))
        for one in there:
            refusal = crowd.waiting._refused.get(crowd.names[one])
            is_before = any(
                ranks[one][0] == ranks[other][0]
                and ranks[one][1] >= ranks[other][1]
                and other > one
                and crowd.names[other] in crowd.waiting._refused
                and (left := crowd.recorded.attempts_left(crowd.names[other]))
                and left[0].placing is not None
                for other in there
            )
            is_forgotten = not crowd.recorded.attempts_left(crowd.names[one])
            wanted = refusal is not None and (is_before or is_forgotten)
            assert crowd.may_be_first(one) is wanted, (one, crowd.recorded._pods, there)


def test_question_which_pod_may_be_first_grows_with_the_pods() -> None:
    """Each pod that is never placed was compared with each of higher priority that is."""

    def asked(count: int) -> int:
        crowd = Crowd(*(["rr"] * count), *(["rp"] * count))
        for number, name in enumerate(crowd.names):
            crowd.story.make(name, 39, priority=0 if number < count else 10)
        for number in range(2 * count):
            crowd.refuse(number)
        crowd.story.facts["slice"] = 100
        crowd.wake()
        answers, calls = counted(lambda: [crowd.may_be_first(each) for each in range(2 * count)])
        assert answers == [False] * count + [True] * (count - 1) + [False]
        return calls

    assert asked(100) < 2.5 * asked(50)


def test_question_which_pod_may_be_first_grows_with_the_pods_of_as_many_priorities() -> None:
    """Each question looked at the queue of each lower priority."""

    def asked(count: int) -> int:
        crowd = Crowd(*(["rp"] * count))
        for number, name in enumerate(crowd.names):
            crowd.story.make(name, 39, priority=number)
        for number in range(count):
            crowd.refuse(number)
        crowd.story.facts["slice"] = 100
        crowd.wake()
        answers, calls = counted(lambda: [crowd.may_be_first(each) for each in range(count)])
        # All of lower priority were refused before a pod, so none is behind it.
        assert not any(answers)
        return calls

    assert asked(100) < 2.5 * asked(50)
