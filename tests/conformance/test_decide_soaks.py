"""Soaks under the rate limits of real clients, decided again as if they were recordings.

Loads come by day: each is the same cluster with other limits, and is decided literally.
"""

import json
import random
from dataclasses import replace
from itertools import pairwise

import pytest

from app.analysis.replay.classes import UNPROVED, DifferenceClass
from app.analysis.replay.differences import Aspect
from app.bootstrap import process_settings, replays, stores
from app.domain.controllers.registry import ControllerOptions
from app.domain.errors import InputError
from app.domain.log import Event, EventType, Revision
from app.domain.objects.profile import Profile
from app.domain.values import timestamps
from app.domain.values.timestamps import SECOND, Instant
from tests import draws
from tests.cluster import DRIVER, Cluster
from tests.conformance.soak_lines import SCHEDULER, Late, retell
from tests.conformance.soak_recordings import GATES, MILLI, RELEASE, Load, Soak, record

pytestmark = pytest.mark.timeout(0)
"""Runs are bounded in number; how long they take is a matter of the machine."""

LITERAL = (
    Aspect.NODES,
    Aspect.DEVICES,
    Aspect.CONDITIONS,
    Aspect.EVICTIONS,
    Aspect.RULES,
    Aspect.FINAL,
)
"""What is the same however late the writes came."""

LOADS = {
    "limited": Load(seed=1, seconds=45, pods=110),
    "slow reports": Load(seed=4, seconds=60, pods=110, noise=60, answers=120),
    "another limit": Load(seed=5, seconds=60, pods=110, rate=20, burst=20),
    "slow in everything": Load(
        seed=5, seconds=40, pods=70, rate=20, burst=20, noise=60, answers=120
    ),
    "deleted at once": Load(seed=6, seconds=30, pods=60, waiting=200),
}


def load(name):
    """The load itself with more draws; half of it, as dense, with each run of the tests.

    Where all pods come at once there is no half that is as dense.
    """
    whole = LOADS[name]
    return whole if draws.WHOLE or whole.waiting else half(whole)


def half(whole):
    """Half of a load, as dense."""
    return replace(whole, seconds=whole.seconds // 2, pods=whole.pods // 2)


async def decide(path):
    """One run: literal results need no proof; others are proved on recordings."""
    settings = replace(process_settings.settings(profile=RELEASE), decide_runs_max=0)
    store = stores.memory_store()
    history = await replays.load_files(store, settings, (path,))
    return await replays.decide(store, settings, history, "", lambda *_: None)


@draws.in_turn("ways")
@pytest.mark.parametrize("name", LOADS)
async def test_soak_with_late_writes_is_decided_literally(name, tmp_path):
    wanted = load(name)
    report = await decide(record(tmp_path, wanted))
    different = {aspect.value: dict(report.aspects[aspect].different) for aspect in LITERAL}
    assert different == {aspect.value: {} for aspect in LITERAL}
    assert report.aspects[Aspect.NODES].same > wanted.pods // 3
    # Clients send their Events when their own limits let them: only that order may differ.
    said = [each for each in report.differences if each.aspect is Aspect.SAID]
    assert [sorted(each.recorded) for each in said] == [sorted(each.again) for each in said]
    assert report.aspects[Aspect.SAID].same > wanted.pods * 3 // 4


@draws.in_turn("ways")
async def test_soak_is_decided_literally_from_its_watch_streams(tmp_path):
    wanted = load("limited")
    report = await decide(record(tmp_path, wanted) / "watch")
    same = (Aspect.NODES, Aspect.DEVICES, Aspect.EVICTIONS)
    assert [dict(report.aspects[aspect].different) for aspect in same] == [{}] * len(same)
    assert report.aspects[Aspect.NODES].same > wanted.pods // 3


SMALL = Load(seed=1, seconds=45, pods=90, nodes=4, rate=10, burst=10)
"""Its requests wait for many seconds."""


@draws.in_turn("ways")
async def test_every_difference_of_a_small_soak_is_proved(tmp_path):
    settings = process_settings.settings(profile=RELEASE)
    store = stores.memory_store()
    wanted = SMALL if draws.WHOLE else half(SMALL)
    history = await replays.load_files(store, settings, (record(tmp_path, wanted),))
    report = await replays.decide(store, settings, history, "", lambda *_: None)
    assert report.runs > 0
    assert {each.reason for each in report.differences} & UNPROVED == set()
    assert report.aspects[Aspect.NODES].same > wanted.pods // 3


class Abandoned(Soak):
    """Pods that are deleted while the requests for their placement wait, among those of others.

    Pods of the second kind fit nowhere: their reports show when they were tried.
    """

    def _plan(self):
        yield 2, lambda: self._come("one", 30)
        yield 3.2, lambda: self._come("two", 3)
        yield 4, lambda: [self.cluster.delete("pods", name, "team-a") for name in DELETED]

    def _come(self, template, count):
        for number in range(count):
            entry = {"name": "dev", "resourceClaimTemplateName": template}
            self._pod(f"{template}-{number}", "team-a", entry)


DELETED = ("one-12", "one-13", "one-14", "one-15")


def without_refused_requests(path):
    """The folder of an audit log from which the refused requests were removed."""
    lines = (path / "audit.jsonl").read_bytes().splitlines(keepends=True)
    folder = path / "accepted"
    folder.mkdir()
    kept = [each for each in lines if json.loads(each)["responseStatus"]["code"] < 400]
    (folder / "audit.jsonl").write_bytes(b"".join(kept))
    return folder, len(lines) - len(kept)


@draws.in_turn("ways")
async def test_requests_about_deleted_pods_keep_their_place_in_the_queue(tmp_path):
    """Without them the requests after them seem to be made much later than those of younger pods.

    Only an audit log has them. What lacks them is no proof that nothing waited.
    """
    slow = Load(seed=1, nodes=10, rate=10, burst=2, noise=0)
    path = record(tmp_path / "soak", slow, Abandoned)
    accepted, refused = without_refused_requests(path)
    assert refused >= 8
    reports = [await decide(each) for each in (path / "audit.jsonl", accepted, path / "watch")]
    assert [report.violations for report in reports] == [{}, {}, {}]


@draws.in_turn("ways")
async def test_deleted_pods_had_devices_while_their_requests_waited(tmp_path):
    """Others got what these left; a device that was free then is no choice of the scheduler."""
    slow = Load(seed=1, nodes=10, rate=10, burst=2, noise=0)
    settings = process_settings.settings(profile=RELEASE)
    path = record(tmp_path, slow, Abandoned) / "audit.jsonl"
    reports = []
    for name, alter in (("honest", lambda lines: lines), ("altered", _with_another_device)):
        file = tmp_path / f"{name}.jsonl"
        file.write_bytes(alter(path.read_bytes()))
        store = stores.memory_store()
        history = await replays.load_files(store, settings, (file,))
        reports.append(await replays.decide(store, settings, history, "", lambda *_: None))
    honest, altered = ({each.reason for each in report.differences} for report in reports)
    assert DifferenceClass.RACE in honest
    assert honest & UNPROVED == set()
    assert altered & UNPROVED


def _with_another_device(audit):
    """The audit log with the third device of a node, not the second, for the pod after the gone."""
    lines = audit.splitlines(keepends=True)
    (claim,) = {
        json.loads(line)["objectRef"]["name"] for line in lines if b'"name":"one-9-dev-' in line
    }
    return b"".join(
        line.replace(b'"device":"gpu-1"', b'"device":"gpu-2"') if claim.encode() in line else line
        for line in lines
    )


@draws.in_turn("ways")
def test_soak_ends_when_nothing_waits(tmp_path):
    """What is placed is bound, as long as the scheduler's reports go on."""
    slow = Load(seed=1, seconds=20, pods=60, rate=4, burst=5)
    path = record(tmp_path, slow) / "audit.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    nominated, bound, last = {}, set(), ""
    for line in lines:
        found, name = line["responseObject"], line["objectRef"]["name"]
        last = max(last, line["requestReceivedTimestamp"])
        if line["objectRef"]["subresource"] == "binding" or line["verb"] == "delete":
            bound.add(name)
        elif found["kind"] == "Pod" and found["status"].get("nominatedNodeName"):
            nominated.setdefault(name, line["requestReceivedTimestamp"])
    assert len(nominated) > 20
    waiting = {name: at for name, at in nominated.items() if name not in bound}
    assert all(_seconds(at) > _seconds(last) - 2 for at in waiting.values())


@draws.in_turn("ways")
async def test_soak_is_recorded_without_a_gap(tmp_path):
    """A line that no API server writes, such as a status changed elsewhere, proves a lost one."""
    settings = process_settings.settings(profile=RELEASE)
    store, load = stores.memory_store(), Load(seed=1, seconds=20, pods=40)
    await replays.load_files(store, settings, (record(tmp_path, load),))
    (history,) = await store.log.histories()
    events = await store.log.read(history.id, after=Revision(0), limit=settings.decide_events_max)
    assert [event.key for event in events if event.type is EventType.GAP_OBSERVED] == []
    assert len(events) > load.pods


def _seconds(text):
    return timestamps.parse(text) / SECOND


def test_client_of_a_soak_sends_one_request_after_the_other(tmp_path):
    """Nomination, finalizer, allocation, binding and conditions: one every tenth of a second."""
    one_by_one = Load(seed=1, seconds=10, pods=15, rate=10, burst=1)
    path = record(tmp_path, one_by_one) / "audit.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    sent = sorted(
        (_seconds(line["requestReceivedTimestamp"]), line["objectRef"]["subresource"])
        for line in lines
        if line["user"]["username"] == SCHEDULER and line["objectRef"]["resource"] != "events"
    )
    assert {kind for _, kind in sent} == {"status", "", "binding"}
    pauses = [later - earlier for (earlier, _), (later, _) in pairwise(sent)]
    assert min(pauses) > 0.08


def test_scheduler_of_a_soak_waits_for_each_answer_before_it_goes_on(tmp_path):
    """A binding that was sent before its claims were written is in no real recording."""
    path = record(tmp_path, Load(seed=1, seconds=20, pods=40, answers=120)) / "audit.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    written = {}
    for line in lines:
        is_theirs = line["user"]["username"] == SCHEDULER
        if is_theirs and line["objectRef"]["resource"] == "resourceclaims":
            reserved = line["responseObject"].get("status", {}).get("reservedFor", ())
            for consumer in reserved:
                place = (line["objectRef"]["namespace"], consumer["name"])
                written.setdefault(place, line["stageTimestamp"])
    bindings = [line for line in lines if line["objectRef"]["subresource"] == "binding"]
    assert len(bindings) > 15
    for line in bindings:
        pod = (line["objectRef"]["namespace"], line["objectRef"]["name"])
        assert written[pod] < line["requestReceivedTimestamp"]


def test_reports_of_a_soak_name_the_version_of_the_pod_that_was_tried(tmp_path):
    path = record(tmp_path, Load(seed=1, seconds=20, pods=40)) / "watch"
    pods, reports = (
        [json.loads(line)["object"] for line in (path / f"{name}.jsonl").read_text().splitlines()]
        for name in ("pods", "events")
    )
    versions = {(pod["metadata"]["uid"], pod["metadata"]["resourceVersion"]) for pod in pods}
    subjects = [
        (subject["uid"], subject["resourceVersion"])
        for report in reports
        if report["reason"] == "FailedScheduling"
        for subject in (report["involvedObject"],)
    ]
    assert len(subjects) > 30
    assert set(subjects) <= versions


async def evicted_at_once(path, seconds):
    """A pod is refused, 100 ms later placed and evicted, and its success reported after that.

    The recording goes on for some seconds.
    """
    cluster = Cluster(Profile(version=RELEASE, gates=dict.fromkeys(GATES, True)))
    cluster.node()
    cluster.device_class()
    patient = {"key": "example.com/bad", "operator": "Exists", "effect": "NoExecute"}
    cluster.template(tolerations=[{**patient, "tolerationSeconds": 0}])
    taint = {"key": "example.com/bad", "effect": "NoExecute"}
    spec = {"deviceSelector": {"driver": DRIVER}, "taint": taint}
    cluster.create("resource.k8s.io/v1beta2", "DeviceTaintRule", "rule", spec=spec)
    cluster.pod(template="gpu")
    cluster.settle()
    cluster.line.advance(Instant(cluster.line.now + 100 * MILLI))
    cluster.slice()
    cluster.wait(seconds)
    events = cluster.line.events
    (said,) = (
        each for each in events
        if each.key.resource == "events" and each.object["reason"] == "Scheduled"
    )  # fmt: skip
    late = {said.revision: Late(at=Instant(said.stamp.time + 8 * MILLI))}
    retell(events, late, path, random.Random("answers"), answers=2)
    settings = process_settings.settings(profile=RELEASE)
    store = stores.memory_store()
    history = await replays.load_files(store, settings, (path / "audit.jsonl",))
    return await replays.decide(store, settings, history, "", lambda *_: None)


async def test_reports_before_and_after_an_eviction_are_proved_to_come_so(tmp_path):
    report = await evicted_at_once(tmp_path, 15)
    (different,) = report.differences
    assert [each.partition(":")[0] for each in different.recorded] == [
        "Warning FailedScheduling", "Normal DeviceTaintManagerEviction", "Normal Scheduled",
    ]  # fmt: skip
    assert different.reason is DifferenceClass.RACE
    assert report.runs == 1


async def decided(cluster, late, path, **bounds):
    retell(cluster.line.events, late, path, random.Random("answers"), answers=2)
    settings = replace(process_settings.settings(profile=RELEASE), **bounds)
    store = stores.memory_store()
    history = await replays.load_files(store, settings, (path / "audit.jsonl",))
    return await replays.decide(store, settings, history, "", lambda *_: None)


def goes_on(cluster):
    """The recording goes on after all requests of the scheduler, so it has those that waited."""
    cluster.patch("nodes", "n1", {"metadata": {"annotations": {"seen": "later"}}})


async def late_condition(seconds, path, **bounds):
    """A pod is refused and deleted some seconds later; the condition is written after that."""
    cluster = Cluster(Profile(version=RELEASE, gates=dict.fromkeys(GATES, True)))
    cluster.node()
    cluster.device_class()
    cluster.slice()
    cluster.template(count=3)
    cluster.pod(template="gpu")
    cluster.settle()
    (written,) = (
        each for each in cluster.line.events
        if each.key.resource == "pods" and each.stamp.actor.user == SCHEDULER
    )  # fmt: skip
    cluster.wait(seconds)
    cluster.delete("pods", "pod")
    cluster.wait(15)
    goes_on(cluster)
    late = Late(at=Instant(written.stamp.time + (seconds + 1) * 1_000 * MILLI))
    return await decided(cluster, {written.revision: late}, path, **bounds)


@pytest.mark.parametrize(
    ("seconds", "reason"), [(1, DifferenceClass.RACE), (40, DifferenceClass.UNEXPLAINED)]
)
async def test_condition_that_waited_until_its_pod_was_gone_is_a_proved_race(
    seconds, reason, tmp_path
):
    """A write waits for its client's limit for seconds, and not for longer."""
    report = await late_condition(seconds, tmp_path)
    assert {each.reason for each in report.differences} == {reason}
    assert {each.subject for each in report.differences} == {"pods/default/pod"}


async def test_second_condition_may_wait_until_its_pod_is_gone_as_well(tmp_path):
    """It changes the message of the first alone."""
    cluster = Cluster(Profile(version=RELEASE, gates=dict.fromkeys(GATES, True)))
    cluster.node()
    cluster.device_class()
    cluster.slice()
    cluster.template(count=3)
    cluster.pod(template="gpu")
    cluster.wait(3)
    cluster.node("second")
    cluster.wait(3)
    first, second = (
        each for each in cluster.line.events
        if each.key.resource == "pods" and each.stamp.actor.user == SCHEDULER
    )  # fmt: skip
    assert first.object["status"] != second.object["status"]
    cluster.delete("pods", "pod")
    cluster.wait(15)
    late = {second.revision: Late(at=Instant(cluster.line.now))}
    cluster.wait(15)
    goes_on(cluster)
    report = await decided(cluster, late, tmp_path)
    assert {each.reason for each in report.differences} == {DifferenceClass.RACE}
    assert {each.subject for each in report.differences} == {"pods/default/pod"}


@pytest.mark.parametrize(
    ("bounds", "words", "runs"),
    [
        ({"decide_proof_events_max": 1}, "1 events of runs (REDRA_DECIDE_PROOF_EVENTS_MAX)", 1),
        ({"decide_runs_max": 2}, "2 runs (REDRA_DECIDE_RUNS_MAX)", 2),
        ({"decide_runs_max": 0}, "0 runs (REDRA_DECIDE_RUNS_MAX)", 0),
    ],
)
async def test_bound_of_the_proofs_ends_them_and_is_named(bounds, words, runs, tmp_path):
    report = await late_condition(40, tmp_path, **bounds)
    assert {each.reason for each in report.differences} == {DifferenceClass.UNEXPLAINED}
    assert {each.detail for each in report.differences} == {f"not proved within {words}"}
    assert report.runs == runs


async def test_run_with_more_events_than_its_bound_is_refused(tmp_path):
    with pytest.raises(InputError, match="more than 5 events of its own"):
        await late_condition(1, tmp_path, decide_events_max=5)


async def test_status_of_a_rule_counts_what_was_there_before_it_was_written(tmp_path):
    """Its write waits for the limit; one of the pods that it counts goes meanwhile."""
    cluster = Cluster(Profile(version=RELEASE, gates=dict.fromkeys(GATES, True)))
    cluster.node()
    cluster.device_class()
    cluster.slice()
    cluster.template()
    cluster.pod(template="gpu")
    cluster.wait(5)
    spec = {"deviceSelector": {"driver": DRIVER}, "taint": {"key": "a/b", "effect": "None"}}
    for name in ("first", "rule"):
        cluster.create("resource.k8s.io/v1beta2", "DeviceTaintRule", name, spec=spec)
        cluster.wait(5)
    *_, written = (
        each for each in cluster.line.events
        if each.key.resource == "devicetaintrules" and each.object.get("status")
    )  # fmt: skip
    cluster.delete("pods", "pod", grace_seconds=0)
    cluster.wait(15)
    late = Late(at=Instant(written.stamp.time + 6_000 * MILLI))
    report = await decided(cluster, {written.revision: late}, tmp_path)
    found = [(each.recorded, each.again, each.detail) for each in report.differences]
    assert "1 pod would be evicted" in str(found)
    assert {each.reason for each in report.differences} == {DifferenceClass.TIMING}


async def test_repetition_of_a_report_that_is_late_itself_comes_after_it(tmp_path):
    """Both wait for the limit until the pod, which found a place, is marked for deletion."""
    cluster = Cluster(Profile(version=RELEASE, gates=dict.fromkeys(GATES, True)))
    cluster.node()
    cluster.device_class()
    patient = {"key": "example.com/bad", "operator": "Exists", "effect": "NoExecute"}
    cluster.template(tolerations=[{**patient, "tolerationSeconds": 0}])
    taint = {"key": "example.com/bad", "effect": "NoExecute"}
    spec = {"deviceSelector": {"driver": DRIVER}, "taint": taint}
    cluster.create("resource.k8s.io/v1beta2", "DeviceTaintRule", "rule", spec=spec)
    cluster.pod(template="gpu")
    cluster.wait(3)
    cluster.node("second")
    cluster.wait(6)
    for name in ("elsewhere", "farther"):
        cluster.slice(node=name)
        cluster.wait(9)
    cluster.slice()
    cluster.wait(15)
    said = [each for each in cluster.line.events if each.key.resource == "events"]
    reports = [each for each in said if "Schedul" in each.object["reason"]]
    _, *waiting, again, placed = reports
    assert waiting[-1].key == again.key
    assert placed.object["reason"] == "Scheduled"
    (marked,) = (
        each.stamp.time for each in said if each.object["reason"] == "DeviceTaintManagerEviction"
    )
    late = {
        each.revision: Late(at=Instant(marked + number * 8 * MILLI))
        for number, each in enumerate((*waiting, again, placed), start=1)
    }
    report = await decided(cluster, late, tmp_path)
    (different,) = report.differences
    assert [each.partition(":")[0] for each in different.recorded] == [
        "Warning FailedScheduling", "Normal DeviceTaintManagerEviction",
        "Warning FailedScheduling", "Normal Scheduled",
    ]  # fmt: skip
    assert different.reason is DifferenceClass.RACE


async def test_report_that_repeats_one_which_still_waits_is_no_report_of_its_own(tmp_path):
    """The scheduler knows its own reports, not which of them its client has already sent."""
    cluster = Cluster(Profile(version=RELEASE, gates=dict.fromkeys(GATES, True)))
    cluster.node()
    cluster.device_class()
    patient = {"key": "example.com/bad", "operator": "Exists", "effect": "NoExecute"}
    cluster.template(tolerations=[{**patient, "tolerationSeconds": 0}])
    taint = {"key": "example.com/bad", "effect": "NoExecute"}
    spec = {"deviceSelector": {"driver": DRIVER}, "taint": taint}
    cluster.create("resource.k8s.io/v1beta2", "DeviceTaintRule", "rule", spec=spec)
    cluster.pod(template="gpu")
    cluster.wait(3)
    cluster.node("second")
    cluster.wait(6)
    for name in ("elsewhere", "farther"):
        cluster.slice(node=name)
        cluster.wait(9)
    cluster.node("third")
    cluster.wait(9)
    cluster.slice(node="yonder")
    cluster.wait(9)
    cluster.slice()
    cluster.wait(15)
    said = [each for each in cluster.line.events if each.key.resource == "events"]
    _, _, waiting, again, last, placed = (
        each for each in said if "Schedul" in each.object["reason"]
    )
    assert waiting.key == again.key != last.key
    (marked,) = (
        each.stamp.time for each in said if each.object["reason"] == "DeviceTaintManagerEviction"
    )
    late = {
        waiting.revision: Late(at=Instant(again.stamp.time + 4_000 * MILLI)),
        again.revision: Late(at=Instant(again.stamp.time + 5_000 * MILLI)),
        placed.revision: Late(at=Instant(marked + 8 * MILLI)),
    }
    report = await decided(cluster, late, tmp_path)
    (different,) = report.differences
    assert [each.partition(":")[0] for each in different.recorded] == [
        *["Warning FailedScheduling"] * 3, "Normal DeviceTaintManagerEviction", "Normal Scheduled",
    ]  # fmt: skip
    assert different.reason is DifferenceClass.RACE


async def test_status_of_a_rule_that_is_due_after_the_end_is_not_missed(tmp_path):
    """It is written ten seconds after the eviction."""
    report = await evicted_at_once(tmp_path, 5)
    of_rule = [each for each in report.differences if each.subject.endswith("/rule")]
    assert Aspect.RULES in {each.aspect for each in of_rule}
    assert {each.reason for each in of_rule} == {DifferenceClass.AFTER_END}


async def test_pod_that_goes_before_its_claims_are_written_had_a_place_until_then(tmp_path):
    """Only its nomination is recorded, not the devices that it was given and that others lacked."""

    def slowly(_pod, now):
        return Instant(now + 2_000 * MILLI), Instant(now + 2_500 * MILLI)

    profile = Profile(version=RELEASE, gates=dict.fromkeys(GATES, True))
    cluster = Cluster(profile, ControllerOptions(bind_delay=slowly))
    cluster.node()
    cluster.device_class()
    cluster.slice(devices=1)
    cluster.template()
    cluster.pod(template="gpu")
    cluster.wait(1)
    cluster.delete("pods", "pod")
    cluster.wait(2)
    cluster.pod("second", template="gpu")
    cluster.wait(15)
    assert cluster.must("pods", "second")["spec"]["nodeName"]
    report = await decided(cluster, {}, tmp_path)
    assert [(each.aspect, each.recorded, each.again) for each in report.differences] == []
    assert report.aspects[Aspect.NODES].same == 1


_ELSEWHERE = {"kubernetes.io/hostname": "n2"}


class Queue:
    """A client that sends ten requests a second: bindings of pods on another node come first."""

    STEP = 100 * MILLI

    def __init__(self) -> None:
        self._sent: list[Instant] = []
        profile = Profile(version=RELEASE, gates=dict.fromkeys(GATES, True))
        cluster = Cluster(profile, ControllerOptions(bind_delay=self._delay))
        for node in ("n1", "n2"):
            cluster.node(node, pods=500)
        cluster.device_class()
        self.slice = cluster.slice()
        cluster.template()
        self.cluster = cluster
        self.place("first", cluster.line.now, cluster.line.now, nodeSelector=_ELSEWHERE)
        cluster.wait(1)

    def place(self, name: str, claims_at: int, bind_at: int, **spec: object) -> None:
        """A pod that is placed now, and whose claims and binding are written later."""
        self._sent = [Instant(claims_at), Instant(bind_at)]
        self.cluster.pod(name, **spec)
        self.cluster.settle()

    def fill(self, count: int, name: str = "before") -> None:
        """So many requests are made now."""
        for number in range(count):
            at = self.cluster.line.now + self.STEP
            sent = at + number * self.STEP
            self.place(f"{name}-{number}", sent, sent, nodeSelector=_ELSEWHERE)

    def nominated(self, name: str) -> Event:
        """The nomination of a pod, which is still to be sent."""
        return next(
            each for each in self.cluster.line.events
            if each.key[1::2] == ("pods", name) and each.stamp.actor.user == SCHEDULER
        )  # fmt: skip

    def _delay(self, _pod: str, _now: Instant) -> tuple[Instant, Instant]:
        first, last = self._sent
        return first, last


@draws.in_turn("ways")
@pytest.mark.parametrize(
    ("queue", "closed", "reason"),
    [
        (20, 500, DifferenceClass.TIMING),
        (40, 500, DifferenceClass.TIMING),
        (0, -1_000, DifferenceClass.UNEXPLAINED),
        (3, -16_000, DifferenceClass.UNEXPLAINED),
        (20, -1_000, DifferenceClass.UNEXPLAINED),
        (20, -16_000, DifferenceClass.UNEXPLAINED),
        (40, -1_000, DifferenceClass.UNEXPLAINED),
    ],
)
async def test_placement_was_decided_since_its_client_has_a_queue_and_not_before(
    tmp_path, queue, closed, reason
):
    """So many requests before it are sent, ten a second; nothing else shows that it waited.

    The node was closed so many milliseconds after the queue began. Where that was before, the
    scheduler took a node that was closed.
    """
    client = Queue()
    cluster = client.cluster
    began = cluster.line.now + 17_000 * MILLI
    closing = began + closed * MILLI
    last = began + (queue + 1) * client.STEP
    for at, act in sorted(
        [
            (began, lambda: client.fill(queue)),
            (
                min(closing, began + 100 * MILLI) - 50 * MILLI,
                lambda: client.place(
                    "pod", last + client.STEP, last + 2 * client.STEP, template="gpu"
                ),
            ),
            (closing, lambda: cluster.patch("nodes", "n1", {"spec": {"unschedulable": True}})),
        ],
        key=lambda step: step[0],
    ):
        cluster.line.advance(Instant(at))
        act()
    cluster.wait(0.4)
    cluster.slice("n2")
    cluster.wait(30)
    assert cluster.must("pods", "pod")["spec"]["nodeName"] == "n1"
    late = {client.nominated("pod").revision: Late(at=Instant(last))}
    report = await decided(cluster, late, tmp_path)
    assert {each.reason for each in report.differences} == {reason}
    assert any(each.aspect is Aspect.NODES for each in report.differences)


async def test_placements_that_waited_together_were_decided_one_after_the_other(tmp_path):
    """The second got what the first had left; when its requests were sent, that was gone."""
    client, names = Queue(), ("pod", "second")
    cluster = client.cluster
    began = cluster.line.now
    client.fill(20)
    cluster.wait(0.1)
    slots = [Instant(began + number * client.STEP) for number in range(21, 27)]
    for number, name in enumerate(names):
        client.place(name, slots[number + 2], slots[number + 4], template="gpu")
    cluster.wait(0.5)
    cluster.update("resourceslices", _without_the_last_device(client.slice))
    cluster.wait(15)
    assert [cluster.must("pods", name)["spec"]["nodeName"] for name in names] == ["n1", "n1"]
    late = {
        client.nominated(name).revision: Late(at=slots[number]) for number, name in enumerate(names)
    }
    report = await decided(cluster, late, tmp_path)
    assert {each.reason for each in report.differences} == {DifferenceClass.TIMING}
    assert {each.detail for each in report.differences} == {
        "the scheduler's client had a lower limit, and all its requests for placements may have "
        "waited longer"
    }


def _without_the_last_device(offered):
    spec = offered["spec"]
    pool = {**spec["pool"], "generation": spec["pool"]["generation"] + 1}
    return {**offered, "spec": {**spec, "pool": pool, "devices": spec["devices"][:-1]}}


@draws.in_turn("ways")
@pytest.mark.parametrize(
    ("queue", "reason"), [(30, DifferenceClass.RACE), (0, DifferenceClass.UNEXPLAINED)]
)
async def test_pod_that_was_gone_before_its_nomination_was_sent_had_a_place_until_then(
    tmp_path, queue, reason
):
    """Another pod is refused meanwhile; without a queue the nomination would have been sent."""
    client = Queue()
    cluster = client.cluster
    began = cluster.line.now
    client.fill(queue)
    cluster.update("resourceslices", _without_the_last_device(client.slice))
    cluster.wait(0.1)
    last = Instant(began + 31 * client.STEP)
    client.place("pod", last, last, template="gpu")
    cluster.wait(0.3)
    client.place("second", last, last, template="gpu")
    cluster.wait(1.5)
    cluster.delete("pods", "pod", grace_seconds=0)
    cluster.wait(0.1)
    client.fill(10, "after")
    cluster.wait(20)
    cluster.slice("n1", name="more", pool="more", devices=1)
    cluster.wait(15)
    assert cluster.must("pods", "second")["spec"]["nodeName"] == "n1"
    late = {client.nominated("pod").revision: Late(at=last)}
    report = await decided(cluster, late, tmp_path)
    assert {each.reason for each in report.differences} == {reason}
    pods = {each.owner for each in report.differences}
    assert pods == {cluster.must("pods", "second")["metadata"]["uid"]}
