"""Judging of candidates on the workers of an executor. Each worker gets the material once."""

import hashlib
import pickle
import time
from collections.abc import Sequence
from functools import lru_cache
from typing import TypeAlias

from app.analysis.minimise.material import Material
from app.bootstrap import garbage_collection
from app.bootstrap.executors import OnDemand, Task
from app.bootstrap.minimising.judging import Judge, Judged, Tried
from app.bootstrap.minimising.searching import InlineJudges
from app.domain.errors import InputError

WORTH_SECONDS = 1.0
"""Candidates with a shorter expected time are judged here. Workers take seconds to start, and a
second candidate beside the first is judged in vain if the first shows the predicate."""

_MATERIALS_MAX = 2

_Data: TypeAlias = tuple[str, Tried]
"""The digest of the material, and the candidate."""


class SharedJudges:
    """Judges slow candidates on workers and others here, with the same judgements.

    The expected time is that of the last candidate judged here, in proportion to its steps.
    """

    def __init__(self, judge: Judge, workers: OnDemand) -> None:
        self.width = workers.width
        self._judge = judge
        self._here = InlineJudges(judge)
        self._workers = workers
        self._seconds_per_step = 0.0
        material = judge.material
        plain = Material(steps=material.steps, made=material.made, is_recorded=material.is_recorded)
        self._content = pickle.dumps(
            (plain, judge.info, judge.settings, judge.predicate, judge.faults)
        )
        self._digest = hashlib.sha256(self._content).hexdigest()
        self._bundles = {self._digest: self._content}

    def judge(self, candidates: Sequence[Tried]) -> Sequence[Judged]:
        """The judgements in order; those after the first that shows the predicate may be missing.

        Raises InputError when workers die while they judge one.
        """
        steps = max(len(each.kept) for each in candidates)
        if len(candidates) == 1 or self._seconds_per_step * steps < WORTH_SECONDS:
            return self._judged_here(candidates)
        tasks = [
            Task(
                digest=f"{self._digest}-{self._judge.digest(each)}",
                bundle=self._digest,
                data=(self._digest, each),
            )
            for each in candidates
        ]
        judged: dict[str, Judged] = {}
        for done in self._workers.executor.map(judge_candidate, self._bundles, tasks):
            if done.problem:
                raise InputError(done.problem, place="--workers")
            judged[done.task.digest] = done.result
        return [judged[task.digest] for task in tasks]

    def _judged_here(self, candidates: Sequence[Tried]) -> Sequence[Judged]:
        began = time.perf_counter()
        judgements = self._here.judge(candidates)
        took = time.perf_counter() - began
        steps = sum(len(each.kept) for each in candidates[: len(judgements)])
        self._seconds_per_step = took / max(steps, 1)
        return judgements


def judge_candidate(content: bytes, data: _Data) -> Judged:
    """Judge a candidate of the material in `content`."""
    digest, candidate = data
    with garbage_collection.one_pass():
        return _judge_of(_Content(content, digest)).judge(candidate)


class _Content:
    """The bytes of a material, compared by their digest."""

    def __init__(self, content: bytes, digest: str) -> None:
        self.content = content
        self.digest = digest

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Content) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)


@lru_cache(maxsize=_MATERIALS_MAX)
def _judge_of(packed: _Content) -> Judge:
    # The bytes come from this program, and a client of a scheduler may run any code anyway.
    material, info, settings, predicate, faults = pickle.loads(packed.content)  # noqa: S301
    return Judge(material, info, settings, predicate, faults)
