"""Creates more important pods in full clusters, and compares the evicted pods with a model.

`python -m tests.fuzz preemption --cases N --seed S` judges N worlds (`tests/truth/preemption`).
"""

from tests.fuzz.judged import awaited, judge_worlds
from tests.truth.preemption.fitting import fit_differences
from tests.truth.preemption.judging import world_differences
from tests.truth.preemption.telling import told_differences
from tests.truth.preemption.worlds import PreemptionWorld


async def _told(seed: int) -> list[str]:
    return await told_differences(PreemptionWorld(seed))


def run(cases: int, seed: int) -> None:
    """Judges so many worlds; raises the differences."""
    judge_worlds(cases, seed, world_differences, fit_differences, awaited(_told))
