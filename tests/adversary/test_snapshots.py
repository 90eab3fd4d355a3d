"""Snapshots of which one thing is wrong by itself, and those that another moment explains."""

import json
from pathlib import Path

import pytest

from tests.adversary.catalogue import (
    FAILS,
    MIG,
    NOT_BLAMED,
    NOT_PASSED,
    QUICKSTART,
    TAINTS,
    TPU,
    VERSIONS,
)
from tests.adversary.log import NotFound
from tests.adversary.running import ask, satisfied, summary
from tests.adversary.snapshots import ROWS, snapshot

RECORDINGS = (QUICKSTART, MIG, TPU, TAINTS, VERSIONS)


@pytest.mark.parametrize("name", RECORDINGS)
def test_snapshots_get_the_verdicts_that_were_fixed_before(name: str, tmp_path: Path) -> None:
    wrong, whole = [], json.dumps(snapshot(name))
    for title, row in ROWS.items():
        objects = json.loads(whole)
        try:
            row.change(objects)
        except NotFound:
            continue
        path = tmp_path / f"{title}.json"
        path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
        answer = ask(path, name, "verify")
        # Of a snapshot something is always left to compare, so a doubt has to name its rule.
        is_doubted = bool(answer.body.get("invariants", {}).get("examples"))
        is_right = satisfied(row.verdict, answer.verdict, name, "verify", tmp_path)
        if not is_right or (row.verdict == NOT_PASSED and not is_doubted):
            wrong.append((title, row.verdict, answer.verdict, summary(answer, "verify")))
    assert wrong == []


def test_both_sides_are_asked() -> None:
    assert {row.verdict for row in ROWS.values()} == {FAILS, NOT_BLAMED, NOT_PASSED}
