"""Later beginnings of a recording are tried beside each other, like all other candidates."""

from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import anyio
import pytest

from app.analysis.minimise import beginnings, predicates
from app.analysis.minimise.beginnings import LaterBeginning
from app.bootstrap.executors import InlineExecutor, OnDemand
from app.bootstrap.minimising import searching, sharing, sources
from app.bootstrap.minimising.judging import Judge, Judged, Tried
from app.bootstrap.minimising.sharing import SharedJudges
from app.bootstrap.minimising.sources import Source
from app.settings import Settings
from tests import draws
from tests.conformance.handwritten import recordings as handwritten
from tests.conformance.handwritten.recordings import SCHEDULER, Recorder

GPU = "gpu.example.com"
KEPT = predicates.parse("violation device-in-one-claim")


class TwoAtOnce(InlineExecutor):
    """Two workers, in this process."""

    width = 2

    def __init__(self) -> None:
        super().__init__()
        self.batches: list[Sequence[Tried]] = []

    def map(self, function, bundles, tasks, on_message=None):
        self.batches.append([task.data[1] for task in tasks])
        return super().map(function, bundles, tasks, on_message)


class Workers(OnDemand):
    """Workers that are there from the start."""

    def __init__(self, executor: TwoAtOnce) -> None:
        super().__init__(2, "", ExitStack())
        self._executor = executor


@pytest.fixture
def source(tmp_path: Path) -> Source:
    """A recording that began with a node and a class, and gives one device to two claims."""
    recorder = Recorder("two claims with one device")
    recorder.node("node-0")
    recorder.device_class("gpu", f'device.driver == "{GPU}"')
    count = len(recorder.lines)
    pool = handwritten.pool("node-0")
    recorder.slice("slice", GPU, pool, [{"name": "d0"}], nodeName="node-0")
    given = handwritten.allocation("node-0", handwritten.result("gpu", GPU, "node-0", "d0"))
    for name in ("a", "b"):
        recorder.claim(name, requests=[handwritten.exactly("gpu", "gpu")])
        recorder.claim_status(SCHEDULER, name, allocation=given)
    path = recorder.write(tmp_path / "audit.jsonl")
    whole = anyio.run(sources.read_files, Settings(), (path,), None)
    begun = LaterBeginning(candidate=whole.whole(whole.recorded), number=count)
    material, candidate = beginnings.begun(whole.recorded, begun)
    ran = Judge(material, whole.info, Settings(), KEPT).run(candidate)
    return anyio.run(sources.read_ran, Settings(), ran, "begun")


@draws.in_turn(
    "ways",
    each_day="unit/service/test_shared_beginnings.py::test_judgement_on_a_worker_is_that_made_here",
)
def test_beginnings_are_tried_beside_each_other_with_the_same_result(
    source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sharing, "WORTH_SECONDS", 0.0)
    there = TwoAtOnce()
    find = partial(searching.minimise, source, Settings(), KEPT, name="small")
    files = [tmp_path / name / "small.zip" for name in ("alone", "shared")]
    for file in files:
        file.parent.mkdir()
    alone = find(files[0])
    shared = find(files[1], judges_of=partial(SharedJudges, workers=Workers(there)))
    begun = [
        batch for batch in there.batches if any(isinstance(one, LaterBeginning) for one in batch)
    ]
    assert begun, "no beginning was tried"
    assert {len(batch) for batch in begun[:-1]} <= {2}
    assert len(begun[0]) == 2
    assert len({file.read_bytes() for file in files}) == 1
    assert (alone.is_minimal, shared.is_minimal) == (True, True)


def test_judgement_on_a_worker_is_that_made_here(source: Source) -> None:
    judge = Judge(source.recorded, source.info, Settings(), KEPT)
    judge.begin(source.whole(source.recorded))
    begin = partial(LaterBeginning, candidate=source.whole(source.recorded))
    tries = [begin(number=number) for number in range(1, len(source.recorded.steps))]
    sent = SharedJudges(judge, Workers(TwoAtOnce()))
    task = [(sent._digest, each) for each in tries]
    here: list[Judged] = [judge.judge(each) for each in tries]
    assert [sharing.judge_candidate(sent._content, each) for each in task] == here
    assert all(each.shows for each in here)
    # A beginning in which a claim is gone shows nothing.
    names = [step.event.key.name for step in source.recorded.steps]
    candidate = source.recorded.without(source.whole(source.recorded), [names.index("b")])
    other = LaterBeginning(candidate=candidate, number=2)
    assert not sharing.judge_candidate(sent._content, (sent._digest, other)).shows
