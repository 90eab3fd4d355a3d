"""MIXED: lines that do not belong together, lines that come twice with other content, torn lines.

A collector that reads several clusters may write their lines into one file. Nobody did wrong, so
nobody is blamed; and since such a file cannot be told apart for sure, what is wrong in one of them
never passes. A line that is there twice with two contents is wrong in one of them.
"""

import copy
import json
import random
import re
from collections.abc import Callable, Sequence
from datetime import datetime

from tests.adversary import devices, evictions, joined
from tests.adversary.catalogue import (
    ALTERATIONS,
    FAILS,
    MIG,
    NOT_BLAMED,
    NOT_PASSED,
    QUICKSTART,
    REFUSED_OR_NOT_BLAMED,
    REFUSED_OR_NOT_PASSED,
    SAME,
    SMALL,
    TAINTS,
    TPU,
    VERSIONS,
    Change,
    alteration,
)
from tests.adversary.harmless import newest_first, shuffled
from tests.adversary.log import Log, later, results_of
from tests.adversary.rewriting import each_text
from tests.adversary.running import recording

_WRONGS = (devices, evictions, joined)
"""The modules whose alterations are taken: they have to be registered first."""

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{6})?Z")


def _other(name: str, begin: str) -> Log:
    """The log of another cluster, as if its first line had been written at that time."""
    log = recording(name).copy()
    gap = datetime.fromisoformat(begin) - datetime.fromisoformat(log.lines[0]["stageTimestamp"])

    def moved(match: re.Match[str]) -> str:
        time = later(match[0], gap.total_seconds())
        return time if "." in match[0] else f"{time[:19]}Z"

    each_text(log, lambda text: _TIME.sub(moved, text))
    return log


def _mixed(name: str, share: float) -> Callable[[Log], None]:
    def change(log: Log) -> None:
        drawn = random.Random(name)
        other = _other(name, log.lines[0]["stageTimestamp"])
        log.lines += [line for line in other.lines if drawn.random() < share]
        log.lines.sort(key=lambda line: str(line["stageTimestamp"]))

    return change


for _name, _recordings in (
    (VERSIONS, (QUICKSTART, TPU)),
    (TPU, (QUICKSTART, TAINTS)),
    (TAINTS, (QUICKSTART,)),
    (QUICKSTART, (VERSIONS, TPU)),
):
    _short = _name.partition("-")[2].replace("-", "_")
    _change = _mixed(_name, 1)
    _change.__name__ = f"and_all_lines_of_{_short}"
    _change.__doc__ = f"The lines of another cluster are in the file, too: those of {_name}."
    alteration("mixed", _recordings, verify=NOT_BLAMED, decide=NOT_BLAMED)(_change)
    _change = _mixed(_name, 0.05)
    _change.__name__ = f"and_some_lines_of_{_short}"
    _change.__doc__ = f"Each twentieth line of another cluster is in the file, too: of {_name}."
    alteration("mixed", _recordings, verify=NOT_BLAMED, decide=NOT_BLAMED)(_change)


@alteration("mixed", (QUICKSTART, TPU), verify=NOT_BLAMED, decide=NOT_BLAMED)
def and_all_lines_of_an_older_store(log: Log) -> None:
    """The lines of another cluster are in the file, too, whose versions are all far higher."""
    other = _other(VERSIONS, log.lines[0]["stageTimestamp"])
    other.renumber(lambda version: version + 5_000_000)
    log.lines += other.lines
    log.lines.sort(key=lambda line: str(line["stageTimestamp"]))


@alteration("mixed", (QUICKSTART, TPU, TAINTS), verify=NOT_BLAMED, decide=NOT_BLAMED)
def and_the_same_cluster_of_another_day(log: Log) -> None:
    """The log of a cluster with the same names, made anew a day later, follows in the file.

    Its uids are others, its versions begin again.
    """
    second = Log(log.copy().lines)
    ALTERATIONS["uids_exchanged"].change(second)

    def moved(match: re.Match[str]) -> str:
        time = later(match[0], 86_400)
        return time if "." in match[0] else f"{time[:19]}Z"

    each_text(second, lambda text: _TIME.sub(moved, text))
    log.lines += second.lines


def _beside(wrong: str, recordings: Sequence[str], change_log: Change, title: str) -> None:
    one = ALTERATIONS[wrong]

    def change(log: Log) -> None:
        one.change(log)
        change_log(log)

    change.__name__ = f"{wrong}_{title}"
    change.__doc__ = f"{one.why} Besides: {' '.join((change_log.__doc__ or '').split())}"
    alteration("mixed", recordings, verify=NOT_PASSED, decide=NOT_PASSED)(change)


for _wrong, _recordings in (
    ("device_in_two_claims", (QUICKSTART,)),
    ("device_never_published", (QUICKSTART,)),
    ("later_device_than_the_first", (QUICKSTART,)),
):
    for _part in ("all", "some"):
        _title = f"and_{_part}_lines_of_api_versions"
        _beside(_wrong, _recordings, ALTERATIONS[_title].change, _title)


def _again_with(log: Log, field: str, value: str, *, last: bool) -> None:
    number = log.allocation("")
    twice = copy.deepcopy(log.lines[number])
    for side in ("requestObject", "responseObject"):
        results_of(twice[side])[0][field] = value
    log.lines.insert(number + (1 if last else 0), twice)


@alteration("mixed", (QUICKSTART, TAINTS, MIG), verify=NOT_PASSED, decide=NOT_PASSED)
def line_again_with_another_device(log: Log) -> None:
    """An allocation is there twice, with one auditID and version; the copy names another device."""
    _again_with(log, "device", "gpu-77", last=True)


@alteration("mixed", (QUICKSTART, TAINTS, MIG), verify=NOT_PASSED, decide=NOT_PASSED)
def line_before_with_another_device(log: Log) -> None:
    """The same, and the line with the other device comes first."""
    _again_with(log, "device", "gpu-77", last=False)


@alteration("mixed", (QUICKSTART, TAINTS), verify=NOT_PASSED, decide=NOT_PASSED)
def binding_again_to_another_node(log: Log) -> None:
    """A binding, which has no version, is there twice with one auditID, and names two nodes."""
    number = log.first("create", "pods/binding", code=201)
    twice = copy.deepcopy(log.lines[number])
    target = twice["requestObject"]["target"]
    target["name"] = {"worker-1": "worker-2", "worker-2": "worker-1"}[target["name"]]
    log.lines.insert(number + 1, twice)


@alteration("mixed", SMALL, verify=NOT_BLAMED, decide=NOT_BLAMED)
def lines_again_an_hour_later(log: Log) -> None:
    """A collector sent each tenth line again, and the store gave these the time of arrival."""
    for line in list(log.lines[::10]):
        twice = copy.deepcopy(line)
        for field in ("requestReceivedTimestamp", "stageTimestamp"):
            twice[field] = later(twice[field], 3600)
        log.lines.append(twice)


@alteration("mixed", SMALL, verify=SAME, decide=SAME)
def some_lines_twice_far_apart(log: Log) -> None:
    """Each tenth line is there once more, at the end of the file, as it was."""
    log.lines += [copy.deepcopy(line) for line in log.lines[::10]]


@alteration("mixed", SMALL, verify=NOT_BLAMED, decide=NOT_BLAMED)
def last_line_torn(log: Log) -> str:
    """The file was copied while its last line was written."""
    text = log.text()
    return text[: len(text) - len(json.dumps(log.lines[-1])) // 2]


def _glued(log: Log) -> str:
    lines = log.text().splitlines(keepends=True)
    middle = len(lines) // 2
    lines[middle] = lines[middle][: len(lines[middle]) // 2]
    return "".join(lines)


@alteration("mixed", SMALL, verify=REFUSED_OR_NOT_BLAMED, decide=REFUSED_OR_NOT_BLAMED)
def line_torn_in_the_middle(log: Log) -> str:
    """A server ended in the middle of a line; the next one goes on behind it."""
    return _glued(log)


@alteration("mixed", QUICKSTART, verify=FAILS, decide=FAILS)
def device_in_two_claims_and_last_line_torn(log: Log) -> str:
    """Two claims hold an exclusive device (5.2); the last line, of later things, is torn."""
    ALTERATIONS["device_in_two_claims"].change(log)
    return last_line_torn(log)


@alteration("mixed", QUICKSTART, verify=REFUSED_OR_NOT_PASSED, decide=REFUSED_OR_NOT_PASSED)
def device_in_two_claims_and_a_line_torn(log: Log) -> str:
    """Two claims hold an exclusive device (5.2); two lines in the middle are torn."""
    ALTERATIONS["device_in_two_claims"].change(log)
    return _glued(log)


def _in_order(wrong: str, recordings: Sequence[str], order: Callable[[Log], None]) -> None:
    one = ALTERATIONS[wrong]

    def change(log: Log) -> None:
        one.change(log)
        order(log)

    change.__name__ = f"{wrong}_{order.__name__}"
    change.__doc__ = f"{one.why} Besides: {order.__doc__}"
    alteration("mixed", recordings, verify=one.verify, decide=one.decide)(change)


for _wrong, _recordings in (
    ("device_in_two_claims", (QUICKSTART,)),
    ("later_device_than_the_first", (QUICKSTART, TAINTS)),
    ("eviction_missing", (TAINTS,)),
    ("eviction_alone_two_seconds_early", (TAINTS,)),
    ("condition_with_another_text", (TAINTS,)),
):
    for _order in (newest_first, shuffled, some_lines_twice_far_apart):
        _in_order(_wrong, _recordings, _order)
