"""CLOCKS: logs of API servers behind a load balancer whose clocks differ by some milliseconds.

Versions give the order of the writes that have one. A binding has none, so its time is all that is
known of it; a request for one object may be answered by another server than the next one. Nobody
is to blame for that. What is wrong in such a log is as wrong as in another one.
"""

import random
from collections.abc import Callable, Sequence

from tests.adversary import causes, devices, evictions, harmless, writes
from tests.adversary.catalogue import (
    ALTERATIONS,
    FAILS,
    MIG,
    NOT_BLAMED,
    QUICKSTART,
    SMALL,
    TAINTS,
    TPU,
    Change,
    alteration,
)
from tests.adversary.log import Json, Log, NotFound, later

_TIMES = ("requestReceivedTimestamp", "stageTimestamp")
_WRONGS = (causes, devices, evictions, writes)
"""The modules whose alterations are taken: they have to be registered first."""


def _shift(line: Json, seconds: float) -> None:
    for field in _TIMES:
        line[field] = later(line[field], seconds)


def _through_servers(number: int, apart: float) -> Change:
    """Each line is answered by one of some servers, each clock `apart` seconds after another."""

    def change(log: Log) -> None:
        drawn = random.Random(number)
        for line in log.lines:
            _shift(line, apart * drawn.randrange(number))

    return change


for _number, _name, _millis, _logs in (
    (2, "two", 5, SMALL),
    (2, "two", 20, SMALL),
    (3, "three", 5, SMALL),
    (3, "three", 20, SMALL),
    (3, "three", 200, (QUICKSTART, TAINTS)),
):
    _change = _through_servers(_number, _millis / 1000)
    _change.__name__ = f"{_name}_servers_{_millis}_milliseconds_apart"
    _change.__doc__ = f"{_name} servers, each clock {_millis} ms after another: by chance"
    alteration("clocks", _logs, verify=NOT_BLAMED, decide=NOT_BLAMED)(_change)


@alteration("clocks", (QUICKSTART, MIG), verify=FAILS, decide=FAILS)
def bound_two_seconds_before_its_reservation(log: Log) -> None:
    """The scheduler binds a pod long before it has reserved the claims (3.7): no clock is so far
    off while all other lines agree."""
    for number in reversed(log.allocations()):
        pod = log.lines[number]["responseObject"]["status"]["reservedFor"][0]["name"]
        bound = next(log.find("create", "pods/binding", pod, after=number), None)
        made = next(log.find("create", "pods", pod, code=201), None)
        if bound is None or made is None:
            continue
        _shift(log.lines[bound], -2)
        if log.lines[made]["stageTimestamp"] < log.lines[bound]["requestReceivedTimestamp"]:
            log.lines.sort(key=lambda each: str(each["stageTimestamp"]))
            return
        _shift(log.lines[bound], 2)
    raise NotFound("no pod that waited for two seconds")


def _compose(wrong: str, recordings: Sequence[str], ending: str, changed: Change) -> None:
    change_wrong: Callable[[Log], object] = ALTERATIONS[wrong].change

    def change(log: Log) -> None:
        change_wrong(log)
        changed(log)

    change.__name__ = f"{wrong}_{ending}"
    change.__doc__ = f"{ALTERATIONS[wrong].why} And clocks: {changed.__doc__}"
    alteration("clocks", recordings, verify=ALTERATIONS[wrong].verify, decide=FAILS)(change)


def _two_servers(log: Log) -> None:
    """The clocks of two servers are 20 ms apart."""
    _through_servers(2, 0.02)(log)


for _wrong, _recordings in (
    ("device_in_two_claims", (QUICKSTART,)),
    ("later_device_than_the_first", (QUICKSTART,)),
    ("claim_made_before_its_template", (QUICKSTART,)),
    ("eviction_missing", (TAINTS,)),
    ("eviction_alone_two_seconds_early", (TAINTS,)),
    ("condition_with_another_text", (TAINTS,)),
):
    _compose(_wrong, _recordings, "through_two_servers", _two_servers)

for _wrong, _recordings in (
    ("claim_made_before_its_pod", (TPU, TAINTS)),
    ("eviction_missing", (TAINTS,)),
    ("eviction_after_its_time", (TAINTS,)),
    ("tolerations_not_copied", (TAINTS,)),
    ("node_selector_of_half_the_nodes", (TPU,)),
):
    _compose(_wrong, _recordings, "in_whole_seconds", harmless.times_to_seconds)


def _date_a_binding_before_its_pod(log: Log) -> None:
    """Dates one binding an hour before all other lines."""
    _shift(log.lines[log.first("create", "pods/binding", code=201)], -3600)


@alteration("clocks", (TAINTS, QUICKSTART), verify=NOT_BLAMED, decide=NOT_BLAMED)
def binding_dated_an_hour_before_its_pod(log: Log) -> None:
    """One binding has a time at which its pod was not made yet: nothing else is in doubt."""
    _date_a_binding_before_its_pod(log)


@alteration("clocks", QUICKSTART, verify=FAILS, decide=FAILS)
def device_in_two_claims_and_a_binding_dated_before_its_pod(log: Log) -> None:
    """The time of one binding is no excuse for a device in two claims."""
    ALTERATIONS["device_in_two_claims"].change(log)
    _date_a_binding_before_its_pod(log)
