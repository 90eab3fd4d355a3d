"""Recordings with a few more writes at their end: see `later_writes`."""

import pytest

from tests import draws
from tests.adversary.catalogue import QUICKSTART, TAINTS, TPU, VERSIONS
from tests.adversary.later_writes import LATER, logged, watched
from tests.adversary.running import ask, recording, satisfied

WITHOUT = {
    "devicetaintrules": (QUICKSTART, TAINTS, TPU),
    "pods": (QUICKSTART, TPU),
    "resourceclaims": (QUICKSTART,),
    "resourceclaimtemplates": (QUICKSTART,),
    "reserve_again": (QUICKSTART, TPU),
}
"""The recordings at whose end no object of a resource, or none for an alteration, is left."""

ROWS = [
    (name, place)
    for name, one in LATER.items()
    for place in (QUICKSTART, TAINTS, TPU, VERSIONS)
    if place not in WITHOUT.get(one.resource, ()) and place not in WITHOUT.get(name, ())
]


@draws.BY_DAY
@pytest.mark.parametrize(("name", "place"), ROWS)
def test_later_writes_in_audit_logs_and_watch_streams(name, place, tmp_path):
    """Verify gives the same verdict in both forms."""
    folder, path = tmp_path / "watch", tmp_path / "audit.jsonl"
    folder.mkdir()
    watched(place, name, folder)
    path.write_text(logged(recording(place), name).text())
    for file in (path, folder):
        answer = ask(file, place, "verify")
        verdict = LATER[name].verdict
        assert satisfied(verdict, answer.verdict, place, "verify", tmp_path), answer.body
