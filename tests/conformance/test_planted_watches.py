"""Wrongs that are planted into the watch streams of a fleet world are named.

Watch streams have no authors, no requests and only whole seconds. What they show all the same must
be judged: the alterations keep all later lines of an object consistent, as a scheduler that does
wrong would leave them, so that no two lines contradict each other.
"""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from app.bootstrap import process_settings, replays, stores
from app.domain.objects.profile import Profile
from app.service.replays.verifying import VerifyOutcome, VerifyReport
from tests import draws
from tests.conformance.fleet_recordings import record

pytestmark = pytest.mark.timeout(0)
"""Runs are bounded in number; how long they take is a matter of the machine."""

SEED, ACTS = 33, 40

Streams = dict[str, list[dict[str, Any]]]


def results_in(tree: dict[str, Any]) -> list[dict[str, Any]]:
    """The allocation results of a claim."""
    status = tree.get("status") or {}
    results = (status.get("allocation") or {}).get("devices", {}).get("results", [])
    return [each for each in results if not each.get("adminAccess")]


def allocated(streams: Streams) -> Iterator[dict[str, Any]]:
    """The claims with one device, each as its first line with an allocation shows it."""
    seen = set()
    for line in streams["resourceclaims"]:
        claim = line["object"]
        results = results_in(claim)
        if claim["metadata"]["uid"] in seen or len(results) != 1 or "shareID" in results[0]:
            continue
        seen.add(claim["metadata"]["uid"])
        yield claim


def give(streams: Streams, claim: dict[str, Any], pool: str, device: str) -> None:
    """Lets all lines of a claim show another device."""
    for line in streams["resourceclaims"]:
        if line["object"]["metadata"]["uid"] == claim["metadata"]["uid"]:
            for result in results_in(line["object"]):
                result.update(pool=pool, device=device)


def give_an_unknown_device(streams: Streams) -> str:
    """A device that no slice publishes."""
    claim = next(allocated(streams))
    give(streams, claim, results_in(claim)[0]["pool"], "device-of-nobody")
    return str(claim["metadata"]["name"])


def give_a_device_twice(streams: Streams) -> str:
    """The device of a claim that is still allocated, of the same pool."""
    held: dict[tuple[str, str], str] = {}
    for line in streams["resourceclaims"]:
        claim = line["object"]
        uid = claim["metadata"]["uid"]
        results = results_in(claim)
        if line["type"] == "DELETED" or not results:
            held = {place: holder for place, holder in held.items() if holder != uid}
            continue
        if uid in held.values():
            continue
        if len(results) == 1 and "shareID" not in results[0]:
            pool = results[0]["pool"]
            others = [place for place in held if place[0] == pool]
            if others:
                give(streams, claim, *others[0])
                return str(claim["metadata"]["name"])
        if all("shareID" not in each and "consumedCapacity" not in each for each in results):
            held.update({(each["pool"], each["device"]): uid for each in results})
    raise AssertionError("no two claims have devices of one pool at a time")


def give_a_device_of_another_kind(streams: Streams) -> str:
    """A published device of the same pool that the selectors of the request leave out."""
    published: dict[str, set[str]] = {}
    for line in streams["resourceslices"]:
        spec = line["object"]["spec"]
        names = {device["name"] for device in spec.get("devices", ())}
        published.setdefault(spec["pool"]["name"], set()).update(names)
    for claim in allocated(streams):
        (result,) = results_in(claim)
        kind = result["device"].rpartition("-")[0]
        others = {name for name in published[result["pool"]] if not name.startswith(kind)}
        if others:
            give(streams, claim, result["pool"], min(others))
            return str(claim["metadata"]["name"])
    raise AssertionError("no pool has devices of two kinds")


def bind_elsewhere(streams: Streams) -> str:
    """A node on which the devices of the pod's claims are not."""
    nodes = sorted({line["object"]["metadata"]["name"] for line in streams["nodes"]})
    users = {
        consumer["name"]
        for claim in allocated(streams)
        if claim["status"]["allocation"].get("nodeSelector")
        for consumer in claim["status"].get("reservedFor", ())
    }
    bound = next(
        line["object"]
        for line in streams["pods"]
        if line["object"]["spec"].get("nodeName") and line["object"]["metadata"]["name"] in users
    )
    other = next(node for node in nodes if node != bound["spec"]["nodeName"])
    for line in streams["pods"]:
        pod = line["object"]
        if pod["metadata"]["uid"] == bound["metadata"]["uid"] and pod["spec"].get("nodeName"):
            pod["spec"]["nodeName"] = other
    return str(bound["metadata"]["name"])


async def verified(profile: Profile, folder: Path) -> VerifyReport:
    """What `verify` says of watch streams in a folder."""
    settings = process_settings.settings(
        profile=profile.version, gates=[f"{gate}=true" for gate in profile.gates]
    )
    store = stores.memory_store()
    history = await replays.load_files(store, settings, (folder,))
    return await replays.verify(store, settings, history, "", lambda *_: None)


def accused(report: VerifyReport) -> str:
    """The objects of broken rules, and of allocations that are chosen otherwise."""
    broken = [each.objects for each in report.violations if each.kind.is_failure]
    return f"{broken} {report.to_json()['allocations']['differences']}"


@draws.in_turn("wrongs")
@pytest.mark.parametrize(
    "plant",
    [
        give_an_unknown_device,
        give_a_device_of_another_kind,
        give_a_device_twice,
        bind_elsewhere,
    ],
)
async def test_wrong_that_is_planted_into_watch_streams_is_named(
    plant: Callable[[Streams], str], tmp_path: Path
) -> None:
    profile = record(tmp_path, SEED, ACTS)
    files = {path.stem: path for path in (tmp_path / "watch").iterdir()}
    streams = {
        name: [json.loads(line) for line in path.read_text().splitlines()]
        for name, path in files.items()
    }
    honest = await verified(profile, tmp_path / "watch")
    assert honest.outcome is not VerifyOutcome.FAILED
    name = plant(streams)
    assert name not in accused(honest)
    for stream, lines in streams.items():
        files[stream].write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    report = await verified(profile, tmp_path / "watch")
    assert report.outcome is VerifyOutcome.FAILED
    assert name in accused(report)
