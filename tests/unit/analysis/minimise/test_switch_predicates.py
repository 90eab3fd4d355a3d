"""The predicate that two control planes differ: its pods, their order, and where one looks."""

import pytest

from app.analysis.diff.sides import Side
from app.analysis.minimise import predicates
from app.analysis.minimise.predicates import SwitchPredicate
from app.domain.controllers.registry import ControllerOptions
from app.domain.values.timestamps import SECOND
from tests.cluster import T0, Cluster
from tests.unit.analysis.test_whole_comparisons import nothing, side, story


class Runs:
    """A history whose runs under the first control plane and under the other one are given."""

    def __init__(self, first: Cluster, other: Cluster) -> None:
        options = ControllerOptions()
        self.events = first.line.events
        self._first, self._other = (
            side(name, cluster, options, is_recorded=False)
            for name, cluster in (("a", first), ("b", other))
        )
        self._seen: dict[object, Side] = {}

    def under(self, switches) -> Side:
        runs = (self._first, self._other)
        return self._seen.setdefault(switches_key(switches), runs[min(len(self._seen), 1)])

    @property
    def switches(self):
        raise AssertionError("no rule is judged here")


def switches_key(switches) -> str:
    return repr(switches)


def evicting(cluster: Cluster) -> None:
    cluster.rule(selector={"pool": "n1"})


def runs() -> Runs:
    return Runs(story(nothing, nothing), story(nothing, evicting))


PREDICATE = "differs quirk=c1"


def test_predicate_has_the_pods_that_differ_the_grave_ones_first() -> None:
    predicate = predicates.parse(PREDICATE)
    assert isinstance(predicate, SwitchPredicate)
    sightings = predicate.sightings(runs())
    # The rule comes after ten seconds, and a pod is seen to differ a second later.
    told = [(each.text.partition(": "), (each.at - T0) // SECOND) for each in sightings]
    assert [(kinds, seconds) for (_, _, kinds), seconds in told] == [
        ("evicted", 11),
        ("evicted", 11),
        ("only in B", 11),
        ("newly unschedulable", 31),
    ]
    for each, ((pod, _, _), _) in zip(sightings, told, strict=True):
        assert [f"pod {key.namespace}/{key.name}" for key in each.objects] == [pod]


def test_predicate_is_kept_with_the_class_that_it_names_or_shows_first() -> None:
    for text, kind in ((PREDICATE, "evicted"), (f"{PREDICATE} only in B", "only in B")):
        predicate = predicates.parse(text)
        assert isinstance(predicate, SwitchPredicate)
        settled = predicate.settled(runs())
        assert settled.kind is not None
        assert settled.kind.value == kind
        assert all(kind in each.text for each in settled.sightings(runs()))


def test_both_runs_show_it() -> None:
    predicate = predicates.parse(PREDICATE)
    both = runs()
    first, other = predicate.seen_in(both)
    assert first == both.events
    assert len(other) != len(first)


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("violation", "one that it does not count as a failure must be named: violation RULE"),
        ("violation constraint-holds", "`redra verify HISTORY` lists violations with their rules"),
        ("unschedulable", "`redra findings HISTORY` lists pods that waited or were evicted"),
        ("evicted", "`redra findings HISTORY` lists pods that waited or were evicted"),
        ("differs quirk=c1", "`redra diff HISTORY --again`, with a switch"),
        ("command check", "it must end with 0"),
    ],
)
def test_predicate_that_is_not_shown_says_where_to_look(text: str, advice: str) -> None:
    assert advice in predicates.where_to_look(predicates.parse(text))
