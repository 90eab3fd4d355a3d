"""A chronicle that goes on from what was kept is the chronicle that folded all events."""

import random

import pytest

from app.analysis import lanes, starts
from app.analysis.chosen_spans import ChosenSpans, ManyObjects
from app.analysis.chronicle import Chronicle
from app.analysis.keeping import forms, graphs, kept_watch, topics
from app.analysis.keeping.graphs import UnknownForm
from app.analysis.lanes import LaneBounds, LanesRequest
from app.analysis.spans import Spans
from app.analysis.starts import PaceBounds
from app.analysis.verify.invariants import Switches
from app.domain.log import ObjectKey, Revision
from app.domain.values import api_resources
from app.domain.values.timestamps import Instant
from tests import draws
from tests.conformance.recordings import RECORDINGS
from tests.conformance.test_histories import SOAK, imported_once
from tests.unit.analysis.invariants.test_against_model import forked, lacking_of, switches_of
from tests.unit.analysis.invariants.worlds import ClassedWorld, RandomWorld
from tests.unit.analysis.spans.test_spans import random_log

PAGE = 100


def attributes(view: Spans) -> dict:
    """All that the states over time consist of."""
    names = {place: vars(each) for place, each in vars(view)["_names"].items()}
    return vars(view) | {"_names": names}


def shown(chronicle: Chronicle, until: int | None = None) -> dict:
    """All that a chronicle answers."""
    last = chronicle.revision if until is None else Revision(until)
    subjects = sorted({entry.subject for entry in chronicle.entries})
    return {
        "rows": [chronicle.row(entry) for entry in chronicle.entries],
        "revisions": list(chronicle.revisions),
        "times": list(chronicle.times),
        "kinds": {kind: list(chronicle.numbers(kind=kind)) for kind in chronicle.kinds()},
        "subjects": [(each, list(chronicle.numbers(subject=each))) for each in subjects],
        "about": [chronicle.about(each, until=last) for each in subjects],
        "of kinds": [chronicle.of_kind(each, until=last) for each in chronicle.kinds()],
        "violations": chronicle.violations(until=last, now=Instant(2**50)),
        "evictors": {
            revision: each
            for revision in chronicle.revisions
            if (each := chronicle.evictors(revision))
        },
        "doubts": chronicle.doubts((), until=last),
    }


def states_of(states: Spans | ChosenSpans, keys, pods, moments) -> dict:
    """All that the states over time answer about objects."""
    states_at = {
        moment: {
            "counts": [states.count_begun(place, moment) for place in topics.PLACES],
            "claimed": states.count_claimed(moment),
            "pods": [list(states.pods_of(key, moment)) for key in keys],
            "devices": [list(states.devices_of(key, moment)) for key in keys],
            "holders": [list(states.holders_of(key, moment)) for key in keys],
            "claims": [list(states.claims_of(key, moment)) for key in keys],
            "claims since": [list(states.claims_of(key, moment, after=moments[0])) for key in keys],
            "wanted": [(list(named), count) for named, count in wanted],
        }
        for moment in moments
        for wanted in ([states.wanted_by(pod, moment) for pod in pods],)
    }
    return states_at | {
        "lanes": {key: list(states.lane(key)) for key in keys},
        "gaps": list(states.gaps),
        "begun": {place: list(states.begun_keys(place)) for place in topics.PLACES},
        "numbers": [
            states.begun_key(place, number)
            for place in topics.PLACES
            for number in range(states.count_begun(place, moments[-1]))
        ],
        "named": [
            list(states.named(place, part))
            for place in topics.PLACES
            for part in ("", "a", "-1", "1", "p1", "c1\nc2", "\n")
        ],
    }


def same_states(chronicle: Chronicle, whole: Chronicle, states: ChosenSpans | None = None) -> None:
    """Compare the states of objects one by one with those of all."""
    spans, last = whole.spans, whole.revision
    keys = [*spans.lanes, ObjectKey(*api_resources.PODS, "default", "never")]
    keys += [ObjectKey(*api_resources.RESOURCE_CLAIMS, key.namespace, "never") for key in keys[:1]]
    pods = [key for key in keys if key[:2] == api_resources.PODS]
    moments = [Revision(last // 3), Revision(2 * last // 3), last]
    chosen = states or ChosenSpans(chronicle._changes, chronicle._topics)
    chosen._left = 10**9
    assert states_of(chosen, keys, pods, moments) == states_of(spans, keys, pods, moments)


def pictures(chronicle: Chronicle) -> list:
    """Lanes and pace at several moments, without and with a filter."""
    last, now = chronicle.revision, Instant(2**51)
    keys = [*chronicle.states.begun_keys(api_resources.PODS)][:1]
    part = keys[0].name if keys else "p"
    few = LaneBounds(lanes_max=4, shapes_max=30, states_max=3)
    return [
        picture
        for until in (Revision(last // 2), last)
        for name in ("", part)
        for picture in (
            lanes.of("h", chronicle, until, now, LanesRequest(name=name), bool, few),
            starts.of("h", chronicle, until, now, name=name, bounds=PaceBounds(scanned_max=3)),
        )
    ]


class Keeper:
    """What is kept of a chronicle, as bytes."""

    def __init__(self) -> None:
        self.stretches: list[tuple[Revision, bytes]] = []
        self.entries: list[bytes] = []
        self.changes: list[bytes] = []
        self.state = b""
        self.restored_from = 0

    def keep(self, chronicle: Chronicle) -> None:
        stretch = chronicle.stretch()
        self.stretches.append((chronicle.revision, b"hash"))
        self.entries.append(forms.dump(stretch.entries))
        self.changes.append(forms.dump(stretch.changes))
        self.state = forms.dump(chronicle.state(self.stretches))
        chronicle.note_kept(stretch)

    def restored(self, chronicle: Chronicle, *, with_changes: bool) -> Chronicle:
        state = forms.state_of(self.state)
        assert list(state.stretches) == self.stretches
        assert chronicle.fits(state, self.stretches[-1][0])
        chronicle.go_on_from(state, [forms.entries_of(each) for each in self.entries])
        assert chronicle.lacks_changes
        self.restored_from = len(self.changes)
        if with_changes:
            self.give_changes(chronicle)
        return chronicle

    def give_changes(self, chronicle: Chronicle) -> None:
        before = self.changes[: self.restored_from]
        chronicle.take_changes([forms.changes_of(each) for each in before])


def compare(events, switches=Switches(), lacking=frozenset(), *, seed, is_recorded=True, stops=4):
    """Fold with and without stops, at which the chronicle is kept, or made anew from there."""

    def begun() -> Chronicle:
        return Chronicle(switches, lacking, is_recorded=is_recorded)

    chance = random.Random(seed)
    whole, chronicle, keeper = begun(), begun(), Keeper()
    ends = sorted(chance.sample(range(1, len(events)), min(stops, len(events) - 1)))
    begin = restarts = 0
    for end in (*ends, len(events)):
        for view in (whole, chronicle):
            for first in range(begin, end, PAGE):
                view.fold(events[first : min(first + PAGE, end)])
        begin = end
        if not chronicle.can_be_kept or end == len(events):
            continue
        keeper.keep(chronicle)
        assert shown(chronicle) == shown(whole)
        if chance.random() < 0.7:
            chronicle = keeper.restored(begun(), with_changes=chance.random() < 0.5)
            restarts += 1
        if not chronicle.lacks_changes:
            same_states(chronicle, whole)
        if chance.random() < 0.3 and not chronicle.lacks_changes:
            assert attributes(chronicle.spans) == attributes(whole.spans)
    if chronicle.lacks_changes:
        keeper.give_changes(chronicle)
    same_states(chronicle, whole)
    assert pictures(chronicle) == pictures(whole)
    assert shown(chronicle) == shown(whole)
    assert attributes(chronicle.spans) == attributes(whole.spans)
    return restarts


@pytest.fixture(autouse=True)
def short_texts(monkeypatch):
    """Texts of few names, so that names are found in several."""
    monkeypatch.setattr(topics, "NAMES_IN_TEXT", 3)


@draws.in_turn("rows of worlds")
@pytest.mark.parametrize("seed", draws.seeds(14))
def test_random_worlds(seed):
    world = ClassedWorld if seed % 3 == 2 else RandomWorld
    events = world(seed, 100).events
    assert compare(events, switches_of(seed), lacking_of(seed), seed=seed, stops=10)


@pytest.mark.parametrize("seed", draws.seeds(2))
def test_switches_of_forks_that_come_before_and_after_a_stop(seed):
    events = RandomWorld(seed, 100).events
    assert compare(events, forked(events, seed), seed=seed, stops=10)


@pytest.mark.parametrize("seed", draws.seeds(3))
def test_states_over_time(seed):
    log, _ = random_log(seed)
    assert compare(log.events, seed=seed, is_recorded=False, stops=8)
    spans = Spans()
    for event in log.events:
        spans.fold(event)
    chronicle = Chronicle()
    chronicle.fold(log.events)
    assert chronicle.spans.lanes == spans.lanes


@pytest.mark.parametrize("seed", draws.seeds(3))
def test_states_of_chosen_objects_follow_the_log(seed):
    """What was worked out of an object is forgotten when a change concerns it."""
    chance, events = random.Random(seed), RandomWorld(seed, 80).events
    whole, chronicle, keeper = Chronicle(), Chronicle(), Keeper()
    begin = 0
    while begin < len(events):
        page = events[begin : begin + chance.randrange(1, 12)]
        begin += len(page)
        for view in (whole, chronicle):
            view.fold(page)
        assert whole.spans is not chronicle.states
        same_states(chronicle, whole, chronicle.states)
        if chronicle.can_be_kept and chance.random() < 0.2:
            keeper.keep(chronicle)


def test_question_about_very_many_objects_asks_for_all(monkeypatch):
    monkeypatch.setattr("app.analysis.chosen_spans.CHOSEN_MAX", 2)
    log, _ = random_log(1)
    chronicle = Chronicle()
    chronicle.fold(log.events)
    first, second, third = list(chronicle.states.begun_keys(api_resources.PODS))[:3]
    for _ in range(2):
        for _ in chronicle.states_in_steps():
            pass
        assert chronicle.states.lane(first)
        assert chronicle.states.lane(second)
        chronicle.states.lane(first)
        with pytest.raises(ManyObjects):
            chronicle.states.lane(third)
        chronicle.fold([event for event in log.events if event.key in (first, second)])
    assert [*chronicle.spans_in_steps()]
    assert chronicle.states.lane(third)


@draws.in_turn("rows of recordings")
@pytest.mark.parametrize("name", [each for each in RECORDINGS if each != SOAK])
async def test_recordings(name):
    imported = await imported_once(name, "joined")
    assert compare(imported.events, Switches(), seed=len(name), stops=8)


def test_state_of_other_conditions_does_not_fit():
    log, _ = random_log(1)
    chronicle, keeper = Chronicle(), Keeper()
    chronicle.fold(log.events)
    keeper.keep(chronicle)
    state, last = forms.state_of(keeper.state), chronicle.revision
    later = Switches(later=((Revision(last + 1), Switches(rules=False)),))
    earlier = Switches(later=((last, Switches(rules=False)),))
    assert Chronicle(later).fits(state, last)
    assert not Chronicle(earlier).fits(state, last)
    assert not Chronicle(Switches(taints=False)).fits(state, last)
    assert not Chronicle(lacking=frozenset({"pods"})).fits(state, last)
    assert not Chronicle(is_recorded=False).fits(state, last)


def test_objects_that_refer_to_each_other_are_the_same_objects_again():
    forms_of_none = graphs.GraphForms(())
    circle: list = [-(2**70), {"a": (2**64, "b")}]
    circle += [circle, circle[1]]
    again = graphs.load(graphs.dump(circle, forms_of_none), forms_of_none)
    assert again[2] is again
    assert again[3] is again[1] == {"a": (2**64, "b")}
    assert again[0] == -(2**70)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xc0",
        graphs.dump({1: 2}, graphs.GraphForms(()))[:-3],
        forms.dump([(1, b"x")]),
    ],
)
def test_bytes_of_no_state_are_refused(data):
    with pytest.raises(UnknownForm):
        graphs.load(data, kept_watch.FORMS)
    with pytest.raises(UnknownForm):
        forms.state_of(data)


def test_class_that_is_not_named_is_neither_written_nor_made():
    class Other:
        pass

    with pytest.raises(UnknownForm, match="Other"):
        graphs.dump([Other()], kept_watch.FORMS)
    written = graphs.dump([Other()], graphs.GraphForms((Other,)))
    with pytest.raises(UnknownForm, match="Other"):
        graphs.load(written, kept_watch.FORMS)


def test_events_are_kept_without_what_was_read_of_them():
    log, _ = random_log(1)
    event = log.events[0]
    tree = event.object
    event.reading = tree, object()
    again = graphs.load(graphs.dump((event, event), kept_watch.FORMS), kept_watch.FORMS)
    assert again[0] is again[1]
    assert (again[0].object, again[0].reading) == (tree, None)
    assert again[0].hash == event.hash


def test_states_over_time_are_worked_out_once_by_several_callers():
    """Steps of two callers and of further events, in any order."""
    log, _ = random_log(2)
    events = [event for _ in range(8) for event in log.events]
    whole = Chronicle()
    whole.fold(events)
    for seed in range(20):
        chance, chronicle = random.Random(seed), Chronicle()
        chronicle.fold(events[:-20])
        callers = [chronicle.spans_in_steps() for _ in range(3)]
        for begin in range(len(events) - 20, len(events), 5):
            for caller in chance.choices(callers, k=chance.randrange(4)):
                next(caller, None)
            if chance.random() < 0.1:
                assert chronicle.spans
            chronicle.fold(events[begin : begin + 5])
        assert attributes(chronicle.spans) == attributes(whole.spans)
        for caller in callers:
            assert [*caller] == []
        assert attributes(chronicle.spans) == attributes(whole.spans)
