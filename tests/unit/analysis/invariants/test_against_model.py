"""The watch that goes along a log finds what brute force finds at every revision."""

import random
from dataclasses import replace

import pytest

from app.analysis.verify.invariants import RULES, InvariantWatch, Switches, ViolationKind
from tests import draws
from tests.unit.analysis.invariants import model
from tests.unit.analysis.invariants.worlds import ClassedWorld, RandomWorld


def watched(events, switches=Switches(), lacking=frozenset()):
    watch = InvariantWatch(switches, lacking)
    for event in events:
        watch.note(event)
    return told(watch)


def told(watch):
    return sorted(
        (
            (
                each.rule,
                each.kind.value,
                tuple(sorted(map(str, each.objects))),
                each.begin.revision,
                None if each.end is None else each.end.revision,
            )
            for each in watch.violations()
        ),
        key=repr,
    )


SEEDS = draws.seeds(12)
KINDS = ("pods", "resourceclaims", "resourceslices", "devicetaintrules")


def lacking_of(seed):
    """Every sixth recording lacks objects of a kind."""
    return frozenset(KINDS[seed // 6 % len(KINDS) :][:1] if seed % 6 == 5 else ())


def switches_of(seed):
    return Switches(
        rules=seed % 5 != 0,
        taints=seed % 7 != 0,
        patches=seed % 3 != 0,
        distinct_by_last=seed % 2 == 0,
        rules_unseen=seed % 4 == 1,
    )


@draws.in_turn("rows of worlds")
@pytest.mark.parametrize("seed", SEEDS)
def test_random_worlds(seed):
    events = RandomWorld(seed, 100).events
    expected = model.expected(events, switches_of(seed), lacking_of(seed))
    assert expected
    assert watched(events, switches_of(seed), lacking_of(seed)) == expected


def forked(events, seed):
    """Switches that change twice, as those of the fork of a fork, each from an event on."""
    chance = random.Random(seed)
    read = [each.revision for each in events if each.key.resource in model.READ]
    begins = sorted(chance.sample(read[len(read) // 4 :], 2))
    later = tuple((begin, switches_of(chance.randrange(420))) for begin in begins)
    return replace(switches_of(seed), later=later)


@draws.in_turn("rows of worlds")
@pytest.mark.parametrize("seed", SEEDS)
def test_random_worlds_that_are_forked(seed):
    events = RandomWorld(seed, 100).events
    switches = forked(events, seed)
    assert watched(events, switches) == model.expected(events, switches)


@pytest.mark.parametrize("seed", draws.seeds(4))
def test_random_worlds_of_classes(seed):
    events = ClassedWorld(seed, 100).events
    expected = model.expected(events, Switches())
    assert watched(events) == expected


def test_random_worlds_of_classes_break_their_rule():
    found = [each for seed in range(4) for each in watched(ClassedWorld(seed, 100).events)]
    assert {rule for rule, _, objects, *_ in found if "deviceclasses" in str(objects)} == {
        "immutable-field-unchanged"
    }


@pytest.mark.parametrize(("seed", "count"), [(1003, 100), (73, 150)])
def test_worlds_in_which_watch_and_model_once_differed(seed, count):
    """A pod in a list is shown where the list ends; a derived state tells no later one."""
    events = RandomWorld(seed, count).events
    assert watched(events) == model.expected(events, Switches())


@draws.in_turn("ways")
def test_random_worlds_break_nearly_everything_in_every_way():
    worlds = [RandomWorld(seed, 100).events for seed in range(40)]
    found = [each for events in worlds for each in watched(events)]
    found += [each for events in worlds for each in watched(events, Switches(rules_unseen=True))]
    # Those worlds have no reported conditions and no versions of the store: the stories of
    # `test_rules.py` break these two rules.
    unbroken = {"bound-pod-has-ready-devices", "removed-before-renewed"}
    assert {rule for rule, *_ in found} == set(RULES) - unbroken
    assert {kind for _, kind, *_ in found} == {kind.value for kind in ViolationKind}


@draws.BY_DAY
@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_found_up_to_a_revision_is_found_again(seed):
    """Asked in between, the watch goes on as if nobody had asked."""
    events = RandomWorld(seed, 100).events
    watch = InvariantWatch(switches_of(seed))
    for event in events:
        watch.note(event)
        if event.stamp.verb != "baseline":
            watch.violations()
    assert told(watch) == watched(events, switches_of(seed))
