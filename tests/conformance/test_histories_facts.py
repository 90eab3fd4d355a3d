"""The facts counted in the recordings at named moments have the same counts after an import."""

import pytest

from projections.objects import ObjectsProjection
from tests.conformance import recordings
from tests.conformance.recordings import RECORDINGS
from tests.shared_data import shared_path

CLAIMS = ("resource.k8s.io", "resourceclaims")
WITH_CHECKPOINTS = tuple(name for name in RECORDINGS if name != "i-soak-short")
"""The soak was too random for moments with names."""


def checkpoints(name: str) -> list[tuple[int, list[int], str]]:
    """Version, the six counts, and a description of the moment, from the table of FACTS.md."""
    text = shared_path("histories", "FACTS.md").read_text()
    section = text.split(f"\n## {name} — ")[1].split("\n## ")[0]
    found = []
    for line in section.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 9 and cells[0].startswith("+"):
            found.append((int(cells[1]), [int(cell) for cell in cells[2:8]], cells[8]))
    assert found, f"no checkpoints of {name}"
    return found


def counts(objects: ObjectsProjection) -> list[int]:
    pods = [objects.get(key) for key in objects.keys("", "pods")]
    claims = [objects.get(key) for key in objects.keys(*CLAIMS)]
    allocations = [
        claim["status"]["allocation"]
        for claim in claims
        if claim.get("status", {}).get("allocation")
    ]
    return [
        len(pods),
        sum(bool(pod["spec"].get("nodeName")) for pod in pods),
        len(claims),
        len(allocations),
        sum(len(found.get("devices", {}).get("results", [])) for found in allocations),
        sum(len(claim.get("status", {}).get("reservedFor") or []) for claim in claims),
    ]


@pytest.mark.parametrize("name", WITH_CHECKPOINTS)
async def test_counts_at_every_checkpoint(name):
    paths = [shared_path("histories", name, part) for part in recordings.WAYS["joined"]]
    imported = await recordings.import_paths(paths)
    objects = ObjectsProjection()
    events = iter(
        (int(event.stamp.origin.resource_version), event)
        for event in imported.events
        if event.is_about_object and event.stamp.origin.resource_version
    )
    pending = next(events, None)
    different = []
    for version, expected, moment in checkpoints(name):
        while pending is not None and pending[0] <= version:
            objects.fold(pending[1])
            pending = next(events, None)
        found = counts(objects)
        if found != expected:
            different.append(f"{moment} (RV {version}): {found} instead of {expected}")
    assert different == []


@pytest.mark.parametrize("name", RECORDINGS)
async def test_changes_per_kind_are_those_that_were_counted(name):
    """Added, modified and deleted objects of each kind, from the streams alone."""
    paths = [shared_path("histories", name, part) for part in recordings.WAYS["watch"]]
    imported = await recordings.import_paths(paths)
    text = shared_path("histories", "FACTS.md").read_text()
    section = text.split(f"\n## {name} — ")[1].split("\n## ")[0]
    table = section.split("| kind | added | modified | deleted | left |")[1]
    kinds = {kind.resource: kind.ops for kind in imported.report.kinds}
    compared = 0
    for line in table.splitlines()[2:]:
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) != 5:
            break
        resource, added, modified, deleted, _ = cells
        ops = kinds.get(resource, {})
        found = (
            ops.get("ADDED", 0) + ops.get("BASELINE", 0),
            ops.get("MODIFIED", 0),
            ops.get("DELETED", 0),
        )
        assert found == (int(added), int(modified), int(deleted)), resource
        compared += 1
    assert compared >= 5
