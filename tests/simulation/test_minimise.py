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
from tests.cluster import DRIVER, Cluster
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


@draws.in_turn("ways")
def test_violation_of_a_scheduler_from_outside_is_kept_and_not_another_one(tmp_path: Path) -> None:
    """Decided again, redra's scheduler allocates first, and the recorded writes change that."""
    cluster = Cluster()
    cluster.stop("scheduling")
    cluster.node()
    cluster.device_class()
    cluster.slice()
    for name in ("one", "two"):
        cluster.claim(name)
        pod = cluster.pod(name, claim=name)
        cluster.settle().wait(1)
        results = [{"request": "gpu", "driver": DRIVER, "pool": "n1", "device": "gpu-1"}]
        reserved = {"resource": "pods", "name": name, "uid": pod["metadata"]["uid"]}
        protected = {"metadata": {"finalizers": ["resource.kubernetes.io/delete-protection"]}}
        status = {"allocation": {"devices": {"results": results}}, "reservedFor": [reserved]}
        cluster.patch("resourceclaims", name, protected)
        cluster.patch("resourceclaims", name, {"status": status}, subresource="status")
    bundle, small = tmp_path / "outside.zip", tmp_path / "small.zip"
    planted_soak.write(cluster, bundle)
    broken = rules_broken(bundle)
    assert "device-in-one-claim" in broken
    assert "allocation-unchanged" not in broken
    code, _, error = redra(
        "minimise", bundle, "--keep", "violation", "-o", small, "--output", "json"
    )
    assert code == 0, error
    assert "allocation-unchanged" not in rules_broken(small)
    assert rules_broken(small) <= broken
