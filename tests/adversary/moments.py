"""MOMENTS: one time that all others contradict, clocks that are wrong for everything, equal times.

A server stamps what it stores with the clock with which it writes its log: `creationTimestamp` is
the second of the creation, `deletionTimestamp` that of the deletion and the grace. So such a time
that is hours away from its own line is none that a server gave. Kubelets and the scheduler have
clocks of their own, which may be wrong for all that they write.
"""

import json
import random
import re
from collections.abc import Callable, Sequence

from tests.adversary import devices, evictions, writes
from tests.adversary.catalogue import (
    ALTERATIONS,
    FAILS,
    NOT_BLAMED,
    NOT_PASSED,
    QUICKSTART,
    SAME,
    SMALL,
    TAINTS,
    TPU,
    alteration,
)
from tests.adversary.log import Log, NotFound, later, uid_of

_WRONGS = (devices, evictions, writes)
"""The modules whose alterations are taken: they have to be registered first."""

_HOURS = 3 * 3600
_SECOND = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{6})?Z")
_STAMPS = ("requestReceivedTimestamp", "stageTimestamp")


def _moved(text: str, seconds: float) -> str:
    time = later(text, seconds)
    return time if "." in text else f"{time[:19]}Z"


def _of_one(resource: str, log: Log) -> int:
    """The creation of an object that other lines show, too."""
    for number in log.find("create", resource, code=201):
        if sum(1 for _ in log.of(uid_of(log.lines[number]), start=number)) > 2:
            return number
    raise NotFound(resource)


def _created(resource: str, seconds: int) -> Callable[[Log], None]:
    def change(log: Log) -> None:
        for body in log.of(uid_of(log.lines[_of_one(resource, log)])):
            if "creationTimestamp" in body["metadata"]:
                made = _moved(body["metadata"]["creationTimestamp"], seconds)
                body["metadata"]["creationTimestamp"] = made

    return change


for _resource, _title, _recordings in (
    ("pods", "pod", SMALL),
    ("resourceclaims", "claim", SMALL),
    ("resourceslices", "slice", (TAINTS,)),
):
    for _seconds, _when in ((-_HOURS, "before"), (_HOURS, "after")):
        _change = _created(_resource, _seconds)
        _change.__name__ = f"{_title}_created_three_hours_{_when}_its_creation"
        _change.__doc__ = (
            f"One {_title} says in each state that it was created three hours {_when} the request"
            " that created it was answered; the server sets both with one clock (6.1)."
        )
        alteration("moments", _recordings, verify=NOT_PASSED, decide=NOT_PASSED)(_change)


def _change_midway(log: Log, resource: str, field: str, seconds: int) -> None:
    number = _of_one(resource, log)
    bodies = [
        body
        for body in log.of(uid_of(log.lines[number]), start=number + 1)
        if field in body["metadata"]
    ]
    if not bodies:
        raise NotFound(field)
    for body in bodies[len(bodies) // 2 :]:
        body["metadata"][field] = _moved(body["metadata"][field], seconds)


@alteration("moments", (QUICKSTART, TAINTS, TPU), verify=NOT_PASSED, decide=NOT_PASSED)
def creation_of_a_pod_changes_midway(log: Log) -> None:
    """From some state on a pod was created 40 minutes earlier; the field is immutable (6.2)."""
    _change_midway(log, "pods", "creationTimestamp", -2400)


@alteration("moments", (QUICKSTART, TAINTS, TPU), verify=NOT_PASSED, decide=NOT_PASSED)
def creation_of_a_claim_changes_midway(log: Log) -> None:
    """From some state on a claim was created 40 minutes earlier; the field is immutable (6.2)."""
    _change_midway(log, "resourceclaims", "creationTimestamp", -2400)


def _ended(seconds: int) -> Callable[[Log], None]:
    def change(log: Log) -> None:
        for number in log.find("delete", "pods", code=200):
            body = log.lines[number].get("responseObject") or {}
            if body.get("kind") == "Pod" and body["metadata"].get("deletionTimestamp"):
                for each in log.of(uid_of(log.lines[number])):
                    if "deletionTimestamp" in each["metadata"]:
                        end = _moved(each["metadata"]["deletionTimestamp"], seconds)
                        each["metadata"]["deletionTimestamp"] = end
                return
        raise NotFound("no pod that is deleted")

    return change


for _seconds, _when in ((-_HOURS, "before"), (_HOURS, "after")):
    _change = _ended(_seconds)
    _change.__name__ = f"pod_ends_three_hours_{_when}_its_time"
    _change.__doc__ = (
        f"The deletionTimestamp of one pod is three hours {_when} the time of its deletion and the"
        " grace (6.3)."
    )
    alteration("moments", (QUICKSTART, TAINTS), verify=NOT_PASSED, decide=NOT_PASSED)(_change)


def _condition(log: Log, seconds: int) -> None:
    for number in log.find("patch", "pods/status", by="kube-scheduler", code=200):
        uid, done = uid_of(log.lines[number]), False
        for body in (log.lines[number]["requestObject"], *log.of(uid)):
            for one in (body.get("status") or {}).get("conditions") or ():
                if one["type"] == "PodScheduled" and one.get("lastTransitionTime"):
                    one["lastTransitionTime"] = _moved(one["lastTransitionTime"], seconds)
                    done = True
        if done:
            return
    raise NotFound("no condition of the scheduler")


@alteration("moments", (QUICKSTART, TAINTS, TPU), verify=NOT_BLAMED, decide=NOT_PASSED)
def condition_of_one_pod_three_hours_early(log: Log) -> None:
    """The scheduler says of one pod that it has waited since hours before its creation (4.3)."""
    _condition(log, -_HOURS)


@alteration("moments", (QUICKSTART, TAINTS, TPU), verify=NOT_BLAMED, decide=NOT_PASSED)
def condition_of_one_pod_three_hours_late(log: Log) -> None:
    """The scheduler says of one pod, alone, that it waits since three hours from now (4.3)."""
    _condition(log, _HOURS)


def _clock_of(user: str, seconds: float, log: Log) -> None:
    """Moves the times that a client sends, where it sent them and where the server shows them."""
    pairs: set[tuple[str, str]] = set()

    def gather(node: object, uid: str) -> None:
        if isinstance(node, dict):
            for value in node.values():
                gather(value, uid)
        elif isinstance(node, list):
            for item in node:
                gather(item, uid)
        elif isinstance(node, str) and _SECOND.fullmatch(node):
            pairs.add((uid, node))

    def move(node: object, uid: str) -> object:
        if isinstance(node, dict):
            return {
                key: value
                if key in ("creationTimestamp", "deletionTimestamp", "managedFields")
                else move(value, uid)
                for key, value in node.items()
            }
        if isinstance(node, list):
            return [move(item, uid) for item in node]
        return _moved(node, seconds) if isinstance(node, str) and (uid, node) in pairs else node

    mine = [
        number
        for number in log.find(code=200)
        if user in log.lines[number]["user"]["username"]
        and log.lines[number]["verb"] in ("patch", "update")
        and log.lines[number]["objectRef"]["resource"] == "pods"
    ]
    for number in mine:
        request = log.lines[number]["requestObject"]
        gather(request.get("status"), uid_of(log.lines[number]))
    if not pairs:
        raise NotFound(user)
    for line in log.lines:
        for side in ("requestObject", "responseObject"):
            body = line.get(side)
            if isinstance(body, dict) and line["objectRef"]["resource"] == "pods":
                answer = line.get("responseObject") or {}
                uid = answer.get("metadata", {}).get("uid") or line["objectRef"].get("uid") or ""
                if "status" in body and body.get("kind") != "Status":
                    body["status"] = move(body["status"], uid)


def _report_dated(resource: str, reason: str, seconds: int) -> Callable[[Log], None]:
    def change(log: Log) -> None:
        reports = log.find(
            "create", resource, where=lambda line: line["requestObject"].get("reason") == reason
        )
        number = max(reports, default=None)
        if number is None:
            raise NotFound(reason)
        for body in log.of(uid_of(log.lines[number])):
            body["eventTime"] = _moved(body["eventTime"], seconds)

    return change


for _reason, _recordings in (("FailedScheduling", SMALL), ("Scheduled", (QUICKSTART, TAINTS))):
    for _seconds, _when in ((-_HOURS, "early"), (_HOURS, "late")):
        _change = _report_dated("events", _reason, _seconds)
        _change.__name__ = f"last_event_{_reason}_three_hours_{_when}"
        _change.__doc__ = (
            f"The last Event {_reason} is dated three hours {_when}, before its pod was made or"
            " after it was stored itself; all others are of the clock of the scheduler (4.6)."
        )
        alteration("moments", _recordings, verify=SAME, decide=NOT_PASSED)(_change)


@alteration("moments", (QUICKSTART, TAINTS, TPU), verify=NOT_BLAMED, decide=NOT_BLAMED)
def clock_of_all_kubelets_three_hours_behind(log: Log) -> None:
    """Nodes have another time: what kubelets report is three hours old. Nothing is decided by it.

    The server stamps what it stores, and the deletion of pods, with its own clock.
    """
    _clock_of("system:node:", -_HOURS, log)


@alteration("moments", (QUICKSTART, TAINTS, TPU), verify=NOT_BLAMED, decide=NOT_BLAMED)
def clock_of_the_scheduler_three_hours_behind(log: Log) -> None:
    """The host of the scheduler has another time: all conditions that it writes are as old."""
    _clock_of("kube-scheduler", -_HOURS, log)


@alteration("moments", (QUICKSTART, TAINTS, TPU), verify=NOT_BLAMED, decide=NOT_BLAMED)
def clock_of_the_scheduler_seven_seconds_ahead(log: Log) -> None:
    """The host of the scheduler is seven seconds ahead: all conditions that it writes are, too."""
    _clock_of("kube-scheduler", 7, log)


@alteration("moments", SMALL, verify=NOT_BLAMED, decide=NOT_BLAMED)
def lines_in_another_zone(log: Log) -> None:
    """A collector writes the times of lines two hours ahead, as if they were in UTC."""
    for line in log.lines:
        for field in _STAMPS:
            line[field] = later(line[field], 7200)


@alteration("moments", SMALL, verify=SAME, decide=SAME)
def counts_of_events_higher(log: Log) -> None:
    """Events have counts that are higher by seven: what a client did not send, it counts (2.1)."""
    done = 0
    for line in log.lines:
        if line["objectRef"]["resource"] != "events":
            continue
        for side in ("requestObject", "responseObject"):
            body = line.get(side) or {}
            for holder in (body, body.get("series") or {}):
                for field in ("count", "deprecatedCount"):
                    if isinstance(holder.get(field), int) and holder[field]:
                        holder[field] += 7
                        done += 1
    if not done:
        raise NotFound("no count")


@alteration("moments", (QUICKSTART, TAINTS), verify=NOT_BLAMED, decide=NOT_BLAMED)
def times_of_one_event_three_hours_off(log: Log) -> None:
    """The times in one Event of the scheduler are three hours old: no decision rests on it."""
    number = log.first("create", "events", by="kube-scheduler", code=201)
    for side in ("requestObject", "responseObject"):
        body = log.lines[number][side]
        for field in ("eventTime", "deprecatedFirstTimestamp", "deprecatedLastTimestamp"):
            if body.get(field):
                body[field] = _moved(body[field], -_HOURS)


def _at_equal_times(digits: int) -> Callable[[Log], None]:
    """The times of lines have so many digits, and lines of one time come in any order."""

    def change(log: Log) -> None:
        for line in log.lines:
            for field in _STAMPS:
                line[field] = f"{line[field][: 20 + digits]}".rstrip(".") + "Z"
        drawn = random.Random(digits)
        drawn.shuffle(log.lines)
        log.lines.sort(key=lambda line: str(line["stageTimestamp"]))

    return change


for _digits, _unit in ((3, "milliseconds"), (2, "hundredths"), (0, "seconds")):
    _change = _at_equal_times(_digits)
    _change.__name__ = f"equal_{_unit}_in_another_order"
    _change.__doc__ = (
        f"The logs of several servers were merged by times in {_unit}: lines of one time are in no"
        " order. Versions order the writes that have one."
    )
    alteration("moments", SMALL, verify=NOT_BLAMED, decide=NOT_BLAMED)(_change)


def _beside(wrong: str, recordings: Sequence[str], digits: int, unit: str) -> None:
    one = ALTERATIONS[wrong]

    def change(log: Log) -> None:
        one.change(log)
        _at_equal_times(digits)(log)

    change.__name__ = f"{wrong}_and_equal_{unit}"
    change.__doc__ = f"{one.why} Besides, lines of equal {unit} are in no order."
    verify = one.verify if one.verify == FAILS else NOT_BLAMED
    alteration("moments", recordings, verify=verify, decide=FAILS)(change)


for _wrong, _recordings in (
    ("device_in_two_claims", (QUICKSTART,)),
    ("device_never_published", (QUICKSTART, TAINTS)),
    ("later_device_than_the_first", (QUICKSTART,)),
    ("eviction_missing", (TAINTS,)),
    ("eviction_alone_three_seconds_early", (TAINTS,)),
):
    _beside(_wrong, _recordings, 3, "milliseconds")
_beside("device_in_two_claims", (QUICKSTART,), 0, "seconds")


def _date_one_report(log: Log, seconds: float, names: frozenset[str] = frozenset()) -> None:
    """One report of a kubelet, about none of these pods, is dated so much later."""
    chosen = [
        number
        for number in log.find("patch", "pods/status", by="system:node:", code=200)
        if log.lines[number]["objectRef"]["name"] not in names
    ]
    if not chosen:
        raise NotFound("no report")
    line = log.lines[random.Random(seconds).choice(chosen)]
    for field in _STAMPS:
        line[field] = later(line[field], seconds)


@alteration("moments", SMALL, verify=NOT_BLAMED, decide=NOT_BLAMED)
def one_report_dated_forty_seconds_late(log: Log) -> None:
    """One line has a time that those of the next versions contradict: a server's accident."""
    _date_one_report(log, 40)


@alteration("moments", SMALL, verify=NOT_BLAMED, decide=NOT_BLAMED)
def one_report_dated_forty_seconds_early(log: Log) -> None:
    """One line has a time that those of the versions before contradict."""
    _date_one_report(log, -40)


def _beside_one_time(wrong: str, recording: str, seconds: float, when: str) -> None:
    one = ALTERATIONS[wrong]

    def change(log: Log) -> None:
        before = {json.dumps(line) for line in log.lines}
        one.change(log)
        changed = (line for line in log.lines if json.dumps(line) not in before)
        _date_one_report(
            log, seconds, frozenset(line["objectRef"].get("name", "") for line in changed)
        )

    change.__name__ = f"{wrong}_and_one_report_dated_{when}"
    change.__doc__ = (
        f"{one.why} Besides, a report about another pod is dated forty seconds {when}: the time of"
        " one line tells nothing of others."
    )
    verify = FAILS if one.verify == FAILS else NOT_BLAMED
    alteration("moments", (recording,), verify=verify, decide=FAILS)(change)


for _wrong, _recording in (
    ("eviction_missing", TAINTS),
    ("eviction_after_its_time", TAINTS),
    ("eviction_alone_three_seconds_early", TAINTS),
    ("rule_counts_more_devices", TAINTS),
    ("condition_with_another_text", TAINTS),
    ("bound_to_a_cordoned_node", QUICKSTART),
    ("claim_of_a_finished_pod_kept", QUICKSTART),
    ("message_of_another_cause", QUICKSTART),
    ("status_names_another_claim", QUICKSTART),
):
    _beside_one_time(_wrong, _recording, 40, "late")
_beside_one_time("rule_counts_more_devices", TAINTS, -40, "early")
