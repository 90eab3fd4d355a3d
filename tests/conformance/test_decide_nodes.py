"""The verdicts of decide on actions and omissions of the node controller."""

import pytest

from app.analysis.replay.classes import DifferenceClass
from app.analysis.replay.differences import Aspect
from app.analysis.replay.report import Agreement
from app.bootstrap import process_settings, replays, stores
from app.domain.controllers import registry
from app.domain.log import ObjectKey
from app.domain.objects.write.commands import PatchObject, PatchType
from app.domain.values import timestamps
from app.domain.values.timestamps import Instant
from tests.cluster import USER, Cluster
from tests.conformance import disordered_logs
from tests.conformance.test_decide_altered import lines_of

pytestmark = pytest.mark.timeout(0)
"""Runs are bounded in number; how long they take is a matter of the machine."""

UNHEARD = {
    "type": "Ready",
    "status": "Unknown",
    "reason": "NodeStatusUnknown",
    "message": "Kubelet stopped posting node status.",
}
"""What the node controller writes when the Lease of a node was not renewed."""


def cluster():
    """Two nodes with two devices each, and a pod that has one of them."""
    made = Cluster()
    made.device_class()
    made.template()
    for name in ("left", "right"):
        made.node(name)
        made.slice(name)
    made.pod("early", template="gpu", nodeSelector={"kubernetes.io/hostname": "right"})
    return made.wait(10)


def by_node_controller(made, body, subresource=""):
    """Have the node controller write to the node `left`."""
    command = PatchObject(
        key=ObjectKey("", "nodes", "", "left"),
        version="v1",
        type=PatchType.MERGE,
        body=body,
        subresource=subresource,
    )
    made.line.submit(command, actor=registry.actor_of("node-lifecycle"), verb="patch")
    made.settle()


async def decide(made, folder, alter=lambda lines: lines):
    folder.mkdir(exist_ok=True)
    lines = alter(lines_of(made.line.events, folder / "log"))
    path = disordered_logs.write(lines, folder / "altered")
    settings, store = process_settings.settings(), stores.memory_store()
    history = await replays.load_files(store, settings, (path,))
    return await replays.decide(store, settings, history, "", lambda *_: None)


def is_lifting(line):
    """Whether a user takes the taints of a node away."""
    tree = line.get("responseObject", {})
    is_of_user = line["objectRef"]["resource"] == "nodes" and line["user"]["username"] == USER.user
    return is_of_user and line["verb"] != "create" and not tree["spec"].get("taints")


def is_nomination(line):
    """Whether the scheduler names the node of the pod `late`."""
    tree = line.get("responseObject", {})
    named = tree.get("metadata", {}).get("name"), tree.get("kind")
    return named == ("late", "Pod") and "nominatedNodeName" in tree.get("status", {})


def later(lines, moved, after, millis):
    """One line is written so long after another one; the versions of all have no hole."""
    one = next(line for line in lines if moved(line))
    other = next(line for line in lines if after(line))
    instant = timestamps.parse(other["requestReceivedTimestamp"]) + millis * 1000
    stamps = "requestReceivedTimestamp", "stageTimestamp"
    one |= {name: timestamps.micro_text(Instant(instant)) for name in stamps}
    return renumbered(sorted(lines, key=lambda line: line["stageTimestamp"]))


def renumbered(lines):
    """The versions of all lines have no hole."""
    trees = [line.get("responseObject", {}).get("metadata", {}) for line in lines]
    versions = [tree for tree in trees if "resourceVersion" in tree]
    for number, tree in enumerate(versions, 100):
        tree["resourceVersion"] = str(number)
    return lines


def classes(report, resource):
    return {
        found.reason
        for found in report.differences
        if found.subject.startswith((f"{resource}/", f"{resource}."))
    }


async def test_node_that_was_not_heard_of_is_proved_by_its_conditions_alone(tmp_path):
    """Recordings have no Leases: the condition comes from the recording; taint and placements are
    decided."""
    made = cluster()
    by_node_controller(made, {"status": {"conditions": [UNHEARD]}}, "status")
    made.pod("late", template="gpu")
    made.wait(60)
    assert made.must("pods", "late")["spec"]["nodeName"] == "right"
    report = await decide(made, tmp_path)
    assert classes(report, "nodes") == {DifferenceClass.NOT_EMULATED}
    assert report.agreement is Agreement.PROVED
    assert report.runs > 0


async def test_taint_for_which_there_is_no_reason_is_unexplained(tmp_path):
    made = cluster()
    taint = {"key": "node.kubernetes.io/memory-pressure", "effect": "NoSchedule"}
    by_node_controller(made, {"spec": {"taints": [taint]}})
    made.pod("late", template="gpu")
    made.wait(60)
    assert made.must("pods", "late")["spec"]["nodeName"] == "right"
    report = await decide(made, tmp_path)
    assert not report.explained
    assert classes(report, "nodes") == {DifferenceClass.UNEXPLAINED}
    assert classes(report, "pods") <= {DifferenceClass.FOLLOWS}


async def test_taint_that_is_missing_is_unexplained(tmp_path):
    made = cluster()
    by_node_controller(made, {"status": {"conditions": [UNHEARD]}}, "status")
    made.wait(60)
    made.pod("late", template="gpu", nodeSelector={"kubernetes.io/hostname": "right"})
    made.wait(10)  # the taint may not lie behind the end of the recording

    def untainted(lines):
        kept = []
        for line in lines:
            is_node = line["objectRef"]["resource"] == "nodes"
            tree = line.get("responseObject", {})
            taints = tree.get("spec", {}).get("taints", [])
            if is_node and any("unreachable" in taint["key"] for taint in taints):
                continue
            kept.append(line)
        return kept

    report = await decide(made, tmp_path, untainted)
    assert not report.explained
    assert classes(report, "nodes") == {DifferenceClass.UNEXPLAINED}


@pytest.mark.parametrize(("millis", "is_right"), [(-20, True), (200, False)])
async def test_node_is_not_chosen_for_what_was_stored_after_the_first_write(
    millis, is_right, tmp_path
):
    """Times leave the order of changes within half a second open; versions do not."""
    made = cluster()
    taint = {"key": "example.com/repair", "effect": "NoSchedule"}
    for name in ("left", "right"):
        made.patch("nodes", name, {"spec": {"taints": [taint]}}, namespace="")
    made.wait(10)
    made.patch("nodes", "left", {"spec": {"taints": []}}, namespace="")
    made.wait(2)
    made.pod("late", template="gpu")
    made.wait(30)
    made.claim("last")
    assert made.must("pods", "late")["spec"]["nodeName"] == "left"

    def lifted(lines):
        """The taint is lifted so long after the first write of the placement."""
        return later(lines, is_lifting, is_nomination, millis)

    report = await decide(made, tmp_path, lifted)
    wanted = Agreement.AGREES if is_right else Agreement.UNEXPLAINED
    assert report.agreement is wanted


@pytest.mark.parametrize(("seconds", "is_right"), [(1.5, True), (2.5, False), (20, False)])
async def test_missing_taint_is_not_made_good_by_that_for_a_later_closing(
    seconds, is_right, tmp_path
):
    """A node is closed, opened and closed again; the first closing left no taint.

    Were the first taint awaited until the recorded one of the second closing, nothing would differ.
    A controller at work looks within two seconds.
    """
    made = cluster()
    for is_closed, wait in ((True, seconds), (None, 20), (True, 20)):
        made.patch("nodes", "left", {"spec": {"unschedulable": is_closed}})
        made.wait(wait)
    made.pod("late", template="gpu")
    made.wait(20)

    def without_first_taint(lines):
        by_controller = [
            line
            for line in lines
            if line["objectRef"]["resource"] == "nodes"
            and line["objectRef"].get("name") == "left"
            and line["user"]["username"].endswith("node-controller")
        ]
        *_, first, back, last = by_controller
        assert last["responseObject"]["spec"]["taints"]
        for line in lines[lines.index(first) : lines.index(back)]:
            if line["objectRef"]["resource"] == "nodes" and line["objectRef"]["name"] == "left":
                line["responseObject"]["spec"].pop("taints")
        return renumbered([line for line in lines if line not in (first, back)])

    assert (await decide(made, tmp_path / "honest")).agreement is Agreement.AGREES
    report = await decide(made, tmp_path / "altered", without_first_taint)
    assert report.explained == is_right
    assert classes(report, "nodes") == (set() if is_right else {DifferenceClass.UNEXPLAINED})


async def test_pod_without_claims_on_a_node_that_it_could_not_get_is_unexplained(tmp_path):
    made = cluster()
    made.pod("plain", nodeSelector={"kubernetes.io/hostname": "left"})
    made.wait(60)

    def moved(lines):
        for line in lines:
            spec = line.get("responseObject", {}).get("spec", {})
            if line["objectRef"]["resource"] == "pods" and spec.get("nodeName") == "left":
                spec["nodeName"] = "right"
        return lines

    report = await decide(made, tmp_path, moved)
    assert not report.explained
    (found,) = (each for each in report.differences if each.aspect is Aspect.NODES)
    assert found.reason == DifferenceClass.UNEXPLAINED
