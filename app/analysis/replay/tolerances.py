"""The single table of constants for reading a recording: how exact its instants are.

Each row has its meaning, its unit and its source. The constants limit when something may have
happened in the recording, never its outcome. Code reads `tolerances.TABLE`. The rows are also in
docs/explanation/decide.md, with the measured effects of halving and doubling each.
"""

from dataclasses import dataclass, field

from app.domain.values.timestamps import SECOND

MILLI = 1_000
"""Microseconds of a millisecond: all times here are in microseconds."""


def _row(value: int, unit: str, meaning: str, source: str) -> int:
    row: int = field(default=value, metadata={"unit": unit, "meaning": meaning, "source": source})
    return row


@dataclass(frozen=True, slots=True, kw_only=True)
class Tolerances:
    """All rows, by name."""

    sure_after: int = _row(
        SECOND // 2,
        "µs",
        "an attempt saw at the latest what was answered so long after its first write came",
        "the scheduler's cache follows the store by watches; controllers.md 1.1",
    )
    placed_before: int = _row(
        10 * MILLI,
        "µs",
        "a placement was decided at most so long before its first write was sent",
        "one attempt takes some milliseconds; controllers.md 4.6",
    )
    failed_before: int = _row(
        5 * MILLI,
        "µs",
        "an attempt failed at most so long before it was reported",
        "the Event is made with the failure; controllers.md 4.3",
    )
    same_attempt: int = _row(
        SECOND // 2,
        "µs",
        "the write and the Event of one attempt are so near, besides the wait for the limit",
        "both are sent when the attempt ends; controllers.md 4.3",
    )
    reported_before: int = _row(
        20 * SECOND,
        "µs",
        "a condition that was sent longer after a later Event of a pod is of another attempt; no "
        "limit is slower than one request in that time",
        "twice the longest back-off, podMaxBackoffSeconds; controllers.md 4.2",
    )
    unseen: int = _row(
        2 * SECOND,
        "µs",
        "a key is looked at so much later when the recording does not show it at work",
        "of the pace here; a difference that it makes is tried by `untried` and `resyncs`",
    )
    unseen_try: int = _row(
        10 * SECOND,
        "µs",
        "the same for pods whose attempts all came to what they came to there, and for evictions",
        "podMaxBackoffSeconds; controllers.md 4.2",
    )
    coarse: int = _row(
        SECOND,
        "µs",
        "instants of sources without times of writes are so wrong",
        "metav1.Time has whole seconds; history-formats.md 5",
    )
    writes_between: int = _row(
        4,
        "writes",
        "so many writes of the scheduler lie between an attempt and its first one; where refused "
        "requests are not recorded, so many are lost with each pod that was deleted unplaced",
        "one attempt makes up to four writes: nomination, finalizer, status, binding; "
        "controllers.md 3.7",
    )
    claims_after: int = _row(
        20 * MILLI,
        "µs",
        "claims are written so long after a decision of which the recording has no write",
        "recorded bindings take 30 to 100 ms; controllers.md 4.6",
    )
    bind_after: int = _row(
        45 * MILLI,
        "µs",
        "a pod is bound so long after a decision of which the recording has no binding",
        "recorded bindings take 30 to 100 ms; controllers.md 4.6",
    )
    writes_a_second: int = _row(
        50,
        "writes/s",
        "the rate limit of the scheduler's client",
        "clientConnection.qps; controllers.md 1.1",
    )
    writes_at_once: int = _row(
        100,
        "writes",
        "the burst of the scheduler's client",
        "clientConnection.burst; controllers.md 1.1",
    )
    nearly_empty: int = _row(
        10,
        "writes",
        "with so few left the bucket may have been empty: reads are not recorded",
        "a tenth of the burst",
    )
    near: int = _row(
        400 * MILLI,
        "µs",
        "while nothing was sent for so long, no request of the scheduler waited",
        "20 requests at the limit of 50 a second",
    )
    overtaken_by: int = _row(
        300 * MILLI,
        "µs",
        "requests that wait for the limit overtake each other by so much",
        "15 requests at the limit of 50 a second",
    )
    slower_min: int = _row(
        2,
        "requests",
        "so many long waits speak against the bucket before the limit is taken for a slower one",
        "one may be a client that stood still; waits of first attempts are certain",
    )
    wait_seen: int = _row(
        100 * MILLI,
        "µs",
        "shorter distances between attempt and request are work, not waits",
        "5 requests at the limit of 50 a second",
    )
    act_after: int = _row(
        2 * SECOND,
        "µs",
        "a controller at work does what is ready within so long, besides the wait for its limit",
        "recorded acts follow their causes after 3 to 50 ms; controllers.md 3.7",
    )
    replaced_after: int = _row(
        13 * SECOND,
        "µs",
        "a process that wrote nothing for so long may have been replaced by another one",
        "leaseDuration of the leader election, less the retryPeriod in which it is renewed",
    )
    remembered: int = _row(
        3600 * SECOND,
        "µs",
        "a process of the claim controller knows for so long which claim it made for a pod",
        "presumed from recordings without a third claim; controllers.md C22",
    )
    times_slower: int = _row(
        2,
        "times",
        "a controller may take so many times as long as in its slowest recorded act with a reason",
        "a guess; a later line about the object overrules what it leaves open; controllers.md 7",
    )
    request_takes: int = _row(
        61 * SECOND,
        "µs",
        "two times of one clock, each reckoned from its own answer, differ by no more",
        "a server ends a request after a minute, and times have whole seconds; controllers.md 4.3",
    )
    afterwards: int = _row(
        30 * SECOND,
        "µs",
        "the clock goes on so long after the last recorded event, for what was under way",
        "the default terminationGracePeriodSeconds",
    )


TABLE = Tolerances()
