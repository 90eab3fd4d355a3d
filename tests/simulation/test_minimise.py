"""Minimises soaks with planted defects to the smallest history that shows each defect.

Defects come by day.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.adapters.history.formats.bundle import BundleReader
from app.adapters.history.limits import ImportLimits
from app.analysis.verify.invariants import InvariantWatch
from tests import draws
from tests.command_line import redra
from tests.simulation import planted_soak
from tests.simulation.planted_soak import DEFECTS

PODS = int(os.environ.get("REDRA_SOAK_PODS", "60"))
SEED = int(os.environ.get("REDRA_SEEDS", "1").split()[0])
EVENTS_MAX = 30

pytestmark = pytest.mark.slow


@pytest.fixture(params=sorted(DEFECTS))
def defect(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """Plants a defect; the bundle is a soak that ran with it."""
    with planted_soak.planted(request.param):
        bundle = tmp_path / "soak.zip"
        planted_soak.write(planted_soak.soak(SEED, PODS), bundle)
        yield DEFECTS[request.param].rule, bundle


def rules_broken(path: Path) -> set[str]:
    """The rules that the history of a bundle breaks; checks that its chain is complete."""
    reader = BundleReader(path, ImportLimits())
    reader.check()
    watch = InvariantWatch()
    for events in reader.batches():
        watch.follow(events)
    return {each.rule for each in watch.violations() if each.kind.is_failure}


@draws.BY_DAY
def test_planted_defect_comes_down_to_what_it_needs(
    defect: tuple[str, Path], tmp_path: Path
) -> None:
    rule, bundle = defect
    assert rule in rules_broken(bundle)
    small = tmp_path / "small.zip"
    code, out, error = redra(
        "minimise", bundle, "--keep", f"violation {rule}", "-o", small, "--output", "json"
    )
    assert code == 0, error
    report = json.loads(out)
    assert report["events"] <= EVENTS_MAX < report["eventsBefore"]
    assert report["minimal"] is True
    assert report["decisions"] == "made here"
    assert rule in rules_broken(small)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["small.zip", "soak.zip"]
    # What is smallest cannot be made smaller.
    code, out, error = redra(
        "minimise", small, "--keep", f"violation {rule}", "-o", small, "--output", "json", "--force"
    )
    assert json.loads(out)["inputs"] == report["inputs"], error
