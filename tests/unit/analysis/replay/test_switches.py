"""The search for a switch that explains a difference, in worlds with drawn effects of switches."""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.analysis.replay.differences import Aspect, Sides
from app.analysis.replay.proving.budget import Budget
from app.analysis.replay.proving.evidence import Switched
from app.analysis.replay.proving.switches import SwitchSearch
from app.analysis.replay.traces import Trace
from app.analysis.replay.variants import Switches
from app.domain.values.timestamps import Instant

KEY = (Aspect.SAID, "pod", "")
LOOKS = (1, 2, 4, 8, 16, 32)
SETTLED = Instant(40)
NAMES = [f"q{number}" for number in range(36)]


@dataclass
class World:
    """Switches by name: when one contradicts the recording, and its effect on the difference.

    A switch without an effect changes nothing; the effect "gone" explains the difference.
    """

    wrong: dict[str, int]
    effects: dict[str, str]
    may_go_on: bool = True
    long_runs: int = 0
    runs: int = 0
    is_contradicted: bool = False

    async def left_by(self, group, until, is_over):
        names = [each.reason for each in group]
        self.runs += 1
        since = min((self.wrong[name] for name in names if name in self.wrong), default=99)
        for look in LOOKS:
            if look > until:
                break
            self.is_contradicted = look >= since
            if is_over(Trace(), Instant(look)):
                return {}
        self.long_runs += until == SETTLED
        effects = [self.effects[name] for name in names if name in self.effects]
        if "gone" in effects:
            return {}
        return {KEY: Sides(aspect=Aspect.SAID, uid="pod", recorded=["ab"], again=effects)}

    def search(self, names):
        switched = [Switched(reason=name, switches=Switches(quirks={name: True})) for name in names]
        return SwitchSearch(
            [switched],
            left_by=self.left_by,
            contradicts=lambda trace: self.is_contradicted,
            may_go_on=lambda: self.may_go_on,
        )


async def found(world, names):
    search = world.search(names)
    return [each.reason async for each in search.promising(KEY, [], SETTLED)], search


@given(
    wrong=st.dictionaries(st.sampled_from(NAMES), st.integers(1, 60), max_size=12),
    effects=st.dictionaries(st.sampled_from(NAMES), st.sampled_from(["x", "gone"]), max_size=4),
)
async def test_every_switch_that_explains_alone_is_found_and_none_that_contradicts(wrong, effects):
    world = World(wrong, effects)
    names, search = await found(world, NAMES)
    seen = {name for name, since in wrong.items() if any(since <= at <= 40 for at in LOOKS)}
    assert names == [name for name in NAMES if effects.get(name) == "gone" and name not in seen]
    assert search.is_complete


async def test_switches_that_contradict_the_recording_early_cost_only_short_runs():
    wrong = dict.fromkeys(NAMES[::4], 1)
    world = World(wrong, dict.fromkeys(wrong, "x"))
    assert (await found(world, NAMES))[0] == []
    assert world.long_runs == 2, "one run with all of them, one with those that are not wrong"


async def test_switches_that_contradict_the_recording_one_later_than_the_other_cost_short_runs():
    wrong = dict(zip(NAMES[::6], LOOKS, strict=True))
    world = World(wrong, dict.fromkeys(wrong, "x"))
    assert (await found(world, NAMES))[0] == []
    assert world.long_runs == 2, "one run with all of them, one with those that are not wrong"


async def test_switches_that_do_not_change_the_difference_take_one_run():
    world = World(dict.fromkeys(NAMES, 1), {})
    assert (await found(world, NAMES))[0] == []
    assert world.runs == 1


@pytest.mark.parametrize("together", [("q3", "q20"), ("q0", "q1")])
async def test_switches_that_contradict_only_together_are_tried_apart(together):
    world = World({}, {together[0]: "gone"})
    alone = world.left_by

    async def left_by(group, until, is_over):
        both = set(together) <= {each.reason for each in group}
        world.wrong = dict.fromkeys(together, 1) if both else {}
        return await alone(group, until, is_over)

    world.left_by = left_by
    assert (await found(world, NAMES))[0] == [together[0]]


async def test_search_without_runs_left_says_that_it_is_not_complete():
    world = World({}, {"q1": "gone"}, may_go_on=False)
    names, search = await found(world, NAMES)
    assert (names, world.runs, search.is_complete) == ([], 0, False)


@pytest.mark.parametrize(
    ("runs", "events", "half", "spent", "named"),
    [
        (1, 10, False, False, "4 runs (REDRA_DECIDE_RUNS_MAX)"),
        (2, 10, True, False, "4 runs (REDRA_DECIDE_RUNS_MAX)"),
        (4, 10, True, True, "4 runs (REDRA_DECIDE_RUNS_MAX)"),
        (4, 600, True, True, "4 runs (REDRA_DECIDE_RUNS_MAX)"),
        (1, 600, True, False, "1000 events of runs (REDRA_DECIDE_PROOF_EVENTS_MAX)"),
        (1, 1200, True, True, "1000 events of runs (REDRA_DECIDE_PROOF_EVENTS_MAX)"),
    ],
)
def test_bound_that_ends_the_proofs_is_named(runs, events, half, spent, named):
    budget = Budget(runs_max=4, events_max=1000)
    for number in range(runs):
        budget.note(events if not number else 0, is_whole=True)
    budget.note(0, is_whole=False)
    assert (budget.is_half_spent, budget.is_spent) == (half, spent)
    assert budget.words() == f"not proved within {named}"


@pytest.mark.parametrize(
    ("switches", "words"),
    [
        (Switches(), []),
        (Switches(profile="1.36"), ["profile 1.36"]),
        (
            Switches(gates={"B": True, "A": False}, quirks={"c1": True, "q2": False}),
            ["gate B=true", "gate A=false", "quirk c1=on", "quirk q2=off"],
        ),
    ],
)
def test_switches_are_said_as_they_are_given(switches, words):
    assert list(switches.words()) == words


def test_later_switches_have_precedence_and_the_others_stay():
    first = Switches(profile="1.36", gates={"A": True, "B": True}, quirks={"c1": True})
    second = Switches(gates={"B": False}, quirks={"c2": False})
    both = first | second
    assert (both.profile, both.gates, both.quirks) == (
        "1.36",
        {"A": True, "B": False},
        {"c1": True, "c2": False},
    )
    assert (second | first).gates == {"A": True, "B": True}
    assert (first | Switches(profile="1.37")).profile == "1.37"
    more = both.with_quirks(c1=False, c3=True)
    assert more.quirks == {"c1": False, "c2": False, "c3": True}
    assert (more.profile, more.gates) == (both.profile, both.gates)
