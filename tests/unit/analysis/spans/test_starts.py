"""The pace of starts, against a model that walks the raw events of each pod by itself."""

import random

import pytest

from app.analysis import starts
from app.analysis.chronicle import Chronicle
from app.analysis.starts import PaceBounds, percentile
from app.domain.log import EventType, Revision
from app.domain.values import timestamps
from app.domain.values.timestamps import SECOND, Instant
from tests import draws
from tests.cluster import Cluster
from tests.unit.analysis.spans.test_spans import random_log
from tests.unit.projections.log_of import START, LogOf


class Nothing:
    def fold(self, event):
        pass


def random_starts(seed):
    """Pods with a claim each that go some of the way, in a random order; some come again."""
    chance = random.Random(seed)
    log = LogOf(Nothing())
    stage = {}
    for _ in range(70):
        number = chance.randint(0, 5)
        name, claim = f"default/pod-{number}", f"default/claim-{number}"
        at = stage.get(number, 0)
        uid = f"uid-pod-{number}"
        owner = {"ownerReferences": [{"uid": uid, "kind": "Pod", "name": f"pod-{number}"}]}
        results = [{"driver": "d", "pool": "p", "device": f"gpu-{number}"}]
        given = {"allocation": {"devices": {"results": results}}}
        if at == 0:
            log.put("pod", name, spec={}, status={"phase": "Pending"})
        elif at == 1:
            log.put("claim", claim, metadata=owner, status={})
        elif at == 2:
            log.put("claim", claim, metadata=owner, status=given)
        elif at == 3:
            log.put("pod", name, spec={"nodeName": "n"}, status={"phase": "Pending"})
        elif at == 4:
            log.put("pod", name, spec={"nodeName": "n"}, status={"phase": "Running"})
        else:
            log.delete("claim", claim)
            log.delete("pod", name)
            stage[number] = 0
            continue
        stage[number] = at + 1
    return log.events


def modelled(events, until):
    """Each life of a pod as the instants of its stages, from the raw events alone."""
    lives, current = [], {}
    for event in events[:until]:
        kind, _, number = event.key.name.partition("-")
        time = event.stamp.time
        if kind == "pod" and event.type is EventType.OBJECT_CREATED:
            current[number] = {"name": event.key.name, "created": time}
            lives.append(current[number])
        elif event.type is EventType.OBJECT_DELETED:
            if kind == "pod":
                current.pop(number)["deleted"] = time
        elif kind == "claim":
            field = "devices" if event.object["status"] else "claims"
            current[number].setdefault(field, time)
        elif event.object["status"]["phase"] == "Running":
            current[number].setdefault("starting", time)
        else:
            current[number].setdefault("binding", time)
    return lives


@pytest.mark.parametrize("seed", range(25))
def test_steps_are_those_of_the_raw_events(seed):
    events = random_starts(seed)
    until = random.Random(seed).randint(1, len(events))
    chronicle = Chronicle()
    chronicle.fold(events)
    now = Instant(events[until - 1].stamp.time)
    answer = starts.of("h", chronicle, Revision(until), now)
    shown = sorted(
        (one.created, one.name, tuple((step.name, step.ended) for step in one.steps),
         one.waits_for, one.gone_before)
        for one in answer.pods
    )  # fmt: skip
    expected = []
    for life in modelled(events, until):
        # Of a pod whose claim is not there yet nobody knows that it will have one.
        has_claim = "claims" in life
        steps = [("claims", life.get("claims", life["created"]))]
        if not has_claim:
            steps.append(("devices", life["created"]))
        waits = gone = ""
        for name in ("devices", "binding", "starting") if has_claim else ("binding", "starting"):
            if name not in life:
                waits, gone = ("", name) if "deleted" in life else (name, "")
                break
            steps.append((name, life[name]))
        told = tuple((name, timestamps.micro_text(Instant(time))) for name, time in steps)
        expected.append(
            (timestamps.micro_text(Instant(life["created"])), life["name"], told, waits, gone)
        )
    assert shown == sorted(expected)
    assert answer.waiting == sum(bool(one[3]) for one in expected)
    assert answer.gone == sum(bool(one[4]) for one in expected)
    deletions = {
        (life["name"], timestamps.micro_text(Instant(life["created"]))): life.get("deleted")
        for life in modelled(events, until)
    }
    for one in answer.pods:
        last = now if one.waits_for else timestamps.parse(one.steps[-1].ended)
        if one.gone_before:
            last = deletions[one.name, one.created]
        assert one.seconds == (last - timestamps.parse(one.created)) / SECOND


@pytest.mark.parametrize("seed", range(5))
def test_pods_that_came_last_are_looked_at(seed):
    chronicle = Chronicle()
    events = random_starts(seed)
    chronicle.fold(events)
    now, until = Instant(events[-1].stamp.time), events[-1].revision
    names = list(dict.fromkeys(
        event.key.name for event in events if event.key.resource == "pods"))  # fmt: skip
    answer = starts.of("h", chronicle, until, now, bounds=PaceBounds(scanned_max=2))
    assert {one.name for one in answer.pods} == set(names[-2:])
    assert answer.older == max(0, len(names) - 2)


@pytest.mark.parametrize("count", [1, 2, 3, 10, 99, 100, 101])
def test_percentile_is_the_smallest_value_that_is_enough(count):
    chance = random.Random(count)
    values = sorted(chance.random() for _ in range(count))
    for share in (0.01, 0.5, 0.9, 0.99, 1.0):
        value = percentile(values, share)
        assert sum(each <= value for each in values) >= share * count
        below = [each for each in values if each < value]
        assert len(below) < share * count
    assert percentile([], 0.5) == 0.0


def test_pod_waits_for_a_claim_that_is_missing_or_was_never_allocated():
    """A claim that no pod has reserved belongs to the pods that name it."""
    cluster = Cluster()
    cluster.device_class()
    cluster.template()
    cluster.claim("there")
    for name in ("missing", "there"):
        cluster.pod(f"names-{name}", claim=name)
    cluster.settle()
    cluster.delete("resourceclaims", "there")
    cluster.settle()
    chronicle = Chronicle()
    chronicle.fold(cluster.line.events)
    answer = starts.of("h", chronicle, cluster.line.head.revision, cluster.line.now)
    waits = {one.name: (one.waits_for, [step.name for step in one.steps]) for one in answer.pods}
    assert waits == {
        "names-missing": ("claims", []),
        "names-there": ("devices", ["claims"]),
    }
    assert {step.name: step.count for step in answer.steps}["devices"] == 0


@pytest.mark.parametrize("seed", draws.seeds(6))
def test_starts_at_a_past_moment_are_those_of_a_log_that_ends_there(seed):
    """Claims change their pods in these logs, so that what comes later could be taken for known."""
    log, _ = random_log(seed)
    for until in random.Random(seed).sample(range(3, len(log.events)), 5):
        whole, cut = (Chronicle(), Chronicle())
        whole.fold(log.events)
        cut.fold(log.events[:until])
        past, present = (
            starts.of("h", each, Revision(until), Instant(START + until * SECOND))
            for each in (whole, cut)
        )
        assert past == present


def test_claims_that_only_an_earlier_pod_of_the_name_names_are_none_of_the_next_one():
    """The claim of the first pod stays, without devices; that of the second one comes later."""
    cluster = Cluster()
    cluster.node()
    cluster.device_class()
    cluster.slice(devices=2)
    for claim in ("first", "second"):
        cluster.claim(claim)
        cluster.pod("again", claim=claim)
        cluster.settle().wait(10)
        cluster.kill("again")
        cluster.settle()
    chronicle = Chronicle()
    chronicle.fold(cluster.line.events)
    until = cluster.line.events[-1].revision
    pace = starts.of("default", chronicle, until, Instant(cluster.line.now), bounds=PaceBounds())
    assert [[step.name for step in pod.steps] for pod in pace.pods] == [
        ["claims", "devices", "binding"],
        ["claims", "devices", "binding"],
    ]
