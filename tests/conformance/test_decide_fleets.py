"""Recordings of fleet worlds, which hold every kind of hardware and act, accuse nobody.

Rows come by day. Each was accused once: of attempts on several nodes of which any was as good, of
a repeated report where versions of the run and of the recording were the same by chance, of each
second report of a claim that a quota refused, of a removal by PodGC in rounds of its own, of a
deletion by the garbage collector that was answered before the removal of the owner was, of devices
beside a claim that the scheduler made only after its choice, or of the contents of a namespace
whose deletion was answered late.

The watch streams of such worlds do not name authors. They were accused of reports of claims that a
quota refused (33), of claims that a user deleted (36, 70), of pods of Jobs that were deleted before
they had a node (37), of pods that the pod garbage collector removed (39) or may have removed
(59), of namespaces whose deletion is dated with whole seconds (61) or another one of their name
followed (110), of pods whose devices were not ready in time (41, 88), and of conditions without a
time that were not taken for those of the attempts that Events report (117), and of a node that was
closed before the node controller had looked at it (1048).
"""

import json
import random
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from app.analysis.replay.classes import UNPROVED, DifferenceClass
from app.analysis.replay.report import Agreement, DecideReport
from app.bootstrap import process_settings, replays, stores
from app.domain.objects.profile import Profile
from app.service.replays.deciding.violations import SILENT
from app.service.replays.verifying import VerifyOutcome
from app.settings import Settings
from tests import draws
from tests.adversary.log import later
from tests.conformance import honest_lines
from tests.conformance.crossed_tampering import lease_line
from tests.conformance.fleet_recordings import KUBELETS, record
from tests.conformance.further_tampering import SCHEDULER
from tests.simulation.edits import BATCH, EDITS, schedule_otherwise
from tests.simulation.fleet_acts import ROUTINE, UPKEEP

pytestmark = pytest.mark.timeout(0)
"""Runs are bounded in number; how long they take is a matter of the machine."""

NOT_JUDGED = (
    f"a binding by {{}} for a scheduler apart from kube-scheduler ({BATCH}), taken as recorded"
)

ACTS = 60
"""The acts of a world, if no other number is said."""


@draws.in_turn("ways")
@pytest.mark.parametrize(
    ("seed", "acts"), [*((seed, ACTS) for seed in (10, 11, 14, 16, 22, 33, 37)), (63, 71), (99, 58)]
)
async def test_recording_of_a_fleet_world_accuses_nobody(seed, acts, tmp_path):
    await _accuses_nobody(record(tmp_path, seed, acts), tmp_path / "audit.jsonl", acts)


@draws.in_turn("ways")
@pytest.mark.parametrize(
    ("seed", "acts"),
    [*((seed, ACTS) for seed in (33, 36, 37, 39, 41, 59, 61, 70, 88, 110, 117)), (1048, 30)],
)
async def test_watch_streams_of_a_fleet_world_accuse_nobody(seed, acts, tmp_path):
    await _accuses_nobody(record(tmp_path, seed, acts), tmp_path / "watch", acts)


@draws.in_turn("ways")
@pytest.mark.parametrize("seed", [186, 404])
@pytest.mark.parametrize("source", ["audit.jsonl", "watch"])
async def test_first_instants_of_a_control_plane_accuse_nobody(source, seed, tmp_path):
    """A pod is refused while the taints of new nodes go, by attempts that are stored later."""
    await _accuses_nobody(record(tmp_path, seed, 3), tmp_path / source, 3)


@draws.in_turn("ways")
@pytest.mark.parametrize(
    ("change", "seed"),
    [
        (honest_lines.divide_between_schedulers, 113),
        (honest_lines.refuse_updates, 115),
        (honest_lines.divide_between_servers, 702),
    ],
)
async def test_circumstance_of_an_honest_log_accuses_nobody(change, seed, tmp_path):
    """A second scheduler was accused of each Event that it wrote about its pods."""
    profile = record(tmp_path, seed, 30)
    path = tmp_path / "audit.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert change(lines, random.Random(f"{change.__name__} {seed}"))
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    await _accuses_nobody(profile, path, 30)


@draws.in_turn("ways")
@pytest.mark.parametrize("is_late", [False, True])
async def test_removal_through_a_server_ahead_came_before_the_namespace_was_empty(
    is_late, tmp_path
):
    """It has no version. A second later than what the clocks differ, the claim was still there."""
    profile = record(tmp_path, 2736, 29)
    path = tmp_path / "audit.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    draw = random.Random("divide_between_servers 2736")
    assert honest_lines.divide_between_servers(lines, draw)
    *_, removal = (
        line
        for line in lines
        if line["objectRef"]["resource"] == "resourceclaims"
        and line["objectRef"]["namespace"] == "team"
    )
    assert "finalizers" not in removal["responseObject"]["metadata"]
    if is_late:
        for name in ("requestReceivedTimestamp", "stageTimestamp"):
            removal[name] = later(removal[name], 1)
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    report = await _decided(profile, path)
    unproved = {each.subject for each in report.differences if each.reason in UNPROVED}
    assert unproved == ({"namespaces/team"} if is_late else set())


@draws.in_turn("ways")
async def test_namespace_whose_mark_a_server_ahead_dates_is_emptied_in_time(tmp_path):
    """By its clock the content goes 144 ms before the wait after the mark is over."""
    profile = record(tmp_path, 2716, 15, besides=EDITS)
    path = tmp_path / "audit.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert honest_lines.divide_between_servers(lines, random.Random("divide_between_servers 2716"))
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    await _accuses_nobody(profile, path, 15)


@draws.in_turn("ways")
@pytest.mark.parametrize("source", ["audit.jsonl", "watch"])
async def test_kubelets_that_are_away_accuse_nobody(source, tmp_path):
    profile = record(tmp_path, 15, 40, besides=KUBELETS)
    lost = (tmp_path / "watch" / "leases.jsonl").read_text().count("ADDED")
    assert lost > 1
    await _accuses_nobody(profile, tmp_path / source, 40)


@draws.in_turn("ways")
@pytest.mark.parametrize("is_early", [False, True])
async def test_removal_without_a_time_came_at_most_just_before_the_next_write(is_early, tmp_path):
    """A user removes the claim of a waiting pod, and then the pod.

    Four minutes before, the claim controller would have made the claim again.
    """
    profile = record(tmp_path, 18, 20, besides=KUBELETS)
    watch = tmp_path / "watch"
    if is_early:
        _renumber(watch / "resourceclaims.jsonl", "195", "194")
        _renumber(watch / "events.jsonl", "194", "195")
        report = await _decided(profile, watch)
        unproved = {each.subject for each in report.differences if each.reason in UNPROVED}
        assert "pods/default/pod-4" in unproved
    else:
        await _accuses_nobody(profile, watch, 20)


@draws.in_turn("ways")
@pytest.mark.parametrize("is_early", [False, True])
async def test_untainting_without_a_time_came_at_most_just_before_the_next_write(
    is_early, tmp_path
):
    """A node is made while the manager is away; the next scheduler still finds it tainted.

    The taint goes before a slice is made, twenty seconds earlier: then the attempt is wrong.
    """
    profile = record(tmp_path, 1027, 30, restarts=0.1)
    watch = tmp_path / "watch"
    if is_early:
        _renumber(watch / "nodes.jsonl", "311", "308")
        _renumber(watch / "resourceslices.jsonl", "308", "311")
    report = await _decided(profile, watch)
    unproved = {each.subject for each in report.differences if each.reason in UNPROVED}
    assert unproved == ({"pods/default/pod-7"} if is_early else set())


def _renumber(path: Path, old: str, new: str) -> None:
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    versions = [line["object"]["metadata"] for line in lines]
    assert [each["resourceVersion"] for each in versions].count(old) == 1
    for each in versions:
        if each["resourceVersion"] == old:
            each["resourceVersion"] = new
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))


@draws.in_turn("ways")
@pytest.mark.parametrize(
    ("seed", "acts", "world"),
    [
        (171, 26, {"besides": KUBELETS, "restarts": 0.06}),
        (14, 22, {"amid": True, "restarts": 0.25, "outage": 3}),
    ],
)
async def test_claim_of_an_ending_namespace_that_is_removed_without_a_version_accuses_nobody(
    seed, acts, world, tmp_path
):
    """Another one may have marked the claim for deletion just before (14)."""
    profile = record(tmp_path, seed, acts, **world)
    await _accuses_nobody(profile, tmp_path / "audit.jsonl", acts)


@draws.in_turn("ways")
@pytest.mark.parametrize(
    ("seed", "acts", "source", "world"),
    [
        (635, 25, "audit.jsonl", {"restarts": 0.25, "outage": 3, "amid": True}),
        (628, 32, "audit.jsonl", {"restarts": 0.15, "outage": 8}),
        (631, 55, "watch", {"restarts": 0.25, "outage": 3, "amid": True}),
        (1052, 25, "watch", {"restarts": 0.08, "outage": 40}),
        (1042, 30, "watch", {"restarts": 0.08, "outage": 40}),
        (817, 40, "audit.jsonl", {"restarts": 0.08}),
        (1110, 40, "watch", {"restarts": 0.1, "besides": UPKEEP}),
        (1024, 50, "watch", {"restarts": 0.2, "outage": 3, "amid": True}),
        (1204, 40, "watch", {"restarts": 0.2, "outage": 3, "amid": True}),
        (1004, 40, "audit.jsonl", {"restarts": 0.2, "outage": 3, "amid": True}),
        (1338, 20, "audit.jsonl", {"restarts": 0.08}),
        (1306, 16, "audit.jsonl", {"restarts": 0.08}),
        (1718, 35, "audit.jsonl", {"restarts": 0.1}),
        (1338, 40, "watch", {"restarts": 0.1, "besides": UPKEEP}),
        (1319, 16, "watch", {"restarts": 0.2, "outage": 3, "amid": True}),
    ],
)
async def test_scheduler_that_is_replaced_accuses_nobody(seed, acts, source, world, tmp_path):
    """The next one deletes the claim for extended resources that it knows nothing of.

    Before it tries that pod again, another one gets its device (635). A pod may be deleted before
    the next one begins (628), also one that was refused before (1042), or the claim of one that
    waits for its devices (631), or the next one tries it in the second in which it is back (1052),
    or what waits, without another reason (817).
    The report that a quota refuses a claim may come too late for its pod, too (1110). An attempt
    that saw the condition of another one was made after it, whatever the second of that (1024).
    The end of a namespace was put off until another one of its name was there (1204).
    What a pod had waited for was free, and only the next one tried it (1004). A wait for devices
    ended in vain here alone, and a pod whose claim is to be deleted is not tried again (1338). A
    rule (1306) or a terminating pod (1338) was gone before the next manager looked. The next one
    counts once more what a rule without an effect would evict (1718). What a new one tried without
    a reason waits for its flush from then on (1338, 40 acts). The claim of a pod was made anew
    before it was tried (1319).
    """
    profile = record(tmp_path, seed, acts, **world)
    await _accuses_nobody(profile, tmp_path / source, acts)


@draws.in_turn("ways")
@pytest.mark.parametrize(
    ("seed", "acts", "source"), [(11, 40, "watch"), (38, 40, "watch"), (1229, 35, "watch")]
)
async def test_routine_of_a_cluster_accuses_nobody(seed, acts, source, tmp_path):
    """Labels, finalizers of others, gates, roll-outs, reports of drivers, replaced nodes.

    The retries of a claim that a quota refused are dated with whole seconds, up to one too early
    for the back-off (11). A node was removed, without a time, a quarter of an hour after the write
    before that (38). A third party's finalizer was the last one of a claim (1229).
    """
    profile = record(tmp_path, seed, acts, besides=ROUTINE)
    await _accuses_nobody(profile, tmp_path / source, acts)


@draws.in_turn("ways")
@pytest.mark.parametrize(
    ("seed", "acts", "source"),
    [
        (2002, 3, "audit.jsonl"),
        (2014, 7, "audit.jsonl"),
        (2009, 15, "watch"),
        (2025, 3, "audit.jsonl"),
        (2011, 4, "audit.jsonl"),
        (2394, 10, "audit.jsonl"),
        (2867, 15, "watch"),
        (2778, 6, "audit.jsonl"),
    ],
)
async def test_edits_amid_what_controllers_do_accuse_nobody(seed, acts, source, tmp_path):
    """A user deletes a claim between the choice for its pod and what the scheduler writes of it.

    The claim has gone (2002), or is marked between its allocation and the binding (2014), which
    nothing hinders; it was made anew before the pod was tried (2009), which was before the answers
    to all that (2025), or to the claim alone (2394). The last claim of a namespace was marked and
    removed before the answers that say so (2011). A namespace began to end in the second in which
    its pod was bound, so that the Event of that was refused (2867). Another pod was placed while
    the device of a pod whose claim was removed counted as in use (2778).
    """
    profile = record(tmp_path, seed, acts, besides=EDITS)
    await _accuses_nobody(profile, tmp_path / source, acts)


@draws.in_turn("ways")
@pytest.mark.parametrize("node", ["n0", "n1"])
async def test_devices_of_a_pod_whose_claim_was_removed_were_in_use_where_it_was_nominated(
    node, tmp_path
):
    """If the pod was nominated for another node, the device was free for the next one."""
    profile = record(tmp_path, 2788, 9, besides=EDITS)
    path = tmp_path / "audit.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    nomination = next(
        line
        for line in lines
        if line["objectRef"]["name"] == "pod-8" and line["objectRef"]["subresource"] == "status"
    )
    assert nomination["responseObject"]["status"]["nominatedNodeName"] == "n0"
    nomination["responseObject"]["status"]["nominatedNodeName"] = node
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    store, settings = stores.memory_store(), _settings(profile)
    history = await replays.load_files(store, settings, (path,))
    verified = await replays.verify(store, settings, history, "", lambda *_: None)
    assert (verified.outcome is VerifyOutcome.FAILED) is (node != "n0")
    assert len(verified.allocations.differences) == (node != "n0")


@draws.in_turn("ways")
@pytest.mark.parametrize("lost", ["", "pod-7"])
async def test_event_that_watch_streams_lack_came_when_its_namespace_was_to_end(lost, tmp_path):
    """The one that is lost besides was sent two hours before that."""
    profile = record(tmp_path, 2831, 15, besides=EDITS)
    path = tmp_path / "watch" / "events.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    kept = [line for line in lines if not lost or f"assigned team/{lost} " not in line]
    assert (len(kept) < len(lines)) is bool(lost)
    path.write_text("".join(kept))
    report = await _decided(profile, tmp_path / "watch")
    unproved = {each.subject for each in report.differences if each.reason in UNPROVED}
    assert unproved == ({f"pods/team/{lost}"} if lost else set())


@draws.in_turn("ways")
async def test_claim_that_is_there_when_a_namespace_is_said_to_be_empty_is_named(tmp_path):
    """Its removal was asked for after the answer to the status that counts it no more."""
    profile = record(tmp_path, 2011, 4, besides=EDITS)
    path = tmp_path / "audit.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    said = [line for line in lines if line["objectRef"]["resource"] == "namespaces"][-2]
    assert said["user"]["username"].endswith(":namespace-controller")
    removal = [
        line
        for line in lines
        if line["objectRef"]["resource"] == "resourceclaims"
        and line["objectRef"]["namespace"] == said["objectRef"]["name"]
    ][-1]
    assert removal["requestReceivedTimestamp"] < said["stageTimestamp"] < removal["stageTimestamp"]
    removal["requestReceivedTimestamp"] = later(said["stageTimestamp"], 0.001)
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    report = await _decided(profile, path)
    unproved = {each.subject for each in report.differences if each.reason in UNPROVED}
    assert unproved == {"namespaces/team"}


@draws.in_turn("ways")
@pytest.mark.parametrize(
    ("source", "blamed"),
    [("audit.jsonl", ""), ("watch", ""), ("audit.jsonl", "a write"), ("watch", "an Event")],
)
async def test_pods_of_another_scheduler_accuse_nobody(source, blamed, tmp_path):
    """A pod names a scheduler that nobody here knows, and a person binds it.

    If kube-scheduler binds it, or reports of any pod under that name, it is decided again: it did
    not report of this one.
    """
    profile = record(tmp_path, 2012, 1, besides=EDITS)
    path = tmp_path / source
    if blamed == "a write":
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        (bound,) = (
            line
            for line in lines
            if line["objectRef"]["subresource"] == "binding" and line["user"]["username"] == "alice"
        )
        bound["user"]["username"] = SCHEDULER
        path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    elif blamed:
        events = path / "events.jsonl"
        lines = [json.loads(line) for line in events.read_text().splitlines()]
        report = next(line["object"] for line in lines if line["object"]["reason"] == "Scheduled")
        report["reportingComponent"] = BATCH
        events.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    report = await _decided(profile, path)
    assert report.explained is (not blamed)
    if not blamed:
        assert report.violations == {}
        author = "an unknown author" if source == "watch" else "alice"
        assert report.not_comparable[NOT_JUDGED.format(author)] == 1


@draws.in_turn("ways")
@pytest.mark.parametrize("user", ["system:serviceaccount:batch:batch-scheduler", SCHEDULER])
async def test_scheduler_that_reports_under_its_own_user_accuses_nobody(user, tmp_path):
    """It binds a pod and tells so in kube-scheduler's words; as that user it is kube-scheduler."""
    profile = record(tmp_path, 2412, 5, besides={**EDITS, schedule_otherwise: 40})
    path = tmp_path / "audit.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    (bound,) = (line for line in lines if _is_binding(line, "alice"))
    bound["user"]["username"] = user
    name, node = bound["objectRef"]["name"], bound["requestObject"]["target"]["name"]
    made = next(line for line in lines if line["objectRef"]["name"] == name)["responseObject"]
    said = next(line for line in lines if "Successfully assigned" in json.dumps(line))
    text = json.dumps(said)
    for old, new in (
        (said["responseObject"]["involvedObject"]["name"], name),
        (said["responseObject"]["involvedObject"]["uid"], made["metadata"]["uid"]),
        (said["responseObject"]["metadata"]["uid"], "feed0000-0000-4000-8000-000000000001"),
        (said["responseObject"]["message"].rpartition(" ")[2], node),
        ("default-scheduler", BATCH),
        (SCHEDULER, user),
        (said["auditID"], "feed"),
        (said["stageTimestamp"], later(bound["stageTimestamp"], 0.002)),
        (said["requestReceivedTimestamp"], later(bound["stageTimestamp"], 0.001)),
    ):
        text = text.replace(old, new)
    again = json.loads(text)
    again["responseObject"]["metadata"].pop("resourceVersion")
    lines.insert(lines.index(bound) + 1, again)
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    report = await _decided(profile, path)
    is_other = user != SCHEDULER
    assert report.explained is is_other
    if is_other:
        assert report.not_comparable[NOT_JUDGED.format(user)] == 1


def _is_binding(line, user):
    return line["objectRef"]["subresource"] == "binding" and line["user"]["username"] == user


@draws.in_turn("ways")
@pytest.mark.parametrize("wrong", ["", "asked for afterwards", "another node"])
async def test_event_that_crosses_the_end_of_its_namespace_accuses_nobody(wrong, tmp_path):
    """The server had let it pass when the deletion of the namespace was stored.

    It had not if the scheduler asked for it after the answer to that; and the pod has its node.
    """
    profile = record(tmp_path, 2027, 18, besides=EDITS)
    path = tmp_path / "audit.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    (said,) = (
        line
        for line in lines
        if line["objectRef"]["name"].startswith("pod-11.") and line["verb"] == "create"
    )
    (ended,) = (
        line
        for line in lines
        if line["objectRef"]["resource"] == "namespaces" and line["verb"] == "delete"
    )
    if wrong == "asked for afterwards":
        lines.remove(said)
        lines.insert(lines.index(ended) + 1, said)
        for field in ("requestReceivedTimestamp", "stageTimestamp"):
            said[field] = later(ended["stageTimestamp"], 0.002)
    text = "".join(f"{json.dumps(line)}\n" for line in lines)
    note = "Successfully assigned team/pod-11 to n1"
    assert note in text
    path.write_text(text.replace(note, f"{note[:-1]}0") if wrong == "another node" else text)
    report = await _decided(profile, path)
    unproved = {each.subject for each in report.differences if each.reason in UNPROVED}
    assert unproved == ({"pods/team/pod-11"} if wrong else set())


@draws.in_turn("ways")
@pytest.mark.parametrize("is_other_node", [False, True])
async def test_binding_that_is_answered_after_the_end_of_its_namespace_accuses_nobody(
    is_other_node, tmp_path
):
    """Its Event was stored before that end, so it was, too; and the pod has the node of that."""
    profile = record(tmp_path, 2370, 8, besides=EDITS)
    path = tmp_path / "audit.jsonl"
    note, text = "Successfully assigned team/pod-8 to n1", path.read_text()
    assert note in text
    path.write_text(text.replace(note, f"{note[:-1]}0") if is_other_node else text)
    report = await _decided(profile, path)
    unproved = {each.subject for each in report.differences if each.reason in UNPROVED}
    assert unproved == ({"pods/team/pod-8"} if is_other_node else set())


@draws.in_turn("ways")
@pytest.mark.parametrize(
    ("changed", "pods"),
    [
        ("nothing", set()),
        ("no refused request is recorded", set()),
        ("the refused request is of another pod", {"pods/team/pod-1"}),
        ("the refused request is of a kubelet", {"pods/team/pod-1"}),
        ("an Event of a namespace that goes on is lost", {"pods/team/pod-3"}),
    ],
)
async def test_event_is_refused_only_where_its_namespace_is_about_to_end(changed, pods, tmp_path):
    """A pod was bound, and its namespace deleted before the scheduler reported it.

    A log of requests that failed has that one, too. Of a pod in the next namespace of that name,
    which goes on, the report is missed.
    """
    profile = record(tmp_path, 2333, 5, besides=EDITS)
    path = tmp_path / "audit.jsonl"
    lines = path.read_text().splitlines()
    [said] = [line for line in lines if "Successfully assigned team/pod-3 to" in line]
    [refused] = [line for line in lines if '"name":"pod-1.' in line]
    assert not any("Successfully assigned team/pod-1 to" in line for line in lines)
    altered = {
        "nothing": {},
        "no refused request is recorded": dict.fromkeys(
            line for line in lines if '"code":403' in line
        ),
        "the refused request is of another pod": {refused: refused.replace("pod-1.", "pod-10.")},
        "the refused request is of a kubelet": {
            refused: refused.replace("system:kube-scheduler", "system:node:n1")
        },
        "an Event of a namespace that goes on is lost": {said: None},
    }[changed]
    kept = (altered.get(line, line) for line in lines)
    path.write_text("".join(f"{line}\n" for line in kept if line is not None))
    report = await _decided(profile, path)
    unproved = {each.subject for each in report.differences if each.reason in UNPROVED}
    assert unproved == pods


async def test_placement_that_is_refused_without_a_cause_is_accused(tmp_path):
    """A scheduler says of a claim that it is gone, or is being deleted, though it is there."""
    profile = record(tmp_path, 2002, 3, besides=EDITS)
    path = tmp_path / "audit.jsonl"
    said, wrong = (
        'add finalizer to claim default/again-1: resourceclaims.resource.k8s.io \\"again-1\\" '
        "not found",
        'resourceclaim \\"again-1\\" is being deleted',
    )
    assert said in path.read_text()
    path.write_text(path.read_text().replace(said, wrong))
    report = await _decided(profile, path)
    unproved = {each.subject for each in report.differences if each.reason in UNPROVED}
    assert "pods/default/pod-1" in unproved


@draws.in_turn("ways")
async def test_watch_streams_that_arrive_in_batches_accuse_nobody(tmp_path):
    profile = record(tmp_path, 114, 30)
    draw = random.Random("batches")
    streams = [path.read_text().splitlines() for path in sorted((tmp_path / "watch").iterdir())]
    lines = []
    while streams := [stream for stream in streams if stream]:
        stream, count = draw.choice(streams), draw.randint(1, 40)
        lines += stream[:count]
        del stream[:count]
    (tmp_path / "batches").mkdir()
    (tmp_path / "batches" / "watch.jsonl").write_text("".join(f"{line}\n" for line in lines))
    await _accuses_nobody(profile, tmp_path / "batches", 30)


@draws.in_turn("ways")
async def test_watches_that_were_begun_anew_accuse_nobody(tmp_path):
    profile = record(tmp_path, 704, 30)
    honest_lines.watch_anew(tmp_path / "watch", 2)
    await _accuses_nobody(profile, tmp_path / "watch", 30)


@draws.in_turn("ways")
@pytest.mark.parametrize("source", ["audit.jsonl", "watch"])
@pytest.mark.parametrize("ahead", [1_500_000, -1_500_000])
async def test_step_of_the_schedulers_clock_accuses_nobody(ahead, source, tmp_path):
    profile = record(tmp_path, 10, ACTS, ahead=ahead)
    await _accuses_nobody(profile, tmp_path / source, ACTS)


@draws.in_turn("ways")
@pytest.mark.parametrize("is_kept", [True, False])
@pytest.mark.parametrize(
    ("seed", "seconds", "world"),
    [
        (17, 15, {"restarts": 0.08, "outage": 20}),
        (1004, 2, {"restarts": 0.2, "outage": 3, "amid": True}),
    ],
)
async def test_scheduler_that_kept_its_lease_was_not_replaced(
    seed, seconds, world, is_kept, tmp_path
):
    """The Lease has one holder all the time, or another one after each pause of the scheduler."""
    profile = record(tmp_path, seed, 40, **world)
    lines = [*map(json.loads, (tmp_path / "audit.jsonl").read_text().splitlines())]
    held, holder, last = [], 0, ""
    for line in lines:
        now = line["stageTimestamp"]
        if line["user"]["username"] == SCHEDULER:
            at = datetime.fromisoformat(now)
            pause = at - datetime.fromisoformat(last or now)
            holder += not is_kept and pause.total_seconds() > seconds
            last = now
            held.append(lease_line(line, holder))
        held.append(line)
    held.append(lease_line(held[-1], holder))
    (tmp_path / "audit.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in held))
    store, settings = stores.memory_store(), _settings(profile)
    history = await replays.load_files(store, settings, (tmp_path / "audit.jsonl",))
    report = await replays.decide(store, settings, history, "", lambda *_: None)
    assert report.explained is not is_kept


@draws.in_turn("ways")
@pytest.mark.parametrize(
    ("seed", "acts", "outage"),
    [
        *((14, ACTS, 20), (16, ACTS, 20), (17, 40, 20), (210, 40, 20)),
        *((14, 40, 40), (26, 40, 90), (13, ACTS, 20)),
    ],
)
async def test_outages_of_the_control_plane_accuse_nobody(seed, acts, outage, tmp_path):
    """Whether a node had ended before its new controller listed the nodes is unsure (16).

    New processes try at once what waited for its back-off (14), know nothing of a wait for devices
    (17), look at rules that have their status (210), and may be away for a longer time in which
    nobody writes anything, and a claim is reserved for a pod that is gone (26). A pod may be made
    and deleted meanwhile (13).
    """
    profile = record(tmp_path, seed, acts, restarts=0.08, outage=outage)
    store, settings = stores.memory_store(), _settings(profile)
    history = await replays.load_files(store, settings, (tmp_path / "audit.jsonl",))
    verified = await replays.verify(store, settings, history, "", lambda *_: None)
    assert verified.outcome is not VerifyOutcome.FAILED
    report = await replays.decide(store, settings, history, "", lambda *_: None)
    unproved = [each for each in report.differences if each.reason in UNPROVED]
    assert {each.reason for each in unproved} <= {DifferenceClass.NOT_COMPARABLE}
    assert {each.subject.partition("/")[0] for each in unproved} <= {"nodes"}
    assert report.violations == {}
    assert report.explained
    assert (SILENT in report.not_comparable) is (outage > 60)


@draws.in_turn("ways")
@pytest.mark.parametrize(
    ("seed", "count"), [(903, 62), (903, 76), (904, 129), (906, 175), (908, 69), (902, 138)]
)
async def test_log_that_is_cut_amid_the_answers_to_requests_accuses_nobody(seed, count, tmp_path):
    """The last lines show what follows from writes whose answers would come later.

    These are the creation of a node (903, 62) or a pod (904, 902), the name of a claim in a pod
    (908), the end of a pod whose claim is given back (903, 76) and written once more (906).
    """
    profile = record(tmp_path, seed, 24)
    path = tmp_path / "audit.jsonl"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:count]))
    await _accuses_nobody_at_the_end(profile, path)


AWAY = {"restarts": 0.1, "outage": 8, "besides": KUBELETS}
"""A control plane that is replaced, and nodes without kubelets."""


@draws.in_turn("ways")
@pytest.mark.parametrize(
    ("seed", "acts", "more", "source", "end"),
    [
        (908, 24, {}, "audit.jsonl", 96),
        (925, 30, AWAY, "audit.jsonl", 155),
        (928, 30, AWAY, "audit.jsonl", 127),
        (911, 24, {}, "watch", 355),
        (925, 30, AWAY, "watch", 162),
        (929, 30, AWAY, "watch", 320),
    ],
)
async def test_recording_that_ends_before_what_is_due_accuses_nobody(
    seed, acts, more, source, end, tmp_path
):
    """Logs have so many lines, and watch streams end at a version.

    A pod that waited in vain for its devices has got others (908), or two have, in another order
    (911); the next scheduler has not begun (925), or the next manager has, with a node (162); the
    creation of a claim that a pod uses is answered later (928). A user deleted a claim of a pod
    that ended meanwhile (929).
    """
    profile = record(tmp_path, seed, acts, **more)
    path = tmp_path / source
    for each in path.iterdir() if path.is_dir() else (path,):
        lines = each.read_text().splitlines(keepends=True)
        if path.is_dir():
            each.write_text("".join(line for line in lines if _version(_object(line)) <= end))
        else:
            each.write_text("".join(lines[:end]))
    await _accuses_nobody_at_the_end(profile, path)


@draws.in_turn("ways")
async def test_snapshots_of_a_fleet_world_accuse_nobody(tmp_path):
    profile = record(tmp_path, 36, ACTS)
    lines = [
        json.loads(line)
        for path in sorted((tmp_path / "watch").iterdir())
        for line in path.read_text().splitlines()
    ]
    versions = sorted(_version(line["object"]) for line in lines)
    folder = tmp_path / "snapshots"
    folder.mkdir()
    for number in (1, 2, 3):
        until = versions[len(versions) * number // 4]
        state = {}
        for line in lines:
            metadata = line["object"]["metadata"]
            place = (line["object"]["kind"], metadata.get("namespace"), metadata["name"])
            if _version(line["object"]) > until:
                continue
            state[place] = None if line["type"] == "DELETED" else line["object"]
        items = [tree for tree in state.values() if tree and tree["kind"] != "Event"]
        listed = {"apiVersion": "v1", "kind": "List", "metadata": {}, "items": items}
        (folder / f"{number}.json").write_text(json.dumps(listed))
    report = await _decided(profile, folder)
    assert report.agreement is Agreement.PARTLY


async def _accuses_nobody_at_the_end(profile: Profile, path: Path) -> None:
    store, settings = stores.memory_store(), _settings(profile)
    history = await replays.load_files(store, settings, (path,))
    verified = await replays.verify(store, settings, history, "", lambda *_: None)
    assert verified.outcome is not VerifyOutcome.FAILED
    report = await replays.decide(store, settings, history, "", lambda *_: None)
    unproved = {each.reason for each in report.differences} & UNPROVED
    assert unproved <= {DifferenceClass.NOT_COMPARABLE}
    assert report.violations == {}


def _object(line: str) -> Any:
    return json.loads(line)["object"]


def _version(tree: dict[str, Any]) -> int:
    return int(tree["metadata"]["resourceVersion"])


async def _decided(profile: Profile, recorded: Path) -> DecideReport:
    settings = _settings(profile)
    store = stores.memory_store()
    history = await replays.load_files(store, settings, (recorded,))
    return await replays.decide(store, settings, history, "", lambda *_: None)


def _settings(profile: Profile) -> Settings:
    return process_settings.settings(
        profile=profile.version, gates=[f"{name}=true" for name in profile.gates]
    )


async def _accuses_nobody(profile: Profile, recorded: Path, acts: int) -> None:
    settings = _settings(profile)
    store = stores.memory_store()
    history = await replays.load_files(store, settings, (recorded,))
    verified = await replays.verify(store, settings, history, "", lambda *_: None)
    assert verified.outcome is not VerifyOutcome.FAILED
    assert verified.allocations.total > acts // 5
    report = await replays.decide(store, settings, history, "", lambda *_: None)
    assert {each.reason for each in report.differences} & UNPROVED == set()
    assert report.violations == {}
    assert report.explained
