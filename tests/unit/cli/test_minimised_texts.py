"""What `redra minimise` says at its end of whose decisions are left."""

from pathlib import Path

import pytest

from app.bootstrap.minimising.searching import Minimised
from app.cli.experiments import minimising

NOT_DECIDED = (
    "when redra's controllers decide again, the history does not show it; what is left shows that "
    "it was written, and need not show why"
)
DECIDED_AGAIN = (
    "the recording shows it when they decide it again; what is left has none of the recorded "
    "decisions"
)
COMPARED = "it is a difference from what was recorded"


@pytest.mark.parametrize(
    ("predicate", "is_recorded", "is_of_recording", "said"),
    [
        ("evicted web", True, True, f"kept as recorded: {NOT_DECIDED}"),
        ("evicted web", False, False, None),
        ("evicted web", False, True, f"decided by redra's controllers: {DECIDED_AGAIN}"),
        # The controllers decide it otherwise: that is the difference.
        ("difference race", True, True, f"kept as recorded: {COMPARED}"),
    ],
)
def test_reader_is_told_whose_decisions_show_the_predicate(
    capsys: pytest.CaptureFixture[str],
    predicate: str,
    is_recorded: bool,
    is_of_recording: bool,
    said: str | None,
) -> None:
    done = Minimised(
        predicate=predicate,
        sighting="pod web",
        is_recorded=is_recorded,
        was_recorded=is_recorded,
        is_of_recording=is_of_recording,
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
    assert [line for line in lines if line.startswith(("kept", "decided"))] == (
        [said] if said else []
    )
