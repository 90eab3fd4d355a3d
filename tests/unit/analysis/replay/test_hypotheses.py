"""Hypotheses about differences: which are tried, and about what."""

from app.adapters import schemas
from app.analysis.replay.differences import Aspect, Sides
from app.analysis.replay.hypotheses import Proposals
from app.analysis.replay.traces import Trace


def test_object_that_only_a_report_names_has_no_hypothesis_of_its_own() -> None:
    recorded, again = (Trace(schemas.load("1.36")) for _ in range(2))
    sides = Sides(aspect=Aspect.SAID, uid="gone", recorded=["a"], again=[])
    assert list(Proposals(recorded).local(sides, again)) == []
