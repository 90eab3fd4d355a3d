"""A difference that is sought: when it is proved, and when nothing can be it any more."""

import pytest

from app.analysis.replay.classes import DifferenceClass, Judgement, Sought
from app.analysis.replay.differences import Aspect, DifferenceKey

RACE = Judgement(reason=DifferenceClass.RACE, detail="the proof")
UNEXPLAINED = Judgement(reason=DifferenceClass.UNEXPLAINED, detail="")
POD: DifferenceKey = (Aspect.ORDER, "pod", "")
CLAIM: DifferenceKey = (Aspect.WRITES, "claim", "")
OTHER: DifferenceKey = (Aspect.WRITES, "other", "")


@pytest.mark.parametrize(
    ("judged", "left", "is_proved", "is_decided"),
    [
        ({POD: RACE}, [], True, True),
        # What is unexplained of its own claim counts; what is of another one does not.
        ({POD: RACE, CLAIM: UNEXPLAINED}, [], False, True),
        ({POD: RACE, OTHER: UNEXPLAINED}, [], True, True),
        # Its own claim is not judged yet; another one need not be.
        ({POD: RACE}, [CLAIM], False, False),
        ({POD: RACE}, [OTHER], True, True),
        # It may still turn out to be it, unless its claim is unexplained already.
        ({}, [POD], False, False),
        ({CLAIM: UNEXPLAINED}, [POD], False, True),
        ({}, [CLAIM, OTHER], False, True),
        ({POD: Judgement(reason=DifferenceClass.RACE, detail="another proof")}, [], False, True),
        ({OTHER: RACE}, [], False, True),
    ],
)
def test_only_its_own_subject_has_to_be_explained_beside_it(
    judged: dict[DifferenceKey, Judgement],
    left: list[DifferenceKey],
    is_proved: bool,
    is_decided: bool,
) -> None:
    sought = Sought(
        reason=DifferenceClass.RACE,
        shown={"pod": ("the proof",)},
        explained={"pod": ("claim", "pod")},
    )
    assert sought.is_proved(judged, left) is is_proved
    assert sought.is_decided(judged, left) is is_decided
