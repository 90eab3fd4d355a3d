"""Recordings that begin later: what they begin with, what comes after, and when."""

from dataclasses import replace

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from app.analysis.minimise import beginnings
from app.analysis.minimise.material import Candidate, Material
from app.analysis.minimise.predicates import Sighting
from app.analysis.replay.inputs import Input
from app.domain.log import Actor, Event, EventType, ObjectKey, Revision, Stamp
from app.domain.log.chain import canonical_json
from app.domain.values.timestamps import SECOND, Instant
from tests import draws

CREATED, UPDATED, DELETED = (
    EventType.OBJECT_CREATED,
    EventType.OBJECT_UPDATED,
    EventType.OBJECT_DELETED,
)


def recorded(acts: list[tuple[str, EventType]]) -> list[Input]:
    """Writes of ConfigMaps, a second apart; each says its number."""
    steps: list[Input] = []
    for number, (name, kind) in enumerate(acts):
        event = Event(
            revision=Revision(number + 1),
            type=kind,
            key=ObjectKey("", "configmaps", "n", name),
            uid=name,
            body=canonical_json({"metadata": {"name": name, "uid": name}, "data": {"n": number}}),
            stamp=Stamp(time=Instant(number * SECOND), actor=Actor(user="alice"), verb="update"),
        )
        steps.append(Input(event=event, before=None, time=event.stamp.time, number=number))
    return steps


def states(steps: list[Input]) -> dict[str, object]:
    """What is there after some steps, by name."""
    there: dict[str, object] = {}
    for step in steps:
        if step.event.type is DELETED:
            there.pop(step.event.key.name, None)
        else:
            there[step.event.key.name] = step.event.object
    return there


@settings(max_examples=draws.examples(50), deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from("abcd"), st.sampled_from([CREATED, UPDATED, DELETED])),
        min_size=2,
        max_size=20,
    ),
    st.data(),
)
def test_state_is_the_same_after_each_step_that_is_left(acts, data) -> None:
    steps = recorded(acts)
    number = data.draw(st.integers(1, len(steps) - 1))
    begun = beginnings.beginning_at(steps, number)
    count = sum(beginnings.is_beginning(step) for step in begun.steps)
    assert count == len(states(steps[:number]))
    for more in range(len(steps) - number + 1):
        assert states([*begun.steps[: count + more]]) == states(steps[: number + more])
    times = [step.time for step in begun.steps]
    assert times == sorted(times)
    assert [step.number for step in begun.steps] == list(range(len(times)))


def test_history_begins_before_what_is_shown_and_ends_when_it_is_seen() -> None:
    steps = recorded([(name, CREATED) for name in "abcdef"])
    material = Material(steps=steps, is_recorded=True)
    sighting = Sighting(objects=(steps[3].event.key,), at=steps[4].time)
    tries = list(beginnings.before(material, [sighting]))
    for each, before in zip(tries, (4, 3), strict=True):
        begun, whole = beginnings.begun(material, each)
        counts = [beginnings.is_beginning(step) for step in begun.steps]
        assert counts == [True] * before + [False] * (5 - before)
        assert (len(whole.kept), whole.until) == (5, steps[4].time)
    # A subject that is there from the beginning has none before it.
    first = Sighting(objects=(steps[0].event.key,), since=steps[0].time)
    assert list(beginnings.before(material, [first])) == []


def test_nothing_begins_before_what_is_seen_before_all_steps_or_before_its_subject() -> None:
    steps = recorded([(name, CREATED) for name in "abcdef"])
    material = Material(steps=steps, is_recorded=True)
    before_all = Sighting(objects=(), at=Instant(steps[0].time - 1))
    assert list(beginnings.before(material, [before_all])) == []
    early = Sighting(objects=(steps[5].event.key,), at=steps[3].time)
    assert list(beginnings.before(material, [early])) == []
    # The last step alone is no history with a later beginning, and the first step none at all.
    single = Material(steps=steps[:1], is_recorded=True)
    assert list(beginnings.before(single, [Sighting(objects=(steps[0].event.key,))])) == []
    assert list(beginnings.later(single, beginnings.whole(single, steps[0].time))) == []


def test_latest_beginnings_before_what_is_shown_come_first_and_none_comes_twice() -> None:
    steps = recorded([("a", CREATED), *[("b", UPDATED)] * 8, ("a", UPDATED), ("b", UPDATED)])
    material = Material(steps=steps, is_recorded=True)
    sightings = [
        Sighting(objects=(steps[0].event.key,), at=steps[10].time, since=steps[seen].time)
        for seen in (9, 9, 5)
    ]
    tries = [
        sum(not beginnings.is_beginning(step) for step in begun.steps)
        for begun, _ in (
            beginnings.begun(material, each) for each in beginnings.before(material, sightings)
        )
    ]
    # Of the first: 2, 3, 4, 6 and 10 steps; of the last, in turns with it: 6, 7, 8 and 10.
    assert tries == [2, 6, 3, 7, 4, 8, 10]


def test_later_beginnings_end_and_take_the_cuts_along() -> None:
    steps = recorded([("a", CREATED), ("b", CREATED), ("a", UPDATED), ("b", UPDATED)])
    material = Material(steps=steps, is_recorded=True)
    cut = (steps[0].event.key, ("data",))
    best = Candidate(kept=frozenset(range(4)), until=steps[-1].time, cuts=frozenset([cut]))
    tries = [beginnings.begun(material, each) for each in beginnings.later(material, best)]
    assert [len(each.steps) for each, _ in tries] == [3, 4, 4]
    for each, whole in tries:
        assert "data" not in states([*each.steps])["a"]
        assert whole.until == best.until
    # They do not go on for ever: nothing is left that could begin later.
    assert list(beginnings.later(*tries[0])) == []


def test_content_tells_a_beginning_from_a_creation() -> None:
    (step,) = recorded([("a", CREATED)])
    stamp = msgspec.structs.replace(step.event.stamp, verb="baseline")
    other = replace(step, event=msgspec.structs.replace(step.event, stamp=stamp))
    digests = {
        material.digest(beginnings.whole(material, step.time))
        for material in (Material(steps=[step]), Material(steps=[other]))
    }
    assert len(digests) == 2
