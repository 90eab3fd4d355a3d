"""The blast radius of a recorded rule names the evictions that the real controller then made.

Recordings come by day.
"""

from collections.abc import Iterator

import pytest

from app.analysis.blast import compare, world
from app.analysis.blast.compare import Put
from app.analysis.blast.radius import BlastRadius, Fate
from app.analysis.views import LiveViews
from app.bootstrap.rules import rules_for
from app.domain.log import Event, EventType, HistoryInfo
from app.domain.objects.profile import Profile
from app.domain.values import json_tree
from app.domain.values.timestamps import SECOND, Instant
from tests import draws
from tests.conformance.recordings import import_paths
from tests.shared_data import shared_path

PROFILE = Profile(version="1.36", gates={"DRADeviceTaintRules": True})

AT_ONCE = SECOND
"""Recorded deletions come 5 to 30 ms after the write of the rule (controllers.md 1.5)."""

RULES = {"e-taints": 4, "e-taints-rules-ignored": 4}
EVICTED = {"e-taints": 4, "e-taints-rules-ignored": 3}


async def recorded(name: str) -> list[Event]:
    found = await import_paths([shared_path("histories", name)])
    return found.events


def marked(events: list[Event]) -> dict[str, Instant]:
    """The time at which the eviction controller marked each pod, by name."""
    found: dict[str, Instant] = {}
    for event in events:
        if event.key.resource == "pods" and event.is_about_object:
            for condition in json_tree.objects(event.object, "status", "conditions"):
                if condition.get("reason") == "DeletionByDeviceTaintManager":
                    found.setdefault(event.key.name, event.stamp.time)
    return found


def proposals(events: list[Event]) -> Iterator[tuple[Event, BlastRadius, set[str]]]:
    """Each created rule, its blast radius just before, and the pods that exist then."""
    views = LiveViews(PROFILE)
    rules = rules_for(PROFILE)
    info = HistoryInfo(id=1, name="recorded")
    for event in events:
        if event.key.resource == "devicetaintrules" and event.type is EventType.OBJECT_CREATED:
            tree = {
                "apiVersion": "resource.k8s.io/v1beta2",
                "kind": "DeviceTaintRule",
                "metadata": {"name": event.key.name},
                "spec": event.object["spec"],
            }
            frozen = world.freeze(views, info, rules, event.stamp.time)
            present = {key.name for key in views.objects.keys("", "pods")}
            yield event, compare.blast(frozen, [Put(tree=tree)]), present
        views.fold(event)


@draws.in_turn("ways")
@pytest.mark.parametrize("name", RULES)
async def test_exactly_the_pods_that_are_named_went_in_the_recording(name):
    events = await recorded(name)
    gone = marked(events)
    asked = told = 0
    for event, found, present in proposals(events):
        asked += 1
        named = {pod.name for pod in found.pods if pod.fate is Fate.NOW}
        effect = json_tree.text(event.object, "spec", "taint", "effect")
        if effect != "NoExecute":
            assert effect == "None" or not named
            continue
        began = event.stamp.time
        went = {pod for pod, time in gone.items() if began <= time <= began + AT_ONCE}
        # Replacements may be placed on tainted devices and go as well; nobody asked about them.
        assert named == went & present, event.key.name
        told += len(named)
    assert (asked, told) == (RULES[name], EVICTED[name])


@draws.in_turn("ways")
@pytest.mark.parametrize("name", RULES)
async def test_preview_says_what_the_recorded_status_says(name):
    events = await recorded(name)
    messages = [
        f"{condition['reason']}: {condition['message']}"
        for event in events
        if event.key.resource == "devicetaintrules"
        for condition in json_tree.objects(event.object, "status", "conditions")
        if condition["reason"] == "NoEffect"
    ]
    previews = [found.effects[0].status for _, found, _ in proposals(events) if found.preview]
    assert previews == messages[:1]
