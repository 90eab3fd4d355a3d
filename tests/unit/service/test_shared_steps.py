"""Steps that runs have in common are decided once, and come to the same as if decided again."""

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from app.adapters.uids import DerivedUids
from app.analysis.replay.facts import Created, facts_of
from app.domain.errors import Rejected
from app.domain.log import Event
from app.domain.values.timestamps import Instant
from app.service.replays.deciding.shared_steps import RunCourse, SharedSteps
from app.service.replays.reconciling import ReplayTimeline
from tests.unit.service.builders import ALICE, namespace, rules

RULES = rules()
KEPT_MAX = 100


class Line:
    """A timeline that takes namespaces; `decided` has those that it decided itself."""

    def __init__(self, course: RunCourse | None = None, seed: int = 1) -> None:
        self.decided: list[str] = []
        self.course = course
        self.line = ReplayTimeline(rules=RULES, uids=DerivedUids(seed))
        if course is not None:
            self.line.decider = self

    def decide(self, commands, stamp, new_uid, decide):
        def noted(*step):
            self.decided += [command.key.name for command in step[0]]
            return decide(*step)

        return self.course.decide(commands, stamp, new_uid, noted)

    def make(self, *names: str) -> "Line":
        for name in names:
            self.line.submit(namespace(name), actor=ALICE)
        return self

    @property
    def events(self) -> Sequence[Event]:
        return self.line.events


def alone(*names: str, seed: int = 1) -> Sequence[Event]:
    return Line(seed=seed).make(*names).events


def test_a_run_decides_what_is_new_in_it() -> None:
    shared = SharedSteps(KEPT_MAX)
    first = Line(shared.course(RULES)).make("a", "b", "c")
    second = Line(shared.course(RULES)).make("a", "b", "d", "c")
    third = Line(shared.course(RULES)).make("a", "b", "d", "e")
    assert (first.decided, second.decided) == (["a", "b", "c"], ["d", "c"])
    assert third.decided == ["e"]
    assert first.events == alone("a", "b", "c")
    assert second.events == alone("a", "b", "d", "c")
    assert third.events == alone("a", "b", "d", "e")


def test_steps_of_other_rules_instants_and_uids_are_decided_again() -> None:
    shared = SharedSteps(KEPT_MAX)
    Line(shared.course(RULES)).make("a")
    other = Line(shared.course(rules())).make("a")
    later = Line(shared.course(RULES))
    later.line.advance(Instant(5))
    later.make("a")
    uids = Line(shared.course(RULES), seed=2).make("a", "b")
    assert (other.decided, later.decided, uids.decided) == (["a"], ["a"], ["a", "b"])
    assert uids.events == alone("a", "b", seed=2)


def test_a_refused_step_is_none() -> None:
    shared = SharedSteps(KEPT_MAX)
    first, second = (Line(shared.course(RULES)) for _ in range(2))
    for each in (first, second):
        each.make("a")
        with pytest.raises(Rejected):
            each.make("a")
        each.make("b")
    assert second.decided == ["a"], "refusals are not kept"
    assert second.events == first.events


def test_steps_beyond_the_bound_are_not_kept() -> None:
    shared = SharedSteps(1)
    Line(shared.course(RULES)).make("a", "b", "c")
    second = Line(shared.course(RULES)).make("a", "b", "c")
    assert second.decided == ["b", "c"]
    assert second.events == alone("a", "b", "c")


def test_facts_of_a_step_are_read_once() -> None:
    shared = SharedSteps(KEPT_MAX)
    for _ in range(2):
        course = shared.course(RULES)
        event = Line(course).make("a").events[0]
        facts = course.facts_of(event, None)
        assert facts == tuple(facts_of(event, None, RULES.schemas))
        assert isinstance(facts[0], Created)
        assert course.facts_of(event, {"other": "before"}) is facts


def test_a_line_that_seals_nothing_differs_in_hashes_alone() -> None:
    unsealed = ReplayTimeline(rules=RULES, uids=DerivedUids(1))
    unsealed.seal_nothing()
    for name in ("a", "b"):
        unsealed.submit(namespace(name), actor=ALICE)
    sealed = alone("a", "b")
    assert all(event.hash for event in sealed)
    assert unsealed.events == [replace(event, hash=b"") for event in sealed]
    assert unsealed.head.hash == b""
