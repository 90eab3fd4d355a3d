"""Which delays of acts a recording explains; the rows were written before the judge."""

import pytest

from app.analysis.replay.acts import Act, RefusedRequest
from app.analysis.replay.attempts import Try
from app.analysis.replay.authors import CLAIMS, EVICTION
from app.analysis.replay.lags import Waits
from app.analysis.replay.lateness import (
    FirstAttempt,
    PacedAct,
    Silences,
    late_acts,
    late_attempts,
)
from app.domain.controllers.pacing import AttemptOutcome
from app.domain.log import Actor, Event, EventType, ObjectKey, Origin, Revision, Stamp
from app.domain.values.timestamps import SECOND, Instant

BUSY = tuple(range(11, 100, 5))
"""Instants at which another controller of the same process writes."""

AGAIN = [10 + 0.005 * (2**number - 1) for number in range(11)]
"""Instants at which a request is refused again and again, with the back-off of a work queue."""


def instant(seconds):
    return Instant(int(seconds * SECOND))


def act(name, came, user=EVICTION, *, is_guessed=False):
    origin = Origin(source="x", time_quality="exact", asked=instant(came))
    event = Event(
        revision=Revision(1),
        type=EventType.OBJECT_UPDATED,
        key=ObjectKey("", "pods", "default", name),
        uid=name,
        body=b"{}",
        stamp=Stamp(time=instant(came), actor=Actor(user=user), verb="patch", origin=origin),
    )
    return Act(event=event, before=None, known=instant(came), user=user, is_guessed=is_guessed)


def late(own, *, others=(), refused=(), is_guessed=False, written=range(0, 1000, 5), is_sure=True):
    """The names of the late evictions; `own` are (name, ready, came); a deletion follows each.

    `written` are the seconds in which somebody writes.
    """
    paced = [
        PacedAct(queue="eviction", ready=instant(ready), act=act(name, came, is_guessed=is_guessed))
        for name, ready, came in own
    ]
    acts = [each.act for each in paced]
    acts += [act(name, came + 0.001) for name, _, came in own]
    acts += [act("other", came, CLAIMS) for came in others]
    refusals = [
        RefusedRequest(user=EVICTION, at=instant(came), key=ObjectKey("", "pods", "default", "a"))
        for came in refused
    ]
    silences = Silences([*map(instant, written), *(each.known for each in acts)])
    delays = late_acts(paced, acts, refusals, silences)
    return {delay.key.name for delay in delays if delay.is_sure == is_sure}


TOGETHER = ("b", 10, 10.02)
"""An eviction that is due at the same time, and is done."""

ROWS = [
    ("2 s, beside one that was done", [("a", 10, 12), TOGETHER], {}, set()),
    ("3 s, beside one that was done", [("a", 10, 13), TOGETHER], {}, {"a"}),
    ("11 s, beside one that was done", [("a", 10, 21), TOGETHER], {}, {"a"}),
    ("30 s, and the process may be replaced", [("a", 10, 40), TOGETHER], {}, set()),
    ("30 s, and the process works", [("a", 10, 40), TOGETHER], {"others": BUSY}, {"a"}),
    ("300 s", [("a", 10, 310), TOGETHER], {}, {"a"}),
    ("11 s, alone", [("a", 10, 21)], {"others": BUSY}, set()),
    ("30 s, alone, and the process works", [("a", 10, 40)], {"others": BUSY}, {"a"}),
    ("30 s, alone, and the process may be replaced", [("a", 10, 40)], {}, set()),
    ("70 s, alone, and the process may be replaced", [("a", 10, 80)], {}, {"a"}),
    ("3 s, and a younger one is done", [("a", 10, 13.5), ("b", 10.8, 11)], {}, {"a"}),
    ("after those that were due before", [("a", 10, 15), *[(f"b{n}", 9, 10 + n) for n in range(5)]],
     {}, set()),
    ("as slow as the limit", [(f"b{n}", 10, 10 + n) for n in range(40)], {}, set()),
    ("slower than the limit", [*[(f"b{n}", 10, 10 + n) for n in range(40)], ("a", 10, 56)], {},
     {"a"}),
    ("after eleven refusals", [("a", 10, 20.3), TOGETHER], {"others": BUSY, "refused": AGAIN},
     set()),
    ("long after eleven refusals", [("a", 10, 24), TOGETHER], {"others": BUSY, "refused": AGAIN},
     {"a"}),
    ("11 s after one refusal", [("a", 10, 21), TOGETHER], {"refused": (10.1,)}, {"a"}),
    ("70 s, alone, while nobody writes", [("a", 10, 80)], {"written": (9,)}, set()),
    ("70 s, beside one that was done, while nobody writes", [("a", 10, 80), TOGETHER],
     {"written": (9,)}, {"a"}),
    ("70 s, alone, a last one writes amid", [("a", 10, 80)], {"written": (9, 25)}, {"a"}),
    ("140 s, of which nobody writes in 70", [("a", 10, 150)],
     {"written": (*range(0, 80, 5), 150)}, {"a"}),
    ("140 s, of which nobody writes in 85", [("a", 10, 150)],
     {"written": (*range(0, 70, 5), 150)}, set()),
    ("300 s, of which its process was at work for 10", [("a", 10, 310)],
     {"others": (11, 16, 21), "written": (9,)}, set()),
    ("300 s, of which its process was at work for 40", [("a", 10, 310)],
     {"others": (11, 21, 31, 41, 51), "written": (9,)}, {"a"}),
    ("11 s, by an author that is a guess", [("a", 10, 21), TOGETHER], {"is_guessed": True}, set()),
]  # fmt: skip


@pytest.mark.parametrize(("own", "beside", "expected"), [row[1:] for row in ROWS],
                         ids=[row[0] for row in ROWS])  # fmt: skip
def test_delay_of_an_act_needs_an_explanation(own, beside, expected):
    assert late(own, **beside) == expected


def test_delay_while_nobody_writes_is_in_doubt():
    assert late([("a", 10, 80)], written=(9,), is_sure=False) == {"a"}
    assert late([("a", 10, 69)], written=(9,), is_sure=False) == set()


def late_pods(own, ranks=None, written=range(0, 1000, 5)):
    """The names of the pods that were tried too late; `own` are (name, ready, tried)."""
    firsts = {
        name: FirstAttempt(
            ready=instant(ready),
            attempt=Try(
                instant=instant(tried),
                first=instant(tried),
                last=instant(tried),
                tried=AttemptOutcome(message="none"),
            ),
        )
        for name, ready, tried in own
    }
    keys = {name: ObjectKey("", "pods", "default", name) for name in firsts}
    silences = Silences(map(instant, written))
    delays = late_attempts(firsts, ranks or {}, keys, Waits((), ()), (), silences)
    return {delay.key.name for delay in delays if delay.is_sure}


@pytest.mark.parametrize(
    ("own", "ranks", "expected"),
    [
        ([("a", 10, 15), ("b", 11, 12)], {}, {"a"}),
        ([("a", 10, 13), ("b", 11, 12)], {}, set()),
        ([("a", 10, 15), ("b", 9, 12)], {}, set()),
        ([("a", 10, 40)], {}, set()),
        ([("a", 10, 80)], {}, {"a"}),
        ([("a", 10, 15), ("b", 11, 12)], {"b": ("", 5)}, set()),
        ([("a", 10, 15), ("b", 11, 12)], {"a": ("", 5)}, {"a"}),
        ([("a", 10, 15), ("b", 11, 12)], {"b": ("another", 0)}, set()),
    ],
)
def test_pod_is_tried_before_younger_ones_of_its_priority(own, ranks, expected):
    assert late_pods(own, ranks) == expected


def test_pod_may_wait_for_longer_while_nobody_writes():
    assert late_pods([("a", 10, 80)], written=(10, 80)) == set()
    assert late_pods([("a", 10, 140)], written=(10, 30, 105, 140)) == set()
    assert late_pods([("a", 10, 140)], written=(10, 75, 140)) == {"a"}
