"""Event objects end some time after their last change."""

from dataclasses import replace

import pytest

from app.analysis.verify.compare import ComparisonResult
from app.bootstrap import history_settings, process_settings
from app.domain.controllers import registry
from app.domain.controllers.registry import ControllerOptions
from app.domain.errors import InputError
from app.domain.log import ObjectKey
from app.domain.objects.write.commands import CreateObject
from app.domain.values.timestamps import SECOND
from tests.cluster import USER, Cluster, check_decisions

HOUR = 3_600


def cluster(ttl: int | None = HOUR, **options) -> Cluster:
    told = None if ttl is None else ttl * SECOND
    return Cluster(options=ControllerOptions(event_ttl=told, **options))


def events(made: Cluster) -> list[str]:
    return [name.partition(".")[0] for name in made.names("events")]


def test_event_ends_an_hour_after_its_last_change_with_its_minute():
    made = cluster()
    made.wait(30)
    made.node("n1")
    made.settle()
    assert events(made) == ["n1"]
    made.wait(HOUR + 29)
    assert events(made) == ["n1"]
    made.wait(1)
    assert events(made) == []


def test_change_begins_the_hour_anew():
    made = cluster()
    made.node("n1")
    made.wait(HOUR - 60)
    (name,) = made.names("events")
    made.patch("events", name, {"count": 2})
    made.wait(120)
    assert events(made) == ["n1"]
    made.wait(HOUR)
    assert events(made) == []


def test_events_of_one_minute_end_together_and_by_the_server():
    made = cluster()
    made.wait(1)
    for number in range(5):
        made.node(f"n{number}")
        made.wait(7)
    before = made.line.head.revision
    made.wait(HOUR + 60)
    ended = [event for event in made.line.events if event.revision > before]
    assert [event.type for event in ended] == ["ObjectDeleted"] * 5
    assert len({event.stamp.time for event in ended}) == 1
    assert {event.stamp.actor.user for event in ended} == {"system:apiserver"}


def test_log_shows_an_ended_event_for_ever():
    made = cluster()
    made.node("n1")
    made.wait(2 * HOUR)
    assert made.messages("n1") == ["Node n1 event: Registered Node n1 in Controller"]


def test_events_stay_where_nothing_is_said_and_where_the_controller_is_off():
    for made in (cluster(None), cluster(off=frozenset({"event-expiry"}))):
        made.node("n1")
        made.wait(10 * HOUR)
        assert events(made) == ["n1"]


def test_event_that_somebody_deleted_is_no_trouble():
    made = cluster()
    made.node("n1")
    made.settle()
    made.delete("events", made.names("events")[0])
    made.wait(2 * HOUR)
    assert made.line.refusals == []


def test_many_events_end_in_several_steps():
    made = cluster()
    for number in range(450):
        name = f"x{number}.1"
        tree = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": "default"},
            "involvedObject": {"kind": "Pod", "name": "x", "namespace": "default"},
        }
        key = ObjectKey("", "events", "default", name)
        made.line.submit(CreateObject(key=key, version="v1", tree=tree), actor=USER)
    assert len(events(made)) == 450
    made.wait(2 * HOUR)
    assert events(made) == []


def test_restarted_controller_ends_what_is_left():
    made = cluster()
    made.node("n1")
    made.wait(HOUR / 2)
    made.restart()
    made.wait(HOUR / 2 + 60)
    assert events(made) == []


def test_node_that_is_registered_again_after_a_restart_is_decided_again_alike():
    made = cluster()
    made.node("n1")
    made.wait(2 * HOUR)
    # As a worker begins: with the objects that are left, not with the whole log.
    made.line.controllers = made.fresh_controllers()
    for controller in made.line.controllers:
        for group, resource in (("", "nodes"), ("", "namespaces")):
            for event in made.line.views.objects.events(group, resource):
                controller.fold(event, made.line.views)
    made.settle()
    assert made.messages("n1") == ["Node n1 event: Registered Node n1 in Controller"] * 2
    decisions, effects = check_decisions(made)
    assert ComparisonResult.DIFFERENT not in decisions.counts.keys() | effects.counts.keys()


def test_report_after_the_end_of_its_event_is_a_new_one():
    made = cluster(60)
    made.pod("p", template="none")
    made.wait(5)
    said = made.messages("p")
    assert len(said) == 1, "repetitions count"
    made.wait(2_000)
    assert made.messages("p")[1:], "waits between attempts are longer than a minute by now"
    assert set(made.messages("p")) == set(said)


def test_life_of_events_is_a_setting_of_new_histories():
    chosen = process_settings.settings()
    assert history_settings.history_settings(chosen)["controllers"] == {"eventTtlSeconds": HOUR}
    for_ever = replace(chosen, event_ttl_seconds=0)
    assert "controllers" not in history_settings.history_settings(for_ever)
    options = registry.options_from({"controllers": {"eventTtlSeconds": 60}})
    assert options.event_ttl == 60 * SECOND
    assert registry.options_from({}).event_ttl is None


@pytest.mark.parametrize("seconds", [-1, 0.5, "30", True, registry.EVENT_TTL_MAX_SECONDS + 1])
def test_life_of_events_is_a_number_of_seconds(seconds):
    with pytest.raises(InputError):
        registry.options_from({"controllers": {"eventTtlSeconds": seconds}})
