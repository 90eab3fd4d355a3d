"""What must be true of a log after any number of kills."""

from collections import Counter
from collections.abc import Sequence

from app.bootstrap.rules import rules_for
from app.domain.controllers import registry
from app.domain.controllers.registry import Options
from app.domain.devices.cel_selectors import CelCompiler
from app.domain.log import Event
from app.domain.log.chain import check_chain
from app.domain.objects.profile import Profile
from app.service.redeciding import DecisionChecker
from app.service.views import LiveViews, features_of
from tests.simulation.soundness import Soundness

ONCE = ("Scheduled", "SuccessfulCreate", "TaintManagerEviction", "DeviceTaintManagerEviction")
"""Reasons of Kubernetes Events of which each text comes once."""


def check_log(events: Sequence[Event], profile: Profile) -> Counter[str]:
    """Chain, invariants after every event, nothing decided or done twice. Raises AssertionError."""
    check_chain(list(events))
    views = LiveViews(profile)
    sound = Soundness(views)
    said: Counter[tuple[str, str, str]] = Counter()
    counted: Counter[str] = Counter()
    for event in events:
        views.fold(event)
        sound.fold(event)
        if event.type == "DecisionRecorded":
            counted[event.object["outcome"]] += 1
        elif event.key.resource == "events" and event.type == "ObjectCreated":
            tree = event.object
            about = tree["involvedObject"]
            said[tree["reason"], f"{about['kind']} {about['uid']}", tree["message"]] += 1
        elif event.key.resource == "pods" and event.type == "ObjectCreated":
            counted["pods"] += 1
        elif event.key.resource == "resourceclaims" and event.type == "ObjectCreated":
            counted["claims"] += 1
    sound.check_whole()
    twice = [place for place, number in said.items() if number > 1 and place[0] in ONCE]
    assert not twice, f"said twice: {twice}"
    return counted


def check_decisions(events: Sequence[Event], profile: Profile, options: Options) -> None:
    """Every decision, made again from what it observed, is the recorded one, effects included."""
    views = LiveViews(profile)
    controllers = registry.controllers(profile, features_of(profile), CelCompiler(), options)
    checker = DecisionChecker(controllers, views, rules_for(profile))
    observers: dict[int, list[Event]] = {}
    for event in events:
        if event.type == "DecisionRecorded":
            observers.setdefault(event.stamp.observed, []).append(event)
    for event in events:
        checker.decide_again(observers.pop(views.revision, ()))
        checker.before(event)
        views.fold(event)
        checker.after(event)
    for compared in checker.result(is_whole=True):
        assert compared.differences == (), compared.differences[0]
