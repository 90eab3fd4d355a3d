"""Steps to decisions in recordings of other clusters, which show only what was decided."""

import json

from app.adapters.history.opening import open_history
from app.adapters.history.reading import ReadOptions
from app.adapters.memory import MemoryLog, MemoryStore
from app.domain.log import EventType, Revision
from app.domain.log.records import BASELINE_VERB
from app.domain.values.timestamps import Instant
from app.service import importing
from app.service.importing import ImportOptions
from app.service.pacing.script import PlayedSpan, Script, StopRule
from app.service.pacing.stage import StageTarget
from tests import draws
from tests.imports import import_once
from tests.redra_process import ROOT
from tests.unit.history.worlds import CLAIMS, PODS, tree

DEVICE = {"request": "g", "driver": "d.test", "pool": "n", "device": "gpu-0"}
ALLOCATED = {"allocation": {"devices": {"results": [DEVICE]}}}
USED = ALLOCATED | {"reservedFor": [{"resource": "pods", "name": "p", "uid": "uid-p"}]}


def pod(version, node="", **metadata):
    spec = {"containers": [{"name": "c", "image": "i"}], **({"nodeName": node} if node else {})}
    return tree(PODS, name="p", rv=version, spec=spec, metadata=metadata)


def claim(version, status):
    return tree(CLAIMS, name="c", rv=version, spec={"devices": {}}, status=status)


WATCHED = (
    ("ADDED", pod(1), False),
    ("ADDED", tree(PODS, name="old", rv=2, spec={"nodeName": "n"}), False),
    ("BOOKMARK", {"kind": "Pod", "apiVersion": "v1", "metadata": {"resourceVersion": "2"}}, None),
    ("ADDED", claim(3, {}), False),
    ("MODIFIED", pod(4, labels={"a": "b"}), False),
    ("MODIFIED", claim(5, ALLOCATED), True),
    ("MODIFIED", claim(6, USED), False),
    ("MODIFIED", pod(7, "n"), True),
    ("MODIFIED", pod(8, "n", labels={"a": "c"}), False),
    ("DELETED", pod(9, "n"), False),
    ("MODIFIED", claim(10, {}), True),
    ("MODIFIED", claim(11, ALLOCATED), True),
    ("DELETED", claim(12, ALLOCATED), True),
)
"""What a watch shows, and whether a step to a decision pauses there."""


async def stops(log, info):
    """The revisions at which steps to decisions pause, one after the other."""
    head = await log.head(info.id)
    begin = StageTarget(revision=Revision(1), time=Instant(0))
    end = StageTarget(revision=head.revision, time=Instant(0))
    script = Script(log, info, PlayedSpan(begin=begin, end=end), page_max=7)
    found = []
    while (event := await script.find(StopRule(is_decision=True))) is not None:
        found.append(event.revision)
        script.go_to(event.revision)
    return found


async def test_pod_that_gets_a_node_and_claim_that_gets_or_loses_devices_are_decisions(tmp_path):
    path = tmp_path / "watch.json"
    path.write_text("".join(json.dumps({"type": t, "object": o}) + "\n" for t, o, _ in WATCHED))
    log = MemoryLog(MemoryStore())
    with open_history([path], ReadOptions()) as source:
        result = await importing.import_records(log, source, name="h", options=ImportOptions())
    events = await log.read(result.history.id, after=Revision(0), limit=100)
    about = [event for event in events if event.is_about_object]
    meant = [is_stop for _, _, is_stop in WATCHED if is_stop is not None]
    assert len(about) == len(meant)
    wanted = [event.revision for event, is_stop in zip(about, meant, strict=True) if is_stop]
    assert await stops(log, result.history) == wanted


@draws.in_turn("ways")
async def test_steps_through_a_recording_meet_each_decision_once():
    """All events at once, with the states kept aside, against one step after the other."""
    log = MemoryLog(MemoryStore())
    result = await import_once(log, [ROOT / "examples/recordings/maintenance"], name="h")
    wanted, states = [], {}
    for event in await log.read(result.history.id, after=Revision(0), limit=10_000):
        if not event.is_about_object or event.key.resource not in ("pods", "resourceclaims"):
            continue
        body = json.loads(event.body)
        if event.key.resource == "pods":
            now = body.get("spec", {}).get("nodeName")
        else:
            now = ((body.get("status") or {}).get("allocation") or {}).get("devices")
        now = None if event.type is EventType.OBJECT_DELETED else now
        before, states[event.key] = states.get(event.key), now
        is_pod = event.key.resource == "pods"
        is_placed = event.type is EventType.OBJECT_UPDATED or not is_pod
        if now != before and is_placed and event.stamp.verb != BASELINE_VERB:
            wanted.append(event.revision)
    assert len(wanted) > 20
    assert await stops(log, result.history) == wanted
