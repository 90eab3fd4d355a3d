"""Recordings that begin in the middle of a cluster's life: what was there stays as it was."""

from functools import partial
from pathlib import Path

import anyio
import pytest

from app.analysis.minimise import beginnings, predicates
from app.analysis.minimise.material import Candidate, Material
from app.analysis.replay.differences import Aspect
from app.bootstrap.minimising import judging, sources
from app.bootstrap.minimising.sources import Source
from app.settings import Settings
from tests import draws
from tests.shared_data import shared_path

PARTS = (3, 2)
"""A recording is begun at a third and at half of its steps, by turns with each run of the tests."""

PLACEMENTS = (Aspect.NODES, Aspect.DEVICES, Aspect.EVICTIONS)


def placed_otherwise(source: Source, material: Material, candidate: Candidate) -> set[object]:
    """What a decide replay places otherwise than recorded."""
    judge = judging.Judge(material, source.info, Settings(), predicates.parse("difference"))
    ran = judge._runner.run(candidate)
    report = anyio.run(partial(judging._decide, ran, Settings()))
    assert report.aspects[Aspect.DEVICES].same
    return {(each.aspect, each.subject) for each in report.differences if each.aspect in PLACEMENTS}


@draws.in_turn("ways")
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "part"),
    draws.by_turns(
        [(name, part) for part in PARTS]
        for name in ("a-quickstart", "e-taints", *(("b-mig-partitions",) if draws.WHOLE else ()))
    ),
)
def test_what_was_placed_before_the_recording_began_is_not_decided_again(
    name: str, part: int
) -> None:
    path = Path(shared_path("histories", name))
    source = anyio.run(sources.read_files, Settings(), (path,), None)
    whole = placed_otherwise(source, source.recorded, source.whole(source.recorded))
    steps = source.recorded.steps
    material = beginnings.beginning_at(steps, len(steps) // part)
    begun = placed_otherwise(source, material, beginnings.whole(material, source.last))
    assert begun <= whole
