"""Wrong decisions planted in generated soaks by machine: none of them is explained.

A busy cluster offers many excuses (races, waits for the client's limit); the soak itself agrees,
apart from proved classes. The wrong decisions come by day.
"""

import json
from dataclasses import replace

import pytest

from app.analysis.replay.report import Agreement
from app.bootstrap import process_settings, replays, stores
from app.domain.values import json_tree
from tests import draws
from tests.conformance.soak_recordings import RELEASE, Load, record

pytestmark = pytest.mark.timeout(0)
"""Runs are bounded in number; how long they take is a matter of the machine."""

LOAD = Load(seed=101, seconds=40, pods=60, nodes=3, rate=8, burst=10)
EVICTION = "device-taint-eviction-controller"
NEXT = {"gpu-0": "gpu-1", "gpu-1": "gpu-2", "gpu-2": "gpu-0"}


def results(line):
    devices = ("status", "allocation", "devices")
    return json_tree.objects(line["responseObject"], *devices, "results")


def place(line):
    return line["objectRef"]["namespace"], line["objectRef"]["name"]


def about(line, resource):
    return line["objectRef"]["resource"] == resource


def give_another_device(lines):
    """A claim has the next device of the node, in all that is said of it."""
    claims = [line for line in lines if about(line, "resourceclaims")]
    chosen = next(
        place(line)
        for line in reversed(claims)
        if [result["device"] in NEXT for result in results(line)] == [True]
    )
    for line in claims:
        if place(line) == chosen:
            for result in results(line):
                result["device"] = NEXT[result["device"]]
    return lines


def bind_elsewhere(lines):
    """A pod is bound to another node than its claim, in all that is said of it."""
    binding = next(line for line in lines if line["objectRef"]["subresource"] == "binding")
    before = binding["requestObject"]["target"]["name"]
    after = "node-01" if before == "node-00" else "node-00"
    binding["requestObject"]["target"]["name"] = after
    for line in lines:
        tree = line["responseObject"]
        if place(line) == place(binding) and json_tree.text(tree, "spec", "nodeName") == before:
            tree["spec"]["nodeName"] = after
    return lines


def leave_an_eviction_out(lines):
    """An evicted pod is not evicted: nothing is said of its end, nor of its claim's."""
    first = next(
        number
        for number, line in enumerate(lines)
        if line["user"]["username"].endswith(EVICTION) and about(line, "pods")
    )
    namespace, pod = place(lines[first])

    def is_of_it(line):
        subject = json_tree.text(line["responseObject"], "involvedObject", "name")
        of_claim = about(line, "resourceclaims") and line["objectRef"]["name"].startswith(f"{pod}-")
        return place(line) == (namespace, pod) or of_claim or subject == pod

    return [line for n, line in enumerate(lines) if n < first or not is_of_it(line)]


def unaltered(lines):
    return lines


async def decided(alter, folder):
    path = record(folder, LOAD) / "audit.jsonl"
    lines = alter([json.loads(line) for line in path.read_text().splitlines()])
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    settings = replace(process_settings.settings(profile=RELEASE), decide_runs_max=8)
    store = stores.memory_store()
    history = await replays.load_files(store, settings, (path,))
    return await replays.decide(store, settings, history, "", lambda *_: None)


@draws.in_turn("wrongs")
@pytest.mark.parametrize("alter", [give_another_device, bind_elsewhere, leave_an_eviction_out])
async def test_wrong_decision_in_a_busy_cluster_is_unexplained(alter, tmp_path):
    assert not (await decided(alter, tmp_path)).explained


@draws.in_turn("ways")
async def test_busy_cluster_itself_agrees(tmp_path):
    report = await decided(unaltered, tmp_path)
    assert report.agreement in (Agreement.AGREES, Agreement.PROVED)
