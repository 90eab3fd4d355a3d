"""What `why` is sure of in a lossy recording of a fleet world is what the whole recording shows.

The outcome of an object is compared, and the number of claims that held a device.
Rows come in turn.
"""

import json
import re
from pathlib import Path
from urllib.parse import urlencode

import pytest

from app.adapters.memory import MemoryLog, MemoryStore
from app.domain.objects.profile import Profile
from tests import draws
from tests.api.serving import Server, serving
from tests.conformance import ways_in
from tests.conformance.fleet_recordings import record
from tests.conformance.ways_in import Tree
from tests.imports import import_once

pytestmark = pytest.mark.timeout(0)
"""Runs are bounded in number; how long they take is a matter of the machine."""

ACTS = 20
WHY = "/redra/v1/histories/default/why"
ASKED = {"Pod": "pods", "ResourceClaim": "resourceclaims", "Node": "nodes"}


def cut(recording: Path, until: int, out: Path) -> Path:
    """All watch streams up to a version."""
    out.mkdir()
    for path in sorted((recording / "watch").iterdir()):
        lines = path.read_text().splitlines(keepends=True)
        kept = [line for line in lines if ways_in.version(json.loads(line)["object"]) <= until]
        (out / path.name).write_text("".join(kept))
    return out


def subjects(lines: list[Tree], until: int) -> list[tuple[str, str, str]]:
    """The pods, claims and nodes that ever existed, and a device of each slice."""
    asked = set()
    for line in lines:
        tree = line["object"]
        metadata, kind = tree["metadata"], tree["kind"]
        if ways_in.version(tree) > until:
            break
        if kind in ASKED:
            asked.add((ASKED[kind], metadata.get("namespace", "default"), metadata["name"]))
        if kind == "ResourceSlice" and tree["spec"].get("devices"):
            spec = tree["spec"]
            parts = spec["driver"], spec["pool"]["name"], spec["devices"][0]["name"]
            asked.add(("device", "default", "/".join(parts)))
    return sorted(asked)


async def store_of(profile: Profile, folder: Path) -> MemoryStore:
    store = MemoryStore()
    settings = profile.settings()
    await import_once(
        MemoryLog(store), [folder], name="default", profile=profile, settings=settings
    )
    return store


async def answer(server: Server, subject: tuple[str, str, str]) -> Tree | None:
    """What `why` answers; None where it knows no such object."""
    words = dict(zip(("kind", "namespace", "name"), subject, strict=True))
    response = await server.raw("GET", f"{WHY}?{urlencode(words)}")
    assert response.status_code in (200, 404), (subject, response.text)
    return response.json() if response.status_code == 200 else None


def holders(body: Tree) -> tuple[int, bool] | None:
    """The number of claims that held the device, and whether that is said without reserve."""
    for reason in body["reasons"].get("children", ()):
        text = reason["text"]
        if "held it" in text:
            count = re.search(r"(\d+) claims? held it", text)
            return int(count[1]) if count else 0, "as far as" not in text
    return None


ROWS = [
    *((seed, f"{number} snapshots") for seed, number in ((50, 3), (49, 2), (37, 5))),
    (51, "requests"),
    (52, "shown changes"),
    (51, "nine of ten 1"),
    *((37, f"half and {what}") for what in ("snapshot", "pods", "a namespace")),
    (3, "half and snapshot"),
]


@draws.in_turn("ways")
@pytest.mark.parametrize(("seed", "way"), ROWS)
async def test_whole_recording_shows_what_is_sure_of_a_lossy_one(seed, way, tmp_path):
    profile = record(tmp_path, seed, ACTS)
    lines = ways_in.changes(tmp_path)
    until = ways_in.version(lines[-1]["object"])
    if way.startswith("half") or way.endswith("snapshots"):
        many = 3 if way.startswith("half") else int(way[0])
        until = ways_in.moments(lines, many)[-1]
    folder = tmp_path / "way"
    folder.mkdir()
    ways_in.WAYS[way](tmp_path, folder)
    lossy = await store_of(profile, folder)
    whole = await store_of(profile, cut(tmp_path, until, tmp_path / "whole"))
    count, wrong = 0, []
    async with serving(store=lossy) as one, serving(store=whole) as other:
        for subject in subjects(lines, until):
            body = await answer(one, subject)
            if body is None or body["certainty"] != "sure":
                continue
            truth = await answer(other, subject)
            assert truth is not None, subject
            count += 1
            if body["outcome"] != truth["outcome"]:
                wrong.append((subject, body["outcome"], truth["outcome"]))
            if (number := holders(body)) and number[1] and number[0] != holders(truth)[0]:
                wrong.append((subject, number, holders(truth)))
    assert not wrong
    assert count or not way.endswith(("snapshots", "snapshot"))
