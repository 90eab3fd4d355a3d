"""`redra minimise` at the command line: each predicate on a recording, interruption, refusals."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from app.adapters.history.formats.bundle import BundleReader
from app.adapters.history.limits import ImportLimits
from app.bootstrap.executors import DaskExecutor
from app.bootstrap.minimising import searching, sharing
from app.bootstrap.minimising.judging import Judge
from app.domain.log import Event, EventType
from tests import draws
from tests.command_line import pytest_command, redra
from tests.conformance.handwritten.recordings import (
    ADMIN,
    EVICTION,
    Recorder,
    allocation,
    exactly,
    pool,
    result,
)
from tests.redra_process import forked_dask_workers
from tests.shared_data import shared_path
from tests.simulation import planted_soak

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def recording() -> Path:
    """A recorded cluster whose scheduler does not see rules."""
    return shared_path("histories", "e-taints-rules-ignored")


def minimise(source: Path, keep: str, file: Path, *more: object) -> dict[str, object]:
    file.parent.mkdir(exist_ok=True)
    code, out, error = redra(
        "minimise", source, "--keep", keep, "-o", file, "--output", "json", *more
    )
    assert code == 0, error
    report: dict[str, object] = json.loads(out)
    return report


@draws.in_turn("ways")
@pytest.mark.parametrize(
    ("keep", "said"),
    [
        ("violation placement-respects-taints", "DeviceTaintRule maintenance taints it"),
        ("evicted", "DeletionByDeviceTaintManager"),
        draws.repeated("differs profile=1.36.2,1.37 moved", "moved"),
    ],
)
def test_recording_comes_down_to_a_screen(
    recording: Path, tmp_path: Path, keep: str, said: str
) -> None:
    file = tmp_path / "small.zip"
    report = minimise(recording, keep, file)
    assert report["events"] <= 30 < report["eventsBefore"]
    assert report["minimal"] is True
    assert said in str(report["sighting"])
    code, out, _ = redra("replay", file, "--mode", "verify", "-o", "json")
    assert code == 0, out


def check_small_difference(
    recorded: Path, tmp_path: Path, *words: str, keep: str = "quirk c24=off"
) -> dict[str, Any]:
    """Minimise a recording to a difference; its test decides it as it is decided here.

    Returns the report of deciding what is left.
    """
    small, test = tmp_path / "small.zip", tmp_path / "test_small.py"
    report = minimise(recorded, f"difference '{keep}'", small, *words)
    assert report["events"] <= 30
    assert report["minimal"] is True
    _, out, _ = redra("replay", small, "--mode", "decide", "-o", "json")
    decided: dict[str, Any] = json.loads(out)
    assert keep in {each["class"] for each in decided["differences"]}
    assert redra("export", small, "--as", "pytest", "-o", test)[0] == 0
    done = subprocess.run(pytest_command(test), cwd=tmp_path, capture_output=True, check=False)
    assert done.returncode == 0, done.stdout.decode()
    return decided


def write_of_a_scheduler_that_sees_rules(path: Path) -> Path:
    """A rule taints the first of two devices, and the scheduler takes the second one."""
    recorder, driver = Recorder("a scheduler that sees rules"), "gpu.example.com"
    recorder.node("node-0")
    recorder.device_class("gpu", f"device.driver == '{driver}'")
    devices = [{"name": "gpu-0"}, {"name": "gpu-1"}]
    recorder.slice("gpus", driver, pool("node-0"), devices, nodeName="node-0")
    recorder.wait(2)
    selector = {"driver": driver, "pool": "node-0", "device": "gpu-0"}
    taint = {"key": "example.com/broken", "effect": "NoSchedule"}
    recorder.create(
        ADMIN, "DeviceTaintRule", "broken", spec={"deviceSelector": selector, "taint": taint}
    )
    recorder.wait(0.01)
    condition = {"type": "EvictionInProgress", "status": "False", "reason": "OtherEffect"}
    condition["message"] = "Eviction only happens for the NoExecute effect."
    rule = recorder.get("DeviceTaintRule", "broken")
    rule["status"] = {"conditions": [{**condition, "lastTransitionTime": recorder.seconds}]}
    recorder.update(EVICTION, rule, "status", "patch")
    recorder.wait(2)
    recorder.claim("web", requests=[exactly("gpu", "gpu")])
    recorder.wait(1)
    recorder.pod("web", resourceClaims=[{"name": "gpu", "resourceClaimName": "web"}])
    recorder.nominate("web", "node-0")
    chosen = allocation("node-0", result("gpu", driver, "node-0", "gpu-1"))
    recorder.reserve("web", "web", {**chosen, "allocationTimestamp": recorder.seconds})
    recorder.bind("web", "node-0")
    recorder.start("web")
    return recorder.write(path)


def write_eviction(path: Path, devices_of: Mapping[str, str]) -> Path:
    """Pods get devices in this order; then a rule taints that of the pod web, which is evicted."""
    recorder, driver = Recorder("an eviction by another order"), "gpu.example.com"
    recorder.node("node-0")
    recorder.device_class("gpu", f"device.driver == '{driver}'")
    devices = [{"name": "gpu-0"}, {"name": "gpu-1"}]
    recorder.slice("gpus", driver, pool("node-0"), devices, nodeName="node-0")
    recorder.wait(2)
    for name, device in devices_of.items():
        recorder.claim(name, requests=[exactly("gpu", "gpu")])
        recorder.pod(name, resourceClaims=[{"name": "gpu", "resourceClaimName": name}])
        recorder.wait(0.1)
        recorder.nominate(name, "node-0")
        recorder.reserve(name, name, allocation("node-0", result("gpu", driver, "node-0", device)))
        recorder.bind(name, "node-0")
        recorder.start(name)
    recorder.wait(2)
    selector = {"driver": driver, "pool": "node-0", "device": devices_of["web"]}
    taint = {"key": "example.com/broken", "effect": "NoExecute"}
    recorder.create(
        ADMIN, "DeviceTaintRule", "broken", spec={"deviceSelector": selector, "taint": taint}
    )
    recorder.wait(0.02)
    message = "Device Taint manager: deleting due to NoExecute taint"
    condition = {"type": "DisruptionTarget", "status": "True", "message": message}
    recorder.pod_status(EVICTION, "web", {**condition, "reason": "DeletionByDeviceTaintManager"})
    recorder.wait(5)
    return recorder.write(path)


EVICTED_BY_ANOTHER_ORDER = {"older": "gpu-1", "web": "gpu-0"}
"""The older pod gets the device that a rule taints, if the whole is decided here."""


@draws.in_turn("ways")
@pytest.mark.parametrize(
    ("devices_of", "needed"),
    [
        (
            EVICTED_BY_ANOTHER_ORDER,
            {"devicetaintrules", "resourceslices", "resourceclaims"},
        ),
        # Alone, too, the pod gets the other device here, unless its placement is taken as it was.
        ({"web": "gpu-1"}, {"devicetaintrules", "resourceclaims"}),
    ],
)
def test_recorded_eviction_comes_down_to_one_as_it_is_decided(
    devices_of: Mapping[str, str], needed: set[str], tmp_path: Path
) -> None:
    small = tmp_path / "small.zip"
    report = minimise(write_eviction(tmp_path / "audit.jsonl", devices_of), "evicted web", small)
    check_is_decided(report)
    events = [event for page in bundled(small) for event in page]
    assert needed <= {event.key.resource for event in events}
    evictions = [event for event in events if event.type is EventType.DECISION_RECORDED]
    assert any(event.key.name == "web" for event in evictions)
    _, out, _ = redra("replay", small, "--mode", "verify", "-o", "json")
    assert json.loads(out)["invariants"]["violations"] == 0, out


def check_is_decided(report: Mapping[str, object]) -> None:
    wanted = ("recorded", "made here", True)
    assert (report["decisionsBefore"], report["decisions"], report["minimal"]) == wanted


READY = {
    "allocatable": {"cpu": "8", "pods": "110"},
    "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
}


def test_wait_that_a_controller_here_ends_at_once_is_decided_without_it(tmp_path: Path) -> None:
    """The controller of nodes took the taint away after seconds; here it does so at once."""
    recorder = Recorder("a node that is not ready yet")
    taint = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
    recorder.create(ADMIN, "Node", "node-0", spec={"taints": [taint]}, status=READY)
    recorder.pod("web")
    recorder.fail(
        "web",
        "0/1 nodes are available: 1 node(s) had untolerated taint(s). "
        "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling.",
    )
    small = tmp_path / "small.zip"
    recording = recorder.write(tmp_path / "audit.jsonl")
    check_is_decided(minimise(recording, "unschedulable web", small))
    nodes = [event.object for page in bundled(small) for event in page if event.key[1] == "nodes"]
    assert [node["spec"]["taints"] for node in nodes] == [[taint]]


def test_recorded_cause_is_kept_where_a_scheduler_here_gives_another(tmp_path: Path) -> None:
    recorder = Recorder("a scheduler that knows of a full node what is not recorded")
    taint = {"key": "example.com/mine", "effect": "NoSchedule"}
    recorder.create(ADMIN, "Node", "node-0", spec={"taints": [taint]}, status=READY)
    recorder.pod("web")
    recorder.fail("web", "0/1 nodes are available: 1 Insufficient cpu.")
    recording = recorder.write(tmp_path / "audit.jsonl")
    report = minimise(recording, "unschedulable web", tmp_path / "small.zip")
    assert (report["decisions"], report["minimal"]) == ("recorded", True)
    assert "1 Insufficient cpu" in str(report["sighting"])


def bundled(path: Path) -> Iterator[Sequence[Event]]:
    return BundleReader(path, ImportLimits()).batches()


def check_stays_explained(decided: dict[str, Any]) -> None:
    """What was explained about the pod of the difference and its claims stays so.

    Of other objects something may be left out that redra's controllers then write, such as the
    status of a rule.
    """
    about = {each["subject"] for each in decided["differences"] if each["class"] == "quirk c24=off"}
    assert about
    assert {each["class"] for each in decided["differences"] if each["subject"] in about} <= {
        "quirk c24=off",
        "after the end",
    }


@draws.in_turn("ways")
@pytest.mark.parametrize("recorded", ["by hand", *(("e-taints",) if draws.WHOLE else ())])
def test_difference_comes_down_to_a_screen(recorded: str, tmp_path: Path) -> None:
    """The scheduler was a 1.36.2 that saw rules.

    The search in a real recording takes 20 s of CPU, and comes with more draws.
    """
    if recorded == "by hand":
        path = write_of_a_scheduler_that_sees_rules(tmp_path / "audit.jsonl")
    else:
        path = shared_path("histories", recorded)
    check_stays_explained(check_small_difference(path, tmp_path, "--profile", "1.36.2"))


@pytest.mark.skipif(not draws.WHOLE, reason="a search of 20 s of CPU comes with more draws")
def test_race_in_a_full_cluster_comes_down_to_a_screen(tmp_path: Path) -> None:
    """Every partition is held: no claim and no device can go without the other."""
    decided = check_small_difference(
        shared_path("histories", "b-mig-partitions"), tmp_path, keep="race"
    )
    races = [each for each in decided["differences"] if each["class"] == "race"]
    whole = ("ov-13", "refill-02")
    assert all(any(name in each["subject"] for name in whole) for each in races)


@pytest.mark.skipif(not draws.WHOLE, reason="a search of 80 s of CPU comes with more draws")
def test_difference_that_rests_on_all_that_was_placed_begins_with_that(tmp_path: Path) -> None:
    path = shared_path("histories", "i-soak-short")
    check_stays_explained(check_small_difference(path, tmp_path))


@draws.in_turn("ends")
@pytest.mark.timeout(400)
def test_result_is_the_same_with_workers_one_of_which_dies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording = write_eviction(tmp_path / "audit.jsonl", EVICTED_BY_ANOTHER_ORDER)
    # The name of a file stands in its manifest.
    file = tmp_path / "alone" / "small.zip"
    alone = minimise(recording, "evicted web", file)
    monkeypatch.setattr(sharing, "WORTH_SECONDS", 0)
    sent, killed = 0, 0
    run = DaskExecutor.map

    def count(self, function, bundles, tasks, on_message=None):
        nonlocal sent, killed
        sent += len(tasks)
        if not killed and sent > 10:
            killed = next(iter(self._client.run(os.getpid).values()))
            os.kill(killed, signal.SIGKILL)
        return run(self, function, bundles, tasks, on_message)

    with mock.patch.object(DaskExecutor, "map", count), forked_dask_workers():
        together = minimise(recording, "evicted web", tmp_path / "small.zip", "--workers", 2)
    assert killed, f"{sent} candidates were sent"
    assert file.read_bytes() == (tmp_path / "small.zip").read_bytes()
    assert (alone["minimal"], together["minimal"]) == (True, True)


@pytest.fixture
def soak(tmp_path: Path) -> Iterator[Path]:
    """A short history that breaks a rule, on the engine that breaks it."""
    with planted_soak.planted("unprotected"):
        bundle = tmp_path / "soak.zip"
        planted_soak.write(planted_soak.soak(1, 15), bundle)
        yield bundle


@draws.in_turn("ends")
def test_interrupted_search_goes_on_where_it_was(soak: Path, tmp_path: Path) -> None:
    folder = tmp_path / "made"
    folder.mkdir()
    small, keep = folder / "small.zip", "violation"
    judged, count = Judge.judge, 0

    def interrupt(self, candidate):
        nonlocal count
        count += 1
        if count > 20:
            raise KeyboardInterrupt
        return judged(self, candidate)

    with mock.patch.object(Judge, "judge", interrupt):
        code, _, error = redra("minimise", soak, "--keep", keep, "-o", small)
    assert code == 130
    assert "the same command continues from here" in error
    assert [path.name for path in folder.iterdir()] == ["small.zip.trials"]
    # A process that is killed in the middle of a line loses that line alone.
    with (folder / "small.zip.trials").open("ab") as file:
        file.write(b'["abc')
    resumed = minimise(soak, keep, small)
    again = minimise(soak, keep, tmp_path / "small.zip")
    assert small.read_bytes() == (tmp_path / "small.zip").read_bytes()
    assert [path.name for path in folder.iterdir()] == ["small.zip"]
    assert resumed["trials"] < again["trials"]
    assert resumed["trials"] + 20 >= again["trials"]


def test_rest_of_a_recording_is_decided_where_that_shows_it_too(tmp_path: Path) -> None:
    """As recorded, the message must stay; with the node gone, redra's scheduler gives it too."""
    recorder = Recorder("a scheduler that does not see a node")
    recorder.node("node-0")
    recorder.pod("web")
    recorder.fail("web", "no nodes available to schedule pods")
    recording = recorder.write(tmp_path / "audit.jsonl")
    first = minimise(recording, "unschedulable", tmp_path / "small.zip")
    again = minimise(tmp_path / "small.zip", "unschedulable", tmp_path / "smaller.zip")
    assert (first["decisionsBefore"], first["decisions"]) == ("recorded", "made here")
    # The namespace and the pod.
    assert (first["inputs"], again["inputs"]) == (2, 2)
    assert (first["minimal"], again["minimal"]) == (True, True)
    code, out, _ = redra("replay", tmp_path / "small.zip", "--mode", "verify", "-o", "json")
    assert code == 0, out


@draws.in_turn("ways")
def test_time_that_is_over_is_said(soak: Path, tmp_path: Path) -> None:
    clock = iter(range(0, 10_000, 10))
    with mock.patch.object(searching.time, "monotonic", side_effect=clock):
        code, out, error = redra(
            "minimise", soak, "--keep", "violation", "-o", tmp_path / "s.zip", "--seconds", "60"
        )
    assert code == 0, error
    assert "not minimal: the time ran out" in out
    assert (tmp_path / "s.zip").exists()


@draws.in_turn("ways")
def test_command_that_ends_with_0_is_a_predicate(soak: Path, tmp_path: Path) -> None:
    shell = "sh -c 'unzip -p {} events.jsonl | grep -q node-3'"
    report = minimise(soak, f"command {shell}", tmp_path / "small.zip")
    assert (report["minimal"], report["objects"]) == (True, 1)


@draws.in_turn("ways")
def test_command_that_takes_too_long_does_not_show_it(
    soak: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REDRA_MINIMISE_COMMAND_SECONDS", "0.2")
    code, out, error = redra(
        "minimise", soak, "--keep", "command sleep 30 #", "-o", tmp_path / "small.zip"
    )
    assert (code, out) == (2, "")
    assert "does not show it: command sleep 30" in error


@draws.in_turn("refusals")
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--keep", "violation device-in-one-claim"), "does not show it: violation"),
        (("--keep", "unschedulable nobody"), "does not show it: unschedulable nobody"),
        (("--keep", "command /no/such/program"), "the command cannot be run"),
        (("--keep", "nonsense"), "is not a predicate"),
        (("--keep", "evicted", "--profile", "9"), "there is no profile '9'"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(
    soak: Path, tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    code, out, error = redra("minimise", soak, *words, "-o", tmp_path / "small.zip")
    assert (code, out) == (2, "")
    assert said in error.splitlines()[-1]
    assert [path.name for path in tmp_path.iterdir()] == ["soak.zip"]


@pytest.mark.parametrize("switch", ["profile=1.2,1.37", "quirk=zz", "gate=Nope"])
def test_switch_that_does_not_exist_is_refused_before_any_work(tmp_path: Path, switch: str) -> None:
    keep, small = f"differs {switch}", tmp_path / "small.zip"
    code, out, error = redra("minimise", tmp_path / "none.zip", "--keep", keep, "-o", small)
    assert (code, out) == (2, "")
    assert error.startswith("redra: --keep: there is no "), error
    assert len(error.splitlines()) == 1


def test_place_that_cannot_be_written_is_refused_before_any_work(tmp_path: Path) -> None:
    code, _, error = redra(
        "minimise", tmp_path, "--keep", "evicted", "-o", tmp_path / "none" / "small.zip"
    )
    assert code == 2
    assert error == f"redra: {tmp_path / 'none'}: there is no such folder\n"


def test_help_says_what_is_kept_without_because() -> None:
    code, out, error = redra("minimise", "--help")
    assert (code, error) == (0, "")
    text = " ".join(out.replace("│", " ").split())
    assert "Without `because`" in text
    assert "main cause of the decision" in text
