"""Minimises soaks with planted defects to the smallest history that shows each defect.

The test that `redra export` makes of the result fails with the defect, and passes without. Defects
come by day. `REDRA_SOAK_PODS=340` makes soaks of six thousand events.
"""

import json
import os
import runpy
from functools import partial
from pathlib import Path

import pytest

from app.adapters.history.formats.bundle import BundleReader
from app.adapters.history.limits import ImportLimits
from app.analysis.verify.invariants import InvariantWatch
from app.bootstrap.handover import stories
from tests import draws
from tests.command_line import redra
from tests.simulation import planted_soak, varied_soak

PODS = int(os.environ.get("REDRA_SOAK_PODS", "60"))
SEED = int(os.environ.get("REDRA_SEEDS", "1").split()[0])
EVENTS_MAX = 30

pytestmark = pytest.mark.slow


SOAKS = {
    **{name: (planted_soak.soak, defect) for name, defect in planted_soak.DEFECTS.items()},
    **{name: (varied_soak.soak, defect) for name, defect in varied_soak.DEFECTS.items()},
}
"""The soak in which each defect shows, and the defect."""


def rules_broken(path: Path) -> set[str]:
    """The rules that the history of a bundle breaks; checks that its chain is complete."""
    reader = BundleReader(path, ImportLimits())
    reader.check()
    watch = InvariantWatch()
    for events in reader.batches():
        watch.follow(events)
    return {each.rule for each in watch.violations() if each.kind.is_failure}


def run_test(file: Path) -> None:
    """Runs the test of an exported file."""
    names = runpy.run_path(str(file))
    (test,) = [value for name, value in names.items() if name.startswith("test_")]
    test(partial(stories.run, changes=None))


@draws.BY_DAY
@pytest.mark.parametrize("name", sorted(SOAKS))
def test_planted_defect_comes_down_to_what_it_needs(name: str, tmp_path: Path) -> None:
    soak, defect = SOAKS[name]
    bundle, small, file = (tmp_path / each for each in ("soak.zip", "small.zip", "test_small.py"))
    words = ("--keep", f"violation {defect.rule}", "-o", small, "--output", "json")
    with defect.plant():
        planted_soak.write(soak(SEED, PODS), bundle)
        assert defect.rule in rules_broken(bundle)
        code, out, error = redra("minimise", bundle, *words)
        assert code == 0, error
        report = json.loads(out)
        assert report["events"] <= EVENTS_MAX < report["eventsBefore"]
        assert report["minimal"] is True
        assert report["decisions"] == "made here"
        assert defect.rule in rules_broken(small)
        assert sorted(path.name for path in tmp_path.iterdir()) == ["small.zip", "soak.zip"]
        code, _, error = redra("export", small, "--as", "pytest", "-o", file)
        assert code == 0, error
        with pytest.raises(AssertionError):
            run_test(file)
        # What is smallest cannot be made smaller.
        code, out, error = redra("minimise", small, *words, "--force")
        assert json.loads(out)["inputs"] == report["inputs"], error
    run_test(file)
