"""JOINED: the logs of two API servers in one file, in an order that is not that of time.

Each server writes a file of its own, in the order of its answers. A collector puts them one after
the other, or flushes some lines of each in turn, and may deliver a line twice. The two clocks are
microseconds to some milliseconds apart; the versions are those of one store.
"""

import copy
from collections.abc import Callable, Sequence

from tests.adversary import causes, devices, evictions, renewed, writes
from tests.adversary.catalogue import (
    ALTERATIONS,
    FAILS,
    NOT_BLAMED,
    QUICKSTART,
    SAME,
    SMALL,
    TAINTS,
    alteration,
)
from tests.adversary.log import Json, Log, later

_WRONGS = (causes, devices, evictions, renewed, writes)
"""The modules whose alterations are taken: they have to be registered first."""

_BATCH = 25
"""The lines that a server flushes at once."""

Lines = list[Json]


def _servers(log: Log) -> tuple[Lines, Lines]:
    """The lines of each server: a client keeps its connection, so all of its requests go to one."""
    first: Lines = []
    second: Lines = []
    for line in log.lines:
        name = line["user"]["username"]
        (first if sum(name.encode()) % 2 else second).append(line)
    return first, second


def _behind(lines: Lines, microseconds: int) -> None:
    for line in lines:
        for field in ("requestReceivedTimestamp", "stageTimestamp"):
            line[field] = later(line[field], -microseconds / 1_000_000)


def one_after_the_other(log: Log) -> None:
    """The file of one server follows that of the other."""
    first, second = _servers(log)
    log.lines = second + first


def flushed_in_turn(log: Log) -> None:
    """Two servers flush 25 lines each in turn."""
    rest = [list(lines) for lines in _servers(log)]
    log.lines = []
    while any(rest):
        for lines in rest:
            log.lines += lines[:_BATCH]
            del lines[:_BATCH]


def overlapping(log: Log) -> None:
    """The file of each server was read twice, the second time from its middle on."""
    first, second = _servers(log)
    log.lines = [
        copy.deepcopy(line)
        for lines in (first, second, first[len(first) // 2 :], second[len(second) // 2 :])
        for line in lines
    ]


_ORDERS = (one_after_the_other, flushed_in_turn, overlapping)

for _order in _ORDERS:
    alteration("joined", SMALL, verify=SAME, decide=SAME)(_order)


def _apart(order: Callable[[Log], None], microseconds: int) -> None:
    def change(log: Log) -> None:
        _behind(_servers(log)[1], microseconds)
        order(log)

    change.__name__ = f"{order.__name__}_{microseconds}_microseconds_apart"
    change.__doc__ = f"{order.__doc__} Its clock is {microseconds} µs behind."
    alteration("joined", SMALL, verify=NOT_BLAMED, decide=NOT_BLAMED)(change)


for _order in _ORDERS:
    for _microseconds in (40, 700, 4_000):
        _apart(_order, _microseconds)


def _compose(wrong: str, recordings: Sequence[str], order: Callable[[Log], None]) -> None:
    one = ALTERATIONS[wrong]

    def change(log: Log) -> None:
        one.change(log)
        _behind(_servers(log)[1], 700)
        order(log)

    change.__name__ = f"{wrong}_and_{order.__name__}"
    change.__doc__ = f"{one.why} Besides: {order.__doc__} Its clock is 700 µs behind."
    alteration("joined", recordings, verify=one.verify, decide=FAILS)(change)


for _wrong, _recordings in (
    ("device_in_two_claims", (QUICKSTART,)),
    ("later_device_than_the_first", (QUICKSTART,)),
    ("binding_to_a_worse_node", (QUICKSTART,)),
    ("claim_made_before_its_pod", (QUICKSTART,)),
    ("reserved_for_the_earlier_pod", (QUICKSTART,)),
    ("bound_without_a_reservation", (QUICKSTART,)),
    ("eviction_missing", (TAINTS,)),
    ("eviction_alone_two_seconds_early", (TAINTS,)),
    ("tolerations_not_copied", (TAINTS,)),
):
    for _order in _ORDERS[:2]:
        _compose(_wrong, _recordings, _order)
