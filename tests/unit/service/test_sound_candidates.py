"""A candidate in which something is impossible that is not so in the whole history shows nothing.

Each case cuts a part of a claim that the fact, a pod that waits or a decision, does not need.
"""

from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from app.analysis.minimise import predicates
from app.bootstrap.minimising import sources
from app.bootstrap.minimising.judging import Judge
from app.bootstrap.minimising.sources import Source
from app.domain.log import ObjectKey
from app.settings import Settings
from tests.conformance.handwritten import recordings as handwritten
from tests.conformance.handwritten.recordings import SCHEDULER, Recorder

GPU = "gpu.example.com"
CLAIM = ObjectKey("resource.k8s.io", "resourceclaims", "work", "a")


def source(tmp_path: Path, *, is_protected: bool) -> Source:
    """A recording in which a claim has a device, and a pod waits for a node."""
    recorder = Recorder("a claim with a device, and a pod that waits")
    recorder.node("node-0")
    recorder.device_class("gpu", f'device.driver == "{GPU}"')
    pool = handwritten.pool("node-0")
    recorder.slice("slice", GPU, pool, [{"name": "d0"}], nodeName="node-0")
    recorder.claim("a", requests=[handwritten.exactly("gpu", "gpu")])
    if is_protected:
        recorder.finalizer(SCHEDULER, "a", there=True)
    given = handwritten.allocation("node-0", handwritten.result("gpu", GPU, "node-0", "d0"))
    recorder.claim_status(SCHEDULER, "a", allocation=given)
    recorder.pod("waits", nodeSelector={"no": "where"})
    recorder.fail("waits", handwritten.unfit(1, "1 node(s) didn't match"))
    path = recorder.write(tmp_path / "audit.jsonl")
    return anyio.run(sources.read_files, Settings(), (path,), None)


@pytest.mark.parametrize(("is_protected", "shows"), [(True, False), (False, True)])
@pytest.mark.parametrize("keep", ["unschedulable waits", "command true"])
def test_candidate_breaks_no_rule_that_the_whole_keeps(
    keep: str, is_protected: bool, shows: bool, tmp_path: Path
) -> None:
    read = source(tmp_path, is_protected=is_protected)
    judge = Judge(read.recorded, read.info, Settings(), predicates.parse(keep))
    whole = read.whole(read.recorded)
    assert judge.begin(whole).shows
    cut = replace(whole, cuts=frozenset({(CLAIM, ("metadata", "finalizers"))}))
    assert judge.judge(cut).shows is shows
    assert judge.judge(judge.material.without_alone(whole, [CLAIM])).shows
