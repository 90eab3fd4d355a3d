"""Each incident of the gallery is played by the real engine, with its defect and repaired."""

from collections.abc import Sequence

import pytest

from app.analysis.incidents import facts
from app.analysis.incidents.facts import FactCheck
from app.analysis.incidents.incident import IncidentVariant
from app.bootstrap.gallery import incident_files, playing
from tests import draws

NAMES = incident_files.names()


def failed(verdicts: Sequence[FactCheck]) -> list[str]:
    return [f"{each.fact.text}: {each.seen}" for each in verdicts if not each.holds]


def test_gallery_has_what_people_meet() -> None:
    assert len(NAMES) >= 25
    kinds = {incident_files.read(name).incident.kind for name in NAMES}
    assert kinds == {"defect", "trap"}


@draws.in_turn("rows of incidents")
@pytest.mark.parametrize("name", NAMES)
def test_incident_comes_about_and_vanishes_when_repaired(name: str) -> None:
    incident = incident_files.read(name).incident
    broken = playing.play(incident, IncidentVariant.BROKEN)
    repaired = playing.play(incident, IncidentVariant.REPAIRED)
    assert failed(facts.judge(incident.finding, broken)) == []
    assert failed(facts.judge(incident.instead, repaired)) == []
    assert failed(facts.judge(incident.finding, repaired)), "the finding does not vanish"


@pytest.mark.parametrize("name", NAMES)
def test_incident_says_what_it_is_and_what_to_do(name: str) -> None:
    exhibit = incident_files.read(name)
    incident = exhibit.incident
    assert incident.title in exhibit.story
    assert incident.repair in exhibit.story
    assert incident.fixed
    assert incident.number or incident.upstream or incident.kind == "trap"
    has_other_cluster = incident.repaired is not None
    has_other_steps = any(step.only is not None for step in incident.steps)
    assert has_other_cluster or has_other_steps


def test_history_of_an_incident_is_the_same_each_time() -> None:
    incident = incident_files.read("rules-not-seen").incident
    first, second = (playing.play(incident, IncidentVariant.BROKEN).events for _ in range(2))
    assert [event.hash for event in first] == [event.hash for event in second]
