"""What lanes show of a stretch of time, and of too many states, against a model of raw objects.

Seeds come by day.
"""

import random
from dataclasses import replace
from itertools import groupby

import pytest

from app.analysis import lanes, spans
from app.analysis.chronicle import Chronicle
from app.analysis.lanes import LaneBounds, LanesRequest
from app.analysis.spans import DEVICES, Spans
from app.domain.log import Revision
from app.domain.values import api_resources, timestamps
from app.domain.values.timestamps import SECOND, Instant
from tests import draws
from tests.counting import counted
from tests.unit.analysis.spans.test_spans import claim, pod, random_log, state_of
from tests.unit.projections.log_of import START, LogOf

WIDE = LaneBounds(lanes_max=1_000, shapes_max=100_000, states_max=1_000, marks_max=1_000)


class Nothing:
    def fold(self, event):
        pass


def at(revision):
    """The instant of an event of the logs that are written by hand."""
    return Instant(START + revision * SECOND)


def asked(log, bounds=WIDE, revision=None, **wanted):
    chronicle = Chronicle()
    chronicle.fold(log.events)
    revision = revision or len(log.events)
    return lanes.of(
        "h",
        chronicle,
        Revision(revision),
        at(revision),
        LanesRequest(**wanted),
        lambda _: True,
        bounds,
    )


def states_modelled(moments, first, last):
    """Each object's states from second to second, read from the objects that were there then."""
    runs = {}
    for kind, name in {key for moment in moments for key in moment}:
        shown = [moments[number - 1].get((kind, name)) for number in range(first, last + 1)]
        named = [
            tree and (state_of(kind, tree), tree.get("spec", {}).get("nodeName", ""))
            for tree in shown
        ]
        states = [state for state, _ in groupby(named) if state]
        if states:
            runs["pods" if kind == "pod" else "resourceclaims", name] = states
    return runs


def states_shown(answer):
    assert len({lane.key for lane in answer.lanes}) == len(answer.lanes)
    return {
        (lane.resource, f"{lane.namespace}/{lane.name}"): [
            (state.state, state.label) for state in lane.states
        ]
        for lane in answer.lanes
        if lane.key[:2] != DEVICES
    }


@draws.BY_DAY
@pytest.mark.parametrize("seed", range(12))
def test_stretch_of_time_shows_the_states_that_objects_had_in_it(seed):
    log, moments = random_log(seed)
    chance = random.Random(seed)
    for _ in range(8):
        first, last = sorted(chance.sample(range(1, len(moments) + 1), 2))
        answer = asked(log, since=at(first), until=at(last))
        modelled = states_modelled(moments, first, last)
        shown = states_shown(answer)
        # A claim is shown with its pod alone where it has one, also when only the pod is gone.
        missing = modelled.keys() - shown.keys()
        assert all(resource == "resourceclaims" for resource, _ in missing)
        assert shown == {key: modelled[key] for key in shown}
        assert (answer.begin, answer.end) == (
            timestamps.micro_text(at(first)),
            timestamps.micro_text(at(last)),
        )
        assert all(
            answer.begin <= mark.time <= answer.end for lane in answer.lanes for mark in lane.marks
        )


@pytest.mark.parametrize("later", [None, 2])
def test_nothing_is_after_the_moment_that_is_shown(later):
    log, moments = random_log(1)
    last = len(moments)
    assert asked(log, since=at(last)).lanes
    answer = asked(log, since=at(last + 1), until=later and at(last + later))
    assert (answer.lanes, answer.gaps, answer.omitted) == ((), (), 0)
    assert answer.begin == answer.end == timestamps.micro_text(at(last))


@pytest.mark.parametrize("states_max", [3, 4, 7])
@pytest.mark.parametrize("seed", range(8))
def test_short_states_between_long_ones_are_shown_as_one(seed, states_max):
    log, _ = random_log(seed)
    whole = asked(log)
    folded = asked(
        log,
        bounds=LaneBounds(
            lanes_max=1_000, shapes_max=100_000, states_max=states_max, marks_max=1_000
        ),
    )
    for every, few in zip(whole.lanes, folded.lanes, strict=True):
        assert len(few.states) <= max(states_max, 1)
        assert sum(state.count for state in few.states) == len(every.states)
        rest = iter(every.states)
        alone = 0
        for state in few.states:
            part = [next(rest) for _ in range(state.count)]
            assert (state.begin, state.end) == (part[0].begin, part[-1].end)
            if state.count == 1:
                assert state == part[0]
                alone += length(state, whole)
            else:
                assert state.label.startswith(f"{state.count} states, mostly ")
        longest = sorted((length(state, whole) for state in every.states), reverse=True)
        assert alone >= sum(longest[: (states_max - 1) // 2])


def length(state, answer):
    return timestamps.parse(state.ended or answer.end) - timestamps.parse(state.began)


@draws.BY_DAY
@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("wanted", [{}, {"namespace": "default"}, {"name": "pod-1"}])
def test_shown_and_omitted_are_all_that_is_meant(seed, wanted):
    log, _ = random_log(seed)
    until = random.Random(seed).randint(20, len(log.events))
    every = [lane for lane in asked(log, revision=until, **wanted).lanes if lane.depth == 0]
    for lanes_max in (1, 2, 3, 5, 8):
        few = asked(log, replace(WIDE, lanes_max=lanes_max), revision=until, **wanted)
        first = [lane for lane in few.lanes if lane.depth == 0]
        assert [lane.key for lane in first] == [lane.key for lane in every[: len(first)]]
        assert len(first) + few.omitted == len(every)


def test_picture_that_leaves_something_out_shows_the_time_of_what_it_holds():
    log = LogOf(Nothing())
    log.put("node", "n", status={"conditions": [{"type": "Ready", "status": "True"}]})
    for number in range(30):
        log.put("pod", f"default/p-{number}", **pod())
    last = log.put("pod", "default/p-29", **pod("n", "Running"))
    whole, few = asked(log), asked(log, LaneBounds(lanes_max=3))
    assert whole.begin == timestamps.micro_text(at(1))
    assert [lane.name for lane in few.lanes] == ["p-29", "p-28", "p-27"]
    assert few.begin == timestamps.micro_text(at(last - 3))
    assert few.omitted == 28


def test_lane_has_its_newest_marks_and_counts_the_others():
    log = LogOf(Nothing())
    for number in range(9):
        log.put("pod", "default/p", **pod("n", ("Running", "Unknown")[number % 2]))
    whole, few = asked(log), asked(log, LaneBounds(marks_max=4))
    assert len(whole.lanes[0].marks) > 4
    assert few.lanes[0].marks == whole.lanes[0].marks[-4:]
    assert few.lanes[0].earlier == len(whole.lanes[0].marks) - 4


def walked(log, until, part):
    """The objects that a name means, found by looking at every lane of a log that ends there."""
    chronicle = Chronicle()
    chronicle.fold(log.events[:until])
    folded = chronicle.spans
    begun = {key: states[0].begin[0] for key, states in folded.lanes.items()}
    there = sorted(begun, key=begun.get, reverse=True)
    groups = {}
    for key in there:
        if key[:2] == DEVICES or any(pod in begun for pod in folded.claimed.get(key, ())):
            continue
        claims = [key] if key.resource == "resourceclaims" else folded.claims_of(key)
        devices = [each for claim in claims for each in folded.devices_of(claim, until)]
        groups[key] = [key, *claims, *devices]
    meant = [key for key, group in groups.items() if any(part in each.name for each in group)]
    return sorted(meant, key=lambda key: key.resource != "pods")


@draws.BY_DAY
@pytest.mark.parametrize("seed", range(20))
def test_lanes_of_a_past_moment_are_those_of_a_log_that_ends_there(seed):
    log, _ = random_log(seed)
    drawn = random.Random(seed)
    for until in drawn.sample(range(3, len(log.events)), 6):
        cut = LogOf(Nothing())
        cut.events.extend(log.events[:until])
        for bounds in (LaneBounds(), LaneBounds(lanes_max=3)):
            assert asked(log, bounds, revision=until) == asked(cut, bounds, revision=until)


def test_claim_is_shown_alone_until_it_belongs_to_a_pod():
    log = LogOf(Nothing())
    made = log.put("claim", "default/c", **claim())
    log.put("pod", "default/p", **pod())
    log.put("claim", "default/c", **claim(["gpu-0"], ["p"]))
    last = len(log.events)
    past, present = (asked(log, revision=each, name="c").lanes for each in (made, last))
    assert [(lane.name, lane.depth) for lane in past] == [("c", 0)]
    assert [lane.name for lane in present if lane.depth < 2] == ["p", "c"]


@draws.BY_DAY
@pytest.mark.parametrize("seed", range(20))
def test_name_means_what_a_look_at_every_lane_finds(seed):
    log, _ = random_log(seed)
    until = random.Random(seed).randint(5, len(log.events))
    for part in ("pod-1", "claim", "claim-2", "gpu-0", "gpu", "-", "0\nclaim", "nothing"):
        shown = [lane.key for lane in asked(log, revision=until, name=part).lanes if not lane.depth]
        assert shown == walked(log, until, part)


@pytest.mark.parametrize("seed", range(5))
def test_names_are_found_while_a_history_grows(seed, monkeypatch):
    monkeypatch.setattr(spans, "NAMES_IN_TEXT", 3)
    log, _ = random_log(seed)
    folded = Spans()
    for event in log.events:
        folded.fold(event)
        for place, keys in folded.began.items():
            for part in ("1", "gpu", "pod-0"):
                assert [*folded.named(place, part)] == [key for key in keys if part in key.name]


def calls_of_first_search(names):
    """The function calls of the first search among so many names."""
    folded = Spans()
    log = LogOf(folded)
    for number in range(names):
        log.put("pod", f"default/p{number}", **pod())
    keys, calls = counted(lambda: [*folded.named(api_resources.PODS, f"p{names - 1}")])
    assert [key.name for key in keys] == [f"p{names - 1}"]
    return calls


def test_first_search_does_not_read_all_names(monkeypatch):
    monkeypatch.setattr(spans, "NAMES_IN_TEXT", 50)
    short, long = calls_of_first_search(49), calls_of_first_search(499)
    assert long - short < 100


def test_name_with_a_line_break_is_found_and_none_is_made_of_two_names():
    folded = Spans()
    log = LogOf(folded)
    for name in ("a\nb", "a", "b", "xx\nx"):
        log.put("pod", f"default/{name}", **pod())
    (place,) = folded.began
    for part, names in (("a\nb", ["a\nb"]), ("a", ["a\nb", "a"]), ("x\n", ["xx\nx"])):
        assert [key.name for key in folded.named(place, part)] == names
