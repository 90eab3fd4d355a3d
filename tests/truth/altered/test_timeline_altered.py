"""Timelines of altered recordings have a row for each change of the altered lines, and no other.

Of recordings that lack lines, bodies or kinds, each row is what the whole recording shows, or it is
doubted. Rows come by day.
"""

import random

import pytest

from tests import draws
from tests.adversary.catalogue import MIG, QUICKSTART, TAINTS, TPU
from tests.adversary.log import Json, Log
from tests.adversary.lossy import level
from tests.adversary.running import recording
from tests.truth.altered import timelines
from tests.truth.altered.asking import imported
from tests.truth.altered.drawing import ROWS, altered
from tests.truth.altered.lines import is_write, key_of
from tests.truth.altered.recorded import until
from tests.truth.altered.served import served
from tests.truth.altered.test_why_blind import without

ALL = (QUICKSTART, TAINTS, TPU, MIG)
LAST = 330
KINDS = ("pods", "resourceclaims", "resourceslices", "nodes", "deviceclasses")


def whole(name: str) -> Log:
    return until(name, min(LAST, len(recording(name).lines) - 1))


async def rows(log: Log, folder) -> list[Json]:
    return timelines.rows_of(await imported(log, folder))


@draws.BY_DAY
@pytest.mark.parametrize(
    ("title", "name"), [(title, name) for title, names in ROWS.items() for name in names]
)
async def test_timeline_has_the_changes_of_the_altered_lines(title, name, tmp_path):
    log, _, _, gone = altered(name, title, 0)
    entries = await rows(log, tmp_path)
    assert list(timelines.differences(log.lines, entries)) == []
    assert entries
    assert [one for one in gone if one in str(entries)] == []


@draws.BY_DAY
@pytest.mark.parametrize("title", ["without_rule", "freed", "with_node"])
async def test_timeline_of_the_unaltered_recording_is_noticed(title, tmp_path):
    """The comparison with the altered lines is not blind to what the alteration changes."""
    name = ROWS[title][0]
    log, line, _, _ = altered(name, title, 0)
    entries = await rows(until(name, recording(name).lines.index(line)), tmp_path)
    assert list(timelines.differences(log.lines, entries))


@draws.BY_DAY
@pytest.mark.parametrize("seed", draws.seeds(3))
@pytest.mark.parametrize("name", ALL)
async def test_row_without_its_line_is_what_all_lines_show_or_doubted(name, seed, tmp_path):
    lines = whole(name).lines
    pick = random.Random(f"{name} timeline {seed}")
    gone = pick.choice(
        [
            number
            for number, line in enumerate(lines)
            if is_write(line) and line["objectRef"]["resource"] in timelines.JUDGED
        ]
    )
    left = await rows(Log([line for line in lines if line is not lines[gone]]), tmp_path)
    assert timelines.undoubted(lines, left) == [], lines[gone]["auditID"]
    # All other rows are as they were, and sure: a doubt of everything would be no answer.
    assert timelines.concerned(lines, left) <= {key_of(lines[gone])}, lines[gone]["auditID"]


def _bindings(line: Json) -> bool:
    return bool(line["objectRef"].get("subresource") == "binding")


def _deletions(line: Json) -> bool:
    meta = (line.get("responseObject") or {}).get("metadata") or {}
    return bool(line["verb"] == "delete" and meta.get("deletionGracePeriodSeconds"))


@pytest.mark.parametrize(
    ("name", "is_lost", "kind", "path"),
    [
        (TAINTS, _bindings, "PodScheduled", "spec.nodeName"),
        (QUICKSTART, _deletions, "PodDeletionAsked", "metadata.deletionTimestamp"),
    ],
)
async def test_kubelet_that_shows_a_lost_request_is_not_its_author(
    name, is_lost, kind, path, tmp_path
):
    """Its next write of the status shows the node or the deletion, which no status sets."""
    lines = until(name, 230).lines
    about = next(line for line in lines if is_write(line) and is_lost(line))["objectRef"]
    lost = {line["auditID"] for line in lines if is_lost(line) and line["objectRef"] == about}
    log = Log([line for line in lines if line["auditID"] not in lost])
    later = (
        number
        for number, line in enumerate(log.lines)
        if line["user"]["username"].startswith("system:node:")
        and line["objectRef"].get("name") == about["name"]
        and line["objectRef"].get("namespace") == about["namespace"]
        and (path != "metadata.deletionTimestamp" or _is_ending(line))
    )
    log.cut(next(later) + 1)
    async with served(log, tmp_path) as history:
        about = {"namespace": about["namespace"], "name": about["name"]}
        answer = await history.ask("timeline", kind=kind, resource="pods", **about)
        (row,) = answer["items"]
        fields = (await history.ask("object", kind="pods", **about))["fields"]
        page = (await history.server.raw("GET", f"/ui/h/default/timeline?kind={kind}")).text
    assert row["actor"] == "redra:import"
    assert set(row["doubt"].split(",")) >= {"collapsed"}
    assert [one["actor"] for one in fields if one["path"] == path] == ["redra:import"]
    assert "unrecorded" in page


def _is_ending(line: Json) -> bool:
    return "deletionTimestamp" in line["responseObject"]["metadata"]


@draws.BY_DAY
@pytest.mark.parametrize("to", ["Request", "Metadata"])
@pytest.mark.parametrize("name", ALL)
async def test_row_without_bodies_is_what_all_lines_show_or_doubted(name, to, tmp_path):
    log = whole(name).copy()
    level(to, lambda line: True)(log)
    assert timelines.undoubted(whole(name).lines, await rows(log, tmp_path)) == []


@draws.BY_DAY
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ALL)
async def test_row_without_a_kind_is_what_all_lines_show_or_doubted(name, kind, tmp_path):
    left = await rows(without(whole(name), kind), tmp_path)
    assert timelines.undoubted(whole(name).lines, left) == []
    assert [row for row in left if row["resource"] == kind] == []
