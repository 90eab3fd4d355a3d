"""What `redra minimise` says at its end of whose decisions are left."""

from pathlib import Path
from typing import Any

import pytest

from app.bootstrap.minimising.results import Minimised
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


def result(**more: Any) -> Minimised:
    return Minimised(
        **{
            "predicate": "evicted web",
            "sighting": "pod web",
            "is_recorded": False,
            "was_recorded": False,
            "is_of_recording": False,
            "is_minimal": True,
            "represented": 0,
            "events_before": 9,
            "events": 3,
            "inputs": 3,
            "objects": 2,
            "devices": 1,
            "trials": 5,
            "remembered": 0,
            "seconds": 1.0,
        }
        | more
    )


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({}, "no single part can be left out"),
        (
            {"represented": 256},
            "no single part can be left out; of up to 256 that are alike, three were tried",
        ),
        ({"is_minimal": False, "represented": 256}, "not minimal: the time ran out; go on"),
    ],
)
def test_answer_says_of_which_parts_it_is_known(
    capsys: pytest.CaptureFixture[str], more: dict[str, Any], said: str
) -> None:
    minimising._print(result(**more).to_json(), Path("small.zip"), "; go on")
    assert said in capsys.readouterr().out.splitlines()


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
    done = result(
        predicate=predicate,
        is_recorded=is_recorded,
        was_recorded=is_recorded,
        is_of_recording=is_of_recording,
    )
    minimising._print(done.to_json(), Path("small.zip"), "")
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line.startswith(("kept", "decided"))] == (
        [said] if said else []
    )
