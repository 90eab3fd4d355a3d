"""Writes of controllers that always record a decision, in logs that hold none for them.

The logs are those of an owner of the database who computed all hashes anew.
"""

from collections.abc import Sequence

import msgspec
import pytest

from app.analysis.verify.compare import ComparisonCounts, ComparisonResult
from app.analysis.verify.redecide import belongs
from app.domain.log import Event, EventType, ObjectKey
from app.domain.log.chain import canonical_json
from app.domain.log.event import Revision
from tests.cluster import Cluster, check_decisions

RESTART = ObjectKey("redra", "controllers", "", "rule-status")


def story() -> Cluster:
    cluster = Cluster()
    cluster.node("n1")
    cluster.slice("n1", 2)
    cluster.device_class()
    cluster.template()
    cluster.pod("p0", template="gpu")
    cluster.wait(5)
    cluster.finish("p0")
    return cluster.wait(5)


def effects(events: Sequence[Event], controller: str) -> tuple[int, int]:
    """The places of the last decision of a controller, and of the last event of its append."""
    at = max(
        place
        for place, event in enumerate(events)
        if event.type is EventType.DECISION_RECORDED and event.object["controller"] == controller
    )
    end = at
    while end + 1 < len(events) and belongs(events[end + 1], events[at]):
        end += 1
    return at, end


def different(compared: ComparisonCounts) -> int:
    return compared.counts.get(ComparisonResult.DIFFERENT, 0)


@pytest.mark.parametrize("controller", ["scheduling", "claims", "node-lifecycle"])
def test_write_whose_decision_became_another_event_is_different(controller: str) -> None:
    cluster = story()
    events = cluster.line.events
    at, end = effects(events, controller)
    assert end > at, "the decision has effects"
    body = canonical_json({"controller": "rule-status", "holder": ""})
    events[at] = msgspec.structs.replace(
        events[at], type=EventType.CONTROLLER_RESTARTED, key=RESTART, body=body, tree=None
    )
    _, compared = check_decisions(cluster)
    assert different(compared) >= 1
    (first, *_) = compared.differences
    assert first.again == "no decision for it"
    written = next(each for each in events[at + 1 :] if each.revision == first.revision)
    shown = {"type": written.type.value, "key": str(written.key)}
    assert first.recorded == shown
    assert first.recorded_tree == {**shown, "object": written.object}
    assert first.again_tree is None
    assert (first.subject, first.objects) == (str(written.key), (str(written.key),))


@pytest.mark.parametrize("controller", ["scheduling", "claims"])
def test_write_beside_the_effects_of_a_decision_is_different(controller: str) -> None:
    """One more write with the stamp of the append, of which the decision does not know."""
    cluster = story()
    events = cluster.line.events
    at, end = effects(events, controller)
    del events[end + 1 :]
    last = next(each for each in reversed(events[at:]) if each.key.resource != "events")
    tree = msgspec.json.decode(last.body)
    tree["metadata"] |= {"labels": {"forged": "yes"}, "resourceVersion": str(end + 2)}
    forged = msgspec.structs.replace(
        last,
        revision=Revision(events[end].revision + 1),
        type=EventType.OBJECT_UPDATED,
        body=canonical_json(tree),
        tree=None,
    )
    _, compared = check_decisions(cluster)
    assert not different(compared)
    events.append(forged)
    _, compared = check_decisions(cluster)
    assert [each.revision for each in compared.differences] == [forged.revision]


def test_untouched_story_has_decisions_for_all_writes() -> None:
    assert not any(map(different, check_decisions(story())))
