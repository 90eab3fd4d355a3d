"""EDGES: a wrong, and a hole in the log far before it, at its edge, around it or after it.

A wrong that its own lines prove fails beside any hole. Another one depends on what else there was:
it fails where the hole comes after it, and else it must not be passed, failed or compared in part.
The lines that are the wrong themselves are never lost.
"""

from collections.abc import Callable, Collection, Sequence

from tests.adversary import devices, writes
from tests.adversary.catalogue import (
    ALTERATIONS,
    FAILS,
    NOT_BLAMED,
    NOT_PASSED,
    QUICKSTART,
    TAINTS,
    VERSIONS,
    alteration,
)
from tests.adversary.log import Log, NotFound, later

_MODULES = (devices, writes)
"""The modules whose alterations are taken: they have to be registered first."""

Places = Callable[[Log], Sequence[int]]
"""The positions of the lines that are the wrong; the first one is the decision."""


def _lose(log: Log, numbers: Collection[int], kept: Collection[int]) -> None:
    lost = {number for number in numbers if 0 <= number < len(log.lines)} - set(kept)
    if not any(log.lines[number]["level"] != "Metadata" for number in lost):
        raise NotFound("no write to lose")
    log.lines = [line for number, line in enumerate(log.lines) if number not in lost]


def long_before(log: Log, wrong: Sequence[int]) -> None:
    """The first lines are lost, from before there was a node."""
    _lose(log, range(log.first("create", "nodes")), wrong)


def just_before(log: Log, wrong: Sequence[int]) -> None:
    """The ten lines before the decision are lost."""
    _lose(log, range(wrong[0] - 10, wrong[0]), wrong)


def around(log: Log, wrong: Sequence[int]) -> None:
    """The six lines before the decision are lost, and the six after it."""
    _lose(log, range(wrong[0] - 6, wrong[0] + 7), wrong)


def afterwards(log: Log, wrong: Sequence[int]) -> None:
    """Everything from one second after the decision to four seconds after it is lost."""
    at = log.lines[wrong[0]]["stageTimestamp"]
    begin, end = later(at, 1), later(at, 4)
    numbers = [n for n, line in enumerate(log.lines) if begin < line["stageTimestamp"] < end]
    _lose(log, numbers, wrong)


_HOLES = (long_before, just_before, around, afterwards)


def _allocation(*claims: str) -> Places:
    return lambda log: [log.allocation(claim) for claim in claims]


def _made(log: Log) -> list[int]:
    return [log.first("create", "resourceclaims", by="resource-claim-controller", code=201)]


def _assigned(log: Log) -> list[int]:
    event = log.first(
        "create",
        "events",
        by="kube-scheduler",
        where=lambda line: line["requestObject"].get("reason") == "Scheduled",
    )
    pod = log.lines[event]["requestObject"]["regarding"]["name"]
    return [event, log.first("create", "pods/binding", pod)]


def _refused(log: Log) -> list[int]:
    return list(
        log.find(
            "patch", "pods/status", by="scheduler", where=lambda line: "Insufficient" in str(line)
        )
    )


_PROVED: dict[str, tuple[str, Places]] = {
    "device_in_two_claims": (QUICKSTART, _allocation("pod1", "pod0")),
    "claim_without_owner": (QUICKSTART, _made),
    "claim_without_its_annotation": (QUICKSTART, _made),
    "scheduled_event_of_another_node": (QUICKSTART, _assigned),
    "result_of_unknown_request": (QUICKSTART, _allocation("")),
    "more_devices_than_asked": (VERSIONS, _allocation("p-b1")),
    "tolerations_not_copied": (TAINTS, _allocation("ns-0")),
}
"""Wrongs that their own lines prove: the recording, and the lines."""

_DEPENDENT: dict[str, tuple[str, Places]] = {
    "later_device_than_the_first": (QUICKSTART, _allocation("pod2")),
    "binding_to_a_worse_node": (QUICKSTART, _allocation("pod2")),
    "tainted_device_taken": (QUICKSTART, _allocation("pod2")),
    "message_of_another_cause": (QUICKSTART, _refused),
}
"""Wrongs by what else was there, which a hole may have changed."""

_WITHOUT_SEQUEL = (
    "binding_to_a_worse_node",
    "later_device_than_the_first",
    "message_of_another_cause",
    "tolerations_not_copied",
)
"""Wrongs after which the recording ends, or has no write for some seconds."""


def _register(wrong: str, recording: str, places: Places, *, is_proved: bool) -> None:
    one = ALTERATIONS[wrong]
    for hole in _HOLES:
        if hole is afterwards and wrong in _WITHOUT_SEQUEL:
            continue

        def change(log: Log, hole: Callable[[Log, Sequence[int]], None] = hole) -> None:
            one.change(log)
            hole(log, places(log))

        verdict = FAILS if is_proved or hole is afterwards else NOT_PASSED
        change.__name__ = f"{wrong}_and_a_hole_{hole.__name__}"
        change.__doc__ = f"{one.why} Besides: {' '.join((hole.__doc__ or '').split())}"
        verify = verdict if one.verify == FAILS else NOT_BLAMED
        alteration("edges", recording, verify=verify, decide=verdict)(change)


for _wrong, (_recording, _places) in _PROVED.items():
    _register(_wrong, _recording, _places, is_proved=True)
for _wrong, (_recording, _places) in _DEPENDENT.items():
    _register(_wrong, _recording, _places, is_proved=False)
