"""Judged as it comes, a history is found to be what it is found to be as a whole.

Seeds come by day.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

import pytest

from app.analysis.incidents.incident import IncidentVariant
from app.analysis.oversight import JudgeName, Observation, Oversight
from app.analysis.scan.scanning import Scan
from app.analysis.verify.invariants import InvariantWatch, Switches, Violation, ViolationKind
from app.bootstrap.deciders import deciders_of
from app.bootstrap.gallery import incident_files, playing
from app.bootstrap.pacing.overseeing import oversight_of
from app.domain.log import Event, EventType, HistoryId, HistoryInfo
from app.domain.values.json_tree import JsonObject
from app.service.replays.verifying import VerifyReport
from tests import draws
from tests.conformance.test_scan import planted
from tests.unit.analysis.invariants.test_against_model import lacking_of, switches_of
from tests.unit.analysis.invariants.worlds import RandomWorld
from tests.unit.analysis.verify.test_parts import steal, verify
from tests.unit.service.test_replaying import history_of, resealed, story


def named(violations: Iterable) -> list[tuple]:
    return sorted(
        (each.rule, each.kind.value, each.begin.revision, each.message) for each in violations
    )


@draws.BY_DAY
@pytest.mark.parametrize("seed", draws.seeds(12))
@pytest.mark.parametrize("size", [1, 7])
def test_news_of_the_invariants_are_what_is_found_in_the_end(seed: int, size: int) -> None:
    events = RandomWorld(seed, 100).events
    whole = InvariantWatch(switches_of(seed), lacking_of(seed))
    whole.follow(events)
    watch = InvariantWatch(switches_of(seed), lacking_of(seed))
    news = []
    for first in range(0, len(events), size):
        page = events[first : first + size]
        watch.follow(page)
        new = watch.news()
        assert all(each.begin.revision <= page[-1].revision for each in new)
        news += new
    news += watch.news(is_end=True)
    final = whole.violations()
    assert named(watch.violations()) == named(final)
    last_doubt = max((event.revision for event in events if _leaves_open(event)), default=0)
    told = named(_as_told_at_last(news, final, last_doubt))
    known = named(final)
    assert [_without_count(*each) for each in told] == [_without_count(*each) for each in known]
    assert all(one[3] <= two[3] for one, two in zip(told, known, strict=True)), "never fewer"


def _without_count(rule: str, kind: str, begin: int, message: str) -> tuple:
    """What is told once, though further claims may get the device while it lasts."""
    return rule, kind, begin, re.sub(r"allocated \d times", "allocated several times", message)


def _leaves_open(event: Event) -> bool:
    """Whether what came before is less certain after an event: a gap, a namespace of no place."""
    if event.type is EventType.GAP_OBSERVED:
        return True
    losses = event.stamp.origin.losses if event.stamp.origin else ()
    return event.key.resource == "namespaces" and bool(losses)


def _as_told_at_last(news: Sequence, final: Sequence, last_doubt: int) -> list:
    """The news, with what a later doubt has left open as it is known in the end."""
    unsure = Counter(_place(each) for each in final if each.kind is ViolationKind.UNSURE)
    known = Counter(_place(each) for each in news if each.kind is ViolationKind.UNSURE)
    told = []
    for each in news:
        place = _place(each)
        is_later = each.kind is not ViolationKind.UNSURE and known[place] < unsure[place]
        if is_later and each.begin.revision < last_doubt:
            known[place] += 1
            each = replace(each, kind=ViolationKind.UNSURE)
        told.append(each)
    return told


def _place(violation: Violation) -> tuple:
    return violation.rule, violation.begin.revision, violation.message, violation.objects


def fed(oversight: Oversight, events: Sequence[Event], size: int = 1) -> list[Observation]:
    """What is told of events that come so many at a time; none of it before its revision."""
    observations = []
    for first in range(0, len(events), size):
        page = events[first : first + size]
        new = oversight.take(page)
        assert all(each.revision <= each.seen == page[-1].revision for each in new)
        observations += new
    return observations + oversight.end()


def check_as_a_whole(observations: Sequence[Observation], report: VerifyReport) -> None:
    """The observations of invariants and decisions are those of the report."""
    violations = [
        (each.name, each.kind, each.revision, each.message)
        for each in observations
        if each.judge is JudgeName.INVARIANT
    ]
    assert sorted(violations) == named(report.violations)
    differences = [each.revision for each in observations if each.judge is JudgeName.DECISION]
    compared = report.decisions, report.effects, report.allocations
    assert sorted(differences) == sorted(
        difference.revision for each in compared for difference in each.differences
    )


def imagine(event: Event, tree: JsonObject) -> None:
    if event.type is EventType.DECISION_RECORDED and event.revision % 3 == 0:
        tree["outcome"] = "Imagined"


def keep(event: Event, tree: JsonObject) -> None:
    """Nothing is altered."""


@draws.in_turn("rows of incidents")
@pytest.mark.parametrize("lie", [keep, imagine, steal], ids=lambda lie: lie.__name__)
@pytest.mark.parametrize("size", [1, 10])
async def test_altered_history_is_told_as_verification_tells_it(lie, size: int) -> None:
    events = resealed(story().line.events, lie)
    log, info = await history_of(events)
    report, _ = await verify(log, info)
    assert report.agrees is (lie is keep)
    oversight = oversight_of(info, ())
    observations = fed(oversight, events, size)
    check_as_a_whole(observations, report)
    compared = oversight.compared()
    assert [each.counts for each in compared] == [
        report.decisions.counts, report.effects.counts, report.allocations.counts,
    ]  # fmt: skip


async def test_nothing_is_told_twice_when_it_settles_in_between() -> None:
    events = resealed(story().line.events, imagine)
    _, info = await history_of(events)
    observations, oversight = [], oversight_of(info, ())
    for event in events:
        observations += oversight.take([event])
        if event.revision % 10 == 0:
            observations += oversight.settle()
    observations += oversight.end()
    assert oversight.end() == []
    places = [(each.judge, each.name, each.revision, each.message) for each in observations]
    assert len(set(places)) == len(places)


@draws.in_turn("rows of incidents")
@pytest.mark.parametrize("name", incident_files.names()[::4])
def test_planted_incident_is_told_once_and_nothing_else(name: str) -> None:
    incident = planted(incident_files.read(name).incident, seed=len(name))
    played = playing.play(incident, IncidentVariant.BROKEN)
    whole = Scan()
    whole.follow(list(played.events))
    info = HistoryInfo(id=HistoryId(1), name="h")
    oversight = Oversight(deciders_of(info), invariants=Switches(), scan=Switches())
    observations = fed(oversight, played.events, 5)
    incidents = [each.name for each in observations if each.judge is JudgeName.INCIDENT]
    assert sorted(incidents) == sorted({each.incident for each in whole.sightings()})
