"""Recordings written by hand are decided again to the letter, and each allocation is verified."""

import pytest

from app.analysis.replay.differences import Aspect
from app.analysis.replay.report import Agreement
from app.analysis.verify.compare import ComparisonResult
from app.bootstrap import process_settings, replays, stores
from app.service.replays.verifying import VerifyOutcome
from tests import draws
from tests.conformance.handwritten import displacements, evictions, pools, scenes, stalls

SCENES = scenes.SCENES | pools.SCENES


async def replay(work, path):
    store = stores.memory_store()
    settings = process_settings.settings(profile="1.36")
    history = await replays.load_files(store, settings, (path,))
    return await work(store, settings, history, "", lambda *_: None)


@draws.in_turn("rows of ways")
@pytest.mark.parametrize("name", SCENES)
async def test_what_the_specification_says_is_decided(name, tmp_path):
    path = SCENES[name]().write(tmp_path / "audit.jsonl")
    report = await replay(replays.decide, path)
    assert [found.to_json() for found in report.differences] == []
    assert report.not_comparable == {}
    assert report.aspects[Aspect.NODES].same > 0
    assert report.aspects[Aspect.DEVICES].same > 0


@pytest.mark.parametrize("name", SCENES)
async def test_every_allocation_of_the_specification_is_verified(name, tmp_path):
    path = SCENES[name]().write(tmp_path / "audit.jsonl")
    report = await replay(replays.verify, path)
    assert set(report.allocations.counts) == {ComparisonResult.SAME}
    assert report.agrees


@pytest.mark.parametrize(
    ("after", "effect", "is_agreed"),
    [
        (5.01, "NoExecute", True),
        (6.5, "NoExecute", True),
        (3, "NoExecute", False),
        (0.01, "NoExecute", False),
        (5.01, "NoSchedule", False),
    ],
)
async def test_eviction_is_agreed_with_when_its_taint_is_due(after, effect, is_agreed, tmp_path):
    """A rule without a line may have evicted, so the others are not called wrong."""
    path = evictions.eviction(after, effect).write(tmp_path / "audit.jsonl")
    verified, decided = await replay(replays.verify, path), await replay(replays.decide, path)
    outcomes = verified.outcome, decided.agreement
    in_part = VerifyOutcome.PARTLY, Agreement.PARTLY
    assert outcomes == ((VerifyOutcome.VERIFIED, Agreement.AGREES) if is_agreed else in_part)


CLAIM_OF_A_VOLUME = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]


@pytest.mark.parametrize("before", ["claim", "binding"])
@pytest.mark.parametrize(
    ("seconds", "options", "agreement"),
    [
        (1, {}, Agreement.AGREES),
        (12, {}, Agreement.AGREES),
        (24, {}, Agreement.IMPOSSIBLE),
        (240, {}, Agreement.IMPOSSIBLE),
        (24, {"works": False}, Agreement.AGREES),
        (240, {"works": False}, Agreement.PARTLY),
    ],
)
async def test_placement_does_not_stand_still_while_the_scheduler_works(
    before, seconds, options, agreement, tmp_path
):
    """A scheduler that wrote nothing may have been replaced, or the server away."""
    path = stalls.stall(seconds, before, **options).write(tmp_path / "audit.jsonl")
    report = await replay(replays.decide, path)
    assert report.agreement is agreement
    assert bool(report.violations) is (agreement is Agreement.IMPOSSIBLE)


@pytest.mark.parametrize(
    ("before", "options"),
    [("binding", {"conditions": True}), ("claim", {"volumes": CLAIM_OF_A_VOLUME})],
)
async def test_placement_may_wait_for_others(before, options, tmp_path):
    path = stalls.stall(24, before, **options).write(tmp_path / "audit.jsonl")
    report = await replay(replays.decide, path)
    assert not [text for text in report.violations.values() if "scheduler was at work" in text]


@pytest.mark.parametrize(
    ("options", "is_agreed"),
    [
        ({}, True),
        ({"victim": "middle"}, False),
        ({"priorities": (displacements.HIGHEST, displacements.HIGHEST)}, False),
        ({"cpu": "16"}, False),
        ({"text": "default-scheduler: making room"}, False),
    ],
)
async def test_displacement_is_decided_again(options, is_agreed, tmp_path):
    """The nomination comes with the refusal, and shows no lost line."""
    path = displacements.displacement(**options).write(tmp_path / "audit.jsonl")
    report = await replay(replays.decide, path)
    assert report.agreement is (Agreement.AGREES if is_agreed else Agreement.UNEXPLAINED)
