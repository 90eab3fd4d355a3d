"""How long the projector waits before it writes rows again."""

import pytest

from app.workers.projecting import pause_after


@pytest.mark.parametrize(
    ("events", "seconds"), [(1, 0.25), (99, 0.25), (100, 1.0), (4_999, 1.0), (5_000, 0.0)]
)
def test_pause_is_longer_in_a_busy_history_and_none_while_it_is_behind(
    events: int, seconds: float
) -> None:
    assert pause_after(events, 5_000) == seconds
