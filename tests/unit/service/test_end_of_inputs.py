"""Whether the recorded inputs of a fork may go on after the last event that is verified.

Decisions among recorded inputs are paced by them; a fork that is verified up to a revision before
the end of its inputs has nothing but paced decisions.
"""

import msgspec
import pytest

from app.domain.log import CLOCKS, Actor, Draft, EventType, ObjectKey, Revision, Stamp
from app.domain.log.chain import seal
from app.domain.log.event import GENESIS
from app.domain.log.forks import INPUTS_END
from app.domain.values.identifiers import NO_UID
from app.domain.values.timestamps import Instant
from app.service.replays import verifying
from tests.unit.service.test_replaying import history_of

WRITE = (EventType.OBJECT_CREATED, ObjectKey("", "configmaps", "default", "c"), {"data": {}})
END = (EventType.CLOCK_ADVANCED, CLOCKS, dict(INPUTS_END))
OTHER_CLOCK = (EventType.CLOCK_ADVANCED, CLOCKS, {"history": "another"})


@pytest.mark.parametrize(
    ("facts", "until", "is_fork", "expected"),
    [
        ([WRITE, END], 1, True, True),
        ([WRITE, END], 2, True, False),
        ([END, WRITE], 1, True, False),
        ([END, WRITE], 2, True, False),
        ([WRITE, WRITE], 1, True, False),
        ([WRITE, OTHER_CLOCK], 1, True, False),
        ([WRITE, END], 2, False, True),
        ([WRITE, WRITE], 1, False, True),
        ([END, WRITE, END, WRITE], 2, True, True),
        ([END, WRITE, END, WRITE], 3, True, False),
    ],
    ids=[
        "before the end of the inputs",
        "at the end of the inputs",
        "the end is the last event that is read",
        "after the end",
        "no recorded inputs",
        "another event of the clock",
        "of a copy the end may be cut off",
        "of a copy without an end, too",
        "a fork of a fork, before its own end",
        "a fork of a fork, at its own end",
    ],
)
async def test_inputs_of_a_fork_go_on_until_their_end(facts, until, is_fork, expected) -> None:
    events, previous = [], GENESIS
    for number, (kind, key, tree) in enumerate(facts, start=1):
        stamp = Stamp(time=Instant(number), actor=Actor(user="u"), verb="x")
        draft = Draft(type=kind, key=key, uid=NO_UID, tree=tree, stamp=stamp)
        events.append(seal(draft, Revision(number), previous))
        previous = events[-1].hash
    log, info = await history_of(events)
    history = msgspec.structs.replace(info, is_fork=is_fork)
    assert await verifying._may_lack_end(log, history, Revision(until)) is expected
