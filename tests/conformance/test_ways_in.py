"""An honest fleet world accuses nobody, whichever way it takes into a history.

What is wrong within one snapshot of such a world is found. Rows come by day.
"""

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from app.adapters.history.opening import open_history
from app.adapters.history.reading import ReadOptions
from app.analysis.verify.invariants import ViolationKind
from app.bootstrap import process_settings, replays, stores
from app.domain.log import ObjectKey
from app.domain.log.records import Op
from app.domain.objects import registry as kinds
from app.domain.objects.profile import Profile
from app.service.replays.verifying import VerifyOutcome, VerifyReport
from app.settings import Settings
from tests import draws
from tests.conformance import ways_in
from tests.conformance.fleet_recordings import record
from tests.conformance.ways_in import Tree

pytestmark = pytest.mark.timeout(0)
"""Runs are bounded in number; how long they take is a matter of the machine."""

ACTS = 20


def settings_of(profile: Profile) -> Settings:
    return process_settings.settings(
        profile=profile.version, gates=[f"{name}=true" for name in profile.gates]
    )


def taken(seed: int, way: str, path: Path) -> tuple[Settings, Path]:
    """The settings of a world, and the folder of what a way leaves of its recording."""
    profile = record(path, seed, ACTS)
    folder = path / "way"
    folder.mkdir()
    ways_in.WAYS[way](path, folder)
    return settings_of(profile), folder


async def verified(settings: Settings, folder: Path) -> VerifyReport:
    store = stores.memory_store()
    history = await replays.load_files(store, settings, (folder,))
    return await replays.verify(store, settings, history, "", lambda *_: None)


@draws.in_turn("ways")
@pytest.mark.parametrize(
    ("seed", "way"),
    [
        (30, "requests"),
        (31, "requests"),
        (53, "without statuses"),
        (51, "without statuses"),
        *((seed, f"{number} snapshots") for seed in (32, 37, 38) for number in (2, 3, 5)),
        *((seed, "half and snapshot") for seed in (32, 36, 37, 41)),
    ],
)
async def test_way_into_a_history_accuses_nobody(seed, way, tmp_path):
    settings, folder = taken(seed, way, tmp_path)
    assert (await verified(settings, folder)).outcome is not VerifyOutcome.FAILED
    store = stores.memory_store()
    history = await replays.load_files(store, settings, (folder,))
    assert (await replays.decide(store, settings, history, "", lambda *_: None)).explained


def makes_slice(line: Tree) -> bool:
    return line["objectRef"]["resource"] == "resourceslices" and line["verb"] == "create"


@draws.in_turn("lines")
@pytest.mark.parametrize(
    ("seed", "lost"),
    [
        # A pod has devices of two pools, one of which lacks a slice: its other claim fits nowhere.
        (37, {("n1-0", 1)}),
        (37, {("n1-1", 1), ("n4-0", 2)}),
        # The slice is made anew under its name, which only an update shows.
        (12, {("n0-1", 2)}),
        (12, {("n3-0", 1), ("n0-1", 2)}),
    ],
)
async def test_honest_log_that_lost_creations_of_slices_does_not_fail(seed, lost, tmp_path):
    settings = settings_of(record(tmp_path, seed, 30))
    folder, times = tmp_path / "way", Counter[str]()
    folder.mkdir()
    kept = []
    for line in map(json.loads, (tmp_path / "audit.jsonl").read_text().splitlines()):
        name = line["objectRef"].get("name", "")
        times[name] += makes_slice(line)
        if not (makes_slice(line) and (name, times[name]) in lost):
            kept.append(json.dumps(line) + "\n")
    assert all(times[name] >= number for name, number in lost)
    (folder / "audit.jsonl").write_text("".join(kept))
    assert (await verified(settings, folder)).outcome is VerifyOutcome.PARTLY


def given(items: list[Tree]) -> list[Tree]:
    """The claims with devices, each of a single request and without shares."""
    claims = [each for each in items if each["kind"] == "ResourceClaim"]
    return [
        each for each in claims if len(results(each)) == 1 and "shareID" not in results(each)[0]
    ]


def results(claim: Tree) -> list[Tree]:
    return claim.get("status", {}).get("allocation", {}).get("devices", {}).get("results", [])


def give_twice(items: list[Tree]) -> Tree:
    """Gives the device of one claim to another one."""
    first, second = given(items)[-2:]
    results(second)[0].update({key: results(first)[0][key] for key in ("driver", "pool", "device")})
    return second


def move_pod(items: list[Tree]) -> Tree:
    """Binds a pod to a node that the devices of its claim are not on."""
    nodes = [each["metadata"]["name"] for each in items if each["kind"] == "Node"]
    pods = {each["metadata"]["uid"]: each for each in items if each["kind"] == "Pod"}
    pod, node = next(
        (pods[user["uid"]], pods[user["uid"]]["spec"]["nodeName"])
        for claim in reversed(given(items))
        if "metadata.name" in json.dumps(claim["status"]["allocation"])
        for user in claim["status"].get("reservedFor", ())
        if pods.get(user["uid"], {}).get("status", {}).get("phase") in ("Pending", "Running")
        and pods[user["uid"]]["spec"].get("nodeName")
    )
    pod["spec"]["nodeName"] = next(each for each in nodes if each != node)
    return pod


@draws.in_turn("wrongs")
@pytest.mark.parametrize("seed", [36, 37])
@pytest.mark.parametrize(
    ("wrong", "rule"),
    [(give_twice, "device-in-one-claim"), (move_pod, "pod-on-allocated-node")],
)
async def test_wrong_within_a_later_snapshot_fails(
    wrong: Callable[[list[Tree]], Tree], rule: str, seed: int, tmp_path: Path
) -> None:
    settings, folder = taken(seed, "3 snapshots", tmp_path)
    last = max(folder.iterdir())
    tree = json.loads(last.read_text())
    changed, newest = wrong(tree["items"]), max(map(ways_in.version, tree["items"]))
    changed["metadata"]["resourceVersion"] = str(newest + 1)
    last.write_text(json.dumps(tree))
    report = await verified(settings, folder)
    broken = [each for each in report.violations if each.kind is ViolationKind.BROKEN]
    assert {each.rule for each in broken} == {rule}
    assert changed["metadata"]["name"] in {key.name for each in broken for key in each.objects}


def left(folder: Path) -> tuple[set[ObjectKey], set[tuple[str, str]]]:
    """The objects that an import of files leaves, and the kinds of which some may be gone."""
    objects, doubted = set[ObjectKey](), set[tuple[str, str]]()
    with open_history(sorted(folder.iterdir()), ReadOptions()) as recorded:
        for each in recorded.records():
            match each.op:
                case Op.GAP:
                    doubted.add((each.resource, each.namespace))
                case Op.DELETED:
                    objects.discard(each.key)
                case Op.BASELINE | Op.ADDED | Op.MODIFIED:
                    objects.add(each.key)
    return objects, doubted


@draws.in_turn("ways")
@pytest.mark.parametrize(("seed", "number"), [(50, 3), (49, 2), (37, 5), (53, 3), (56, 2)])
def test_snapshots_leave_what_the_last_one_shows(seed: int, number: int, tmp_path: Path) -> None:
    _, folder = taken(seed, f"{number} snapshots", tmp_path)
    shown = {
        (each["kind"], each["metadata"].get("namespace", ""), each["metadata"]["name"])
        for each in json.loads(max(folder.iterdir()).read_text())["items"]
    }
    objects, doubted = left(folder)
    more = {
        each
        for each in objects
        if (kinds.find(each.group, each.resource).kind, *each[2:]) not in shown
    }
    assert len(objects) - len(more) == len(shown)
    assert {each[1:3] for each in more} <= doubted
