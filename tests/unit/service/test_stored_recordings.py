"""The stored rows of a recording, checked against the settings with which their chain begins."""

import pytest

from app.domain.log import (
    Actor,
    ChainStart,
    Draft,
    EventType,
    HistoryId,
    HistoryInfo,
    ObjectKey,
    Stamp,
    chain,
    upcasting,
)
from app.domain.log.event import GENESIS, Revision
from app.domain.log.upcasting import StoredRow
from app.domain.values.identifiers import NO_UID
from app.domain.values.json_tree import JsonObject
from app.service.replays.integrity import RECORDING_PROBLEM, IntegrityCheck
from tests.unit.service.builders import START

PLAIN: JsonObject = {"profile": "1.36"}


@pytest.mark.parametrize(
    ("settings", "is_in_the_chain", "is_named"),
    [
        ({**PLAIN, "recorded": True}, True, False),
        # The chain of a paced replay begins with the settings of its recording.
        ({**PLAIN, "paced": True}, True, True),
        (PLAIN, True, True),
        ({**PLAIN, "recorded": False}, True, True),
        # Programs that came before the chain of settings imported recordings without one.
        (PLAIN, False, False),
    ],
)
def test_recording_that_hides_that_it_is_one_is_named(
    settings: JsonObject, is_in_the_chain: bool, is_named: bool
) -> None:
    info = HistoryInfo(id=HistoryId(1), name="rec", settings=settings, created=START)
    assert (begun_with(info, is_in_the_chain) == RECORDING_PROBLEM) is is_named


def test_paced_replay_says_what_its_recording_said() -> None:
    beginning = ChainStart(seed=0, settings={**PLAIN, "recorded": True}, created=START)
    info = HistoryInfo(
        id=HistoryId(1),
        name="rec~paced",
        settings={**PLAIN, "paced": True},
        created=START,
        beginning=beginning,
    )
    assert not begun_with(info, is_in_the_chain=True)


def begun_with(info: HistoryInfo, is_in_the_chain: bool) -> str:
    """The problem of a history that an import begins; empty when there is none."""
    draft = Draft(
        type=EventType.HISTORY_IMPORTED,
        key=ObjectKey("redra", "imports", "", "rec"),
        uid=NO_UID,
        tree={"sources": []},
        stamp=Stamp(time=START, actor=Actor(user="redra:import"), verb="import"),
    )
    beginning = chain.genesis_of(info) if is_in_the_chain else GENESIS
    stored = upcasting.to_stored(chain.seal(draft, Revision(1), beginning))
    check = IntegrityCheck(info)
    check.take(StoredRow(event=stored, time=START, clock=START))
    return check.result().problem.rpartition("revision 1: ")[2]
