"""The watch finds in altered histories what brute force finds, at the same revisions."""

import random
from collections import Counter

import pytest

from app.analysis.verify.invariants import RULES, InvariantWatch, Switches, cells, ordinary_claims
from tests.unit.analysis.invariants import model
from tests.unit.analysis.invariants.alterations import ALTERATIONS, SoundWorld, numbered
from tests.unit.analysis.invariants.test_against_model import told, watched
from tests.unit.analysis.invariants.worlds import (
    DRIVER,
    World,
    claim,
    device,
    key_of,
    result,
    slice_,
)

SEEDS = range(2)
PODS = 6


def altered(name, seed):
    alter, _ = ALTERATIONS[name]
    return numbered(alter(SoundWorld(seed, PODS).events, random.Random(seed)))


@pytest.mark.parametrize("seed", range(8))
def test_a_sound_history_breaks_no_rule(seed):
    events = SoundWorld(seed, 12).events
    assert watched(events) == model.expected(events, Switches()) == []


@pytest.mark.parametrize("name", ALTERATIONS)
def test_altered_histories(name):
    _, rule = ALTERATIONS[name]
    rules = set()
    for seed in SEEDS:
        events = altered(name, seed)
        found = watched(events)
        assert found == model.expected(events, Switches())
        rules |= {each[0] for each in found}
    assert rule in rules


@pytest.mark.parametrize("seed", range(12))
def test_histories_altered_several_times(seed):
    draw = random.Random(seed)
    events = SoundWorld(seed, PODS).events
    for name in draw.sample(sorted(ALTERATIONS), 4):
        try:
            events = ALTERATIONS[name][0](events, draw)
        except (IndexError, ValueError, KeyError):
            continue  # what it alters is gone
    events = numbered(events)
    assert watched(events) == model.expected(events, Switches())


@pytest.mark.parametrize("name", ALTERATIONS)
def test_events_followed_one_by_one_or_by_the_page(name):
    events = altered(name, 1)
    for size in (1, 2, 7, len(events)):
        watch = InvariantWatch()
        for begin in range(0, len(events), size):
            watch.follow(events[begin : begin + size])
        assert told(watch) == watched(events)


SHORT = ((ordinary_claims, "take_given"), (ordinary_claims, "take_back"), (cells, "is_settled"))
"""Steps that take most writes in without judging, and say whether they did."""


def at_every_revision(events):
    """What is broken after each event of a history."""
    watch = InvariantWatch()
    found = []
    for event in events:
        watch.note(event)
        if event.stamp.verb != "baseline":
            found.append(sorted(map(str, watch.broken())))
    return found


@pytest.mark.parametrize("name", ALTERATIONS)
def test_short_steps_find_what_all_steps_find(name, monkeypatch):
    for seed in range(4):
        events = altered(name, seed)
        with monkeypatch.context() as patch:
            for module, step in SHORT:
                patch.setattr(module, step, lambda *_, **__: False)
            expected = at_every_revision(events)
        assert at_every_revision(events) == expected


def test_short_steps_take_most_writes_of_a_sound_history_in(monkeypatch):
    """Else the test above would compare nothing."""
    answers = Counter()

    def counted(step, take):
        def taken(*given, **options):
            answer = take(*given, **options)
            answers[step, answer] += 1
            return answer

        return taken

    for module, step in SHORT:
        monkeypatch.setattr(module, step, counted(step, getattr(module, step)))
    watched(SoundWorld(1, 20).events)
    for _, step in SHORT:
        assert answers[step, True] > answers[step, False]


def test_alterations_break_every_rule():
    assert {rule for _, rule in ALTERATIONS.values()} == set(RULES)


def test_a_counter_that_becomes_true():
    """1 and true are equal, and only one of them is a number."""
    world = World()
    place = key_of("resourceslices", "s")
    partition = device("d0", consumes={"units": "1"})
    world.put(place, slice_("pool", partition, counters={"units": 1}))
    held = claim()
    held["status"] = {"allocation": {"devices": {"results": [result("pool", "d0")]}}}
    world.put(key_of("resourceclaims", "c"), held)
    spoilt = world.put(place, slice_("pool", partition, counters={"units": True}))
    found = watched(world.events)
    assert [each[0] for each in found] == ["counters-not-overdrawn"]
    assert found[0][3] == spoilt
    assert found == model.expected(world.events, Switches())


def test_an_attribute_that_alone_changes():
    """A slice of which nothing but an attribute changed constrains by the new value."""
    world = World()
    place = key_of("resourceslices", "s")
    for number in (1, 2):
        two = [
            device(name, attributes={"numa": {"int": value}})
            for name, value in (("d0", 1), ("d1", number))
        ]
        world.put(place, slice_("pool", *two))
    constraint = {"requests": ["r"], "matchAttribute": f"{DRIVER}/numa"}
    wanted = {"name": "r", "exactly": {"deviceClassName": "gpu", "count": 2}}
    key = key_of("resourceclaims", "c")
    world.put(key, claim(wanted, constraints=[constraint]))
    tree, write = world.change(key)
    results = [result("pool", "d0"), result("pool", "d1")]
    tree["status"] = {"allocation": {"devices": {"results": results}}}
    write()
    assert [each[0] for each in watched(world.events)] == ["constraint-holds"]
    assert watched(world.events) == model.expected(world.events, Switches())
