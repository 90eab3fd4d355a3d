"""What `redra minimise` says at its end of a history that is kept as recorded."""

from pathlib import Path

import pytest

from app.bootstrap.minimising.searching import Minimised
from app.cli.experiments import minimising

NOT_DECIDED = (
    "when redra's controllers decide again, the history does not show it; what is left shows that "
    "it was written, and need not show why"
)
COMPARED = "it is a difference from what was recorded"


@pytest.mark.parametrize(
    ("predicate", "is_recorded", "said"),
    [
        ("evicted web", True, f"kept as recorded: {NOT_DECIDED}"),
        ("evicted web", False, None),
        # The controllers decide it otherwise: that is the difference.
        ("difference race", True, f"kept as recorded: {COMPARED}"),
    ],
)
def test_reason_for_what_is_kept_as_recorded(
    capsys: pytest.CaptureFixture[str], predicate: str, is_recorded: bool, said: str | None
) -> None:
    done = Minimised(
        predicate=predicate,
        sighting="pod web",
        is_recorded=is_recorded,
        was_recorded=is_recorded,
        is_minimal=True,
        events_before=9,
        events=3,
        inputs=3,
        objects=2,
        devices=1,
        trials=5,
        remembered=0,
        seconds=1.0,
    )
    minimising._print(done.to_json(), Path("small.zip"), "")
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line.startswith("kept")] == ([said] if said else [])
