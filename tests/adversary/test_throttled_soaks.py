"""Soaks of schedulers with a slow rate limit, which is 50 requests a second where none is set.

Their writes wait for up to half a minute, and devices are tainted meanwhile.
"""

from pathlib import Path

import pytest

from tests import draws
from tests.adversary.catalogue import AGREES, PART
from tests.adversary.running import ask, summary
from tests.conformance.soak_recordings import Load, record

ONE, OTHER = (
    Load(seed=7306, seconds=60, pods=60, rate=2, burst=1, noise=0),
    Load(seed=7312, seconds=60, pods=60, rate=2, burst=1, noise=0),
)


@draws.in_turn("rows of ways")
@pytest.mark.parametrize(
    ("load", "source"),
    [(ONE, "audit.jsonl"), (ONE, "watch"), draws.repeated(OTHER, "audit.jsonl")],
)
def test_honest_soak_with_long_waits_is_not_accused(
    load: Load, source: str, tmp_path: Path
) -> None:
    folder = tmp_path / "soak"
    folder.mkdir()
    record(folder, load)
    answer = ask(folder / source, "", "verify")
    assert answer.verdict in (AGREES, PART), summary(answer, "verify")
