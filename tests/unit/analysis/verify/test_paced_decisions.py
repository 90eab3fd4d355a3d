"""Decisions at the pace of a recording: they cannot all be made again, where one goes on."""

import msgspec
import pytest

from app.analysis.verify.redecide import PACED, DecisionChecker
from app.analysis.views import LiveViews
from app.domain.log import Event, Revision
from app.domain.log.chain import canonical_json
from tests.cluster import Cluster


def cluster() -> Cluster:
    made = Cluster()
    made.node("n0")
    made.slice("n0")
    made.device_class("gpu")
    made.template("gpu")
    made.pod("first", template="gpu")
    return made.settle()


def altered(event: Event) -> Event:
    """The decision with another outcome, and with the mark."""
    tree = msgspec.json.decode(event.body)
    tree["inputs"] = {**tree["inputs"], "paced": True}
    tree["outcome"] = "Error"
    return msgspec.structs.replace(event, body=canonical_json(tree), tree=None)


@pytest.mark.parametrize("is_within", [True, False])
def test_decision_is_paced_where_recorded_inputs_went_on_alone(is_within: bool) -> None:
    world = cluster()
    events = list(world.line.events)
    place = max(n for n, each in enumerate(events) if each.type == "DecisionRecorded")
    events[place] = altered(events[place])
    until = Revision(events[place].revision if is_within else events[place].revision - 1)
    views = LiveViews(world.profile)
    checker = DecisionChecker(world.fresh_controllers(), views, world.line.rules, paced_until=until)
    observers: dict[int, list[Event]] = {}
    for event in events:
        if event.type == "DecisionRecorded":
            observers.setdefault(event.stamp.observed, []).append(event)
    for event in events:
        checker.decide_again(observers.pop(views.revision, ()))
        checker.before(event)
        views.fold(event)
        checker.after(event)
    decisions, _ = checker.result(is_whole=True)
    assert len(decisions.differences) == (0 if is_within else 1)
    assert (PACED in decisions.reasons) is is_within
