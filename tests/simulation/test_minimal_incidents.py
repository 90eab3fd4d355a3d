"""Each incident of the gallery comes down to the smallest history that shows its finding.

The finding is a pod that waits or is evicted, or a broken rule. What is left is judged as for drawn
histories (`tests/fuzz/minimals.py`), and minimised again it gets no smaller.
"""

from pathlib import Path

import pytest

from app.bootstrap.gallery import incident_files
from tests import draws
from tests.fuzz import minimal_recordings, minimals
from tests.fuzz.minimals import Case
from tests.simulation import one_minimal

NOT_SHOWN = {
    "admin-access-label-is-taken-away": "the pod is not tried before its claim is there",
    "distinct-remembers-the-last": "`verify` knows the defect of its release, and excuses it",
    "quota-leaves-no-claim": "the pod is not tried before its claim is there",
}
"""The incidents whose finding the predicate does not mean, and why."""

FULL = "too-many-consumers"
"""The incident that needs 256 pods: hundreds of histories of thousands of events are tried."""

CASES = {
    name: case
    for name in incident_files.names()
    if name != FULL
    and (case := minimal_recordings.finding_of(incident_files.read(name).incident)) is not None
}

EVENTS_MAX = 30


@draws.BY_DAY
@pytest.mark.parametrize("name", CASES)
def test_incident_comes_down_to_its_finding(name: str, tmp_path: Path) -> None:
    bundle, small = minimal_recordings.path_of(name, tmp_path), tmp_path / "small.zip"
    said = minimals.check(CASES[name], bundle, small)
    assert (said == "not shown") == (name in NOT_SHOWN)
    if name not in NOT_SHOWN:
        assert int(said.rpartition(" ")[2]) <= EVENTS_MAX


def test_difference_after_the_end_comes_down_to_any_of_them(tmp_path: Path) -> None:
    """Those of a shorter history are others, which the search for the first ones left."""
    bundle = minimal_recordings.path_of("toleration-without-effect", tmp_path)
    about = "after the end"
    case = Case(f"difference '{about}'", "difference", about)
    assert minimals.check(case, bundle, tmp_path / "small.zip") == "30 events to 2"


@draws.ONLY
def test_incident_of_a_bound_comes_down_to_as_many_pods_as_reach_it(tmp_path: Path) -> None:
    case = minimal_recordings.finding_of(incident_files.read(FULL).incident)
    assert case is not None
    bundle, small = minimal_recordings.path_of(FULL, tmp_path), tmp_path / "small.zip"
    assert minimals.check(case, bundle, small) == "1807 events to 1544"
    places = [
        one_minimal.place_of(line)
        for line in one_minimal.lines(small)
        if "group" in line["payload"]
    ]
    assert len({place for place in places if place[1] == "pods"}) == 257
