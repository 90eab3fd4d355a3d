"""Traces of played incidents and of random logs, as a reader of the format sees them."""

import random

import msgspec
import pytest
from msgspec.structs import replace

from app.analysis.chronicle import Chronicle
from app.analysis.incidents.incident import IncidentVariant
from app.analysis.traces import trace_events
from app.analysis.traces.trace_events import TraceBounds
from app.bootstrap.gallery import incident_files, playing
from app.domain.log import EventType, Revision
from app.domain.values.timestamps import SECOND, Instant
from tests.cluster import Cluster
from tests.unit.analysis.spans.test_spans import random_log
from tests.unit.analysis.traces.trace_reader import view
from tests.web.invented import (
    Invented,
    ask,
    claim,
    class_of,
    node,
    pod,
    rule,
    slice_of,
    space,
    template,
)

INCIDENTS = ("rules-not-seen", "no-preemption-for-devices", "share-without-capacity")


def traced(events, *, until=0, visible=lambda entry: True, bounds=TraceBounds(), **more):
    """The trace of a log as its reader sees it, and the trace itself."""
    chronicle = Chronicle()
    chronicle.fold(events)
    until = Revision(until or events[-1].revision)
    last = next(event for event in events if event.revision == until)
    now = Instant(last.stamp.time + 5 * SECOND)
    trace = trace_events.of("h", chronicle, until, now, visible, bounds, **more)
    return view(msgspec.json.encode(trace).decode()), trace, chronicle


def revisions(viewed, category):
    """The revisions of the slices of a category, by the group of their track."""
    shown = {}
    for (process, _), slices in viewed.tracks.items():
        for one in slices:
            if one["cat"] in category:
                shown.setdefault(process, []).append(one["args"]["revision"])
    return {process: sorted(numbers) for process, numbers in shown.items()}


def all_revisions(viewed):
    """The revisions of all slices that stand for an event."""
    shown = revisions(viewed, {"event", "trouble", "decision"}).values()
    return sorted(number for numbers in shown for number in numbers)


@pytest.fixture(scope="module", params=INCIDENTS)
def events(request):
    incident = incident_files.read(request.param).incident
    return list(playing.play(incident, IncidentVariant.BROKEN).events)


def test_every_decision_and_every_event_has_its_slice(events):
    viewed, _, chronicle = traced(events)
    decided = [event.revision for event in events if event.type is EventType.DECISION_RECORDED]
    assert revisions(viewed, {"decision"}) == {"Controllers": decided}
    others = [one.revision for one in chronicle.entries if one.kind != "Decision"]
    shown = revisions(viewed, {"event", "trouble"})
    assert sorted(number for numbers in shown.values() for number in numbers) == others
    controllers = {event.object["controller"] for event in events if event.revision in decided}
    assert {name for process, name in viewed.tracks if process == "Controllers"} == controllers


def test_arrows_lead_from_the_event_to_the_decision_to_the_effect(events):
    viewed, _, chronicle = traced(events)
    pairs = {(source["args"]["revision"], target["args"]["revision"])
             for source, target in viewed.arrows}  # fmt: skip
    entries = {entry.revision for entry in chronicle.entries}
    by_revision = {event.revision: event for event in events}
    effects = 0
    for event in events:
        cause = event.stamp.cause
        if event.type is EventType.DECISION_RECORDED:
            assert ((cause, event.revision) in pairs) == (cause in entries), event.revision
            for number in range(1, event.object["commands"] + 1):
                # As many events as the plan has commands were appended with it, at least.
                following = by_revision[event.revision + number]
                assert following.stamp.observed == event.stamp.observed
                if following.revision in entries:
                    assert (event.revision, following.revision) in pairs
                    effects += 1
    assert effects, "the incident has decisions that change something"
    assert all(source < target for source, target in pairs)


def test_counters_end_with_what_is_there(events):
    viewed, _, _ = traced(events)
    pods = {}
    for event in events:
        if event.key.resource == "pods" and event.is_about_object:
            if event.type is EventType.OBJECT_DELETED:
                pods.pop(event.key, None)
            else:
                pods[event.key] = event.object
    waiting = [
        tree
        for tree in pods.values()
        if not tree["spec"].get("nodeName")
        and not tree["metadata"].get("deletionTimestamp")
        and tree.get("status", {}).get("phase") not in ("Succeeded", "Failed")
    ]
    series = viewed.counters.get("pods waiting", [(0, 0)])
    assert series[-1][1] == len(waiting)
    assert all(count >= 0 for counts in viewed.counters.values() for _, count in counts)


@pytest.mark.parametrize("seed", range(20))
def test_states_of_any_log_can_be_drawn(seed):
    log, *_ = random_log(seed)
    events = log.events
    until = random.Random(seed).randint(1, len(events))
    viewed, _, chronicle = traced(events, until=until)
    states = sum(
        1
        for of_lane in chronicle.spans.lanes.values()
        for span in of_lane
        if span.begin[0] <= until
    )
    shown = [one for of_track in viewed.tracks.values() for one in of_track]
    assert sum(one["cat"] == "state" for one in shown) == states
    assert all(one["args"]["revision"] <= until for one in shown)


def test_clocks_that_go_back_break_nothing(events):
    chance = random.Random(3)
    viewed, _, chronicle = traced([shifted(event, chance) for event in events])
    assert len(all_revisions(viewed)) == len(chronicle.entries)


def shifted(event, chance):
    time = Instant(event.stamp.time + chance.randint(-9, 9) * SECOND)
    return replace(event, stamp=replace(event.stamp, time=time))


def test_what_nobody_may_see_and_what_does_not_fit_is_left_out(events):
    _, whole, chronicle = traced(events)
    viewed, _, _ = traced(events, visible=lambda entry: entry.kind != "Decision")
    assert "Controllers" not in revisions(viewed, {"decision"})
    bound = len(chronicle.entries) // 2
    viewed, trace, _ = traced(events, bounds=TraceBounds(entries_max=bound))
    assert all_revisions(viewed) == [one.revision for one in chronicle.entries][-bound:]
    assert trace.otherData["omittedEntries"] == len(chronicle.entries) - bound
    assert whole.otherData["omittedEntries"] == 0


def as_recorded(events):
    """The log as another control plane would show it: without decisions and causes."""
    plain = []
    for event in events:
        if event.type is not EventType.DECISION_RECORDED:
            plain.append(replace(event, stamp=replace(event.stamp, cause=Revision(0))))
    return plain


def ancestors(events):
    """For each revision the revisions that the log names as behind it, and those beside it.

    A change is beside the others of its decision, and behind it is what provoked that.
    """
    by_revision = {event.revision: event for event in events}
    known = {}
    for event in events:
        behind, cause = set(), event.stamp.cause
        while cause in by_revision and cause not in behind:
            beside = {one.revision for one in events
                      if one.stamp.cause == cause and one.revision < event.revision}  # fmt: skip
            behind |= {cause} | beside
            cause = by_revision[cause].stamp.cause
        known[event.revision] = behind
    return known


@pytest.mark.parametrize(
    "name", ["rules-not-seen", "finished-pod-is-deleted", "placed-to-be-evicted"]
)
def test_arrows_of_a_recording_are_those_that_the_causes_of_the_same_log_confirm(name):
    incident = incident_files.read(name).incident
    whole = list(playing.play(incident, IncidentVariant.BROKEN).events)
    assert not traced(as_recorded(whole))[0].arrows
    viewed, _, chronicle = traced(as_recorded(whole), is_recorded=True)
    kinds = {entry.revision: entry.kind for entry in chronicle.entries}
    behind = ancestors(whole)
    seen = set()
    for source, target in viewed.arrows:
        first, then = source["args"]["revision"], target["args"]["revision"]
        link = kinds[first], kinds[then]
        seen.add(link)
        if link != ("PodDeletionAsked", "PodDeleted"):
            assert first in behind[then], link
    assert ("ClaimAllocated", "PodScheduled") in seen


def test_each_life_of_a_name_has_arrows_of_its_own():
    """A pod is evicted, and made again under its name: its second life rests on its own claim."""
    made = [space("lab"), class_of("c", "d.test"), node("n"), template("t", "lab", ask("c")),
            slice_of("s", "d.test", "n", [{"name": "x"}], nodeName="n")]  # fmt: skip
    job, hot = pod("job", "lab", template="t"), {"key": "x.test/hot", "effect": "NoExecute"}
    steps = ({"apply": [*made, job]}, {"wait": 5}, {"apply": [rule("hot", "d.test", **hot)]},
             {"wait": 60}, {"delete": "devicetaintrule/hot"}, {"apply": [job]},
             {"wait": 5})  # fmt: skip
    incident = Invented(told=(), steps=steps).incident()
    whole = list(playing.play(incident, IncidentVariant.BROKEN).events)
    viewed, _, chronicle = traced(as_recorded(whole), is_recorded=True)
    kinds = {entry.revision: entry.kind for entry in chronicle.entries}
    behind = ancestors(whole)
    links = []
    for source, target in viewed.arrows:
        first, then = source["args"]["revision"], target["args"]["revision"]
        links.append((kinds[first], kinds[then]))
        if links[-1] != ("PodDeletionAsked", "PodDeleted"):
            assert first in behind[then], links[-1]
    life = [("PodCreated", "ClaimCreated"), ("ClaimAllocated", "PodScheduled")]
    end = [("RuleCreated", "PodEvicted"), ("PodEvicted", "PodDeletionAsked"),
           ("PodDeletionAsked", "PodDeleted"), ("PodDeleted", "ClaimDeallocated")]  # fmt: skip
    assert sorted(links) == sorted([*life, *end, *life])


def sources_of_evictions(steps):
    """The entries from which the arrows to the evictions of a recorded story come."""
    whole = list(
        playing.play(Invented(told=(), steps=steps).incident(), IncidentVariant.BROKEN).events
    )
    viewed, _, chronicle = traced(as_recorded(whole), is_recorded=True)
    entries = {entry.revision: entry for entry in chronicle.entries}
    return [
        entries[source["args"]["revision"]]
        for source, target in viewed.arrows
        if entries[target["args"]["revision"]].kind == "PodEvicted"
    ]


@pytest.mark.parametrize("patience", [None, 20])
@pytest.mark.parametrize("is_early", [False, True])
def test_eviction_for_a_taint_of_the_driver_has_an_arrow_from_the_write_with_the_taint(
    patience, is_early
):
    taint = {"key": "x.test/hot", "effect": "NoExecute"}
    waits = [{"key": "x.test/hot", "operator": "Exists", "tolerationSeconds": patience or 5}]
    tolerations = waits if patience or is_early else []
    wanted = claim("a", "lab", ask("c", tolerations=tolerations))
    made = [space("lab"), class_of("c", "d.test"), node("n"), wanted]
    job = pod("job", "lab", claim="a")

    def published(*names, taints=()):
        hot = {"taints": list(taints)} if taints else {}
        devices = [{"name": name, **(hot if name == "x" else {})} for name in names]
        return {"apply": [slice_of("s", "d.test", "n", devices, nodeName="n")]}

    hot, more = published("x", taints=[taint]), published("x", "y", taints=[taint])
    harmless = published("x", taints=[{**taint, "effect": "NoSchedule"}])
    if is_early:
        steps = ({"apply": made}, hot, {"wait": 5}, {"apply": [job]}, {"wait": 60})
    else:
        first = ({"apply": made}, published("x"), {"apply": [job]}, {"wait": 5}, harmless)
        later = ({"wait": 2}, more, {"wait": 60}) if patience else ({"wait": 60},)
        steps = (*first, {"wait": 5}, hot, *later)
    (source,) = sources_of_evictions(steps)
    if is_early:
        assert source.kind == "PodScheduled"
    else:
        assert (source.kind, source.subject.name) == ("SliceChanged", "s")
        assert "taints added: x x.test/hot:NoExecute" in source.text


@pytest.mark.parametrize("patience", [None, 20])
def test_eviction_of_a_recording_has_an_arrow_from_the_rule_as_it_was_last_written(patience):
    key, tolerations = "x.test/hot", []
    if patience is not None:
        tolerations = [{"key": key, "operator": "Exists", "tolerationSeconds": patience}]
    wanted = claim("a", "lab", ask("c", tolerations=tolerations))
    made = [space("lab"), class_of("c", "d.test"), node("n"), wanted, pod("job", "lab", claim="a"),
            slice_of("s", "d.test", "n", [{"name": "x"}], nodeName="n")]  # fmt: skip
    harmless = rule("hot", "d.test", key=key, effect="NoSchedule")
    steps = ({"apply": made}, {"wait": 5}, {"apply": [harmless]}, {"wait": 5},
             {"apply": [rule("other", "e.test", key=key, effect="NoExecute")]}, {"wait": 5},
             {"apply": [rule("hot", "d.test", key=key, effect="NoExecute")]},
             {"wait": 60})  # fmt: skip
    (source,) = sources_of_evictions(steps)
    assert (source.kind, source.subject.name) == ("RuleChanged", "hot")


def test_device_that_two_claims_share_is_counted_once():
    cluster = Cluster()
    cluster.device_class()
    cluster.node()
    capacity = {"memory": {"value": "4Gi", "requestPolicy": {"default": "1Gi"}}}
    cluster.slice(devices=[{"name": "d", "allowMultipleAllocations": True, "capacity": capacity}])
    for name in ("first", "second"):
        cluster.claim(name)
        cluster.pod(name, claim=name)
        cluster.wait(5)
    cluster.finish("first")
    cluster.wait(5)
    cluster.finish("second")
    cluster.wait(5)
    viewed, _, _ = traced(cluster.line.events)
    counts = [count for _, count in viewed.counters["devices held of gpu.example.com"]]
    assert max(counts) == 1
    assert counts[-1] == 0
